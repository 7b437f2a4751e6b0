"""What the playbooks hand to `fabric.workflow`, seen through a real ansible-playbook and a stand-in entry point."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabric.workflow import ansible_entry
from tests.strategies.site import write_site
from tests.tracing import untraced

ROOT = Path(__file__).resolve().parent.parent.parent
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
SECRET = "correct horse"

ENTRY = """
import json, os

def ansible_entry(verb, sources, *, check_mode, options):
    options["vault_secrets"] = [[name, secret.decode()] for name, secret in options["vault_secrets"]]
    with open(os.environ["SEEN"], "a") as file:
        print(json.dumps({"verb": verb, "sources": sources, "check_mode": check_mode, "options": options}), file=file)
    return json.loads(os.environ["ANSWER"])
"""

CHANGED = {
    "changed": True,
    "failed": False,
    "msg": "2 devices changed",
    "diff": "+ qos\\n",
    "summary": {"changed": 2},
    "run": "/runs/1-provision",
}


class Playbook:
    """Runs a playbook of this project against a small inventory, with a stand-in for the workflow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inventory = folder / "site.yml"
        self.inventory.write_text("all: {children: {switches: {hosts: {leaf1: {}, leaf2: {}}}}}\n", encoding="utf-8")
        package = folder / "stand-in" / "fabric"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "workflow.py").write_text(ENTRY, encoding="utf-8")
        self.password_file = folder / "vault-password"
        self.password_file.write_text(SECRET, encoding="utf-8")

    def run(self, name: str, *args: str, answer: dict[str, Any] = CHANGED) -> subprocess.CompletedProcess[str]:
        env = {
            **untraced(os.environ),  # a stand-in takes the product's place
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "ANSWER": json.dumps(answer),
            "PYTHONPATH": str(self.folder / "stand-in"),
            "SEEN": str(self.folder / "seen.json"),
        }
        command = [str(ANSIBLE), str(ROOT / "playbooks" / name), "-i", str(self.inventory), *args]
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def calls(self) -> list[dict[str, Any]]:
        """Returns each call of the entry point, in order."""
        return [json.loads(line) for line in (self.folder / "seen.json").read_text(encoding="utf-8").splitlines()]

    def seen(self) -> dict[str, Any]:
        """Returns the first call."""
        return self.calls()[0]


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    return Playbook(tmp_path)


def test_provision_hands_over_what_ansible_was_given(playbook: Playbook) -> None:
    vault = ("--vault-password-file", str(playbook.password_file))
    given = ("fabric_mtu=9000", "adopt=true", "failure_budget=10%", "colour=red")
    done = playbook.run("provision.yml", *vault, *(word for one in given for word in ("-e", one)))
    assert done.returncode == 0, done.stdout
    seen = playbook.seen()
    assert (seen["verb"], seen["sources"], seen["check_mode"]) == ("provision", [str(playbook.inventory)], False)
    assert (seen["options"]["adopt"], seen["options"]["install"]) == (True, False)
    assert seen["options"]["failure_budget"] == "10%"
    assert seen["options"]["limit"] == ""
    assert seen["options"]["vault_secrets"] == [["default", SECRET]]
    assert seen["options"]["extra_vars"] == {"fabric_mtu": "9000"}
    assert SECRET not in done.stdout + done.stderr


def test_check_mode_and_diff_reach_both_sides(playbook: Playbook) -> None:
    done = playbook.run("provision.yml", "--check", "--diff")
    assert playbook.seen()["check_mode"] is True
    assert "+ qos" in done.stdout


def test_limit_is_handed_over_as_it_was_given(playbook: Playbook) -> None:
    done = playbook.run("provision.yml", "--limit", "leaf*,!leaf1")
    assert done.returncode == 0, done.stdout
    assert playbook.seen()["options"]["limit"] == "leaf*,!leaf1"


def test_provision_works_on_switches_then_hosts_then_concludes_all_in_one_run(playbook: Playbook) -> None:
    done = playbook.run("provision.yml")
    assert done.returncode == 0, done.stdout
    assert [call["verb"] for call in playbook.calls()] == ["provision", "conclude"]
    assert playbook.calls()[1]["options"]["run"] == "/runs/1-provision"


def test_a_failed_switch_ends_all(playbook: Playbook) -> None:
    playbook.inventory.write_text("all: {children: {switches: {hosts: {leaf1: {}}}, hosts: {hosts: {gpu1: {}}}}}\n")
    done = playbook.run("provision.yml", answer={**CHANGED, "failed": True, "msg": "leaf1 was rolled back"})
    assert done.returncode == 2
    assert [call["verb"] for call in playbook.calls()] == ["provision"]
    assert "leaf1 was rolled back" in done.stdout
    assert "Set up the NICs" not in done.stdout


