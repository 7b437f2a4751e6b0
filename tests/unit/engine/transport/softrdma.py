# ruff: noqa: ARG002  # the seam gives more than a soft fabric needs
"""A connection manager and an adapter in this process, behind the seam of `transport.rdma.ports`, with a target.

Memory is real and is reached by address: a key that was deregistered, or a queue pair that was destroyed, lets nothing
through. What a test wants to go wrong it says: `answers` replaces an event of the connection manager, `held` keeps
completions back, and the rest are methods that happen when they are called.
"""

import ctypes
import errno
import itertools
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fabric.engine.nvmeof.host import PostSend
from fabric.engine.nvmeof.target import Accept, Drop, FetchData, PeerId, PushData, Reject, Respond
from fabric.engine.transport.base import Event
from fabric.engine.transport.rdma import RdmaConfig, RdmaTransport
from fabric.engine.transport.rdma.layouts import AsyncKind, CmEventKind, QpAttr, QpState, WcStatus
from fabric.engine.transport.rdma.ports import CmEvent, Dial, Keys, QueuePair, RecvRequest, Resize, SendRequest
from fabric.engine.transport.rdma.ring import RECEIVE
from fabric.engine.transport.service import Service, WireOutput
from fabric.engine.transport.signal import Signal

NAME = "soft0"
ADDRESS = "127.0.0.1"


class SoftError(Exception):
    """What a verb refused."""


class SoftCompletion(NamedTuple):
    wr_id: int
    status: int
    byte_len: int = 0


@dataclass
class SoftSend:
    wr_id: int
    address: int
    length: int
    is_signalled: bool
    next_wr: "SendRequest | None" = None


@dataclass
class SoftRecv:
    wr_id: int
    address: int
    length: int
    next_wr: "RecvRequest | None" = None


class SoftPair:
    def __init__(self, adapter: "SoftAdapter", qp_num: int, depth: int) -> None:
        self.adapter = adapter
        self.qp_num = qp_num
        self.depth = depth
        self.state = 0
        self.peer: PeerId | None = None
        self.receives: deque[SoftRecv] = deque()
        self.unsent: deque[SoftSend] = deque()  # posted, without a completion
        self.is_open = True

    def post_send(self, request: SendRequest) -> None:
        self.adapter.doorbells += 1
        one: SendRequest | None = request
        while one is not None:
            assert isinstance(one, SoftSend)
            self.adapter.sent(self, one)
            one = one.next_wr

    def post_recv(self, request: RecvRequest) -> None:
        self.adapter.need(self.adapter.refuse_receives == 0, "post_recv")
        one: RecvRequest | None = request
        while one is not None:
            assert isinstance(one, SoftRecv)
            if len(self.receives) >= self.depth:
                raise SoftError("the receive queue is full")
            self.receives.append(one)
            one = one.next_wr
        if self.state == QpState.ERR:
            self.flush()

    def flush(self) -> None:
        self.state = QpState.ERR
        for queue in (self.unsent, self.receives):
            while queue:
                self.adapter.complete(queue.popleft().wr_id, WcStatus.WR_FLUSH_ERR)

    def close(self) -> None:
        self.is_open = False
        self.adapter.pairs.pop(self.qp_num, None)


