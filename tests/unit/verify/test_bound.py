import math

import pytest

from fabric.verify.bound import exact_zero, needed_for, rule_of_three, upper_bound


def test_no_event_in_n_trials() -> None:
    assert rule_of_three(3_000_000_000) == 1e-9
    assert exact_zero(3_000_000_000) == pytest.approx(-math.log(0.05) / 3e9)
    assert exact_zero(1) == pytest.approx(0.95)
    assert exact_zero(1000, confidence=0.99) == pytest.approx(4.6e-3, rel=2e-3)
    assert rule_of_three(0) == exact_zero(0) == 1.0


def test_a_billion_and_a_half_bits_of_patience() -> None:
    needed = needed_for(1e-9)
    assert exact_zero(needed) <= 1e-9 < exact_zero(needed - 2)


@pytest.mark.parametrize(
    ("events", "trials", "expected"),
    [
        (5, 10, 0.777559),  # Clopper-Pearson, one-sided 95 %: qbeta(0.95, k + 1, n - k)
        (1, 20, 0.216106),
        (10, 10, 1.0),
        (1, 200_000, 4.743820e-6 * 5),
    ],
)
def test_events_in_n_trials(events: int, trials: int, expected: float) -> None:
    assert upper_bound(events, trials) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("events", "trials"), [(3, 50), (7, 40), (1, 300)])
def test_at_the_bound_so_few_events_are_exactly_as_rare_as_was_asked(events: int, trials: int) -> None:
    rate = upper_bound(events, trials, confidence=0.95)
    chance = sum(math.comb(trials, one) * rate**one * (1 - rate) ** (trials - one) for one in range(events + 1))
    assert chance == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize(("events", "trials", "confidence"), [(2, 1, 0.95), (-1, 5, 0.95), (1, 5, 1.0)])
def test_what_is_no_measurement_is_refused(events: int, trials: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="is no measurement"):
        upper_bound(events, trials, confidence=confidence)
