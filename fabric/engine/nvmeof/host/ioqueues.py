"""The I/O queues of a controller: opened together, each opened again by itself, added and removed while others run."""

from collections.abc import Callable
from dataclasses import dataclass

from fabric.engine.nvmeof.errors import NotReadyError, NvmeStatusError
from fabric.engine.nvmeof.host.backoff import Backoff
from fabric.engine.nvmeof.host.outputs import QueueDown, QueueUp
from fabric.engine.nvmeof.host.queue import Queue
from fabric.engine.nvmeof.host.session import Session
from fabric.engine.nvmeof.host.states import QueueState
from fabric.engine.nvmeof.wire.status import CODE_MASK, Status
from fabric.errors import EngineError

__all__ = ("IoQueues",)

# What an I/O queue's Connect is answered when the controller behind it is gone: only a new controller helps.
_CONTROLLER_GONE = frozenset({Status.CONNECT_INVALID_PARAMETER, Status.CONNECT_INVALID_HOST})
# nvmet: "already created" (target/core.c, nvmet_install_queue). It lets go of the old queue once that has no command
# left; where the news of our disconnect was lost, it never does, and again only a new controller helps.
_STILL_HELD = Status.COMMAND_SEQUENCE_ERROR
_HELD_TRIES = 4


@dataclass(slots=True)
class _Member:
    queue: Queue
    backoff: Backoff
    reopen_ns: int | None = None
    settled: bool = False
    leaving: bool = False


class IoQueues:
    """The set of I/O queues.

    Args:
        session: the controller.
        settled: called when each queue of the first opening is up or was refused.
    """

    def __init__(self, session: Session, settled: Callable[[int], None]) -> None:
        self._session = session
        self._settled = settled
        self._members: dict[int, _Member] = {}
        self._depth = 2
        self._in_capsule_bytes = 0
        self._opening = False
        self._first_error: EngineError | None = None

    @property
    def first_error(self) -> EngineError | None:
        """Why a queue of the last opening failed first, None while none has."""
        return self._first_error

    @property
    def live(self) -> tuple[int, ...]:
        """The queues that take requests."""
        return tuple(qid for qid, one in self._members.items() if one.queue.state is QueueState.LIVE)

    @property
    def all_down(self) -> bool:
        """No queue has a connection."""
        return all(one.queue.connection is None for one in self._members.values())

    def get(self, qid: int) -> Queue:
        """Returns a queue.

        Raises:
            NotReadyError: there is none of that id.
        """
        member = self._members.get(qid)
        if member is None:
            raise NotReadyError("no such queue", found=str(qid), expected=f"one of {list(self._members)}")
        return member.queue

    def open(self, count: int, depth: int, in_capsule_bytes: int, now_ns: int) -> None:
        """Opens queues 1 to `count` of `depth` entries."""
        self._depth, self._in_capsule_bytes, self._opening = depth, in_capsule_bytes, True
        self._members = {qid: self._member(qid) for qid in range(1, count + 1)}
        self._first_error = None
        for one in self._members.values():
            one.queue.open(now_ns)
        self._check_settled(now_ns)

    def add(self, allowed: int, now_ns: int) -> int:
        """Opens one more queue; returns its id.

        Raises:
            NotReadyError: there are `allowed` queues already.
        """
        if len(self._members) >= allowed:
            raise NotReadyError("the controller allows no further queue", expected=f"at most {allowed}")
        qid = next(qid for qid in range(1, len(self._members) + 2) if qid not in self._members)
        self._members[qid] = self._member(qid)
        self._members[qid].queue.open(now_ns)
        return qid

    def remove(self, qid: int, now_ns: int) -> None:
        """Takes a queue down for good; what it still carries fails.

        Raises:
            NotReadyError: there is none of that id.
        """
        queue = self.get(qid)
        self._members[qid].leaving = True
        if queue.connection is None:
            del self._members[qid]
        queue.fail(NotReadyError("the queue was removed", where=f"queue {qid}"), now_ns)

    def close(self, error: EngineError, now_ns: int) -> None:
        """Takes every queue down."""
        self._opening = False
        for one in list(self._members.values()):
            one.reopen_ns = None
            one.queue.fail(error, now_ns)

    def next_timer_ns(self) -> int | None:
        """Returns when `tick` has something to do."""
        due = [
            at for one in self._members.values() for at in (one.reopen_ns, one.queue.next_timer_ns()) if at is not None
        ]
        return min(due) if due else None

    def tick(self, now_ns: int) -> None:
        """Expires what is late and opens what is due."""
        for one in list(self._members.values()):
            one.queue.expire(now_ns)
            if one.reopen_ns is not None and one.reopen_ns <= now_ns:
                one.reopen_ns = None
                one.queue.open(now_ns)

    def queue_up(self, queue: Queue, now_ns: int) -> None:
        """Takes the news that a queue is live."""
        one = self._members[queue.qid]
        one.backoff.reset()
        one.settled = True
        self._session.emit(QueueUp(queue.qid, queue.slots.count))
        self._check_settled(now_ns)

    def queue_down(self, queue: Queue, error: EngineError, now_ns: int) -> None:
        """Takes the news that a queue failed."""
        self._session.emit(QueueDown(queue.qid, error))
        self._first_error = self._first_error or error
        if isinstance(error, NvmeStatusError) and self._needs_new_controller(queue.qid, error.status & CODE_MASK):
            self._session.fail(error, now_ns)
            return
        # a connection that is only stale is tried again before the bring-up counts it out
        if not queue.stale:
            self._members[queue.qid].settled = True

    def queue_gone(self, queue: Queue, now_ns: int) -> None:
        """Takes the news that a queue's connection is gone."""
        one = self._members[queue.qid]
        if one.leaving:
            del self._members[queue.qid]
        elif self._session.wants_queues():
            one.reopen_ns = now_ns + one.backoff.delay_ns(stale=queue.stale)
        self._session.connection_gone(now_ns)
        self._check_settled(now_ns)

    def _needs_new_controller(self, qid: int, code: int) -> bool:
        held = code == _STILL_HELD and self._members[qid].backoff.attempts >= _HELD_TRIES
        return held or code in _CONTROLLER_GONE

    def _check_settled(self, now_ns: int) -> None:
        if self._opening and all(one.settled for one in self._members.values()):
            self._opening = False
            self._settled(now_ns)

    def _member(self, qid: int) -> _Member:
        session = self._session
        queue = Queue(
            qid,
            self._depth,
            session.config,
            self,
            session.emit,
            session.next_connection,
            cntlid=session.cntlid,
            in_capsule_bytes=self._in_capsule_bytes,
        )
        return _Member(queue, Backoff(session.config))
