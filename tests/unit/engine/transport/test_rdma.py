"""The RDMA transport over a soft adapter: every event of the connection manager, every error, every order of an end."""

import errno
import struct
from collections.abc import Callable, Iterator

import pytest

from fabric.engine.nvmeof.host import Completed, Connect, ConnectionId, Lost, PostSend, Read, Region, Write
from fabric.engine.nvmeof.target import NVMET
from fabric.engine.nvmeof.wire.cm import CmReject, CmRequest, CmStatus
from fabric.engine.transport.base import (
    Broken,
    Connected,
    DeviceRemoved,
    Disconnected,
    Event,
    Received,
    Rejected,
    Sent,
    allocate,
)
from fabric.engine.transport.driver import wait
from fabric.engine.transport.rdma import RdmaConfig
from fabric.engine.transport.rdma.layouts import AsyncKind, CmEventKind, QpState, WcStatus
from fabric.errors import EngineError, EnvironmentMissingError, LocalProtocolError, RemoteProtocolError, TransportError
from tests.unit.engine.transport.rig import SECOND, World, bring_up, service, world
from tests.unit.engine.transport.softrdma import ADDRESS, SoftFabric, SoftPair, SoftRdmaTransport

ONE = ConnectionId(1)
PORT = CmEventKind
Make = Callable[..., SoftRdmaTransport]


@pytest.fixture
def make() -> Iterator[Make]:
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


# -- connecting


def test_a_connection_is_marked_before_its_route_and_asked_for_with_every_receive_posted(make: Make) -> None:
    one = make(RdmaConfig(ADDRESS, tos=104, ack_timeout=16))
    event = live(one)

    (identifier,) = one.fabric.manager.ids.values()
    assert (identifier.tos, identifier.ack_timeout) == (104, 16)
    assert identifier.steps == ["tos", "ack_timeout", "addr", "route", "connect", "establish"]
    assert len(pair_of(one).receives) == 4
    assert event.memory.address % 4096 == 0
    assert event.memory.slot_bytes == 4096


def test_without_a_type_of_service_none_is_set(make: Make) -> None:
    one = make(RdmaConfig(ADDRESS))
    live(one)
    (identifier,) = one.fabric.manager.ids.values()
    assert identifier.steps[0] == "addr"


@pytest.mark.parametrize(
    ("reads", "granted"), [(0, 1), (8, 8), (255, 16)], ids=["never none", "as asked", "what the device can"]
)
def test_the_target_may_always_read_our_memory(make: Make, reads: int, granted: int) -> None:
    one = make()
    one.connect(ask(reads=reads), 0)
    drained(one)
    assert [dial.responder_resources for dial in one.fabric.adapter.dials] == [granted]


@pytest.mark.parametrize(("soft", "retries"), [(True, 6), (False, 7)])
def test_soft_roce_never_retries_for_ever(make: Make, soft: bool, retries: int) -> None:
    one = make(is_soft=soft)
    live(one)
    assert [dial.retry_count for dial in one.fabric.adapter.dials] == [retries]


@pytest.mark.parametrize(
    ("step", "event", "status", "found"),
    [
        (PORT.ADDR_RESOLVED, PORT.ADDR_ERROR, -errno.ETIMEDOUT, "nothing came back"),
        (PORT.ROUTE_RESOLVED, PORT.ROUTE_ERROR, -errno.ENETUNREACH, "unreachable"),
        (PORT.CONNECT_RESPONSE, PORT.UNREACHABLE, -errno.ETIMEDOUT, "nothing came back"),
        (PORT.CONNECT_RESPONSE, PORT.CONNECT_ERROR, -errno.ECONNRESET, "reset"),
        (PORT.ROUTE_RESOLVED, PORT.ADDR_CHANGE, 0, ""),
        (PORT.ROUTE_RESOLVED, PORT.REJECTED, 8, "nothing listens there"),
    ],
)
def test_a_connection_that_cannot_be_made_breaks_and_says_where_it_ended(
    make: Make, step: CmEventKind, event: CmEventKind, status: int, found: str
) -> None:
    one = make()
    one.fabric.manager.answers[step] = (event, status, b"")
    one.connect(ask(), 0)

    error = broken(drained(one))

    assert isinstance(error, TransportError)
    assert f"{ADDRESS}:4420, queue 0" in error.where
    assert found in error.found
    one.disconnect(ONE, 0)
    assert [type(event) for event in drained(one)] == [Disconnected]
    assert not one.fabric.manager.ids
    assert not one.fabric.adapter.pairs


