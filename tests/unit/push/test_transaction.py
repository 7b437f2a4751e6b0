"""The state machine: every state with every answer, and the ways that a reader must be able to rely on."""

from collections import deque

import pytest

from fabric.push.transaction import ENDS, TABLE, Action, Event, Kind, State, Transaction
from fabric.state import Outcome

S = State
ANSWERS = (Kind.OK, Kind.FAILED, Kind.REFUSED, Kind.LOST, Kind.TIMEOUT)

# state: ok, failed, refused, lost, timeout, intended. Written down a second time, by hand, from the brief.
EXPECTED: dict[State, tuple[State, State, State, State, State, State | None]] = {
    S.OPENING: (S.READING, S.UNTOUCHED, S.UNTOUCHED, S.UNTOUCHED, S.UNTOUCHED, None),
    S.READING: (S.CHECKING, S.UNTOUCHED, S.UNTOUCHED, S.UNTOUCHED, S.UNTOUCHED, None),
    S.CHECKING: (S.STAGING, S.DRIFTED, S.DRIFTED, S.UNTOUCHED, S.UNTOUCHED, S.NOTHING_TO_DO),
    S.STAGING: (S.DECIDING, S.DISCARDING, S.DISCARDING, S.RETURNING_STAGED, S.RETURNING_STAGED, None),
    S.DECIDING: (S.COMMITTING, S.DISCARDING, S.DISCARDING, S.DISCARDING, S.DISCARDING, None),
    S.RETURNING_STAGED: (S.DISCARDING, S.LEFT_STAGED, S.LEFT_STAGED, S.LEFT_STAGED, S.LEFT_STAGED, None),
    S.DISCARDING: (S.DISCARDED, S.LEFT_STAGED, S.LEFT_STAGED, S.LEFT_STAGED, S.LEFT_STAGED, None),
    S.COMMITTING: (S.RECONNECTING, S.REVERTING, S.REVERTING, S.WAITING, S.WAITING, None),
    S.RECONNECTING: (S.VERIFYING, S.WAITING, S.WAITING, S.WAITING, S.WAITING, None),
    S.VERIFYING: (S.CONFIRMING, S.REVERTING, S.REVERTING, S.WAITING, S.WAITING, None),
    S.CONFIRMING: (S.SAVING, S.REVERTING, S.REVERTING, S.RETURNING_TO_CONFIRM, S.AWAITING_VERDICT, None),
    S.RETURNING_TO_CONFIRM: (S.VERIFYING_AGAIN, *(S.AWAITING_VERDICT,) * 4, None),
    S.VERIFYING_AGAIN: (S.CONFIRMING_AGAIN, *(S.AWAITING_VERDICT,) * 4, None),
    S.CONFIRMING_AGAIN: (S.SAVING, *(S.AWAITING_VERDICT,) * 4, None),
    S.SAVING: (
        S.COMMITTED,
        S.REVERTING_LATE,
        S.REVERTING_LATE,
        S.RETURNING_CONFIRMED,
        S.RETURNING_CONFIRMED,
        None,
    ),
    S.AWAITING_VERDICT: (*(S.RETURNING_CONFIRMED,) * 5, None),
    S.RETURNING_CONFIRMED: (S.LOOKING_CONFIRMED, *(S.UNREACHABLE,) * 4, None),
    S.LOOKING_CONFIRMED: (
        S.ROLLED_BACK,
        S.REVERTING_LATE,
        S.REVERTING_LATE,
        S.UNREACHABLE,
        S.UNREACHABLE,
        S.SAVING_LATE,
    ),
    S.SAVING_LATE: (
        S.COMMITTED,
        S.REVERTING_LATE,
        S.REVERTING_LATE,
        S.RETURNING_UNSAVED,
        S.RETURNING_UNSAVED,
        None,
    ),
    S.RETURNING_UNSAVED: (S.LOOKING_UNSAVED, *(S.UNSAVED,) * 4, None),
    S.LOOKING_UNSAVED: (S.ROLLED_BACK, S.REVERTING_LATE, S.REVERTING_LATE, S.UNSAVED, S.UNSAVED, S.SAVING_LAST),
    S.SAVING_LAST: (S.COMMITTED, S.REVERTING_LATE, S.REVERTING_LATE, S.UNSAVED, S.UNSAVED, None),
    S.REVERTING: (S.RETURNING_BACK, S.WAITING, S.ROLLBACK_FAILED, S.WAITING, S.WAITING, None),
    S.WAITING: (*(S.RETURNING,) * 5, None),
    S.RETURNING: (S.LOOKING, *(S.UNREACHABLE,) * 4, None),
    S.LOOKING: (S.ROLLED_BACK, S.REVERTING_LATE, S.REVERTING_LATE, S.UNREACHABLE, S.UNREACHABLE, S.REVERTING_LATE),
    S.REVERTING_LATE: (
        S.RETURNING_BACK,
        S.ROLLBACK_FAILED,
        S.ROLLBACK_FAILED,
        S.RETURNING_BACK,
        S.RETURNING_BACK,
        None,
    ),
    S.RETURNING_BACK: (S.CHECKING_BACK, *(S.UNREACHABLE,) * 4, None),
    S.CHECKING_BACK: (
        S.ROLLED_BACK,
        S.ROLLBACK_FAILED,
        S.ROLLBACK_FAILED,
        S.UNREACHABLE,
        S.UNREACHABLE,
        S.ROLLBACK_FAILED,
    ),
}


