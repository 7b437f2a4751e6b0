"""What a target may do wrong: reads give the right bytes or an error, all of them end, and all memory comes back.

LOSE_DATA and CORRUPT are not here: without a digest no host can see them; the store above checks its extents.
"""

import time
from collections.abc import Callable

import pytest

from fabric.engine.client import Engine, Read, Settings
from fabric.engine.client.address import MemoryAddress, TcpAddress
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.link import Landed, Usable
from fabric.engine.client.opening import host_config, open_engine, open_link
from fabric.engine.nvmeof.errors import status_error
from fabric.engine.nvmeof.host import Controller, Failed, QueueDown
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.status import Disposition, Status
from fabric.engine.queues import Issue, Op, Path, QueueId, RequestId, Transfer, TransferId, View
from fabric.engine.transport.base import allocate
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.memory import MemoryTransport
from fabric.engine.transport.service import Service
from fabric.engine.transport.shape import UNSHAPED, Shape
from fabric.engine.transport.storage import RamStorage
from fabric.errors import LocalProtocolError
from fabric.policy import ShardPolicy
from tests.unit.engine.client.rig import MIB, MS, POLICY, Hand, assert_right, pattern, reads, served, service

SEEN = [kind for kind in FaultKind if kind not in {FaultKind.LOSE_DATA, FaultKind.CORRUPT}]
PATIENCE_NS = 20_000 * MS
IMPATIENT = Settings(command_ns=60 * MS, close_ns=0)


def link_to(shape: Shape, *, flush_ns: int = 0, policy: ShardPolicy = POLICY) -> ControllerLink:
    """A way whose connections take a while to go: until then the target may write."""
    reached = TcpAddress("", 0, MemoryAddress().nqn)
    controller = Controller(host_config(reached, policy, IMPATIENT))
    transport = MemoryTransport(service(shape), keyed=False, flush_ns=flush_ns)
    return ControllerLink(controller, transport, 1, Path("any", "memory"))


def slow_to_go(shape: Shape, clock: Callable[[], int] = time.monotonic_ns) -> Engine:
    link = link_to(shape, flush_ns=150 * MS)
    news = open_link(link, IMPATIENT, clock)
    return Engine(link, news, POLICY, IMPATIENT, clock)


@pytest.mark.parametrize("way", ["memory", "tcp"])
@pytest.mark.parametrize("kind", SEEN)
def test_a_fault_costs_no_wrong_byte_no_hang_and_no_memory(kind: FaultKind, way: str) -> None:
    shape = Shape(faults=(Fault(kind, probability=0.1, delay_ns=90 * MS, status=0x006),), seed=3)
    with served(shape if way == "tcp" else UNSHAPED) as target:
        engine = slow_to_go(shape) if way == "memory" else open_engine(target.url, policy=POLICY, settings=IMPATIENT)
        with engine:
            sink = engine.allocate(MIB)
            work = [Read(one.lba, one.views, deadline_ns=1000 * MS) for one in reads(engine, sink, 32 << 10)]
            futures = engine.submit(work)

            assert engine.wait(futures, PATIENCE_NS)
            assert engine.settle(futures, PATIENCE_NS)

            assert_right(sink, work, [one.error is None for one in futures])
            assert any(one.error is None for one in futures)
            assert not engine.quarantined
            load = engine.load()
            assert (load.requests, load.draining, sum(queue.commands for queue in load.queues)) == (0, 0, 0)


def test_memory_that_was_given_back_is_never_written_to() -> None:
    late = Fault(FaultKind.DELAY, opcodes=(2,), commands=(0,), delay_ns=100 * MS)
    clock = Hand()
    with slow_to_go(Shape(faults=(late,)), clock) as engine:
        sink = engine.allocate(4096)
        (future,) = engine.submit([Read(0, (sink.view(),), deadline_ns=10 * MS)])
        clock.move(engine, 10 * MS)
        assert future.done
        clock.move(engine, 50 * MS)  # the command times out; its connection takes 150 ms to go
        assert sink.memory == bytes(4096)
        clock.move(engine, 40 * MS)
        assert sink.memory == pattern(0, 4096)  # it did land, while its memory was held
        assert not future.settled

        clock.move(engine, 110 * MS)
        assert future.settled
        sink.memory[:] = b"m" * 4096
        for _ in range(5):
            (other,) = engine.submit([Read(8, (engine.allocate(4096).view(),))])
            clock.move(engine, 100 * MS)
            assert other.result() == 4096
        assert sink.memory == b"m" * 4096