class SoftAdapter:
    def __init__(self, fabric: "SoftFabric", name: str, capacity: int) -> None:
        self.fabric = fabric
        self.name = name
        self.failures: tuple[type[Exception], ...] = (SoftError,)
        self.max_reads = fabric.max_reads
        self.capacity = min(capacity, fabric.max_capacity)
        self.is_soft = fabric.is_soft
        self.keys: dict[int, tuple[int, int]] = {}
        self.pairs: dict[int, SoftPair] = {}
        self.ready: deque[SoftCompletion] = deque()
        self.sends: deque[SoftCompletion] = deque()
        self.held: deque[SoftCompletion] | None = None
        self.is_armed = self.sends_armed = self.is_closed = False
        self.notices: deque[bool] = deque()  # of a receive?
        self.doorbells = 0
        self.refuse_registration = self.refuse_sends = self.refuse_receives = 0
        self.dials: list[Dial] = []
        self._numbers = itertools.count(17)
        self._notice = Signal()
        self._async_read, self._async_write = os.pipe()

    def need(self, holds: bool, what: str) -> None:
        if not holds or self.is_closed:
            raise SoftError(f"{what} was refused")

    def register(self, address: int, length: int) -> Keys:
        self.need(not self.refuse_registration, "reg_mr")
        key = next(self._numbers)
        self.keys[key] = (address, address + length)
        return Keys(key, key, address)

    def register_dmabuf(self, descriptor: int, offset: int, length: int) -> Keys:
        self.need(descriptor >= 0, "reg_dmabuf_mr")
        key = next(self._numbers)
        return Keys(key, key, offset)

    def queue_pair(self, depth: int) -> QueuePair:
        self.need(True, "create_qp")
        pair = SoftPair(self, next(self._numbers), depth)
        self.pairs[pair.qp_num] = pair
        return pair

    def move(self, pair: QueuePair, attr: QpAttr, mask: int) -> None:
        assert isinstance(pair, SoftPair)
        pair.state = attr.qp_state

    def fail(self, pair: QueuePair) -> None:
        assert isinstance(pair, SoftPair)
        pair.flush()

    def has_failed(self, pair: QueuePair) -> bool:
        assert isinstance(pair, SoftPair)
        return pair.state == QpState.ERR

    def send_request(self, address: int, length: int, lkey: int, *, signalled: bool) -> tuple[SendRequest, Resize]:
        one = SoftSend(0, address, length, signalled)
        return one, lambda count: setattr(one, "length", count)

    def recv_request(self, address: int, length: int, lkey: int) -> RecvRequest:
        return SoftRecv(0, address, length)

    def poll(self, most: int) -> Sequence[SoftCompletion]:
        return [self.ready.popleft() for _ in range(min(most, len(self.ready)))]

    def poll_sends(self, most: int) -> Sequence[SoftCompletion]:
        return [self.sends.popleft() for _ in range(min(most, len(self.sends)))]

    def arm(self) -> None:
        self.is_armed = True

    def arm_sends(self) -> None:
        self.sends_armed = True

    def take_notice(self) -> bool:
        assert self.notices, "this would block"
        of_receive = self.notices.popleft()
        if not self.notices:
            self._notice.clear()
        return of_receive

    @property
    def notice_fd(self) -> int:
        return self._notice.fileno()

    @property
    def async_fd(self) -> int:
        return self._async_read

    def take_async(self) -> int:
        return os.read(self._async_read, 1)[0]

    def say(self, kind: AsyncKind) -> None:
        os.write(self._async_write, bytes([kind]))

    def close(self) -> None:
        assert not self.pairs, "memory is deregistered under a queue pair"
        self.is_closed = True
        self.keys.clear()
        self._notice.close()
        os.close(self._async_read)
        os.close(self._async_write)

    def complete(self, wr_id: int, status: int, byte_len: int = 0) -> None:
        one = SoftCompletion(wr_id, status, byte_len)
        if self.held is not None:
            self.held.append(one)
            return
        of_receive = bool(wr_id & RECEIVE)
        (self.ready if of_receive else self.sends).append(one)
        if self.is_armed if of_receive else self.sends_armed:
            self.is_armed, self.sends_armed = self.is_armed and not of_receive, self.sends_armed and of_receive
            self.notices.append(of_receive)
            self._notice.set()

    def release(self) -> None:
        """Lets completions through that were held."""
        held, self.held = self.held or deque(), None
        for one in held:
            self.complete(*one)

    def sent(self, pair: SoftPair, one: SoftSend) -> None:
        self.need(not self.refuse_sends, "post_send")
        if pair.state == QpState.ERR:
            self.complete(one.wr_id, WcStatus.WR_FLUSH_ERR)
            return
        assert pair.state == QpState.RTS
        capsule = ctypes.string_at(one.address, one.length)
        if one.is_signalled:
            self.complete(one.wr_id, WcStatus.SUCCESS)
        if pair.peer is not None:
            self.fabric.service.capsule(pair.peer, capsule, self.fabric.now_ns)

    def reach(self, pair: SoftPair, address: int, key: int, length: int) -> bool:
        """Returns whether the peer may touch memory through a pair; if not, the pair breaks as a real one does."""
        start, end = self.keys.get(key, (0, -1))
        may = pair.is_open and pair.state == QpState.RTS and start <= address <= address + length <= end
        if not may and pair.is_open:
            pair.flush()
        return may


