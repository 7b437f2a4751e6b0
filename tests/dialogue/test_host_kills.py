"""fabricctl, ansible-runner and Ansible as they are, cut off amid a part of a host: kill -9, Ctrl-C, a lost session.

The host is a model behind a real SSH server, so that what stands on it can be compared as a whole.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabric.host.change import Part
from fabric.state import Outcome
from fabric.workflow.hosts import results_of
from tests.dialogue.modelhosts import ModelHost, model_hosts
from tests.unit.host.faulty import FaultyModel
from tests.unit.host.intents import KV1

FABRICCTL = Path(sys.executable).with_name("fabricctl")
SETS_THE_NIC = '"put-file", "path": "/etc/systemd/system/fabricctl-link.service"'  # the agent puts it


def ready() -> FaultyModel:
    """Returns a host whose NIC stands, as somebody else has set it."""
    return FaultyModel(reachable={(KV1, "10.10.0.1")})


class Site:
    def __init__(self, folder: Path, inventory: Path, host: ModelHost) -> None:
        self.folder, self.inventory, self.host = folder, inventory, host

    def begin(self, *words: str) -> subprocess.Popen[str]:
        env = {**os.environ, "FABRICCTL_STATE": str(self.folder / "state"), "NO_COLOR": "1"}
        argv = [str(FABRICCTL), *words, "-i", str(self.inventory), "--runs", str(self.folder / "runs")]
        out = subprocess.PIPE
        return subprocess.Popen(
            argv, cwd=self.folder, env=env, stdout=out, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )

    def do(self, *words: str) -> tuple[int, str]:
        with self.begin(*words) as program:
            printed, _ = program.communicate(timeout=300)
        return program.returncode, printed

    def cut_off(self, number: signal.Signals, *words: str, pause_at: str) -> tuple[int, str, int]:
        """Sends the signal while the host waits before a step; returns exit code, output, and the process's id."""
        self.host.pause_at = pause_at
        with self.begin(*words) as program:
            assert self.host.reached.wait(300), "the step was not reached"
            program.send_signal(number)
            if number == signal.SIGINT:  # it has reached ansible-playbook when that is told to end its workers
                time.sleep(3)
            self.host.go.set()
            printed, _ = program.communicate(timeout=300)
        return program.returncode, printed, program.pid

    def run(self) -> Path:
        """Returns the newest run folder."""
        return max((self.folder / "runs").iterdir(), key=lambda one: one.stat().st_mtime)


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    host = ModelHost("gpu1", ready())
    with model_hosts(folder, host) as inventory:
        yield Site(folder, inventory, host)
    assert host.strange == []


def descendants(pid: int) -> list[str]:
    """Returns the command lines of processes that this fabricctl started and that still run."""
    mark = f"FABRICCTL_HOLDER={pid}".encode()
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdecimal():
            try:
                if mark in (one / "environ").read_bytes().split(b"\0"):
                    found.append((one / "cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " "))
            except OSError:
                continue
    return found


def wait_until_gone(pid: int, within_s: float) -> list[str]:
    end = time.monotonic() + within_s
    while (left := descendants(pid)) and time.monotonic() < end:
        time.sleep(0.2)
    return left


@pytest.mark.slow
def test_killed_amid_a_part_is_brought_to_the_intent_by_the_next_run_and_back_by_its_rollback(tmp_path: Path) -> None:
    with site(tmp_path) as lab:
        model = lab.host.model
        before = model.snapshot()
        code, _, pid = lab.cut_off(signal.SIGKILL, "hosts", "apply", "--limit", "gpu1", pause_at=SETS_THE_NIC)
        killed = lab.run()
        assert (code, results_of(killed)) == (-signal.SIGKILL, {})
        assert wait_until_gone(pid, 100) == []

        _, printed = lab.do("hosts", "apply", "--limit", "gpu1")
        again = lab.run()
        ends = {part: one for (_, part), one in results_of(again).items()}
        assert {one.outcome for one in ends.values()} <= {Outcome.COMMITTED, Outcome.UNCHANGED}, printed
        assert killed.name in dict(ends[Part.NIC].notes).get("lock-broken", "")
        assert [one["subsysnqn"] for one in model.controllers.values()] == [KV1]

        for run in (again, killed):  # the newer first
            code, printed = lab.do("rollback", str(run))
            assert code == 0, printed
        assert model.snapshot() == before


@pytest.mark.slow
def test_ctrl_c_ends_after_the_part_that_was_begun_and_leaves_nothing_running(tmp_path: Path) -> None:
    with site(tmp_path) as lab:
        code, printed, pid = lab.cut_off(signal.SIGINT, "hosts", "apply", "--limit", "gpu1", pause_at=SETS_THE_NIC)
        ends = {part: one for (_, part), one in results_of(lab.run()).items()}
        assert ends[Part.NIC].outcome is Outcome.COMMITTED, printed
        assert ends[Part.CONNECT].outcome is Outcome.REFUSED
        assert "stopped before this host's turn" in ends[Part.CONNECT].error
        assert code == 1, printed
        assert "stopped before this host's turn" in printed
        assert wait_until_gone(pid, 5) == []
        assert lab.host.model.controllers == {}
        assert "/run/fabricctl/lock" not in lab.host.model.files
