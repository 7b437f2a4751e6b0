"""Signals around ansible-playbook, and the folder for SSH's sockets."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Thread

import pytest

from fabric.remote._running import Stopper, control_folder

PLAYBOOK = """
import sys, time
try:
    print("ready", flush=True)
    time.sleep(20)
except KeyboardInterrupt:
    sys.exit(99)
"""


def stand_in() -> subprocess.Popen[str]:
    """Returns a process that ends on SIGINT as ansible-playbook does."""
    process = subprocess.Popen([sys.executable, "-c", PLAYBOOK], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_signal_ends_the_playbook_in_order_and_a_second_one_kills() -> None:
    process = stand_in()
    with process, Stopper() as stopper:
        stopper.watch(process.pid)
        assert not stopper.must_kill()
        os.kill(os.getpid(), signal.SIGINT)
        assert stopper.is_asked
        assert not stopper.must_kill()
        assert process.wait(10) == 99
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopper.must_kill()


def test_before_the_playbook_has_begun_it_is_killed() -> None:
    with Stopper() as stopper:
        os.kill(os.getpid(), signal.SIGINT)
        assert stopper.must_kill()


def test_after_the_grace_it_is_killed() -> None:
    process = stand_in()
    with process, Stopper(grace_s=0) as stopper:
        stopper.watch(process.pid)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopper.must_kill()
        process.wait(10)


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Stopper():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_in_another_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    inside: list[object] = []

    def body() -> None:
        with Stopper():
            inside.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=body)
    thread.start()
    thread.join(10)
    assert inside == [before]


def test_the_folder_is_private_short_and_gone_with_what_is_in_it() -> None:
    with control_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert len(os.fsencode(folder)) <= 79
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(folder / ("0123456789" + "." + "x" * 16)))  # as OpenSSH does, and nobody listens
    assert not folder.exists()


def test_a_long_folder_for_temporary_files_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with control_folder() as folder:
        assert len(os.fsencode(folder)) <= 79
        assert long not in folder.parents
