"""What the trials of a setting say together: open questions, twins, luck."""

from dataclasses import replace

import pytest

from fabric.qos import UNKNOWN
from fabric.tune import Goal, Knobs, Outcome, Trial
from fabric.tune.journal import Told
from fabric.tune.standing import Book, Standing, are_level, are_twins
from tests.unit.tune.worlds import KIB, LIMITS, MIB, outcome

KNOBS = Knobs(4, 4, 64 * KIB, "least-bytes", MIB, MIB)
AWAY = replace(KNOBS, queues=1, depth=1, transfer_bytes=512 * KIB)


def standing(*outcomes: Outcome, knobs: Knobs = KNOBS, fidelity: float = 1.0) -> Standing:
    told = (Told(Trial(at, knobs, fidelity, 301 + at), one) for at, one in enumerate(outcomes))
    return Standing(knobs, tuple(told))


def paused(*shares: float) -> Standing:
    return standing(*(outcome(1e9, paused=share) for share in shares))


def book(*standings: Standing) -> Book:
    found = Book(LIMITS, Goal.THROUGHPUT)
    for one in standings:
        for told in one.told:
            found.add(told)
    return found


def test_shares_near_the_limit_are_open_until_twelve_trials_have_shown_them() -> None:
    assert paused(0.002, 0.009).is_open(LIMITS)
    assert not paused(0.002, 0.009).flaws(LIMITS)
    assert paused(*(0.002, 0.0135) * 5).is_open(LIMITS)
    late = paused(*(0.002, 0.0135) * 6)
    assert not late.is_open(LIMITS)
    assert any("may be paused" in flaw for flaw in late.flaws(LIMITS))


def test_shares_far_from_the_limit_are_never_open() -> None:
    assert not paused(0.0, 0.001).is_open(LIMITS)


def test_excess_is_below_zero_exactly_where_it_may_be_deployed() -> None:
    assert paused(0.001).excess(LIMITS) == pytest.approx(-1)
    assert paused(0.1).excess(LIMITS) == pytest.approx(1)
    assert standing(outcome(1e9, lost=1)).excess(LIMITS) > 0
    assert standing(replace(outcome(1e9), lost=UNKNOWN)).excess(LIMITS) > 0
    assert standing(replace(outcome(1e9), errors=1)).excess(LIMITS) > 0


def test_twins_are_those_that_did_the_same_under_equal_load() -> None:
    other = replace(KNOBS, depth=64)
    same, near = standing(outcome(1e9), outcome(2e9)), standing(outcome(1.001e9), outcome(2e9), knobs=other)
    assert are_twins(same, near)
    assert not are_twins(same, standing(outcome(1e9), outcome(2.1e9), knobs=other))
    assert not are_twins(same, standing(outcome(1e9), knobs=other, fidelity=1 / 3))


def test_a_share_is_the_mean_over_the_time_of_all_trials() -> None:
    """One trial a little above the limit is no flaw; the mean of all is judged, the longer ones heavier."""
    assert not paused(0.015, 0.001, 0.002).flaws(LIMITS)
    assert paused(0.015, 0.007, 0.009).flaws(LIMITS)
    short = Told(Trial(9, KNOBS, 1 / 3, 201), outcome(1e9, paused=0.02))
    assert not Standing(KNOBS, (*paused(0.004, 0.008).told, short)).flaws(LIMITS)
    unknown = standing(outcome(1e9), replace(outcome(1e9), pause_share=UNKNOWN))
    assert "share paused unknown" in unknown.flaws(LIMITS)


def test_a_mean_of_one_or_two_whole_trials_fells_only_what_is_far_above_the_limit() -> None:
    early = paused(0.005, 0.019)
    assert not early.has_fallen(LIMITS)
    assert early.flaws(LIMITS)  # a report calls it what it is
    assert early.is_open(LIMITS)  # and nobody deploys it
    assert paused(0.005, 0.04).has_fallen(LIMITS)
    assert paused(0.012, 0.013).has_fallen(LIMITS)
    assert standing(outcome(1e9, paused=0.012), fidelity=1 / 3).has_fallen(LIMITS)


