"""The deadlines of live requests. O(log n) a request; those of ended requests are dropped when they come up."""

from collections.abc import Container, Sized
from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from fabric.engine.queues.request import RequestId

__all__ = ("Deadlines",)

SLACK: Final = 64


class _Live(Container[RequestId], Sized, Protocol):
    """The requests that have not ended."""


class Deadlines:
    """A heap of deadlines.

    Args:
        live: requests that have not ended; the dealer's own.
    """

    def __init__(self, live: _Live) -> None:
        self._live = live
        self._heap: list[tuple[int, RequestId]] = []

    def add(self, at_ns: int, request: RequestId) -> None:
        """Adds the deadline of a request that is live by now."""
        if len(self._heap) > 2 * len(self._live) + SLACK:
            self._heap = [entry for entry in self._heap if entry[1] in self._live]
            heapify(self._heap)
        heappush(self._heap, (at_ns, request))

    def pop_due(self, now_ns: int) -> RequestId | None:
        """Returns a live request whose deadline has come, and forgets it; None when there is no more."""
        at_ns = self.next_ns()
        if at_ns is None or at_ns > now_ns:
            return None
        return heappop(self._heap)[1]

    def entries(self) -> int:
        """Returns how many deadlines are kept, those of ended requests included; bounded by the live ones."""
        return len(self._heap)

    def next_ns(self) -> int | None:
        """Returns the earliest deadline of a live request."""
        heap = self._heap
        while heap and heap[0][1] not in self._live:
            heappop(heap)
        return heap[0][0] if heap else None
