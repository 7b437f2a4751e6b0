"""The trace file while it is written: buffered, bounded in size, and never the reason why a run fails."""

import json
import logging
import os
from pathlib import Path
from typing import IO, Final

from fabric.engine.trace.coding import Line
from fabric.errors import EnvironmentMissingError

__all__ = ("MOST_BYTES", "TraceWriter")

MOST_BYTES: Final = 256 << 20
_BUFFER_BYTES: Final = 256 << 10

_log = logging.getLogger(__name__)


class TraceWriter:
    """Appends lines until the file is full; then says so in its last line, and in the log, and drops the rest.

    A run cannot be replayed from its middle, so an old part is never given up for a new one.

    Args:
        path: replaced; only its owner may read it.
        most_bytes: size that the file does not pass.

    Attributes:
        stopped: why nothing is written any more, "" while something is.

    Raises:
        EnvironmentMissingError: the file cannot be written.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self.stopped = ""
        self._path = path
        self._left = most_bytes
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EnvironmentMissingError(
                "the trace cannot be written",
                where=str(path),
                found=error.strerror or "",
                remedy="Check path and permissions.",
            ) from error
        self._file: IO[bytes] = os.fdopen(descriptor, "wb", buffering=_BUFFER_BYTES)

    def write(self, line: Line) -> None:
        """Appends a line."""
        if self.stopped:
            return
        data = _bytes(line)
        last = _bytes({"k": "stopped", "why": "the trace has its greatest size"})
        if len(data) + len(last) > self._left:
            self._put(last)
            self._stop("the trace has its greatest size")
        else:
            self._left -= len(data)
            self._put(data)

    def flush(self) -> None:
        """Hands what is buffered to the system."""
        if not self.stopped:
            try:
                self._file.flush()
            except OSError as error:
                self._stop(str(error))

    def close(self) -> None:
        """Ends the file. Repeating it does nothing."""
        if not self.stopped:
            self._stop("")

    def _put(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            self._stop(str(error))

    def _stop(self, why: str) -> None:
        self.stopped = why or "closed"
        try:
            self._file.close()
        except OSError as error:
            why = why or str(error)
        if why:
            _log.warning("%s: nothing more is recorded: %s", self._path, why)


def _bytes(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"
