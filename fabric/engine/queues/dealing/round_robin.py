"""Round robin: paths in turn, and on each path its queues in turn; one that is full is passed over."""

from collections import deque
from collections.abc import Sequence

from fabric.engine.queues.dealing.base import arguments
from fabric.engine.queues.load import LivePath, LiveQueue
from fabric.engine.queues.request import Transfer
from fabric.policy import Parameter

__all__ = ("RoundRobin", "round_robin")


def round_robin(parameters: Sequence[Parameter]) -> "RoundRobin":
    """Returns a round robin; it has no parameters."""
    arguments("round-robin", parameters, {})
    return RoundRobin()


class RoundRobin:
    """A ring of queues for each path. A full queue leaves its ring when its turn comes, and joins again with room.

    Paths come first so that a port with few queues is dealt as much as one with many.
    """

    def __init__(self) -> None:
        self._rings: dict[LivePath, deque[LiveQueue]] = {}
        self._inside: set[LiveQueue] = set()
        self._turn: dict[LivePath, int] = {}  # when it was dealt last; the least is next
        self._dealt = 0

    def added(self, queue: LiveQueue) -> None:
        """Puts the queue last in its path's ring."""
        self.changed(queue)

    def removed(self, queue: LiveQueue) -> None:
        """Drops the queue."""
        if queue in self._inside:
            self._inside.discard(queue)
            self._rings[queue.path].remove(queue)
        if not queue.path.queues:
            self._rings.pop(queue.path, None)
            self._turn.pop(queue.path, None)

    def changed(self, queue: LiveQueue) -> None:
        """Lets a queue that has room again join its ring."""
        if queue not in self._inside:
            self._inside.add(queue)
            self._rings.setdefault(queue.path, deque()).append(queue)
            self._turn.setdefault(queue.path, 0)

    def choose(self, transfer: Transfer, paths: Sequence[LivePath]) -> LiveQueue:
        """Returns the queue whose turn it is on the path whose turn it is."""
        del transfer
        path = paths[0] if len(paths) == 1 else min(paths, key=self._turn.__getitem__)
        self._dealt += 1
        self._turn[path] = self._dealt
        ring = self._rings[path]
        while not ring[0].room:
            self._inside.discard(ring.popleft())
        ring.rotate(-1)
        return ring[-1]
