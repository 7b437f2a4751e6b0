"""The playbooks of hosts on this machine, over Ansible's local connection: the NIC that they ask for is not there.

So everything is read and nothing can be changed: each design refuses before a step is made.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from fabric.host.change import Part
from fabric.state import Outcome
from fabric.workflow.hosts import hosts_of, reports_of, results_of
from tests.strategies.site import write_site

ROOT = Path(__file__).resolve().parent.parent.parent
PLAYBOOKS = ROOT / "playbooks"
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
NETDEV = "fabtest0"


class Local:
    """A site whose hosts are this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inventory = write_site(folder)
        text = self.inventory.read_text(encoding="utf-8").replace("ens1", NETDEV).replace("family: mlx5", "family: rxe")
        text = text.replace("{fabric_managed: false}", "{ansible_connection: local}")
        self.inventory.write_text(text, encoding="utf-8")

    def play(self, playbook: Path, *args: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        environment = {
            **os.environ,
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "FABRICCTL_STATE": str(self.folder / "state"),
            "PYTHONPATH": str(ROOT),
            **(env or {}),
        }
        argv = [str(ANSIBLE), str(playbook), "-i", str(self.inventory), *args]
        done = subprocess.run(argv, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    @property
    def run(self) -> Path:
        """Returns the one run folder."""
        (only,) = (self.folder / "runs").iterdir()
        return only


@pytest.fixture
def local(tmp_path: Path) -> Local:
    return Local(tmp_path)


def test_status_reads_and_shows_what_could_not_be_read(local: Local) -> None:
    code, printed = local.play(PLAYBOOKS / "status.yml")
    assert code == 0, printed
    assert f"{NETDEV}: MTU not read" in printed
    assert set(reports_of(local.run)) == {"gpu1", "gpu2"}
    assert "failed=1" not in printed


def test_a_nic_that_is_not_there_is_told_and_nothing_is_begun(local: Local) -> None:
    code, printed = local.play(PLAYBOOKS / "hosts.yml", "--check", "--diff", "--limit", "gpu1")
    assert code == 2
    assert "no such netdev" in printed
    assert NETDEV in printed
    assert "Traceback" not in printed
    assert {key: one.outcome for key, one in results_of(local.run).items()} == {("gpu1", Part.NIC): Outcome.FAILED}
    assert not (local.run / "hosts" / "gpu1-nic.json").exists()


def test_provision_of_hosts_alone_stops_a_host_at_its_first_failure_and_concludes(local: Local) -> None:
    code, printed = local.play(PLAYBOOKS / "provision.yml", "--limit", "gpu1,localhost")
    assert code == 2
    assert "no switch is in the limit" not in printed  # a message of a task that went well
    assert "Judge the run" in printed
    assert list(results_of(local.run)) == [("gpu1", Part.NIC)]
    summary = json.loads((local.run / "summary.json").read_text(encoding="utf-8"))["data"]
    assert [(one["device"], one["outcome"]) for one in summary["devices"]] == [("gpu1", "failed")]


def test_check_live_reads_hosts_by_the_play_and_judges_them(local: Local) -> None:
    code, printed = local.play(PLAYBOOKS / "check.yml", "-e", "live=true", "--limit", "gpu1")
    assert code == 2, printed  # nothing could be read: UNKNOWN is no pass
    (checked,) = (local.folder / "runs").glob("*-check")
    assert set(reports_of(checked)) == {"gpu1"}
    report = json.loads((checked / "report.json").read_text(encoding="utf-8"))
    assert "gpu1" in json.dumps(report)


OWN = """
- hosts: hosts
  gather_facts: false
  serial: 1
  roles:
    - role: nvme_connect
"""


def test_a_role_alone_in_somebodys_playbook_makes_one_run_for_all_batches(local: Local) -> None:
    (local.folder / "own.yml").write_text(OWN, encoding="utf-8")
    lines = [f"roles_path = {PLAYBOOKS}/roles", f"action_plugins = {PLAYBOOKS}/action_plugins"]
    (local.folder / "ansible.cfg").write_text("\n".join(["[defaults]", *lines]), encoding="utf-8")
    code, printed = local.play(local.folder / "own.yml", "--check")
    assert code == 0, printed
    assert hosts_of(local.run) == ("gpu1", "gpu2")
    assert set(results_of(local.run)) == {("gpu1", Part.CONNECT), ("gpu2", Part.CONNECT)}


def test_a_wrong_type_of_a_roles_variable_is_refused(local: Local) -> None:
    code, printed = local.play(PLAYBOOKS / "connect.yml", "--check", "-e", "nvme_connect_state=conected")
    assert code == 2
    assert "connected, disconnected" in printed


def test_an_unmanaged_host_is_skipped_and_not_contacted(local: Local) -> None:
    text = local.inventory.read_text(encoding="utf-8")
    unreachable = "{fabric_managed: false, ansible_host: 127.0.0.1, ansible_port: 1}"
    local.inventory.write_text(text.replace("{ansible_connection: local}", unreachable), encoding="utf-8")
    code, printed = local.play(PLAYBOOKS / "status.yml")
    assert code == 0, printed
    assert "unreachable=1" not in printed


def test_a_host_without_connection_is_unreachable_with_the_reason(local: Local) -> None:
    text = local.inventory.read_text(encoding="utf-8")
    local.inventory.write_text(
        text.replace("{ansible_connection: local}", "{ansible_host: 127.0.0.1, ansible_port: 1}"), encoding="utf-8"
    )
    code, printed = local.play(PLAYBOOKS / "hosts.yml", "--limit", "gpu1")
    assert code == 4, printed
    assert "Connection refused" in printed
    assert "unreachable=1" in printed
    result = results_of(local.run)["gpu1", Part.NIC]
    assert result.outcome is Outcome.FAILED
    assert "Connection refused" in result.error


def test_a_broken_inventory_fails(local: Local) -> None:
    local.inventory.write_text("all: [\n", encoding="utf-8")
    code, printed = local.play(PLAYBOOKS / "hosts.yml")
    assert code == 2
    assert "the inventory has 1 problem" in printed