class SoftId:
    def __init__(self, manager: "SoftManager", key: int) -> None:
        self.manager = manager
        self.key = key
        self.tos: int | None = None
        self.ack_timeout: int | None = None
        self.steps: list[str] = []
        self.pair: SoftPair | None = None

    def set_tos(self, tos: int) -> None:
        self.tos = tos
        self.steps.append("tos")

    def set_ack_timeout(self, exponent: int) -> None:
        self.ack_timeout = exponent
        self.steps.append("ack_timeout")

    def resolve_addr(self, source: bytes, destination: bytes, timeout_ms: int) -> None:
        self.steps.append("addr")
        self.manager.tell(self, CmEventKind.ADDR_RESOLVED)

    def resolve_route(self, timeout_ms: int) -> None:
        self.steps.append("route")
        self.manager.tell(self, CmEventKind.ROUTE_RESOLVED)

    def device_name(self) -> str:
        return self.manager.fabric.leads_to

    def qp_attr(self, state: QpState) -> tuple[QpAttr, int]:
        return QpAttr(qp_state=state), 0

    def connect(self, dial: Dial) -> None:
        fabric = self.manager.fabric
        self.steps.append("connect")
        self.pair = pair = fabric.adapter.pairs[dial.qp_num]
        assert len(pair.receives) == pair.depth, "the peer may answer before every receive is posted"
        assert pair.state == QpState.INIT
        fabric.adapter.dials.append(dial)
        if CmEventKind.CONNECT_RESPONSE in self.manager.answers:
            self.manager.tell(self, CmEventKind.CONNECT_RESPONSE)
            return
        pair.peer = PeerId(self.key)
        fabric.by_peer[pair.peer] = self
        fabric.service.connect_request(
            pair.peer, dial.private_data, fabric.now_ns, responder_resources=dial.responder_resources
        )

    def establish(self) -> None:
        assert self.pair is not None
        assert self.pair.state == QpState.RTS
        self.steps.append("establish")

    def disconnect(self) -> None:
        fabric = self.manager.fabric
        self.steps.append("disconnect")
        if self.pair is None or self.pair.peer not in fabric.by_peer:
            raise OSError(errno.EINVAL, "not connected")
        del fabric.by_peer[self.pair.peer]
        fabric.service.disconnected(self.pair.peer, fabric.now_ns)

    def destroy(self) -> None:
        self.steps.append("destroy")
        self.manager.ids.pop(self.key, None)
        self.manager.events = deque(event for event in self.manager.events if event.key != self.key)
        if self.pair is not None and self.pair.peer in self.manager.fabric.by_peer:
            self.disconnect()


class SoftManager:
    def __init__(self, fabric: "SoftFabric") -> None:
        self.fabric = fabric
        self.answers: dict[CmEventKind, tuple[CmEventKind | None, int, bytes]] = {}
        self.events: deque[CmEvent] = deque()
        self.ids: dict[int, SoftId] = {}
        self.forgets: deque[bool] = deque()
        self.refuse_ids = 0
        self.is_closed = False
        self._keys = itertools.count(1000)
        self._signal = Signal()

    def fileno(self) -> int:
        return self._signal.fileno()

    def device_of(self, source: bytes) -> str:
        if self.fabric.source_error:
            raise OSError(self.fabric.source_error, os.strerror(self.fabric.source_error))
        return self.fabric.leads_to

    def create(self) -> SoftId:
        if self.refuse_ids:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        one = SoftId(self, next(self._keys))
        self.ids[one.key] = one
        return one

    def next_event(self) -> CmEvent | None:
        if self.events:
            return self.events.popleft()
        self._signal.clear()
        return None

    def forget_removed(self) -> bool:
        return self.forgets.popleft() if self.forgets else False

    def close(self) -> None:
        assert not self.ids, "the channel goes before its connections"
        self.is_closed = True
        self._signal.close()

    def tell(self, one: SoftId, kind: CmEventKind, status: int = 0, private_data: bytes = b"") -> None:
        """Queues an event of a connection, or what stands in `answers` for it."""
        instead = self.answers.get(kind, (kind, status, private_data))
        found, code, data = instead
        if found is not None:
            self.events.append(CmEvent(one.key, found, code, data))
            self._signal.set()


