"""Hosts in the verbs: the order, who is left alone and why, what is told, and the way back."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabric.cli.exits import Exit, exit_of_verdict
from fabric.errors import EnvironmentMissingError, FabricError, PlanError
from fabric.host.change import Part
from fabric.state import Outcome, Status
from fabric.workflow import (
    PlanDocument,
    Request,
    Summary,
    Verdict,
    check,
    plan,
    provision,
    read_document,
    rollback,
    write_document,
)
from fabric.workflow.concluding import conclude
from fabric.workflow.hosts import changes_of, load_intents, results_of
from tests.unit.intent.inventories import small
from tests.unit.workflow.hostfleet import Fleet, direct, environment, request_for, serve_inventory

ALL = {("kv1", Part.NIC), ("kv1", Part.TARGET), ("gpu1", Part.NIC), ("gpu1", Part.CONNECT)}
FORWARD = ["targets.yml kv1", "hosts.yml gpu1", "connect.yml gpu1"]


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    serve_inventory(monkeypatch, direct())
    return Fleet()


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    return request_for(tmp_path)


def ends(summary: Summary) -> dict[str, Outcome]:
    return {one.device: one.outcome for one in summary.devices}


def parts(summary: Summary) -> dict[tuple[str, Part], Outcome]:
    return {key: one.outcome for key, one in results_of(Path(summary.run_folder)).items()}


def test_targets_come_before_hosts_and_connections_last_and_then_all_is_read(
    fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    done = provision(request_, environment(fleet, tmp_path))

    assert fleet.calls == [*FORWARD, "status.yml gpu1,kv1"]
    assert fleet.done == ALL
    assert ends(done) == {"gpu1": Outcome.COMMITTED, "kv1": Outcome.COMMITTED}
    assert done.changed
    assert (done.roles, done.contacted) == ({"gpu1": "host", "kv1": "target"}, ("gpu1", "kv1"))
    assert {"targets", "hosts", "connect", "read hosts", "check hosts"} <= {one.stage for one in done.timings}
    assert not [one for one in done.findings if one.status is Status.FAIL]
    assert {one.where.device for one in done.findings} == {"gpu1", "kv1"}
    assert done.verdict is Verdict.OK
    assert all(Path(str(one["run"])) == Path(done.run_folder) for one in fleet.given)
    assert fleet.forks == request_.workers


def test_second_run_changes_nothing_and_has_no_diff(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    provision(request_, environment(fleet, tmp_path))

    again = provision(request_, environment(fleet, tmp_path))

    assert ends(again) == {"gpu1": Outcome.UNCHANGED, "kv1": Outcome.UNCHANGED}
    assert [one.diff for one in again.devices] == ["", ""]
    assert not again.changed
    assert again.verdict is Verdict.OK
    with pytest.raises(FabricError, match="committed nothing"):
        rollback(Path(again.run_folder), request_, environment(fleet, tmp_path))


def test_switch_that_fails_leaves_every_host_untouched_and_says_so(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    serve_inventory(monkeypatch, small())

    done = provision(request_, environment(fleet, tmp_path))

    assert fleet.calls == []
    assert ends(done) == {"leaf1": Outcome.FAILED, "gpu1": Outcome.REFUSED, "kv1": Outcome.REFUSED}
    assert "leaf1 failed" in next(one.error for one in done.devices if one.device == "gpu1")
    assert done.contacted == ()
    assert exit_of_verdict(done.verdict) is Exit.DEVICE


def test_host_that_takes_a_part_back_leaves_the_others_alone(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    fleet.refusing = {("gpu1", Part.NIC)}

    done = provision(request_, environment(fleet, tmp_path))

    assert fleet.calls == [*FORWARD[:2], "status.yml gpu1,kv1"], "no connection is tried on a host that failed"
    assert parts(done) == {
        ("gpu1", Part.NIC): Outcome.ROLLED_BACK,
        ("gpu1", Part.CONNECT): Outcome.REFUSED,
        ("kv1", Part.NIC): Outcome.COMMITTED,
        ("kv1", Part.TARGET): Outcome.COMMITTED,
    }
    assert ends(done) == {"gpu1": Outcome.ROLLED_BACK, "kv1": Outcome.COMMITTED}
    assert exit_of_verdict(done.verdict) is Exit.DEVICE


def test_part_that_stays_is_named_beside_the_one_that_failed(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    fleet.refusing = {("gpu1", Part.CONNECT)}

    done = provision(request_, environment(fleet, tmp_path))

    gpu1 = next(one for one in done.devices if one.device == "gpu1")
    assert gpu1.outcome is Outcome.ROLLED_BACK
    assert gpu1.error == "connect: the connect part was refused; committed, and stays: nic"
    assert gpu1.diff == "@@ nic @@\n+ nic of gpu1\n@@ connect @@\n+ connect of gpu1"
    assert gpu1.changes == 2


def test_host_without_a_connection_has_ansibles_reason(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    fleet.dead = {"kv1"}

    done = provision(request_, environment(fleet, tmp_path))

    kv1 = next(one for one in done.devices if one.device == "kv1")
    assert (kv1.outcome, kv1.error) == (Outcome.FAILED, "no route to host")
    assert [one.evidence for one in done.findings if one.rule == "host-read"] == [
        "no rule could be asked: no route to host"
    ]


def test_playbook_that_cannot_be_run_fails_each_host_with_the_reason(
    fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    fleet.error = EnvironmentMissingError("ansible-runner is not installed for this Python")

    done = provision(request_, environment(fleet, tmp_path))

    assert ends(done) == {"gpu1": Outcome.FAILED, "kv1": Outcome.FAILED}
    assert all("ansible-runner is not installed" in one.error for one in done.devices)


def test_ctrl_c_refuses_what_was_not_begun(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    fleet.status = "canceled"

    done = provision(request_, environment(fleet, tmp_path))

    assert ends(done) == {"gpu1": Outcome.REFUSED, "kv1": Outcome.REFUSED}
    assert "stopped before this host's turn" in next(one.error for one in done.devices if one.device == "gpu1")
    assert [one.split()[0] for one in fleet.calls] == ["targets.yml", "status.yml"]  # none that changes anything


def test_host_that_was_lost_while_it_was_changed_is_uncertain_and_can_be_taken_back(
    fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    fleet.killed = {("kv1", Part.TARGET)}

    done = provision(request_, environment(fleet, tmp_path))

    assert parts(done)["kv1", Part.TARGET] is Outcome.UNCERTAIN
    assert [(one.host, one.part) for one in changes_of(Path(done.run_folder))] == [
        ("gpu1", Part.CONNECT),
        ("gpu1", Part.NIC),
        ("kv1", Part.TARGET),
        ("kv1", Part.NIC),
    ]


def test_change_that_interrupts_traffic_needs_to_be_allowed(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    fleet.disruptive = ("the link goes down",)

    refused = provision(request_, environment(fleet, tmp_path))

    assert parts(refused)["kv1", Part.NIC] is Outcome.REFUSED
    assert "the link goes down" in next(one.error for one in refused.devices if one.device == "kv1")
    assert exit_of_verdict(refused.verdict) is Exit.FINDINGS
    assert fleet.done == set()
    allowed = provision(replace(request_, disruptive=True), environment(fleet, tmp_path))
    assert ends(allowed) == {"gpu1": Outcome.COMMITTED, "kv1": Outcome.COMMITTED}
    assert {(device, note.code) for device, note in allowed.notes} >= {("kv1", "interrupts-traffic")}


def test_hosts_that_are_not_managed_are_planned_for_and_never_named(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    devices = direct()
    devices["gpu1"][1]["fabric_managed"] = False
    serve_inventory(monkeypatch, devices)

    done = provision(request_, environment(fleet, tmp_path))

    assert fleet.calls == ["targets.yml kv1", "status.yml kv1"]
    assert [note.text for _, note in done.notes if note.code == "not-managed"] == [
        "not contacted, since fabric_managed is false there: gpu1"
    ]
    devices["kv1"][1]["fabric_managed"] = False
    serve_inventory(monkeypatch, devices)
    with pytest.raises(PlanError, match="no switch and no managed host"):
        provision(request_, environment(fleet, tmp_path))


def test_limit_reaches_hosts_as_it_does_switches(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    serve_inventory(monkeypatch, small(), selected=["gpu1"])

    done = provision(request_, environment(fleet, tmp_path))

    assert fleet.calls == ["hosts.yml gpu1", "connect.yml gpu1", "status.yml gpu1"]
    assert ends(done) == {"gpu1": Outcome.COMMITTED}


def test_switches_only_contacts_no_host(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    serve_inventory(monkeypatch, small())

    done = provision(replace(request_, hosts=False), environment(fleet, tmp_path))

    assert ends(done) == {"leaf1": Outcome.FAILED}
    assert fleet.calls == []
    serve_inventory(monkeypatch, small(), selected=["gpu1"])
    with pytest.raises(PlanError, match="no switch is left"):
        provision(replace(request_, hosts=False), environment(fleet, tmp_path))


def test_plan_shows_what_hosts_would_need_and_changes_nothing(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    summary, document = plan(request_, environment(fleet, tmp_path))

    assert fleet.calls == ["targets.yml? kv1", "hosts.yml? gpu1", "connect.yml? gpu1"]
    assert fleet.done == set()
    assert summary.changed
    assert ends(summary) == {"gpu1": Outcome.UNCHANGED, "kv1": Outcome.UNCHANGED}
    assert [(one.host, one.part, one.diff) for one in document.hosts or ()] == [
        ("gpu1", Part.NIC, "+ nic of gpu1"),
        ("gpu1", Part.CONNECT, "+ connect of gpu1"),
        ("kv1", Part.NIC, "+ nic of kv1"),
        ("kv1", Part.TARGET, "+ target of kv1"),
    ]
    assert changes_of(Path(summary.run_folder)) == ()
    assert read_document(Path(summary.run_folder) / "plan.json", PlanDocument) == document


def test_saved_plan_is_applied_as_it_was_reviewed_or_refused(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    _, saved = plan(request_, environment(fleet, tmp_path))
    fleet.drift = " and more"

    dry = provision(replace(request_, dry_run=True), environment(fleet, tmp_path), saved=saved)
    late = provision(request_, environment(fleet, tmp_path), saved=saved)

    for summary in (dry, late):
        assert set(ends(summary).values()) == {Outcome.REFUSED}
        assert "needs other changes than the saved plan" in summary.devices[0].error
    assert fleet.done == set()
    fleet.drift = ""
    assert set(ends(provision(request_, environment(fleet, tmp_path), saved=saved)).values()) == {Outcome.COMMITTED}


def test_saved_plan_without_hosts_leaves_them_alone(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    serve_inventory(monkeypatch, small())
    _, saved = plan(replace(request_, hosts=False), environment(fleet, tmp_path))

    provision(request_, environment(fleet, tmp_path), saved=saved)

    assert saved.hosts is None
    assert fleet.calls == []


def test_dry_run_asks_hosts_in_check_mode(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    rehearsed = provision(replace(request_, dry_run=True), environment(fleet, tmp_path))

    assert fleet.calls == ["targets.yml? kv1", "hosts.yml? gpu1", "connect.yml? gpu1"]
    assert [one.changes for one in rehearsed.devices] == [2, 2]


def test_live_check_reads_hosts_and_fails_for_one_that_says_nothing(
    fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    good = check(request_, environment(fleet, tmp_path), live=True)
    fleet.dead = {"gpu1"}
    bad = check(request_, environment(fleet, tmp_path), live=True)

    assert fleet.calls == ["status.yml gpu1,kv1"] * 2
    assert (good.verdict, good.contacted, good.devices) == (Verdict.OK, ("gpu1", "kv1"), ())
    assert ends(bad) == {"gpu1": Outcome.FAILED}
    assert [one.where.device for one in bad.findings if one.rule == "host-read"] == ["gpu1"]
    assert check(request_, environment(fleet, tmp_path)).contacted == ()


def test_rollback_starts_at_the_hosts_and_may_be_repeated(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    done = provision(request_, environment(fleet, tmp_path))
    run = Path(done.run_folder)
    fleet.calls.clear()

    back = rollback(run, request_, environment(fleet, tmp_path))

    assert fleet.calls == ["back.yml gpu1,kv1"]
    assert fleet.done == set()
    assert ends(back) == {"gpu1": Outcome.COMMITTED, "kv1": Outcome.COMMITTED}
    assert (back.verdict, back.changed) == (Verdict.OK, True)
    again = rollback(run, request_, environment(fleet, tmp_path))
    assert again.verdict is Verdict.OK
    with pytest.raises(FabricError, match="committed nothing"):
        rollback(Path(back.run_folder), request_, environment(fleet, tmp_path))


def test_host_that_cannot_be_taken_back_is_told_and_tried_again(
    fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    run = Path(provision(request_, environment(fleet, tmp_path)).run_folder)
    fleet.dead, fleet.stubborn = {"gpu1"}, {("kv1", Part.TARGET)}

    back = rollback(run, request_, environment(fleet, tmp_path))

    assert ends(back) == {"gpu1": Outcome.ROLLBACK_FAILED, "kv1": Outcome.ROLLBACK_FAILED}
    assert exit_of_verdict(back.verdict) is Exit.DEVICE
    assert fleet.done == ALL
    fleet.dead, fleet.stubborn = set(), set()
    assert rollback(Path(back.run_folder), request_, environment(fleet, tmp_path)).verdict is Verdict.OK
    assert fleet.done == set()


def test_killed_run_is_taken_back_from_what_was_written_before(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    run = Path(provision(request_, environment(fleet, tmp_path)).run_folder)
    (run / "push.json").unlink()
    for result in (run / "hosts").glob("*-result.json"):
        result.unlink()

    assert rollback(run, request_, environment(fleet, tmp_path)).verdict is Verdict.OK
    assert fleet.done == set()


def test_rollback_leaves_hosts_that_are_no_longer_managed(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    run = Path(provision(request_, environment(fleet, tmp_path)).run_folder)
    devices = direct()
    devices["gpu1"][1]["fabric_managed"] = False
    serve_inventory(monkeypatch, devices)

    back = rollback(run, request_, environment(fleet, tmp_path))

    assert ends(back) == {"gpu1": Outcome.REFUSED, "kv1": Outcome.COMMITTED}
    assert {host for host, _ in fleet.done} == {"gpu1"}


def test_how_a_host_connects_is_what_its_inventory_says(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    devices = direct()
    devices["gpu1"][1]["fabric_connect_policy"] = {"io_queues": 2, "keep_alive": 30}
    serve_inventory(monkeypatch, devices)

    run = Path(provision(request_, environment(fleet, tmp_path)).run_folder)

    (connection,) = load_intents(run)[0].connections
    policy = connection.policy
    assert (policy.nr_io_queues, policy.keep_alive_s, policy.queue_size) == (2, 30, 128)


def test_run_folder_names_the_intents_of_managed_hosts_alone(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    devices = direct()
    devices["gpu1"][1]["fabric_managed"] = False
    serve_inventory(monkeypatch, devices)

    done = provision(request_, environment(fleet, tmp_path))

    assert [one.host for one in load_intents(Path(done.run_folder))] == ["kv1"]


def test_run_of_single_tasks_is_concluded_from_its_folder(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    done = provision(request_, environment(fleet, tmp_path))
    run = Path(done.run_folder)
    bare = replace(done, devices=(), findings=(), contacted=(), changed=False)  # what the task on switches leaves
    write_document(run / "summary.json", bare)

    whole = conclude(run, request_, environment(fleet, tmp_path))

    assert ends(whole) == ends(done)
    assert (whole.contacted, whole.changed, whole.verdict) == (done.contacted, True, Verdict.OK)
    assert whole.findings == done.findings
    assert conclude(run, request_, environment(fleet, tmp_path)).devices == whole.devices
