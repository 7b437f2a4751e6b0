"""What a run that was killed, or that lost a device, left on this machine: its journal, and the lock with its timer.

Reads only, and locks nothing: a reader must not keep a writer out.
"""

import json
import os
from pathlib import Path
from typing import Final

from fabric.push.journal import Entry, file_name, read
from fabric.push.lock import LockRecord
from fabric.serial import SerialError, from_json

__all__ = ("journal_of", "left_behind")

_LOCKS: Final = "locks"  # the folder of `DeviceLock`


def journal_of(state_dir: Path, run: str, device: str) -> tuple[Entry, ...]:
    """Returns the journal of one device in one run, () when there is none.

    Raises:
        FabricError: it cannot be read.
    """
    path = state_dir / file_name(run) / f"{file_name(device)}.jsonl"
    return read(path) if path.exists() else ()


def left_behind(state_dir: Path, device: str) -> LockRecord | None:
    """Returns the lock record of a run of this machine that is not at the device any more and has left it unsettled.

    None where nobody was, or somebody still is: then whoever pushes is told so.
    """
    try:
        text = (state_dir / _LOCKS / f"{file_name(device)}.lock").read_bytes()
        record = from_json(LockRecord, json.loads(text))
    except (OSError, ValueError, SerialError):  # nobody was ever there; empty, let go; torn by a full disk
        return None
    if record.host != os.uname().nodename or _is_running(record.pid):
        return None
    return record


def _is_running(pid: int) -> bool:
    if pid == os.getpid():
        return False  # this process holds no lock while it asks
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # somebody else's process, or no number of one
        return True
    return True