def test_a_rejection_hands_over_what_the_target_said_and_leaves_nothing(make: Make) -> None:
    one = make()
    one.connect(ask(depth=64), 0)  # nvmet takes 32 entries of an admin queue

    (event,) = drained(one)

    assert isinstance(event, Rejected)
    assert CmReject.parse(event.private_data).status is CmStatus.INVALID_HOST_SQ_SIZE
    assert not event.stale
    assert not one.fabric.manager.ids
    assert not one.fabric.adapter.pairs
    one.disconnect(ONE, 0)
    assert drained(one) == []


def test_a_connection_that_the_peer_still_holds_is_stale(make: Make) -> None:
    one = make()
    one.fabric.manager.answers[PORT.CONNECT_RESPONSE] = (PORT.REJECTED, 10, bytes(148))
    one.connect(ask(), 0)
    (event,) = drained(one)
    assert isinstance(event, Rejected)
    assert event.stale


def test_a_path_over_another_adapter_is_refused_because_memory_is_registered_here(make: Make) -> None:
    one = make()
    one.fabric.leads_to = "soft1"
    one.connect(ask(), 0)
    assert "soft1" in broken(drained(one)).found


def test_what_the_kernel_or_the_adapter_refuses_breaks_the_connection_and_not_the_caller(make: Make) -> None:
    one = make(max_capacity=16)
    one.fabric.manager.refuse_ids = 1
    one.connect(ask(1), 0)
    one.fabric.manager.refuse_ids = 0
    one.fabric.adapter.refuse_registration = 1
    one.connect(ask(2), 0)
    one.fabric.adapter.refuse_registration = 0
    one.connect(ask(3, depth=17), 0)  # so many receives do not fit
    errors = {event.connection: str(event.error) for event in drained(one) if isinstance(event, Broken)}

    assert "ENOMEM" in errors[ConnectionId(1)]
    assert "reg_mr" in errors[ConnectionId(2)]
    assert "completion queue is full" in errors[ConnectionId(3)]
    for connection in (1, 2, 3, 3):
        one.disconnect(ConnectionId(connection), 0)
    assert [event.connection for event in drained(one) if isinstance(event, Disconnected)] == [1, 2, 3]
    live(one, 4)
    assert not one.fabric.manager.ids.keys() - {pair_of(one).peer}


@pytest.mark.parametrize("code", [errno.ENODEV, errno.EADDRNOTAVAIL])
def test_an_address_without_an_adapter_is_a_matter_of_this_machine(code: int) -> None:
    fabric = SoftFabric(service("rdma"), source_error=code)
    with pytest.raises(EnvironmentMissingError, match="no RDMA device has this address"):
        SoftRdmaTransport(fabric)
    assert fabric.manager.is_closed


# -- sending and receiving


def test_a_batch_for_one_connection_rings_once_and_arrives_in_order(make: Make) -> None:
    one = make()
    live(one)
    rung = one.fabric.adapter.doorbells

    for order in ([0, 1, 2], [2, 0], [1], [2, 1, 0]):
        one.fabric.adapter.doorbells = rung
        one.post([send(slot) for slot in order], 0)
        assert one.fabric.adapter.doorbells == rung + 1
        assert slots_sent(one) == order, "a request that was chained once may not stay chained"


def test_a_capsule_with_data_is_as_long_as_it_is_and_the_next_one_too(make: Make) -> None:
    one = make()
    live(one)
    lengths: list[int] = []
    one.fabric.service.capsule = lambda _peer, data, _now_ns: lengths.append(len(data))  # type: ignore[method-assign, assignment]

    for extra in (0, 512, 4096, 0):
        one.post([PostSend(ONE, 0, 1, capsule(1, extra))], 0)
        one.post([PostSend(ONE, 0, 1, capsule(1, extra)), send(2)], 0)

    assert lengths == [64, 64, 64, 576, 576, 64, 4160, 4160, 64, 64, 64, 64]


def test_outgoing_bytes_lie_in_the_scratch_and_incoming_ones_come_from_there(make: Make) -> None:
    one = make()
    memory = live(one).memory
    one.post([send(2, outgoing=b"out", incoming_bytes=3)], 0)  # the target refuses it, which is an answer too

    received = [event for event in drained(one) if isinstance(event, Received)]

    assert [event.payload for event in received] == [b"out"]
    assert memory.key in one.fabric.adapter.keys


