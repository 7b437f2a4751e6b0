"""What every transport of capsules has to do, by one suite: host and target, over each of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabric.engine.nvmeof.errors import CommandTimeoutError
from fabric.engine.nvmeof.host import (
    Closed,
    Completed,
    Connect,
    ConnectionId,
    ControllerState,
    Deallocate,
    Failed,
    Flush,
    PostSend,
    QuarantineReleased,
    QueueUp,
    Read,
    Reconnecting,
    Region,
    Write,
    WriteZeroes,
)
from fabric.engine.nvmeof.wire.cm import CmRequest
from fabric.engine.nvmeof.wire.io import IoOpcode, LbaRange
from fabric.engine.nvmeof.wire.status import Status
from fabric.engine.transport.base import Arena, Broken, Connected, Disconnected, Event, Rejected, Transport, allocate
from fabric.engine.transport.block import BlockConfig, BlockPost, BlockTransport
from fabric.engine.transport.driver import wait
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import Latency, Shape
from fabric.engine.transport.tcp import TcpServer
from fabric.errors import LocalProtocolError
from tests.unit.engine.transport.rig import KINDS, MIB, SECOND, Kind, World

Make = Callable[..., World]
EVERY = pytest.mark.parametrize("kind", KINDS)
READ, WRITE = int(IoOpcode.READ), int(IoOpcode.WRITE)


def pattern(length: int, salt: int = 1) -> bytes:
    return bytes((index * 7 + salt) & 0xFF for index in range(251)) * (length // 251) + bytes(length % 251)


@EVERY
def test_what_is_written_is_read_back_on_every_queue(kind: Kind, make: Make) -> None:
    one = make(kind)
    data = pattern(64 * 1024)
    one.arena.view[: len(data)] = data

    wrote = one.host.submit(1, Write(1, 8, 128, one.arena.region(0, len(data))), 0)
    assert isinstance(one.end_of(wrote), Completed)
    read = one.host.submit(2, Read(1, 8, 128, one.arena.region(MIB, len(data))), 0)

    assert isinstance(one.end_of(read), Completed)
    assert bytes(one.arena.view[MIB : MIB + len(data)]) == data
    assert one.disk[4096 : 4096 + len(data)] == data


@EVERY
def test_a_read_touches_its_own_bytes_only(kind: Kind, make: Make) -> None:
    one = make(kind)
    one.disk[:] = b"d" * len(one.disk)
    one.arena.view[:] = b"." * len(one.arena.view)

    assert isinstance(one.end_of(one.host.submit(1, Read(1, 0, 3, one.arena.region(1000, 1536)), 0)), Completed)

    assert bytes(one.arena.view[:1000]) == b"." * 1000
    assert bytes(one.arena.view[1000:2536]) == b"d" * 1536
    assert bytes(one.arena.view[2536:4096]) == b"." * (4096 - 2536)


@EVERY
def test_small_writes_zeroes_deallocation_and_flush(kind: Kind, make: Make) -> None:
    one = make(kind)
    one.disk[:] = b"x" * len(one.disk)

    requests = [
        one.host.submit(1, Write(1, 1, 1, b"k" * 512, force_unit_access=True), 0),
        one.host.submit(1, WriteZeroes(1, 2, 2), 0),
        one.host.submit(2, Deallocate(1, tuple(LbaRange(10 + 2 * index, 1) for index in range(256))), 0),
        one.host.submit(2, Flush(1), 0),
    ]

    assert all(isinstance(one.end_of(request), Completed) for request in requests)
    assert one.disk[512:2560] == b"k" * 512 + bytes(1024) + b"x" * 512
    assert one.disk[: 600 * 512 : 512].count(0) == 2 + 256


@EVERY
def test_many_transfers_fly_at_once_and_each_lands_in_its_place(kind: Kind, make: Make) -> None:
    one = make(kind, io_depth=32)
    one.disk[:] = b"".join(bytes([index & 0xFF]) * 4096 for index in range(len(one.disk) // 4096))
    order = [(index * 37) % 62 for index in range(62)]

    requests = [
        one.host.submit(1 + at % 2, Read(1, 8 * block, 8, one.arena.region(at * 4096, 4096)), 0)
        for at, block in enumerate(order)
    ]

    assert all(isinstance(one.end_of(request), Completed) for request in requests)
    assert [one.arena.view[at * 4096] for at in range(62)] == order
    assert one.host.queue(1).slots.in_use == one.host.queue(2).slots.in_use == 0


# not with digests: a mebibyte through the plain Python CRC-32C takes seconds
@pytest.mark.parametrize("kind", [one for one in KINDS if one != "tcp-digests"])
def test_the_largest_transfer_goes_both_ways(kind: Kind, make: Make) -> None:
    one = make(kind)
    one.arena.view[:MIB] = pattern(MIB)

    assert isinstance(one.end_of(one.host.submit(1, Write(1, 0, 2048, one.arena.region(0, MIB)), 0)), Completed)
    assert isinstance(one.end_of(one.host.submit(1, Read(1, 0, 2048, one.arena.region(MIB, MIB)), 0)), Completed)

    assert one.arena.view[:MIB] == one.arena.view[MIB : 2 * MIB]


@EVERY
def test_a_refused_command_leaves_the_queue_and_the_memory_alone(kind: Kind, make: Make) -> None:
    fault = Fault(FaultKind.STATUS, opcodes=(READ, WRITE), commands=(0,), status=Status.UNRECOVERED_READ_ERROR)
    one = make(kind, Shape(faults=(fault,)))
    one.arena.view[:4096] = b"." * 4096

    failed = one.end_of(one.host.submit(1, Read(1, 0, 8, one.arena.region(0, 4096)), 0))
    after = one.end_of(one.host.submit(1, Read(1, 0, 8, one.arena.region(4096, 4096)), 0))

    assert isinstance(failed, Failed)
    assert not failed.held
    assert isinstance(after, Completed)
    assert bytes(one.arena.view[:4096]) == b"." * 4096


@EVERY
def test_a_lost_command_times_out_and_its_memory_is_released_when_the_connection_is_gone(
    kind: Kind, make: Make
) -> None:
    one = make(kind, Shape(faults=(Fault(FaultKind.DROP, opcodes=(READ,), commands=(0,)),)))

    request = one.host.submit(1, Read(1, 0, 8, one.arena.region(0, 4096)), one.now_ns)
    one.quiet()
    one.advance(31 * SECOND, SECOND)

    end = one.end_of(request)
    assert isinstance(end, Failed)
    assert isinstance(end.error, CommandTimeoutError)
    assert end.held
    (released,) = [event for event in one.events if isinstance(event, QuarantineReleased)]
    assert released.requests == (request,)
    assert one.events.index(end) < one.events.index(released)


@EVERY
def test_a_queue_that_broke_comes_back_and_carries_again(kind: Kind, make: Make) -> None:
    one = make(kind, Shape(faults=(Fault(FaultKind.BREAK, opcodes=(READ,), commands=(0,)),)))

    request = one.host.submit(1, Read(1, 0, 8, one.arena.region(0, 4096)), one.now_ns)
    assert isinstance(one.end_of(request), Failed)
    one.advance(SECOND)
    one.settle(lambda: sum(isinstance(event, QueueUp) and event.qid == 1 for event in one.events) == 2)

    again = one.host.submit(1, Read(1, 0, 8, one.arena.region(0, 4096)), one.now_ns)
    assert isinstance(one.end_of(again), Completed)


@EVERY
def test_an_answer_that_comes_twice_takes_the_queue_down_and_changes_no_byte(kind: Kind, make: Make) -> None:
    one = make(kind, Shape(faults=(Fault(FaultKind.DUPLICATE, opcodes=(READ,), commands=(0,)),)))
    one.disk[:512] = b"d" * 512

    first = one.host.submit(1, Read(1, 0, 1, one.arena.region(0, 512)), one.now_ns)

    assert isinstance(one.end_of(first), Completed)
    one.settle(lambda: one.host.live_queues == (2,))
    assert bytes(one.arena.view[:512]) == b"d" * 512


@EVERY
def test_answers_out_of_order_and_late_ones_reach_their_commands(kind: Kind, make: Make) -> None:
    faults = (
        Fault(FaultKind.REORDER, opcodes=(READ,), commands=(0, 2), delay_ns=SECOND),
        Fault(FaultKind.LATE_ANSWER, opcodes=(READ,), commands=(3,), delay_ns=SECOND),
    )
    one = make(kind, Shape(faults=faults))
    requests = [one.host.submit(1, Read(1, at, 1, one.arena.region(512 * at, 512)), 0) for at in range(4)]

    one.quiet()
    one.advance(2 * SECOND)

    assert all(isinstance(one.end_of(request), Completed) for request in requests)
    finished = [one.request for one in one.ends()]
    assert finished.index(requests[1]) < finished.index(requests[0])


@EVERY
def test_a_stall_of_ten_seconds_costs_nothing_when_the_answers_had_come(kind: Kind, make: Make) -> None:
    one = make(kind, io_timeout_ns=5 * SECOND)
    request = one.host.submit(1, Read(1, 0, 8, one.arena.region(0, 4096)), one.now_ns)
    one.driver.flush(one.now_ns)
    if one.server:
        for _ in range(10):  # the target answers while the host sleeps
            one.server.poll(one.now_ns)
            wait([one.server.fileno()], 5_000_000)

    one.now_ns += 10 * SECOND

    assert isinstance(one.end_of(request), Completed)
    assert one.host.state is ControllerState.LIVE


@EVERY
def test_an_orderly_shutdown_leaves_no_connection(kind: Kind, make: Make) -> None:
    one = make(kind)

    one.host.stop(one.now_ns)
    one.advance(SECOND)

    assert one.has(Closed)
    assert one.service.target.controllers == ()
    assert one.server is None or one.server.connections == 0


@EVERY
def test_a_keep_alive_goes_out_while_nothing_else_does(kind: Kind, make: Make) -> None:
    one = make(kind)

    one.advance(60 * SECOND, SECOND)

    assert one.host.state is ControllerState.LIVE
    assert not one.has(Reconnecting)


@EVERY
def test_a_shape_delays_and_its_seed_repeats(kind: Kind, make: Make) -> None:
    shape = Shape(service_ns=1000, latency=Latency("lognormal", 100_000, 0.5), link_bytes_per_s=10 << 20, seed=3)
    one = make(kind, shape, start=False)
    one.host.start(0)
    one.quiet()
    one.advance(SECOND, SECOND // 1000)
    request = one.host.submit(1, Read(1, 0, 8, one.arena.region(0, 4096)), one.now_ns)

    one.quiet()
    assert one.ends() == []
    one.advance(10_000_000, 100_000)

    assert isinstance(one.end_of(request), Completed)


# -- the calls themselves, which the block transport has too


@dataclass
class Bare:
    """A transport that nobody drives, with memory."""

    transport: Transport[PostSend] | Transport[BlockPost]
    arena: Arena
    server: TcpServer | None = None
    now_ns: int = 0


@pytest.fixture
def bare(make: Make, tmp_path: Path) -> Iterator[Callable[[str], Bare]]:
    opened: list[BlockTransport] = []

    def build(kind: str) -> Bare:
        if kind == "block":
            (tmp_path / "disk").write_bytes(bytes(8192))
            opened.append(BlockTransport(BlockConfig(tmp_path / "disk", threads=1)))
            return Bare(opened[-1], opened[-1].register(allocate(8192)))
        one = make(kind, start=False)
        return Bare(one.transport, one.arena, one.server)

    yield build
    for one in opened:
        one.close()


BareMake = Callable[[str], Bare]
EVERY_CALL = pytest.mark.parametrize("kind", [*KINDS, "block"])


def ask(identifier: int, depth: int = 8) -> Connect:
    return Connect(ConnectionId(identifier), 0, depth, CmRequest(0, depth, depth - 1, 0).pack(), 1)


def events_of(one: Bare, until: Callable[[list[Event]], bool]) -> list[Event]:
    seen: list[Event] = []

    def look() -> bool:
        seen.extend(one.transport.poll(one.now_ns))
        return until(seen)

    idle = 0
    while not look():
        if one.server:
            one.server.poll(one.now_ns)
            wait([one.transport.fileno(), one.server.fileno()], 20_000_000)
        idle += 1
        assert idle < 100, seen
    return seen


@EVERY_CALL
def test_a_connection_id_is_never_taken_twice(kind: str, bare: BareMake) -> None:
    one = bare(kind)
    one.transport.connect(ask(5), 0)
    one.transport.disconnect(ConnectionId(5), 0)

    for identifier in (5, 4):
        with pytest.raises(LocalProtocolError, match="used before"):
            one.transport.connect(ask(identifier), 0)


@EVERY_CALL
def test_every_disconnect_is_answered_once_in_every_state(kind: str, bare: BareMake) -> None:
    one = bare(kind)
    one.transport.connect(ask(1), 0)
    one.transport.disconnect(ConnectionId(1), 0)
    one.transport.disconnect(ConnectionId(1), 0)
    one.transport.connect(ask(2), 0)

    seen = events_of(one, lambda seen: any(isinstance(event, Connected) and event.connection == 2 for event in seen))
    one.transport.disconnect(ConnectionId(2), 0)
    one.transport.disconnect(ConnectionId(2), 0)
    one.transport.disconnect(ConnectionId(77), 0)
    seen += events_of(one, lambda seen: any(isinstance(event, Disconnected) for event in seen))
    seen += one.transport.poll(0)

    assert [event.connection for event in seen if isinstance(event, Disconnected)] == [1, 2]
    assert not any(isinstance(event, Broken | Rejected) for event in seen)


@EVERY_CALL
def test_the_descriptor_is_readable_exactly_while_something_is_to_be_polled(kind: str, bare: BareMake) -> None:
    one = bare(kind)
    descriptor = one.transport.fileno()
    assert not wait([descriptor], 0)

    one.transport.connect(ask(1), 0)
    one.transport.disconnect(ConnectionId(1), 0)
    assert wait([descriptor], 0)
    assert one.transport.poll(0)
    while one.transport.poll(0):
        pass

    assert not wait([descriptor], 0)
    assert one.transport.fileno() == descriptor


@EVERY
def test_memory_that_is_not_registered_is_refused_before_anything_is_sent(kind: Kind, make: Make) -> None:
    one = make(kind)
    for region in (Region(0, 512, 999), Region(len(one.arena.view) - 100, 512, one.arena.key)):
        one.host.submit(1, Read(1, 0, 1, region), one.now_ns)
        with pytest.raises(LocalProtocolError, match="not registered"):
            one.driver.flush(one.now_ns)


@EVERY_CALL
def test_only_writable_contiguous_bytes_are_registered(kind: str, bare: BareMake) -> None:
    one = bare(kind)
    wrong = [memoryview(b"read-only"), memoryview(bytearray(16))[::2], memoryview(bytearray(16)).cast("I")]

    for memory in wrong:
        with pytest.raises(LocalProtocolError):
            one.transport.register(memory)
    with pytest.raises(LocalProtocolError, match="outside its arena"):
        one.arena.region(0, len(one.arena.view) + 1)
