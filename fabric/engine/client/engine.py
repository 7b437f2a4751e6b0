"""The engine that a caller holds: takes batches of work, steps when it is told to, ends futures.

    submit ──▶ Dealer ──Issue──▶ Link ──▶ transport            step: transport ──▶ Link ──News──▶ Dealer ──▶ futures

| error | who must act |
|---|---|
| LocalProtocolError | the caller: the call itself raises it |
| QuarantineFullError, QuarantinedError | the caller: step on until memory is released, or use other memory |
| TransportError | the owner of the network or target; reads were tried again as often as the policy says |
| NvmeStatusError | by its class: the target refused |
| EngineError of a deadline | whoever set it: the memory stays in quarantine until nothing can land |

Nothing happens between calls: whoever holds an engine steps it, or waits on its descriptor with `next_timer_ns` as the
longest wait. No thread is made but the one of `Settings.keep_alive_thread`. Used from one thread. Time is the clock's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Final, Self, cast

from fabric.engine.client.checking import checked_length, plan_of, request_of
from fabric.engine.client.descriptor import Descriptor
from fabric.engine.client.link import Described, Landed, Link, LinkLost, News, QueueLost, QueueOpened, QueueReleased
from fabric.engine.client.measuredlink import MeasuredLink
from fabric.engine.client.orders import Ended, OrderReleased, Orders, Plan
from fabric.engine.client.quarantine import Quarantine
from fabric.engine.client.settings import Settings
from fabric.engine.client.work import Buffer, Future, Read, Work, Write
from fabric.engine.metrics import EngineMetrics
from fabric.engine.metrics.meter import Meter
from fabric.engine.nvmeof.errors import NotReadyError
from fabric.engine.queues import (
    Dealer,
    DealerLoad,
    Issue,
    Op,
    RequestDone,
    RequestFailed,
    RequestId,
    RequestSettled,
    SetTimer,
    View,
)
from fabric.engine.transport.base import allocate
from fabric.engine.transport.driver import wait
from fabric.errors import EngineError
from fabric.policy import ShardPolicy

__all__ = ("Engine",)

_MOVES: Final = (Read, Write)


class Engine:
    """One namespace over many queues; made by `fabric.engine.open`. A context manager: leaving it closes it.

    Args:
        link: the way, usable.
        news: what it told until then.
        policy: lowered to what the other side granted.
        settings: patience and sizes.
        clock: monotonic nanoseconds.

    Attributes:
        policy: what is obeyed.
        lost: why nothing can be done any more, None while all is well.
    """

    def __init__(
        self, link: Link, news: Sequence[News], policy: ShardPolicy, settings: Settings, clock: Callable[[], int]
    ) -> None:
        self.policy = policy
        self.lost: EngineError | None = None
        self._link = link
        self._meter = link.meter if isinstance(link, MeasuredLink) else None
        self._settings = settings
        self._clock = clock
        self._dealer = Dealer(policy, ranges=link.namespace().ranges)
        self._orders = Orders(policy, link.namespace().namespace.target)
        self._timer_ns: int | None = None
        self._numbers = cast("Iterator[RequestId]", count(1))
        self._buffers: list[Buffer] = []
        self._live: dict[RequestId, Future] = {}
        self._abandoned: dict[RequestId, Future] = {}
        self._ended: list[Future] = []
        self._quarantine = Quarantine(settings.quarantine_bytes)
        self._descriptor = Descriptor(link.fileno())
        self._is_told = False  # the descriptor is readable because of futures that have ended
        self._is_closed = False
        self._hear(news)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def namespace(self) -> Described:
        """The namespace, with its size in blocks."""
        return self._link.namespace()

    @property
    def link(self) -> Link:
        """The way to the namespace, to read its state."""
        link = self._link
        while (inner := getattr(link, "inner", None)) is not None:  # a meter's, a keep-alive thread's
            link = inner
        return link

    @property
    def quarantined(self) -> tuple[View, ...]:
        """Memory that abandoned transfers may still write to."""
        return self._quarantine.views()

    def load(self) -> DealerLoad:
        """Returns what waits and what flies, per queue and window."""
        return self._dealer.load()

    def metrics(self) -> EngineMetrics:
        """Returns what was counted since the engine was opened. May be called from any thread."""
        meter = self._meter or Meter()  # an engine that counts nothing still knows what it holds
        return meter.metrics(
            requests=len(self._live),
            waiting=self._dealer.waiting,
            quarantined_bytes=self._quarantine.bytes,
            quarantine_releases=self._quarantine.releases,
        )

    def allocate(self, length: int) -> Buffer:
        """Returns new registered memory, page-aligned and zeroed."""
        return self.register(allocate(length))

    def register(self, memory: memoryview | bytearray) -> Buffer:
        """Registers writable memory; it stays so until `close`.

        Raises:
            LocalProtocolError: it is read-only, or no contiguous run of bytes.
        """
        self._need_open()
        view = memoryview(memory)
        buffer = Buffer(self._link.register(view), view)
        self._buffers.append(buffer)
        return buffer

    def submit(self, batch: Iterable[Work]) -> list[Future]:
        """Takes work; returns a future for each piece. What has room is sent before this returns, in no certain order.

        Raises:
            LocalProtocolError: one of them cannot be right; none of the batch was taken.
            EngineError: the way is lost.
        """
        self._need_open()
        wanted = tuple(batch)
        described = self._link.namespace()
        futures: list[Future] = []
        moves: list[tuple[Read | Write, Future]] = []
        orders: list[tuple[Plan, Future, int | None]] = []
        for work in wanted:
            number = next(self._numbers)
            if isinstance(work, _MOVES):
                future = Future(number, checked_length(work, described, self._buffers))
                if self._quarantine.bytes:
                    self._quarantine.check(work.views)
                moves.append((work, future))
            else:
                plan, length = plan_of(work, described)
                future = Future(number, length)
                orders.append((plan, future, work.deadline_ns))
            futures.append(future)
        now_ns = self._clock()
        live, meter = self._live, self._meter
        for move, future in moves:
            request = request_of(future.request, move, future.length, described, now_ns)
            self._dealer.submit(request, now_ns)  # refuses a transfer size below one block: the first, so all of them
            live[request.id] = future
            if meter is not None:
                meter.submitted[request.id] = now_ns
            if request.op is Op.WRITE and described.has_cache:
                self._orders.is_dirty = True
                self._orders.writes.add(request.id)
        for plan, future, within_ns in orders:
            live[future.request] = future
            if meter is not None:
                meter.submitted[future.request] = now_ns
            deadline_ns = now_ns + (self.policy.deadline_ns if within_ns is None else within_ns)
            self._orders.take(future.request, plan, deadline_ns, has_cache=described.has_cache)
        self._deal(now_ns)
        self._tell()
        return futures

    def cancel(self, future: Future) -> None:
        """Fails work at once; its memory is held until nothing can land. What has ended is let be."""
        if self._live.get(future.request) is future:  # another engine numbers its own
            self._dealer.cancel(future.request)
            self._orders.cancel(future.request, EngineError("the caller gave up", where=f"request {future.request}"))
            self._deal(self._clock())
            self._tell()

    def step(self) -> list[Future]:
        """Does what there is to do, without waiting; returns the futures that have ended since the last step."""
        if not self._is_closed:
            now_ns = self._clock()
            while news := self._link.step(now_ns):
                self._hear(news)
                self._deal(now_ns)
            self._deal(now_ns)
            if self._is_told:
                self._is_told = False
                self._descriptor.clear()
        ended, self._ended = self._ended, []
        return ended

    def wait(self, futures: Iterable[Future], timeout_ns: int | None = None) -> bool:
        """Steps until all of them have ended; returns whether they have. Without a timeout their deadlines bound it."""
        wanted = tuple(futures)
        return self._until(lambda: all(one.done for one in wanted), timeout_ns)

    def settle(self, futures: Iterable[Future], timeout_ns: int | None = None) -> bool:
        """Steps until nothing can touch the memory of any of them; returns whether that is so."""
        wanted = tuple(futures)
        return self._until(lambda: all(one.settled for one in wanted), timeout_ns)

    def next_timer_ns(self) -> int | None:
        """Returns when to step although the descriptor is not readable, on the engine's clock; None: no need."""
        due = [at for at in (self._timer_ns, self._link.next_timer_ns()) if at is not None]
        if self._orders.is_busy and (at_ns := self._orders.next_timer_ns()) is not None:
            due.append(at_ns)
        return min(due) if due else None

    def fileno(self) -> int:
        """Returns one descriptor, readable when `step` has something to do or to return; the same for life."""
        return self._descriptor.fileno()

    def close(self) -> None:
        """Ends in order if that works within `close_ns`, else without a word. What has not ended fails.

        Afterwards nothing touches registered memory any more, and every future is done and settled.
        """
        if self._is_closed:
            return
        self._give_up(NotReadyError("the engine was closed"))
        now_ns = self._clock()
        end_ns = now_ns + self._settings.close_ns
        with suppress(EngineError):  # whatever the other side does, this ends
            while not self._link.stop(now_ns) and now_ns < end_ns:
                due_ns = self._link.next_timer_ns()
                wait([self._link.fileno()], min(end_ns, end_ns if due_ns is None else due_ns) - now_ns)
                now_ns = self._clock()
                self._link.step(now_ns)
        self._is_closed = True
        self._link.close()
        self._descriptor.close()
        for future in self._abandoned.values():
            future.settled = True
            self._quarantine.release(future.request)
        self._abandoned.clear()

    def _until(self, holds: Callable[[], bool], timeout_ns: int | None) -> bool:
        end_ns = None if timeout_ns is None else self._clock() + timeout_ns
        while True:
            self.step()
            if holds():
                return True
            now_ns = self._clock()
            if self._is_closed or (end_ns is not None and now_ns >= end_ns):
                return False
            due = [at for at in (end_ns, self.next_timer_ns()) if at is not None]
            wait([self.fileno()], max(0, min(due) - now_ns) if due else None)

    def _hear(self, news: Iterable[News]) -> None:
        dealer = self._dealer
        for one in news:
            if type(one) is Landed:
                landed_on, transfer, failure, again = one
                if failure is None:
                    dealer.completed(landed_on, transfer)
                else:
                    dealer.failed(landed_on, transfer, failure, again=again)
                continue
            match one:
                case QueueOpened(queue):
                    dealer.add_queue(queue)
                    self._orders.add_queue(queue.id)
                case QueueLost(queue):
                    dealer.lose_queue(queue)
                    self._orders.lose_queue(queue)
                case QueueReleased(queue):
                    dealer.release_queue(queue)
                case Ended():
                    self._orders.ended(one)
                case OrderReleased(order):
                    self._orders.released(order)
                case LinkLost(error):
                    self._give_up(error)
                case _:
                    pass  # Usable again, after a reconnect

    def _deal(self, now_ns: int) -> None:
        """Does what the dealer says until it says nothing more; parked transfers are tried again too."""
        while True:
            issues = self._obey(now_ns)
            news = self._link.issue(issues, now_ns, self._live.__contains__)
            if self._orders.is_busy:
                news += self._order(now_ns)
            if not news:
                return
            self._hear(news)

    def _order(self, now_ns: int) -> list[News]:
        """Sends what moves no data, and ends what has ended of it."""
        batch = self._orders.send(now_ns)
        self._end_orders()
        return self._link.order(batch, now_ns, self._live.__contains__) if batch else []

    def _end_orders(self) -> None:
        for request, error, is_settled, is_late in self._orders.outcomes():
            if is_late:
                self._abandoned.pop(request).settled = True
                continue
            self._end(request, error)
            if not is_settled:
                self._abandoned[request] = future = self._ended[-1]
                future.settled = False

    def _obey(self, now_ns: int) -> list[Issue]:
        issues: list[Issue] = []
        if self._timer_ns is not None and self._timer_ns <= now_ns:
            self._timer_ns = None  # it has rung; the dealer sets the next one, if there is one
        for command in self._dealer.commands(now_ns):
            if type(command) is Issue:
                issues.append(command)
                continue
            match command:
                case RequestDone(request):
                    self._end(request, None)
                case RequestFailed(request, _reason, error, abandoned):
                    self._end(request, error, abandoned)
                case RequestSettled(request):
                    self._quarantine.release(request)
                    self._abandoned.pop(request).settled = True
                case SetTimer(at_ns):
                    self._timer_ns = at_ns
                case _:
                    pass  # QueueIdle: this engine removes no queue
        return issues

    def _end(self, request: RequestId, error: EngineError | None, abandoned: Sequence[Issue] = ()) -> None:
        future = self._live.pop(request)
        if self._orders.writes:
            self._orders.writes.discard(request)
        if self._meter is not None:
            self._meter.ended(request, error)
        future.done, future.settled = True, not abandoned
        future.error = self.lost if error is not None and self.lost is not None else error
        if abandoned:
            self._abandoned[request] = future
            self._quarantine.hold(request, abandoned)
        self._ended.append(future)

    def _tell(self) -> None:
        """Has whoever waits on the descriptor step, for futures that have ended outside of a step."""
        if self._ended and not self._is_told:
            self._is_told = True
            self._descriptor.set()

    def _give_up(self, error: EngineError) -> None:
        self.lost = self.lost or error
        for request in tuple(self._live):
            self._dealer.cancel(request)
            self._orders.cancel(request, self.lost)
        self._obey(self._clock())
        self._end_orders()

    def _need_open(self) -> None:
        if self.lost is not None:
            raise self.lost.with_traceback(None)  # else each call adds its frames, and keeps what they hold
