"""What a target machine asks of its transport and of its storage. Plain values; knows no machine.

| command | answered by |
|---|---|
| Accept, Reject | |
| FetchData | `data_fetched` |
| PushData, Respond | in this order on the connection |
| StorageRead, StorageWrite, StorageZero, StorageFlush | `stored` |
| Drop | `disconnected` |
| SetTimer | `tick` |
"""

from dataclasses import dataclass
from typing import NewType, TypeAlias

__all__ = (
    "Accept",
    "Drop",
    "FetchData",
    "Output",
    "PeerId",
    "PushData",
    "Reject",
    "Respond",
    "SetTimer",
    "StorageFlush",
    "StorageRead",
    "StorageWrite",
    "StorageZero",
    "TaskId",
)

PeerId = NewType("PeerId", int)  # the transport's id of a connection, never used twice
TaskId = NewType("TaskId", int)  # a command that waits for data or storage


@dataclass(frozen=True, slots=True)
class Accept:
    """Accept a connection with this private data."""

    peer: PeerId
    private_data: bytes


@dataclass(frozen=True, slots=True)
class Reject:
    """Reject a connection with this private data."""

    peer: PeerId
    private_data: bytes


@dataclass(frozen=True, slots=True)
class FetchData:
    """Read `length` bytes from the host: RDMA READ from `address` under `key`, or Ready To Transfer for `cid`."""

    peer: PeerId
    task: TaskId
    cid: int
    address: int
    key: int
    length: int


@dataclass(frozen=True, slots=True)
class PushData:
    """Write to the host: RDMA WRITE to `address` under `key`, or C2HData for `cid`."""

    peer: PeerId
    cid: int
    address: int
    key: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Respond:
    """Send a completion queue entry, after all data of its command."""

    peer: PeerId
    response: bytes


@dataclass(frozen=True, slots=True)
class Drop:
    """Take a connection down."""

    peer: PeerId
    reason: str


@dataclass(frozen=True, slots=True)
class StorageRead:
    """Read `length` bytes at `offset` of a namespace."""

    task: TaskId
    subnqn: str
    nsid: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class StorageWrite:
    """Write `data` at `offset` of a namespace; durably if `durable`."""

    task: TaskId
    subnqn: str
    nsid: int
    offset: int
    data: bytes
    durable: bool


@dataclass(frozen=True, slots=True)
class StorageZero:
    """Make these (offset, length) read as zeroes; `discard`: they need hold nothing."""

    task: TaskId
    subnqn: str
    nsid: int
    extents: tuple[tuple[int, int], ...]
    discard: bool


@dataclass(frozen=True, slots=True)
class StorageFlush:
    """Make what was written durable."""

    task: TaskId
    subnqn: str
    nsid: int


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call `tick` at this time; None: no timer is needed. It replaces the one before."""

    at_ns: int | None


Output: TypeAlias = (
    Accept
    | Reject
    | FetchData
    | PushData
    | Respond
    | Drop
    | StorageRead
    | StorageWrite
    | StorageZero
    | StorageFlush
    | SetTimer
)
