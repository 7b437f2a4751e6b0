"""One stream of reads and writes on one namespace: keeps its readers busy, and verifies what they read.

Each reader has a buffer with a guard before and behind it. Before a read the buffer is filled with a pattern that only
this read has; after it every sector and both guards are compared. Times are from the call that sends a request until
its end is seen, so they hold the time that other requests of this thread took to be verified.
"""

import select
from dataclasses import dataclass
from random import Random
from typing import Final

from fabric.engine.client.engine import Engine
from fabric.engine.client.work import Buffer, Future, Read, Write
from fabric.engine.load.ledger import Ledger
from fabric.engine.load.model import SECTOR_BYTES, Flaw, Job, Stream, StreamResult
from fabric.engine.load.payload import (
    GUARD_BYTES,
    damage,
    guard_damage,
    guard_pattern,
    poison_pattern,
    sector,
    sector_matches,
)
from fabric.engine.load.regions import Ground, Places
from fabric.engine.load.worker import Moment, Shared
from fabric.errors import EngineError

__all__ = ("BlockStream",)

_HOPELESS: Final = 16  # failures without one success that end a stream
_REST_NS: Final = 10_000_000  # after a failure, so that a target that refuses all is not flooded


@dataclass(slots=True)
class _Reader:
    """One request at a time, and its buffer: guard, data, guard."""

    index: int
    memory: memoryview
    guard: bytes
    place: int = 0
    is_write: bool = False
    started_ns: int = 0
    burst: int | None = None
    number: int = 0


