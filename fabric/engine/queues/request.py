"""What is asked for, and what it is cut into. Data only; knows no queue and no time.

A request names blocks of namespaces and the places in registered memory that they go to (or come from). A transfer is
one NVMe command of it. Types that are made once per request or transfer are named tuples: they are built three times
faster than frozen dataclasses, and the dealer has a few microseconds for each.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, NewType

__all__ = ("Extent", "Namespace", "Op", "QueueId", "Request", "RequestId", "Transfer", "TransferId", "Urgency", "View")

QueueId = NewType("QueueId", int)
RequestId = NewType("RequestId", int)
TransferId = NewType("TransferId", int)


class Op(StrEnum):
    """Direction of the data. Only reads may be dealt twice.

    A durable write ends when the medium has it, and is a write in all else (FUA of the Write command).
    """

    READ = "read"
    WRITE = "write"
    WRITE_DURABLE = "write-durable"


class Urgency(StrEnum):
    """Who waits for it: a demand read holds up a token, a prefetch nobody yet."""

    DEMAND = "demand"
    PREFETCH = "prefetch"


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace of one subsystem.

    Attributes:
        nsid: its id at the controller.
        target: name of the subsystem, the same for all of its controllers and paths.
        block_bytes: size of a logical block.
        mdts_bytes: longest transfer that the controller takes; None when it states none.
    """

    nsid: int
    target: str
    block_bytes: int
    mdts_bytes: int | None = None


class Extent(NamedTuple):
    """Consecutive blocks of one namespace.

    Attributes:
        namespace: where they lie.
        lba: the first block.
        blocks: how many.
    """

    namespace: Namespace
    lba: int
    blocks: int


class View(NamedTuple):
    """A piece of a registered buffer.

    Attributes:
        buffer: number of the buffer; the engine knows its address and key.
        offset: where the piece starts, bytes.
        length: how long it is, bytes.
    """

    buffer: int
    offset: int
    length: int


class Request(NamedTuple):
    """One read or write. The extents in order are the same bytes as the views in order.

    Attributes:
        id: chosen by the caller, each higher than the last.
        extents: where on flash.
        views: where in memory; scattered as the caller likes.
        op: read or write.
        tenant: whose share it counts against.
        urgency: demand passes prefetch.
        deadline_ns: on the caller's clock; None takes the policy's, counted from the submission.
        key: what it reads, for policies that keep a key on its queues; b"" has no home.
        port: the host port nearest to the memory, for rail-aware dealing; "" has none.
    """

    id: RequestId
    extents: tuple[Extent, ...]
    views: tuple[View, ...]
    op: Op = Op.READ
    tenant: str = ""
    urgency: Urgency = Urgency.DEMAND
    deadline_ns: int | None = None
    key: bytes = b""
    port: str = ""


class Transfer(NamedTuple):
    """One command.

    Attributes:
        id: unique in its dealer; the same when it is dealt again.
        request: what it belongs to.
        op: as the request's.
        namespace: as the extent's.
        lba: first block.
        blocks: how many.
        length: bytes, blocks x block size.
        pieces: its slice of the request's views; more than one only where the transport takes more.
        spread: number that stands for key and position in the request, 64 bits.
        port: as the request's.
        attempt: 0, and one more each time it is dealt again.
        lbas: first block of each piece, where these are runs of their own and `lba` is that of the first; else empty.
    """

    id: TransferId
    request: RequestId
    op: Op
    namespace: Namespace
    lba: int
    blocks: int
    length: int
    pieces: tuple[View, ...]
    spread: int
    port: str
    attempt: int = 0
    lbas: tuple[int, ...] = ()
