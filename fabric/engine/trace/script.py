"""A trace file read line by line, and compared with what happens again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fabric.engine.trace.coding import Line
from fabric.errors import EnvironmentMissingError, FabricError
from fabric.serial import parse_json

__all__ = ("Differs", "Over", "Script", "TraceError")

_SHOWN: Final = 400  # characters of a line in a report


class TraceError(FabricError):
    """The file is no trace, or of a version that this one cannot replay."""


class Over(Exception):  # noqa: N818, no error: the trace has no more
    """The recording ends here, inside of a call."""


class Differs(Exception):  # noqa: N818, a finding
    """What happens now is not what was recorded.

    Args:
        line: its number, from 1.
        expected: what was recorded.
        found: what happens.
    """

    def __init__(self, line: int, expected: object, found: object) -> None:
        super().__init__(line)
        self.line = line
        self.expected = _shown(expected)
        self.found = _shown(found)


class Script:
    """The lines of a trace, one after the other.

    Args:
        path: the file.

    Attributes:
        number: of the line that comes next, from 1.
        note: why the trace ends before the run did, "" when it does not.

    Raises:
        EnvironmentMissingError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.number = 1
        self.note = ""
        self._path = path
        self._lines = _read(path)
        self._next: Line | None = None
        self._load()

    def peek(self) -> Line | None:
        """Returns the next line, None after the last."""
        return self._next

    def take(self) -> Line:
        """Returns the next line, and goes on to the one behind it.

        Raises:
            Over: there is none.
        """
        if self._next is None:
            raise Over
        line = self._next
        self.number += 1
        self._load()
        return line

    def match(self, found: Line) -> None:
        """Goes on when the next line is this one.

        Raises:
            Differs: it is another.
            Over: there is none.
        """
        if self._next is None:
            raise Over
        if self._next != found:
            raise self.differs(found)
        self.take()

    def differs(self, found: object) -> Differs:
        """Returns the finding that this happens in place of the next line."""
        return Differs(self.number, self._next, found)

    def wrong(self, what: str, found: object = "") -> TraceError:
        """Returns an error about the next line."""
        return TraceError(what, where=f"{self._path}:{self.number}", found=_shown(found))

    def _load(self) -> None:
        self._next = None
        raw = next(self._lines, b"")
        if not raw:
            return
        if not raw.endswith(b"\n"):
            self.note = "the last line is cut: the process ended while it was written"
            return
        try:
            line = parse_json(raw)
        except ValueError as error:
            raise self.wrong("a line that is no JSON", raw[:_SHOWN].decode(errors="replace")) from error
        if not isinstance(line, dict) or "k" not in line:
            raise self.wrong("a line that is no event", line)
        if line["k"] == "stopped":
            self.note = str(line.get("why", ""))
        else:
            self._next = line


def _read(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise EnvironmentMissingError(
            "the trace cannot be read",
            where=str(path),
            found=error.strerror or "",
            remedy="Check path and permissions.",
        ) from error


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
