"""Whom the last trials are for."""

from dataclasses import replace

from fabric.tune import Goal, Knobs
from fabric.tune.asking import CONNECT, baselines
from fabric.tune.confirming import Confirmation
from fabric.tune.journal import Told
from fabric.tune.outcome import Outcome, Trial
from fabric.tune.standing import Book
from tests.unit.tune.worlds import KIB, LIMITS, MIB, MODEL, SPACE, outcome

KNOBS = Knobs(4, 4, 64 * KIB, "least-bytes", MIB, MIB)
LIKE = replace(KNOBS, queues=6)
CALM = replace(KNOBS, queues=1, depth=1)
DEFAULT = baselines(SPACE, MODEL)[CONNECT]


def confirmation(told: dict[Knobs, tuple[Outcome, ...]], *, left: int) -> Confirmation:
    """Returns it with so many trials left after whole trials under the seeds from 301 on."""
    book = Book(LIMITS, Goal.THROUGHPUT)
    for knobs, outcomes in told.items():
        for at, one in enumerate(outcomes):
            book.add(Told(Trial(len(book.told), knobs, 1.0, 301 + at), one))
    return Confirmation(SPACE, MODEL, book, len(book.told) + left)


def test_of_equals_the_one_that_was_begun_goes_on() -> None:
    """Its like is a little faster in what both were measured, by less than is worth it."""
    rows = [outcome(1e9, paused=0.007), outcome(1.1e9, paused=0.009), outcome(0.9e9, paused=0.002)]
    found = confirmation({KNOBS: tuple(rows), LIKE: (outcome(1.004e9, paused=0.007),)}, left=20)
    assert found.finalists()[0].knobs == KNOBS
    assert next(found.asks()).knobs == KNOBS


def test_where_the_default_does_the_same_beside_a_limit_it_is_confirmed_instead() -> None:
    near = outcome(1e9, paused=0.007)
    found = confirmation({KNOBS: (near,), DEFAULT: (near,)}, left=20)
    assert [one.knobs for one in found.finalists()] == [DEFAULT]


def test_far_from_the_limits_the_leader_is_confirmed_beside_the_default() -> None:
    """It may do the same with less in flight, and so be further from loss."""
    found = confirmation({KNOBS: (outcome(1e9),), DEFAULT: (outcome(0.995e9),)}, left=20)
    assert [one.knobs for one in found.finalists()] == [KNOBS, DEFAULT]


def test_the_last_trials_are_for_one_well_inside_the_limits() -> None:
    near = (outcome(1e9, paused=0.009), outcome(1e9, paused=0.001), outcome(1e9, paused=0.012))
    told = {KNOBS: near, CALM: (outcome(0.5e9),)}
    late = confirmation(told, left=2)
    asked = []
    for one in late.asks():
        asked.append(one.knobs)
        late.book.add(Told(Trial(len(late.book.told), one.knobs, one.fidelity, one.seed), outcome(0.5e9)))
    assert asked == [CALM, CALM]
    assert late.is_settled(late.book[CALM])
