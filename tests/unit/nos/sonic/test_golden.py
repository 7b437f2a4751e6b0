"""The circle on real syntax: running → remediation → intended → rollback → running. UPDATE_GOLDEN=1 writes the files.

`running.json` of a case is written by hand or by `tests.oracle.sonic_base`, once; the other three are compared.
"""

import json
import os
from pathlib import Path

import pytest

from fabric.diff import changes, future
from fabric.nos.base import RenderContext
from fabric.nos.sonic import SONIC
from fabric.qos import DeviceQos
from tests.unit.nos.sonic.devices import device, port

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "sonic"
CASES: dict[str, tuple[DeviceQos, str]] = {
    "stock_port_by_port": (device(port("Ethernet0"), port("Ethernet4", cable_m=40)), "SONiC.20260615.01"),
    "stock_old_branch": (device(port("Ethernet0"), port("Ethernet8", speed_mbps=25_000)), "SONiC.20240531.08"),
    "bare_dynamic": (device(port("Ethernet0")), ""),
    "joined_keys": (device(port("Ethernet0")), "SONiC.20260615.01"),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_remediation_and_rollback_are_the_reviewed_ones(case: str) -> None:
    qos, version = CASES[case]
    running = SONIC.tree(_golden(case, "running"))
    intended = SONIC.render(qos, RenderContext(version=version, running=running))
    plan = changes(running, intended, SONIC.rules)

    remediation = SONIC.payload(plan.forward, running)
    rollback = SONIC.payload(plan.backward, future(running, plan.forward))

    assert remediation == _golden(case, "remediation", found=remediation)
    assert rollback == _golden(case, "rollback", found=rollback)


@pytest.mark.parametrize("case", sorted(CASES))
def test_remediation_leads_to_the_intended_text_and_rollback_leads_back(case: str) -> None:
    running = _golden(case, "running")

    after = SONIC.apply(running, _golden(case, "remediation"))
    back = SONIC.apply(after, _golden(case, "rollback"))

    assert after == _golden(case, "intended", found=after)
    assert json.loads(back) == json.loads(running)


def test_stock_objects_are_not_touched() -> None:
    touched = {operation["path"] for operation in json.loads(_golden("stock_port_by_port", "remediation"))}
    assert not [path for path in touched if "AZURE" in path and not path.startswith("/CABLE_LENGTH/")]
    assert not [path for path in touched if "Ethernet8" in path]


def _golden(case: str, name: str, *, found: str = "") -> str:
    path = GOLDEN / case / f"{name}.json"
    if found and os.environ.get("UPDATE_GOLDEN"):
        path.write_text(found)
    return path.read_text()
