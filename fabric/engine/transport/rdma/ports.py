"""What the RDMA transport needs of a connection manager and an adapter: the seam to librdmacm and pyverbs. Types only.

Nothing here blocks. An `OSError` is what the kernel refused; `Adapter.failures` are the classes for refused verbs.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from fabric.engine.transport.rdma.layouts import QpAttr, QpState

__all__ = (
    "Adapter",
    "CmEvent",
    "CmId",
    "Completion",
    "ConnectionManager",
    "Dial",
    "Keys",
    "QueuePair",
    "RecvRequest",
    "Resize",
    "SendRequest",
    "Verbs",
)


class CmEvent(NamedTuple):
    """What the connection manager told; acknowledged already. `status`: a negative errno, or the peer's reason."""

    key: int
    kind: int
    status: int
    private_data: bytes


class Dial(NamedTuple):
    """What goes into a connection request."""

    private_data: bytes
    responder_resources: int
    retry_count: int
    rnr_retry_count: int
    qp_num: int


class CmId(Protocol):
    """One connection, as the connection manager sees it. Every call may raise OSError."""

    @property
    def key(self) -> int:
        """What its events carry."""
        ...

    def set_tos(self, tos: int) -> None:
        """Marks what both ends will send; before `resolve_route`."""
        ...

    def set_ack_timeout(self, exponent: int) -> None:
        """Sets the wait for an acknowledgement, 4.096 us x 2^exponent, at both ends; before `resolve_route`."""
        ...

    def resolve_addr(self, source: bytes, destination: bytes, timeout_ms: int) -> None:
        """Finds the neighbour: ADDR_RESOLVED or ADDR_ERROR follows. Addresses are C socket addresses."""
        ...

    def resolve_route(self, timeout_ms: int) -> None:
        """Finds the path: ROUTE_RESOLVED or ROUTE_ERROR follows."""
        ...

    def device_name(self) -> str:
        """Returns the adapter that the address belongs to, "" while there is none."""
        ...

    def qp_attr(self, state: QpState) -> tuple[QpAttr, int]:
        """Returns the attributes that take the queue pair to a state, and which of them count."""
        ...

    def connect(self, dial: Dial) -> None:
        """Asks the peer: CONNECT_RESPONSE, REJECTED, UNREACHABLE or CONNECT_ERROR follows."""
        ...

    def establish(self) -> None:
        """Tells the peer that we are ready."""
        ...

    def disconnect(self) -> None:
        """Tells the peer that it is over."""
        ...

    def destroy(self) -> None:
        """Ends it; no event of it follows."""
        ...


class ConnectionManager(Protocol):
    """Makes connections; one event channel for all of them."""

    def fileno(self) -> int:
        """Returns a descriptor that is readable while an event waits."""
        ...

    def device_of(self, source: bytes) -> str:
        """Returns the adapter of a local address.

        Raises:
            OSError: ENODEV when it has none.
        """
        ...

    def create(self) -> CmId:
        """Returns a new connection. Raises OSError."""
        ...

    def next_event(self) -> CmEvent | None:
        """Returns the next event, None when there is none."""
        ...

    def forget_removed(self) -> bool:
        """Lets go of adapters that are gone from this machine; returns whether some that it holds are still there."""
        ...

    def close(self) -> None:
        """Gives the channel back; every connection is destroyed before."""
        ...


Completion: TypeAlias = tuple[int, int, int]  # of one request: wr_id, a `WcStatus`, bytes that came; of struct ibv_wc


class RecvRequest(Protocol):
    """A receive, built once and posted many times; `next_wr` can be set and never be taken away."""

    wr_id: int
    next_wr: "RecvRequest | None"


class SendRequest(Protocol):
    """A send, built once and posted many times; `next_wr` can be set and never be taken away."""

    wr_id: int
    next_wr: "SendRequest | None"


Resize: TypeAlias = Callable[[int], None]


class QueuePair(Protocol):
    """A reliable connection's end. Calls may raise `Adapter.failures`."""

    @property
    def qp_num(self) -> int:
        """Its number on the wire."""
        ...

    def post_send(self, request: SendRequest) -> None:
        """Posts it, and what is chained to it, with one doorbell."""
        ...

    def post_recv(self, request: RecvRequest) -> None:
        """Posts it, and what is chained to it."""
        ...

    def close(self) -> None:
        """Destroys it: after that nobody reads or writes memory through it."""
        ...


class Keys(NamedTuple):
    """How registered memory is named: by the adapter's own requests, by the peer's; where its first byte is."""

    lkey: int
    rkey: int
    address: int


class Adapter(Protocol):
    """One open device with its protection domain, its two completion queues and their channel.

    Attributes:
        name: as `rdma link` shows it.
        failures: exception classes for what a verb refused.
        max_reads: RDMA READs that a peer may have open at one queue pair.
        capacity: completions that each queue holds.
        is_soft: it is Soft-RoCE, where a retry count of 7 means for ever.
    """

    name: str
    failures: tuple[type[Exception], ...]
    max_reads: int
    capacity: int
    is_soft: bool

    def register(self, address: int, length: int) -> Keys:
        """Registers memory of this process for all that a target does."""
        ...

    def register_dmabuf(self, descriptor: int, offset: int, length: int) -> Keys:
        """Registers memory of another device."""
        ...

    def queue_pair(self, depth: int) -> QueuePair:
        """Returns a new one with room for `depth` sends and as many receives."""
        ...

    def move(self, pair: QueuePair, attr: QpAttr, mask: int) -> None:
        """Changes its state."""
        ...

    def fail(self, pair: QueuePair) -> None:
        """Takes it to ERROR: what is posted comes back flushed."""
        ...

    def has_failed(self, pair: QueuePair) -> bool:
        """Whether it is in ERROR."""
        ...

    def send_request(self, address: int, length: int, lkey: int, *, signalled: bool) -> tuple[SendRequest, Resize]:
        """Builds a send of one run of bytes, and what changes its length. Without a signal only its failure is told."""
        ...

    def recv_request(self, address: int, length: int, lkey: int) -> RecvRequest:
        """Builds a receive into one run of bytes."""
        ...

    def poll(self, most: int) -> Sequence[Completion]:
        """Returns completions of receives that are there."""
        ...

    def poll_sends(self, most: int) -> Sequence[Completion]:
        """Returns completions of sends that are there."""
        ...

    def arm(self) -> None:
        """Asks for one notice at the next completion of a receive."""
        ...

    def arm_sends(self) -> None:
        """Asks for one notice at the next completion of a send."""
        ...

    def take_notice(self) -> bool:
        """Takes one notice: `notice_fd` was readable. Returns whether it is about receives."""
        ...

    @property
    def notice_fd(self) -> int:
        """Readable while there is a notice."""
        ...

    @property
    def async_fd(self) -> int:
        """Readable while the device has something to say."""
        ...

    def take_async(self) -> int:
        """Returns the kind of what the device says: `async_fd` was readable."""
        ...

    def close(self) -> None:
        """Gives everything back: queue pairs, then memory, then the rest."""
        ...


class Verbs(Protocol):
    """Opens adapters."""

    def __call__(self, name: str, capacity: int, /) -> Adapter:
        """Returns the adapter, with a queue of that many completions or what it can.

        Raises:
            EnvironmentMissingError: pyverbs cannot be used, or there is no such adapter.
        """
        ...
