"""The transaction on one device as a pure state machine. Knows no session, socket, clock or thread.

Theory of operation. A machine is in one state; each state that is no end asks for one action; the runner performs
it and feeds the answer back as an event; the event and the state give the next state. All of it stands in `TABLE`.

    open → read → check → stage → decide ┬→ commit → reopen → verify → confirm → save → COMMITTED
                                         │
    before commit, any failure           └→ discard → the device is unchanged
    after commit, the device answers and something is wrong     → revert → reopen → look → ROLLED_BACK
    after commit, the device does not answer                    → wait for its own timer → reopen → look

`commit` arms a timer on the device that undoes the change, before anything changes. So silence is safe: whoever
loses the device waits until that timer has run, comes back and looks. `look` compares the device with what it was
before: OK is "as before", INTENDED is "as we wanted it", FAILED is neither. If the timer has not done its work, we
revert ourselves, once, and look again.

When `confirm` got no answer, it is sent once more on a fresh connection. If that gives no certainty either, the timer
decides what happened: once it has run out, a device that is as intended was confirmed (it only remains to save), and
one that is as before was not. A device that boots between its confirmation and its saving is as before too. A saving
that got no answer is done again as long as the device can be looked at, and is as intended.

Ends that are neither "as intended" nor "as before": ROLLBACK_FAILED (the device refuses its rollback, as SONiC's
generic config updater may) and UNREACHABLE or UNSAVED (nobody can know until somebody reads the device).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from fabric.state import Outcome

__all__ = ("ENDS", "TABLE", "Action", "End", "Event", "Kind", "Row", "State", "Transaction")


class Action(StrEnum):
    """What the runner shall do now."""

    OPEN = "open"
    READ = "read"  # fetch, and keep it as "before"
    CHECK = "check"  # is the device still what the plan was made from? INTENDED: nothing is to be done
    STAGE = "stage"
    DECIDE = "decide"  # last moment before anything changes: shall we go on?
    COMMIT = "commit"
    REOPEN = "reopen"  # on a fresh connection, tried again while there is time
    VERIFY = "verify"  # fetch, and compare with the intent
    CONFIRM = "confirm"
    SAVE = "save"
    WAIT = "wait"  # until the device's own timer has run
    LOOK = "look"  # fetch, and compare with before
    REVERT = "revert"
    DISCARD = "discard"


class Kind(StrEnum):
    """How an action went."""

    OK = "ok"
    FAILED = "failed"  # the device answered: no
    REFUSED = "refused"  # the device refused its own rollback and would again
    LOST = "lost"  # no answer, no session: nobody knows whether it was done
    TIMEOUT = "timeout"  # it was not done within its time
    INTENDED = "intended"  # check and look only: the device is as intended


class State(StrEnum):
    """Where a transaction stands."""

    OPENING = "opening"
    READING = "reading"
    CHECKING = "checking"
    STAGING = "staging"
    DECIDING = "deciding"
    RETURNING_STAGED = "returning-staged"
    DISCARDING = "discarding"
    COMMITTING = "committing"
    RECONNECTING = "reconnecting"
    VERIFYING = "verifying"
    CONFIRMING = "confirming"
    SAVING = "saving"
    RETURNING_TO_CONFIRM = "returning-to-confirm"
    VERIFYING_AGAIN = "verifying-again"
    CONFIRMING_AGAIN = "confirming-again"
    AWAITING_VERDICT = "awaiting-verdict"
    RETURNING_CONFIRMED = "returning-confirmed"
    LOOKING_CONFIRMED = "looking-confirmed"
    SAVING_LATE = "saving-late"
    RETURNING_UNSAVED = "returning-unsaved"
    LOOKING_UNSAVED = "looking-unsaved"
    SAVING_LAST = "saving-last"
    REVERTING = "reverting"
    WAITING = "waiting"
    RETURNING = "returning"
    LOOKING = "looking"
    REVERTING_LATE = "reverting-late"
    RETURNING_BACK = "returning-back"
    CHECKING_BACK = "checking-back"
    # ends
    NOTHING_TO_DO = "nothing-to-do"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled-back"
    DRIFTED = "drifted"
    UNTOUCHED = "untouched"
    DISCARDED = "discarded"
    LEFT_STAGED = "left-staged"
    ROLLBACK_FAILED = "rollback-failed"
    UNREACHABLE = "unreachable"
    UNSAVED = "unsaved"


@dataclass(frozen=True, slots=True)
class Event:
    """The answer to an action.

    Attributes:
        message: what went wrong, "" for OK. remedy: what the error itself recommends.
    """

    kind: Kind
    message: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One state: its action, and where each answer leads. INTENDED is an answer only where it has a place to lead."""

    action: Action
    ok: State
    failed: State
    refused: State
    lost: State
    timeout: State
    intended: State | None = None

    def next(self, kind: Kind) -> State:
        """Returns the state after an answer of that kind.

        Raises:
            ValueError: the action has no such answer.
        """
        found: State | None = getattr(self, kind.value)
        if found is None:
            raise ValueError(f"{self.action.value} cannot answer {kind.value!r}")
        return found


