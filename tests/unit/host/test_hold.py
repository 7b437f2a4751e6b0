"""The lock of a host, by the real scripts in a folder of this machine: who gets it, when it is broken, what is marked."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.host import LocalExecutor
from fabric.host.change import Part
from fabric.host.hold import Holder, holder_of, release, take

HOST = LocalExecutor()
ME = holder_of("20261129-171122-provision", "me@here", lasting=os.getpid(), worker=os.getpid())
FAR = Holder("20261129-171130-provision", "another-boot/4026531836/17/99", "another-boot/4026531836/18/99", "you@there")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "run")


def test_host_is_held_by_one_run_and_renewed_by_it(folder: str) -> None:
    assert take(HOST, ME, folder=folder).broken == ""
    assert take(HOST, replace(ME, worker="another/worker/1/1"), folder=folder).broken == ""
    with pytest.raises(HostError, match=f"run {ME.run} of me@here") as error:
        take(HOST, FAR, folder=folder)
    assert re.search(r"expires in (900|8[0-9][0-9]) s", error.value.remedy)  # the clock goes on
    release(HOST, FAR, folder=folder)  # it is not theirs
    with pytest.raises(HostError, match="another run is at this host"):
        take(HOST, FAR, folder=folder)
    release(HOST, ME, folder=folder)
    assert take(HOST, FAR, folder=folder).broken == ""


def test_release_of_a_host_that_nobody_took_does_nothing(folder: str) -> None:
    release(HOST, ME, folder=folder)
    assert not Path(folder).exists()


@pytest.mark.parametrize("who", ["run", "worker"])
def test_lock_of_a_process_that_died_here_is_broken_at_once_unless_one_of_its_own_lives(who: str, folder: str) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        dead = process.pid
        other = process.pid if who == "run" else os.getpid()
        theirs = holder_of("20261129-171100-provision", "me@here", lasting=dead, worker=other)
        take(HOST, theirs, folder=folder)
        with pytest.raises(HostError, match="another run"):
            take(HOST, ME, folder=folder)
        process.kill()
        time.sleep(0.05)  # not waited for: a zombie holds nothing
        if who == "run":
            assert take(HOST, ME, folder=folder).broken == "20261129-171100-provision"
        else:  # ansible's worker still works, though fabricctl is gone
            with pytest.raises(HostError, match="another run"):
                take(HOST, ME, folder=folder)


def test_lock_from_another_machine_is_broken_when_it_expired(folder: str) -> None:
    take(HOST, FAR, folder=folder)
    path = Path(folder) / "lock"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[3] = "1"  # the machine has run longer than a second
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert take(HOST, ME, folder=folder).broken == FAR.run


@pytest.mark.parametrize("text", ["torn", "\n\n\n\n\n", "a\nb\nc\nnot a number\nd\n"])
def test_torn_lock_holds_nobody_up(text: str, folder: str) -> None:
    Path(folder).mkdir()
    (Path(folder) / "lock").write_text(text, encoding="utf-8")
    take(HOST, ME, folder=folder)
    with pytest.raises(HostError, match=ME.run):
        take(HOST, FAR, folder=folder)


def test_place_that_cannot_keep_a_lock_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="cannot keep a lock") as error:
        take(HOST, ME, folder=str(tmp_path / "file"))
    assert "flock" in error.value.remedy


def test_marks_tell_who_was_last_and_who_came_later(folder: str) -> None:
    def mark(run: str, which: str) -> None:
        action = getattr(take(HOST, ME, folder=folder).of(Part.NIC).of(run), which)
        path = Path(action.path)
        path.write_text(action.text, encoding="utf-8") if hasattr(action, "text") else path.unlink()

    for run in ("R1", "R2"):
        mark(run, "begun")
        assert take(HOST, ME, folder=folder).of(Part.NIC).is_amid(run)
        mark(run, "ended")
    found = take(HOST, ME, folder=folder).of(Part.NIC)
    assert (found.is_amid("R1"), found.is_amid("R2")) == (False, False)
    assert (found.later("R1"), found.later("R2"), found.later("before the boot")) == (("R2",), (), ("R1", "R2"))
    assert take(HOST, ME, folder=folder).of(Part.CONNECT).lines == ()
    mark("R1", "begun")  # it is being taken back: whatever is half done is its own now
    assert take(HOST, ME, folder=folder).of(Part.NIC).is_amid("R1")
    mark("R1", "undone")
    assert take(HOST, ME, folder=folder).of(Part.NIC).lines == (("R2", "ended"),)
    mark("R2", "undone")
    assert not (Path(folder) / "nic").exists()


def test_agent_waits_until_an_orphan_has_performed_the_last_it_was_told(tmp_path: Path) -> None:
    """An agent whose session was cut off goes on; the next one on the host must not work beside it."""
    agent = Path(sys.modules["fabric.host"].__file__ or "").with_name("agent.py").read_text(encoding="utf-8")
    guard = tmp_path / "guard"
    guard.touch()
    source = agent.replace("/run/fabricctl/guard", str(guard))
    slow = [{"do": "run", "argv": ["sh", "-c", f"sleep 0.5; echo one >>{tmp_path}/out"]}]
    quick = [{"do": "run", "argv": ["sh", "-c", f"echo two >>{tmp_path}/out"]}]
    words = [sys.executable, "-c", source, "-"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as orphan:
        assert orphan.stdin
        orphan.stdin.write(json.dumps(slow).encode())
        orphan.stdin.close()
        time.sleep(0.3)
        done = subprocess.run(words, input=json.dumps(quick).encode(), capture_output=True, check=True)
        assert json.loads(done.stdout) == {"done": 1, "reason": ""}
        orphan.wait(10)
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == ["one", "two"]
