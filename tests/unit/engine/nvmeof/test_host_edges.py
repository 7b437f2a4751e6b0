"""The host alone, answered by hand: what a target or a transport can do wrong, and what the host makes of it."""

from dataclasses import dataclass, field

import pytest

from fabric.engine.nvmeof.errors import (
    AuthenticationRequiredError,
    CommandTimeoutError,
    ConnectRefusedError,
    NotReadyError,
)
from fabric.engine.nvmeof.host import (
    Admin,
    Closed,
    Completed,
    Connect,
    Controller,
    ControllerState,
    Disconnect,
    EventSeen,
    Failed,
    Flush,
    Lost,
    PostSend,
    QueueDown,
    QueueMemory,
    QueueState,
    Read,
    Ready,
    Reconnecting,
    Region,
    SetTimer,
)
from fabric.engine.nvmeof.host.outputs import Output
from fabric.engine.nvmeof.target import NVMET
from fabric.engine.nvmeof.wire import admin
from fabric.engine.nvmeof.wire.cm import CmAccept
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.events import AsyncEvent, EventKind
from fabric.engine.nvmeof.wire.fabrics import ConnectField
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.engine.nvmeof.wire.status import DNR, Disposition, Status
from fabric.errors import LocalProtocolError, RemoteProtocolError, TransportError
from tests.unit.engine.nvmeof.rig import NAMESPACE, NQN, SECOND, config, rig


@dataclass
class Drive:
    """A controller and everything that it put out."""

    host: Controller = field(default_factory=lambda: Controller(config()))
    all: list[Output] = field(default_factory=list)
    now_ns: int = 0

    def last(self, kind: type) -> Output:
        """The newest output of a kind."""
        self.all += self.host.drain()
        return next(one for one in reversed(self.all) if isinstance(one, kind))

    def start(self) -> None:
        self.host.start(self.now_ns)

    def accept(self, private_data: bytes = CmAccept(32).pack()) -> None:
        """The transport connects what was asked for last."""
        connect = self.last(Connect)
        assert isinstance(connect, Connect)
        self.host.connected(connect.connection, private_data, QueueMemory(), self.now_ns)

    def answer(self, *, status: int = 0, result: int = 0, payload: bytes = b"") -> None:
        """The target answers what was sent last."""
        post = self.last(PostSend)
        assert isinstance(post, PostSend)
        cid = int.from_bytes(post.capsule[2:4], "little")
        self.host.sent(post.connection, post.slot)
        self.host.received(post.connection, Cqe(cid, status, result).pack(), self.now_ns, payload=payload)

    def enabled(self) -> "Drive":
        """Up to Identify."""
        self.start()
        self.accept()
        self.answer(result=5)
        self.answer(result=15 << 24 | 127)
        self.answer()
        self.answer(result=1)
        return self

    def tick(self, duration_ns: int) -> None:
        self.now_ns += duration_ns
        self.host.tick(self.now_ns)

    def error(self) -> str:
        """Why the controller was reset, once all its connections are gone."""
        self.all += self.host.drain()
        for one in list(self.all):
            if isinstance(one, Disconnect):
                self.host.disconnected(one.connection, self.now_ns)
        again = self.last(Reconnecting)
        assert isinstance(again, Reconnecting)
        return str(again.error)


def identity(**changes: object) -> bytes:
    base: dict[str, object] = {"serial": "s", "model": "m", "firmware": "f", "cntlid": 5, "subnqn": NQN}
    return IdentifyController(**(base | changes)).pack()  # type: ignore[arg-type]


def test_the_transport_must_connect_in_time() -> None:
    drive = Drive()
    drive.start()
    drive.last(Connect)

    drive.tick(10 * SECOND)

    assert "no connection came in time" in drive.error()


def test_a_connection_that_comes_after_its_time_is_only_taken_down() -> None:
    drive = Drive()
    drive.start()
    drive.last(Connect)
    drive.tick(10 * SECOND)

    drive.accept()

    assert not [one for one in [*drive.all, *drive.host.drain()] if isinstance(one, PostSend)]


def test_a_rejection_that_comes_after_its_time_ends_the_connection() -> None:
    drive = Drive()
    drive.start()
    connect = drive.last(Connect)
    drive.tick(10 * SECOND)
    assert isinstance(connect, Connect)

    drive.host.rejected(connect.connection, b"", drive.now_ns)

    again = drive.last(Reconnecting)
    assert isinstance(again, Reconnecting)


@pytest.mark.parametrize(
    ("private_data", "message"),
    [
        (b"", "CM reply is too short"),
        (b"\1" + bytes(31), "CM reply has another record format"),
        (CmAccept(1).pack(), "the target grants no usable queue"),
    ],
)
def test_private_data_that_cannot_be_used(private_data: bytes, message: str) -> None:
    drive = Drive()
    drive.start()

    drive.accept(private_data)

    assert message in drive.error()


