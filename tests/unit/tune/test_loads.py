"""What a load does to all scores, told apart from what each setting is worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.tune.loads import Load, loads_of

SHORT, FULL, OTHER = (1 / 3, 201), (1.0, 301), (1.0, 302)


def trials(worth: dict[str, float], loads: dict[Load, float]) -> list[tuple[str, Load, float, float]]:
    return [(name, load, value + effect, load[0]) for name, value in worth.items() for load, effect in loads.items()]


@given(
    st.lists(st.floats(-3, 3), min_size=12, max_size=20),
    st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)),
)
def test_loads_are_found_whatever_the_settings_are_worth(values: list[float], effects: tuple[float, float]) -> None:
    short, full = effects
    worth = {str(at): value for at, value in enumerate(values)}
    found = loads_of(trials(worth, {SHORT: short, FULL: full, OTHER: -full}))
    assert found[SHORT] == pytest.approx(short, abs=0.03)
    assert found[FULL] - found[OTHER] == pytest.approx(2 * full, abs=0.03)
    assert found[FULL] + found[OTHER] == pytest.approx(0, abs=1e-9)


def test_settings_of_one_load_tell_nothing() -> None:
    assert loads_of([("a", SHORT, 1.0, 1 / 3), ("b", FULL, 2.0, 1.0)]) == {}


def test_what_one_setting_has_told_of_a_load_is_drawn_towards_nothing() -> None:
    found = loads_of(trials({"a": 5.0}, {SHORT: 0.3, FULL: 0.0}))
    assert 0 < found[SHORT] < 0.3
