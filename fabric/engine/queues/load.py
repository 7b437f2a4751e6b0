"""What flies now: per queue, per path, per window. Plain state of the dealer, which dealing policies may read.

A window bounds the bytes in flight of one target or towards one receiving port. Lanes that do not fit wait at it in
line, and nobody passes the first: else small transfers would keep a large one out for ever.
"""

from dataclasses import dataclass
from typing import Protocol

from fabric.engine.queues.request import Op, QueueId, Transfer, TransferId

__all__ = ("LivePath", "LiveQueue", "Path", "Queue", "Waiter", "Window")


@dataclass(frozen=True, slots=True)
class Path:
    """The two ports that a queue's packets go between.

    Attributes:
        host_port: receives what is read.
        target_port: receives what is written.
        local: both ends are on one rail, so that nothing crosses the spine.
    """

    host_port: str
    target_port: str
    local: bool = True


@dataclass(frozen=True, slots=True)
class Queue:
    """One connected I/O queue.

    Attributes:
        id: chosen by the engine; a queue that comes again under its old id gets its old keys (rendezvous).
        target: subsystem that it serves.
        path: its ports.
        depth: commands that it holds at once; the policy's depth is applied on top.
    """

    id: QueueId
    target: str
    path: Path
    depth: int


class Waiter(Protocol):
    """What stands in line at a window."""

    def wake(self) -> None:
        """Tries again at the next dealing."""
        ...


class Window:
    """Bytes in flight under one bound.

    Attributes:
        limit: bytes that may fly.
        used: bytes that fly.
        waiters: lanes in line, first come first; the dealer's own (a dict, for its order and its removal in O(1)).
    """

    __slots__ = ("limit", "used", "waiters")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.waiters: dict[Waiter, None] = {}

    def is_first(self, waiter: Waiter) -> bool:
        """Returns whether `waiter` is the first in line. Whoever is not may not go while there is a line."""
        return next(iter(self.waiters)) is waiter

    def leave(self, waiter: Waiter) -> None:
        """Takes `waiter` out of the line, and wakes who is first then."""
        self.waiters.pop(waiter, None)
        self.wake_first()

    def wake_first(self) -> None:
        """Has who is first in line try again."""
        if self.waiters:
            next(iter(self.waiters)).wake()


class LivePath:
    """One path of one target.

    Attributes:
        path: its ports.
        read: window of what its queues read.
        write: window of what they write.
        roomy: its queues that would take one more command.
        queues: its open queues.
    """

    __slots__ = ("path", "queues", "read", "roomy", "write")

    def __init__(self, path: Path, read: Window, write: Window) -> None:
        self.path = path
        self.read = read
        self.write = write
        self.roomy = 0
        self.queues = 0

    def window(self, op: Op) -> Window:
        """Returns the window of the port that receives the data."""
        return self.read if op is Op.READ else self.write


class LiveQueue:
    """One queue with what flies on it.

    Attributes:
        id: as the engine named it.
        queue: as it was added.
        path: its path's state.
        limit: commands that may fly now; lower than the depth while degraded.
        bytes: in flight.
        flying: transfers in flight.
        is_open: neither removed nor lost.
        is_lost: its connection is gone, and what flies may still land.
        room: it would take one more command.
    """

    __slots__ = ("bytes", "flying", "id", "is_lost", "is_open", "limit", "path", "queue", "room")

    def __init__(self, queue: Queue, path: LivePath, limit: int) -> None:
        self.id = queue.id
        self.queue = queue
        self.path = path
        self.limit = limit
        self.bytes = 0
        self.flying: dict[TransferId, Transfer] = {}
        self.is_open = True
        self.is_lost = False
        self.room = False
        path.queues += 1
        self.recount()

    def close(self) -> None:
        """Takes no more commands."""
        self.is_open = False
        self.path.queues -= 1
        self.recount()

    def recount(self) -> None:
        """Brings `room`, and the path's count of roomy queues, up to date."""
        room = self.is_open and len(self.flying) < self.limit
        if room is not self.room:
            self.room = room
            self.path.roomy += 1 if room else -1