@dataclass(frozen=True, slots=True)
class End:
    """One end: what it means for the device, and what its reader should do."""

    outcome: Outcome
    remedy: str = ""


def _row(action: Action, ok: State, no: State, silent: State, intended: State | None = None) -> Row:
    return Row(action, ok=ok, failed=no, refused=no, lost=silent, timeout=silent, intended=intended)


S = State
A = Action
TABLE: Final[Mapping[State, Row]] = MappingProxyType(
    {
        # before commit: nothing has changed whatever happens
        S.OPENING: _row(A.OPEN, S.READING, S.UNTOUCHED, S.UNTOUCHED),
        S.READING: _row(A.READ, S.CHECKING, S.UNTOUCHED, S.UNTOUCHED),
        S.CHECKING: _row(A.CHECK, S.STAGING, S.DRIFTED, S.UNTOUCHED, intended=S.NOTHING_TO_DO),
        S.STAGING: _row(A.STAGE, S.DECIDING, S.DISCARDING, S.RETURNING_STAGED),
        S.DECIDING: _row(A.DECIDE, S.COMMITTING, S.DISCARDING, S.DISCARDING),
        S.RETURNING_STAGED: _row(A.REOPEN, S.DISCARDING, S.LEFT_STAGED, S.LEFT_STAGED),
        S.DISCARDING: _row(A.DISCARD, S.DISCARDED, S.LEFT_STAGED, S.LEFT_STAGED),
        # under the timer
        S.COMMITTING: _row(A.COMMIT, S.RECONNECTING, S.REVERTING, S.WAITING),
        S.RECONNECTING: _row(A.REOPEN, S.VERIFYING, S.WAITING, S.WAITING),
        S.VERIFYING: _row(A.VERIFY, S.CONFIRMING, S.REVERTING, S.WAITING),
        S.CONFIRMING: Row(
            A.CONFIRM,
            ok=S.SAVING,
            failed=S.REVERTING,
            refused=S.REVERTING,
            lost=S.RETURNING_TO_CONFIRM,
            timeout=S.AWAITING_VERDICT,
        ),
        S.SAVING: _row(A.SAVE, S.COMMITTED, S.REVERTING_LATE, S.RETURNING_CONFIRMED),
        # confirm got no answer: once more on a fresh connection, while the timer runs and the device is as intended.
        # A second "no" says nothing: the first may have arrived.
        S.RETURNING_TO_CONFIRM: _row(A.REOPEN, S.VERIFYING_AGAIN, S.AWAITING_VERDICT, S.AWAITING_VERDICT),
        S.VERIFYING_AGAIN: _row(A.VERIFY, S.CONFIRMING_AGAIN, S.AWAITING_VERDICT, S.AWAITING_VERDICT),
        S.CONFIRMING_AGAIN: _row(A.CONFIRM, S.SAVING, S.AWAITING_VERDICT, S.AWAITING_VERDICT),
        # then the timer says whether it arrived
        S.AWAITING_VERDICT: _row(A.WAIT, S.RETURNING_CONFIRMED, S.RETURNING_CONFIRMED, S.RETURNING_CONFIRMED),
        S.RETURNING_CONFIRMED: _row(A.REOPEN, S.LOOKING_CONFIRMED, S.UNREACHABLE, S.UNREACHABLE),
        S.LOOKING_CONFIRMED: _row(A.LOOK, S.ROLLED_BACK, S.REVERTING_LATE, S.UNREACHABLE, intended=S.SAVING_LATE),
        S.SAVING_LATE: _row(A.SAVE, S.COMMITTED, S.REVERTING_LATE, S.RETURNING_UNSAVED),
        S.RETURNING_UNSAVED: _row(A.REOPEN, S.LOOKING_UNSAVED, S.UNSAVED, S.UNSAVED),
        S.LOOKING_UNSAVED: _row(A.LOOK, S.ROLLED_BACK, S.REVERTING_LATE, S.UNSAVED, intended=S.SAVING_LAST),
        S.SAVING_LAST: _row(A.SAVE, S.COMMITTED, S.REVERTING_LATE, S.UNSAVED),
        # the way back. A refusal is final; any other failure leaves the timer its chance.
        S.REVERTING: Row(
            A.REVERT,
            ok=S.RETURNING_BACK,
            failed=S.WAITING,
            refused=S.ROLLBACK_FAILED,
            lost=S.WAITING,
            timeout=S.WAITING,
        ),
        S.WAITING: _row(A.WAIT, S.RETURNING, S.RETURNING, S.RETURNING),
        S.RETURNING: _row(A.REOPEN, S.LOOKING, S.UNREACHABLE, S.UNREACHABLE),
        S.LOOKING: _row(A.LOOK, S.ROLLED_BACK, S.REVERTING_LATE, S.UNREACHABLE, intended=S.REVERTING_LATE),
        S.REVERTING_LATE: _row(A.REVERT, S.RETURNING_BACK, S.ROLLBACK_FAILED, S.RETURNING_BACK),
        S.RETURNING_BACK: _row(A.REOPEN, S.CHECKING_BACK, S.UNREACHABLE, S.UNREACHABLE),
        S.CHECKING_BACK: _row(A.LOOK, S.ROLLED_BACK, S.ROLLBACK_FAILED, S.UNREACHABLE, intended=S.ROLLBACK_FAILED),
    }
)

