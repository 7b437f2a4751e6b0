"""Deficit round robin between tenants (Shreedhar and Varghese, Efficient Fair Queuing using Deficit Round-Robin, 1996).

A tenant's turn adds weight x quantum bytes to what it may deal. The quantum is the longest transfer, so that each turn
deals at least one and the work per transfer is O(1). Over any stretch of time in which two tenants both wait, what they
were dealt, each divided by its weight, differs by at most three quanta (their theorem on the fairness measure).
"""

from collections import deque
from collections.abc import Container, Iterable, Mapping

from fabric.engine.queues.request import RequestId, Transfer

__all__ = ("Tenants",)


class _Flow:
    __slots__ = ("deficit", "quantum", "tenant", "waiting")

    def __init__(self, tenant: str, quantum: int) -> None:
        self.tenant = tenant
        self.quantum = quantum
        self.deficit = 0
        self.waiting: deque[Transfer] = deque()


class Tenants:
    """Transfers that wait in one class of one lane, tenant by tenant, each tenant first come first served.

    Args:
        quantum: longest transfer in bytes.
        weights: tenant → weight; a tenant that is not there weighs 1.
        live: requests that still want their transfers; others are dropped when their turn comes.
    """

    __slots__ = ("_flows", "_live", "_quantum", "_weights", "ring")

    def __init__(self, quantum: int, weights: Mapping[str, int], live: Container[RequestId]) -> None:
        self._quantum = quantum
        self._weights = weights
        self._live = live
        self._flows: dict[str, _Flow] = {}
        self.ring: deque[_Flow] = deque()  # tenants that wait; the first one's turn has begun

    def add(self, tenant: str, transfers: Iterable[Transfer]) -> None:
        """Puts transfers last in the tenant's line."""
        self._joined(tenant).waiting.extend(transfers)

    def add_first(self, tenant: str, transfer: Transfer) -> None:
        """Puts a transfer that was dealt before at the front of the tenant's line."""
        self._joined(tenant).waiting.appendleft(transfer)

    def head(self) -> Transfer | None:
        """Returns the transfer whose turn it is, None when nothing waits. It stays until `take`."""
        ring = self.ring
        while ring:
            flow = ring[0]
            waiting = flow.waiting
            while waiting and waiting[0].request not in self._live:
                waiting.popleft()
            if not waiting:
                self._leave(flow)
            elif waiting[0].length <= flow.deficit:
                return waiting[0]
            else:
                self._turn_ends()
        return None

    def take(self) -> None:
        """Removes the transfer that `head` has returned."""
        flow = self.ring[0]
        transfer = flow.waiting.popleft()
        flow.deficit -= transfer.length
        if not flow.waiting:
            self._leave(flow)

    def purge(self) -> int:
        """Drops the transfers of requests that have ended, and returns how many are left."""
        for flow in self._flows.values():
            flow.waiting = deque(transfer for transfer in flow.waiting if transfer.request in self._live)
        return sum(len(flow.waiting) for flow in self._flows.values())

    def _joined(self, tenant: str) -> _Flow:
        flow = self._flows.get(tenant)
        if flow is None:
            flow = self._flows[tenant] = _Flow(tenant, self._quantum * self._weights.get(tenant, 1))
            self.ring.append(flow)
            if len(self.ring) == 1:
                flow.deficit += flow.quantum
        return flow

    def _leave(self, flow: _Flow) -> None:
        # It is the first of the ring. What it did not use is lost, else an idle tenant would save up for a burst.
        self.ring.popleft()
        del self._flows[flow.tenant]
        if self.ring:
            self.ring[0].deficit += self.ring[0].quantum

    def _turn_ends(self) -> None:
        self.ring.rotate(-1)
        self.ring[0].deficit += self.ring[0].quantum
