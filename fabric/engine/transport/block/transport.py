"""The block transport: posts are bytes of a device. Satisfies `Transport[BlockPost]`.

A connection here is a name under which posts are counted: it is there at once, and gone when none of its posts touches
memory any more. Calls that have begun cannot be taken back, so a post whose deadline passed is reported as held, and
released when its call returns.
"""

import errno
import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from fabric.engine.nvmeof.errors import CommandTimeoutError, status_error
from fabric.engine.nvmeof.host import Connect, ConnectionId, QueueMemory, Region
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.engine.transport.arenas import Arenas
from fabric.engine.transport.base import Arena, Connected, Disconnected, Done, Event, Released
from fabric.engine.transport.block.carriers import open_carrier
from fabric.engine.transport.block.device import BlockConfig, open_device
from fabric.engine.transport.block.job import NO_RUNS, By, Carrier, Job, Runs, WrongRunsError
from fabric.engine.transport.block.memory import Exports
from fabric.engine.transport.block.workers import SYSTEM, FileCalls
from fabric.engine.transport.signal import Signal
from fabric.errors import EngineError, LocalProtocolError, TransportError

__all__ = ("BlockOp", "BlockPost", "BlockTransport")

_NOWHERE: Final = Region(0, 0, 0)
_MOVES: Final = frozenset({"r", "w", "d"})


class BlockOp(StrEnum):
    """What to do."""

    READ = "r"
    WRITE = "w"
    WRITE_DURABLE = "d"
    FLUSH = "s"
    ZERO = "z"
    DISCARD = "t"


class BlockPost(NamedTuple):
    """One read or write of one range or many, a flush, or a range that shall be zeroes or hold nothing of worth.

    Attributes:
        connection: under which name.
        tag: told again by Done; not one that is open on this connection.
        op: what.
        offset: the first byte, on the device's alignment; 0 for a flush.
        region: registered memory, of aligned length; None where no data moves.
        deadline_ns: when to stop waiting, None: never.
        length: bytes to zero or discard, aligned; else 0.
        runs: ranges with their memory, in place of `offset` and `region`; carried out in any order, ended together.
    """

    connection: ConnectionId
    tag: int
    op: BlockOp
    offset: int = 0
    region: Region | None = None
    deadline_ns: int | None = None
    length: int = 0
    runs: Runs = NO_RUNS


@dataclass(slots=True)
class _Link:
    connection: ConnectionId
    jobs: "dict[int, Job[_Link]]" = field(default_factory=dict)
    is_going: bool = False


