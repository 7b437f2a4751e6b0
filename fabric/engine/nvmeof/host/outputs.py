"""What a host machine asks of its transport, and what it tells its caller. Plain values; knows no machine.

| command to the transport | it answers by |
|---|---|
| Connect | `connected`, `rejected` or `disconnected` |
| PostSend | `sent`, when the send completion is seen; `received`, when an answer came |
| Disconnect | `disconnected`, once nothing can write to the queue's memory any more; always |
| SetTimer | `tick`, at that time |

| event to the caller | meaning |
|---|---|
| Ready, QueueUp, QueueDown | the controller, one queue |
| Completed, Failed | the end of a request; exactly one of the two comes |
| QuarantineReleased | memory of these failed requests may be used again |
| NamespacesChanged, EventSeen, DiscoveryLog | what the target reports |
| Reconnecting, Lost, Closed | the controller's way down |

PostSend, Region and Completed are named tuples: one of each is made a command, and a frozen dataclass costs three times
that.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, NewType, TypeAlias

from fabric.engine.nvmeof.wire.events import AsyncEvent
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.engine.nvmeof.wire.logs import DiscoveryEntry
from fabric.engine.nvmeof.wire.sgl import SglKind
from fabric.engine.nvmeof.wire.status import Disposition
from fabric.errors import EngineError

__all__ = (
    "Closed",
    "Completed",
    "Connect",
    "ConnectionId",
    "Disconnect",
    "DiscoveryLog",
    "EventSeen",
    "Failed",
    "Lost",
    "NamespacesChanged",
    "Output",
    "PostSend",
    "QuarantineReleased",
    "QueueDown",
    "QueueMemory",
    "QueueUp",
    "Ready",
    "Reconnecting",
    "Region",
    "RequestId",
    "SetTimer",
)

_SGL_KIND_AT: Final = 39  # of an entry: the last byte of its SGL descriptor

ConnectionId = NewType("ConnectionId", int)  # never used twice, so that a late input cannot reach a later connection
RequestId = NewType("RequestId", int)


class Region(NamedTuple):
    """Registered memory: `length` bytes at `address` under `key` (on TCP both are the transport's own handle)."""

    address: int
    length: int
    key: int = 0


@dataclass(frozen=True, slots=True)
class QueueMemory:
    """Scratch of one queue: slot i owns `slot_bytes` from `address + i * slot_bytes` under `key`.

    Connect data, Identify and log pages pass through it; 4096 bytes a slot are needed.
    """

    address: int = 0
    key: int = 0
    slot_bytes: int = 4096


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection. On RDMA: set the type of service first, post `depth` receives, then connect."""

    connection: ConnectionId
    qid: int
    depth: int
    private_data: bytes
    responder_resources: int


class PostSend(NamedTuple):
    """Send a capsule from a slot.

    Attributes:
        connection, qid, slot: where; `slot` names the transport's own buffers.
        capsule: 64 bytes, and in-capsule data.
        outgoing: put these bytes at the start of the slot's scratch first.
        incoming_bytes: hand so many bytes of the slot's scratch to `received` with the answer.
        region: the request's own memory; TCP moves data to or from it.
    """

    connection: ConnectionId
    qid: int
    slot: int
    capsule: bytes
    outgoing: bytes = b""
    incoming_bytes: int = 0
    region: Region | None = None

    @property
    def carries_region(self) -> bool:
        """The region's bytes go behind `capsule`: its SGL says so."""
        return self.region is not None and self.capsule[_SGL_KIND_AT] == SglKind.IN_CAPSULE


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Take a connection down; flush it so that nothing writes to its memory, then say so."""

    connection: ConnectionId
    qid: int


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call `tick` at this time; None: no timer is needed. It replaces the one before."""

    at_ns: int | None


@dataclass(frozen=True, slots=True)
class Ready:
    """The controller takes requests."""

    controller: IdentifyController
    queues: tuple[int, ...]
    namespaces: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QueueUp:
    """A queue takes requests: `room` at a time."""

    qid: int
    room: int


@dataclass(frozen=True, slots=True)
class QueueDown:
    """A queue takes no more requests."""

    qid: int
    error: EngineError


class Completed(NamedTuple):
    """A request succeeded. `data` holds what a command without a region of its own read."""

    request: RequestId
    qid: int
    result: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Failed:
    """A request failed.

    Attributes:
        request, qid: which.
        error: what, by who must act.
        disposition: what to do with it.
        retry_after_ns: the delay that the target asks for.
        held: its memory may still be written to; wait for QuarantineReleased before using it again.
    """

    request: RequestId
    qid: int
    error: EngineError
    disposition: Disposition
    retry_after_ns: int = 0
    held: bool = False


@dataclass(frozen=True, slots=True)
class QuarantineReleased:
    """The connection is gone: the memory of these failed requests can no longer be written to."""

    connection: ConnectionId
    qid: int
    requests: tuple[RequestId, ...]


@dataclass(frozen=True, slots=True)
class NamespacesChanged:
    """The set of namespaces, or their geometry, is another."""

    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EventSeen:
    """An asynchronous event other than a change of namespaces."""

    event: AsyncEvent


@dataclass(frozen=True, slots=True)
class DiscoveryLog:
    """A whole discovery log: all entries of one generation."""

    generation: int
    entries: tuple[DiscoveryEntry, ...]


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """The controller is down and will be tried again."""

    attempt: int
    at_ns: int
    error: EngineError


@dataclass(frozen=True, slots=True)
class Lost:
    """The controller is given up."""

    error: EngineError


@dataclass(frozen=True, slots=True)
class Closed:
    """The shutdown is done."""


Output: TypeAlias = (
    Connect
    | PostSend
    | Disconnect
    | SetTimer
    | Ready
    | QueueUp
    | QueueDown
    | Completed
    | Failed
    | QuarantineReleased
    | NamespacesChanged
    | EventSeen
    | DiscoveryLog
    | Reconnecting
    | Lost
    | Closed
)
