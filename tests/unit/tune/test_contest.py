"""Bar 3 of the tuner in small: plants of families that the model does not know, behind the lab's real data plane."""

import os

import pytest

from fabric.tune import Knobs, connect_defaults
from tests.tune_plant.contest import contest, line, tune
from tests.tune_plant.plants import KIB, MDTS, MIB, draw
from tests.tune_plant.rig import evaluate

pytestmark = pytest.mark.no_cover  # long and alike: tracing them would double `make test`, and shows nothing new

FIRST = int(os.environ.get("TUNE_SEED", "0"))  # 20 draws are the bar: tests/bars/05_3


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(FIRST, FIRST + 2))
def test_what_the_tuner_deploys_is_feasible_and_no_worse_than_the_defaults(seed: int) -> None:
    """How near it comes to the optimum is measured by tests/bars/05_3, against an exhaustive search."""
    result = contest(seed, has_search=False)
    print(line(result))
    assert list(result.broken_promises()) == []


def test_the_plant_gives_the_same_outcome_for_the_same_seed() -> None:
    plant, knobs = draw(2), Knobs(4, 4, 128 * KIB, "least-bytes", MIB, MIB)
    assert evaluate(plant, knobs, 1 / 9, 3) == evaluate(plant, knobs, 1 / 9, 3) != evaluate(plant, knobs, 1 / 9, 4)


def test_the_plant_loses_without_pfc_and_pauses_with_it() -> None:
    """The defaults of `nvme connect` flood the buffer of some plants: which of the two follows is the switch's doing."""
    flooded = {True: 0, False: 0}
    for plant in map(draw, range(24)):
        outcome = evaluate(plant, connect_defaults(plant.cores, MDTS), 1 / 9, 1)
        assert not (plant.pfc and outcome.lost)
        assert plant.pfc or outcome.pause_share == 0
        flooded[plant.pfc] += bool(outcome.lost or outcome.pause_share)
    assert min(flooded.values()) >= 2


def test_a_window_below_the_bound_neither_loses_nor_pauses() -> None:
    for plant in map(draw, range(12)):
        if plant.neighbour is None:
            one = evaluate(plant, Knobs(4, 4, 32 * KIB, "least-bytes", 64 * KIB, 128 * KIB), 1 / 9, 1)
            assert (one.lost, one.pause_share) == (0, 0)
            assert one.bytes_per_s > 0


@pytest.mark.sweep  # in small, tests/unit/tune/test_tuner.py says so too
def test_a_study_of_the_plant_repeats_itself() -> None:
    plant = draw(FIRST)
    assert tune(plant, 5).report() == tune(plant, 5).report()
