"""Processes that a lab started: recorded in files, recognised without doubt, ended. Knows nothing of QEMU.

A record holds the process id with its start time and the boot it belongs to: a process id alone may by now be
somebody else's. A process that was started, but not yet recorded when the lab died, is found by the token in its
command line. Signals go through a pidfd, so that what was recognised is what is ended.
"""

import json
import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric import serial

__all__ = (
    "ProcessRecord",
    "end",
    "end_all",
    "is_open_below",
    "is_running",
    "read_record",
    "record_of",
    "with_token",
    "write_record",
)

_PROC: Final = Path("/proc")
_START_FIELD: Final = 22 - 3  # proc(5) stat: (22) starttime, counted after the name, which ends field (2)
_STATE_FIELD: Final = 0
_ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process, as nothing else will ever be.

    Attributes:
        start_ticks: clock ticks between boot and its start. boot_id: of the kernel.
        token: stands in its command line; at least 16 random hex digits.
    """

    pid: int
    start_ticks: int
    boot_id: str
    token: str


def _boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _stat(pid: int) -> tuple[str, int] | None:
    """Returns state and start time of a process, or None when it is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[_STATE_FIELD], int(fields[_START_FIELD])


def record_of(pid: int, token: str) -> ProcessRecord | None:
    """Returns the record of a running process, or None when it has ended."""
    found = _stat(pid)
    return ProcessRecord(pid, found[1], _boot_id(), token) if found else None


def write_record(path: Path, record: ProcessRecord) -> None:
    """Writes a record; a reader sees the old one or this one, whole."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(serial.to_json(record)), encoding="utf-8")
    part.rename(path)


def read_record(path: Path) -> ProcessRecord | None:
    """Returns the record, or None when there is none that can be read."""
    try:
        return serial.from_json(ProcessRecord, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def is_running(record: ProcessRecord) -> bool:
    """Returns whether that very process still runs; one that ended and was not waited for does not."""
    found = _stat(record.pid)
    return found is not None and found[0] != "Z" and found[1] == record.start_ticks and _boot_id() == record.boot_id


def with_token(token: str) -> Iterator[ProcessRecord]:
    """Yields the running processes whose command line holds the token."""
    for folder in _PROC.iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if token.encode() in words and (record := record_of(int(folder.name), token)):
                yield record


def is_open_below(folder: Path) -> bool:
    """Returns whether a process that this user may look at has a file of the folder open."""
    start = f"{folder.absolute()}/"
    for process in _PROC.iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):  # it has ended, or is somebody else's
            for one in (process / "fd").iterdir():
                with suppress(OSError):
                    if os.readlink(one).startswith(start):  # noqa: PTH115  (no path: it may be a pipe)
                        return True
    return False


def end(record: ProcessRecord, *, patience_s: float = 5.0) -> bool:
    """Ends a process, gently first, and returns whether it had to be ended.

    Args:
        record: which; another process that has its id by now is left alone.
        patience_s: how long it may take to end by itself after being asked.
    """
    try:
        descriptor = os.pidfd_open(record.pid)
    except ProcessLookupError:
        return False
    try:
        if not is_running(record):  # asked after the pidfd was made: from here on it cannot become another process
            return False
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 30.0)):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
            if select.select([descriptor], [], [], wait_s)[0]:
                break
        with suppress(ChildProcessError):
            os.waitpid(record.pid, 0)
        return True
    finally:
        os.close(descriptor)


def end_all(token: str) -> bool:
    """Ends the processes whose command line holds the token, and returns whether there were any."""
    has_ended = False
    for _ in range(_ROUNDS):  # one that was just going into the background has a child that the first look missed
        found = tuple(with_token(token))
        if not found:
            break
        for one in found:
            has_ended = end(one) or has_ended
    return has_ended
