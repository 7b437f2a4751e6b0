"""One queue of a host on RDMA: from resolving the address to a queue pair that is flushed and destroyed.

| state | what ends it |
|---|---|
| RESOLVING | ADDR_RESOLVED |
| ROUTING | ROUTE_RESOLVED: the queue pair is made, every receive is posted, the target is asked |
| CONNECTING | CONNECT_RESPONSE, or REJECTED |
| LIVE | whatever breaks it |
| BROKEN | `disconnect` |
| FLUSHING | the last completion of the queue pair in ERROR, or `flush_by_ns` |
| GONE | - |

The queue pair is destroyed before GONE is told, and from then on no late RDMA WRITE of the target can land.

Source: rdma-core librdmacm/cma.c; SPDK lib/nvme/nvme_rdma.c.
"""

import contextlib
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from fabric.engine.nvmeof.host import Connect, ConnectionId
from fabric.engine.transport.base import Broken, Connected, Event, Rejected
from fabric.engine.transport.rdma.config import RdmaConfig
from fabric.engine.transport.rdma.layouts import CmEventKind, QpState
from fabric.engine.transport.rdma.ports import Adapter, CmEvent, CmId, Dial, QueuePair
from fabric.engine.transport.rdma.ring import Ring
from fabric.engine.transport.rdma.wording import cm_error, completion_error, refused_by_kernel
from fabric.errors import EngineError, TransportError

__all__ = ("LinkState", "RdmaConnection")

_STALE_CONNECTION: Final = 10  # IB_CM_REJ_STALE_CONN of Linux include/rdma/ib_cm.h
_SOFT_RETRIES: Final = 6  # 7 is for ever on Soft-RoCE (rxe_comp.c), and a dead target would never be noticed
_MAX_RETRIES: Final = 7


class LinkState(enum.Enum):
    """Where a connection is."""

    RESOLVING = enum.auto()
    ROUTING = enum.auto()
    CONNECTING = enum.auto()
    LIVE = enum.auto()
    BROKEN = enum.auto()
    FLUSHING = enum.auto()
    GONE = enum.auto()


