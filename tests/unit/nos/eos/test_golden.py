"""The circle on real syntax: running → remediation → intended → rollback → running. UPDATE_GOLDEN=1 writes the files."""

import os
from pathlib import Path

import pytest

from fabric.diff import changes, future
from fabric.nos.base import RenderContext
from fabric.nos.eos import EOS
from fabric.qos import DeviceQos
from tests.unit.nos.eos.devices import device, port

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "eos"
CASES: dict[str, tuple[DeviceQos, bool]] = {
    "stock_leaf": (device(port("Ethernet1"), port("Ethernet2")), True),
    "port_by_port": (device(port("Ethernet1"), port("Ethernet7"), name="leaf4"), False),
    "curve_in_place": (device(port("Ethernet1")), True),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_remediation_and_rollback_are_the_reviewed_ones(case: str) -> None:
    qos, adopt = CASES[case]
    running = _golden(case, "running")
    context = RenderContext(asic="trident3", running=EOS.tree(running), adopt=adopt)
    plan = changes(context.running, EOS.render(qos, context), EOS.rules, adopt=adopt)

    remediation = EOS.payload(plan.forward, context.running)
    rollback = EOS.payload(plan.backward, future(context.running, plan.forward))

    assert remediation == _golden(case, "remediation", found=remediation)
    assert rollback == _golden(case, "rollback", found=rollback)


@pytest.mark.parametrize("case", sorted(CASES))
def test_remediation_leads_to_the_intended_text_and_rollback_leads_back(case: str) -> None:
    running = _golden(case, "running")

    after = EOS.apply(running, _golden(case, "remediation"))
    back = EOS.apply(after, _golden(case, "rollback"))

    assert after == _golden(case, "intended", found=after)
    assert EOS.tree(back) == EOS.tree(running)


def test_device_wide_lines_are_held_back_and_named_with_the_ports_that_feel_them() -> None:
    qos, _ = CASES["port_by_port"]
    tree = EOS.tree(_golden("port_by_port", "running"))
    intended = EOS.render(qos, RenderContext(asic="trident3", running=tree))

    plan = changes(tree, intended, EOS.rules, outside_ports=EOS.outside_ports(tree, intended))

    assert {one.path[0] for one in plan.held_back} == {"qos map dscp"}
    assert plan.outside_ports == ("Ethernet2",)
    assert not any(one.path[0].startswith("qos map") for one in plan.forward)


def test_foreign_text_is_not_touched() -> None:
    after = _golden("port_by_port", "intended")

    assert "banner login\ninterface Ethernet1\nno priority-flow-control\nEOF\n" in after
    assert "   comment\n   moved here on a Friday\n   interface Ethernet2\n   EOF\n" in after
    assert "interface Ethernet2\n   description someone else's\n   service-profile VOICE\n" in after


def _golden(case: str, name: str, *, found: str | None = None) -> str:
    path = GOLDEN / case / f"{name}.cfg"
    if found is not None and os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(found)
    return path.read_text()
