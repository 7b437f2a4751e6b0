"""The load at a host: JSON lines in, JSON lines out, one thing after the other. Installs nothing, ends with its input.

| line | does |
|---|---|
| `{"do": "ping", "id": N}` | answers `pong` with this host's clock, also while a job runs |
| `{"do": "prepare", "id": N, "run_id": R, "stream": …, "region": …, "consent": true}` | overwrites a region |
| `{"do": "run", "id": N, "job": …}` | runs a job |
| `{"do": "describe", "id": N, "stream": …}` | says what the stream reaches |
| `{"do": "stop"}` | ends what runs; it still answers with its result |

| answer | when |
|---|---|
| `{"event": "ready", …}` | once, at the begin: protocol, version, Python, clock |
| `{"event": "pong" / "started" / "progress" / "said" / "prepared" / "described" / "result", …}` | see the lines |
| `{"event": "error", "id": N or null, "class": …, "what": …}` | a line that makes no sense, work that cannot be done |

What comes while something runs waits for its turn. The end of the input, and SIGTERM, end all of it: engines and
sockets are closed, and the process exits. `stream`, `region` and `job` are those of `model`, by `fabric.serial`.
"""

import json
import os
import platform
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping
from types import FrameType
from typing import BinaryIO, Final, NoReturn

from fabric._version import __version__
from fabric.engine.load.model import Job, Region, Stream
from fabric.engine.load.regions import Grounds
from fabric.engine.load.runner import Outside, Progress, describe, prepare, run_job
from fabric.errors import FabricError, LocalProtocolError
from fabric.serial import Json, SerialError, from_json, parse_json, to_json

__all__ = ("PROTOCOL", "Agent", "main")

PROTOCOL: Final = 1
_LONGEST_LINE: Final = 4 << 20
_TERMINATED: Final = 128 + signal.SIGTERM


