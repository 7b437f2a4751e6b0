"""Flush, durable writes, zeroes and deallocation: what reaches the medium, how often, and what is told when it fails."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import ANY

import pytest

from fabric.engine.client import (
    BlockRange,
    Deallocate,
    Engine,
    Flush,
    Read,
    Settings,
    Write,
    WriteZeroes,
    open_engine,
)
from fabric.engine.client.address import MemoryAddress
from fabric.engine.client.blocklink import BlockLink, Place
from fabric.engine.client.checking import plan_of
from fabric.engine.client.link import Described, News
from fabric.engine.client.orders import Ended, Order, OrderReleased, Orders, Outcome, Plan
from fabric.engine.nvmeof import host
from fabric.engine.nvmeof.errors import NvmeStatusError, status_error
from fabric.engine.nvmeof.host import ConnectionId, QueueMemory
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.io import LbaRange
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.engine.queues import Namespace, QueueId, RequestId
from fabric.engine.transport.base import Arena, Connected, Disconnected, Done, Event, Released
from fabric.engine.transport.block import BlockOp, BlockPost
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.service import Service
from fabric.engine.transport.shape import UNSHAPED, Shape
from fabric.engine.transport.storage import NamespaceKey, RamStorage
from fabric.errors import EngineError, LocalProtocolError, TransportError
from fabric.policy import ShardPolicy
from tests.unit.engine.client.rig import MIB, MS, POLICY, Hand, pattern, served

FLUSH, ZEROES, TRIM = (0x00,), (0x08,), (0x09,)  # opcodes (NVM command set)
PATIENCE_NS = 20_000 * MS
ONE = ConnectionId(1)
SETTINGS = Settings(command_ns=100 * MS, close_ns=0)


class Journal(RamStorage):
    """Memory that notes what it is told to make durable, in order."""

    def __init__(self, size: int) -> None:
        super().__init__({(MemoryAddress().nqn, 1): size})
        self.calls: list[tuple[str, int]] = []

    def write(self, key: NamespaceKey, offset: int, data: bytes, *, durable: bool) -> None:
        self.calls.append(("durable" if durable else "write", offset))
        super().write(key, offset, data, durable=durable)

    def zero(self, key: NamespaceKey, offset: int, length: int) -> None:
        self.calls.append(("zero", offset))
        super().zero(key, offset, length)

    def flush(self, key: NamespaceKey) -> None:
        super().flush(key)
        self.calls.append(("flush", 0))


def journalled(
    shape: Shape = UNSHAPED, size: int = 4 * MIB, clock: Hand | None = None, policy: ShardPolicy = POLICY
) -> tuple[Engine, Journal]:
    """An engine on a target in this process whose medium keeps a journal."""
    storage = Journal(size)
    target = Target(
        subsystems=[Subsystem(MemoryAddress().nqn, {1: IdentifyNamespace(size // 512, 9)})], transport="tcp"
    )
    service = Service(target, storage, shape)
    if clock is None:
        return open_engine("memory://", policy=policy, settings=SETTINGS, service=service), storage
    return open_engine("memory://", policy=policy, settings=SETTINGS, service=service, clock=clock), storage


@pytest.fixture(params=["memory", "tcp", "file"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An engine of 4 MiB over each way."""
    if request.param == "memory":
        with open_engine(f"memory://?bytes={4 * MIB}", policy=POLICY) as one:
            yield one
    elif request.param == "tcp":
        with served() as target, open_engine(target.url, policy=POLICY) as one:
            yield one
    else:
        (tmp_path / "disk").write_bytes(bytes(4 * MIB))
        with open_engine((tmp_path / "disk").as_uri(), policy=POLICY, settings=Settings(direct=False)) as one:
            yield one


