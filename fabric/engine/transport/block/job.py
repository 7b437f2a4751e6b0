"""What a post becomes, and who carries it out: the same protocol for the compiled core and for threads of Python."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from fabric.engine.nvmeof.host import Region

__all__ = ("By", "Carrier", "Job", "OwnerT", "Part")


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


class Part(NamedTuple):
    """A range of the device with its memory.

    Attributes:
        offset: the first byte, on the device's alignment.
        region: registered memory, of aligned length.
    """

    offset: int
    region: Region


class Job(Generic[OwnerT]):
    """One post on its way.

    Attributes:
        owner: who gets it back.
        tag: the post's.
        call: "r", "w", "d" for a write that is durable, "s" for sync, "z" for zeroes, "t" for trim.
        parts: what and where; none where no data moves.
        offset, length: of zeroes and trim.
        token: the core's name for it.
        is_held: its deadline passed before it ended.
        has_ended: nothing touches its memory any more.
        error: errno, or 0; -1 when the device ended early.
    """

    __slots__ = ("call", "error", "has_ended", "is_held", "length", "offset", "owner", "parts", "tag", "token")

    def __init__(
        self, owner: OwnerT, tag: int, call: str, parts: Sequence[Part], offset: int = 0, length: int = 0
    ) -> None:
        self.owner = owner
        self.tag = tag
        self.call = call
        self.parts = parts
        self.offset = offset
        self.length = length
        self.token = 0
        self.is_held = self.has_ended = False
        self.error = 0


class Carrier(Protocol[OwnerT]):
    """Carries out jobs, and sets a signal when one has ended. Used from one thread."""

    def put(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """Takes jobs; each comes back from `ended` once."""
        ...

    def cancel(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """Begins no part of these any more. What has begun goes on, and the job ends when it has."""
        ...

    def ended(self) -> Sequence[Job[OwnerT]]:
        """Returns the jobs that have ended since the last call; their `error` is set."""
        ...

    def close(self) -> None:
        """Cancels everything and waits for what has begun: nothing touches memory any more."""
        ...
