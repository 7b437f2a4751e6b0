"""Rarely taken ways through the host and the codec."""

from collections.abc import Callable

import pytest

from fabric.engine.nvmeof.host import Completed, ControllerState, Failed, Flush, Lost, QueueMemory, QueueState, Region
from fabric.engine.nvmeof.host.requests import Body, place
from fabric.engine.nvmeof.target import NVMET, Subsystem
from fabric.engine.nvmeof.target.connect import Registry
from fabric.engine.nvmeof.wire import admin, identify, io, logs
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.fields import pack_text
from fabric.engine.nvmeof.wire.sgl import NULL_KEYED, NULL_TRANSPORT, Sgl, SglKind
from fabric.engine.nvmeof.wire.status import Status
from fabric.errors import LocalProtocolError, RemoteProtocolError
from tests.unit.engine.nvmeof.rig import MS, NQN, SECOND, Message, rig
from tests.unit.engine.nvmeof.test_events import discovery


def test_a_queue_that_is_down_is_removed_at_once() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.break_connection(1)
    pair.settle()
    assert pair.host.queue(1).state is QueueState.DOWN

    pair.host.remove_queue(1, pair.now_ns)
    pair.advance(SECOND)

    assert pair.host.live_queues == (2,)


def test_a_stale_io_connection_does_not_count_a_queue_out() -> None:
    pair = rig(NVMET)
    left = [3]

    def refuse(connect: object) -> tuple[bytes, bool] | None:
        if getattr(connect, "qid", 0) == 2 and left[0]:
            left[0] -= 1
            return (b"", True)
        return None

    pair.refuse = refuse
    pair.bring_up()
    assert pair.host.state is ControllerState.CONFIGURING
    pair.advance(100 * MS)

    assert pair.host.live_queues == (1, 2)


def test_a_refused_event_request_is_not_sent_again() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    peer, cid = pair.target.controllers[0].events.pop()

    pair.host.received(peer.identifier, Cqe(cid, Status.ASYNC_EVENT_LIMIT).pack(), 0)  # type: ignore[arg-type]
    pair.settle()

    assert pair.host.queue(0).slots.in_use == 3


def test_a_controller_is_lost_once() -> None:
    pair = rig(NVMET)
    pair.bring_up()

    pair.host.device_removed(pair.now_ns)
    pair.host.device_removed(pair.now_ns)
    pair.settle()

    assert len(pair.of(Lost)) == 1


def test_a_keep_alive_answered_during_the_shutdown_changes_nothing() -> None:
    pair = rig(NVMET, kato_ms=10_000)
    pair.bring_up()
    pair.fate = lambda message: [30] if message.kind == "answer" else [0]
    pair.now_ns += 5 * SECOND
    pair.host.tick(pair.now_ns)
    pair.step()

    pair.host.stop(pair.now_ns)
    pair.advance(SECOND)

    assert pair.host.state is ControllerState.CLOSED


def test_a_discovery_log_that_is_refused_or_forged() -> None:
    for status, payload in ((Status.INTERNAL_ERROR, b""), (0, logs.DiscoveryHeader(1, 1 << 40).pack())):
        pair = discovery(NVMET, 1)
        request = pair.host.read_discovery_log(pair.now_ns)
        pair.pump()
        post = pair.sent[-1]
        cid = int.from_bytes(post.capsule[2:4], "little")

        pair.wire.clear()
        pair.host.received(post.connection, Cqe(cid, status).pack(), 0, payload=payload)
        pair.pump()

        assert isinstance(pair.end_of(request), Failed)


def test_a_lost_event_log_read_is_scanned_after_the_reset() -> None:
    pair = rig(NVMET, admin_timeout_ns=SECOND)
    pair.bring_up()
    pair.fate = lambda message: [] if message.kind == "capsule" and message.detail[0] == 0x02 else [0]

    pair.target.remove_namespace(NQN, 1)
    pair.advance(3 * SECOND)

    assert dict(pair.host.namespaces) == {}


def test_where_data_lies() -> None:
    memory, body = QueueMemory(1 << 20, 9), Body(io.read(1, 0, 1), Region(4096, 512, 3))

    assert place(body, "rdma", memory, 2, 0).sgl == Sgl(SglKind.KEYED, 4096, 512, 3)
    assert place(body, "tcp", memory, 2, 0).sgl == Sgl(SglKind.TRANSPORT, 0, 512)
    assert place(Body(io.flush(1)), "rdma", memory, 2, 0).sgl == NULL_KEYED
    assert place(Body(io.flush(1)), "tcp", memory, 2, 0).sgl == NULL_TRANSPORT
    page = Body(admin.identify(1), incoming_bytes=4096)
    assert place(page, "rdma", memory, 2, 0).sgl == Sgl(SglKind.KEYED, (1 << 20) + 8192, 4096, 9)


def test_a_target_without_a_free_controller_id_is_busy() -> None:
    registry = Registry(NVMET, {NQN: Subsystem(NQN)})
    registry.associations = dict.fromkeys(range(1, 0xFFF0))  # type: ignore[assignment]

    assert registry._next_cntlid() is None


def test_changed_namespaces_that_are_too_many_to_list() -> None:
    assert logs.parse_changed_namespaces(logs.pack_changed_namespaces(range(1, 2000))) is None
    assert logs.parse_changed_namespaces(logs.pack_changed_namespaces([3, 9])) == (3, 9)


def test_namespace_descriptors() -> None:
    page = b"\1\x08\0\0" + b"e" * 8 + b"\x09\2\0\0zz" + b"\3\x10\0\0" + b"u" * 16

    assert identify.parse_namespace_ids(page.ljust(4096, b"\0")) == identify.NamespaceIds(b"e" * 8, b"", b"u" * 16)
    with pytest.raises(RemoteProtocolError, match="wrong length"):
        identify.parse_namespace_ids(b"\1\7".ljust(4096, b"\0"))


def test_a_namespace_without_a_usable_block_size() -> None:
    with pytest.raises(RemoteProtocolError, match="no usable block size"):
        identify.IdentifyNamespace.parse(b"\1".ljust(4096, b"\0"))


@pytest.mark.parametrize(
    "build",
    [
        lambda: admin.set_number_of_queues(0),
        lambda: admin.get_log_page(0x70, 1023),
        lambda: admin.get_log_page(0x70, 0),
        lambda: io.read(1, 0, 0),
        lambda: io.deallocate(1, 257),
        lambda: Sgl(SglKind.KEYED, 0, 1 << 24).pack(),
        lambda: pack_text("x" * 256, 256),
        lambda: pack_text("123456789", 8, pad=b" "),
    ],
)
def test_what_a_field_cannot_hold_is_our_own_fault(build: Callable[[], object]) -> None:
    with pytest.raises(LocalProtocolError):
        build()


def test_a_write_through_the_wire_loses_nothing_when_only_sends_are_late() -> None:
    pair = rig(NVMET)
    pair.bring_up()

    def late(message: Message) -> list[int]:
        return [9] if message.kind == "sent" else [0]

    pair.fate = late
    request = pair.host.submit(1, Flush(1), pair.now_ns)
    pair.settle()

    assert isinstance(pair.end_of(request), Completed)
    assert pair.host.room(1) == 7
