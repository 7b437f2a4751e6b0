"""The slots of one queue: which command is where, and when its slot may be used again.

The command id carries a generation above the slot number, as Linux does (host/nvme.h, nvme_cid): an answer that comes
twice, or late, does not match the next command of its slot. Free slots are used in turn, so that an id comes again only
after all others. Each queue counts from another generation: an answer that comes on the wrong queue matches nothing
there either, but for chance (a host may not judge by the SQID of an answer: it is reserved on fabrics; unconfirmed).

Deadlines are kept by slot, and beside them one time that none of them is before: nearly every command is answered long
before its deadline, so that a heap would be pushed and popped for nothing.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from fabric.engine.nvmeof.errors import QueueFullError
from fabric.engine.nvmeof.host.outputs import RequestId
from fabric.engine.nvmeof.host.states import SLOT, SlotInput, SlotState
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.errors import EngineError, LocalProtocolError, RemoteProtocolError

__all__ = ("NO_REQUEST", "Owner", "Pending", "SlotTable")

_CID_BITS = 16
_STRIDE = 0x9E37  # between the first generations of two queues; odd, so that no two start at the same one
NO_REQUEST = RequestId(0)


class Owner(Protocol):
    """Whoever submitted a command."""

    def answered(self, pending: "Pending", cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes the answer."""
        ...

    def lost(self, pending: "Pending", error: EngineError, now_ns: int) -> None:
        """Takes the news that no answer will come."""
        ...


class Pending(NamedTuple):
    """A command in a slot.

    Attributes:
        owner: who waits.
        qid: the queue.
        submitted_ns: when.
        request: the caller's request, or NO_REQUEST for the machine's own.
    """

    owner: Owner
    qid: int
    submitted_ns: int
    request: RequestId = NO_REQUEST


def _compile() -> tuple[tuple[SlotState | None, ...], ...]:
    return tuple(tuple(SLOT.get((state, one)) for state in SlotState) for one in SlotInput)


_NEXT: Final = _compile()  # the table by index: two look-ups a step instead of hashing two enums
_FREE, _ANSWERED, _QUARANTINED = SlotState.FREE, SlotState.ANSWERED, SlotState.QUARANTINED
_POSTED: Final = SLOT[_FREE, SlotInput.SUBMIT]
_SEND_DONE, _ANSWER = SlotInput.SEND_DONE, SlotInput.ANSWER