def test_every_state_either_acts_or_ends() -> None:
    assert set(TABLE) | set(ENDS) == set(State)
    assert not set(TABLE) & set(ENDS)
    assert set(EXPECTED) == set(TABLE)


@pytest.mark.parametrize("state", list(TABLE), ids=lambda state: state.value)
@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.value)
def test_each_answer_leads_where_it_should(state: State, kind: Kind) -> None:
    after = Transaction(state).after(Event(kind))

    assert after.state is EXPECTED[state][ANSWERS.index(kind)]


@pytest.mark.parametrize("state", list(TABLE), ids=lambda state: state.value)
def test_only_check_and_look_can_find_the_device_as_intended(state: State) -> None:
    intended = EXPECTED[state][5]
    if intended is None:
        with pytest.raises(ValueError, match="cannot answer 'intended'"):
            Transaction(state).after(Event(Kind.INTENDED))
    else:
        assert Transaction(state).after(Event(Kind.INTENDED)).state is intended
        assert TABLE[state].action in {Action.CHECK, Action.LOOK}


@pytest.mark.parametrize("state", list(ENDS), ids=lambda state: state.value)
@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: kind.value)
def test_nothing_comes_after_the_end(state: State, kind: Kind) -> None:
    ended = Transaction(state)

    assert ended.action is None
    assert ended.end is ENDS[state]
    with pytest.raises(ValueError, match="the transaction is over"):
        ended.after(Event(kind))


def test_the_way_without_failure_commits_and_saves() -> None:
    transaction, actions = Transaction(), []
    while (action := transaction.action) is not None:
        actions.append(action.value)
        assert transaction.end is None
        transaction = transaction.after(Event(Kind.OK))

    assert actions == ["open", "read", "check", "stage", "decide", "commit", "reopen", "verify", "confirm", "save"]
    assert transaction.end is not None
    assert transaction.end.outcome is Outcome.COMMITTED
    assert transaction.error == ""


def _successors(state: State) -> set[State]:
    row = TABLE[state]
    answers = [*ANSWERS, Kind.INTENDED] if row.intended else ANSWERS
    return {row.next(kind) for kind in answers}


def test_every_transaction_ends_and_every_state_is_reached() -> None:
    colours: dict[State, str] = {}

    def visit(state: State) -> None:
        colours[state] = "open"
        for following in () if state in ENDS else _successors(state):
            assert colours.get(following) != "open", f"a loop through {following.value}"
            if following not in colours:
                visit(following)
        colours[state] = "done"

    visit(State.OPENING)

    assert set(colours) == set(State)


def test_before_the_commit_no_end_says_that_something_changed() -> None:
    reached, queue = {State.OPENING}, deque([State.OPENING])
    while queue:
        state = queue.popleft()
        if state is State.COMMITTING or state in ENDS:
            continue
        for following in _successors(state) - reached:
            reached.add(following)
            queue.append(following)

    outcomes = {ENDS[state].outcome for state in reached if state in ENDS}
    assert outcomes == {Outcome.UNCHANGED, Outcome.REFUSED, Outcome.FAILED}


def test_saving_comes_only_after_a_confirmation() -> None:
    saving = {state for state, row in TABLE.items() if row.action is Action.SAVE}
    before = {state for state in TABLE if _successors(state) & saving}

    assert before == {State.CONFIRMING, State.CONFIRMING_AGAIN, State.LOOKING_CONFIRMED, State.LOOKING_UNSAVED}


def test_the_first_error_is_kept_and_later_ones_are_added() -> None:
    transaction = Transaction(State.VERIFYING)
    transaction = transaction.after(Event(Kind.FAILED, "the map is wrong", "Look at the map."))
    transaction = transaction.after(Event(Kind.REFUSED, "no rollback", "Other advice."))

    assert transaction.state is State.ROLLBACK_FAILED
    assert transaction.error == "the map is wrong"
    assert transaction.remedy == "Look at the map."
    assert transaction.later == ("no rollback",)
