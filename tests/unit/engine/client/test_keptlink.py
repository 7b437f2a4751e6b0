"""The keep-alive thread: a caller that stalls keeps its controller. In real time, for that is what a target counts."""

import select
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fabric.engine.client import Engine, Flush, Read, Settings, open_engine
from fabric.engine.client.address import parse_address
from fabric.engine.client.keptlink import KeptLink
from fabric.engine.client.link import Described, Landed, LinkLost, News, QueueLost, QueueOpened, QueueReleased
from fabric.engine.client.opening import enter, make_link
from fabric.engine.client.orders import Order
from fabric.engine.nvmeof.target import NVMET
from fabric.engine.queues import Issue, Namespace, Op, Path, Queue, QueueId, RequestId, Transfer, TransferId
from fabric.engine.transport.signal import Signal
from fabric.errors import LocalProtocolError, TransportError
from tests.unit.engine.client.rig import MIB, MS, POLICY, Served, assert_right, pattern, reads, served

KATO_MS = 500  # margins of a quarter of it, on a machine with other things to do
STRICT = replace(NVMET, kato_step_ms=100)  # nvmet itself rounds up to seconds, and a test would stall for that long
STALL_S = 1.5
PATIENCE_NS = 20_000 * MS


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "nvme-keep-alive"]


def opened(target: Served, *, thread: bool) -> Engine:
    settings = Settings(keep_alive_ms=KATO_MS, keep_alive_thread=thread)
    return open_engine(target.url, policy=POLICY, settings=settings)


def test_a_caller_that_stalls_keeps_its_controller_and_what_it_asked_for() -> None:
    with served(profile=STRICT) as target:
        engine = opened(target, thread=True)
        sink = engine.allocate(MIB)
        work = reads(engine, sink)
        futures = engine.submit(work)
        controller = engine.link.controller  # type: ignore[attr-defined]
        first = controller.queue(1).connection
        assert threads() == ["nvme-keep-alive"]

        time.sleep(STALL_S)

        poller = select.poll()
        poller.register(engine.fileno(), select.POLLIN)
        assert poller.poll(0)  # the thread has heard the answers, and whoever waits must be told
        assert engine.wait(futures, PATIENCE_NS)
        assert_right(sink, work, [one.error is None for one in futures])
        assert [one.error for one in futures] == [None] * len(futures)
        assert controller.queue(1).connection == first
        assert engine.wait(engine.submit([Flush()]), PATIENCE_NS)
        engine.close()
    assert threads() == []


@pytest.mark.slow
def test_without_the_thread_the_target_drops_a_caller_that_stalls_and_reads_are_sent_again() -> None:
    with served(profile=STRICT) as target:
        engine = opened(target, thread=False)
        controller = engine.link.controller  # type: ignore[attr-defined]
        first = controller.queue(1).connection
        assert threads() == []

        time.sleep(STALL_S)

        sink = engine.allocate(MIB)
        futures = engine.submit(reads(engine, sink))
        assert engine.wait(futures, PATIENCE_NS)
        assert [one.error for one in futures] == [None] * len(futures)
        assert sink.memory == pattern(0, MIB)
        assert controller.queue(1).connection != first
        engine.close()


@pytest.mark.slow
def test_the_thread_connects_again_while_nobody_looks() -> None:
    with served() as target:
        engine = opened(target, thread=True)
        controller = engine.link.controller  # type: ignore[attr-defined]
        first = controller.queue(1).connection
        target.kill()
        with served(port=target.port):
            end = time.monotonic() + 20
            while controller.live_queues != (1, 2, 3, 4) or controller.queue(1).connection == first:
                assert time.monotonic() < end
                time.sleep(0.05)
            sink = engine.allocate(MIB)
            futures = engine.submit(reads(engine, sink))  # dealt to queues whose loss was not told yet
            assert engine.wait(futures, PATIENCE_NS)
            assert [one.error for one in futures] == [None] * len(futures)
            assert sink.memory == pattern(0, MIB)
            engine.close()
    assert threads() == []


def test_no_thread_where_nothing_is_kept_alive_and_none_beside_a_trace(tmp_path: object) -> None:
    with open_engine("memory://", settings=Settings(keep_alive_ms=0, keep_alive_thread=True)):
        assert threads() == []
    with pytest.raises(LocalProtocolError, match="trace"):
        open_engine("memory://", settings=Settings(keep_alive_thread=True, trace=tmp_path / "t"))  # type: ignore[operator]