def test_a_receive_is_posted_again_before_its_answer_is_handed_over(make: Make) -> None:
    one = make()
    live(one)
    for turn in range(12):
        one.fabric.respond(pair_of(one), answer(turn))
        (event,) = drained(one)
        assert isinstance(event, Received)
        assert event.response == answer(turn)
        assert len(pair_of(one).receives) == 4


def test_a_short_response_is_the_targets_fault(make: Make) -> None:
    one = make()
    live(one)
    one.fabric.respond(pair_of(one), bytes(8))
    assert isinstance(broken(drained(one)), RemoteProtocolError)


@pytest.mark.parametrize(
    ("status", "found", "kind"),
    [
        (WcStatus.RETRY_EXC_ERR, "RETRY_EXC_ERR", TransportError),
        (WcStatus.REM_ACCESS_ERR, "REM_ACCESS_ERR", TransportError),
        (WcStatus.WR_FLUSH_ERR, "WR_FLUSH_ERR", TransportError),
        (WcStatus.LOC_LEN_ERR, "LOC_LEN_ERR", RemoteProtocolError),
        (99, "status 99", TransportError),
    ],
)
def test_a_failed_completion_breaks_its_connection_once_by_its_first_cause(
    make: Make, status: int, found: str, kind: type[EngineError]
) -> None:
    one = make()
    live(one)
    live(one, 2)
    pair = next(iter(one.fabric.adapter.pairs.values()))
    one.fabric.adapter.complete(pair.receives.popleft().wr_id, status)
    pair.flush()

    seen = drained(one)

    assert type(broken(seen)) is kind
    assert broken(seen).found == found
    assert [event.connection for event in seen if isinstance(event, Broken)] == [1]
    one.post([send(0), send(0, 2)], 0)
    assert [event for event in drained(one) if isinstance(event, Sent)] == [Sent(ConnectionId(2), 0)]


@pytest.mark.parametrize("what", ["refuse_sends", "refuse_receives"])
def test_an_adapter_that_refuses_a_request_breaks_the_connection(make: Make, what: str) -> None:
    one = make()
    live(one)
    setattr(one.fabric.adapter, what, 1)
    one.post([send(0)], 0)
    if what == "refuse_receives":
        one.fabric.respond(pair_of(one), answer(0))
    assert "refused" in broken(drained(one)).what


def test_a_region_that_is_not_registered_is_refused_before_anything_of_the_batch_is_sent(make: Make) -> None:
    one = make()
    live(one)
    arena = one.register(allocate(4096))
    wrong = [
        Region(arena.address, 8, arena.key + 1),
        Region(arena.address - 1, 8, arena.key),
        Region(arena.address + 4090, 8, arena.key),
        Region(arena.address, -8, arena.key),
    ]
    for region in wrong:
        with pytest.raises(LocalProtocolError, match="not registered"):
            one.post([send(0), send(1, region=region)], 0)
    assert drained(one) == []
    one.post([send(0, region=arena.region(0, 4096))], 0)
    assert slots_sent(one) == [0]


# -- the descriptor


def test_what_comes_after_an_empty_poll_makes_the_descriptor_readable(make: Make) -> None:
    one = make()
    live(one)
    descriptor = one.fileno()
    for turn in range(3):
        assert drained(one) == []
        assert not wait([descriptor], 0)
        one.fabric.respond(pair_of(one), answer(turn))
        assert wait([descriptor], 0)
        assert len(drained(one)) == 1


def test_the_end_of_a_send_wakes_nobody_while_its_answer_is_to_come(make: Make) -> None:
    one = make()
    live(one)
    pair_of(one).peer = None  # nobody answers by himself
    drained(one)
    one.post([send(0)], 0)
    assert not wait([one.fileno()], 0)

    one.fabric.respond(pair_of(one), answer(0))
    assert wait([one.fileno()], 0)
    assert [type(event) for event in drained(one)] == [Sent, Received]


def test_a_send_that_ends_after_its_answer_gives_notice(make: Make) -> None:
    one = make()
    live(one)
    pair_of(one).peer = None
    drained(one)
    adapter = one.fabric.adapter
    adapter.held = type(adapter.sends)()
    one.post([send(0)], 0)
    held, adapter.held = adapter.held, None
    one.fabric.respond(pair_of(one), answer(0))
    assert [type(event) for event in drained(one)] == [Received]
    assert not wait([one.fileno()], 0)

    for completion in held:
        adapter.complete(*completion)
    assert wait([one.fileno()], 0)
    assert slots_sent(one) == [0]


