"""The requests that have not ended, and what still flies of those that failed."""

from collections.abc import Iterator

from fabric.engine.queues.deadlines import Deadlines
from fabric.engine.queues.request import Request, RequestId, Transfer
from fabric.errors import LocalProtocolError

__all__ = ("Ledger", "Progress")


class Progress:
    """How far one request is.

    Attributes:
        request: which.
        left: its transfers that have not ended.
        flying: those of them that fly.
    """

    __slots__ = ("flying", "left", "request")

    def __init__(self, request: Request, left: int) -> None:
        self.request = request
        self.left = left
        self.flying = 0


class Ledger:
    """All requests.

    Attributes:
        live: those that have not ended.
        draining: how much still flies of failed ones.
        deadlines: of live ones.
    """

    def __init__(self) -> None:
        self.live: dict[RequestId, Progress] = {}
        self.draining: dict[RequestId, int] = {}
        self.deadlines = Deadlines(self.live)
        self._last = -1

    def check(self, request: Request) -> None:
        """Takes note of nothing.

        Raises:
            LocalProtocolError: the id is not higher than the last one: an old one could still have transfers.
        """
        if request.id <= self._last:
            raise LocalProtocolError(
                "request ids must rise",
                where=f"request {request.id}",
                found=str(request.id),
                expected=f"more than {self._last}",
            )

    def admit(self, request: Request, left: int, deadline_ns: int) -> None:
        """Takes in a request of `left` transfers."""
        self._last = request.id
        self.live[request.id] = Progress(request, left)
        self.deadlines.add(deadline_ns, request.id)

    def drained(self, transfer: Transfer) -> bool:
        """Takes a landed transfer off a request that has failed; returns whether it was the last that flew."""
        self.draining[transfer.request] -= 1
        if self.draining[transfer.request]:
            return False
        del self.draining[transfer.request]
        return True

    def fail(self, progress: Progress) -> None:
        """Ends a request that will not be done."""
        request = progress.request.id
        del self.live[request]
        if progress.flying:
            self.draining[request] = progress.flying

    def due(self, now_ns: int) -> Iterator[Progress]:
        """Yields each live request whose deadline has come; the caller fails it before it asks for the next."""
        while (request := self.deadlines.pop_due(now_ns)) is not None:
            yield self.live[request]
