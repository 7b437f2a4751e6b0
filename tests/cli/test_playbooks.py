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

ROOT = Path(__file__).resolve().parent.parent.parent
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
SECRET = "correct horse"

ENTRY = """
import json, os

def ansible_entry(verb, sources, *, check_mode, options):
    options["vault_secrets"] = [[name, secret.decode()] for name, secret in options["vault_secrets"]]
    with open(os.environ["SEEN"], "w") as file:
        json.dump({"verb": verb, "sources": sources, "check_mode": check_mode, "options": options}, file)
    return json.loads(os.environ["ANSWER"])
"""

CHANGED = {"changed": True, "failed": False, "msg": "2 devices changed", "diff": "+ qos\\n", "summary": {"changed": 2}}


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
            **os.environ,
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "ANSWER": json.dumps(answer),
            "PYTHONPATH": str(self.folder / "stand-in"),
            "SEEN": str(self.folder / "seen.json"),
        }
        command = [str(ANSIBLE), str(ROOT / "playbooks" / name), "-i", str(self.inventory), *args]
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def seen(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads((self.folder / "seen.json").read_text(encoding="utf-8"))
        return answer


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    return Playbook(tmp_path)


def test_provision_hands_over_what_ansible_was_given(playbook: Playbook) -> None:
    vault = ("--vault-password-file", str(playbook.password_file))
    done = playbook.run("provision.yml", *vault, "-e", "fabric_mtu=9000", "-e", "adopt=true", "-e", "colour=red")
    assert done.returncode == 0, done.stdout
    seen = playbook.seen()
    assert (seen["verb"], seen["sources"], seen["check_mode"]) == ("provision", [str(playbook.inventory)], False)
    assert seen["options"]["adopt"] is True
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


def test_failed_answer_fails_the_playbook_with_its_message(playbook: Playbook) -> None:
    answer = {"changed": False, "failed": True, "msg": "leaf1 was rolled back", "diff": "", "summary": {}}
    done = playbook.run("check.yml", answer=answer)
    assert done.returncode == 2
    assert "leaf1 was rolled back" in done.stdout


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
