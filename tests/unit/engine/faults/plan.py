"""What a world is made of: its sizes, its time, and what is asked of it."""

import enum
from dataclasses import dataclass, field

from fabric.engine.client import Future
from fabric.engine.transport.shape import UNSHAPED, Shape

MS = 1_000_000
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Plan:
    """Sizes and patience of a world.

    Attributes:
        keyed: the target names memory by key, as on RDMA; else by command id, as on TCP.
        queues, depth, transfer_blocks, window_blocks: of the policy.
        redeals: of the policy.
        blocks: of the namespace.
        deadline_ns: of each operation.
        command_ns: of each command.
        flush_ns: how long a connection takes to go.
        sent_ns: how long a send completion takes.
        loss_ns: after which the controller is given up.
        kato_ms: keep-alive.
        quarantine_blocks: of the settings.
        shape: of the target.
        slots, slot_blocks: buffers for operations.
    """

    keyed: bool = True
    queues: int = 2
    depth: int = 4
    transfer_blocks: int = 4
    window_blocks: int = 64
    redeals: int = 5
    blocks: int = 64
    deadline_ns: int = 2 * SECOND
    command_ns: int = 60 * MS
    flush_ns: int = 0
    sent_ns: int = 0
    loss_ns: int = 600 * SECOND
    kato_ms: int = 15_000
    quarantine_blocks: int = 1 << 16
    shape: Shape = UNSHAPED
    slots: int = 12
    slot_blocks: int = 8
    seed: int = 0


class HangError(AssertionError):
    """Something waits for what never comes, or runs in circles."""


@dataclass
class Clock:
    """Simulated time."""

    now_ns: int = 0

    def __call__(self) -> int:
        return self.now_ns


class Kind(enum.StrEnum):
    """What a caller may ask for."""

    READ = "read"
    WRITE = "write"
    DURABLE = "durable write"
    ZERO = "write zeroes"
    FLUSH = "flush"


WRITERS = (Kind.WRITE, Kind.DURABLE, Kind.ZERO)


@dataclass(eq=False)
class Operation:
    """A read or write with what its memory may hold."""

    future: Future
    kind: Kind
    slot: int
    lba: int
    count: int
    version: int | None  # of a write
    until_ns: int
    may: list[set[int]] = field(default_factory=list)
    caught: bytes = b""
    ended_ns: int | None = None
    settled_ns: int | None = None

    @property
    def well(self) -> bool:
        """It ended without an error."""
        return self.future.done and self.future.error is None
