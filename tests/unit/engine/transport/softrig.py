"""An RDMA transport on the soft adapter: one is made, connected, given work and heard out."""

import struct
from collections.abc import Callable, Iterator

from fabric.engine.nvmeof.host import Connect, ConnectionId, PostSend
from fabric.engine.nvmeof.wire.cm import CmRequest
from fabric.engine.transport.base import Broken, Connected, Event, Sent
from fabric.engine.transport.rdma import RdmaConfig
from fabric.engine.transport.rdma.layouts import CmEventKind
from fabric.errors import EngineError
from tests.unit.engine.transport.rig import service
from tests.unit.engine.transport.softrdma import SoftFabric, SoftPair, SoftRdmaTransport

ONE = ConnectionId(1)
PORT = CmEventKind
Make = Callable[..., SoftRdmaTransport]


def makers() -> Iterator[Make]:
    """Gives a maker of transports that are closed after the test, adapter and manager too."""
    made: list[SoftRdmaTransport] = []

    def build(config: RdmaConfig | None = None, **fabric: int | str | bool) -> SoftRdmaTransport:
        made.append(SoftRdmaTransport(SoftFabric(service("rdma"), **fabric), config))  # type: ignore[arg-type]
        return made[-1]

    yield build
    for one in made:
        one.close()
        assert one.fabric.adapter.is_closed
        assert one.fabric.manager.is_closed


def ask(connection: int = 1, depth: int = 4, reads: int = 8) -> Connect:
    private_data = CmRequest(0, depth, depth - 1, 0).pack()
    return Connect(ConnectionId(connection), 0, depth, private_data, reads)


def drained(one: SoftRdmaTransport, now_ns: int = 0) -> list[Event]:
    seen: list[Event] = []
    while events := one.poll(now_ns):
        seen += events
    return seen


def live(one: SoftRdmaTransport, connection: int = 1, depth: int = 4) -> Connected:
    one.connect(ask(connection, depth), 0)
    (event,) = drained(one)
    assert isinstance(event, Connected)
    return event


def pair_of(one: SoftRdmaTransport) -> SoftPair:
    (pair,) = one.fabric.adapter.pairs.values()
    return pair


def capsule(cid: int, extra: int = 0) -> bytes:
    return struct.pack("<BBH", 0x0C, 0x40, cid) + bytes(60 + extra)


def send(slot: int, connection: int = 1, **more: object) -> PostSend:
    return PostSend(ConnectionId(connection), 0, slot, capsule(slot), **more)  # type: ignore[arg-type]


def answer(cid: int) -> bytes:
    return struct.pack("<QHHHH", 0, 0, 0, cid, 0)


def slots_sent(one: SoftRdmaTransport) -> list[int]:
    return [event.slot for event in drained(one) if isinstance(event, Sent)]


def broken(events: list[Event]) -> EngineError:
    (one,) = [event for event in events if isinstance(event, Broken)]
    return one.error
