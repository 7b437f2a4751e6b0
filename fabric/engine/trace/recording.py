"""An engine that writes a trace: a transport, a clock and an engine of which each passes on what it is told.

`RecordedEngine` is a subclass, against the habit of this house, so that an engine without a trace has no hook for one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

from fabric._version import __version__
from fabric.engine.client.address import Address
from fabric.engine.client.blocklink import BlockLink
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.engine import Engine
from fabric.engine.client.link import Link, News
from fabric.engine.client.opening import enter, make_link, measured
from fabric.engine.client.settings import Settings
from fabric.engine.client.work import Buffer, Future, Work
from fabric.engine.nvmeof.host import Connect, ConnectionId
from fabric.engine.trace.coding import Line, flat, plain, plain_error
from fabric.engine.trace.writer import TraceWriter
from fabric.engine.transport.base import Arena, Broken, DeviceRemoved, Event, Transport
from fabric.engine.transport.service import Service
from fabric.errors import EngineError
from fabric.policy import ShardPolicy
from fabric.serial import Json, to_json

__all__ = ("NOT_REPLAYED", "SCHEMA", "RecordedEngine", "RecordedTransport", "Recorder", "open_recorded")

SCHEMA: Final = 1
NOT_REPLAYED: Final = frozenset({"trace", "metrics"})  # settings that change nothing of what the engine does

PostT = TypeVar("PostT")


class Recorder:
    """What a run writes, in order.

    Args:
        writer: the file.
        clock: monotonic nanoseconds.
    """

    def __init__(self, writer: TraceWriter, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._clock = clock
        self._call: Line | None = None  # begun, and not written yet
        self._is_inside = False
        self._empty = 0

    def begin(
        self, address: Address, policy: ShardPolicy, settings: Settings, link: ControllerLink | BlockLink
    ) -> None:
        """Writes the header."""
        header: Line = {
            "k": "header",
            "schema": SCHEMA,
            "version": __version__,
            "address": type(address).__name__,
            "policy": to_json(policy),
            "settings": flat(settings, without=NOT_REPLAYED),
        }
        if isinstance(link, BlockLink):
            self._writer.write(header | {"device": flat(link.place), "command_ns": link.command_ns})
        else:
            controller = flat(link.controller.config)
            self._writer.write(header | {"controller": controller, "nsid": link.nsid, "path": flat(link.path)})

    def now_ns(self) -> int:
        """Returns the time; writes it down when a recorded call asks."""
        now_ns = self._clock()
        if self._is_inside:
            if self._call is not None and "ns" not in self._call:
                self._call["ns"] = now_ns
            else:
                self.note("clock", ns=now_ns)
        return now_ns

    @contextmanager
    def call(self, op: str, due_ns: int | None = None, **fields: Json) -> Iterator[Line]:
        """Records a call with what happens in it; the caller puts what it returns into the line that this yields.

        Args:
            op: its name.
            due_ns: of a step: when the engine wants the next one.
            fields: its arguments.
        """
        told: Line = {}
        self._call, self._is_inside, self._empty = {"k": "call", "op": op, **fields}, True, 0
        try:
            yield told
        except BaseException as error:
            self.note("end", op=op, raised=plain_error(error))
            self._writer.flush()
            raise
        else:
            now_ns = self._call.get("ns") if self._call is not None else None
            is_idle = op == "step" and isinstance(now_ns, int) and (due_ns is None or due_ns > now_ns)
            if told or not is_idle:
                self.note("end", op=op, **told)
        finally:
            self._call, self._is_inside = None, False

    def note(self, kind: str, **fields: Json) -> None:
        """Writes a line, and before it the call that it belongs to."""
        if self._call is not None:
            self._writer.write(self._call)
            self._call = None
        self._writer.write({"k": kind, **fields})
        self._empty = 0

    def polled(self, events: Sequence[Event], now_ns: int) -> None:
        """Writes what a transport told."""
        if not events:
            self._empty += 1
            return
        fields: Line = {"empty": self._empty} if self._empty else {}
        self.note("poll", ns=now_ns, events=[plain(one) for one in events], **fields)
        if any(isinstance(one, Broken | DeviceRemoved) for one in events):
            self._writer.flush()

    def flush(self) -> None:
        """Hands what is buffered to the system."""
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self._writer.close()

    def transport(self, inner: Transport[PostT], /) -> Transport[PostT]:
        """Returns the transport, recorded."""
        return RecordedTransport(inner, self)


class RecordedTransport(Generic[PostT]):
    """Satisfies `Transport[PostT]`.

    Args:
        inner: does the work.
        recorder: writes down what passes.
    """

    def __init__(self, inner: Transport[PostT], recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    def register(self, memory: memoryview) -> Arena:
        """See `Transport`."""
        with self._refusals():
            arena = self._inner.register(memory)
        self._recorder.note("register", bytes=memory.nbytes, address=arena.address, key=arena.key)
        return arena

    def connect(self, order: Connect, now_ns: int) -> None:
        """See `Transport`."""
        self._recorder.note("connect", ns=now_ns, order=plain(order))
        with self._refusals():
            self._inner.connect(order, now_ns)

    def post(self, batch: Sequence[PostT], now_ns: int) -> None:
        """See `Transport`."""
        self._recorder.note("post", ns=now_ns, posts=[plain(one) for one in batch])
        with self._refusals():
            self._inner.post(batch, now_ns)

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        """See `Transport`."""
        self._recorder.note("disconnect", ns=now_ns, connection=connection)
        self._inner.disconnect(connection, now_ns)

    def poll(self, now_ns: int) -> list[Event]:
        """See `Transport`."""
        events = self._inner.poll(now_ns)
        self._recorder.polled(events, now_ns)
        return events

    def next_timer_ns(self) -> int | None:
        """See `Transport`."""
        return self._inner.next_timer_ns()

    def fileno(self) -> int:
        """See `Transport`."""
        return self._inner.fileno()

    def close(self) -> None:
        """See `Transport`."""
        self._inner.close()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except EngineError as error:
            self._recorder.note("refused", error=plain_error(error))
            raise


class RecordedEngine(Engine):
    """An engine of which each call is recorded.

    Args:
        link, news, policy, settings: as for `Engine`.
        recorder: writes, and has the clock.
    """

    def __init__(
        self, link: Link, news: Sequence[News], policy: ShardPolicy, settings: Settings, recorder: Recorder
    ) -> None:
        self._recorder = recorder
        super().__init__(link, news, policy, settings, recorder.now_ns)

    def register(self, memory: memoryview | bytearray) -> Buffer:
        """See `Engine`."""
        with self._recorder.call("register", bytes=memoryview(memory).nbytes):
            return super().register(memory)

    def submit(self, batch: Iterable[Work]) -> list[Future]:
        """See `Engine`."""
        wanted = tuple(batch)
        with self._recorder.call("submit", works=[plain(one) for one in wanted]) as told:
            futures = super().submit(wanted)
            told["requests"] = [one.request for one in futures]
        return futures

    def cancel(self, future: Future) -> None:
        """See `Engine`."""
        with self._recorder.call("cancel", request=future.request):
            super().cancel(future)

    def step(self) -> list[Future]:
        """See `Engine`."""
        with self._recorder.call("step", due_ns=None if self._is_closed else self.next_timer_ns()) as told:
            ended = super().step()
            told.update(ended_line(self, ended))
        if any(one.error is not None for one in ended):
            self._recorder.flush()
        return ended

    def close(self) -> None:
        """See `Engine`."""
        if self._is_closed:
            return
        with self._recorder.call("close") as told:
            super().close()
            told.update(ended_line(self, self._ended))
        self._recorder.close()


def ended_line(engine: Engine, ended: Iterable[Future]) -> Line:
    """Returns what a step told its caller: futures that ended, and bytes in quarantine; without what is none."""
    futures: list[Json] = [[one.request, None if one.error is None else plain(one.error)] for one in ended]
    held = sum(view.length for view in engine.quarantined)
    return ({"ended": futures} if futures else {}) | ({"held": held} if held else {})


def open_recorded(
    path: Path,
    address: Address,
    policy: ShardPolicy,
    settings: Settings,
    service: Service | None,
    clock: Callable[[], int],
) -> Engine:
    """Returns an engine that writes a trace; arguments and errors as for `open_engine`.

    Raises:
        EnvironmentMissingError: the trace cannot be written.
    """
    recorder = Recorder(TraceWriter(path), clock)
    try:
        bare = make_link(address, policy, settings, service, recorder.transport)
        link = measured(bare, settings, clock)
    except BaseException:
        recorder.close()
        raise
    try:
        recorder.begin(address, policy, settings, bare)
        with recorder.call("open"):
            news, fitted = enter(link, policy, settings, recorder.now_ns)
        return RecordedEngine(link, news, fitted, settings, recorder)
    except BaseException:  # Ctrl-C too must leave no thread and no descriptor
        link.close()
        recorder.close()
        raise
