"""What a post becomes, and who carries it out: the same protocol for the compiled core and for threads of Python."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

__all__ = ("NO_RUNS", "By", "Carrier", "Job", "OwnerT", "Runs", "WrongRunsError")


OwnerT = TypeVar("OwnerT")


class By(StrEnum):
    """Who carries out posts.

    Attributes:
        AUTO: the first of these that suits the device and is to be had here.
        IO_URING: the kernel, asked by the caller's own thread; for devices that work beside the CPU.
        THREADS: threads of the C library; for memory, where somebody has to copy.
        PYTHON: threads of Python; always there.
    """

    AUTO = "auto"
    IO_URING = "io_uring"
    THREADS = "threads"
    PYTHON = "python"


class Runs(NamedTuple):
    """Ranges of the device, each with its memory. Plain numbers: the compiled core takes them without a loop in Python.

    Attributes:
        unit: bytes of a block.
        firsts: the first block of each.
        views: of each, where in memory: number of the arena in the order of registration, offset, length.
    """

    unit: int
    firsts: tuple[int, ...]
    views: tuple[tuple[int, int, int], ...]


NO_RUNS: Final = Runs(1, (), ())


class Job(Generic[OwnerT]):
    """One post on its way.

    Attributes:
        owner: who gets it back.
        tag: the post's.
        call: "r", "w", "d" for a write that is durable, "s" for sync, "z" for zeroes, "t" for trim.
        runs: what and where; none where no data moves.
        offset, length: of zeroes and trim.
        token: the core's name for it.
        is_held: its deadline passed before it ended.
        has_ended: nothing touches its memory any more.
        error: errno, or 0; -1 when the device ended early.
    """

    __slots__ = ("call", "error", "has_ended", "is_held", "length", "offset", "owner", "runs", "tag", "token")

    def __init__(self, owner: OwnerT, tag: int, call: str, runs: Runs, offset: int = 0, length: int = 0) -> None:
        self.owner = owner
        self.tag = tag
        self.call = call
        self.runs = runs
        self.offset = offset
        self.length = length
        self.token = 0
        self.is_held = self.has_ended = False
        self.error = 0


class WrongRunsError(Exception):
    """Ranges are off the alignment, or outside of device or memory. Caught by the transport, which says what."""


class Carrier(Protocol[OwnerT]):
    """Carries out jobs, and sets a signal when one has ended. Used from one thread."""

    def register(self, base: int, size: int) -> None:
        """Takes the next arena: the address of its first byte, and how many there are."""
        ...

    def put(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """Takes jobs; each comes back from `ended` once.

        Raises:
            WrongRunsError: one cannot be right; none was taken.
        """
        ...

    def cancel(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """Begins no range of these any more. What has begun goes on, and the job ends when it has."""
        ...

    def ended(self) -> Sequence[Job[OwnerT]]:
        """Clears the signal; returns the jobs that have ended since the last call, their `error` set."""
        ...

    def close(self) -> None:
        """Cancels everything and waits for what has begun: nothing touches memory any more."""
        ...