def test_what_was_written_flushed_zeroed_and_deallocated_reads_so(engine: Engine) -> None:
    buffer = engine.allocate(2 * MIB)
    half = buffer.memory[:MIB]
    half[:] = pattern(0, MIB)
    unit = engine.namespace.namespace.block_bytes

    for work in (
        Write(0, (buffer.view(0, MIB),), fua=True),
        Flush(),
        WriteZeroes(8192 // unit, 8192 // unit),
        WriteZeroes(32768 // unit, 4096 // unit, deallocate=True),
        Deallocate((BlockRange(65536 // unit, 4096 // unit), BlockRange(73728 // unit, 4096 // unit))),
        Read(0, (buffer.view(MIB, MIB),)),
    ):
        (future,) = engine.submit([work])
        assert engine.wait([future], PATIENCE_NS)
        future.result()
        assert future.settled

    found, wanted = bytes(buffer.memory[MIB:]), bytes(half)
    assert found[:8192] == wanted[:8192]
    assert found[8192:16384] == bytes(8192)
    assert found[16384:32768] == wanted[16384:32768]
    assert found[32768:36864] == bytes(4096)
    assert found[69632:73728] == wanted[69632:73728]  # between the two ranges that hold nothing any more
    assert found[77824:] == wanted[77824:]
    load = engine.load()
    assert (load.requests, load.waiting, load.draining) == (0, 0, 0)


def test_each_says_how_many_bytes_it_concerns(engine: Engine) -> None:
    unit = engine.namespace.namespace.block_bytes
    futures = engine.submit([Flush(), WriteZeroes(0, 3), Deallocate((BlockRange(0, 1), BlockRange(4, 2)))])
    assert engine.wait(futures, PATIENCE_NS)
    assert [one.result() for one in futures] == [0, 3 * unit, 3 * unit]


def test_a_batch_with_one_wrong_part_is_not_taken(engine: Engine) -> None:
    last = engine.namespace.blocks
    for wrong in (
        WriteZeroes(last, 1),
        WriteZeroes(0, 0),
        WriteZeroes(-1, 1),
        Deallocate(()),
        Deallocate((BlockRange(0, 1), BlockRange(last - 1, 2))),
        Flush(deadline_ns=-1),
    ):
        with pytest.raises(LocalProtocolError):
            engine.submit([Flush(), WriteZeroes(0, 1), wrong])
    assert engine.step() == []


def test_a_flush_comes_once_behind_the_writes_and_a_durable_write_says_so() -> None:
    engine, storage = journalled()
    buffer = engine.allocate(8192)
    engine.wait(engine.submit([Write(8, (buffer.view(0, 4096),)), Write(0, (buffer.view(4096, 4096),))]))
    engine.wait(engine.submit([Flush()]))
    engine.wait(engine.submit([Write(16, (buffer.view(0, 4096),), fua=True)]))
    engine.close()
    assert sorted(storage.calls[:2]) == [("write", 0), ("write", 4096)]
    assert storage.calls[2:] == [("flush", 0), ("durable", 8192)]


def test_long_runs_and_many_ranges_are_cut_at_what_one_command_takes() -> None:
    engine, storage = journalled(size=64 * MIB)
    blocks = engine.namespace.blocks
    futures = engine.submit([WriteZeroes(0, blocks), Deallocate(tuple(BlockRange(at * 2, 1) for at in range(600)))])
    assert engine.wait(futures, PATIENCE_NS)
    assert [one.result() for one in futures] == [64 * MIB, 600 * 512]
    answers = [engine.link.controller.queue(qid).telemetry.answers for qid in range(1, 5)]  # type: ignore[attr-defined]
    engine.close()
    assert sorted(storage.calls)[:601] == [("zero", 0), ("zero", 0), *(("zero", at * 1024) for at in range(1, 600))]
    assert sorted(storage.calls)[601:] == [("zero", 32 * MIB)]
    assert sum(answers) - 4 == 2 + 3  # one of each queue is its Connect


def test_ranges_longer_than_a_field_are_cut() -> None:
    described = Described(Namespace(1, "t", 512), 1 << 40)
    plan, length = plan_of(Deallocate((BlockRange(5, (1 << 32) + 7),)), described)
    (command,) = plan.commands
    assert isinstance(command, host.Deallocate)
    assert [(one.slba, one.blocks) for one in command.ranges] == [(5, (1 << 32) - 1), (4 + (1 << 32), 8)]
    assert (plan.parts, length) == (1, ((1 << 32) + 7) * 512)


def test_a_flush_whose_queue_breaks_is_sent_again_on_another() -> None:
    engine, storage = journalled(Shape(faults=(Fault(FaultKind.BREAK, opcodes=FLUSH, commands=(0, 1)),)))
    buffer = engine.allocate(4096)
    engine.wait(engine.submit([Write(0, (buffer.view(),))]))
    (future,) = engine.submit([Flush()])
    assert engine.wait([future], PATIENCE_NS)
    future.result()
    engine.close()
    assert storage.calls == [("write", 0), ("flush", 0)]


def test_a_flush_that_the_target_refuses_for_now_is_sent_again_and_for_good_fails() -> None:
    for status, result in ((Status.COMMAND_INTERRUPTED, None), (Status.WRITE_FAULT | DNR, NvmeStatusError)):
        engine, storage = journalled(
            Shape(faults=(Fault(FaultKind.STATUS, opcodes=FLUSH, commands=(0,), status=status),))
        )
        (future,) = engine.submit([Flush()])
        assert engine.wait([future], PATIENCE_NS)
        engine.close()
        if result is None:
            assert future.result() == 0
            assert storage.calls == [("flush", 0)]
        else:
            with pytest.raises(result):
                future.result()
            assert storage.calls == []


@pytest.mark.parametrize("kind", [FaultKind.BREAK, FaultKind.STATUS, FaultKind.DROP])
@pytest.mark.parametrize("opcode", [ZEROES, TRIM])
def test_zeroes_and_deallocations_are_sent_once(kind: FaultKind, opcode: tuple[int]) -> None:
    fault = Fault(kind, opcodes=opcode, commands=(0,), status=Status.COMMAND_INTERRUPTED)
    engine, storage = journalled(Shape(faults=(fault,)))
    (future,) = engine.submit([WriteZeroes(0, 8) if opcode == ZEROES else Deallocate((BlockRange(0, 8),))])
    assert engine.wait([future], PATIENCE_NS)
    assert engine.settle([future], PATIENCE_NS)
    with pytest.raises(EngineError):
        future.result()
    again = engine.submit([WriteZeroes(0, 8)])
    assert engine.wait(again, PATIENCE_NS)
    assert again[0].result() == 4096
    engine.close()
    assert storage.calls == [("zero", 0)]


def test_late_zeroes_are_not_settled_before_they_can_come_no_more() -> None:
    clock = Hand()
    late = Fault(FaultKind.DELAY, opcodes=ZEROES, delay_ns=60 * MS)
    engine, storage = journalled(Shape(faults=(late,)), clock=clock)
    (future,) = engine.submit([WriteZeroes(0, 8, deadline_ns=20 * MS)])
    (flush,) = engine.submit([Flush()])
    clock.move(engine, 20 * MS)
    assert flush.result() == 0
    with pytest.raises(EngineError, match="deadline"):
        future.result()
    assert not future.settled

    clock.move(engine, 39 * MS)
    assert not future.settled
    clock.move(engine, MS)
    assert storage.calls == [("zero", 0), ("flush", 0)]
    assert future.settled
    engine.close()


def test_a_cancelled_flush_is_over_at_once_and_close_ends_the_rest() -> None:
    engine, _storage = journalled(Shape(faults=(Fault(FaultKind.DROP, opcodes=(*FLUSH, *ZEROES)),)))
    flush, zeroes, other = engine.submit([Flush(), WriteZeroes(0, 8), Flush()])
    assert engine.next_timer_ns() is not None
    engine.cancel(flush)
    engine.cancel(flush)
    assert (flush.done, flush.settled, zeroes.done) == (True, True, False)
    engine.cancel(zeroes)
    assert (zeroes.done, zeroes.settled, other.done) == (True, False, False)
    engine.close()
    assert (zeroes.settled, other.done, other.settled) == (True, True, True)
    with pytest.raises(EngineError, match="gave up"):
        flush.result()
    with pytest.raises(EngineError, match="closed"):
        other.result()


def test_a_flush_says_so_once_when_the_target_was_away_since_the_write() -> None:
    with served() as target:
        engine = open_engine(target.url, policy=POLICY)
        buffer = engine.allocate(4096)
        assert engine.wait(engine.submit([Write(0, (buffer.view(),))]), PATIENCE_NS)
        target.kill()
        with served(port=target.port):
            read = engine.submit(
                [Read(0, (buffer.view(),))]
            )  # what was written is gone: a flush must not say it is there
            assert engine.wait(read, PATIENCE_NS)
            for expected in (TransportError, None):
                (future,) = engine.submit([Flush()])
                assert engine.wait([future], PATIENCE_NS)
                assert type(future.error) is (expected or type(None))
            engine.close()


def test_a_flush_waits_for_a_target_that_comes_back_when_nothing_was_written() -> None:
    with served() as target:
        engine = open_engine(target.url, policy=POLICY)
        target.kill()
        (future,) = engine.submit([Flush()])
        with served(port=target.port):
            assert engine.wait([future], PATIENCE_NS)
            engine.close()
    assert future.error is None or isinstance(future.error, TransportError)  # it may have been sent before the kill


def flushes(count: int = 1) -> Plan:
    return Plan(iter([host.Flush(1)] * count), count, is_flush=True)


def zeroes(count: int) -> Plan:
    return Plan(iter([host.WriteZeroes(1, at, 1) for at in range(count)]), count, writes=True)


def test_no_more_orders_fly_than_the_depth_and_the_emptiest_queue_has_the_next() -> None:
    orders = Orders(ShardPolicy(depth=4), "t")
    orders.take(RequestId(1), zeroes(10), 1000)
    assert orders.send(0) == []
    orders.add_queue(QueueId(1))
    orders.add_queue(QueueId(2))
    sent = orders.send(0)
    assert [queue for queue, _order in sent] == [1, 2, 1, 2]
    assert orders.send(0) == []
    seen = 0
    while sent:
        seen += 1
        queue, order = sent.pop()
        orders.ended(Ended(queue, order))
        sent += orders.send(0)
    assert seen == 10
    assert orders.outcomes() == [Outcome(RequestId(1))]
    assert not orders.is_busy


def test_a_flush_is_repeated_so_often_and_after_the_delay() -> None:
    orders = Orders(ShardPolicy(redeals=2), "t")
    orders.add_queue(QueueId(1))
    orders.take(RequestId(1), flushes(), 1000)
    error = TransportError("lost")
    for attempt in range(3):
        now_ns = attempt * 10
        ((queue, order),) = orders.send(now_ns)
        assert order.attempt == attempt
        orders.ended(Ended(queue, order, error, again=True, at_ns=now_ns + 10))
        assert orders.next_timer_ns() == (now_ns + 10 if attempt < 2 else None)
        assert orders.send(now_ns + 9) == []
    assert orders.outcomes() == [Outcome(RequestId(1), error)]


def test_zeroes_that_were_never_sent_may_be_sent() -> None:
    orders = Orders(ShardPolicy(), "t")
    orders.add_queue(QueueId(1))
    orders.take(RequestId(1), zeroes(1), 1000)
    ((queue, order),) = orders.send(0)
    orders.add_queue(QueueId(2))
    orders.lose_queue(QueueId(1))
    orders.ended(Ended(queue, order, TransportError("lost"), again=True, is_sent=False))
    ((queue, again),) = orders.send(0)
    assert (queue, again.command, again.attempt) == (2, order.command, 1)
    orders.ended(Ended(queue, again))
    assert orders.outcomes() == [Outcome(RequestId(1))]


def test_a_flush_does_not_wait_for_all_of_the_zeroes() -> None:
    orders = Orders(ShardPolicy(depth=2), "t")
    orders.add_queue(QueueId(1))
    orders.take(RequestId(1), zeroes(1000), 1000)
    orders.take(RequestId(2), flushes(), 1000)
    assert [order.request for _queue, order in orders.send(0)] == [1, 2]


def test_a_write_that_was_open_when_a_flush_was_submitted_is_not_covered_by_it() -> None:
    for is_open in (False, True):
        orders = Orders(ShardPolicy(), "t")
        orders.add_queue(QueueId(1))
        orders.is_dirty = True
        if is_open:
            orders.writes.add(RequestId(1))
        orders.take(RequestId(2), flushes(), 1000)
        ((queue, order),) = orders.send(0)
        orders.ended(Ended(queue, order))
        orders.lose_queue(QueueId(1))
        orders.take(RequestId(3), flushes(), 1000)
        errors = [one.error for one in orders.outcomes()]
        assert [isinstance(one, TransportError) for one in errors] == ([False, True] if is_open else [False])


def test_a_durable_write_and_a_medium_without_a_cache_leave_nothing_to_flush() -> None:
    engine, _storage = journalled()
    buffer = engine.allocate(4096)
    engine.wait(engine.submit([Write(0, (buffer.view(),), fua=True)]))
    assert not engine._orders.is_dirty
    engine.wait(engine.submit([Write(0, (buffer.view(),))]))
    assert engine._orders.is_dirty
    assert not engine._orders.writes
    engine.wait(engine.submit([Flush()]))
    assert not engine._orders.is_dirty
    engine.close()

    orders = Orders(ShardPolicy(), "t")
    orders.take(RequestId(1), zeroes(1), 1000, has_cache=False)
    assert not orders.is_dirty


class Scripted:
    """A block transport of a test: notes posts, tells what it is given."""

    def __init__(self) -> None:
        self.posts: list[BlockPost] = []
        self.events: list[Event] = []

    def register(self, memory: memoryview) -> Arena:
        return Arena(memory, 0, 1)

    def connect(self, order: host.Connect, now_ns: int) -> None:
        assert now_ns == 0
        self.events.append(Connected(order.connection, b"", QueueMemory()))

    def post(self, batch: Sequence[BlockPost], now_ns: int) -> None:
        assert all(one.deadline_ns == now_ns + 1000 for one in batch)
        self.posts += batch

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        self.events.append(Disconnected(connection, str(now_ns)))

    def poll(self, now_ns: int) -> list[Event]:
        assert now_ns >= 0
        events, self.events = self.events, []
        return events

    def next_timer_ns(self) -> int | None:
        return None

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.events.clear()


def told(link: BlockLink, transport: Scripted, *events: Event) -> list[News]:
    transport.events += events
    return link.step(0)


def test_a_device_that_hangs_in_one_range_of_many_ends_the_order_once_and_releases_it_last() -> None:
    transport = Scripted()
    link = BlockLink(transport, Place("t", MIB, 4096), ShardPolicy(queues=1), 1000)
    link.start(0)
    assert len(link.step(0)) == 2
    ranges = tuple(LbaRange(at, 1) for at in (0, 4, 8))
    order = Order(1, RequestId(1), host.Deallocate(1, ranges))
    assert link.order([(QueueId(1), order)], 0, lambda request: request == 1) == []
    tags = [one.tag for one in transport.posts]
    assert [(one.op, one.offset, one.length) for one in transport.posts] == [
        (BlockOp.DISCARD, at * 4096, 4096) for at in (0, 4, 8)
    ]
    late = TransportError("late")

    assert told(link, transport, Done(ONE, tags[0])) == []
    heard = told(link, transport, Done(ONE, tags[1], late, held=True), Done(ONE, tags[2], late, held=True))
    assert heard == [Ended(QueueId(1), order, late, again=True, held=True)]
    assert told(link, transport, Released(ONE, tags[2])) == []
    assert told(link, transport, Released(ONE, tags[1])) == [OrderReleased(order)]

    flush = Order(2, RequestId(2), host.Flush(1))
    link.order([(QueueId(1), flush)], 0, lambda request: request == 2)
    error = status_error(Status.CAPACITY_EXCEEDED | DNR)
    assert told(link, transport, Done(ONE, transport.posts[-1].tag, error)) == [Ended(QueueId(1), flush, error)]


def test_orders_wait_for_a_slot_and_go_when_nobody_wants_them_or_their_queue_is_lost() -> None:
    slow = Shape(faults=(Fault(FaultKind.DROP, opcodes=(2,)),))
    policy = ShardPolicy(queues=1, depth=1)
    clock = Hand()
    engine, storage = journalled(slow, clock=clock, policy=policy)
    sink = engine.allocate(4096)
    (read,) = engine.submit([Read(0, (sink.view(),), deadline_ns=500 * MS)])  # has the one slot until it times out
    kept, dropped = engine.submit([WriteZeroes(0, 8), WriteZeroes(8, 8)])
    engine.cancel(dropped)
    assert (dropped.done, dropped.settled, kept.done) == (True, True, False)
    clock.move(engine, 50 * MS)
    assert storage.calls == []
    while not kept.done:
        clock.move(engine, 50 * MS)
        assert clock.now_ns < 60_000 * MS
    assert kept.result() == 4096  # never sent on the lost queue, so it was sent on the next
    assert storage.calls == [("zero", 0)]
    assert not read.done or read.error is not None
    engine.close()


def test_an_order_that_the_machine_refuses_ends_with_its_error() -> None:
    engine, _storage = journalled()
    order = Order(1, RequestId(1), host.WriteZeroes(1, 1 << 40, 1))
    (ended,) = engine.link.order([(QueueId(1), order)], 0, lambda request: request == 1)
    assert isinstance(ended, Ended)
    assert "outside the namespace" in str(ended.error)
    assert engine.link.order([(QueueId(9), order)], 0, lambda request: request == 1) == [
        Ended(QueueId(9), order, ANY, again=True, is_sent=False)
    ]
    engine.close()