@dataclass
class SoftFabric:
    """Both ends of everything."""

    service: Service
    leads_to: str = NAME
    source_error: int = 0
    max_reads: int = 16
    max_capacity: int = 4096
    is_soft: bool = True
    now_ns: int = 0
    by_peer: dict[PeerId, SoftId] = field(default_factory=dict)
    manager: SoftManager = field(init=False)
    adapter: SoftAdapter = field(init=False)

    def __post_init__(self) -> None:
        self.manager = SoftManager(self)

    def open(self, name: str, capacity: int, /) -> SoftAdapter:
        self.adapter = SoftAdapter(self, name, capacity)
        return self.adapter

    def pump(self) -> bool:
        """Carries what the target says; returns whether it said anything."""
        said = False
        while wire := self.service.poll(self.now_ns):
            said = True
            for output in wire:
                one = self.by_peer.get(output.peer)
                if one is not None and one.pair is not None:
                    self._carry(output, one, one.pair)
        return said

    def _carry(self, output: WireOutput, one: SoftId, pair: SoftPair) -> None:
        match output:
            case Accept(_peer, private_data):
                self.manager.tell(one, CmEventKind.CONNECT_RESPONSE, 0, private_data.ljust(196, b"\0"))
            case Reject(_peer, private_data):
                del self.by_peer[output.peer]
                self.service.disconnected(output.peer, self.now_ns)
                self.manager.tell(one, CmEventKind.REJECTED, 28, private_data.ljust(148, b"\0"))
            case Drop():
                pair.flush()
                self.manager.tell(one, CmEventKind.DISCONNECTED)
            case PushData(_peer, _cid, address, key, data):
                if self.adapter.reach(pair, address, key, len(data)):
                    ctypes.memmove(address, data, len(data))
            case FetchData(_peer, task, _cid, address, key, length):
                if self.adapter.reach(pair, address, key, length):
                    self.service.data_fetched(output.peer, task, ctypes.string_at(address, length), self.now_ns)
            case Respond(_peer, response):
                self.respond(pair, response)

    def respond(self, pair: SoftPair, response: bytes) -> None:
        """Sends a response, as the target would."""
        if pair.state == QpState.RTS:
            assert pair.receives, "the host promised a receive for each of its commands"
            receive = pair.receives.popleft()
            ctypes.memmove(receive.address, response, min(len(response), receive.length))
            self.adapter.complete(receive.wr_id, WcStatus.SUCCESS, len(response))


class SoftRdmaTransport(RdmaTransport):
    """The transport over a soft fabric, which moves when it is polled."""

    def __init__(self, fabric: SoftFabric, config: RdmaConfig | None = None) -> None:
        self.fabric = fabric
        super().__init__(config or RdmaConfig(ADDRESS, tos=104), lambda: fabric.manager, fabric.open)

    def post(self, batch: Sequence[PostSend], now_ns: int) -> None:
        self.fabric.now_ns = now_ns
        super().post(batch, now_ns)
        self.fabric.pump()

    def poll(self, now_ns: int) -> list[Event]:
        self.fabric.now_ns = now_ns
        self.fabric.pump()
        while not (events := super().poll(now_ns)) and self.fabric.pump():
            pass
        return events

    def next_timer_ns(self) -> int | None:
        due = [at for at in (super().next_timer_ns(), self.fabric.service.next_timer_ns()) if at is not None]
        return min(due, default=None)
