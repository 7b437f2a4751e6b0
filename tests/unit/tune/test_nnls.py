"""Least squares without negative coefficients, against solutions that are known or can be checked."""

import random

import pytest

from fabric.tune.nnls import nnls


def test_an_exact_solution_is_found_with_no_residual() -> None:
    found, residual = nnls([[1, 0, 2], [0, 1, 1], [1, 1, 0], [3, 0, 1]], [7, 5, 3, 6])
    assert found == pytest.approx((1, 2, 3))
    assert residual == pytest.approx(0, abs=1e-12)


def test_a_coefficient_that_would_be_negative_is_zero() -> None:
    """Plain least squares gives (2, -1); with x1 = 0 the rest is the projection on the first column."""
    found, residual = nnls([[1, 0], [0, 1], [0, 0]], [2, -1, 0])
    assert found == (2, 0)
    assert residual == pytest.approx(1)


def test_the_known_solution_of_a_textbook_case() -> None:
    """Lawson and Hanson's own kind of case: x = (0, 0.6929...) since plain least squares puts the first below 0."""
    rows = [[0.0372, 0.2869], [0.6861, 0.7071], [0.6233, 0.6245], [0.6344, 0.6170]]
    found, residual = nnls(rows, [0.8587, 0.1781, 0.0747, 0.8405])
    assert found == pytest.approx((0, 0.6929), abs=1e-4)
    assert residual == pytest.approx(0.9118, abs=1e-4)


def test_nothing_fits_what_points_away() -> None:
    found, residual = nnls([[1], [1]], [-1, -2])
    assert found == (0.0,)
    assert residual == pytest.approx(5**0.5)


def test_equal_columns_are_no_obstacle() -> None:
    found, residual = nnls([[1, 1], [2, 2]], [3, 6])
    assert sum(found) == pytest.approx(3)
    assert residual == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_conditions_of_an_optimum_hold(seed: int) -> None:
    """Karush, Kuhn and Tucker: the gradient is 0 where x > 0, and not negative where x = 0."""
    dice = random.Random(seed)  # noqa: S311  (no secret)
    rows = [[dice.gauss(0, 1) for _ in range(4)] for _ in range(9)]
    wanted = [dice.gauss(0, 1) for _ in rows]
    found, _ = nnls(rows, wanted)
    off = [sum(a * x for a, x in zip(row, found, strict=True)) - b for row, b in zip(rows, wanted, strict=True)]
    for index, value in enumerate(found):
        gradient = sum(row[index] * one for row, one in zip(rows, off, strict=True))
        assert gradient >= -1e-9
        assert value == 0 or gradient == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("rows", "wanted"), [([], []), ([[1]], [1, 2]), ([[1, 2], [1]], [1, 2]), ([[1.0] * 9], [1])])
def test_shapes_that_do_not_fit_are_refused(rows: list[list[float]], wanted: list[float]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        nnls(rows, wanted)
