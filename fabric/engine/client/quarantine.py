"""Memory of abandoned transfers, held until nothing can write to it. Bounded: when it is full, nothing new is taken.

It may pass its bound by what was in flight when it filled up, which the policy's windows bound in turn.
"""

from collections.abc import Iterable, Sequence

from fabric.engine.client.work import QuarantinedError, QuarantineFullError
from fabric.engine.queues import Issue, RequestId, View

__all__ = ("Quarantine",)


class Quarantine:
    """What is held, by the request that abandoned it.

    Args:
        limit: bytes from which on nothing new is taken.

    Attributes:
        bytes: that are held.
        releases: requests whose memory was given back.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[RequestId, tuple[View, ...]] = {}
        self.bytes = 0
        self.releases = 0

    def hold(self, request: RequestId, abandoned: Iterable[Issue]) -> None:
        """Holds the memory of the transfers."""
        views = tuple(piece for issue in abandoned for piece in issue.transfer.pieces)
        self._held[request] = views
        self.bytes += sum(view.length for view in views)

    def release(self, request: RequestId) -> None:
        """Gives back what a request held."""
        self.releases += request in self._held
        self.bytes -= sum(view.length for view in self._held.pop(request, ()))

    def views(self) -> tuple[View, ...]:
        """Returns all that is held."""
        return tuple(view for views in self._held.values() for view in views)

    def check(self, wanted: Sequence[View]) -> None:
        """Lets a request pass.

        Raises:
            QuarantineFullError: too much is held.
            QuarantinedError: some of this very memory is held.
        """
        if not self._held:
            return
        if self.bytes >= self._limit:
            remedy = "Step the engine until transfers are released, or open it with a larger quarantine_bytes."
            found = f"{self.bytes} bytes held"
            expected = f"below {self._limit}"
            raise QuarantineFullError("the quarantine is full", found=found, expected=expected, remedy=remedy)
        for held in self.views():
            for view in wanted:
                if (
                    view.buffer == held.buffer
                    and view.offset < held.offset + held.length
                    and held.offset < view.offset + view.length
                ):
                    raise QuarantinedError(
                        "an abandoned transfer may still write to this memory",
                        where=f"buffer {held.buffer}",
                        found=f"{held.length} bytes at {held.offset} are held",
                        remedy="Use other memory, or step the engine until it is released.",
                    )
