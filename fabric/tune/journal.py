"""What has been measured, on disk: JSON lines, each safe before the next trial is asked for.

The first line says what the study is about; a journal of another study is refused. A last line that was cut by a crash
is dropped. One writer at a time; who it is, is not checked here.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import FabricError
from fabric.serial import Json, SerialError, from_json, parse_json, to_json
from fabric.tune.outcome import Outcome, Trial

__all__ = ("Journal", "JournalError", "Told")

SCHEMA = 1


class JournalError(FabricError):
    """The journal belongs to another study, or is damaged before its last line."""


@dataclass(frozen=True, slots=True)
class Told:
    """One trial and what it gave."""

    trial: Trial
    outcome: Outcome


class Journal:
    """One file.

    Args:
        path: where; its folder exists.
        study: what the study is about, as JSON: space, limits, goal, model, seed, budget.

    Raises:
        JournalError: the file is of another study, or a line before its last is damaged.
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path, study: Json) -> None:
        self._path = path
        lines = _lines(path)
        self.told = tuple(_told(path, number, line) for number, line in enumerate(lines[1:], 2))
        head: Json = {"schema": SCHEMA, "study": study}
        if not lines:
            path.write_bytes(b"")
            self._append(head)
        elif lines[0] != head:
            raise JournalError(
                "the journal is of another study",
                where=str(path),
                remedy="Give the space, limits, goal, model and seed of then, or another file",
            )

    def append(self, told: Told) -> None:
        """Writes one line; it is on the disk when this returns."""
        self._append({"trial": to_json(told.trial), "outcome": to_json(told.outcome)})

    def _append(self, line: Json) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(line, sort_keys=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _lines(path: Path) -> Sequence[Json]:
    """Returns the lines, and takes a cut last one off the file."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        with path.open("rb+") as file:
            file.truncate(len(whole))
    found: list[Json] = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            found.append(parse_json(line))
        except SerialError as error:
            raise JournalError(f"line {number} is damaged: {error}", where=str(path)) from error
    return found


def _told(path: Path, number: int, line: Json) -> Told:
    try:
        return from_json(Told, line)
    except SerialError as error:
        raise JournalError(f"line {number} is damaged: {error}", where=str(path)) from error