def test_a_completion_between_the_last_look_and_the_notice_is_not_missed(make: Make) -> None:
    one = make()
    live(one)
    adapter = one.fabric.adapter
    plain = adapter.arm
    adapter.is_armed = False
    one._is_armed = False

    def late() -> None:
        one.fabric.respond(pair_of(one), answer(7))  # it ends just before the adapter is asked for a notice
        plain()

    adapter.arm = late  # type: ignore[method-assign]
    (event,) = one.poll(0)
    assert isinstance(event, Received)


def test_a_stream_of_completions_does_not_hide_what_else_happens(make: Make) -> None:
    one = make()
    live(one)
    one.fabric.manager.tell(next(iter(one.fabric.manager.ids.values())), PORT.DISCONNECTED)
    for turn in range(40):
        one.fabric.respond(pair_of(one), answer(turn))
        if any(isinstance(event, Broken) for event in one.poll(0)):
            return
    pytest.fail("the target's goodbye was never heard")


# -- the end


def test_a_connection_is_gone_when_its_last_completion_came(make: Make) -> None:
    one = make()
    live(one)
    one.fabric.adapter.held = type(one.fabric.adapter.ready)()
    one.disconnect(ONE, 0)
    one.disconnect(ONE, 0)

    assert drained(one) == []
    assert one.next_timer_ns() == one.config.flush_timeout_ns
    assert pair_of(one).state == QpState.ERR
    one.fabric.adapter.release()

    assert [type(event) for event in drained(one)] == [Disconnected]
    assert one.next_timer_ns() is None
    assert not one.fabric.adapter.pairs
    assert not one.fabric.manager.ids


def test_a_flush_that_never_ends_is_ended_by_destroying_the_queue_pair(make: Make) -> None:
    one = make()
    live(one)
    one.fabric.adapter.held = type(one.fabric.adapter.ready)()
    one.disconnect(ONE, 5)
    due_ns = one.next_timer_ns()
    assert due_ns is not None

    assert drained(one, due_ns - 1) == []
    assert [type(event) for event in drained(one, due_ns)] == [Disconnected]
    assert not one.fabric.adapter.pairs
    one.fabric.adapter.release()  # too late: nobody knows these requests any more
    assert drained(one, due_ns) == []


def test_nothing_can_be_written_once_a_connection_is_gone() -> None:
    one = bring_up(world("rdma"))
    transport = one.transport
    assert isinstance(transport, SoftRdmaTransport)
    fabric = transport.fabric
    pairs = list(fabric.adapter.pairs.values())
    for connection in (1, 2, 3):
        transport.disconnect(ConnectionId(connection), 0)
    drained(transport)

    assert not any(fabric.adapter.reach(pair, one.arena.address, one.arena.key, 512) for pair in pairs)
    one.close()


def test_what_completes_while_a_connection_goes_down_is_not_told(make: Make) -> None:
    one = make()
    live(one)
    one.post([send(0)], 0)
    one.fabric.respond(pair_of(one), answer(0))
    one.disconnect(ONE, 0)
    assert [type(event) for event in drained(one)] == [Disconnected]


def test_the_target_leaving_breaks_the_connection_and_the_rest_of_its_events_is_noise(make: Make) -> None:
    one = make()
    live(one)
    (identifier,) = one.fabric.manager.ids.values()
    for kind in (PORT.DISCONNECTED, PORT.TIMEWAIT_EXIT, PORT.DISCONNECTED):
        one.fabric.manager.tell(identifier, kind)
    error = broken(drained(one))
    assert error.what == "the target disconnected"


def test_buffers_serve_one_connection_after_another(make: Make) -> None:
    one = make()
    live(one)
    registered = len(one.fabric.adapter.keys)
    for connection in range(2, 20):
        one.disconnect(ConnectionId(connection - 1), 0)
        drained(one)
        live(one, connection)
        one.post([send(0, connection)], 0)
        assert slots_sent(one) == [0]
    assert len(one.fabric.adapter.keys) == registered


# -- the device


