"""What a run was about to do, on disk before it does it: so that a killed run can be read back.

One JSON-lines file per device and run, appended and fsynced before each step; a torn last line is ignored. A step
that has begun and not ended is the step in which the run died. No secret and no configuration goes in: the device's
configuration before the change lies beside it in a file of its own, mode 0600.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from fabric.errors import EnvironmentMissingError, FabricError
from fabric.serial import Json, SerialError, from_json, parse_json

__all__ = ("Entry", "Journal", "file_name", "private_folder", "read", "unfinished", "write_private")

SCHEMA: Final = 1
_DIRECTORY_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_NAME_LIMIT: Final = 120


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a journal.

    Attributes:
        state: of the transaction. step: the action that was about to be done, or "end".
        phase: `begin`, `ok`, or the kind of failure; of step "end" the outcome.
    """

    run: str
    device: str
    nos: str
    transaction: str
    state: str
    step: str
    phase: str
    unix_s: float
    message: str = ""


def file_name(device: str) -> str:
    """Returns a file name for a device: no slash, no leading dot, at most 120 characters, another for each device."""
    name = quote(device, safe="")
    if len(name) > _NAME_LIMIT:
        name = f"{name[:80]}-{hashlib.sha256(device.encode()).hexdigest()[:32]}"
    return f"%2E{name[1:]}" if name.startswith(".") else name


def private_folder(path: Path) -> Path:
    """Returns the folder, made with mode 0700 if it was missing.

    Raises:
        EnvironmentMissingError: it cannot be made, or others may read it.
    """
    try:
        path.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777
    except OSError as error:
        raise _unwritable(path, error) from error
    if mode & 0o077:
        raise EnvironmentMissingError(
            "others may read the state directory, and it holds device configurations",
            where=str(path),
            found=f"mode {mode:04o}",
            expected="mode 0700",
            remedy=f"chmod 700 {path}",
        )
    return path


def write_private(path: Path, text: str) -> None:
    """Writes a file of mode 0600 and fsyncs it; a reader sees the old one or the whole new one.

    Raises:
        FabricError: the disk is full or the folder is not writable.
    """
    temporary = path.with_name(f"{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> EnvironmentMissingError:
    return EnvironmentMissingError(
        "the state directory cannot be written",
        where=str(path),
        found=error.strerror or str(error),
        remedy="Make room, or name another: export FABRICCTL_STATE=DIR. Nothing is pushed without a journal.",
    )


class Journal:
    """The journal of one device in one run.

    Args:
        state_dir: mode 0700. run, device, nos, transaction: stand in every line.
    """

    def __init__(self, state_dir: Path, *, run: str, device: str, nos: str, transaction: str) -> None:
        folder = private_folder(private_folder(state_dir) / file_name(run))
        self._run = run
        self._device = device
        self._nos = nos
        self._transaction = transaction
        self.path = folder / f"{file_name(device)}.jsonl"
        self.before_path = folder / f"{file_name(device)}.before"

    def write(self, *, state: str, step: str, phase: str, unix_s: float, message: str = "") -> None:
        """Appends one line and fsyncs it.

        Raises:
            FabricError: it is not on disk.
        """
        line: Json = {
            "schema": SCHEMA,
            "run": self._run,
            "device": self._device,
            "nos": self._nos,
            "transaction": self._transaction,
            "state": state,
            "step": step,
            "phase": phase,
            "unix_s": unix_s,
            "message": message,
        }
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, _FILE_MODE)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                data = f"{json.dumps(line)}\n".encode()
                if file.write(data) != len(data):
                    raise OSError("the line was cut off")
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def keep_before(self, text: str) -> None:
        """Writes the configuration before the change to `before_path`.

        Raises:
            FabricError: it is not on disk.
        """
        write_private(self.before_path, text)


def read(path: Path) -> tuple[Entry, ...]:
    """Returns the lines of one journal; a torn last line is left out.

    Raises:
        FabricError: the file cannot be read, or a line before the last is no journal line.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise FabricError("the journal cannot be read", where=str(path), found=error.strerror or "") from error
    entries = []
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last line end is torn or empty
        try:
            entries.append(_entry(parse_json(line)))
        except SerialError as error:
            raise FabricError("no journal line", where=f"{path}:{number}", found=str(error)) from error
    return tuple(entries)


def _entry(data: Json) -> Entry:
    if not isinstance(data, dict):
        raise SerialError("not an object")
    if data.pop("schema", None) != SCHEMA:
        raise SerialError(f"its schema is not {SCHEMA}")
    return from_json(Entry, data)


def unfinished(state_dir: Path) -> Iterator[tuple[Path, Entry]]:
    """Yields, for each device whose run was killed, its journal and the last entry in it; oldest run first.

    Raises:
        FabricError: a journal is unreadable.
    """
    for path in sorted(state_dir.glob("*/*.jsonl"), key=lambda one: (one.stat().st_mtime, one.name)):
        entries = read(path)
        if entries and entries[-1].step != "end":
            yield path, entries[-1]
