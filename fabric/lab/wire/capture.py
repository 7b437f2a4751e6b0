"""Captures of single ports while frames flow: begun and ended at any time, readable while they grow.

Each record is written by one call and not buffered, so that a reader never sees half of one. Knows no socket.
"""

import logging
from pathlib import Path
from typing import BinaryIO, Final, cast

from fabric.errors import FabricError
from fabric.lab.wire.guest import Endpoint
from fabric.lab.wire.pcap import PcapWriter

__all__ = ("Captures",)

_LOG: Final = logging.getLogger(__name__)


class _Capture:
    def __init__(self, path: Path, start_unix_ns: int) -> None:
        self.path = path
        self.frames = 0
        self.file = cast("BinaryIO", path.open("wb", buffering=0))
        try:
            self.writer = PcapWriter(self.file, start_unix_ns=start_unix_ns)
        except OSError:
            self.file.close()
            raise


class Captures:
    """The captures of one wiring; each port has at most one."""

    def __init__(self) -> None:
        self._running: dict[Endpoint, _Capture] = {}

    def __bool__(self) -> bool:
        """Returns whether any capture runs."""
        return bool(self._running)

    def start(self, endpoint: Endpoint, path: Path, *, start_unix_ns: int) -> None:
        """Begins a capture in a new file.

        Args:
            endpoint: switch and port.
            path: of the file; one that exists is replaced.
            start_unix_ns: what `now_ns` 0 is in Unix time.

        Raises:
            FabricError: the port is captured already, or the file cannot be made.
        """
        if endpoint in self._running:
            raise FabricError("the port is captured already", where="/".join(endpoint))
        try:
            if path.exists() and not path.is_file():  # a pipe that nobody reads would stop the forwarding thread
                raise FabricError("a capture is written to a file", where=str(path))
            self._running[endpoint] = _Capture(path, start_unix_ns)
        except OSError as error:
            raise FabricError(f"the capture cannot be made: {error}", where=str(path)) from error

    def stop(self, endpoint: Endpoint) -> int:
        """Ends a capture and returns how many frames it has.

        Raises:
            FabricError: the port is not captured.
        """
        capture = self._running.pop(endpoint, None)
        if capture is None:
            raise FabricError("the port is not captured", where="/".join(endpoint))
        capture.file.close()
        return capture.frames

    def running(self) -> dict[Endpoint, tuple[Path, int]]:
        """Returns by port the file and how many frames it has."""
        return {endpoint: (one.path, one.frames) for endpoint, one in self._running.items()}

    def write(self, endpoint: Endpoint, frame: bytes, now_ns: int) -> None:
        """Records a frame where its port is captured; a file that takes no more ends its capture."""
        capture = self._running.get(endpoint)
        if capture is None:
            return
        try:
            capture.writer.write(frame, now_ns)
        except OSError as error:
            _LOG.warning("%s: the capture ends: %s", "/".join(endpoint), error)
            self.stop(endpoint)
            return
        capture.frames += 1

    def close(self) -> None:
        """Ends all captures."""
        for endpoint in tuple(self._running):
            self.stop(endpoint)
