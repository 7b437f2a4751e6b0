"""What provisioning makes of every SONiC switch of generated fabrics, judged by SONiC's own YANG."""

import json
from pathlib import Path

import pytest

from fabric.intent import Fabric, Switch
from fabric.nos import catalog
from fabric.plan import SwitchPlan, make_plan
from fabric.workflow.design import design
from fabric.workflow.subjects import capabilities_of
from tests.oracle.sonic_base import BasePort, sonic_base
from tests.oracle.yang import judge
from tests.strategies.fabrics import generate

pytestmark = pytest.mark.reference

FABRICS = 200
SHARE = 20  # fabrics in one test, so that a failure names few


@pytest.mark.sweep  # the few fabrics beside are of `make test`
@pytest.mark.parametrize("first", range(0, FABRICS, SHARE))
def test_future_of_generated_fabrics_is_accepted(reference: Path, tmp_path: Path, first: int) -> None:
    _accepted(reference, tmp_path, range(first, first + SHARE))


def test_future_of_a_few_fabrics_is_accepted(reference: Path, tmp_path: Path) -> None:
    _accepted(reference, tmp_path, range(1000, 1004))


def test_generated_fabrics_are_mixed() -> None:
    drawn = [generate(seed, defaults_only=seed % 2 == 0) for seed in range(FABRICS)]
    assert all(any(switch.nos == "sonic" for switch in one.switches) for one in drawn)
    assert all(len(_speeds(one)) >= 3 for one in drawn)
    assert all(len({link.cable_m for link in one.links}) > 1 for one in drawn)


def _speeds(fabric: Fabric) -> set[int]:
    return {port.speed_mbps for switch in fabric.switches for port in switch.ports}


def _accepted(reference: Path, folder: Path, seeds: range) -> None:
    texts: dict[str, str] = {}
    for seed in seeds:
        fabric = generate(seed, defaults_only=seed % 2 == 0)
        plan = make_plan(fabric, capabilities_of)
        for switch, planned in zip(fabric.switches, plan.switches, strict=True):
            if switch.nos == "sonic":
                texts[f"fabric{seed}-{switch.name}"] = _future(switch, planned, dynamic=seed % 4 < 2)
    assert len(texts) >= len(seeds)
    verdicts = judge(reference, folder, texts)
    assert [f"{name}: {line}" for name, line in verdicts.items() if not line.startswith("ok ")] == []


def _future(switch: Switch, planned: SwitchPlan, *, dynamic: bool) -> str:
    ports = [
        BasePort(port.name, port.speed_mbps, cable_m=port.cable_m or 5, lanes=port.lanes or 4) for port in switch.ports
    ]
    ports.append(BasePort("Ethernet1000"))  # not the intent's
    tables = sonic_base(ports, hostname=switch.name, hwsku=switch.hwsku or "ACS-MSN4700", dynamic=dynamic)
    tables.get("PFC_WD", {}).pop("Ethernet1000", None)  # its times may be shorter than the policy's polling: refused
    base = json.dumps(tables)
    change = design(planned, base)
    assert change.payload, f"{switch.name}: a stock switch needs a change"
    return catalog.get("sonic").apply(base, change.payload)
