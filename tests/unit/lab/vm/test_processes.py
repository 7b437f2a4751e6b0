import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fabric.lab.vm.processes import end, end_all, is_running, read_record, record_of, with_token, write_record

WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"
STUBBORN = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAITS.removeprefix("import sys; ")


@contextmanager
def process(code: str, token: str) -> Iterator["subprocess.Popen[bytes]"]:
    argv = [sys.executable, "-c", code, token]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child
        finally:
            child.kill()


def test_recorded_process_is_recognised_and_ended(tmp_path: Path) -> None:
    token = secrets.token_hex(8)
    with process(WAITS, token) as child:
        record = record_of(child.pid, token)
        assert record is not None
        write_record(tmp_path / "process.json", record)
        assert read_record(tmp_path / "process.json") == record
        assert is_running(record)

        assert end(record)

        assert not is_running(record)
        assert not end(record)


def test_process_that_ignores_the_request_is_killed() -> None:
    token = secrets.token_hex(8)
    with process(STUBBORN, token) as child:
        record = record_of(child.pid, token)
        assert record is not None
        assert end(record, patience_s=0.2)
        assert not is_running(record)


def test_other_process_with_the_same_id_is_left_alone() -> None:
    token = secrets.token_hex(8)
    with process(WAITS, token) as child:
        record = record_of(child.pid, token)
        assert record is not None
        for other in (replace(record, start_ticks=record.start_ticks - 1), replace(record, boot_id="another")):
            assert not end(other)
        assert child.poll() is None


def test_unrecorded_process_is_found_by_its_token() -> None:
    token = secrets.token_hex(8)
    with process(WAITS, token) as child:
        assert [one.pid for one in with_token(token)] == [child.pid]
    assert list(with_token(token)) == []


def test_broken_record_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("{", encoding="utf-8")
    assert read_record(tmp_path / "broken") is None
    assert read_record(tmp_path / "absent") is None
    assert record_of(2**22 + 1, "x") is None


def test_process_that_was_forked_behind_our_back_is_ended_too() -> None:
    """As QEMU's, when it goes into the background while somebody takes its lab down."""
    token = secrets.token_hex(8)
    code = """
import os, signal
def fork(*_):
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGTERM, fork)
print(flush=True)
while True:
    signal.pause()
"""
    with process(code, token):
        assert end_all(token)
    assert list(with_token(token)) == []
    assert not end_all(token)
