"""The one protocol of all transports, what they report, and the memory that they know. Does no I/O itself.

    register ──▶ connect ──Connected──▶ post … Sent, Received | Done ──▶ disconnect ──Disconnected──▶ close

| transport | PostT | an ended post is | what it reaches |
|---|---|---|---|
| memory, tcp, rdma | `PostSend`: a capsule from a slot | Sent and Received | a controller |
| block | `BlockPost`: bytes of a device | Done | a file or block device |

| error | who must act |
|---|---|
| LocalProtocolError | this program; the call itself raises it |
| RemoteProtocolError | the owner of the target: it breaks the protocol |
| TransportError | the owner of the network, or nobody: connect again |
| IntegrityError | the reader: the bytes are not those that were sent |
| EnvironmentMissingError | whoever set up this machine |

What a peer or a network did never raises: it comes as Broken.

A transport is used from one thread. It reads no clock: `now_ns` never runs back.
"""

import contextlib
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from fabric.engine.nvmeof.host import Connect, ConnectionId, QueueMemory, Region
from fabric.errors import EngineError, LocalProtocolError

__all__ = (
    "Arena",
    "Broken",
    "Connected",
    "DeviceRemoved",
    "Disconnected",
    "Done",
    "Event",
    "PostT_contra",
    "Received",
    "Rejected",
    "Released",
    "Sent",
    "Transport",
    "allocate",
)

_HUGE_BYTES: Final = 2 << 20
PostT_contra = TypeVar("PostT_contra", contravariant=True)
_new: Final = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much


@dataclass(frozen=True, slots=True)
class Arena:
    """Registered memory; every queue of the transport may use it.

    Attributes:
        view: the bytes, as they were handed in.
        address: where the first byte is, in the transport's own terms: a virtual address on RDMA, 0 elsewhere.
        key: under which the transport knows it.
    """

    view: memoryview
    address: int
    key: int

    def region(self, offset: int, length: int) -> Region:
        """Returns `length` bytes from `offset`.

        Raises:
            LocalProtocolError: they are not all inside.
        """
        if offset < 0 or length < 0 or offset + length > self.view.nbytes:
            raise LocalProtocolError(
                "a region outside its arena", expected=f"within {self.view.nbytes} bytes", found=f"{length} at {offset}"
            )
        return _new(Region, (self.address + offset, length, self.key))


class Connected(NamedTuple):
    """The connection takes posts. `memory` is its scratch: 4096 bytes a slot, registered."""

    connection: ConnectionId
    private_data: bytes
    memory: QueueMemory


class Rejected(NamedTuple):
    """The target refused the connection, which is no more; `stale`: it still holds an earlier one of ours."""

    connection: ConnectionId
    private_data: bytes
    stale: bool = False


class Sent(NamedTuple):
    """The capsule of a slot has left."""

    connection: ConnectionId
    slot: int


class Received(NamedTuple):
    """An answer came. All data of its command is in memory, and the transport is done with that memory.

    `payload` is a copy of the scratch that the post asked for.
    """

    connection: ConnectionId
    response: bytes
    payload: bytes = b""


class Done(NamedTuple):
    """A block post ended. `held`: without an end at the device; its memory may change until Released comes."""

    connection: ConnectionId
    tag: int
    error: EngineError | None = None
    held: bool = False


class Released(NamedTuple):
    """The device is done with the memory of a post that had been reported as held."""

    connection: ConnectionId
    tag: int


class Broken(NamedTuple):
    """The connection carries nothing more; at most once. The target may still write: call `disconnect`."""

    connection: ConnectionId
    error: EngineError


class Disconnected(NamedTuple):
    """Nothing can write to, or read from, the memory of this connection's posts any more. Ends those without an end."""

    connection: ConnectionId
    reason: str = ""


class DeviceRemoved(NamedTuple):
    """The adapter is gone, and with it every connection; Broken and Disconnected still come."""

    reason: str


Event: TypeAlias = Connected | Rejected | Sent | Received | Done | Released | Broken | Disconnected | DeviceRemoved


class Transport(Protocol[PostT_contra]):
    """What carries posts. Every call returns at once, and none calls back."""

    def register(self, memory: memoryview) -> Arena:
        """Makes memory usable by every connection, now and later; it stays registered until `close`.

        Args:
            memory: writable, contiguous, of bytes; 4096-aligned for O_DIRECT and cheapest so elsewhere.

        Raises:
            LocalProtocolError: it is not that.
        """
        ...

    def connect(self, order: Connect, now_ns: int) -> None:
        """Opens a connection: Connected, Rejected or Broken follows.

        The type of service is set before the first packet. `order.depth` receives are posted before the peer can
        answer, and it may have `order.responder_resources` reads of our memory open; 0 means that writes never end.

        Raises:
            LocalProtocolError: the id was used before.
        """
        ...

    def post(self, batch: Sequence[PostT_contra], now_ns: int) -> None:
        """Sends a batch, in order within a connection. What is for a connection that broke or is gone is dropped.

        `outgoing` of a post is put into the slot's scratch first. Posts for one connection are handed over together,
        with one doorbell or system call where the transport can.

        Raises:
            LocalProtocolError: a region is not registered; nothing of the batch was sent.
        """
        ...

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        """Takes a connection down; Disconnected follows, always, whatever the peer does. Repeating it does nothing."""
        ...

    def poll(self, now_ns: int) -> list[Event]:
        """Returns what has happened; an empty list only when nothing that has arrived is left.

        So a caller that polls until the list is empty has seen all that came before, and may then judge deadlines.
        """
        ...

    def next_timer_ns(self) -> int | None:
        """Returns when `poll` should be called although the descriptor is not readable."""
        ...

    def fileno(self) -> int:
        """Returns a descriptor that is readable when `poll` has something; the same one for life. For poll or epoll.

        The end of a send alone need not make it readable while the answer to that command is to come.
        """
        ...

    def close(self) -> None:
        """Ends every connection without a word, deregisters memory, joins threads: nothing touches memory any more."""
        ...


def allocate(length: int) -> memoryview:
    """Returns `length` bytes of zeroed anonymous memory, page-aligned; it is freed with its last view.

    In huge pages where the kernel has some: a device then gets one piece of 1 MiB in place of 256.
    """
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if length >= _HUGE_BYTES:
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)
