"""The scaling law: known coefficients come back, and the smallest count near the best is chosen."""

import pytest

from fabric.tune import ScalingLaw, fit_law
from fabric.tune.usl import smallest_near_best

COUNTS = (1, 2, 4, 8, 16, 32)


def test_the_coefficients_that_made_the_points_come_back() -> None:
    law = ScalingLaw(1e9, 0.05, 0.002, 0.0)
    found = fit_law((n, law.at(n)) for n in COUNTS)
    assert found is not None
    assert (found.rate, found.contention, found.crosstalk) == pytest.approx((1e9, 0.05, 0.002))
    assert found.error == pytest.approx(0, abs=1e-9)


def test_the_peak_is_where_one_more_queue_takes_away() -> None:
    law = ScalingLaw(1e9, 0.05, 0.002, 0.0)
    peak = law.peak()
    assert peak == 21  # floor(sqrt(0.95 / 0.002))
    assert max(range(1, 64), key=law.at) in (peak, peak + 1)


def test_linear_growth_has_no_peak() -> None:
    found = fit_law((n, n * 5e8) for n in COUNTS)
    assert found is not None
    assert found.peak() is None
    assert found.at(64) == pytest.approx(32e9)


def test_superlinear_points_give_no_negative_coefficient() -> None:
    found = fit_law((n, n**1.2 * 1e8) for n in COUNTS)
    assert found is not None
    assert (found.contention, found.crosstalk) == (0, 0)
    assert found.error > 0.1


def test_noise_of_three_percent_moves_the_curve_little() -> None:
    law = ScalingLaw(1e9, 0.08, 0.004, 0.0)
    wobble = (1.03, 0.97, 1.02, 0.98, 1.01, 0.99)
    found = fit_law((n, law.at(n) * by) for n, by in zip(COUNTS, wobble, strict=True))
    assert found is not None
    assert all(found.at(n) == pytest.approx(law.at(n), rel=0.05) for n in COUNTS)
    assert 0 < found.error < 0.03


@pytest.mark.parametrize(
    "points", [[], [(1, 1e9), (2, 2e9)], [(1, 1e9), (1, 1e9), (2, 2e9)], [(1, 0.0), (2, 0.0), (4, 0.0)]]
)
def test_too_few_points_give_no_law(points: list[tuple[int, float]]) -> None:
    assert fit_law(points) is None


def test_the_smallest_count_near_the_best_is_taken() -> None:
    saturating = ScalingLaw(1e9, 0.5, 0.0, 0.0)  # X: 1, 1.33, 1.6, 1.78, 1.88, 1.94
    assert smallest_near_best(saturating, COUNTS) == 16
    assert smallest_near_best(saturating, COUNTS, ceiling=1.6e9) == 4
    assert smallest_near_best(saturating, (32, 1)) == 32
