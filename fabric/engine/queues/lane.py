"""One direction at one target: what waits there, which of it is next, and whether it may go.

Demand goes before prefetch, but prefetch that waits is dealt one transfer each `aging_ns`, so that it never starves and
never costs demand more than that. The head of a lane is never passed by what stands behind it: if it does not fit, the
lane waits in line at the windows that it needs (see `load`).
"""

from collections import deque
from collections.abc import Container, Mapping, Sequence

from fabric.engine.queues.dealing.base import Dealing
from fabric.engine.queues.fair import Tenants
from fabric.engine.queues.load import LivePath, LiveQueue, Window
from fabric.engine.queues.request import Op, RequestId, Transfer, Urgency
from fabric.errors import LocalProtocolError
from fabric.policy import ShardPolicy

__all__ = ("Lane",)


class Lane:
    """What waits to be read from, or written to, one target.

    Args:
        op: read or write.
        policy: quantum, shares, aging.
        window: the target's.
        dealing: the target's.
        live: requests that have not ended; the dealer's own.
        ready: lanes that the dealer tries next; the dealer's own.
    """

    __slots__ = (
        "_aging_ns",
        "_dealing",
        "_demand",
        "_paths",
        "_prefetch",
        "_prefetch_ns",
        "_ready",
        "_routes",
        "_target",
        "_waits",
        "is_ready",
        "op",
    )

    def __init__(
        self,
        op: Op,
        policy: ShardPolicy,
        window: Window,
        dealing: Dealing,
        live: Container[RequestId],
        ready: "deque[Lane]",
    ) -> None:
        weights: Mapping[str, int] = {share.tenant: share.weight for share in policy.shares}
        self.op = op
        self.is_ready = False
        self._ready = ready
        self._target = window
        self._dealing = dealing
        self._demand = Tenants(policy.transfer_bytes, weights, live)
        self._prefetch = Tenants(policy.transfer_bytes, weights, live) if policy.demand_first else self._demand
        self._aging_ns = policy.aging_ns
        self._prefetch_ns = 0  # since when prefetch has waited, or when it was dealt last
        self._routes: tuple[tuple[LivePath, Window], ...] = ()
        self._paths: tuple[LivePath, ...] = ()  # of the routes
        self._waits: tuple[Window, ...] = ()

    def wake(self) -> None:
        """Has the dealer try the lane again, if anything waits in it."""
        if not self.is_ready and (self._demand.ring or self._prefetch.ring):
            self.is_ready = True
            self._ready.append(self)

    def routes(self, paths: Sequence[LivePath]) -> None:
        """Takes the paths that have open queues."""
        self._routes = tuple((path, path.window(self.op)) for path in paths)
        self._paths = tuple(paths)
        self.wake()

    def add(self, urgency: Urgency, tenant: str, transfers: Sequence[Transfer], now_ns: int) -> None:
        """Puts transfers in the line of their class and tenant."""
        if urgency is Urgency.PREFETCH:
            if not self._prefetch.ring:
                self._prefetch_ns = now_ns
            self._prefetch.add(tenant, transfers)
        else:
            self._demand.add(tenant, transfers)
        self.wake()

    def add_again(self, urgency: Urgency, tenant: str, transfer: Transfer) -> None:
        """Puts a transfer that was dealt before at the front of its line."""
        waiting = self._prefetch if urgency is Urgency.PREFETCH else self._demand
        waiting.add_first(tenant, transfer)
        self.wake()

    def purge(self) -> int:
        """Drops the transfers of requests that have ended, and returns how many are left."""
        left = self._demand.purge()
        return left + self._prefetch.purge() if self._prefetch is not self._demand else left

    def deal(self, now_ns: int) -> tuple[LiveQueue, Transfer] | None:
        """Returns the next transfer with its queue, and counts its bytes as flying; None when nothing may go.

        Raises:
            LocalProtocolError: the dealing policy chose a queue that has no room or was not offered.
        """
        waiting = self._demand
        transfer = waiting.head()
        prefetch = self._prefetch
        if prefetch.ring and (transfer is None or now_ns - self._prefetch_ns >= self._aging_ns):
            aged = prefetch.head()
            if aged is not None:
                waiting, transfer = prefetch, aged
        queue = None if transfer is None else self._place(transfer)
        if transfer is None or queue is None:
            if transfer is None and self._waits:
                self._wait_at(())
            return None
        waiting.take()
        if waiting is prefetch:
            self._prefetch_ns = now_ns
        return queue, transfer

    def _place(self, transfer: Transfer) -> LiveQueue | None:
        length = transfer.length
        target = self._target
        if target.used + length > target.limit or (target.waiters and not target.is_first(self)):
            self._wait_at((target,))
            return None
        paths: Sequence[LivePath] = self._paths
        for path, window in self._routes:
            if not path.roomy or window.used + length > window.limit or window.waiters:
                paths = self._open_paths(length)
                break
        if not paths:
            # Only where a queue has room: who stands in line for what it could not use holds up others.
            self._wait_at(tuple({window: None for path, window in self._routes if path.roomy}))
            return None
        queue = self._dealing.choose(transfer, paths)
        if not queue.room or queue.path not in paths:
            raise LocalProtocolError("the dealing policy chose a queue that may not take it", where=f"queue {queue.id}")
        target.used += length
        (queue.path.read if self.op is Op.READ else queue.path.write).used += length
        if self._waits:
            self._wait_at(())
        return queue

    def _open_paths(self, length: int) -> list[LivePath]:
        return [
            path
            for path, window in self._routes
            if path.roomy and window.used + length <= window.limit and (not window.waiters or window.is_first(self))
        ]

    def _wait_at(self, windows: tuple[Window, ...]) -> None:
        before, self._waits = self._waits, windows
        for window in windows:
            window.waiters.setdefault(self)
        for window in before:
            if window not in windows:
                window.leave(self)
