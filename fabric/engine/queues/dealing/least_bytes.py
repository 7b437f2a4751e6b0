"""Least bytes in flight: the emptiest queue. A slow queue keeps its bytes longer, so it is dealt less."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from fabric.engine.queues.dealing.base import arguments
from fabric.engine.queues.load import LivePath, LiveQueue
from fabric.engine.queues.request import Transfer
from fabric.policy import Parameter

__all__ = ("LeastBytes", "least_bytes")

Entry = tuple[int, int, LiveQueue]
SLACK: Final = 64


def least_bytes(parameters: Sequence[Parameter]) -> "LeastBytes":
    """Returns the policy; it has no parameters."""
    arguments("least-bytes", parameters, {})
    return LeastBytes()


class LeastBytes:
    """For each path, its queues by bytes in flight; of equals, the one that has been so for longest.

    An entry counts while its bytes are still the queue's and the queue has room; each change adds one, and what no
    longer counts is dropped when it comes to the top, or all at once when it outweighs the rest. O(log n) a change.
    """

    def __init__(self) -> None:
        self._heaps: dict[LivePath, list[Entry]] = {}
        self._count = 0

    def added(self, queue: LiveQueue) -> None:
        """Takes the queue in."""
        self.changed(queue)

    def removed(self, queue: LiveQueue) -> None:
        """Drops the queue."""
        if not queue.path.queues:
            self._heaps.pop(queue.path, None)

    def changed(self, queue: LiveQueue) -> None:
        """Takes the load of the queue anew."""
        self._count += 1
        entry = (queue.bytes, self._count, queue)
        heap = self._heaps.get(queue.path)
        if not heap:
            self._heaps[queue.path] = [entry]
        elif heap[0][2] is queue:
            heapreplace(heap, entry)  # its own entry is out of date now
        else:
            if len(heap) > 8 * queue.path.queues + SLACK:
                self._compact(heap)
            heappush(heap, entry)

    def choose(self, transfer: Transfer, paths: Sequence[LivePath]) -> LiveQueue:
        """Returns the emptiest queue."""
        del transfer
        best = self.top(paths[0])
        if len(paths) > 1:
            for path in paths[1:]:
                best = min(best, self.top(path))
        return best[2]

    def top(self, path: LivePath) -> Entry:
        """Returns bytes, age and queue of the emptiest queue with room on the path, which must have one."""
        heap = self._heaps[path]
        entry = heap[0]
        while entry[0] != entry[2].bytes or not entry[2].room:
            heappop(heap)
            entry = heap[0]
        return entry

    def entries(self, path: LivePath) -> int:
        """Returns how many entries the path's heap has; bounded, however often loads change."""
        return len(self._heaps[path])

    @staticmethod
    def _compact(heap: list[Entry]) -> None:
        newest = {entry[2]: entry for entry in sorted(heap) if entry[2].room and entry[2].bytes == entry[0]}
        heap[:] = newest.values()
        heapify(heap)
