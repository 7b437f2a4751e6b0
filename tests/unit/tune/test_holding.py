"""What in the fabric holds a study back."""

from dataclasses import replace

import pytest

from fabric.qos import UNKNOWN
from fabric.tune import Buffer, Goal, Knobs, Outcome, PathModel, Trial
from fabric.tune.holding import Limit, holdings
from fabric.tune.journal import Told
from fabric.tune.standing import Book
from tests.unit.tune.worlds import KIB, LIMITS, MIB, MODEL, hill, outcome, run, tuner

CHOSEN = Knobs(4, 4, 64 * KIB, "least-bytes", MIB, MIB)
WIDE = replace(CHOSEN, depth=64, target_bytes=4 * MIB, receiver_bytes=8 * MIB)
WIDER = replace(WIDE, queues=8)
MARKED = replace(outcome(2e9), marks_share=0.2)


def book(told: dict[Knobs, Outcome]) -> Book:
    found = Book(LIMITS, Goal.THROUGHPUT)
    for at, (knobs, one) in enumerate(told.items()):
        found.add(Told(Trial(at, knobs, 1.0, 301), one))
    return found


def test_the_fastest_that_marks_alone_forbid_is_named_with_what_waits() -> None:
    told = {CHOSEN: outcome(1.5e9), WIDE: MARKED, WIDER: replace(MARKED, bytes_per_s=1.8e9)}
    (found,) = holdings(book(told), MODEL, CHOSEN)
    assert (found.limit, found.knobs) == (Limit.MARKS, WIDE)
    assert found.gain == pytest.approx(1 / 3)
    assert found.queued_bytes == 8 * MIB - round(MODEL.bdp_bytes)
    assert found.kmin_bytes == 2 * MIB
    assert "fabric_ecn_kmin" in found.turn


def test_each_limit_is_told_once_most_gained_first() -> None:
    told = {CHOSEN: outcome(1e9), WIDE: outcome(1.2e9, paused=0.3), WIDER: outcome(1.4e9, lost=3)}
    assert [one.limit for one in holdings(book(told), MODEL, CHOSEN)] == [Limit.LOSS, Limit.PAUSES]


def test_loss_of_a_lossless_class_asks_for_its_cause_and_of_another_for_pfc() -> None:
    told = {CHOSEN: outcome(1e9), WIDE: outcome(1.4e9, lost=3)}
    drops = replace(MODEL, buffer=Buffer(32 * MIB, pfc=False))

    def turn(model: PathModel) -> str:
        return holdings(book(told), model, CHOSEN)[0].turn

    assert "headroom" in turn(MODEL)
    assert "headroom" in turn(replace(MODEL, buffer=None))
    assert "holds its senders" in turn(drops)


@pytest.mark.parametrize(
    "bad",
    [
        outcome(1.04e9, paused=0.3),
        replace(outcome(2e9, paused=0.3), marks_share=0.2),
        replace(outcome(2e9, paused=0.3), errors=1),
        replace(outcome(2e9, paused=0.3), lost=UNKNOWN),
        replace(outcome(2e9), pause_share=UNKNOWN),
        outcome(2e9),
    ],
    ids=["no gain", "two limits", "errors", "loss unknown", "pauses unknown", "feasible"],
)
def test_what_gains_nothing_or_has_more_against_it_is_not_told(bad: Outcome) -> None:
    assert not holdings(book({CHOSEN: outcome(1e9), WIDE: bad}), MODEL, CHOSEN)


def test_where_nothing_was_chosen_each_limit_is_told() -> None:
    (found,) = holdings(book({WIDE: outcome(1e9, paused=0.3)}), MODEL, None)
    assert (found.limit, found.gain) == (Limit.PAUSES, 0.0)


def test_a_bound_on_p99_is_not_the_fabric() -> None:
    found = book({CHOSEN: outcome(1e9), WIDE: outcome(2e9, paused=0.3, p99_ns=900_000)})
    found.limits = replace(LIMITS, p99_max_ns=600_000)
    assert not holdings(found, MODEL, CHOSEN)


def test_a_study_tells_it() -> None:
    """Pauses forbid all above 8 MiB: a faster world above that is what they hold back."""

    def steep(knobs: Knobs) -> Outcome:
        exact = hill(knobs)
        return replace(exact, bytes_per_s=2 * exact.bytes_per_s) if exact.pause_share else exact

    report = run(tuner(), steep).report()
    assert report.chosen is not None
    assert Limit.PAUSES in {one.limit for one in report.held_back}
    assert all(one.gain > 0.05 for one in report.held_back)