def test_a_reject_that_cannot_be_read_is_tried_again() -> None:
    drive = Drive()
    drive.start()
    connect = drive.last(Connect)
    assert isinstance(connect, Connect)

    drive.host.rejected(connect.connection, b"\0\0\x63\0", 0)

    assert "unknown status" in drive.error()


def test_scratch_that_is_too_small_is_the_transports_fault() -> None:
    drive = Drive()
    drive.start()
    connect = drive.last(Connect)
    assert isinstance(connect, Connect)

    drive.host.connected(connect.connection, CmAccept(32).pack(), QueueMemory(slot_bytes=512), 0)

    assert "does not fit a slot's scratch" in drive.error()


@pytest.mark.parametrize(("status", "result"), [(0, 5 | 1 << 17), (0, 5 | 1 << 18), (Status.AUTH_REQUIRED | DNR, 0)])
def test_a_target_that_wants_authentication_is_final(status: int, result: int) -> None:
    drive = Drive()
    drive.start()
    drive.accept()

    drive.answer(status=status, result=result)
    down = drive.last(Disconnect)
    assert isinstance(down, Disconnect)
    drive.host.disconnected(down.connection, 0)

    lost = drive.last(Lost)
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, AuthenticationRequiredError | ConnectRefusedError)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (identity(cntlid=6), "the controller names another id"),
        (identity(sgls=1), "takes no keyed SGLs"),
        (b"short", "Identify Controller page is too short"),
    ],
)
def test_an_identity_that_cannot_be(page: bytes, message: str) -> None:
    drive = Drive().enabled()

    drive.answer(payload=page)

    assert message in drive.error()


def test_a_refused_step_of_the_bring_up_is_named() -> None:
    drive = Drive().enabled()

    drive.answer(status=Status.INTERNAL_ERROR)

    assert "bring-up, identify" in drive.error()


def scanning(drive: Drive) -> None:
    drive.answer(payload=identity(max_commands=4, aerl=0))
    drive.answer(result=1 << 16 | 1)
    drive.answer(status=Status.INVALID_FIELD | DNR)  # no optional events: no reason to fail


def list_post(drive: Drive) -> PostSend:
    """The scan's command: the newest Identify."""
    drive.last(PostSend)
    return next(one for one in reversed(drive.all) if isinstance(one, PostSend) and one.capsule[0] == 0x06)


@pytest.mark.parametrize(
    ("status", "payload", "message"),
    [
        (Status.INTERNAL_ERROR, b"", "namespace scan"),
        (0, b"short", "active namespace list is too short"),
        (0, b"\2\0\0\0\1\0\0\0".ljust(4096, b"\0"), "not ascending"),
    ],
)
def test_a_scan_that_fails_resets_the_controller(status: int, payload: bytes, message: str) -> None:
    drive = Drive().enabled()
    scanning(drive)
    post = list_post(drive)

    cid = int.from_bytes(post.capsule[2:4], "little")
    drive.host.received(post.connection, Cqe(cid, status).pack(), 0, payload=payload)

    assert message in drive.error()


def test_a_namespace_list_that_goes_back_is_refused() -> None:
    drive = Drive().enabled()
    scanning(drive)
    full = b"".join(nsid.to_bytes(4, "little") for nsid in range(1, 1025))
    for _ in range(2):
        post = list_post(drive)
        cid = int.from_bytes(post.capsule[2:4], "little")
        drive.host.received(post.connection, Cqe(cid).pack(), 0, payload=full)
        drive.host.sent(post.connection, post.slot)

    assert "goes back" in drive.error()


def test_max_commands_bounds_what_is_in_flight() -> None:
    drive = Drive().enabled()
    scanning(drive)
    post = list_post(drive)
    drive.host.received(
        post.connection, Cqe(int.from_bytes(post.capsule[2:4], "little")).pack(), 0, payload=bytes(4096)
    )

    connect = drive.last(Connect)

    assert isinstance(connect, Connect)
    assert connect.depth == 5


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


def test_stopping_before_anything_is_closed_at_once() -> None:
    drive = Drive()

    drive.host.stop(0)

    assert drive.host.drain() == (Closed(),)


def test_stopping_while_connecting_waits_for_the_connection_to_go() -> None:
    drive = Drive()
    drive.start()
    drive.last(Connect)
    drive.host.stop(0)
    down = drive.last(Disconnect)
    assert isinstance(down, Disconnect)

    drive.host.disconnected(down.connection, 0)

    assert isinstance(drive.last(Closed), Closed)


def test_the_timer_is_said_when_it_changes_and_taken_back_when_nothing_waits() -> None:
    drive = Drive()
    drive.start()

    assert drive.last(SetTimer) == SetTimer(10 * SECOND)
    assert drive.host.drain() == ()
    drive.host.device_removed(0)
    assert drive.last(SetTimer) == SetTimer(None)


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
