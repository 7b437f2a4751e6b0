"""The engine end to end over memory, TCP on loopback and files: right bytes or an error, and memory that is given back."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

import fabric.engine
from fabric.engine.client import (
    Engine,
    Future,
    QuarantinedError,
    QuarantineFullError,
    Read,
    Settings,
    Write,
    open_engine,
)
from fabric.engine.nvmeof.errors import CommandRefusedError, MediumError, NotReadyError
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import Latency, Shape
from fabric.errors import EngineError, EnvironmentMissingError, IntentError, LocalProtocolError, TransportError
from fabric.policy import ShardPolicy
from tests.unit.engine.client.rig import MIB, MS, POLICY, Hand, assert_right, in_memory, pattern, reads, served, writes

READ, WRITE = (2,), (1,)  # opcodes (NVM command set)
PATIENCE_NS = 20_000 * MS


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


def test_what_is_written_is_read_back_over_four_queues(engine: Engine) -> None:
    source, sink = engine.allocate(4 * MIB), engine.allocate(4 * MIB)
    source.memory[:] = pattern(0, 4 * MIB)

    written = engine.submit(writes(engine, source))
    assert engine.wait(written, PATIENCE_NS)
    read = engine.submit(reads(engine, sink))
    used = {queue.queue for queue in engine.load().queues if queue.commands}
    assert engine.wait(read, PATIENCE_NS)

    assert [one.result() for one in written + read] == [256 << 10] * 32
    assert sink.memory == source.memory
    assert len(engine.load().queues) == 4
    assert len(used) in (0, 4)  # 0: memory answers within submit
    assert all(one.settled for one in written + read)
    assert not engine.quarantined


def test_one_descriptor_is_enough_to_wait_on(engine: Engine) -> None:
    sink = engine.allocate(MIB)
    poller = select.poll()
    poller.register(engine.fileno(), select.POLLIN)
    futures = engine.submit(reads(engine, sink))

    ended: list[Future] = []
    while len(ended) < len(futures):
        assert poller.poll(20_000), "nothing came"
        ended += engine.step()

    assert sorted(one.request for one in ended) == [one.request for one in futures]
    assert engine.step() == []


def test_scattered_views_are_one_run_of_blocks(engine: Engine) -> None:
    block = engine.namespace.namespace.block_bytes
    source, sink = engine.allocate(4 * block), engine.allocate(4 * block)
    source.memory[:] = os.urandom(4 * block)
    views = tuple(sink.view(at * block, block) for at in (3, 1, 0, 2))

    assert engine.wait(engine.submit([Write(5, (source.view(),))]), PATIENCE_NS)
    assert engine.wait(engine.submit([Read(5, views)]), PATIENCE_NS)

    assert b"".join(sink.memory[at * block : (at + 1) * block] for at in (3, 1, 0, 2)) == source.memory


def test_a_batch_with_one_wrong_part_is_not_taken(engine: Engine) -> None:
    sink = engine.allocate(8192)
    last = engine.namespace.blocks
    good = Read(0, (sink.view(0, 4096),))

    for wrong in (
        Read(last, (sink.view(0, 4096),)),
        Read(-1, (sink.view(0, 4096),)),
        Read(0, ()),
        Read(0, (sink.view(0, 100),)),
        Read(0, (sink.view(0, 4096)._replace(buffer=7),)),
        Read(0, (sink.view(0, 4096)._replace(offset=8192),)),
        Read(0, (sink.view(0, 4096),), deadline_ns=-1),
    ):
        with pytest.raises(LocalProtocolError):
            engine.submit([good, wrong])
    with pytest.raises(LocalProtocolError, match="outside its buffer"):
        sink.view(4096, 8192)
    with pytest.raises(LocalProtocolError, match="cannot be registered"):
        engine.register(memoryview(b"read-only"))
    assert engine.load().requests == engine.load().waiting == 0


def test_a_closed_engine_takes_nothing_and_closes_once(engine: Engine) -> None:
    sink = engine.allocate(4096)
    futures = engine.submit([Read(0, (sink.view(),))])
    engine.close()
    engine.close()

    assert all(one.done and one.settled for one in futures)
    with pytest.raises(NotReadyError, match="closed"):
        engine.submit([Read(0, (sink.view(),))])
    assert engine.step() == futures
    assert not engine.wait([type(futures[0])(futures[0].request, 1)])


def test_close_with_reads_in_flight_ends_them_all() -> None:
    engine, _service = in_memory(Shape(faults=(Fault(FaultKind.DROP, opcodes=READ),)))
    sink = engine.allocate(MIB)
    futures = engine.submit(reads(engine, sink))
    assert not any(one.done for one in futures)
    with pytest.raises(LocalProtocolError, match="not ended"):
        futures[0].result()

    engine.close()

    for one in futures:
        assert one.settled
        with pytest.raises(NotReadyError, match="closed"):
            one.result()
    assert not engine.quarantined


def test_a_deadline_fails_the_read_and_holds_its_memory_until_nothing_can_land() -> None:
    late = Fault(FaultKind.DELAY, opcodes=READ, commands=(0,), delay_ns=400 * MS)
    clock = Hand()
    engine, _service = in_memory(Shape(faults=(late,)), settings=Settings(close_ns=0), clock=clock)
    sink = engine.allocate(2 * 4096)
    (future,) = engine.submit([Read(0, (sink.view(0, 4096),), deadline_ns=20 * MS)])

    clock.move(engine, 19 * MS)
    assert not future.done
    clock.move(engine, MS)
    with pytest.raises(EngineError, match="deadline"):
        future.result()
    assert not future.settled
    assert engine.quarantined == (sink.view(0, 4096),)
    with pytest.raises(QuarantinedError):
        engine.submit([Read(0, (sink.view(0, 8192),))])
    (beside,) = engine.submit([Read(8, (sink.view(4096, 4096),))])
    assert engine.wait([beside], PATIENCE_NS)
    assert sink.memory[4096:] == pattern(4096, 4096)

    clock.move(engine, 379 * MS)
    assert not future.settled
    clock.move(engine, MS)
    assert future.settled
    assert not engine.quarantined
    assert len(engine.load().queues) == 4  # a late answer is no reason to lose a queue
    assert engine.wait(engine.submit([Read(0, (sink.view(0, 8192),))]), PATIENCE_NS)
    assert sink.memory == pattern(0, 8192)
    engine.close()


def test_a_full_quarantine_is_an_error_and_empties_again() -> None:
    lost = Fault(FaultKind.DROP, opcodes=READ, commands=(0, 1))
    settings = Settings(quarantine_bytes=8192, command_ns=300 * MS, close_ns=0)
    clock = Hand()
    engine, _service = in_memory(Shape(faults=(lost,)), settings=settings, clock=clock)
    sink = engine.allocate(4 * 4096)
    futures = engine.submit([Read(at * 8, (sink.view(at * 4096, 4096),), deadline_ns=10 * MS) for at in range(2)])
    clock.move(engine, 10 * MS)
    assert all(one.done for one in futures)

    with pytest.raises(QuarantineFullError):
        engine.submit([Read(0, (sink.view(8192, 4096),))])

    clock.move(engine, 290 * MS)  # the command's own timeout takes the queue down, which frees memory
    assert all(one.settled for one in futures)
    again = engine.submit([Read(0, (sink.view(),))])
    assert engine.wait(again, PATIENCE_NS)
    assert again[0].result() == sink.memory.nbytes
    assert sink.memory == pattern(0, sink.memory.nbytes)
    engine.close()


def test_cancel_ends_at_once() -> None:
    engine, _service = in_memory(Shape(faults=(Fault(FaultKind.DROP, opcodes=READ),)))
    sink = engine.allocate(4096)
    (future,) = engine.submit([Read(0, (sink.view(),))])

    engine.cancel(future)
    engine.cancel(future)

    assert future.done
    assert not future.settled
    with pytest.raises(EngineError, match="gave up"):
        future.result()
    engine.close()
    assert future.settled


@pytest.mark.parametrize("kind", [FaultKind.DROP, FaultKind.BREAK, FaultKind.LOSE_ANSWER])
def test_a_read_whose_queue_goes_is_dealt_again_and_a_write_is_not(kind: FaultKind) -> None:
    faults = tuple(Fault(kind, opcodes=code, commands=(1,)) for code in (READ, WRITE))
    engine, _service = in_memory(Shape(faults=faults), settings=Settings(command_ns=100 * MS))
    buffer = engine.allocate(MIB)

    read = engine.submit(work := reads(engine, buffer))
    assert engine.wait(read, PATIENCE_NS)
    assert [one.error for one in read] == [None] * 4
    assert_right(buffer, work, [True] * 4)

    written = engine.submit(writes(engine, buffer))
    assert engine.wait(written, PATIENCE_NS)
    failed = [one for one in written if one.error]
    assert failed
    assert all(isinstance(one.error, TransportError) for one in failed)
    engine.close()


def test_a_status_that_says_so_is_tried_again_and_another_is_not() -> None:
    def status(code: int, *commands: int) -> Fault:
        return Fault(FaultKind.STATUS, opcodes=READ, commands=commands, status=code)

    engine, _service = in_memory(Shape(faults=(status(Status.NAMESPACE_NOT_READY, 0),)))
    sink = engine.allocate(4096)
    first = engine.submit([Read(0, (sink.view(),))])
    assert engine.wait(first, PATIENCE_NS)
    assert first[0].result() == 4096
    assert sink.memory == pattern(0, 4096)
    engine.close()

    for code, kind in ((Status.INVALID_FIELD, CommandRefusedError), (Status.UNRECOVERED_READ_ERROR, MediumError)):
        engine, _service = in_memory(Shape(faults=(status(code | DNR),)))
        sink = engine.allocate(4096)
        ended = engine.submit([Read(0, (sink.view(),))])
        assert engine.wait(ended, PATIENCE_NS)
        with pytest.raises(kind):
            ended[0].result()
        engine.close()


def test_more_than_the_queues_hold_waits_its_turn() -> None:
    policy = ShardPolicy(queues=2, depth=2, transfer_bytes=4096)
    engine, _service = in_memory(Shape(latency=Latency("exponential", MS)), policy)
    sink = engine.allocate(256 << 10)
    work = [Read(at * 8, (sink.view(at * 4096, 4096),)) for at in range(64)]

    futures = engine.submit(work)
    assert engine.load().waiting
    assert engine.wait(futures, PATIENCE_NS)

    assert_right(sink, work, [one.error is None for one in futures])
    assert [one.error for one in futures] == [None] * 64
    engine.close()


def test_a_target_killed_while_it_is_read_costs_no_wrong_byte() -> None:
    with served(Shape(latency=Latency("fixed", 5 * MS))) as target:
        engine = open_engine(target.url, policy=POLICY)
        sink = engine.allocate(4 * MIB)
        work = [Read(one.lba, one.views, deadline_ns=1500 * MS) for one in reads(engine, sink, 16 << 10)]
        futures = engine.submit(work)
        while not any(one.done for one in futures):
            engine.step()
        target.kill()

        assert engine.wait(futures, PATIENCE_NS)
        assert engine.settle(futures, PATIENCE_NS)
        well = [one.error is None for one in futures]
        assert any(well)
        assert not all(well)
        assert_right(sink, work, well)
        assert not engine.quarantined
        engine.close()


def test_a_target_that_comes_back_is_read_on() -> None:
    with served() as target:
        engine = open_engine(target.url, policy=POLICY)
        sink = engine.allocate(MIB)
        assert engine.wait(engine.submit(reads(engine, sink)), PATIENCE_NS)
        target.kill()
        futures = engine.submit(work := reads(engine, sink))
        with served(port=target.port):
            assert engine.wait(futures, PATIENCE_NS)
            assert [one.error for one in futures] == [None] * 4
            assert_right(sink, work, [True] * 4)
            engine.close()


def test_a_target_that_stays_away_is_given_up_with_every_request() -> None:
    with served() as target:
        engine = open_engine(target.url, policy=POLICY, settings=Settings(loss_ns=1500 * MS))
        sink = engine.allocate(MIB)
        target.kill()
        futures = engine.submit(reads(engine, sink))
        assert engine.wait(futures, PATIENCE_NS)

        with pytest.raises(TransportError):
            futures[0].result()
        with pytest.raises(TransportError):
            engine.submit(reads(engine, sink))
        engine.close()


def test_what_cannot_be_opened_says_who_must_act(tmp_path: Path) -> None:
    with served() as target:
        with pytest.raises(EngineError, match="no such namespace"):
            open_engine(target.url.replace("nsid=1", "nsid=7"))
        with pytest.raises(EngineError, match="refused"):
            open_engine(f"nvme+tcp://127.0.0.1:{target.port}/nqn.2026-11.io.example:other")
        gone = target.url
    with pytest.raises(TransportError, match="ECONNREFUSED"):
        fabric.engine.open(gone)
    with pytest.raises(EnvironmentMissingError):
        fabric.engine.open((tmp_path / "absent").as_uri())
    with pytest.raises(IntentError):
        fabric.engine.open("memory://", policy=ShardPolicy(queues=0))


@pytest.mark.parametrize("digest", ["header", "data", "header,data"])
def test_digests_are_asked_for_in_the_url(digest: str) -> None:
    settings = Settings(tos=104)
    with served() as target, open_engine(f"{target.url}&digest={digest}", policy=POLICY, settings=settings) as engine:
        source, sink = engine.allocate(MIB), engine.allocate(MIB)
        source.memory[:] = pattern(MIB, MIB)
        assert engine.wait(engine.submit(writes(engine, source)), PATIENCE_NS)
        assert engine.wait(engine.submit(reads(engine, sink)), PATIENCE_NS)
        assert sink.memory == source.memory
        wanted = engine.link._driver.transport.config  # type: ignore[attr-defined]
        assert (wanted.digests.header, wanted.digests.data) == ("header" in digest, "data" in digest)
        assert wanted.tos == 104