class BlockStream:
    """A stream at work. Owns its engine.

    Args:
        stream: which.
        job: what all streams do.
        engine: open.
        ground: what stands there.
        places: shared with the job's other paths to the namespace.
        shared: with all streams.
    """

    def __init__(
        self, stream: Stream, job: Job, engine: Engine, ground: Ground, places: Places, shared: Shared
    ) -> None:
        self.ledger = Ledger(stream.name)
        self._job, self._engine, self._ground, self._places = job, engine, ground, places
        self._clock, self._pacer = shared
        self._draw = Random(f"{job.seed} {stream.name}")  # noqa: S311, places, no secrets
        rounded = -(-job.size_bytes // GUARD_BYTES) * GUARD_BYTES
        self._stride = rounded + 2 * GUARD_BYTES
        self._buffer: Buffer = engine.allocate(self._stride * job.readers)
        self._idle = [self._reader(index) for index in range(job.readers)]
        self._flying: dict[int, tuple[_Reader, Future]] = {}
        self._unsettled: list[tuple[_Reader, Future]] = []
        self._number = 0
        self._rest_ns = 0
        self._is_over = False

    def _reader(self, index: int) -> _Reader:
        guard, memory = guard_pattern(index), self._buffer.memory[index * self._stride : (index + 1) * self._stride]
        memory[:GUARD_BYTES] = guard
        memory[self._job.size_bytes + GUARD_BYTES :][:GUARD_BYTES] = guard
        return _Reader(index, memory, guard)

    def step(self, moment: Moment) -> bool:
        """Does what there is to do, without waiting; returns whether there was something."""
        if self._unsettled:
            self._release()
        sent = self._launch(moment)
        ended = self._engine.step()
        if ended:
            seen = moment._replace(now_ns=self._clock())
            for future in ended:
                self._end(future, seen)
        return bool(ended) or sent

    def descriptors(self) -> tuple[tuple[int, int], ...]:
        """Returns what to wait on."""
        return ((self._engine.fileno(), select.POLLIN),)

    def due_ns(self) -> int | None:
        """Returns when to step although no descriptor is ready."""
        due = [] if (engine_ns := self._engine.next_timer_ns()) is None else [engine_ns]
        if self._idle and not self._is_over:
            due += [one for one in (self._pacer.due_ns, self._rest_ns or None) if one is not None]
        return min(due) if due else None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is open."""
        return not self._flying and not self._unsettled

    def abort(self) -> None:
        """Gives up what is open."""
        self._is_over = True
        for _reader, future in list(self._flying.values()):
            self._engine.cancel(future)

    def result(self) -> StreamResult:
        """Returns what it came to."""
        return self.ledger.result(self._engine.policy)

    def close(self) -> None:
        """Closes the engine."""
        self._engine.close()

    def _launch(self, moment: Moment) -> bool:
        if not moment.is_on or not self._idle or self._is_over or moment.now_ns < self._rest_ns:
            return False
        going: list[_Reader] = []
        while self._idle and self._pacer.is_open(moment.now_ns):
            going.append(self._idle.pop())
            self._pacer.spend(self._job.size_bytes, moment.now_ns)
        if not going:
            return False
        work = [self._work(reader, moment) for reader in going]
        started_ns = self._clock()
        for reader in going:
            reader.started_ns = started_ns
        try:
            futures = self._engine.submit(work)
        except EngineError as error:  # the way is lost: what was open ends in `step`
            for reader in going:
                self._places.leave(reader.place)
            self.ledger.failed(error, moment.burst)
            self._is_over = True
            return False
        for reader, future in zip(going, futures, strict=True):
            self._flying[future.request] = reader, future
        self.ledger.began(moment.burst)
        return True

    def _work(self, reader: _Reader, moment: Moment) -> Read | Write:
        job, share = self._job, self._job.write_share
        reader.is_write = share > 0 and self._draw.random() < share
        reader.place = self._places.take(self._draw, write=reader.is_write)
        reader.burst = moment.burst
        self._number += 1
        reader.number = self._number
        data = reader.memory[GUARD_BYTES : GUARD_BYTES + job.size_bytes]
        if reader.is_write:
            data[:] = self._fresh(reader.place)
        elif job.check:
            data[:] = poison_pattern(reader.number, job.size_bytes)
        view = self._buffer.view(reader.index * self._stride + GUARD_BYTES, job.size_bytes)
        return (Write if reader.is_write else Read)(self._places.lba(reader.place), (view,))

    def _fresh(self, place: int) -> bytes:
        if not self._job.check:
            return self._draw.randbytes(8).ljust(self._job.size_bytes, b"\0")
        count, blocks, lba = self._sectors, self._places.sector_blocks, self._places.lba(place)
        versions = self._ground.next_versions(self._places.sector(place), count)
        return b"".join(sector(self._ground.origin, lba + at * blocks, one) for at, one in enumerate(versions))

    @property
    def _sectors(self) -> int:
        return self._job.size_bytes // SECTOR_BYTES

    def _end(self, future: Future, moment: Moment) -> None:
        reader, _future = self._flying.pop(future.request)
        if future.error is not None:
            self._fail(reader, future, future.error, moment)
            return
        if moment.is_counted:
            took_ns = moment.now_ns - reader.started_ns
            self.ledger.ended(self._job.size_bytes, moment.now_ns, took_ns, write=reader.is_write)
        if self._job.check:
            if reader.is_write:
                self._ground.written(self._places.sector(reader.place), self._sectors)
            else:
                self._verify(reader)
            self._look_at_guards(reader)
        self._free(reader)

    def _fail(self, reader: _Reader, future: Future, error: EngineError, moment: Moment) -> None:
        self._unsettled.append((reader, future))
        if self._is_over:
            return  # given up by ourselves
        self.ledger.failed(error, reader.burst)
        self._rest_ns = moment.now_ns + _REST_NS
        is_vain = not self.ledger.reads and not self.ledger.writes
        self._is_over = is_vain and self.ledger.errors.total() >= max(_HOPELESS, self._job.readers)

    def _release(self) -> None:
        settled = [reader for reader, future in self._unsettled if future.settled]
        self._unsettled = [one for one in self._unsettled if not one[1].settled]
        for reader in settled:
            self._free(reader)

    def _free(self, reader: _Reader) -> None:
        self._places.leave(reader.place)
        self._idle.append(reader)

    def _verify(self, reader: _Reader) -> None:
        data = reader.memory[GUARD_BYTES : GUARD_BYTES + self._job.size_bytes].tobytes()
        lba, blocks, origin = self._places.lba(reader.place), self._places.sector_blocks, self._ground.origin
        versions = self._ground.versions(self._places.sector(reader.place), self._sectors)
        for at, version in enumerate(versions):
            offset, here = at * SECTOR_BYTES, lba + at * blocks
            if version is None or sector_matches(data, offset, origin, here, version):
                continue
            if not self.ledger.wants_flaws:
                self.ledger.flawed(None, reader.burst)
                continue
            poison = poison_pattern(reader.number, SECTOR_BYTES)
            found = damage(data[offset : offset + SECTOR_BYTES], origin, here, version, poison)
            if found is not None:
                flaw = Flaw(self.ledger.name, here, found.offset, found.kind, found.expected, found.found)
                self.ledger.flawed(flaw, reader.burst)

    def _look_at_guards(self, reader: _Reader) -> None:
        behind = GUARD_BYTES + self._job.size_bytes
        for at in (0, behind):
            guard = reader.memory[at : at + GUARD_BYTES]
            found = guard_damage(guard.tobytes(), reader.guard)
            if found is not None:
                lba, offset = self._places.lba(reader.place), at + found.offset - GUARD_BYTES
                flaw = Flaw(self.ledger.name, lba, offset, found.kind, found.expected, found.found)
                self.ledger.flawed(flaw, reader.burst)
                guard[:] = reader.guard  # so that it is told once