@dataclass(slots=True)
class RdmaConnection:
    """One connection.

    Attributes:
        order: what asked for it.
        config: how to connect.
        adapter: the device.
        ring: its buffers.
        cm: its id at the connection manager.
        addresses: C socket addresses, from and to.
        say: where events go.
        where: the queue, for messages.
        pair: the queue pair, once there is one.
        sends: posted and not completed: by the slot that signals, those that it signals for.
        unsent: sends answered whose completion was not seen yet, or less by those that were seen and not answered.
        receives: how many are posted.
        waiting: slots that were filled and not posted yet.
        payloads: by command id: slot and bytes of its scratch to hand over with the answer.
        flush_by_ns: when a flush is given up.
    """

    order: Connect
    config: RdmaConfig
    adapter: Adapter
    ring: Ring
    cm: CmId
    addresses: tuple[bytes, bytes]
    say: Callable[[Event], None]
    where: str
    state: LinkState = LinkState.RESOLVING
    pair: QueuePair | None = None
    sends: dict[int, list[int]] = field(default_factory=dict)
    unsent: int = 0
    receives: int = 0
    waiting: list[int] = field(default_factory=list)
    payloads: dict[int, tuple[int, int]] = field(default_factory=dict)
    flush_by_ns: int = 0

    @property
    def identifier(self) -> ConnectionId:
        """The connection's id."""
        return self.order.connection

    def start(self) -> None:
        """Begins; what goes wrong breaks it."""
        try:
            if self.config.tos is not None:
                self.cm.set_tos(self.config.tos)
            if self.config.ack_timeout is not None:
                self.cm.set_ack_timeout(self.config.ack_timeout)
            self.cm.resolve_addr(*self.addresses, self.config.resolve_timeout_ms)
        except OSError as error:
            self.fail(refused_by_kernel(error, self.where))

    def take(self, event: CmEvent) -> None:
        """Takes an event of the connection manager; which one means what, says `_MOVES`."""
        move = _MOVES.get((self.state, event.kind))
        if move is not None:
            try:
                move(self, event)
            except OSError as error:
                self.fail(refused_by_kernel(error, self.where))
            except self.adapter.failures as error:
                self.fail(TransportError("the adapter refused", where=self.where, found=str(error)))
        elif event.kind in _ENDS and self.state not in (LinkState.BROKEN, LinkState.FLUSHING, LinkState.GONE):
            self.fail(cm_error(event, self.where))

    def fail(self, error: EngineError) -> None:
        """Breaks it, once; what is posted comes back, and the target can write no more once that is done."""
        if self.state in (LinkState.BROKEN, LinkState.FLUSHING, LinkState.GONE):
            return
        self.state = LinkState.BROKEN
        self.waiting.clear()
        self.say(Broken(self.identifier, error))

    def flushed(self, status: int) -> None:
        """Takes a completion that brings nothing: an error, or one of a connection that is over."""
        if status:
            self.fail(completion_error(status, self.where))

    def shut(self, now_ns: int) -> None:
        """Begins the flush."""
        if self.state in (LinkState.FLUSHING, LinkState.GONE):
            return
        self.state = LinkState.FLUSHING
        self.waiting.clear()
        self.flush_by_ns = now_ns + self.config.flush_timeout_ns
        if self.pair is not None:
            with contextlib.suppress(*self.adapter.failures):  # it is destroyed then, flushed or not
                self.adapter.fail(self.pair)
        with contextlib.suppress(OSError):  # it never was connected, or the target was faster
            self.cm.disconnect()

    def is_flushed(self, now_ns: int) -> bool:
        """Whether nothing of it is outstanding, or waiting for that is over."""
        return self.pair is None or not (self.sends or self.receives) or now_ns >= self.flush_by_ns

    def finish(self) -> None:
        """Destroys what there is; nothing touches memory afterwards."""
        if self.state is LinkState.GONE:
            return
        self.state = LinkState.GONE
        if self.pair is not None:
            with contextlib.suppress(*self.adapter.failures):  # of a device that was removed
                self.pair.close()
            self.pair = None
        self.cm.destroy()

    def _route(self, event: CmEvent) -> None:
        del event
        self.state = LinkState.ROUTING
        self.cm.resolve_route(self.config.resolve_timeout_ms)

    def _ask(self, event: CmEvent) -> None:
        del event
        if (name := self.cm.device_name()) != self.adapter.name:
            raise OSError(0, f"the path leads over {name or 'no device'}, memory is registered at {self.adapter.name}")
        self.state = LinkState.CONNECTING
        self.pair = pair = self.adapter.queue_pair(self.order.depth)
        self.adapter.move(pair, *self.cm.qp_attr(QpState.INIT))
        self.ring.assign(self.order.connection)
        self.ring.receive(pair, range(self.order.depth))
        self.receives = self.order.depth
        retries = min(self.config.retry_count, _SOFT_RETRIES if self.adapter.is_soft else _MAX_RETRIES)
        reads = max(1, min(self.order.responder_resources, self.adapter.max_reads))
        self.cm.connect(Dial(self.order.private_data, reads, retries, self.config.rnr_retry_count, pair.qp_num))

    def _accepted(self, event: CmEvent) -> None:
        if self.pair is None:
            return
        self.adapter.move(self.pair, *self.cm.qp_attr(QpState.RTR))
        self.adapter.move(self.pair, *self.cm.qp_attr(QpState.RTS))
        self.cm.establish()
        self.state = LinkState.LIVE
        self.say(Connected(self.identifier, event.private_data, self.ring.memory))

    def _rejected(self, event: CmEvent) -> None:
        self.finish()
        self.say(Rejected(self.identifier, event.private_data, stale=event.status == _STALE_CONNECTION))


_Move = Callable[[RdmaConnection, CmEvent], None]
_MOVES: Mapping[tuple[LinkState, int], _Move] = MappingProxyType(
    {
        (LinkState.RESOLVING, CmEventKind.ADDR_RESOLVED): RdmaConnection._route,  # noqa: SLF001, the table of this class
        (LinkState.ROUTING, CmEventKind.ROUTE_RESOLVED): RdmaConnection._ask,  # noqa: SLF001
        (LinkState.CONNECTING, CmEventKind.CONNECT_RESPONSE): RdmaConnection._accepted,  # noqa: SLF001
        (LinkState.CONNECTING, CmEventKind.REJECTED): RdmaConnection._rejected,  # noqa: SLF001
    }
)
_ENDS: Final = frozenset(
    {
        CmEventKind.ADDR_ERROR,
        CmEventKind.ROUTE_ERROR,
        CmEventKind.CONNECT_ERROR,
        CmEventKind.UNREACHABLE,
        CmEventKind.REJECTED,
        CmEventKind.DISCONNECTED,
        CmEventKind.ADDR_CHANGE,
    }
)