def test_a_removed_device_is_let_go_and_every_connection_ends(make: Make) -> None:
    one = make()
    live(one, 1)
    live(one, 2)
    one.fabric.adapter.held = type(one.fabric.adapter.ready)()
    one.disconnect(ConnectionId(2), 0)
    one.fabric.manager.forgets.extend([True, True, False])
    one.fabric.manager.tell(next(iter(one.fabric.manager.ids.values())), PORT.DEVICE_REMOVAL)

    seen = drained(one)

    assert isinstance(seen[0], DeviceRemoved)
    assert [(type(event), event.connection) for event in seen[1:] if not isinstance(event, DeviceRemoved)] == [
        (Broken, 1),
        (Disconnected, 2),
    ]
    assert one.fabric.adapter.is_closed
    assert not one.fabric.manager.ids
    one.disconnect(ONE, 0)
    assert drained(one) == [Disconnected(ONE, "taken down")]

    for _ in range(2):
        due_ns = one.next_timer_ns()
        assert due_ns is not None
        drained(one, due_ns)
    assert one.next_timer_ns() is None
    assert not one.fabric.manager.forgets

    one.post([send(0)], 0)
    one.connect(ask(3), 0)
    assert "removed" in broken(drained(one)).what
    with pytest.raises(EnvironmentMissingError, match="removed"):
        one.register(allocate(4096))


def test_a_controller_is_lost_with_its_device() -> None:
    one: World = bring_up(world("rdma"))
    transport = one.transport
    assert isinstance(transport, SoftRdmaTransport)
    transport.fabric.manager.tell(next(iter(transport.fabric.manager.ids.values())), PORT.DEVICE_REMOVAL)
    one.settle(lambda: one.has(Lost))
    one.close()


def test_a_fatal_event_of_the_device_is_its_removal(make: Make) -> None:
    one = make()
    live(one)
    one.fabric.adapter.say(AsyncKind.PORT_ERR)  # retries may outlive it
    assert drained(one) == []
    one.fabric.adapter.say(AsyncKind.DEVICE_FATAL)
    assert [type(event) for event in drained(one)] == [DeviceRemoved, Broken]


def test_an_event_of_a_queue_pair_breaks_the_one_that_failed(make: Make) -> None:
    one = make()
    live(one, 1)
    live(one, 2)
    second = list(one.fabric.adapter.pairs.values())[1]
    second.state = QpState.ERR
    one.fabric.adapter.say(AsyncKind.QP_FATAL)

    seen = drained(one)

    assert [event.connection for event in seen if isinstance(event, Broken)] == [2]
    assert broken(seen).found == "QP_FATAL"


def test_a_broken_completion_queue_breaks_all(make: Make) -> None:
    one = make()
    live(one, 1)
    live(one, 2)
    one.fabric.adapter.say(AsyncKind.CQ_ERR)
    assert [event.connection for event in drained(one) if isinstance(event, Broken)] == [1, 2]


# -- memory


def test_memory_of_another_device_counts_from_its_offset(make: Make) -> None:
    one = make()
    live(one)
    arena = one.register_dmabuf(5, 8192, 4096)
    assert arena.address == 8192
    one.post([send(0, region=Region(8192 + 4000, 96, arena.key))], 0)
    assert slots_sent(one) == [0]
    with pytest.raises(EnvironmentMissingError, match="dma-buf"):
        one.register_dmabuf(-1, 0, 4096)
    with pytest.raises(LocalProtocolError, match="another length"):
        one.register_dmabuf(5, 0, 4096, memoryview(bytearray(8)))


def test_memory_that_cannot_be_pinned_is_a_matter_of_this_machine(make: Make) -> None:
    one = make()
    one.fabric.adapter.refuse_registration = 1
    with pytest.raises(EnvironmentMissingError, match="ulimit -l"):
        one.register(allocate(4096))


def test_registered_memory_is_held_until_close(make: Make) -> None:
    one = make()
    memory = bytearray(4096)
    one.register(memoryview(memory))
    with pytest.raises(BufferError):
        memory.extend(b"x")
    one.close()
    one.close()


def test_a_whole_host_reads_and_writes_over_it() -> None:
    one = bring_up(world("rdma", profile=NVMET))
    one.arena.view[:512] = b"w" * 512
    wrote = one.host.submit(1, Write(1, 3, 1, one.arena.region(0, 512)), 0)
    assert isinstance(one.end_of(wrote), Completed)
    read = one.host.submit(2, Read(1, 3, 1, one.arena.region(4096, 512)), 0)
    assert isinstance(one.end_of(read), Completed)
    assert bytes(one.arena.view[4096:4608]) == b"w" * 512
    one.advance(20 * SECOND, SECOND)
    one.close()
