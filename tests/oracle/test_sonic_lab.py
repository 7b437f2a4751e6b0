"""Every SONiC patch and its way back, given to the lab's updater, which shares no code with what foresees its refusals.

The lab has the updater's rules from the same public file, read by other eyes; a refusal that nobody foresaw, or one
that was foreseen and does not come, fails.
"""

import json
import random
from typing import Final

import pytest

from fabric.clock import FakeClock
from fabric.diff import Change, changes, future
from fabric.errors import PlanError
from fabric.lab import DeviceSpec
from fabric.lab.sonic.device import SonicDevice
from fabric.lab.sonic.updater import UpdateRefusedError
from fabric.nos import RenderContext, catalog
from fabric.plan import SwitchPlan, make_plan
from fabric.tree import Tree
from fabric.workflow.subjects import capabilities_of
from tests.oracle.sonic_base import BasePort, sonic_base
from tests.strategies.fabrics import generate

SONIC: Final = catalog.get("sonic")
SKUS = ("ACS-MSN4700", "ACS-MSN2700", "Nokia-IXR7220-H3", "ACS-SN5640", "Arista-7800R3-48CQ2-C48", "DellEMC-S5232f-C32")
VERSIONS = ("", "SONiC.20191130.1", "SONiC.20220531.22", "SONiC.20260615.01", "SONiC.master.0-dirty-20260101.000000")


def test_the_lab_refuses_what_was_foreseen_there_and_back_for_a_few_fabrics() -> None:
    taken, refused = _judge(range(1000, 1006))
    assert taken > 5
    assert refused > 5


@pytest.mark.sweep  # the few fabrics beside are of `make test`
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_the_lab_refuses_what_was_foreseen_there_and_back(first: int) -> None:
    assert all(_judge(range(first, first + 20)))


def _judge(seeds: range) -> tuple[int, int]:
    """Returns how many patches the lab took, and how many it refused; each as foreseen."""
    verdicts: list[bool] = []
    for seed in seeds:
        fabric = generate(seed, defaults_only=seed % 2 == 0)
        source = random.Random(seed)  # noqa: S311  (test data, no secret)
        for plan in make_plan(fabric, capabilities_of).switches:
            if plan.nos == "sonic":
                verdicts += [_as_foreseen(plan, source) for _ in range(4)]
    return verdicts.count(True), verdicts.count(False)


def _as_foreseen(plan: SwitchPlan, source: random.Random) -> bool:
    hwsku, version = source.choice(SKUS), source.choice(VERSIONS)
    spec = DeviceSpec(
        plan.device, "sonic", _seed(plan, hwsku, source), hwsku=hwsku, version=version.removeprefix("SONiC.")
    )
    lab = SonicDevice(spec, FakeClock())
    before = lab.running()
    running = SONIC.tree(before)
    context = RenderContext(version=version, asic=plan.asic, hwsku=hwsku, running=running, adopt=source.random() < 0.5)
    try:
        intended = SONIC.render(plan.qos, context)
    except PlanError:  # a port outside the intent has shorter times than the polling interval
        return False
    there = changes(running, intended, SONIC.rules, adopt=context.adopt)
    if not _agree(lab, there.forward, running, context):
        return False
    after = SONIC.tree(lab.running())
    assert after == future(running, there.forward)
    if _agree(lab, there.backward, after, context):
        assert lab.running() == before
    return True


def _agree(lab: SonicDevice, steps: tuple[Change, ...], running: Tree, context: RenderContext) -> bool:
    foreseen = SONIC.refusals(steps, running, context)
    try:
        lab.updater.patch(SONIC.payload(steps, running))
        said = ""
    except UpdateRefusedError as error:
        said = str(error)
    assert bool(said) is bool(foreseen), (said, foreseen)
    return not said


def _seed(plan: SwitchPlan, hwsku: str, source: random.Random) -> str:
    ports = [BasePort(one.name, 100_000, cable_m=5) for one in plan.qos.ports]
    tables = sonic_base(
        [*ports, BasePort("Ethernet1000")],
        hostname=plan.device,
        hwsku=hwsku,
        dynamic=source.random() < 0.5,
        stock_qos=source.random() < 0.5,
        watchdog=source.random() < 0.7,
    )
    rows = tables.get("PFC_WD", {})
    for key in [*rows]:
        if key != ports[0].name and source.random() < 0.25:
            del rows[key]
    if "GLOBAL" not in rows and source.random() < 0.5:
        tables.pop("PFC_WD", None)
    return json.dumps(tables)
