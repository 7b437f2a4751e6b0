"""What the surrogate promises, on curves whose shape is known."""

import sys
from math import exp

import pytest

from fabric.errors import EnvironmentMissingError
from fabric.tune.surrogate import Measured, promises

PLACES = [(step / 4,) for step in range(41)]


def hill(x: float) -> float:
    return exp(-(((x - 6) / 3) ** 2))


def seen(*at: float, limit: float = 99.0) -> list[Measured]:
    return [Measured((x,), hill(x), 0.01, (x - limit) / 4) for x in at]


def best_place(measured: list[Measured], best: float | None) -> float:
    hopes, _ = promises(measured, PLACES, best)
    return PLACES[max(range(len(PLACES)), key=hopes.__getitem__)][0]


def test_it_goes_where_the_curve_rises() -> None:
    assert 4 < best_place(seen(0, 2, 4, 9, 10), hill(4)) < 8


def test_what_is_known_to_exceed_a_limit_promises_little() -> None:
    """The hill is at 6, what is above 5 is infeasible: the promise moves below it."""
    measured = seen(0, 2, 4, 6, 8, limit=5.0)
    assert 4 < best_place(measured, hill(4)) < 5.75
    _, able = promises(measured, PLACES, hill(4))
    assert able[PLACES.index((2.0,))] > 0.9
    assert able[PLACES.index((8.0,))] < 0.1


def test_where_nothing_is_feasible_it_looks_for_what_is() -> None:
    measured = seen(6, 8, 10, limit=3.0)
    hopes, able = promises(measured, PLACES, None)
    assert hopes == able
    assert best_place(measured, None) < 5


def test_where_it_measured_without_noise_it_promises_nothing() -> None:
    measured = [Measured((x,), hill(x), 0.0001, -1.0) for x in (0.0, 3.0, 6.0, 9.0)]
    hopes, _ = promises(measured, PLACES, hill(6))
    assert max(hopes[PLACES.index((x,))] for x in (0.0, 3.0, 9.0)) < 0.001


def test_a_direction_that_changes_nothing_is_found_out() -> None:
    """Only the first coordinate matters: what is foreseen far along the second is as sure as beside it."""
    measured = [Measured((x, y), hill(x), 0.01, -1.0) for x in (0.0, 3.0, 6.0, 9.0) for y in (0.0, 4.0, 8.0)]
    hopes, _ = promises(measured, [(6.0, 1.0), (6.0, 6.0), (0.5, 1.0)], hill(6))
    assert max(hopes[0], hopes[1]) < 0.01


def test_the_same_measurements_give_the_same_promises() -> None:
    assert promises(seen(0, 2, 4), PLACES, hill(4)) == promises(seen(0, 2, 4), PLACES, hill(4))


def test_without_numpy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(EnvironmentMissingError) as caught:
        promises(seen(0, 2), PLACES, None)
    assert caught.value.remedy == "pip install 'fabricctl[tune]'"
