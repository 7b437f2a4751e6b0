"""The host alone, answered by hand: what a target or a transport can do wrong, and what the host makes of it."""

from dataclasses import dataclass, field

import pytest

from fabric.engine.nvmeof.errors import AuthenticationRequiredError, ConnectRefusedError
from fabric.engine.nvmeof.host import (
    Closed,
    Connect,
    Controller,
    Disconnect,
    Lost,
    PostSend,
    QueueMemory,
    Reconnecting,
    SetTimer,
)
from fabric.engine.nvmeof.host.outputs import Output
from fabric.engine.nvmeof.wire.cm import CmAccept
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.engine.nvmeof.wire.status import DNR, Status
from tests.unit.engine.nvmeof.rig import NQN, SECOND, config


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
