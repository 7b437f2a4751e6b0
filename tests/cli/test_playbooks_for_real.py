"""The playbooks as operators run them: a real ansible-playbook, the real workflow, emulated switches over real SSH."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.workflow import Environment
from fabric.workflow.demo import demo_lab

ROOT = Path(__file__).resolve().parent.parent.parent
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")


def playbook(folder: Path, name: str, *args: str) -> tuple[int, str]:
    """Returns the exit code and everything that was printed; state goes below `folder`."""
    env = {
        **os.environ,
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "FABRICCTL_STATE": str(folder / "state"),
        "PYTHONPATH": str(ROOT),
    }
    command = [str(ANSIBLE), str(ROOT / "playbooks" / name), "-e", f"runs={folder / 'runs'}", *args]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def recap(printed: str) -> tuple[str, ...]:
    return tuple(word for word in printed.split() if word.startswith(("changed=", "failed=")))


def test_check_judges_the_demo(tmp_path: Path) -> None:
    code, printed = playbook(tmp_path, "check.yml", "-i", str(ROOT / "inventory" / "demo"))
    assert code == 0, printed
    assert list((tmp_path / "runs").glob("*-check/report.html"))


def test_unknown_variable_fails_with_the_nearest_name(tmp_path: Path) -> None:
    demo = ROOT / "inventory" / "demo"
    code, printed = playbook(tmp_path, "check.yml", "-i", str(demo), "-e", "fabric_ecn_kmx=1MB")
    assert code == 2
    assert "fabric_ecn_kmax" in printed


@pytest.mark.no_cover  # tests.dialogue.test_workflow runs the same code; each process here would trace itself
def test_provision_changes_once_and_rolls_back(tmp_path: Path) -> None:
    with demo_lab(tmp_path / "lab", Environment(state_dir=tmp_path / "state")) as lab:
        sources = [word for source in lab.request.sources for word in ("-i", str(source))]
        spine = ("--limit", "spine1", "-e", "adopt=true", "-e", "disruptive=true")
        before = lab.fronts["spine1"].running()

        code, printed = playbook(tmp_path, "provision.yml", *sources, *spine, "--check", "--diff")
        assert code == 0, printed
        assert lab.fronts["spine1"].running() == before
        assert "priority-flow-control" in printed

        code, printed = playbook(tmp_path, "provision.yml", *sources, *spine)
        assert (code, recap(printed)) == (0, ("changed=1", "failed=0")), printed
        assert lab.fronts["spine1"].running() != before

        code, printed = playbook(tmp_path, "provision.yml", *sources, *spine)
        assert (code, recap(printed)) == (0, ("changed=0", "failed=0")), printed

        run = min((tmp_path / "runs").glob("*-provision"))
        code, printed = playbook(tmp_path, "rollback.yml", *sources, "-e", f"run={run}", "--limit", "spine1")
        assert (code, recap(printed)) == (0, ("changed=1", "failed=0")), printed
        assert lab.fronts["spine1"].running() == before

        passwords = [lab.fronts[name].password for name in lab.fronts]
        written = "".join(
            path.read_text(encoding="utf-8") for path in (tmp_path / "runs").rglob("*.*") if path.is_file()
        )
        assert not any(password in written + printed for password in passwords)
        assert json.loads((run / "push.json").read_text(encoding="utf-8"))["kind"] == "PushDocument"
