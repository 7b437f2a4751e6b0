"""Seeded loss: whole engines on targets that lose, delay, double and break, each from one number.

20,000 scenarios, in shards that the runner may spread, the first tenth of them in `make test`; `tests/soak engine` runs a
million. A failure names its seed and the line that runs it again.
"""

import os
from collections import Counter

import pytest

from tests.unit.engine.faults.scenario import Result, rerun, run, sweep

pytestmark = pytest.mark.no_cover  # long and alike: tracing them would double `make test`, and shows nothing new

SCENARIOS = int(os.environ.get("FABRICCTL_LOSS_SCENARIOS", "20000"))
FIRST = int(os.environ.get("FABRICCTL_LOSS_FIRST", "0"))
SHARDS, FIRST_SHARDS = 40, 4


def test_a_scenario_is_the_same_each_time() -> None:
    assert [run(seed) for seed in range(20)] == [run(seed) for seed in range(20)]


def test_a_failure_names_its_seed_and_the_line_that_runs_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(seed: int) -> Result:
        assert seed < 7, "made to fail"
        return Result(1, Counter(), 0)

    monkeypatch.setattr("tests.unit.engine.faults.scenario.run", failing)
    with pytest.raises(AssertionError, match="scenario 7: AssertionError: made to fail") as caught:
        sweep(5, 10)
    assert rerun(7) in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shard",
    [pytest.param(at, marks=() if at < FIRST_SHARDS else pytest.mark.sweep) for at in range(SHARDS)],
)
def test_whatever_is_lost_no_reader_sees_a_wrong_byte(shard: int) -> None:
    first, last = (FIRST + SCENARIOS * at // SHARDS for at in (shard, shard + 1))

    total = sweep(first, last - first)

    assert total.scenarios == last - first
    assert total.ends["well"] > total.scenarios  # most of it works all the same
    assert len(total.ends) > 5 or total.scenarios < 200  # and much of it fails, in many ways