class SlotTable:
    """`count` slots, used at most `count` at a time.

    Args:
        count: slots.
        qid: the queue, for messages.
    """

    def __init__(self, count: int, qid: int) -> None:
        self.count = count
        self._qid = qid
        self._bits = max(1, (count - 1).bit_length())
        self._mask = (1 << self._bits) - 1
        self._last_generation = (1 << _CID_BITS - self._bits) - 1
        self._states = [SlotState.FREE] * count
        self._generations = [qid * _STRIDE & self._last_generation] * count
        self._pending: list[Pending | None] = [None] * count
        self._free = deque(range(count))
        self._deadlines: list[int | None] = [None] * count
        self._due_ns: int | None = None  # no open slot has an earlier deadline

    @property
    def in_use(self) -> int:
        """Slots that are not free."""
        return self.count - len(self._free)

    @property
    def states(self) -> tuple[SlotState, ...]:
        """The state of every slot."""
        return tuple(self._states)

    def take(self, pending: Pending, deadline_ns: int | None) -> tuple[int, int]:
        """Returns a slot and the command id to send under.

        Raises:
            QueueFullError: none is free.
        """
        if not self._free:
            raise QueueFullError(
                "no slot is free", where=f"queue {self._qid}", expected=f"at most {self.count} commands"
            )
        slot = self._free.popleft()
        self._states[slot] = _POSTED
        generation = self._generations[slot] = self._generations[slot] + 1 & self._last_generation
        self._pending[slot] = pending
        self._deadlines[slot] = deadline_ns
        if deadline_ns is not None and (self._due_ns is None or deadline_ns < self._due_ns):
            self._due_ns = deadline_ns
        return slot, slot | generation << self._bits

    def send_done(self, slot: int) -> None:
        """Notes the send completion of `slot`.

        Raises:
            LocalProtocolError: the slot waits for none.
        """
        if not 0 <= slot < self.count:
            raise LocalProtocolError("a send completion names no slot", where=f"queue {self._qid}", found=str(slot))
        self._move(slot, _SEND_DONE)

    def answer(self, cid: int) -> Pending | None:
        """Returns the command that `cid` answers; None when it had timed out.

        Raises:
            RemoteProtocolError: no such command is open: the peer answers twice, or what nobody asked.
        """
        slot = cid & self._mask
        known = slot < self.count and cid >> self._bits == self._generations[slot]
        state = self._states[slot] if known else _FREE
        if state is _FREE or state is _ANSWERED:
            raise RemoteProtocolError(
                "an answer to no open command", where=f"queue {self._qid}", found=f"command id 0x{cid:04x}"
            )
        pending = self._pending[slot]
        self._move(slot, _ANSWER)
        return None if state is _QUARANTINED else pending

    def next_deadline_ns(self) -> int | None:
        """Returns when to ask `is_due`: when the next command times out, or before. None: not at all."""
        return self._due_ns

    def is_due(self, now_ns: int) -> bool:
        """Returns whether the deadline of an open slot has come."""
        if self._due_ns is None or self._due_ns > now_ns:
            return False
        self._due_ns = min((at_ns for at_ns, _slot in self._open()), default=None)
        return self._due_ns is not None and self._due_ns <= now_ns

    def expire(self, now_ns: int) -> list[Pending]:
        """Quarantines what is due; returns the commands whose answer is still missing.

        A slot that was answered and whose send never completed is quarantined too: its command had its end.
        """
        due = sorted((at_ns, slot) for at_ns, slot in self._open() if at_ns <= now_ns)
        late = [pending for _at_ns, slot in due if (pending := self._quarantine(slot)) is not None]
        self._due_ns = min((at_ns for at_ns, _slot in self._open()), default=None)
        return late

    def quarantine_all(self) -> list[Pending]:
        """Quarantines every slot in use; returns the commands whose answer is still missing."""
        self._due_ns = None
        used = [slot for slot in range(self.count) if self._is_open(slot)]
        return [pending for slot in used if (pending := self._quarantine(slot)) is not None]

    def tear_down(self) -> tuple[RequestId, ...]:
        """Frees every slot, the queue being gone; returns the requests that were quarantined."""
        held = tuple(self._held())
        for slot in range(self.count):
            self._states[slot] = SLOT[self._states[slot], SlotInput.TEAR_DOWN]
            self._pending[slot] = None
        self._free = deque(range(self.count))
        self._due_ns = None
        return held

    def _held(self) -> Iterator[RequestId]:
        for slot, state in enumerate(self._states):
            pending = self._pending[slot]
            if state is SlotState.QUARANTINED and pending is not None and pending.request != NO_REQUEST:
                yield pending.request

    def _is_open(self, slot: int) -> bool:
        return self._states[slot] not in (_FREE, _QUARANTINED)

    def _open(self) -> Iterator[tuple[int, int]]:
        for slot, at_ns in enumerate(self._deadlines):
            if at_ns is not None and self._is_open(slot):
                yield at_ns, slot

    def _quarantine(self, slot: int) -> Pending | None:
        answered = self._states[slot] is SlotState.ANSWERED
        self._move(slot, SlotInput.TIMEOUT)
        if answered:
            self._pending[slot] = None
            return None
        return self._pending[slot]

    def _move(self, slot: int, one: SlotInput) -> None:
        state = _NEXT[one][self._states[slot]]
        if state is None:
            raise LocalProtocolError(
                f"a slot cannot take '{one.name.lower()}'",
                where=f"queue {self._qid}",
                found=self._states[slot].name.lower(),
            )
        self._states[slot] = state
        if state is _FREE:
            self._pending[slot] = None
            self._free.append(slot)
