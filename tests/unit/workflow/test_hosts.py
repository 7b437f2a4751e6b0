"""The documents of RUN/hosts: what is written is read, and nothing that a way back needs is overwritten."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from fabric.clock import FakeClock
from fabric.errors import DriftError, FabricError, HostError
from fabric.host.actions import PutFile, Run
from fabric.host.apply import apply_part, design_part
from fabric.host.change import HostIntent, Part, PartChange
from fabric.state import Outcome
from fabric.workflow.hosts import (
    changes_of,
    expect,
    failed_result,
    hosts_of,
    load_change,
    load_intent,
    load_intents,
    part_result,
    prepare_back,
    record_change,
    record_report,
    record_result,
    reports_of,
    results_of,
    task_result,
    write_intents,
)
from tests.unit.host.intents import HOST, TARGET, bare, parts
from tests.unit.host.right import report, site

CHANGE = PartChange(
    "host1",
    Part.NIC,
    (PutFile("/etc/a", "new"), Run(("true",))),
    (PutFile("/etc/a", "old"),),
    "+ a",
    cannot_restore=("b",),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "20261129-171122-provision"
    folder.mkdir()
    write_intents(folder, tuple(site().intents.values()))
    return folder


def test_intents_come_back_whole_and_a_strange_host_has_none(run: Path, tmp_path: Path) -> None:
    assert {one.host: one for one in load_intents(run)} == dict(site().intents)
    assert (hosts_of(run, "target"), hosts_of(run, "host")) == (("target1",), ("host1", "host2"))
    assert load_intent(run, "host1") == site().intents["host1"]
    assert load_intent(run, "elsewhere") is None
    assert load_intents(tmp_path) == ()
    with pytest.raises(FabricError, match="there is no"):
        load_intent(tmp_path, "host1")


def test_change_and_report_come_back_whole_and_belong_to_their_owner(run: Path) -> None:
    record_change(run, CHANGE, disruptive=False)
    told = report(site().intents["host1"])
    record_report(run, told)

    assert load_change(run, "host1", Part.NIC) == CHANGE
    assert load_change(run, "host1", Part.CONNECT) is None
    assert reports_of(run) == {"host1": told}
    files = list((run / "hosts").iterdir())
    assert {one.stat().st_mode & 0o777 for one in files} == {0o600}
    assert (run / "hosts").stat().st_mode & 0o777 == 0o700


def test_second_change_of_a_part_would_lose_the_way_back_and_is_refused(run: Path) -> None:
    record_change(run, CHANGE, disruptive=False)
    record_change(run, CHANGE, disruptive=False)
    with pytest.raises(HostError, match="its way back would be lost"):
        record_change(run, replace(CHANGE, diff="+ other"), disruptive=False)
    assert load_change(run, "host1", Part.NIC) == CHANGE


def test_change_that_interrupts_is_not_written_unless_allowed(run: Path) -> None:
    loud = replace(CHANGE, disruptive=("firmware reset",))
    with pytest.raises(HostError, match="firmware reset"):
        record_change(run, loud, disruptive=False)
    assert load_change(run, "host1", Part.NIC) is None
    record_change(run, loud, disruptive=True)
    assert load_change(run, "host1", Part.NIC) == loud


def test_change_is_held_to_what_was_reviewed(run: Path) -> None:
    expect(run, {"host1": {"nic": "+ a"}})
    record_change(run, CHANGE, disruptive=False)
    with pytest.raises(DriftError, match=r"needs other changes") as caught:
        record_change(run, replace(CHANGE, diff="+ a\n+ b"), disruptive=False)
    assert caught.value.found == "+ b"
    with pytest.raises(DriftError, match="has no change for the target part"):
        record_change(run, replace(CHANGE, part=Part.TARGET), disruptive=False)


@pytest.mark.parametrize("intent", [HOST, TARGET], ids=["host", "target"])
def test_plan_of_a_bare_host_can_be_applied_part_by_part(intent: HostIntent, run: Path) -> None:
    model = bare()
    mine = [replace(design_part(part, intent, model, new_uuid=str(uuid4())), host="host1") for part in parts(intent)]
    expect(run, {"host1": {one.part.value: one.diff for one in mine}})
    for part in parts(intent):
        drawn = str(uuid4())

        def design(part: Part = part, drawn: str = drawn) -> PartChange:
            return design_part(part, intent, model, new_uuid=drawn)

        change = design()
        record_change(run, replace(change, host="host1"), disruptive=False)
        apply_part(change, model, redesign=design, clock=FakeClock())
    assert all(design_part(part, intent, model, new_uuid="").is_empty for part in parts(intent))


def test_nothing_to_do_does_not_hide_what_the_run_did(run: Path) -> None:
    record_change(run, CHANGE, disruptive=False)
    record_result(run, Part.NIC, part_result(CHANGE, Outcome.COMMITTED))
    empty = PartChange("host1", Part.NIC, (), (), "")

    record_result(run, Part.NIC, part_result(empty, Outcome.UNCHANGED))

    assert results_of(run)["host1", Part.NIC].outcome is Outcome.COMMITTED
    assert changes_of(run) == (CHANGE,)


def test_run_that_was_killed_and_went_on_owns_what_it_changed(run: Path) -> None:
    record_change(run, CHANGE, disruptive=False)  # killed here; called again, the host needs nothing more
    record_result(run, Part.NIC, part_result(PartChange("host1", Part.NIC, (), (), ""), Outcome.UNCHANGED))

    assert results_of(run)["host1", Part.NIC].outcome is Outcome.COMMITTED
    assert changes_of(run) == (CHANGE,)


@pytest.mark.parametrize("outcome", [Outcome.ROLLED_BACK, Outcome.REFUSED, Outcome.FAILED, Outcome.UNCHANGED])
def test_part_that_did_not_stay_needs_no_way_back(run: Path, outcome: Outcome) -> None:
    record_result(run, Part.NIC, part_result(CHANGE, outcome))
    if outcome is not Outcome.UNCHANGED:
        record_change(run, CHANGE, disruptive=False)
    assert changes_of(run) == ()


def test_way_back_is_connections_then_hosts_then_targets(run: Path, tmp_path: Path) -> None:
    order = [
        ("host1", Part.CONNECT),
        ("host2", Part.CONNECT),
        ("host1", Part.NIC),
        ("target1", Part.TARGET),
        ("target1", Part.NIC),
    ]
    for host, part in reversed(order):
        record_change(run, replace(CHANGE, host=host, part=part), disruptive=False)
    back = tmp_path / "back"
    back.mkdir()

    names = prepare_back(run, back)

    assert [(one.host, one.part) for one in changes_of(run)] == order
    assert set(names) == {"host1", "host2", "target1"}
    assert changes_of(back) == changes_of(run)
    for one in changes_of(back):
        record_result(back, one.part, part_result(one, Outcome.COMMITTED))
    assert changes_of(back) == (), "what was taken back is not taken back again"
    assert changes_of(run) != ()


def test_task_says_what_ansible_wants_to_know() -> None:
    done = task_result(part_result(CHANGE, Outcome.COMMITTED))
    assert (done["changed"], done["failed"], done["diff"]) == (True, False, "+ a")
    would = task_result(part_result(CHANGE, Outcome.UNCHANGED))
    assert (would["changed"], would["failed"]) == (True, False)
    idle = task_result(part_result(PartChange("h", Part.NIC, (), (), ""), Outcome.UNCHANGED))
    assert (idle["changed"], idle["failed"]) == (False, False)
    bad = task_result(failed_result("h", HostError("it broke", remedy="Mend it.")))
    assert (bad["changed"], bad["failed"], bad["msg"]) == (False, True, "it broke. Mend it.")
