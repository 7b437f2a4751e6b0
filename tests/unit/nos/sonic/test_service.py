"""What the generic config updater will refuse, sentence by sentence; tests/oracle/test_sonic_lab.py judges the same."""

import json

import pytest

from fabric.diff import Change, Op, changes
from fabric.nos import RenderContext
from fabric.nos.sonic import SONIC
from fabric.tree import Tree
from tests.oracle.sonic_base import BasePort, sonic_base
from tests.unit.nos.sonic.devices import device, port

ROW = {"action": "drop", "detection_time": "200", "restoration_time": "400"}


def _base(watchdog: dict[str, dict[str, str]] | None, *, hwsku: str = "ACS-MSN4700") -> Tree:
    tables = sonic_base([BasePort("Ethernet0"), BasePort("Ethernet4")], hwsku=hwsku, watchdog=False, dynamic=True)
    if watchdog is not None:
        tables["PFC_WD"] = watchdog
    return SONIC.tree(json.dumps(tables))


def _forward(running: Tree) -> tuple[Change, ...]:
    qos = device(port("Ethernet0"))
    context = RenderContext(running=running, adopt=True)
    return changes(running, SONIC.render(qos, context), SONIC.rules, adopt=True).forward


def _refusals(running: Tree, version: str) -> tuple[str, ...]:
    return SONIC.refusals(_forward(running), running, RenderContext(running=running, version=version))


GLOBAL = {"GLOBAL": {"POLL_INTERVAL": "100"}}


@pytest.mark.parametrize(
    ("watchdog", "hwsku", "version", "said"),
    [
        (GLOBAL, "ACS-MSN4700", "", ""),
        (GLOBAL, "ACS-MSN4700", "SONiC.20260531.22", ""),
        (GLOBAL, "ACS-MSN4700", "SONiC.20220531.22", "nothing of a WRED profile but the green"),
        (None, "ACS-MSN4700", "", "PFC_WD is not there yet"),
        ({"Ethernet4": ROW}, "ACS-MSN4700", "", "GLOBAL is not there yet"),
        (GLOBAL, "ACS-MSN4700", "SONiC.20191130.1", "from branch 20220500 on; this is 20191130"),
        (GLOBAL, "DellEMC-S5232f-C32", "", "does not list the HwSKU DellEMC-S5232f-C32"),
        (GLOBAL, "Arista-7800R3-48CQ2-C48", "", "no change of PFC_WD on jr2"),
    ],
)
def test_each_refusal_is_said_in_its_own_words(
    watchdog: dict[str, dict[str, str]] | None, hwsku: str, version: str, said: str
) -> None:
    found = _refusals(_base(watchdog, hwsku=hwsku), version)
    assert bool(found) is bool(said)
    assert any(said in one for one in found) is bool(said)


def test_the_last_row_of_the_poll_interval_may_not_go_alone() -> None:
    running = _base(GLOBAL | {"Ethernet0": ROW, "Ethernet4": ROW})
    without = running.with_changes({}, drop=[("PFC_WD", "GLOBAL", "POLL_INTERVAL")])
    back = _forward_to(running, without)
    assert SONIC.refusals(back, running, RenderContext(running=running)) == ("GCU never removes PFC_WD|GLOBAL",)


def test_the_table_may_go_as_a_whole() -> None:
    running = _base(GLOBAL | {"Ethernet0": ROW})
    gone = _forward_to(running, running.with_changes({}, drop=[path for path in running if path[0] == "PFC_WD"]))
    assert SONIC.refusals(gone, running, RenderContext(running=running)) == ()


def test_changes_beside_the_watchdog_are_taken_on_every_device() -> None:
    running = _base(GLOBAL | {"Ethernet0": ROW}, hwsku="Unlisted")
    beside = [one for one in _forward(running) if one.path[0] != "PFC_WD"]
    assert beside
    assert SONIC.refusals(beside, running, RenderContext(running=running)) == ()


def _forward_to(running: Tree, wanted: Tree) -> tuple[Change, ...]:
    return tuple(one.inverse for one in _added(wanted, running))


def _added(old: Tree, new: Tree) -> list[Change]:
    return [Change(Op.ADD, path, after=value) for path, value in new.items() if path not in old]
