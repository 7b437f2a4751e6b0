"""The in-process transport: a host's capsules go straight into a target, whose data goes straight into its memory.

It keeps what RDMA promises (data before its answer, in order, only where a key allows). Like RDMA it promises no more:
between a command's timeout and the end of its connection the target may still write into the buffer. `flush_ns` is how
long a connection takes to go down, and so how long that window is open. What goes wrong comes from the service's shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fabric.engine.nvmeof.host import Connect, ConnectionId, PostSend, QueueMemory, Region
from fabric.engine.nvmeof.target import Accept, Drop, FetchData, PeerId, PushData, Reject, Respond
from fabric.engine.transport.arenas import Arenas
from fabric.engine.transport.base import (
    Arena,
    Broken,
    Connected,
    DeviceRemoved,
    Disconnected,
    Event,
    Received,
    Rejected,
    Sent,
)
from fabric.engine.transport.service import Service, WireOutput
from fabric.engine.transport.signal import Signal
from fabric.errors import EngineError, LocalProtocolError, TransportError

__all__ = ("MemoryTransport",)


@dataclass(slots=True)
class _Link:
    """One connection.

    Attributes:
        order: what asked for it.
        memory: its scratch.
        places: where the data of each command id lies, for a target that names no address.
        payloads: slot and scratch bytes to hand over with the answer, by command id.
        unpolled: answers that nobody has taken yet; each needs a receive.
        is_broken: carries nothing more.
        gone_ns: when it will be gone, once that was asked for.
    """

    order: Connect
    memory: QueueMemory
    places: dict[int, Region] = field(default_factory=dict)
    payloads: dict[int, tuple[int, int]] = field(default_factory=dict)
    unpolled: int = 0
    is_broken: bool = False
    gone_ns: int | None = None


class MemoryTransport:
    """A host's way to one service in the same process. Satisfies `Transport[PostSend]`. One at a time on a service.

    Args:
        service: what is at the other end.
        keyed: the target names memory by address and key, as on RDMA; else by command id, as on TCP.
        flush_ns: from `disconnect` until nothing writes any more.
    """

    def __init__(self, service: Service, *, keyed: bool = True, flush_ns: int = 0) -> None:
        self.service = service
        self._keyed = keyed
        self._flush_ns = flush_ns
        self._arenas = Arenas()
        self._links: dict[ConnectionId, _Link] = {}
        self._events: list[Event] = []
        self._signal = Signal()
        self._last_id = -1
        self._now_ns = 0  # of the last call that told the time

    def register(self, memory: memoryview) -> Arena:
        """See `Transport`."""
        return self._arenas.register(memory)

    def connect(self, order: Connect, now_ns: int) -> None:
        """See `Transport`."""
        if order.connection <= self._last_id:
            raise LocalProtocolError("a connection id was used before", found=str(order.connection))
        self._last_id = order.connection
        self._links[order.connection] = _Link(order, self._arenas.scratch(order.depth))
        peer = PeerId(order.connection)
        resources = order.responder_resources
        self.service.connect_request(peer, order.private_data, now_ns, responder_resources=resources)
        self._pump(now_ns)

    def post(self, batch: Sequence[PostSend], now_ns: int) -> None:
        """See `Transport`."""
        for post in batch:
            if post.region is not None:
                self._arenas.view(post.region)
        for post in batch:
            link = self._links.get(post.connection)
            if link is None or link.is_broken or link.gone_ns is not None:
                continue
            self._remember(post, link)
            self._say(Sent(post.connection, post.slot))
            self.service.capsule(PeerId(post.connection), self._capsule(post), now_ns)
        self._pump(now_ns)

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        """See `Transport`."""
        link = self._links.get(connection)
        if link is not None and link.gone_ns is None:
            link.gone_ns = now_ns + self._flush_ns
            self._pump(now_ns)

    def remove_device(self, now_ns: int, reason: str = "the device was removed") -> None:
        """Takes the adapter away: every connection breaks."""
        for connection, link in self._links.items():
            self._break(connection, link, TransportError("the network device is gone", found=reason))
        self._say(DeviceRemoved(reason))
        self._pump(now_ns)

    def poll(self, now_ns: int) -> list[Event]:
        """See `Transport`."""
        self._pump(now_ns)
        events, self._events = self._events, []
        self._signal.clear()
        for link in self._links.values():
            link.unpolled = 0
        return events

    def next_timer_ns(self) -> int | None:
        """See `Transport`."""
        due = [link.gone_ns for link in self._links.values() if link.gone_ns is not None]
        if (at_ns := self.service.next_timer_ns()) is not None:
            due.append(at_ns)
        return min(due) if due else None

    def fileno(self) -> int:
        """See `Transport`."""
        return self._signal.fileno()

    def close(self) -> None:
        """See `Transport`. The service forgets the connections too: the next transport on it numbers its own anew."""
        for connection in self._links:
            self.service.disconnected(PeerId(connection), self._now_ns)
        self._links.clear()
        self._arenas.clear()
        self._signal.close()

    def _say(self, event: Event) -> None:
        self._events.append(event)
        self._signal.set()

    def _pump(self, now_ns: int) -> None:
        self._now_ns = now_ns
        while wire := self.service.poll(now_ns):
            for output in wire:
                self._carry(output, now_ns)
        for connection, link in list(self._links.items()):
            if link.gone_ns is not None and link.gone_ns <= now_ns:
                del self._links[connection]
                self._arenas.forget(link.memory.key)
                self.service.disconnected(PeerId(connection), now_ns)
                self._say(Disconnected(connection, "taken down"))

    def _carry(self, output: WireOutput, now_ns: int) -> None:
        connection = ConnectionId(output.peer)
        link = self._links.get(connection)
        if link is None:
            return
        try:
            match output:
                case PushData(_peer, cid, address, key, data):
                    # also while it goes down: a late write lands, and the buffer has to be fenced against it
                    self._arenas.view(self._place(link, cid, address, key, len(data)))[:] = data
                case FetchData(_peer, task, cid, address, key, length) if link.order.responder_resources:
                    data = bytes(self._arenas.view(self._place(link, cid, address, key, length)))
                    self.service.data_fetched(output.peer, task, data, now_ns)
                case _ if link.gone_ns is None and not link.is_broken:
                    self._tell(output, connection, link, now_ns)
        except LocalProtocolError as error:
            # what an adapter does when a key does not allow it: the queue pair breaks, on both sides
            self._break(connection, link, TransportError("the target used memory that it may not", found=str(error)))

    def _tell(self, output: WireOutput, connection: ConnectionId, link: _Link, now_ns: int) -> None:
        match output:
            case Accept(_peer, private_data):
                self._say(Connected(connection, private_data, link.memory))
            case Reject(_peer, private_data):
                del self._links[connection]
                self._arenas.forget(link.memory.key)
                self.service.disconnected(output.peer, now_ns)
                self._say(Rejected(connection, private_data))
            case Drop(_peer, reason):
                self._break(connection, link, TransportError("the target disconnected", found=reason))
            case Respond(_peer, response):
                self._answer(connection, link, response)

    def _answer(self, connection: ConnectionId, link: _Link, response: bytes) -> None:
        link.unpolled += 1
        if link.unpolled > link.order.depth:
            self._break(connection, link, TransportError("an answer came and no receive was posted"))
            return
        cid = int.from_bytes(response[12:14], "little")
        link.places.pop(cid, None)
        slot, wanted = link.payloads.pop(cid, (0, 0))
        payload = bytes(self._arenas.slot(link.memory, slot)[:wanted]) if wanted else b""
        self._say(Received(connection, response, payload))

    def _capsule(self, post: PostSend) -> bytes:
        if post.region is not None and post.carries_region:
            return post.capsule + self._arenas.view(post.region)
        return post.capsule

    def _remember(self, post: PostSend, link: _Link) -> None:
        cid = int.from_bytes(post.capsule[2:4], "little")
        if post.outgoing:
            self._arenas.slot(link.memory, post.slot)[: len(post.outgoing)] = post.outgoing
        if post.incoming_bytes:
            link.payloads[cid] = (post.slot, post.incoming_bytes)
        if not self._keyed:
            memory = link.memory
            scratch = Region(memory.address + post.slot * memory.slot_bytes, memory.slot_bytes, memory.key)
            link.places[cid] = post.region or scratch

    def _place(self, link: _Link, cid: int, address: int, key: int, length: int) -> Region:
        if self._keyed:
            return Region(address, length, key)
        found = link.places.get(cid)
        if found is None or length > found.length:
            raise LocalProtocolError("data for no open command", found=f"{length} bytes for command {cid}")
        return Region(found.address, length, found.key)

    def _break(self, connection: ConnectionId, link: _Link, error: EngineError) -> None:
        if not link.is_broken and link.gone_ns is None:
            link.is_broken = True
            self._say(Broken(connection, error))
