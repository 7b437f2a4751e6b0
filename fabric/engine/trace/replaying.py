"""A run again from its trace: a fresh engine, told what the recorded one was told, has to do what that did.

No network is reached, no time read, and nothing waited for: the transport of a replay is a script. Which transport the
recording had makes no difference. The first thing that is done otherwise ends the replay.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar, cast

from fabric.engine.client.blocklink import BlockLink, Place
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.engine import Engine
from fabric.engine.client.opening import enter
from fabric.engine.client.settings import Settings
from fabric.engine.client.work import Future
from fabric.engine.nvmeof.host import Connect, ConnectionId, Controller, HostConfig, PostSend
from fabric.engine.queues import Path as Ports
from fabric.engine.trace.coding import Line, error_from, event_from, flat_from, plain, plain_error, work_from
from fabric.engine.trace.recording import SCHEMA, ended_line
from fabric.engine.trace.script import Differs, Over, Script, TraceError
from fabric.engine.transport.base import Arena, Event
from fabric.engine.transport.block import BlockPost
from fabric.errors import EngineError
from fabric.policy import ShardPolicy
from fabric.serial import from_json

__all__ = ("ReplayReport", "replay")

_FAR_NS: Final = 1 << 62  # beyond every deadline, each time

PostT = TypeVar("PostT")


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """How a replay went.

    Attributes:
        trace: the file.
        calls: of the engine's callers that were done again.
        lines: of the file that were replayed.
        line: where the run went another way, None if nowhere.
        expected: what was recorded there.
        found: what was done instead.
        note: why the recording ends before the run did, "" when it does not.
    """

    trace: str
    calls: int
    lines: int
    line: int | None = None
    expected: str = ""
    found: str = ""
    note: str = ""

    @property
    def same(self) -> bool:
        """Whether all that is recorded happened again."""
        return self.line is None

    def __str__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        if self.same:
            return f"same: {self.lines} lines, {self.calls} calls{note}"
        return f"differs at line {self.line}{note}\n  expected {self.expected}\n  found    {self.found}"


def replay(path: Path) -> ReplayReport:
    """Runs an engine again from a trace, up to where the two differ or the trace ends.

    Raises:
        EnvironmentMissingError: the file cannot be read.
        TraceError: it is no trace, or of a version that this one cannot replay.
    """
    script = Script(path)
    header = script.peek()
    if header is None or header.get("k") != "header":
        raise script.wrong("this is no trace: it has no header")
    if header.get("schema") != SCHEMA:
        raise script.wrong("a trace of another version", header.get("schema"))
    try:
        with _Run(script, script.take()) as run:
            return run.report(str(path))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise script.wrong(f"a line that cannot be replayed: {error}") from error


class _Run:
    def __init__(self, script: Script, header: Line) -> None:
        self._script = script
        self._policy = from_json(ShardPolicy, header["policy"])
        self._settings = cast("Settings", flat_from(Settings, header["settings"]))
        self._stage = _Stage(script)
        self._link = _link(header, self._policy, self._stage)
        self._engine: Engine | None = None
        self._futures: dict[int, Future] = {}
        self._calls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ended: object) -> None:
        self._stage.is_over = True
        if self._engine is not None:
            with suppress(EngineError, LookupError):  # it may have been torn out of the middle of a call
                self._engine.close()
        self._link.close()

    def report(self, trace: str) -> ReplayReport:
        script = self._script
        try:
            while (call := script.peek()) is not None:
                if call["k"] != "call":
                    raise script.differs("nothing: no call is under way")
                self._again(script.take())
        except Over:
            note = script.note or "the recording ends inside of a call"
            return ReplayReport(trace, self._calls, script.number - 1, note=note)
        except Differs as one:
            return ReplayReport(trace, self._calls, one.line - 1, one.line, one.expected, one.found, script.note)
        return ReplayReport(trace, self._calls, script.number - 1, note=script.note)

    def _again(self, call: Line) -> None:
        op = cast("str", call["op"])
        self._stage.begin(call)
        try:
            told = self._do(op, call)
        except (Over, Differs, TraceError):
            raise
        except Exception as error:  # noqa: BLE001, whatever was raised then has to be raised now
            told = {"raised": plain_error(error)}
        self._script.match({"k": "end", "op": op, **told})
        self._calls += 1

    def _do(self, op: str, call: Line) -> Line:
        if op == "open":
            news, fitted = enter(self._link, self._policy, self._settings, self._stage.now_ns)
            self._engine = Engine(self._link, news, fitted, self._settings, self._stage.now_ns)
            return {}
        engine = self._engine
        if engine is None:
            raise self._script.wrong("a call before the engine was open", op)
        match op:
            case "submit":
                futures = engine.submit([work_from(one) for one in cast("list[Any]", call["works"])])
                self._futures |= {one.request: one for one in futures}
                return {"requests": [one.request for one in futures]}
            case "step":
                ended = engine.step()
                for one in ended:
                    self._futures.pop(one.request, None)
                return ended_line(engine, ended)
            case "register":
                engine.allocate(cast("int", call["bytes"]))
            case "cancel":
                if (future := self._futures.get(cast("int", call["request"]))) is not None:
                    engine.cancel(future)
            case "close":
                engine.close()
                return ended_line(engine, engine.step())
            case _:
                raise self._script.wrong("a call that is not known", op)
        return {}


def _link(header: Line, policy: ShardPolicy, stage: "_Stage") -> ControllerLink | BlockLink:
    if "device" in header:
        place = cast("Place", flat_from(Place, header["device"]))
        device: _Scripted[BlockPost] = _Scripted(stage)
        return BlockLink(device, place, policy, cast("int", header["command_ns"]))
    config = cast("HostConfig", flat_from(HostConfig, header["controller"], hostid=bytes.fromhex))
    ports = cast("Ports", flat_from(Ports, header["path"]))
    capsules: _Scripted[PostSend] = _Scripted(stage)
    return ControllerLink(Controller(config), capsules, cast("int", header["nsid"]), ports)


class _Stage:
    """Where a script is played: the clock, and what is told and expected.

    Attributes:
        script: the lines.
        is_over: nothing is compared any more, and time is up.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.is_over = False
        self._call_ns: int | None = None
        self._far_ns = 0
        self._empty = 0

    def begin(self, call: Line) -> None:
        """A call begins."""
        self._call_ns = cast("int | None", call.get("ns"))
        self._empty = 0

    def now_ns(self) -> int:
        """Returns the time as it was."""
        if self.is_over:
            self._far_ns += _FAR_NS
            return self._far_ns
        if self._call_ns is not None:
            now_ns, self._call_ns = self._call_ns, None
            return now_ns
        line = self.script.peek()
        if line is not None and line["k"] != "clock":
            raise self.script.differs("the clock is read")
        return cast("int", self.script.take()["ns"])

    def polled(self, now_ns: int) -> list[Event]:
        """Returns what a poll told."""
        if self.is_over:
            return []
        line = self.script.peek()
        if line is None:
            raise Over
        if line["k"] != "poll":
            return []
        if self._empty < cast("int", line.get("empty", 0)):
            self._empty += 1
            return []
        if line["ns"] != now_ns:
            raise self.script.differs({"k": "poll", "ns": now_ns})
        self._empty = 0
        events = [event_from(one) for one in cast("list[Any]", line["events"])]
        self.script.take()
        return events

    def did(self, kind: str, **fields: Any) -> None:
        """The host did something.

        Raises:
            EngineError: the transport refused it then.
        """
        if self.is_over:
            return
        self._empty = 0
        self.script.match({"k": kind, **fields})
        self.refuse()

    def refuse(self) -> None:
        """Raises what the transport raised."""
        line = self.script.peek()
        if line is not None and line["k"] == "refused":
            raise error_from(self.script.take()["error"])