class Told:
    """A link of a test: tells what it was given, notes what it is asked for and from which thread."""

    def __init__(self) -> None:
        self.signal = Signal()
        self.news: list[list[News]] = []
        self.issued: list[Issue] = []
        self.times: list[int] = []
        self.error: TransportError | None = None
        self.is_closed = False

    def start(self, now_ns: int) -> None:
        self.times.append(now_ns)

    def namespace(self) -> Described:
        return Described(Namespace(1, "t", 512), 8)

    def register(self, memory: memoryview) -> int:
        return memory.nbytes

    def issue(self, batch: Sequence[Issue], now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        self.times.append(now_ns)
        self.issued += [one for one in batch if wanted(one.transfer.request)]
        return []

    def order(
        self, batch: Sequence[tuple[QueueId, Order]], now_ns: int, wanted: Callable[[RequestId], bool]
    ) -> list[News]:
        self.times.append(now_ns)
        assert all(wanted(order.request) for _queue, order in batch)
        return []

    def step(self, now_ns: int) -> list[News]:
        self.times.append(now_ns)
        if self.error is not None:
            raise self.error
        return self.news.pop(0) if self.news else []

    def next_timer_ns(self) -> int | None:
        return 7

    def fileno(self) -> int:
        return self.signal.fileno()

    def stop(self, now_ns: int) -> bool:
        self.times.append(now_ns)
        return True

    def close(self) -> None:
        assert not threads()
        self.is_closed = True
        self.signal.close()


def wanted(request: RequestId) -> bool:
    return request == 1


def issue(queue: int) -> Issue:
    transfer = Transfer(TransferId(queue), RequestId(1), Op.READ, Namespace(1, "t", 512), 0, 8, 4096, (), 0, "")
    return Issue(QueueId(queue), transfer)


def until_readable(link: KeptLink) -> None:
    poller = select.poll()
    poller.register(link.fileno(), select.POLLIN)
    assert poller.poll(10_000)


def test_what_the_thread_heard_is_told_before_anything_else_and_nothing_goes_to_a_queue_that_is_gone() -> None:
    inner = Told()
    path = Path("any", "t")
    heard: list[News] = [QueueLost(QueueId(1)), QueueReleased(QueueId(1)), QueueOpened(Queue(QueueId(1), "t", path, 4))]
    inner.news = [heard]
    link = KeptLink(inner, 20 * MS, lambda: 50)
    link.start(10)
    until_readable(link)

    assert link.issue([issue(1), issue(2)], 20, wanted) == heard
    assert inner.issued == [issue(2)]
    assert inner.times == sorted(inner.times)  # the caller read its clock before the thread did
    landed: list[News] = [Landed(QueueId(2), issue(2).transfer)]
    inner.news = [landed]
    until_readable(link)
    assert link.order([], 60, wanted) == landed
    assert link.step(70) == []
    assert (link.namespace().blocks, link.register(memoryview(b"ab")), link.next_timer_ns(), link.stop(80)) == (
        8,
        2,
        7,
        True,
    )
    link.close()
    link.close()
    assert inner.is_closed


def test_an_error_in_the_thread_is_the_end_of_the_link() -> None:
    inner = Told()
    inner.error = TransportError("out of descriptors")
    link = KeptLink(inner, 20 * MS, lambda: 50)
    link.start(10)
    until_readable(link)
    assert link.issue([], 60, wanted)[0] == LinkLost(inner.error)
    link.close()


@pytest.mark.slow
def test_work_of_both_threads_at_once_costs_no_wrong_byte() -> None:
    with served() as target:
        way = make_link(parse_address(target.url), POLICY, Settings(), None)
        link = KeptLink(way, 4 * MS, time.monotonic_ns)  # a look each millisecond, which no caller asks for
        engine = Engine(link, *enter(link, POLICY, Settings(), time.monotonic_ns), Settings(), time.monotonic_ns)
        sink = engine.allocate(MIB)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            work = reads(engine, sink, 16 << 10)
            futures = engine.submit([Read(one.lba, one.views) for one in work])
            time.sleep(0.002)
            assert engine.wait(futures, PATIENCE_NS)
            assert [one.error for one in futures] == [None] * len(futures)
            assert_right(sink, work, [True] * len(futures))
            sink.memory[:] = bytes(MIB)
        engine.close()
