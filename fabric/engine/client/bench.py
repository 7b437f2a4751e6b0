"""How fast a namespace is: readers that each keep one request open, for a while, at random places. Bounded memory.

| checked | how |
|---|---|
| reads | each piece is digested once before the clock starts, and again whenever it is read |
| writes | each is read back and compared; a reader has places of its own, so no other write comes between |

What is read back is not counted, but takes its time: rates with a check are lower than without.
"""

import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Final

from fabric.engine.client.engine import Engine
from fabric.engine.client.latencies import Latencies
from fabric.engine.client.work import Future, Read, Write
from fabric.engine.metrics import FlowMetrics, QueueMetrics
from fabric.engine.queues import RequestId, View
from fabric.engine.transport.driver import wait
from fabric.errors import LocalProtocolError

__all__ = ("BenchRow", "BenchSpec", "QueueRow", "bench")

_GIB: Final = 1 << 30
_STAMP_BYTES: Final = 4096  # each such unit of a checked write carries its place and turn
_DIGEST_BYTES: Final = 8
_SECOND: Final = 1_000_000_000
_LONGEST_WAIT_NS: Final = 200_000_000  # how long Ctrl-C may go unnoticed
_LEARN_BYTES: Final = 4 << 20
_HOPELESS: Final = 16  # failures without one success that end a run
_STAMP: Final = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """What to measure.

    Attributes:
        length: bytes of a request, whole blocks.
        readers: requests that are open at a time.
        duration_ns: how long.
        write: writes in place of reads; what stands there is lost.
        verify: every byte is checked, see the module.
        lba: the first block of the places.
        span_bytes: how far they reach, at least a request for each reader of checked writes; cut at the namespace.
        seed: of places and patterns.
    """

    length: int
    readers: int = 16
    duration_ns: int = 5 * _SECOND
    write: bool = False
    verify: bool = False
    lba: int = 0
    span_bytes: int = _GIB
    seed: int = 0


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue in the time: transfers and bytes that landed well; time from issue to landing, within 28 %."""

    queue: int
    transfers: int
    bytes: int
    p50_ns: int | None
    p99_ns: int | None


@dataclass(frozen=True, slots=True)
class BenchRow:
    """What was measured.

    Attributes:
        op: read or write.
        length: bytes of a request.
        readers: as asked.
        requests, bytes, elapsed_ns: that ended well within the time.
        cpu_ns: of this process, all threads: a target in it included.
        p50_ns, p99_ns, p999_ns, highest_ns: of requests, within 1 %; None without one.
        failures: requests that failed, by class of the error.
        wrong: requests whose bytes were not those expected; None when nothing was checked.
        is_complete: nobody stopped it.
        queues: each.
    """

    op: str
    length: int
    readers: int
    requests: int
    bytes: int
    elapsed_ns: int
    cpu_ns: int
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    highest_ns: int
    failures: tuple[tuple[str, int], ...] = ()
    wrong: int | None = None
    is_complete: bool = True
    queues: tuple[QueueRow, ...] = ()

    @property
    def bytes_per_s(self) -> float:
        """The rate."""
        return self.bytes * _SECOND / self.elapsed_ns if self.elapsed_ns else 0.0

    @property
    def requests_per_s(self) -> float:
        """The rate."""
        return self.requests * _SECOND / self.elapsed_ns if self.elapsed_ns else 0.0

    @property
    def cpu_s_per_gib(self) -> float | None:
        """CPU seconds a GiB; None when nothing was moved."""
        return self.cpu_ns / _SECOND * _GIB / self.bytes if self.bytes else None


def bench(
    engine: Engine,
    spec: BenchSpec,
    *,
    clock: Callable[[], int],
    cpu_clock: Callable[[], int],
    is_stopped: Callable[[], bool],
    progress: Callable[[int, int], None],
) -> BenchRow:
    """Returns what was measured, until `is_stopped` if that comes first.

    Args:
        engine: open, with metrics; nothing else is asked of it meanwhile.
        spec: what to measure.
        clock: monotonic nanoseconds, the engine's.
        cpu_clock: nanoseconds of CPU time of this process.
        is_stopped: asked some times a second.
        progress: told the time since the begin and the bytes, about once a second.

    Raises:
        LocalProtocolError: the request is no whole number of blocks, or the places have no room.
        EngineError: not one request ended well, or the connection is lost.
    """
    run = _Run(engine, spec, clock, is_stopped)
    run.learn()
    before = {one.queue: one.flow(run.op) for one in engine.metrics().queues}
    cpu_ns, begin_ns = cpu_clock(), clock()
    run.measure(begin_ns, progress)
    elapsed_ns, cpu_ns = clock() - begin_ns, cpu_clock() - cpu_ns
    queues = tuple(_queue_row(one, before.get(one.queue, FlowMetrics()), run.op) for one in engine.metrics().queues)
    run.finish()
    latencies = run.latencies
    p50, p99, p999 = (latencies.percentile_ns(one) for one in (50, 99, 99.9))
    return BenchRow(
        run.op,
        spec.length,
        spec.readers,
        latencies.count,
        latencies.count * spec.length,
        elapsed_ns,
        cpu_ns,
        p50,
        p99,
        p999,
        latencies.highest_ns,
        tuple(sorted(run.failures.items())),
        run.wrong if spec.verify else None,
        not is_stopped(),
        queues,
    )


def _queue_row(after: QueueMetrics, before: FlowMetrics, op: str) -> QueueRow:
    flow = after.flow(op)
    service = flow.service.since(before.service)
    transfers, moved = flow.transfers - before.transfers, flow.bytes - before.bytes
    return QueueRow(after.queue, transfers, moved, service.percentile_ns(50), service.percentile_ns(99))


@dataclass(slots=True)
class _Reader:
    """One request at a time, in memory of its own."""

    index: int
    place: int = 0
    turn: int = 0
    started_ns: int = 0
    reads_back: bool = False


class _Run:
    """The measuring itself."""

    def __init__(
        self, engine: Engine, spec: BenchSpec, clock: Callable[[], int], is_stopped: Callable[[], bool]
    ) -> None:
        self.op = "write" if spec.write else "read"
        self.latencies = Latencies()
        self.failures: Counter[str] = Counter()
        self.wrong = 0
        self._engine, self._spec, self._clock, self._is_stopped = engine, spec, clock, is_stopped
        self._places = _places(engine, spec)
        self._reads_back = spec.write and spec.verify
        self._buffer = engine.allocate(spec.length * spec.readers * (2 if self._reads_back else 1))
        self._draw = Random(spec.seed)  # noqa: S311, repeatable on purpose
        self._digests = bytearray()
        self._flying: dict[RequestId, tuple[_Reader, Future]] = {}
        self._idle = [_Reader(index) for index in range(spec.readers)]
        self._unsettled: list[tuple[_Reader, Future]] = []
        if spec.write:
            pattern = self._draw.randbytes(spec.length)
            for index in range(spec.readers):
                self._memory(index)[:] = pattern

    def learn(self) -> None:
        """Digests every place, where reads are to be checked."""
        spec, engine = self._spec, self._engine
        if not spec.verify or spec.write:
            return
        together = min(max(spec.readers, _LEARN_BYTES // spec.length), self._places)
        buffer = engine.allocate(together * spec.length)
        for first in range(0, self._places, together):
            if self._is_stopped():
                return
            length = min(together, self._places - first) * spec.length
            (future,) = engine.submit([Read(self._lba(first), (buffer.view(0, length),))])
            engine.wait([future])
            future.result()
            for at in range(0, length, spec.length):
                self._digests += _digest(buffer.memory[at : at + spec.length])

    def measure(self, begin_ns: int, progress: Callable[[int, int], None]) -> None:
        """Keeps every reader busy until the time is over."""
        engine, end_ns, told_ns = self._engine, begin_ns + self._spec.duration_ns, begin_ns
        now_ns = begin_ns
        while now_ns < end_ns and not self._is_stopped():
            self._launch(now_ns)
            ended = engine.step()
            now_ns = self._clock()
            for future in ended:
                self._end(future, now_ns)
            if not ended:
                due_ns = engine.next_timer_ns()
                until_ns = min(end_ns, now_ns + _LONGEST_WAIT_NS, end_ns if due_ns is None else due_ns)
                wait([engine.fileno()], max(0, until_ns - now_ns))
                now_ns = self._clock()
            if now_ns - told_ns >= _SECOND:
                told_ns = now_ns
                progress(now_ns - begin_ns, self.latencies.count * self._spec.length)

    def finish(self) -> None:
        """Ends what is open, so that the next run has the queues to itself."""
        open_now = [future for _reader, future in self._flying.values()]
        if self._is_stopped():
            for future in open_now:
                self._engine.cancel(future)
        else:
            self._engine.settle(open_now)
        self._engine.step()

    def _launch(self, now_ns: int) -> None:
        if self._unsettled:
            self._idle += [reader for reader, future in self._unsettled if future.settled]
            self._unsettled = [one for one in self._unsettled if not one[1].settled]
        if not self._idle:
            return
        idle, self._idle = self._idle, []
        futures = self._engine.submit([self._work(reader, now_ns) for reader in idle])
        for reader, future in zip(idle, futures, strict=True):
            self._flying[future.request] = reader, future

    def _work(self, reader: _Reader, now_ns: int) -> Read | Write:
        spec, index = self._spec, reader.index
        if reader.reads_back:
            return Read(self._lba(reader.place), (self._view(spec.readers + index),))
        reader.started_ns = now_ns
        if self._reads_back:
            own = (self._places - index + spec.readers - 1) // spec.readers
            reader.place = index + self._draw.randrange(own) * spec.readers
            reader.turn += 1
            _stamp(self._memory(index), reader.place, reader.turn)
        else:
            reader.place = self._draw.randrange(self._places)
        return (Write if spec.write else Read)(self._lba(reader.place), (self._view(index),))

    def _end(self, future: Future, now_ns: int) -> None:
        reader, _future = self._flying.pop(future.request)
        if future.error is not None:
            self.failures[type(future.error).__name__] += 1
            reader.reads_back = False
            self._unsettled.append((reader, future))
            if not self.latencies.count and self.failures.total() >= max(_HOPELESS, self._spec.readers):
                raise future.error
            return
        self._idle.append(reader)
        if reader.reads_back:
            reader.reads_back = False
            self.wrong += self._memory(reader.index) != self._memory(self._spec.readers + reader.index)
            return
        self.latencies.add(now_ns - reader.started_ns)
        reader.reads_back = self._reads_back
        if self._digests:
            at = reader.place * _DIGEST_BYTES
            self.wrong += self._digests[at : at + _DIGEST_BYTES] != _digest(self._memory(reader.index))

    def _lba(self, place: int) -> int:
        return self._spec.lba + place * (self._spec.length // self._engine.namespace.namespace.block_bytes)

    def _view(self, index: int) -> View:
        return self._buffer.view(index * self._spec.length, self._spec.length)

    def _memory(self, index: int) -> memoryview:
        length = self._spec.length
        return self._buffer.memory[index * length : (index + 1) * length]


def _places(engine: Engine, spec: BenchSpec) -> int:
    described = engine.namespace
    unit = described.namespace.block_bytes
    if spec.length < 1 or spec.length % unit:
        found, expected = f"{spec.length} bytes", f"n x {unit} bytes"
        raise LocalProtocolError("a request is no whole number of blocks", found=found, expected=expected)
    room = min(spec.span_bytes, (described.blocks - spec.lba) * unit)
    places, least = room // spec.length, spec.readers if spec.write and spec.verify else 1
    if places < least:
        found, expected = f"{max(room, 0)} bytes from block {spec.lba} on", f"{least * spec.length} bytes"
        raise LocalProtocolError("the requests have no room", found=found, expected=expected)
    return places


def _digest(memory: memoryview) -> bytes:
    return blake2b(memory, digest_size=_DIGEST_BYTES).digest()


def _stamp(memory: memoryview, place: int, turn: int) -> None:
    for at in range(0, memory.nbytes, _STAMP_BYTES):
        _STAMP.pack_into(memory, at, place, turn)
