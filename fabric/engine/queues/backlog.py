"""What waits in the lanes: put in, put back, and cleared of what nobody wants any more."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from fabric.engine.queues.fleet import Fleet
from fabric.engine.queues.lane import Lane
from fabric.engine.queues.request import Request, Transfer

__all__ = ("Backlog",)

SLACK: Final = 64


class Backlog:
    """The lanes of all targets.

    Args:
        fleet: has the lanes.
        ready: lanes to try next; the dealer's own.

    Attributes:
        waiting: transfers in lanes, those of failed requests included until they are dropped.
    """

    def __init__(self, fleet: Fleet, ready: deque[Lane]) -> None:
        self.ready = ready
        self.waiting = 0
        self._fleet = fleet
        self._dead = 0  # of these, at most so many of failed requests

    def add(self, request: Request, transfers: Sequence[Transfer], now_ns: int) -> None:
        """Puts the transfers of a new request in line."""
        self.waiting += len(transfers)
        if len(request.extents) == 1:
            lane = self._fleet.target(transfers[0].namespace.target).lane(request.op)
            lane.add(request.urgency, request.tenant, transfers, now_ns)
            return
        for target, run in groupby(transfers, lambda transfer: transfer.namespace.target):
            lane = self._fleet.target(target).lane(request.op)
            lane.add(request.urgency, request.tenant, tuple(run), now_ns)

    def add_again(self, request: Request, transfer: Transfer) -> None:
        """Puts a transfer that was dealt before at the front of its line."""
        self.waiting += 1
        lane = self._fleet.target(transfer.namespace.target).lane(request.op)
        lane.add_again(request.urgency, request.tenant, transfer._replace(attempt=transfer.attempt + 1))

    def abandon(self, request: Request, count: int) -> None:
        """Takes note that `count` waiting transfers of a request are not wanted any more.

        Lanes drop them when their turn comes. Where no turn comes (a target is down) they must not pile up.
        """
        self._dead += count
        for target in self._targets(request):  # the head of its lane may be gone, so that the lane may go on
            self._fleet.target(target).lane(request.op).wake()
        if self._dead > SLACK and 2 * self._dead > self.waiting:
            self.purge()

    def purge(self) -> int:
        """Drops the transfers of failed requests from every line, and returns how many are left."""
        if self._dead:
            self.waiting = sum(lane.purge() for lane in self._fleet.lanes())
            self._dead = 0
        return self.waiting

    @staticmethod
    def _targets(request: Request) -> Iterable[str]:
        return dict.fromkeys(extent.namespace.target for extent in request.extents)