ENDS: Final[Mapping[State, End]] = MappingProxyType(
    {
        S.NOTHING_TO_DO: End(Outcome.UNCHANGED),
        S.COMMITTED: End(Outcome.COMMITTED),
        S.ROLLED_BACK: End(Outcome.ROLLED_BACK, "The device is as before. Remove the cause and provision again."),
        S.DRIFTED: End(Outcome.REFUSED, "The device was not touched. Make a new plan and review it."),
        S.UNTOUCHED: End(Outcome.FAILED, "The device was not touched."),
        S.DISCARDED: End(Outcome.FAILED, "Nothing was applied. Remove the cause and provision again."),
        S.LEFT_STAGED: End(
            Outcome.FAILED,
            "Nothing was applied. What was staged under the transaction's name may still lie on the device; "
            "it has no effect and may be removed.",
        ),
        S.ROLLBACK_FAILED: End(Outcome.ROLLBACK_FAILED, "Bring the device back by hand with these commands:"),
        S.UNREACHABLE: End(
            Outcome.UNCERTAIN,
            "The device does not answer. Its own timer brings it back, unless our confirmation reached it. Reach it by "
            "its console, compare it with the saved configuration, and if it shall go back type these commands:",
        ),
        S.UNSAVED: End(
            Outcome.UNCERTAIN,
            "The device runs as intended, and nobody knows whether that is saved. Provision again: "
            "this saves it, or does the change once more.",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction in one state.

    Attributes:
        error: the first thing that went wrong, or "". remedy: what that error recommends.
        later: what went wrong after it.
    """

    state: State = State.OPENING
    error: str = ""
    remedy: str = ""
    later: tuple[str, ...] = ()

    @property
    def action(self) -> Action | None:
        """Returns what to do now, or None at an end."""
        row = TABLE.get(self.state)
        return row.action if row else None

    @property
    def end(self) -> End | None:
        """Returns the end, or None while there is something to do."""
        return ENDS.get(self.state)

    def after(self, event: Event) -> "Transaction":
        """Returns the transaction after the answer to its action.

        Raises:
            ValueError: the transaction is over, or its action has no such answer.
        """
        row = TABLE.get(self.state)
        if row is None:
            raise ValueError(f"the transaction is over: {self.state.value}")
        moved = replace(self, state=row.next(event.kind))
        if not event.message:
            return moved
        if not self.error:
            return replace(moved, error=event.message, remedy=event.remedy)
        return replace(moved, later=(*self.later, event.message))
