"""A host with a target at its other end, at the edges: what is lost, refused, late or never answered once it is up."""

import pytest

from fabric.engine.nvmeof.errors import CommandTimeoutError, NotReadyError
from fabric.engine.nvmeof.host import (
    Admin,
    Closed,
    Completed,
    ControllerState,
    EventSeen,
    Failed,
    Flush,
    QueueDown,
    QueueMemory,
    QueueState,
    Read,
    Ready,
    Reconnecting,
    Region,
)
from fabric.engine.nvmeof.target import NVMET
from fabric.engine.nvmeof.wire import admin
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.events import AsyncEvent, EventKind
from fabric.engine.nvmeof.wire.fabrics import ConnectField
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.engine.nvmeof.wire.status import Disposition, Status
from fabric.errors import LocalProtocolError, RemoteProtocolError, TransportError
from tests.unit.engine.nvmeof.rig import NAMESPACE, NQN, SECOND, rig


def test_a_controller_without_any_io_queue_is_tried_again() -> None:
    pair = rig(NVMET)
    pair.refuse = lambda connect: (b"", False) if connect.qid else None

    pair.bring_up()

    (again,) = pair.of(Reconnecting)
    assert isinstance(again, Reconnecting)
    assert "no I/O queue could be opened" in str(again.error)
    assert again.error.found  # why the first of them could not


def test_one_io_queue_of_two_is_enough_and_the_other_follows() -> None:
    pair = rig(NVMET)
    refused = [True]
    pair.refuse = lambda connect: (b"\0\0\6\0", False) if connect.qid == 2 and refused[0] else None

    pair.bring_up()
    before = pair.host.live_queues
    refused[0] = False
    pair.advance(SECOND)

    assert (before, pair.host.live_queues) == ((1,), (1, 2))


def test_a_queue_whose_controller_is_gone_brings_a_new_controller() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    old = pair.target.controllers[0]
    pair.target._registry.remove(old)

    pair.break_connection(1)
    pair.advance(SECOND)

    assert pair.host.state is ControllerState.LIVE
    assert len(pair.of(Ready)) == 2
    assert [one.cntlid for one in pair.target.controllers] == [2]
    again = next(one for one in pair.of(Reconnecting))
    assert isinstance(again, Reconnecting)
    assert "0x182" in str(again.error)
    assert ConnectField.CNTLID.result == 1 << 16 | 16


def test_a_queue_that_still_greets_takes_no_request() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.break_connection(1)
    while pair.host.queue(1).state is not QueueState.GREETING:
        if not pair.step():
            pair.tick(pair.now_ns + SECOND)

    for request in (Flush(1), Read(1, 0, 1, pair.region(0, 512))):
        with pytest.raises(NotReadyError, match="the queue is not connected"):
            pair.host.submit(1, request, pair.now_ns)
    assert pair.host.room(1) == 0


def test_a_connection_that_ends_unasked_is_a_loss() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.hold_storage = True
    request = pair.host.submit(1, Flush(1), pair.now_ns)
    connection = pair.host.queue(1).connection
    assert connection is not None

    pair.host.disconnected(connection, pair.now_ns, reason="socket closed")

    pair.pump()
    end = pair.end_of(request)
    assert isinstance(end, Failed)
    assert end.held
    down = pair.of(QueueDown)[0]
    assert isinstance(down, QueueDown)
    assert "socket closed" in str(down.error)


def test_inputs_of_a_connection_that_is_gone_are_ignored() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.pump()
    connection = pair.host.queue(1).connection
    assert connection is not None
    pair.break_connection(1)
    pair.settle()
    count = len(pair.events)

    pair.host.sent(connection, 0)
    pair.host.received(connection, bytes(16), 0)
    pair.host.failed(connection, TransportError("late"), 0)
    pair.host.disconnected(connection, 0)
    pair.host.rejected(connection, b"", 0)
    pair.host.connected(connection, b"", QueueMemory(), 0)
    pair.pump()

    assert len(pair.events) == count


def test_an_answer_between_timeout_and_teardown_is_only_counted() -> None:
    pair = rig(NVMET, io_timeout_ns=SECOND)
    pair.bring_up()
    pair.hold_storage = True
    request = pair.host.submit(1, Read(1, 0, 1, pair.region(0, 512)), pair.now_ns)
    pair.settle()
    post, queue = pair.sent[-1], pair.host.queue(1)
    pair.now_ns += SECOND
    pair.host.tick(pair.now_ns)

    pair.host.received(post.connection, Cqe(int.from_bytes(post.capsule[2:4], "little")).pack(), pair.now_ns)

    pair.pump()
    end = pair.end_of(request)
    assert isinstance(end, Failed)
    assert isinstance(end.error, CommandTimeoutError)
    assert (queue.telemetry.late, queue.state) == (1, QueueState.CLOSING)


