"""Runs a job: opens its streams, starts them at their time, steps them, ends them. One thread, one clock.

    open ──▶ wait for the start ──▶ bursts and pauses, or one long burst ──▶ drain ──▶ close

What is open when the time is over is waited for and verified; its bytes do not count. A stream that cannot be opened
or loses its way is an error in its result and stops no other.
"""

import contextlib
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fabric.engine import client
from fabric.engine.client import Description, Engine, Flush, Settings, Write
from fabric.engine.client.work import Work
from fabric.engine.load.blocks import BlockStream
from fabric.engine.load.bulk import BulkReceiver, BulkSender, bulk_address
from fabric.engine.load.model import SECTOR_BYTES, Job, JobResult, Region, Stream, StreamResult, checked_job
from fabric.engine.load.payload import FIRST_VERSION, sector
from fabric.engine.load.regions import Grounds, Places
from fabric.engine.load.worker import Moment, Pacer, Shared, Worker
from fabric.errors import FabricError, LocalProtocolError, TransportError

__all__ = ("OPEN_S", "Outside", "Progress", "StreamProgress", "describe", "prepare", "run_job")

_SECOND: Final = 1_000_000_000
OPEN_S: Final = 30.0
"""What a stream may take to open. A request of the RDMA CM that is lost goes out again after 4 s and more, and a host
opens many queues."""
_OPEN_TRIES: Final = 3
_OPEN_PAUSE_S: Final = 0.2
_LONGEST_WAIT_NS: Final = 200_000_000  # how long a request to stop may go unnoticed
_ASK_NS: Final = 20_000_000
_ABORT_NS: Final = 3 * _SECOND  # for what was given up to settle
_SPARE_NS: Final = 5 * _SECOND  # beyond the deadline of a request
_LATEST_S: Final = 3600.0  # how far ahead a start may lie
_PREPARE_BYTES: Final = 1 << 20
_PREPARE_DEPTH: Final = 8


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """What one stream has come to until now."""

    name: str
    bytes: int
    requests: int
    errors: int
    flaw_count: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a job or a preparation stands. `second` counts from the start; negative before it."""

    second: int
    streams: tuple[StreamProgress, ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """What a run needs from outside.

    Attributes:
        clock: monotonic nanoseconds. unix_s: seconds since 1970. cpu_ns: of this process.
        is_stopped: asked some times a second, and soon after a descriptor is ready.
        descriptors: readable when `is_stopped` should be asked.
        progress: told about once a second.
        says: told what a reader has to know: that this process listens somewhere.
    """

    clock: Callable[[], int]
    unix_s: Callable[[], float]
    cpu_ns: Callable[[], int]
    is_stopped: Callable[[], bool]
    progress: Callable[[Progress], None]
    says: Callable[[str], None]
    descriptors: tuple[int, ...] = ()


def prepare(
    stream: Stream, region: Region, *, run_id: int, has_consent: bool, grounds: Grounds, outside: Outside
) -> int:
    """Writes every sector of a region with version 1, durably; returns the bytes written. What stood there is lost.

    Args:
        stream: the way to the namespace.
        region: of it, whole sectors.
        run_id: stands in each sector.
        has_consent: somebody who may has said that the region holds nothing of worth.
        grounds: remembers it.
        outside: clock and who stops it.

    Raises:
        LocalProtocolError: there is no consent, the region is not right, or it was stopped.
        FabricError: the namespace cannot be opened or written.
    """
    if not has_consent:
        remedy = "Say so explicitly; every byte of the region is overwritten."
        raise LocalProtocolError("nobody said that this region may be overwritten", where=stream.name, remedy=remedy)
    with _opened(stream, outside.is_stopped) as engine:
        unit = engine.namespace.namespace.block_bytes
        size = min(_PREPARE_BYTES, region.blocks * unit // SECTOR_BYTES * SECTOR_BYTES)
        if not size or region.blocks * unit % SECTOR_BYTES:
            found = f"{region.blocks} blocks of {unit} bytes"
            raise LocalProtocolError("a region is whole sectors", found=found, expected=f"n x {SECTOR_BYTES} bytes")
        Places(engine.namespace, region, SECTOR_BYTES, 1, is_checked=True)  # refuses what is not aligned or not there
        return _Preparing(engine, region, run_id, grounds, outside).run(size, stream.name)


def describe(stream: Stream) -> Description:
    """Returns what a stream reaches: sizes, queues, controller.

    Raises:
        FabricError: the namespace cannot be opened.
    """
    with _opened(stream) as engine:
        return client.describe(engine)


class _Preparing:
    def __init__(self, engine: Engine, region: Region, run_id: int, grounds: Grounds, outside: Outside) -> None:
        self._engine, self._region, self._outside = engine, region, outside
        self._unit = engine.namespace.namespace.block_bytes
        self._ground = grounds.of(run_id, engine.namespace)

    def run(self, size: int, name: str) -> int:
        engine, outside, total = self._engine, self._outside, self._region.blocks * self._unit
        together = size * _PREPARE_DEPTH
        buffer = engine.allocate(min(together, -(-total // size) * size))
        begin_ns = told_ns = outside.clock()
        for first in range(0, total, together):
            if outside.is_stopped():
                raise LocalProtocolError("it was stopped", where=name, found=f"{first} of {total} bytes are written")
            batch: list[Work] = []
            for at in range(first, min(first + together, total), size):
                length, where = min(size, total - at), at - first
                buffer.memory[where : where + length] = self._sectors(at, length)
                batch.append(Write(self._region.first_lba + at // self._unit, (buffer.view(where, length),)))
            self._end(batch)
            if outside.clock() - told_ns >= _SECOND:
                told_ns = outside.clock()
                done = StreamProgress(name, min(first + together, total), 0, 0, 0)
                outside.progress(Progress((told_ns - begin_ns) // _SECOND, (done,)))
        self._end([Flush()])
        self._ground.prepared(self._region.first_lba * self._unit // SECTOR_BYTES, total // SECTOR_BYTES)
        return total

    def _end(self, batch: Sequence[Work]) -> None:
        futures = self._engine.submit(batch)
        self._engine.wait(futures)
        for future in futures:
            future.result()

    def _sectors(self, at: int, length: int) -> bytes:
        blocks, lba = SECTOR_BYTES // self._unit, self._region.first_lba + at // self._unit
        origin = self._ground.origin
        return b"".join(sector(origin, lba + one * blocks, FIRST_VERSION) for one in range(length // SECTOR_BYTES))


def run_job(job: Job, *, grounds: Grounds, outside: Outside) -> JobResult:
    """Returns what the job came to.

    Args:
        job: what to do.
        grounds: what this process has written where.
        outside: clocks, and who stops it.

    Raises:
        LocalProtocolError: the job cannot be run, or starts in another hour.
    """
    checked_job(job)
    if job.start_unix_s is not None and job.start_unix_s - outside.unix_s() > _LATEST_S:
        found = f"in {job.start_unix_s - outside.unix_s():.0f} s"
        raise LocalProtocolError("the start lies too far ahead", where=job.name, found=found, expected="within an hour")
    with contextlib.ExitStack() as stack:
        run = _Run(job, grounds, outside, stack)
        return run.run()


def _opened(stream: Stream, given_up: Callable[[], bool] | None = None) -> Engine:
    """Returns the engine of a stream. A target that was too busy to connect in time is asked again, within `OPEN_S`."""
    settings = Settings(tos=stream.tos, metrics=False)
    end_ns = time.monotonic_ns() + round(OPEN_S * _SECOND)
    for left in reversed(range(_OPEN_TRIES)):
        settings = replace(settings, open_ns=max(_SECOND, end_ns - time.monotonic_ns()))
        try:
            return client.open_engine(stream.url, policy=stream.policy, settings=settings, given_up=given_up)
        except TransportError:
            if not left or time.monotonic_ns() >= end_ns or (given_up is not None and given_up()):
                raise
        time.sleep(_OPEN_PAUSE_S)
    raise AssertionError("the last try ends in one way or the other")


class _Run:
    def __init__(self, job: Job, grounds: Grounds, outside: Outside, stack: contextlib.ExitStack) -> None:
        self._job, self._grounds, self._outside, self._stack = job, grounds, outside, stack
        self._shared = Shared(outside.clock, Pacer(job.max_bytes_per_s))
        self._places: dict[tuple[str, int], Places] = {}
        self._workers: list[Worker] = []
        self._failed: dict[str, StreamResult] = {}
        self._asked_ns = 0
        self._is_stopped = False

    def run(self) -> JobResult:
        outside, job = self._outside, self._job
        for stream in job.streams:
            if not self._stops():
                self._open(stream)
        now_ns = outside.clock()
        ahead_s = 0.0 if job.start_unix_s is None else max(0.0, job.start_unix_s - outside.unix_s())
        begin_ns = now_ns + round(ahead_s * 1e9)
        for worker in self._workers:
            worker.ledger.begin_ns = begin_ns
        started_unix_s = outside.unix_s() + ahead_s
        cpu_ns = outside.cpu_ns()
        end_ns = self._work(begin_ns)
        cpu_ns = outside.cpu_ns() - cpu_ns
        self._drain()
        done = {one.ledger.name: one.result() for one in self._workers}
        streams = tuple((done | self._failed).get(one.name, StreamResult(one.name)) for one in job.streams)
        seconds = max(0, end_ns - begin_ns) / _SECOND
        return JobResult(job.name, started_unix_s, seconds, streams, cpu_ns / _SECOND, not self._is_stopped)

    def _open(self, stream: Stream) -> None:
        try:
            self._workers.append(self._worker(stream))
        except FabricError as error:
            self._failed[stream.name] = StreamResult(
                stream.name, errors=((type(error).__name__, 1),), first_error=str(error)
            )

    def _worker(self, stream: Stream) -> Worker:
        job = self._job
        address = bulk_address(stream.url)
        if address is not None and address.is_listener:
            receiver = BulkReceiver(stream, address)
            self._stack.callback(self._outside.says, f"no longer listens on {address.host} port {address.port}")
            self._stack.callback(receiver.close)
            peer = f"for {address.peer} only" if address.peer else "for any peer"
            self._outside.says(f"listens on {address.host} port {address.port}, {peer}, until the job ends")
            return receiver
        if address is not None:
            sender = BulkSender(stream, address, job, self._shared.pacer)
            self._stack.callback(sender.close)
            return sender
        engine = _opened(stream, self._stops)
        self._stack.callback(engine.close)
        described = engine.namespace
        key = (described.namespace.target, described.namespace.nsid)
        if key not in self._places:
            # a writer is alone at its place, so there have to be places left for all others
            least = 2 * job.readers * len(job.streams) if job.write_share else 1
            self._places[key] = Places(described, job.region, job.size_bytes, least, is_checked=job.check)
        return BlockStream(
            stream, job, engine, self._grounds.of(job.run_id, described), self._places[key], self._shared
        )

    def _work(self, begin_ns: int) -> int:
        """Returns when the time was over, or who asked to stop."""
        outside, end_ns = self._outside, begin_ns + round(self._job.seconds * 1e9)
        told = now_ns = outside.clock()
        while now_ns < end_ns and not self._stops(now_ns):
            is_on, burst, change_ns = self._window(now_ns - begin_ns)
            moment = Moment(now_ns, is_on, burst, is_counted=True)
            if not self._step(moment):
                self._wait(min(end_ns, begin_ns + change_ns), outside.clock())
            now_ns = outside.clock()
            if now_ns - told >= _SECOND:
                told = now_ns
                self._tell(now_ns - begin_ns)
        return min(now_ns, end_ns)

    def _window(self, since_ns: int) -> tuple[bool, int | None, int]:
        """Returns whether requests may go out, in which burst, and when that changes."""
        job = self._job
        if since_ns < 0:
            return False, None, 0
        if not job.on_ns:
            return True, None, round(job.seconds * 1e9)
        burst, inside = divmod(since_ns, job.on_ns + job.off_ns)
        start = burst * (job.on_ns + job.off_ns)
        is_on = inside < job.on_ns
        return is_on, burst, start + (job.on_ns if is_on else job.on_ns + job.off_ns)

    def _step(self, moment: Moment) -> bool:
        stepped = [one.step(moment) for one in self._workers]
        return any(stepped)

    def _wait(self, until_ns: int, now_ns: int) -> None:
        poller = select.poll()
        for worker in self._workers:
            for descriptor, events in worker.descriptors():
                poller.register(descriptor, events)
            due_ns = worker.due_ns()
            if due_ns is not None and due_ns > now_ns:  # one that is past waits for a descriptor or another reader
                until_ns = min(until_ns, due_ns)
        for descriptor in self._outside.descriptors:
            poller.register(descriptor, select.POLLIN)
        left_ns = min(until_ns, now_ns + _LONGEST_WAIT_NS) - now_ns
        poller.poll(max(0, -(-left_ns // 1_000_000)))

    def _stops(self, now_ns: int | None = None) -> bool:
        if not self._is_stopped and (now_ns is None or now_ns - self._asked_ns >= _ASK_NS):
            self._asked_ns = self._outside.clock()
            self._is_stopped = self._outside.is_stopped()
        return self._is_stopped

    def _drain(self) -> None:
        """Waits for what is open, within the longest deadline; gives it up when that is over or when told to stop."""
        longest_ns = max((one.policy.deadline_ns for one in self._job.streams), default=0)
        self._until_idle(longest_ns + _SPARE_NS)
        if not all(one.is_idle for one in self._workers):
            for worker in self._workers:
                worker.abort()
            self._until_idle(_ABORT_NS, is_last=True)

    def _until_idle(self, limit_ns: int, *, is_last: bool = False) -> None:
        now_ns = self._outside.clock()
        end_ns = now_ns + limit_ns
        while now_ns < end_ns and not all(one.is_idle for one in self._workers):
            if not is_last and self._stops(now_ns):
                return
            if not self._step(Moment(now_ns, is_on=False, burst=None, is_counted=False)):
                self._wait(end_ns, self._outside.clock())
            now_ns = self._outside.clock()

    def _tell(self, since_ns: int) -> None:
        self._outside.progress(Progress(since_ns // _SECOND, tuple(_progress(one) for one in self._workers)))


def _progress(worker: Worker) -> StreamProgress:
    one = worker.ledger
    moved, requests = one.bytes_read + one.bytes_written, one.reads + one.writes
    return StreamProgress(one.name, moved, requests, one.errors.total(), one.flaw_count)
