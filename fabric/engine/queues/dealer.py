"""Deals transfers over queues. Sans-I/O: what happened goes in by calls, what to do comes out of `commands(now)`.

    request ──split──▶ lane (target, direction): class, tenant, first come ──▶ windows and depth ──policy──▶ queue

| event | call | what follows |
|---|---|---|
| a request | `submit` | Issue for each of its transfers, at last RequestDone or RequestFailed, exactly one of them |
| a response | `completed`, `failed` | its queue and its windows have room again |
| a queue is connected | `add_queue` | it is dealt to |
| a queue shall go | `remove_queue` | nothing more is dealt to it; QueueIdle once nothing flies |
| a queue's connection broke | `lose_queue` | what flies on it is held: it may still land; writes fail |
| its QP is flushed | `release_queue` | its reads are dealt again, to other queues |
| a queue is slow | `limit_queue` | fewer commands fly on it |
| a deadline passed | `commands` | RequestFailed with what is abandoned; RequestSettled when that has landed |

Bounds hold at all times: depth per queue, bytes in flight per target and per receiving port; what flies on a lost queue
counts until it is released. No call does I/O, blocks or knows the time; `now_ns` is the caller's and never runs back.
"""

from collections import deque

from fabric.engine.queues.backlog import Backlog
from fabric.engine.queues.commands import (
    Command,
    Issue,
    QueueIdle,
    Reason,
    RequestDone,
    RequestFailed,
    RequestSettled,
    SetTimer,
)
from fabric.engine.queues.dealing import catalog
from fabric.engine.queues.fleet import Fleet
from fabric.engine.queues.lane import Lane
from fabric.engine.queues.ledger import Ledger, Progress
from fabric.engine.queues.load import Queue
from fabric.engine.queues.request import Op, QueueId, Request, RequestId, Transfer
from fabric.engine.queues.snapshot import DealerLoad, snapshot
from fabric.engine.queues.split import split
from fabric.errors import EngineError, LocalProtocolError, TransportError
from fabric.policy import ShardPolicy, checked

__all__ = ("Dealer",)

_new = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much


