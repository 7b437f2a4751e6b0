"""Import is the inverse of provision, and writing that of loading, for fabrics that the generator draws.

Each takes a second or so, and hypothesis' profiles draw too many of them: FABRIC_IMPORTS says how many seeds (4).
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from fabric.intent import Fabric, load
from fabric.intent.model import Host, NvmeTarget, RocePolicy, Switch
from fabric.intent.writing import write
from fabric.plan import make_plan
from fabric.units import natural_key
from fabric.workflow.design import design
from fabric.workflow.importing import import_texts
from fabric.workflow.subjects import capabilities_of
from tests.strategies.fabrics import generate
from tests.strategies.provisioned import cables_of, provisioned

D = TypeVar("D", Switch, Host, NvmeTarget)
SEEDS = range(int(os.environ.get("FABRIC_IMPORTS", "4")))
FAMILIES = ("mlx5", "bnxt_re", "irdma", "rxe", "generic")


@pytest.mark.parametrize("seed", SEEDS)
def test_written_inventory_is_read_as_the_same_fabric(seed: int, tmp_path: Path) -> None:
    fabric = in_natural_order(generate(seed, defaults_only=False))
    for path, text in write(fabric).items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert load([tmp_path]).fabric == fabric


def in_natural_order(fabric: Fabric) -> Fabric:
    """Returns the fabric as every loader gives it: the generator draws NIC families and links in any order."""
    return replace(
        fabric,
        switches=tuple(with_families(one) for one in fabric.switches),
        hosts=tuple(with_families(one) for one in fabric.hosts),
        targets=tuple(with_families(one) for one in fabric.targets),
        links=tuple(sorted(fabric.links, key=lambda one: (natural_key(str(one.a)), natural_key(str(one.b))))),
    )


def with_families(device: D) -> D:
    policy: RocePolicy = device.policy
    nics = tuple(sorted(policy.nics, key=lambda nic: FAMILIES.index(nic.family)))
    return replace(device, policy=replace(policy, nics=nics))


@pytest.mark.parametrize("seed", SEEDS)
def test_import_of_a_provisioned_fabric_is_an_empty_diff(seed: int) -> None:
    fabric = generate(seed, defaults_only=False)
    configs = provisioned(fabric, dynamic=bool(seed % 2))

    imported = import_texts(configs, cabling=cables_of(fabric))

    assert not imported.failed
    plan = make_plan(imported.fabric, capabilities_of)
    for name, config in configs.items():
        one = plan.switch(name)
        assert one is not None
        assert design(one, config.text).changes.empty, name


@pytest.mark.parametrize("seed", SEEDS)
def test_import_finds_the_policy_that_was_provisioned_and_keeps_nothing(seed: int) -> None:
    fabric = generate(seed, defaults_only=True)
    configs = provisioned(fabric, dynamic=bool(seed % 2))

    imported = import_texts(configs, cabling=cables_of(fabric))

    assert [one for one in imported.unexpressed if one.keep] == []
    for switch in imported.fabric.switches:
        before = fabric.switch(switch.name)
        assert before is not None
        assert (switch.policy.data_dscps, switch.policy.data_priority) == (
            before.policy.data_dscps,
            before.policy.data_priority,
        )
        assert {port.name: port.cable_m for port in switch.ports} == {port.name: port.cable_m for port in before.ports}
    between = {frozenset((one.a, one.b)) for one in fabric.links if fabric.switch(one.b.device) is not None}
    assert {frozenset((one.a, one.b)) for one in imported.fabric.links} == between
