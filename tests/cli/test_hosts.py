"""`fabricctl hosts`, and hosts in the verbs of the whole fabric: exit codes, JSON, words."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fabric.cli import app as app_module
from fabric.cli import hosts as hosts_module
from fabric.cli.app import app
from fabric.cli.console import Printer
from fabric.host.change import Part
from fabric.observe import Event
from tests.unit.intent.inventories import small
from tests.unit.workflow.hostfleet import Fleet, direct, environment, serve_inventory

RUNNER = CliRunner()


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fleet:
    made = Fleet()
    serve_inventory(monkeypatch, direct())
    for module in (app_module, hosts_module):
        monkeypatch.setattr(module, "environment_of", lambda _: environment(made, tmp_path))
    return made


@pytest.fixture
def typed(tmp_path: Path) -> list[str]:
    return ["-i", str(tmp_path / "site.yml"), "--runs", str(tmp_path / "runs"), "-q"]


def invoke(*argv: str) -> Result:
    return RUNNER.invoke(app, [*argv])


def test_hosts_plan_apply_and_plan_again(fleet: Fleet, typed: list[str]) -> None:
    planned = invoke("hosts", "plan", *typed, "--detailed-exitcode")
    assert planned.exit_code == 10, planned.output
    assert "gpu1         linux  2 changes" in planned.output
    assert "+ connect of gpu1" in planned.output
    done = invoke("hosts", "apply", *typed)
    assert done.exit_code == 0, done.output
    assert "hosts apply fabric: OK — 2 committed" in done.output
    again = invoke("hosts", "plan", *typed, "--detailed-exitcode")
    assert again.exit_code == 0, again.output
    assert "nothing to do" in again.output
    assert fleet.calls[-1] == "connect.yml? gpu1"


def test_hosts_connect_and_disconnect(fleet: Fleet, typed: list[str]) -> None:
    assert invoke("hosts", "connect", *typed).exit_code == 0
    assert ("gpu1", Part.CONNECT) in fleet.done
    assert invoke("hosts", "disconnect", *typed).exit_code == 0
    assert fleet.done == set()


def test_hosts_status_shows_nics_connections_and_what_is_published(fleet: Fleet, typed: list[str]) -> None:
    shown = invoke("hosts", "status", *typed)
    assert shown.exit_code == 0, shown.output
    assert "    ens1: MTU 9000, rdma0/1 ACTIVE, PMTU 4096, default ToS 104, PFC 3\n" in shown.output
    assert "nvme0: live, 192.0.2.1 → 192.0.2.2, UNKNOWN I/O queues, defined ToS 104" in shown.output
    assert "target port 192.0.2.2:4420 (rdma)" in shown.output
    assert "namespaces 1 /dev/nvme0n1" in shown.output
    document = json.loads(invoke("hosts", "status", *typed, "--json").stdout)
    assert [one["host"] for one in document["reports"]] == ["gpu1", "kv1"]
    assert document["summary"]["verdict"] == "ok"
    fleet.dead = {"gpu1"}
    assert invoke("hosts", "status", *typed).exit_code == 4


def test_host_that_fails_is_exit_4_and_refused_ones_are_1(fleet: Fleet, typed: list[str]) -> None:
    fleet.disruptive = ("firmware reset",)
    refused = invoke("hosts", "apply", *typed)
    assert refused.exit_code == 1, refused.output
    assert "firmware reset" in refused.output
    fleet.refusing = {("gpu1", Part.NIC)}
    failed = invoke("hosts", "apply", *typed, "--disruptive")
    assert failed.exit_code == 4, failed.output
    assert "rolled-back" in failed.output


def test_the_whole_fabric_takes_hosts_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, fleet: Fleet, typed: list[str], tmp_path: Path
) -> None:
    done = invoke("provision", *typed)
    assert done.exit_code == 0, done.output
    run = next((tmp_path / "runs").glob("*-provision"))
    assert invoke("check", *typed, "--live").exit_code == 0
    back = invoke("rollback", str(run), *typed, "-e", "ansible_user=admin")  # what logging in took there, it takes here
    assert back.exit_code == 0, back.output
    assert fleet.given[-1]["ansible_user"] == "admin"
    assert fleet.done == set()
    calls = list(fleet.calls)
    alone = invoke("provision", *typed, "--switches-only")
    assert alone.exit_code == 3, "a fabric without switches has nothing left"
    serve_inventory(monkeypatch, small())
    assert invoke("plan", *typed, "--switches-only").exit_code == 4  # its switch cannot be reached
    assert fleet.calls == calls


def test_progress_tells_what_is_done_on_hosts_and_not_what_ansible_does_around_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show = Printer().progress
    show(Event("ansible.task.done", "gpu1", "Bring the NICs to the plan", {"action": "fabricctl_host"}))
    show(Event("ansible.task.done", "gpu1", "Keep the path", {"action": "ansible.builtin.set_fact"}))
    show(Event("ansible.task.done", "gpu2", "Skipped", {"action": "fabricctl_host", "skipped": True}))
    show(Event("ansible.task.started", "", "Begin"))
    show(Event("ansible.task.failed", "gpu3", "no route to host"))
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "  gpu1: ansible.task.done — Bring the NICs to the plan",
        "  gpu3: ansible.task.failed — no route to host",
    ]