class Dealer:
    """One engine's requests and queues.

    Args:
        policy: what to obey.
        segments: pieces of memory that one command may name; 1 for RDMA.
        ranges: extents that one command may name, each with its memory; 1 for NVMe.

    Raises:
        IntentError: the policy, or a parameter of its dealing policy, may not be used.
        UnknownNameError: no dealing policy has that name.
    """

    def __init__(self, policy: ShardPolicy, *, segments: int = 1, ranges: int = 1) -> None:
        self._policy = checked(policy)
        self._segments = segments
        self._ranges = ranges
        make = catalog.get(policy.dealing)
        make(policy.parameters)  # so that a wrong parameter is told now
        self._ledger = Ledger()
        ready: deque[Lane] = deque()
        self._fleet = Fleet(policy, lambda: make(policy.parameters), self._ledger.live, ready)
        self._backlog = Backlog(self._fleet, ready)
        self._out: list[Command] = []
        self._timer_ns: int | None = None
        self._next_transfer = 0

    def submit(self, request: Request, now_ns: int) -> None:
        """Takes a request.

        Raises:
            LocalProtocolError: it is malformed, or its id is not higher than the last; nothing has changed.
        """
        self._ledger.check(request)
        policy = self._policy
        transfers = split(
            request,
            transfer_bytes=policy.transfer_bytes,
            align_bytes=policy.align_bytes,
            segments=self._segments,
            ranges=self._ranges,
            first=self._next_transfer,
        )
        self._next_transfer += len(transfers)
        at_ns = now_ns + policy.deadline_ns if request.deadline_ns is None else request.deadline_ns
        self._ledger.admit(request, len(transfers), at_ns)
        self._backlog.add(request, transfers, now_ns)

    def cancel(self, request: RequestId) -> None:
        """Fails a request at once; one that has ended already is left alone."""
        progress = self._ledger.live.get(request)
        if progress is not None:
            self._fail(progress, Reason.CANCELLED, EngineError("the caller gave up", where=f"request {request}"))

    def completed(self, queue: QueueId, transfer: Transfer) -> None:
        """Takes a good response.

        Raises:
            LocalProtocolError: the transfer does not fly on that queue.
        """
        progress = self._landed(queue, transfer)
        if progress is None:
            return
        progress.left -= 1
        if not progress.left:
            del self._ledger.live[transfer.request]
            self._out.append(RequestDone(transfer.request))

    def failed(self, queue: QueueId, transfer: Transfer, error: EngineError, *, again: bool = False) -> None:
        """Takes a bad response: the command has ended and touches no memory any more.

        Args:
            queue: where it flew.
            transfer: what failed.
            error: why.
            again: the status says that it may succeed when dealt again; a write is never dealt twice.

        Raises:
            LocalProtocolError: the transfer does not fly on that queue.
        """
        progress = self._landed(queue, transfer)
        if progress is not None and not (again and self._deal_again(progress, transfer)):
            progress.left -= 1
            self._fail(progress, Reason.TRANSFER, error)

    def add_queue(self, queue: Queue) -> None:
        """Deals to a new queue from now on.

        Raises:
            LocalProtocolError: its id is in use, or its depth is below 1.
        """
        self._fleet.add(queue)

    def limit_queue(self, queue: QueueId, depth: int) -> None:
        """Lets at most `depth` commands fly on a queue that is degraded; 0 pauses it, its own depth restores it.

        Raises:
            LocalProtocolError: there is no such queue, or the depth is not 0 to the queue's own.
        """
        self._fleet.limit(queue, depth)

    def remove_queue(self, queue: QueueId) -> None:
        """Deals nothing more to a queue; QueueIdle follows when what flies on it has landed.

        Raises:
            LocalProtocolError: there is no such queue, or it was removed or lost before.
        """
        self._fleet.close(queue)

    def lose_queue(self, queue: QueueId) -> None:
        """Takes note that a queue's connection broke. Nothing that flies on it is dealt again before `release_queue`.

        Its writes fail at once, for nobody knows whether they were done. Responses that had arrived may still be told.

        Raises:
            LocalProtocolError: there is no such queue, or it was lost before.
        """
        live = self._fleet.queue(queue)
        if live.is_lost:
            raise LocalProtocolError("this queue was lost before", where=f"queue {queue}")
        if live.is_open:
            self._fleet.close(queue)
        live.is_lost = True
        for transfer in live.flying.values():
            progress = self._ledger.live.get(transfer.request)
            if transfer.op is not Op.READ and progress is not None:
                self._fail(progress, Reason.QUEUE_LOST, _lost(queue))

    def release_queue(self, queue: QueueId) -> None:
        """Deals again what flew on a lost queue, now that its QP is flushed and nothing of it can land. Forgets it.

        Raises:
            LocalProtocolError: there is no such queue, or it was not lost.
        """
        live = self._fleet.queue(queue)
        if not live.is_lost:
            raise LocalProtocolError("this queue was not lost", where=f"queue {queue}")
        for transfer in reversed(tuple(live.flying.values())):  # each goes to the front of its line
            progress = self._landed(queue, transfer)
            if progress is not None and not self._deal_again(progress, transfer):
                progress.left -= 1
                self._fail(progress, Reason.QUEUE_LOST, _lost(queue))
        self._fleet.forget(live)

    def commands(self, now_ns: int) -> list[Command]:
        """Returns what to do now: call it after events, once for a batch of them, and when the timer rings."""
        self._fleet.settle()
        self._out += map(QueueIdle, self._fleet.idle())
        next_ns, timer_ns = self._ledger.deadlines.next_ns(), self._timer_ns
        if next_ns is not None and next_ns <= now_ns:
            self._expire(now_ns)
            next_ns = self._ledger.deadlines.next_ns()
        if self._backlog.ready:
            self._deal(now_ns)
        if next_ns is not None and (timer_ns is None or next_ns < timer_ns or timer_ns <= now_ns):
            self._timer_ns = next_ns
            self._out.append(SetTimer(next_ns))
        out, self._out = self._out, []
        return out

    @property
    def waiting(self) -> int:
        """Transfers that were not dealt, as in `load`; to be had from any thread."""
        return self._backlog.waiting

    def load(self) -> DealerLoad:
        """Returns what waits and what flies, for metrics."""
        return snapshot(self._fleet, self._ledger, waiting=self._backlog.purge())

    def _deal(self, now_ns: int) -> None:
        # The hot loop: lanes in turn, one transfer each, until no lane's head may go.
        backlog, live, out, launch = self._backlog, self._ledger.live, self._out, self._fleet.launch
        ready = backlog.ready
        while ready:
            lane = ready[0]
            dealt = lane.deal(now_ns)
            if dealt is None:
                ready.popleft()
                lane.is_ready = False
                continue
            queue, transfer = dealt
            launch(queue, transfer)
            backlog.waiting -= 1
            live[transfer.request].flying += 1
            out.append(_new(Issue, (queue.id, transfer)))
            if len(ready) > 1:
                ready.rotate(-1)

    def _expire(self, now_ns: int) -> None:
        for progress in self._ledger.due(now_ns):
            request = progress.request.id
            found = f"{progress.left} of its transfers open, {progress.flying} in flight"
            error = EngineError("the deadline has passed", where=f"request {request}", found=found)
            self._fail(progress, Reason.DEADLINE, error)

    def _landed(self, queue: QueueId, transfer: Transfer) -> Progress | None:
        """Returns the request of a transfer that flies no more, None when it has failed before."""
        self._fleet.land(queue, transfer)
        progress = self._ledger.live.get(transfer.request)
        if progress is not None:
            progress.flying -= 1
        elif self._ledger.drained(transfer):
            self._out.append(RequestSettled(transfer.request))
        return progress

    def _deal_again(self, progress: Progress, transfer: Transfer) -> bool:
        if transfer.op is not Op.READ or transfer.attempt >= self._policy.redeals:
            return False
        self._backlog.add_again(progress.request, transfer)
        return True

    def _fail(self, progress: Progress, reason: Reason, error: EngineError) -> None:
        request = progress.request
        self._ledger.fail(progress)
        flying = self._fleet.flying(request.id) if progress.flying else ()
        self._out.append(RequestFailed(request.id, reason, error, flying))
        if progress.left > progress.flying:
            self._backlog.abandon(request, progress.left - progress.flying)


def _lost(queue: QueueId) -> TransportError:
    return TransportError("the queue was lost while the command was in flight", where=f"queue {queue}")
