"""What an engine needs of the way to its namespace, and what that tells the dealer: data and a protocol."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from fabric.engine.client.orders import Ended, Order, OrderReleased
from fabric.engine.queues import Issue, Namespace, Queue, QueueId, RequestId, Transfer
from fabric.errors import EngineError
from fabric.policy import ControllerLimits

__all__ = ("Described", "Landed", "Link", "LinkLost", "News", "QueueLost", "QueueOpened", "QueueReleased", "Usable")


class Usable(NamedTuple):
    """The way is open; `limits` are what the other side granted."""

    limits: ControllerLimits


class QueueOpened(NamedTuple):
    """A queue takes transfers."""

    queue: Queue


class QueueLost(NamedTuple):
    """A queue takes none any more; what flies on it may still land."""

    queue: QueueId


class QueueReleased(NamedTuple):
    """Nothing of a lost queue can land any more."""

    queue: QueueId


class Landed(NamedTuple):
    """A transfer ended and touches no memory any more. `again`: it may succeed when it is sent again."""

    queue: QueueId
    transfer: Transfer
    error: EngineError | None = None
    again: bool = False


class LinkLost(NamedTuple):
    """The way is given up for good."""

    error: EngineError


News: TypeAlias = Usable | QueueOpened | QueueLost | QueueReleased | Landed | LinkLost | Ended | OrderReleased


class Described(NamedTuple):
    """A namespace with its size, as last seen.

    Attributes:
        namespace: which.
        blocks: how many it has.
        has_cache: what was written may be lost before a flush.
        ranges: runs of blocks that one transfer may name, each with its memory.
    """

    namespace: Namespace
    blocks: int
    has_cache: bool = True
    ranges: int = 1


class Link(Protocol):
    """The way to one namespace. Every call returns at once; time is an argument."""

    def start(self, now_ns: int) -> None:
        """Begins; Usable or LinkLost follows."""
        ...

    def namespace(self) -> Described:
        """Returns the namespace.

        Raises:
            EngineError: there is none of that id, or it cannot be used.
        """
        ...

    def register(self, memory: memoryview) -> int:
        """Returns the number of newly registered memory."""
        ...

    def issue(self, batch: Sequence[Issue], now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        """Sends transfers; those without room wait, and are dropped when their request is not `wanted` any more."""
        ...

    def order(
        self, batch: Sequence[tuple[QueueId, Order]], now_ns: int, wanted: Callable[[RequestId], bool]
    ) -> list[News]:
        """Sends commands without data, as `issue` does: each comes back as Ended, once."""
        ...

    def step(self, now_ns: int) -> list[News]:
        """Returns what has happened."""
        ...

    def next_timer_ns(self) -> int | None:
        """Returns when to step although the descriptor is not readable."""
        ...

    def fileno(self) -> int:
        """Returns a descriptor that is readable when `step` has something to do."""
        ...

    def stop(self, now_ns: int) -> bool:
        """Begins an orderly end, or goes on with it; returns whether it is over."""
        ...

    def close(self) -> None:
        """Ends at once: nothing touches memory any more. Repeating it does nothing."""
        ...
