"""What a caller hands in and gets back: buffers, reads and writes, futures. Knows no queue and no wire."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from fabric.engine.queues import Op, RequestId, Urgency, View
from fabric.errors import EngineError, LocalProtocolError

__all__ = (
    "BlockRange",
    "Buffer",
    "Deallocate",
    "Flush",
    "Future",
    "QuarantineFullError",
    "QuarantinedError",
    "Read",
    "Work",
    "Write",
    "WriteZeroes",
)


class QuarantineFullError(LocalProtocolError):
    """Too much memory of abandoned transfers may still be written to: step on until it is released."""


class QuarantinedError(LocalProtocolError):
    """This memory belongs to an abandoned transfer that may still land: use other memory until it is released."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Registered memory.

    Attributes:
        number: how views name it.
        memory: the bytes.
    """

    number: int
    memory: memoryview = field(repr=False)

    def view(self, offset: int = 0, length: int | None = None) -> View:
        """Returns a piece of it; all from `offset` on without a length.

        Raises:
            LocalProtocolError: it is not all inside.
        """
        size = self.memory.nbytes
        length = size - offset if length is None else length
        if offset < 0 or length < 1 or offset + length > size:
            found = f"{length} bytes at {offset}"
            raise LocalProtocolError("a view outside its buffer", expected=f"within {size} bytes", found=found)
        return View(self.number, offset, length)


@dataclass(frozen=True, slots=True)
class _Moved:
    """Blocks from `lba` on, as many as the views hold; or a run of blocks for each view.

    Attributes:
        lba: the first block; or that of each view, where they are not consecutive: small runs that are wanted together
            cost less so than each by itself.
        views: where in memory, in order; whole blocks each.
        tenant: whose share it counts against.
        urgency: demand passes prefetch.
        deadline_ns: from now; None: the policy's.
        key: for policies that keep a key on its queues.
    """

    lba: int | tuple[int, ...]
    views: tuple[View, ...]
    tenant: str = ""
    urgency: Urgency = Urgency.DEMAND
    deadline_ns: int | None = None
    key: bytes = b""


@dataclass(frozen=True, slots=True)
class Read(_Moved):
    """Fill the views with blocks. A read that failed in a way that allows it is sent again, to another queue."""

    @property
    def op(self) -> Op:
        """Its direction."""
        return Op.READ


@dataclass(frozen=True, slots=True)
class Write(_Moved):
    """Store the views as blocks. Never sent twice: nobody could say which of two writes came last.

    Attributes:
        fua: it ends when the medium has the blocks, not a cache (Force Unit Access); of these blocks alone.
    """

    fua: bool = False

    @property
    def op(self) -> Op:
        """Its direction."""
        return Op.WRITE_DURABLE if self.fua else Op.WRITE


class BlockRange(NamedTuple):
    """Blocks `lba` to `lba + blocks - 1`."""

    lba: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Flush:
    """Make durable every write of the namespace that had ended before this was submitted, over whatever queue.

    Writes that are still open are not covered: wait for their futures first. It is sent on one queue, and again on
    another if that is lost. Where the target was away since the last flush, it fails: write again, then flush.

    Attributes:
        deadline_ns: from now; None: the policy's.
    """

    deadline_ns: int | None = None


@dataclass(frozen=True, slots=True)
class WriteZeroes:
    """Make blocks read as zeroes. Sent once, as a write.

    Attributes:
        lba, blocks: which.
        deallocate: the space behind them may be given up.
        deadline_ns: from now; None: the policy's.
    """

    lba: int
    blocks: int
    deallocate: bool = False
    deadline_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Say that blocks hold nothing of worth (TRIM). What they read as afterwards is the target's choice. Sent once.

    Attributes:
        ranges: which.
        deadline_ns: from now; None: the policy's.
    """

    ranges: tuple[BlockRange, ...]
    deadline_ns: int | None = None


Work: TypeAlias = Read | Write | Flush | WriteZeroes | Deallocate


@dataclass(slots=True, eq=False)
class Future:
    """The end of one piece of work, once it has come. Only the engine changes it.

    Attributes:
        request: its number.
        length: bytes that it moves, zeroes or deallocates; 0 for a flush.
        done: it has ended, well or not.
        settled: nothing of it can touch memory or blocks any more. After a failure this may come later than `done`.
        error: why it failed, or None.
    """

    request: RequestId
    length: int
    done: bool = False
    settled: bool = False
    error: EngineError | None = None

    def result(self) -> int:
        """Returns `length`.

        Raises:
            LocalProtocolError: it has not ended yet.
            EngineError: it failed; the class says who must act.
        """
        if not self.done:
            raise LocalProtocolError("this has not ended yet", remedy="Step the engine, or wait on it.")
        if self.error is not None:
            raise self.error.with_traceback(None)  # else each call adds its frames, and keeps what they hold
        return self.length