def test_a_short_trial_by_itself_may_be_made_good_by_a_whole_one() -> None:
    short = standing(outcome(1e9, paused=0.05), fidelity=1 / 3)
    assert short.may_recover(LIMITS)
    assert not standing(outcome(1e9, paused=0.4), fidelity=1 / 3).may_recover(LIMITS)
    assert not standing(outcome(1e9, lost=1), fidelity=1 / 3).may_recover(LIMITS)
    assert not standing(outcome(1e9), fidelity=1 / 3).may_recover(LIMITS)
    assert not paused(0.012, 0.013).may_recover(LIMITS)


def test_settings_are_level_that_carried_as_much_as_makes_no_difference() -> None:
    other = replace(KNOBS, depth=64)
    one, near = standing(outcome(1e9), outcome(2e9)), standing(outcome(1.008e9), outcome(2e9), knobs=other)
    assert are_level(one, near, Goal.THROUGHPUT)
    assert not are_twins(one, near)
    late = standing(
        *(replace(told.outcome, last_byte_ns=3 * told.outcome.last_byte_ns) for told in near.told), knobs=other
    )
    assert not are_level(one, late, Goal.LAST_BYTE)
    assert not are_level(one, standing(outcome(1e9), outcome(2.1e9), knobs=other), Goal.THROUGHPUT)
    assert not are_level(one, standing(outcome(1e9), knobs=other, fidelity=1 / 3), Goal.THROUGHPUT)


def test_a_setting_that_was_clean_itself_leads_though_it_is_above_one_that_lost() -> None:
    """Six queues lost, eight did not: bursts that meet are no matter of how many queues there are."""
    above = replace(KNOBS, queues=8)
    lost = standing(outcome(1.9e9, lost=58), fidelity=1 / 3)
    short = standing(outcome(2e9), knobs=above, fidelity=1 / 3)
    assert not book(lost, short).ranked()
    found = book(lost, Standing(above, (*short.told, *standing(outcome(2e9), knobs=above).told)))
    assert [one.knobs for one in found.ranked()] == [above]
    assert found.is_forbidden(replace(KNOBS, queues=6))


def test_a_setting_that_was_measured_under_a_light_load_alone_does_not_lead_by_it() -> None:
    """All give 5 % more under the first load than at full fidelity; AWAY was measured under that alone."""
    short = {
        knobs: Told(Trial(0, knobs, 1 / 3, 201), outcome(rate))
        for knobs, rate in ((KNOBS, 2.1e9), (replace(KNOBS, queues=6), 1.68e9), (AWAY, 2.06e9))
    }
    full = [standing(outcome(2e9)), standing(outcome(1.6e9), knobs=replace(KNOBS, queues=6))]
    found = book(*full, *(Standing(knobs, (told,)) for knobs, told in short.items()))
    assert [one.knobs for one in found.ranked()][:2] == [KNOBS, AWAY]


def test_the_twin_of_a_leader_that_was_measured_less_follows_it() -> None:
    """The leader fell back a little in its second trial, as its twin would."""
    twin = replace(KNOBS, depth=64)
    found = book(standing(outcome(2e9), knobs=twin), standing(outcome(2e9), outcome(1.9e9)))
    assert [one.knobs for one in found.ranked()] == [KNOBS, twin]


def test_the_twin_of_one_that_fell_is_not_ranked() -> None:
    twin = replace(KNOBS, queues=1)
    fell = standing(outcome(2e9), outcome(2e9, paused=0.5))
    found = book(fell, standing(outcome(2e9), knobs=twin), standing(outcome(1e9), knobs=AWAY))
    assert [one.knobs for one in found.ranked()] == [AWAY]


def test_beside_one_that_lost_by_chance_nothing_is_deployed() -> None:
    lucky = standing(outcome(2e9), outcome(2e9, lost=3))
    beside = replace(KNOBS, queues=3)
    found = book(lucky, standing(outcome(1e9), knobs=beside), standing(outcome(1.5e9), knobs=AWAY))
    assert found.is_forbidden(beside)
    assert not found.is_forbidden(AWAY)
    assert [one.knobs for one in found.ranked()] == [AWAY]


def test_beside_one_that_always_lost_the_lower_one_may_be_deployed() -> None:
    below, above = replace(KNOBS, queues=3), replace(KNOBS, queues=6)
    found = book(standing(outcome(2e9, lost=3), outcome(2e9, lost=3)))
    assert not found.is_forbidden(below)
    assert found.is_forbidden(above)


def test_unknown_loss_forbids_no_other_setting() -> None:
    found = book(standing(replace(outcome(2e9), lost=UNKNOWN)))
    assert not found.is_forbidden(replace(KNOBS, queues=6))