def test_transfers_without_a_slot_wait_in_line_and_go_when_nobody_wants_them() -> None:
    link = link_to(UNSHAPED, policy=ShardPolicy(queues=1, depth=2))
    news = open_link(link, IMPATIENT, time.monotonic_ns)
    assert [one.limits.depth for one in news if isinstance(one, Usable)] == [2]
    number = link.register(allocate(5 * 4096))
    space = link.namespace().namespace
    issues = [
        Issue(
            QueueId(1),
            Transfer(
                TransferId(at), RequestId(at), Op.READ, space, 0, 8, 4096, (View(number, at * 4096, 4096),), 0, ""
            ),
        )
        for at in range(5)
    ]

    now_ns = time.monotonic_ns()
    landed = link.issue(issues, now_ns, lambda _request: True)
    assert landed == []
    landed += link.step(now_ns)
    assert [one.transfer.id for one in landed if isinstance(one, Landed)] == [0, 1]

    landed = link.issue((), now_ns, lambda request: request == 4)
    assert [(one.transfer.id, one.again) for one in landed if isinstance(one, Landed) and one.error] == [
        (2, False),
        (3, False),
    ]
    landed = link.step(now_ns)
    assert [(one.transfer.id, one.error) for one in landed if isinstance(one, Landed)] == [(4, None)]
    link.close()
    link.close()


def test_a_transfer_that_the_machine_refuses_ends_with_its_error() -> None:
    link = link_to(UNSHAPED)
    open_link(link, IMPATIENT, time.monotonic_ns)
    number = link.register(allocate(4096))
    space = link.namespace().namespace
    beyond = Transfer(TransferId(1), RequestId(1), Op.READ, space, 1 << 40, 8, 4096, (View(number, 0, 4096),), 0, "")

    (landed,) = link.issue([Issue(QueueId(1), beyond)], time.monotonic_ns(), lambda _request: True)

    assert isinstance(landed, Landed)
    assert "outside the namespace" in str(landed.error)
    link.close()


def test_transfers_below_one_block_are_refused_and_nothing_is_left_behind() -> None:
    nqn = MemoryAddress().nqn
    target = Target(subsystems=[Subsystem(nqn, {1: IdentifyNamespace(MIB // 4096, 12)})], transport="tcp")
    policy = ShardPolicy(queues=1, transfer_bytes=512, align_bytes=512)
    with open_engine("memory://", policy=policy, service=Service(target, RamStorage({(nqn, 1): MIB}))) as engine:
        sink = engine.allocate(8192)
        with pytest.raises(LocalProtocolError, match="not one block fits"):
            engine.submit([Read(0, (sink.view(0, 4096),)), Read(1, (sink.view(4096, 4096),))])
        assert engine.load().requests == 0


def test_a_failure_is_told_after_the_delay_that_the_target_asks_for_and_with_its_queue() -> None:
    link = link_to(Shape(faults=(Fault(FaultKind.DROP),)))
    open_link(link, IMPATIENT, time.monotonic_ns)
    number, space, now_ns = link.register(allocate(4096)), link.namespace().namespace, time.monotonic_ns()
    error = status_error(Status.COMMAND_INTERRUPTED)
    heard: list[list[str]] = []
    for at, down in ((1, False), (2, True)):
        read = Transfer(TransferId(at), RequestId(at), Op.READ, space, 0, 8, 4096, (View(number, 0, 4096),), 0, "")
        link.issue([Issue(QueueId(1), read)], now_ns, lambda _request: True)
        (command,) = link._lines[1].flying
        assert link._tell([Failed(command, 1, error, Disposition.RETRY_LATER, retry_after_ns=20 * MS)], now_ns) == []
        assert link.next_timer_ns() == now_ns + 20 * MS
        told = link._tell([QueueDown(1, error)], now_ns) if down else []
        told += link.step(now_ns + 20 * MS - 1) + link.step(now_ns + 20 * MS)
        heard.append([type(one).__name__ for one in told])

    # with the queue goes the failure: the dealer deals its transfer again when the queue is released
    assert heard == [["Landed"], ["QueueLost", "QueueReleased"]]
    link.close()