@pytest.mark.parametrize(
    "name", ["targets.yml", "hosts.yml", "connect.yml", "disconnect.yml", "status.yml", "back.yml"]
)
def test_without_hosts_the_playbooks_of_hosts_have_nothing_to_do(name: str, playbook: Playbook) -> None:
    done = playbook.run(name, "-e", "run=/runs/1-provision", "-e", "runs=elsewhere")
    assert done.returncode == 0, done.stdout
    assert playbook.seen()["verb"] == "intents"
    assert playbook.seen()["options"]["run"] == "/runs/1-provision"
    assert playbook.seen()["options"]["runs"] == "elsewhere"


def test_only_the_tags_that_were_asked_for(playbook: Playbook) -> None:
    assert playbook.run("provision.yml", "--tags", "nic").returncode == 0
    assert [call["verb"] for call in playbook.calls()] == ["intents", "conclude"]


def test_rollback_brings_hosts_back_before_switches(playbook: Playbook) -> None:
    done = playbook.run("rollback.yml", "-e", "run=/runs/0-provision")
    assert done.returncode == 0, done.stdout
    calls = [(call["verb"], call["options"]["run"]) for call in playbook.calls()]
    assert calls == [("back", "/runs/0-provision"), ("rollback", "/runs/0-provision")]


@pytest.mark.parametrize("path", sorted((ROOT / "playbooks").glob("*.yml")), ids=lambda path: path.name)
def test_syntax(path: Path, playbook: Playbook) -> None:
    done = playbook.run(path.name, "--syntax-check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_limit_that_no_host_fits_fails(playbook: Playbook) -> None:
    done = playbook.run("hosts.yml", "--limit", "nobody")
    assert done.returncode != 0
    assert "no hosts" in done.stdout + done.stderr


@pytest.mark.no_cover  # nothing of the product runs
def test_the_actions_document_themselves(tmp_path: Path) -> None:
    command = [str(ANSIBLE.with_name("ansible-doc")), "-M", str(ROOT / "playbooks" / "library"), "--json"]
    done = subprocess.run(
        [*command, "fabricctl", "fabricctl_host"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    options = {name: set(one["doc"]["options"]) for name, one in json.loads(done.stdout).items()}
    assert options["fabricctl_host"] == {"part", "of", "run", "disruptive", "hold"}
    assert {"verb", "run", "live", "adopt"} <= options["fabricctl"]


@pytest.mark.slow
@pytest.mark.no_cover  # nothing of the product runs
def test_ansible_lint_finds_nothing_at_the_production_profile() -> None:
    env = {**os.environ, "PATH": f"{ANSIBLE.parent}{os.pathsep}{os.environ['PATH']}"}
    command = [str(ANSIBLE.with_name("ansible-lint")), "--offline", "-q", "--profile", "production", "playbooks"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_failed_answer_fails_the_playbook_with_its_message(playbook: Playbook) -> None:
    answer = {"changed": False, "failed": True, "msg": "leaf1 was rolled back", "diff": "", "summary": {}}
    done = playbook.run("check.yml", answer=answer)
    assert done.returncode == 2
    assert "leaf1 was rolled back" in done.stdout


@pytest.mark.parametrize("name", ["check.yml", "status.yml"])
def test_a_python_without_fabricctl_is_told_in_one_line_with_what_to_run(name: str, playbook: Playbook) -> None:
    (playbook.folder / "stand-in" / "fabric" / "workflow.py").write_text("raise ImportError('No module named x')\n")
    done = playbook.run(name)
    assert done.returncode == 2
    assert "fabricctl is not installed in the Python that runs ansible-playbook" in done.stdout
    assert "No module named x" in done.stdout
    assert "-m pip install fabricctl" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_inventory_that_ansible_cannot_read_still_reaches_the_loader(playbook: Playbook) -> None:
    playbook.inventory.write_text("all: [\n", encoding="utf-8")
    playbook.run("check.yml")
    assert playbook.seen()["sources"] == [str(playbook.inventory)]


def test_rollback_without_a_run_is_refused(playbook: Playbook) -> None:
    done = playbook.run("rollback.yml")
    assert done.returncode == 2
    assert "say which run" in done.stdout + done.stderr


@pytest.mark.parametrize(("name", "value"), [("confirm_s", 5), ("confirm_s", "0"), ("workers", 0), ("workers", "x")])
def test_numbers_out_of_range_are_told_and_not_replaced(name: str, value: object, tmp_path: Path) -> None:
    answer = ansible_entry("check", [str(write_site(tmp_path))], check_mode=False, options={name: value})
    assert answer["failed"] is True
    assert f"the option {name} is out of range" in str(answer["msg"])


def test_a_failure_budget_that_is_none_is_told_before_anything_is_read(tmp_path: Path) -> None:
    answer = ansible_entry("provision", [str(tmp_path / "none")], check_mode=False, options={"failure_budget": "few"})
    assert answer["failed"] is True
    assert "no failure budget" in str(answer["msg"])
