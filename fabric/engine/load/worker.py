"""What the runner needs of each stream, whatever it carries; and the cap on all of them together."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from fabric.engine.load.ledger import Ledger
from fabric.engine.load.model import StreamResult

__all__ = ("Moment", "Pacer", "Shared", "Worker")

_SECOND = 1_000_000_000
_SLACK_NS = 50_000_000  # what may be caught up after a stall


class Moment(NamedTuple):
    """Now.

    Attributes:
        now_ns: monotonic.
        is_on: new requests may go out.
        burst: which, None without bursts.
        is_counted: what ends now ended in time.
    """

    now_ns: int
    is_on: bool
    burst: int | None
    is_counted: bool


class Worker(Protocol):
    """One stream at work. Nothing happens between calls."""

    ledger: Ledger

    def step(self, moment: Moment) -> bool:
        """Does what there is to do, without waiting; returns whether there was something."""
        ...

    def descriptors(self) -> tuple[tuple[int, int], ...]:
        """Returns what to wait on: descriptor and `select.poll` events."""
        ...

    def due_ns(self) -> int | None:
        """Returns when to step although no descriptor is ready."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing is open."""
        ...

    def abort(self) -> None:
        """Gives up what is open."""
        ...

    def result(self) -> StreamResult:
        """Returns what it came to; called once, after all else but `close`."""
        ...

    def close(self) -> None:
        """Ends it; nothing touches its memory afterwards."""
        ...


class Pacer:
    """A cap on bytes a second.

    Args:
        bytes_per_s: None: no cap.
    """

    def __init__(self, bytes_per_s: int | None) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_ns = 0

    def is_open(self, now_ns: int) -> bool:
        """Returns whether something may go out now."""
        return self._bytes_per_s is None or now_ns >= self._free_ns

    def spend(self, length: int, now_ns: int) -> None:
        """Says that so many bytes go out."""
        if self._bytes_per_s is not None:
            self._free_ns = max(self._free_ns, now_ns - _SLACK_NS) + length * _SECOND // self._bytes_per_s

    @property
    def due_ns(self) -> int | None:
        """When it is open again; None without a cap."""
        return None if self._bytes_per_s is None else self._free_ns


class Shared(NamedTuple):
    """What all streams of a job have in common: the clock, monotonic nanoseconds, and the cap."""

    clock: Callable[[], int]
    pacer: Pacer
