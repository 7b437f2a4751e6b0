"""Commands that move no data of the caller: flush, write zeroes, deallocate. Sans-I/O, beside the dealer.

The dealer deals bytes; these have none, so no window holds them, and no policy chooses their queue: the one with the
fewest of them. Up to the policy's depth fly at a time.

| what | how often | why |
|---|---|---|
| Flush | again on another queue, up to `redeals` times | it says the same twice |
| WriteZeroes, Deallocate | once | a repeated one could undo a write that came in between |

A flush must not say more than it knows: when every queue was lost, the target may have started anew, and what it had
in its cache may be gone. So the next flush fails, once, if anything was written since the last one.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, TypeAlias

from fabric.engine.nvmeof.host import Deallocate, Flush, WriteZeroes
from fabric.engine.queues import QueueId, RequestId
from fabric.errors import EngineError, TransportError
from fabric.policy import ShardPolicy

__all__ = ("Ended", "Order", "OrderCommand", "OrderReleased", "Orders", "Outcome", "Plan")

OrderCommand: TypeAlias = Flush | WriteZeroes | Deallocate


class Plan(NamedTuple):
    """The commands of one request, made as they are sent; `parts` of them, 1 or more. `writes`: a flush covers it."""

    commands: Iterator[OrderCommand]
    parts: int
    is_flush: bool = False
    writes: bool = False


class Order(NamedTuple):
    """One command.

    Attributes:
        number: unique in its engine; another one when it is sent again.
        request: what it belongs to.
        command: what is asked.
        attempt: 0, and one more each time it is sent again.
    """

    number: int
    request: RequestId
    command: OrderCommand
    attempt: int = 0


class Ended(NamedTuple):
    """An order ended.

    Attributes:
        queue, order: which.
        error: why it failed, or None.
        again: the status allows to send it again, from `at_ns` on.
        is_sent: the target has seen it, or may have.
        held: the target may still carry it out; OrderReleased follows.
    """

    queue: QueueId
    order: Order
    error: EngineError | None = None
    again: bool = False
    at_ns: int = 0
    is_sent: bool = True
    held: bool = False


class OrderReleased(NamedTuple):
    """The target cannot carry out an order any more that had ended as held."""

    order: Order


class Outcome(NamedTuple):
    """A request ended, or, when `is_late`, settled after its end."""

    request: RequestId
    error: EngineError | None = None
    is_settled: bool = True
    is_late: bool = False


@dataclass(slots=True)
class _Progress:
    request: RequestId
    todo: Iterator[OrderCommand]
    left: int  # commands that have not ended well
    deadline_ns: int
    is_flush: bool
    again: list[tuple[int, Order]] = field(default_factory=list)
    flying: set[int] = field(default_factory=set)
    is_ready: bool = True  # it stands in line


class Orders:
    """One engine's orders.

    Args:
        policy: depth and redeals.
        where: name of the namespace, for messages.

    Attributes:
        is_busy: there is something to ask for or to wait for.
        writes: requests that have not ended and leave something in a cache; whoever submits one adds it.
        is_dirty: something was written since the last flush that a cache may hold; whoever writes sets it.
    """

    def __init__(self, policy: ShardPolicy, where: str) -> None:
        self.is_busy = self.is_dirty = False
        self.writes: set[RequestId] = set()
        self._depth, self._redeals, self._where = policy.depth, policy.redeals, where
        self._numbers = count(1)
        self._open: dict[QueueId, int] = {}
        self._flying: dict[int, QueueId] = {}
        self._live: dict[RequestId, _Progress] = {}
        self._ready: deque[_Progress] = deque()  # those that may have something to send, in turn
        self._held: dict[RequestId, set[int]] = {}
        self._outcomes: list[Outcome] = []
        self._is_torn = False

    def add_queue(self, queue: QueueId) -> None:
        """Sends over a queue from now on."""
        self._open[queue] = 0

    def lose_queue(self, queue: QueueId) -> None:
        """Sends nothing more over a queue; what flies on it ends by itself."""
        self._open.pop(queue, None)
        if self._open:
            return
        flushes = [one for one in self._live.values() if one.is_flush]
        for one in flushes:
            self._fail(one, self._torn())
        self._is_torn = self._is_torn or (self.is_dirty and not flushes)

    def take(self, request: RequestId, plan: Plan, deadline_ns: int, *, has_cache: bool = True) -> None:
        """Takes a request."""
        self.is_busy = True
        if plan.writes and has_cache:
            self.is_dirty = True
            self.writes.add(request)
        progress = self._live[request] = _Progress(request, plan.commands, plan.parts, deadline_ns, plan.is_flush)
        self._ready.append(progress)
        if plan.is_flush:
            was_torn, self._is_torn = self._is_torn, False
            if was_torn:
                self._fail(progress, self._torn())
            else:
                self.is_dirty = bool(self.writes)  # a write that is open may end behind the flush

    def cancel(self, request: RequestId, error: EngineError) -> None:
        """Fails a request at once; one that has ended is let be."""
        if (progress := self._live.get(request)) is not None:
            self._fail(progress, error)

    def ended(self, ended: Ended) -> None:
        """Takes the end of an order."""
        order = ended.order
        self._landed(order)
        progress = self._live.get(order.request)
        if progress is None:
            if not ended.held:
                self._let_go(order)
            return
        progress.flying.discard(order.number)
        if ended.error is None:
            progress.left -= 1
            if not progress.left:
                del self._live[order.request]
                self._outcomes.append(Outcome(order.request))
        elif self._may_repeat(ended):
            progress.again.append((ended.at_ns, order))
            if not progress.is_ready:
                progress.is_ready = True
                self._ready.append(progress)
        else:
            if ended.held and not progress.is_flush:
                progress.flying.add(order.number)  # it may still be carried out: the request settles after that
            self._fail(progress, ended.error)

    def released(self, order: Order) -> None:
        """Takes note that a held order is not carried out any more."""
        self._let_go(order)

    def send(self, now_ns: int) -> list[tuple[QueueId, Order]]:
        """Returns what to send now; fails what is late."""
        for progress in [one for one in self._live.values() if one.deadline_ns <= now_ns]:
            self._fail(progress, EngineError("the deadline has passed", where=f"request {progress.request}"))
        batch: list[tuple[QueueId, Order]] = []
        ready, later = self._ready, []
        while ready and self._open and len(self._flying) < self._depth:
            progress = ready.popleft()
            order = self._next(progress, now_ns) if progress.request in self._live else None
            if order is not None:
                ready.append(progress)  # one command each in turn: a flush is not to wait for a terabyte of zeroes
                batch.append((self._launch(progress, order), order))
            elif progress.again:
                later.append(progress)
            else:
                progress.is_ready = False
        ready.extend(later)
        return batch

    def outcomes(self) -> list[Outcome]:
        """Returns what has ended or settled since the last call."""
        outcomes, self._outcomes = self._outcomes, []
        self.is_busy = bool(self._live or self._held)
        return outcomes

    def next_timer_ns(self) -> int | None:
        """Returns when `send` has something to do by itself."""
        due = [one.deadline_ns for one in self._live.values()]
        if self._open and len(self._flying) < self._depth:  # else nothing can be sent before a queue or an end comes
            due += [at for one in self._live.values() for at, _order in one.again]
        return min(due, default=None)

    def _launch(self, progress: _Progress, order: Order) -> QueueId:
        queue = min(self._open, key=self._open.__getitem__)
        self._open[queue] += 1
        self._flying[order.number] = queue
        progress.flying.add(order.number)
        return queue

    def _next(self, progress: _Progress, now_ns: int) -> Order | None:
        for index, (at_ns, order) in enumerate(progress.again):
            if at_ns <= now_ns:
                del progress.again[index]
                return order._replace(number=next(self._numbers), attempt=order.attempt + 1)
        command = next(progress.todo, None)
        return None if command is None else Order(next(self._numbers), progress.request, command)

    def _may_repeat(self, ended: Ended) -> bool:
        if ended.order.attempt >= self._redeals:
            return False
        return not ended.is_sent or (ended.again and isinstance(ended.order.command, Flush))

    def _landed(self, order: Order) -> None:
        queue = self._flying.pop(order.number, None)
        if queue is not None and self._open.get(queue):
            self._open[queue] -= 1

    def _let_go(self, order: Order) -> None:
        held = self._held.get(order.request)
        if held is None:
            return
        held.discard(order.number)
        if not held:
            del self._held[order.request]
            self._outcomes.append(Outcome(order.request, is_late=True))

    def _fail(self, progress: _Progress, error: EngineError) -> None:
        del self._live[progress.request]
        self.is_dirty = self.is_dirty or progress.is_flush
        flying = set() if progress.is_flush else progress.flying  # a late flush changes nothing
        if flying:
            self._held[progress.request] = flying
        self._outcomes.append(Outcome(progress.request, error, not flying))

    def _torn(self) -> TransportError:
        remedy = "Write again what was not flushed, then flush again."
        what = "the target was away since the last flush: what was written may not have survived"
        return TransportError(what, where=self._where, remedy=remedy)
