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
from typing import NamedTuple

from fabric.engine.nvmeof.errors import CommandTimeoutError, status_error
from fabric.engine.nvmeof.host import Connect, ConnectionId, QueueMemory, Region
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.engine.transport.arenas import Arenas
from fabric.engine.transport.base import Arena, Connected, Disconnected, Done, Event, Released
from fabric.engine.transport.block.device import BlockConfig, open_device
from fabric.engine.transport.block.workers import SYSTEM, FileCalls, Job, Workers
from fabric.engine.transport.signal import Signal
from fabric.errors import EngineError, LocalProtocolError, TransportError

__all__ = ("BlockOp", "BlockPost", "BlockTransport")

_NO_MEMORY = memoryview(b"")


class BlockOp(StrEnum):
    """What to do."""

    READ = "r"
    WRITE = "w"
    WRITE_DURABLE = "d"
    FLUSH = "s"
    ZERO = "z"
    DISCARD = "t"


class BlockPost(NamedTuple):
    """One read or write of consecutive bytes, a flush, or bytes that shall be zeroes or hold nothing of worth.

    Attributes:
        connection: under which name.
        tag: told again by Done; not one that is open on this connection.
        op: what.
        offset: the first byte, on the device's alignment; 0 for a flush.
        region: registered memory, of aligned length; None where no data moves.
        deadline_ns: when to stop waiting, None: never.
        length: bytes to zero or discard, aligned; else 0.
    """

    connection: ConnectionId
    tag: int
    op: BlockOp
    offset: int = 0
    region: Region | None = None
    deadline_ns: int | None = None
    length: int = 0


@dataclass(slots=True)
class _Link:
    connection: ConnectionId
    jobs: dict[int, Job] = field(default_factory=dict)
    is_going: bool = False


class BlockTransport:
    """One device, and the threads that work on it.

    Args:
        config: which and how.
        calls: the system calls.

    Raises:
        EnvironmentMissingError: the device cannot be opened.
    """

    def __init__(self, config: BlockConfig, calls: FileCalls = SYSTEM) -> None:
        self._where = str(config.path)
        self.device = open_device(config)
        self._arenas = Arenas()
        self._links: dict[ConnectionId, _Link] = {}
        self._events: list[Event] = []
        self._deadlines: list[tuple[int, int, Job]] = []
        self._order = itertools.count()
        self._signal = Signal()
        self._workers = Workers(self.device.descriptor, config.threads, self.device.cpus, self._signal, calls)
        self._last_id = -1

    def register(self, memory: memoryview) -> Arena:
        """See `Transport`. Where the memory lies is not checked: the device refuses posts that are not aligned."""
        return self._arenas.register(memory)

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
        jobs = [(post, self._job(post)) for post in batch]
        for post, job in jobs:
            if isinstance(link := job.owner, _Link):
                link.jobs[post.tag] = job
                if post.deadline_ns is not None:
                    heapq.heappush(self._deadlines, (post.deadline_ns, next(self._order), job))
                self._workers.put(job)

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        """See `Transport`."""
        del now_ns
        link = self._links.get(connection)
        if link is None or link.is_going:
            return
        link.is_going = True
        for job in link.jobs.values():
            job.is_cancelled = True
        self._end_if_idle(link)

    def poll(self, now_ns: int) -> list[Event]:
        """See `Transport`."""
        self._signal.clear()
        ended = self._workers.ended
        while ended:
            self._finish(ended.popleft())
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
        """See `Transport`. Waits for calls that have begun."""
        for link in self._links.values():
            for job in link.jobs.values():
                job.is_cancelled = True
        self._workers.join()
        self._links.clear()
        self._arenas.clear()
        self._signal.close()
        self.device.close()

    def _say(self, event: Event) -> None:
        self._events.append(event)
        self._signal.set()

    def _job(self, post: BlockPost) -> Job:
        view = _NO_MEMORY if post.region is None else self._arenas.view(post.region)
        unit, length = self.device.alignment, view.nbytes or post.length
        if post.op is not BlockOp.FLUSH and (length < 1 or post.offset % unit or length % unit):
            expected, found = f"multiples of {unit}", f"{length} bytes at {post.offset}"
            raise LocalProtocolError("a post off the alignment", where=self._where, expected=expected, found=found)
        if not 0 <= post.offset <= self.device.length - length:
            found = f"{length} bytes at {post.offset}"
            raise LocalProtocolError("a post outside the device", where=self._where, found=found)
        link = self._links.get(post.connection)
        if link is None or link.is_going:
            return Job(None, post.tag, post.op.value, view, post.offset, post.length)
        if post.tag in link.jobs:
            raise LocalProtocolError("a tag that is open already", where=self._where, found=str(post.tag))
        return Job(link, post.tag, post.op.value, view, post.offset, post.length)

    def _finish(self, job: Job) -> None:
        job.has_ended = True
        link = job.owner
        if not isinstance(link, _Link):
            return
        del link.jobs[job.tag]
        if link.is_going:
            self._end_if_idle(link)
        elif job.is_held:
            self._events.append(Released(link.connection, job.tag))
        else:
            error = _meaning(job, self._where) if job.error else None
            self._events.append(Done(link.connection, job.tag, error))

    def _expire(self, job: Job) -> None:
        link = job.owner
        if isinstance(link, _Link) and not link.is_going:
            job.is_held = job.is_cancelled = True
            late = CommandTimeoutError("a call did not return in time", where=self._where)
            self._events.append(Done(link.connection, job.tag, late, held=True))

    def _end_if_idle(self, link: _Link) -> None:
        if not link.jobs:
            del self._links[link.connection]
            self._say(Disconnected(link.connection, "taken down"))


def _meaning(job: Job, where: str) -> EngineError:
    if job.error in (errno.ENOSPC, errno.EDQUOT):
        return status_error(Status.CAPACITY_EXCEEDED | DNR, where=where)
    if job.error in (errno.EROFS, errno.EBADF, errno.EPERM):
        return status_error(Status.NAMESPACE_WRITE_PROTECTED | DNR, where=where)
    if job.error == errno.EINVAL:
        return LocalProtocolError("memory off the alignment", where=where, remedy="Use `allocate` for the arena.")
    if job.error in (errno.ENODEV, errno.ENXIO):
        return TransportError("the device is gone", where=where)
    return status_error(Status.UNRECOVERED_READ_ERROR if job.call == "r" else Status.WRITE_FAULT, where=where)