class _Scripted(Generic[PostT]):
    """Satisfies `Transport[PostT]`."""

    def __init__(self, stage: _Stage) -> None:
        self._stage = stage
        self._ready = os.eventfd(1, os.EFD_NONBLOCK | os.EFD_CLOEXEC)  # always readable: a replay never waits

    def register(self, memory: memoryview) -> Arena:
        """See `Transport`."""
        stage = self._stage
        stage.refuse()
        line = stage.script.peek() or {}
        address, key = line.get("address"), line.get("key")
        stage.did("register", bytes=memory.nbytes, address=address, key=key)
        return Arena(memory, cast("int", address), cast("int", key))

    def connect(self, order: Connect, now_ns: int) -> None:
        """See `Transport`."""
        self._stage.did("connect", ns=now_ns, order=plain(order))

    def post(self, batch: Sequence[PostT], now_ns: int) -> None:
        """See `Transport`."""
        self._stage.did("post", ns=now_ns, posts=[plain(one) for one in batch])

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        """See `Transport`."""
        self._stage.did("disconnect", ns=now_ns, connection=connection)

    def poll(self, now_ns: int) -> list[Event]:
        """See `Transport`."""
        return self._stage.polled(now_ns)

    def next_timer_ns(self) -> int | None:
        """See `Transport`."""
        return None

    def fileno(self) -> int:
        """See `Transport`."""
        return self._ready

    def close(self) -> None:
        """See `Transport`."""
        os.close(self._ready)