class BlockTransport:
    """One device, and what works on it.

    Args:
        config: which and how.
        calls: the system calls of threads of Python; none but these threads make others than the system's.

    Attributes:
        device: the open device.
        by: who carries out posts.

    Raises:
        EnvironmentMissingError: the device cannot be opened.
    """

    def __init__(self, config: BlockConfig, calls: FileCalls = SYSTEM) -> None:
        self._where = str(config.path)
        self.device = open_device(config)
        self._arenas = Arenas()
        self._links: dict[ConnectionId, _Link] = {}
        self._events: list[Event] = []
        self._deadlines: list[tuple[int, int, Job[_Link]]] = []
        self._order = itertools.count()
        self._signal = Signal()
        self._exports = Exports()
        self._carrier: Carrier[_Link]
        try:
            self.by, self._carrier = open_carrier(config, self.device, self._signal, self._exports.view, calls)
        except BaseException:  # Ctrl-C too must leave no descriptor
            self._signal.close()
            self.device.close()
            raise
        self._last_id = -1
        self._is_closed = False

    def register(self, memory: memoryview) -> Arena:
        """See `Transport`. Where the memory lies is not checked: the device refuses posts that are not aligned."""
        arena = self._arenas.register(memory)
        self._carrier.register(self._exports.add(arena.key, memory), memory.nbytes)
        return arena

    def connect(self, order: Connect, now_ns: int) -> None:
        """See `Transport`. There is nobody to greet: Connected follows at once."""
        del now_ns
        if order.connection <= self._last_id:
            raise LocalProtocolError("a connection id was used before", found=str(order.connection))
        self._last_id = order.connection
        self._links[order.connection] = _Link(order.connection)
        self._say(Connected(order.connection, b"", QueueMemory()))

    def post(self, batch: Sequence[BlockPost], now_ns: int) -> None:
        """See `Transport`."""
        del now_ns
        if len({(post.connection, post.tag) for post in batch}) < len(batch):
            raise LocalProtocolError("a tag comes twice in one batch", where=self._where)
        jobs = [(post, job) for post in batch if (job := self._job(post)) is not None]
        if not jobs:
            return
        try:
            self._carrier.put([job for _post, job in jobs])
        except WrongRunsError:
            for _post, job in jobs:
                self._check_runs(job.runs)
            raise
        for post, job in jobs:
            job.owner.jobs[post.tag] = job
            if post.deadline_ns is not None:
                heapq.heappush(self._deadlines, (post.deadline_ns, next(self._order), job))

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        """See `Transport`."""
        del now_ns
        link = self._links.get(connection)
        if link is None or link.is_going:
            return
        link.is_going = True
        self._carrier.cancel(tuple(link.jobs.values()))
        self._end_if_idle(link)

    def poll(self, now_ns: int) -> list[Event]:
        """See `Transport`."""
        for job in self._carrier.ended():
            self._finish(job)
        while self._deadlines and (self._deadlines[0][2].has_ended or self._deadlines[0][0] <= now_ns):
            job = heapq.heappop(self._deadlines)[2]
            if not job.has_ended:
                self._expire(job)
        events, self._events = self._events, []
        return events

    def next_timer_ns(self) -> int | None:
        """See `Transport`."""
        while self._deadlines and self._deadlines[0][2].has_ended:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def fileno(self) -> int:
        """See `Transport`."""
        return self._signal.fileno()

    def close(self) -> None:
        """See `Transport`. Waits for calls that have begun. Repeating it does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self._carrier.close()
        self._links.clear()
        self._exports.clear()
        self._arenas.clear()
        self._signal.close()
        self.device.close()

    def _say(self, event: Event) -> None:
        self._events.append(event)
        self._signal.set()

    def _job(self, post: BlockPost) -> "Job[_Link] | None":
        """Returns the job of a post, None when it is for a connection that is gone."""
        call, runs = post.op.value, post.runs
        if call in _MOVES:
            if not runs.firsts:
                address, length, key = post.region or _NOWHERE
                runs = Runs(1, (post.offset,), ((self._exports.numbers.get(key, -1), address, length),))
            if self.by is By.PYTHON:
                self._check_runs(runs)
        elif call != "s":
            self._check(post.offset, post.length)
        link = self._links.get(post.connection)
        if link is None or link.is_going:
            return None
        if post.tag in link.jobs:
            raise LocalProtocolError("a tag that is open already", where=self._where, found=str(post.tag))
        return Job(link, post.tag, call, runs, post.offset, post.length)

    def _check_runs(self, runs: Runs) -> None:
        """Says what is wrong with ranges. The compiled core checks for itself, and has this called to say it."""
        unit, firsts, views = runs
        if unit < 1 or len(firsts) != len(views):
            found = f"{len(firsts)} ranges of the device, {len(views)} of memory"
            raise LocalProtocolError("ranges that do not match", where=self._where, found=found)
        memories = self._exports.views
        for first, (number, offset, length) in zip(firsts, views, strict=True):
            if not 0 <= number < len(memories) or not 0 <= offset <= memories[number].nbytes - length:
                found = f"{length} bytes at {offset}, arena {number}"
                raise LocalProtocolError("memory that is not registered", where=self._where, found=found)
            self._check(first * unit, length)

    def _check(self, offset: int, length: int) -> None:
        unit, found = self.device.alignment, f"{length} bytes at {offset}"
        if length < 1 or offset % unit or length % unit:
            expected = f"multiples of {unit}"
            raise LocalProtocolError("a post off the alignment", where=self._where, expected=expected, found=found)
        if not 0 <= offset <= self.device.length - length:
            raise LocalProtocolError("a post outside the device", where=self._where, found=found)

    def _finish(self, job: "Job[_Link]") -> None:
        job.has_ended = True
        link = job.owner
        del link.jobs[job.tag]
        if link.is_going:
            self._end_if_idle(link)
        elif job.is_held:
            self._events.append(Released(link.connection, job.tag))
        else:
            error = _meaning(job, self._where) if job.error else None
            self._events.append(Done(link.connection, job.tag, error))

    def _expire(self, job: "Job[_Link]") -> None:
        link = job.owner
        if not link.is_going:
            job.is_held = True
            self._carrier.cancel((job,))
            late = CommandTimeoutError("a call did not return in time", where=self._where)
            self._events.append(Done(link.connection, job.tag, late, held=True))

    def _end_if_idle(self, link: _Link) -> None:
        if not link.jobs:
            del self._links[link.connection]
            self._say(Disconnected(link.connection, "taken down"))


def _meaning(job: "Job[_Link]", where: str) -> EngineError:
    if job.error in (errno.ENOSPC, errno.EDQUOT):
        return status_error(Status.CAPACITY_EXCEEDED | DNR, where=where)
    if job.error in (errno.EROFS, errno.EBADF, errno.EPERM):
        return status_error(Status.NAMESPACE_WRITE_PROTECTED | DNR, where=where)
    if job.error == errno.EINVAL:
        return LocalProtocolError("memory off the alignment", where=where, remedy="Use `allocate` for the arena.")
    if job.error in (errno.ENODEV, errno.ENXIO):
        return TransportError("the device is gone", where=where)
    return status_error(Status.UNRECOVERED_READ_ERROR if job.call == "r" else Status.WRITE_FAULT, where=where)
