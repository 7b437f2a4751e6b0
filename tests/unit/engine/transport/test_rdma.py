"""Connections of the RDMA transport over a soft adapter: each event of the connection manager, each order of an end."""

import errno
from collections.abc import Iterator

import pytest

from fabric.engine.nvmeof.host import ConnectionId, Lost
from fabric.engine.nvmeof.wire.cm import CmReject, CmStatus
from fabric.engine.transport.base import Broken, DeviceRemoved, Disconnected, Rejected, allocate
from fabric.engine.transport.rdma import RdmaConfig
from fabric.engine.transport.rdma.layouts import AsyncKind, CmEventKind, QpState
from fabric.errors import EnvironmentMissingError, TransportError
from tests.unit.engine.transport.rig import World, bring_up, service, world
from tests.unit.engine.transport.softrdma import ADDRESS, SoftFabric, SoftRdmaTransport
from tests.unit.engine.transport.softrig import (
    ONE,
    PORT,
    Make,
    answer,
    ask,
    broken,
    drained,
    live,
    makers,
    pair_of,
    send,
    slots_sent,
)


@pytest.fixture
def make() -> Iterator[Make]:
    yield from makers()


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
