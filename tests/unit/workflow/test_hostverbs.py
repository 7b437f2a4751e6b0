"""The verbs on hosts alone: they contact no switch, and what they did can be taken back."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabric.errors import PlanError
from fabric.host.change import Part
from fabric.state import Outcome
from fabric.workflow import (
    Request,
    Verdict,
    apply_hosts,
    connect_hosts,
    disconnect_hosts,
    hosts_status,
    plan_hosts,
    rollback,
    sources_of_run,
)
from tests.unit.intent.inventories import small
from tests.unit.workflow.hostfleet import Fleet, environment, request_for, serve_inventory


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    serve_inventory(monkeypatch, small())  # its switch cannot be reached: a verb that contacted it would fail
    return Fleet()


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    return request_for(tmp_path)


def test_apply_sets_up_everything_and_its_run_can_be_taken_back(
    fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    planned = plan_hosts(request_, environment(fleet, tmp_path))
    done = apply_hosts(request_, environment(fleet, tmp_path))
    run = Path(done.run_folder)

    assert fleet.calls == [
        *("targets.yml? kv1", "hosts.yml? gpu1", "connect.yml? gpu1"),
        *("targets.yml kv1", "hosts.yml gpu1", "connect.yml gpu1", "status.yml gpu1,kv1"),
    ]
    assert (planned.changed, planned.verdict, done.changed, done.verdict) == (True, Verdict.OK, True, Verdict.OK)
    assert run.name.endswith("-hosts-apply")
    assert sources_of_run(run) == request_.sources
    assert not plan_hosts(request_, environment(fleet, tmp_path)).changed
    assert rollback(run, request_, environment(fleet, tmp_path)).verdict is Verdict.OK
    assert fleet.done == set()


def test_plan_tells_what_has_no_way_back_before_anything_is_done(
    fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    fleet.disruptive, fleet.cannot_restore = ("the link stops",), ("ens1 cnp-dscp",)
    fleet.unconfirmed = ("nobody saw it",)
    planned = plan_hosts(request_, environment(fleet, tmp_path))
    assert {("gpu1", note.code, note.text) for host, note in planned.notes if host == "gpu1"} >= {
        ("gpu1", "interrupts-traffic", "nic: the link stops"),
        ("gpu1", "cannot-be-restored", "nic: ens1 cnp-dscp"),
        ("gpu1", "unconfirmed-fact", "nic: nobody saw it"),
    }
    done = apply_hosts(replace(request_, disruptive=True), environment(fleet, tmp_path))
    assert [one for one in done.notes if one[0]] == [one for one in planned.notes if one[0]]


def test_connect_and_disconnect_touch_connections_alone(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    connected = connect_hosts(request_, environment(fleet, tmp_path))
    assert fleet.done == {("gpu1", Part.CONNECT)}

    gone = disconnect_hosts(request_, environment(fleet, tmp_path))

    assert fleet.calls == ["connect.yml gpu1", "status.yml gpu1,kv1", "disconnect.yml gpu1"]
    assert fleet.done == set()
    assert [one.outcome for one in (*connected.devices, *gone.devices)] == [Outcome.COMMITTED] * 2


def test_status_reads_and_judges(fleet: Fleet, request_: Request, tmp_path: Path) -> None:
    found = hosts_status(request_, environment(fleet, tmp_path))
    assert [one.host for one in found.reports] == ["gpu1", "kv1"]
    assert found.summary.verdict is Verdict.OK
    fleet.dead = {"kv1"}
    assert hosts_status(request_, environment(fleet, tmp_path)).summary.verdict is Verdict.FAILED
    assert {call.split()[0] for call in fleet.calls} == {"status.yml"}


def test_without_a_managed_host_there_is_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, request_: Request, tmp_path: Path
) -> None:
    serve_inventory(monkeypatch, small(), selected=["leaf1"])
    with pytest.raises(PlanError, match="no managed host"):
        apply_hosts(request_, environment(fleet, tmp_path))
    serve_inventory(monkeypatch, small(), selected=["kv1"])
    for verb in (connect_hosts, disconnect_hosts):
        with pytest.raises(PlanError, match="no managed host is left"):
            verb(request_, environment(fleet, tmp_path))
    assert fleet.calls == []