def test_a_retry_delay_is_read_from_the_controller() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.hold_storage = True
    request = pair.host.submit(1, Flush(1), pair.now_ns)
    pair.settle()
    pair.host._life.identity = IdentifyController("s", "m", "f", 1, NQN, retry_delays_100ms=(1, 25, 3))

    pair.target.stored(pair.held_work[0].task, status=Status.NAMESPACE_NOT_READY | 2 << 11)  # type: ignore[union-attr]
    pair.settle()

    end = pair.end_of(request)
    assert isinstance(end, Failed)
    assert (end.disposition, end.retry_after_ns) == (Disposition.RETRY_LATER, 2_500_000_000)


def test_a_refused_keep_alive_resets_the_controller() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.target.controllers[0].set_kato(0)

    pair.advance(8 * SECOND)

    assert any("keep alive" in str(one.error) for one in pair.of(Reconnecting))  # type: ignore[union-attr]


def test_an_unanswered_keep_alive_resets_the_controller() -> None:
    pair = rig(NVMET, kato_ms=10_000)
    pair.bring_up()
    pair.fate = lambda message: [] if message.kind in ("capsule", "break") else [0]

    pair.advance(16 * SECOND)

    first = pair.of(Reconnecting)[0]
    assert isinstance(first, Reconnecting)
    assert isinstance(first.error, CommandTimeoutError)


def test_another_event_is_passed_on() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    association = pair.target.controllers[0]
    peer, cid = association.events.pop()

    pair.host.received(peer.identifier, Cqe(cid, 0, 0x020001).pack(), pair.now_ns)  # type: ignore[arg-type]
    pair.settle()

    assert pair.of(EventSeen) == [EventSeen(AsyncEvent(EventKind.OTHER, 1, 0, 2))]
    assert len(association.events) == 4


def test_a_target_that_does_not_shut_down_is_left() -> None:
    pair = rig(NVMET, shutdown_timeout_ns=SECOND)
    pair.bring_up()
    for association in pair.target.controllers:
        association.profile = NVMET
    pair.fate = lambda message: [] if message.kind == "answer" else [0]

    pair.host.stop(pair.now_ns)
    pair.advance(2 * SECOND)

    assert isinstance(pair.events[-1], Closed)


def test_a_shutdown_that_loses_its_connection_is_done() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.host.stop(pair.now_ns)
    while not [one for one in pair.sent if one.capsule[:1] == b"\x7f" and one.capsule[4] == 0 and one.capsule[45 + 4]]:
        if not pair.step():
            break
    pair.break_connection(0)
    pair.settle()

    assert isinstance(pair.events[-1], Closed)
    with pytest.raises(LocalProtocolError):
        pair.host.stop(pair.now_ns)


def test_data_that_fits_nowhere_takes_no_slot() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    used = pair.host.queue(0).slots.in_use

    with pytest.raises(LocalProtocolError, match="does not fit a slot's scratch"):
        pair.host.submit_admin(Admin(admin.identify(1), incoming_bytes=8192), pair.now_ns)

    assert pair.host.queue(0).slots.in_use == used


def test_a_tcp_host_finds_its_data_by_command_id() -> None:
    pair = rig(NVMET, transport="tcp")
    pair.bring_up()
    pair.host.submit(1, Read(1, 0, 1, Region(4096, 512)), pair.now_ns)
    pair.pump()

    assert pair.sent[-1].capsule[24:40] == bytes(8) + b"\0\2\0\0\0\0\0\x5a"
    assert pair.sent[-1].region == Region(4096, 512)
    pair.settle()
    assert isinstance(pair.events[-1], Completed)
    assert NAMESPACE.block_bytes == 512


def test_a_malformed_answer_is_the_peers_fault() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    connection = pair.host.queue(1).connection
    assert connection is not None

    pair.host.received(connection, b"short", pair.now_ns)
    pair.settle()

    down = pair.of(QueueDown)[0]
    assert isinstance(down, QueueDown)
    assert isinstance(down.error, RemoteProtocolError)