class _Lines:
    """The lines of a descriptor, without ever waiting where not told to."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_ended = False
        self._rest = bytearray()
        self._is_skipping = False  # the rest of a line that was too long

    def read(self, timeout_ms: int | None) -> list[bytes]:
        """Returns the lines that have come, perhaps none; waits up to `timeout_ms` for more bytes, None: for ever."""
        poller = select.poll()
        poller.register(self.descriptor, select.POLLIN)
        if self.is_ended or not poller.poll(timeout_ms):
            return []
        more = os.read(self.descriptor, 1 << 16)
        if not more:
            self.is_ended = True
            return []
        self._rest += more
        *lines, rest = self._rest.split(b"\n")
        if self._is_skipping and lines:
            self._is_skipping = False
            lines = lines[1:]
        if len(rest) > _LONGEST_LINE:
            lines.append(rest[:_SHOWN])
            rest, self._is_skipping = bytearray(), True
        self._rest = bytearray() if self._is_skipping else rest
        return [bytes(one) for one in lines]


_SHOWN: Final = 80


class Agent:
    """One conversation.

    Args:
        descriptor: where lines come from.
        out: where answers go.
    """

    def __init__(self, descriptor: int, out: BinaryIO) -> None:
        self._lines = _Lines(descriptor)
        self._out = out
        self._grounds = Grounds()
        self._waiting: deque[bytes] = deque()
        self._is_stopped = False
        self._id: Json = None

    def serve(self) -> None:
        """Answers until the input ends."""
        self._say("ready", protocol=PROTOCOL, version=__version__, python=platform.python_version(), **_clock())
        while True:
            self._hear(None)
            while self._waiting:
                self._obey(self._waiting.popleft())
            if self._lines.is_ended:
                return

    def _hear(self, timeout_ms: int | None) -> None:
        """Takes what has come; answers what can be answered at once, and keeps the rest."""
        for line in self._lines.read(timeout_ms):
            if line.strip() and not self._answer(line):
                self._waiting.append(line)

    def _answer(self, line: bytes) -> bool:
        order = _parsed(line)
        match order.get("do") if order is not None else None:
            case "ping":
                self._id_of(order, "pong", **_clock())
            case "stop":
                self._is_stopped = True
                self._drop()
            case _:
                return False
        return True

    def _drop(self) -> None:
        """Answers what will not begin any more."""
        dropped, self._waiting = self._waiting, deque()
        for line in dropped:
            self._id_of(
                _parsed(line), "error", **{"class": "LocalProtocolError", "what": "it was stopped before it began"}
            )

    def _id_of(self, order: Mapping[str, Json] | None, event: str, **data: Json) -> None:
        self._write({"event": event, "id": (order or {}).get("id"), **data})

    def _obey(self, line: bytes) -> None:
        order = _parsed(line)
        self._id, self._is_stopped = (order or {}).get("id"), False
        try:
            if order is None:
                raise LocalProtocolError("this is no JSON object", found=line[:_SHOWN].decode("utf-8", "replace"))
            self._do(order)
        except SerialError as error:
            self._error("SerialError", str(error))
        except FabricError as error:
            self._error(type(error).__name__, str(error))
        except (OSError, MemoryError) as error:  # of this host: no memory, no descriptors; the next job may be smaller
            self._error(type(error).__name__, str(error) or "there is not enough memory")
        finally:
            self._id = None

    def _do(self, order: Mapping[str, Json]) -> None:
        match order.get("do"):
            case "run":
                job = from_json(Job, order.get("job"), at="$.job")
                self._say("started", name=job.name)
                result = run_job(job, grounds=self._grounds, outside=self._outside())
                self._say("result", result=to_json(result))
            case "prepare":
                stream = from_json(Stream, order.get("stream"), at="$.stream")
                region = from_json(Region, order.get("region"), at="$.region")
                run_id = from_json(int, order.get("run_id"), at="$.run_id")
                begin_ns = time.monotonic_ns()
                length = prepare(
                    stream,
                    region,
                    run_id=run_id,
                    has_consent=order.get("consent") is True,
                    grounds=self._grounds,
                    outside=self._outside(),
                )
                self._say("prepared", bytes=length, seconds=(time.monotonic_ns() - begin_ns) / 1e9)
            case "describe":
                stream = from_json(Stream, order.get("stream"), at="$.stream")
                self._say("described", description=to_json(describe(stream)))
            case unknown:
                raise LocalProtocolError(
                    "this is nothing that can be done",
                    found=json.dumps(unknown)[:_SHOWN],
                    expected="ping, describe, prepare, run, stop",
                )

    def _outside(self) -> Outside:
        return Outside(
            clock=time.monotonic_ns,
            unix_s=time.time,
            cpu_ns=time.process_time_ns,
            is_stopped=self._stops,
            progress=self._tell,
            says=self._mention,
            descriptors=(self._lines.descriptor,),
        )

    def _stops(self) -> bool:
        self._hear(0)
        return self._is_stopped or self._lines.is_ended

    def _tell(self, progress: Progress) -> None:
        self._say("progress", second=progress.second, streams=to_json(progress.streams))

    def _mention(self, what: str) -> None:
        self._say("said", what=what)

    def _error(self, kind: str, what: str) -> None:
        self._write({"event": "error", "id": self._id, "class": kind, "what": what})

    def _say(self, event: str, **data: Json) -> None:
        self._write({"event": event, "id": self._id, **data})

    def _write(self, data: dict[str, Json]) -> None:
        self._out.write(json.dumps(data, separators=(",", ":")).encode() + b"\n")
        self._out.flush()


def _parsed(line: bytes) -> Mapping[str, Json] | None:
    try:
        data = parse_json(line)
    except SerialError:
        return None
    return data if isinstance(data, dict) else None


def _clock() -> dict[str, Json]:
    return {"unix_s": time.time(), "monotonic_ns": time.monotonic_ns()}


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    sys.exit(_TERMINATED)  # engines and sockets are closed on the way out


def main() -> int:
    """Serves standard input and output; returns the exit status."""
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else prints does not break the lines
    try:
        Agent(0, out).serve()
    except BrokenPipeError:  # whoever asked is gone
        return 1
    return 0
