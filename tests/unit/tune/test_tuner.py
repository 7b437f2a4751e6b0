"""The tuner on worlds of plain arithmetic: what it asks, what it chooses, what it never chooses."""

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from fabric.errors import EnvironmentMissingError, FabricError
from fabric.qos import UNKNOWN
from fabric.tune import Goal, Knobs, Limits, Outcome, PathModel, Space, Tuner, connect_defaults
from fabric.tune.asking import defaults
from tests.unit.tune.worlds import KIB, LIMITS, MIB, MODEL, SPACE, flat, hill, outcome, run, tuner


@pytest.fixture(scope="module")
def climbed() -> Tuner:
    return run(tuner(), hill)


def test_it_finds_the_hill_and_says_what_it_gained() -> None:
    best = run(tuner(), hill, noise=0.02).best()
    assert best is not None
    top = max(
        (
            hill(SPACE.at((q, d, t, 0, w, r)))
            for q in range(8)
            for d in range(7)
            for t in range(4)
            for w in range(6)
            for r in range(6)
        ),
        key=lambda one: one.bytes_per_s if not one.lost and one.pause_share == 0 else 0,
    )
    assert hill(best.knobs).bytes_per_s >= 0.95 * top.bytes_per_s
    assert hill(best.knobs).lost == 0
    assert best.default == ""
    assert "nvme connect: lost 5" in best.why


def test_no_measurement_is_asked_for_twice_and_the_budget_holds(climbed: Tuner) -> None:
    rows = climbed.report().rows
    asked = [(row.trial.knobs, row.trial.fidelity, row.trial.seed) for row in rows]
    assert len({*asked}) == len(asked) <= 60
    assert [row.trial.number for row in rows] == list(range(len(rows)))
    assert {row.trial.fidelity for row in rows} == {1 / 3, 1.0}


@pytest.mark.parametrize("budget", [12, 25])
def test_a_smaller_budget_still_confirms(budget: int) -> None:
    done = run(tuner(budget=budget), hill)
    best = done.best()
    assert len(done.report().rows) <= budget
    assert best is not None
    assert sum(row.trial.fidelity == 1.0 and row.trial.knobs == best.knobs for row in done.report().rows) >= 2


def test_a_budget_that_compares_nothing_is_refused() -> None:
    with pytest.raises(FabricError, match="too small"):
        tuner(budget=11)


def test_where_nothing_is_better_the_default_stays() -> None:
    best = run(tuner(), flat, noise=0.02).best()
    assert best is not None
    assert (best.gain_low, best.gain_high) == (0.0, 0.0)
    assert best.default in {"nvme connect", "default policy"}
    assert best.why == "nothing was better for certain"


def test_a_default_is_replaced_only_with_a_gain_beyond_its_interval() -> None:
    def gentle(knobs: Knobs) -> Outcome:
        return outcome(5e9 if knobs.queues == 16 else 6e9 if knobs.transfer_bytes == 128 * KIB else 5.5e9)

    best = run(tuner(), gentle, noise=0.03).best()
    assert best is not None
    assert best.knobs.transfer_bytes == 128 * KIB
    assert best.default == "default policy"
    assert 0.01 < best.gain_low < 6 / 5.5 - 1 < best.gain_high


def unknown_loss(knobs: Knobs) -> Outcome:
    return replace(hill(knobs), lost=UNKNOWN)


def unknown_pauses(knobs: Knobs) -> Outcome:
    return replace(hill(knobs), pause_share=UNKNOWN)


def wrong_bytes(knobs: Knobs) -> Outcome:
    return replace(hill(knobs), errors=1)


def marked(knobs: Knobs) -> Outcome:
    return replace(hill(knobs), marks_share=0.06)


def lossy(knobs: Knobs) -> Outcome:
    return replace(hill(knobs), lost=1)


@pytest.mark.parametrize("world", [unknown_loss, unknown_pauses, wrong_bytes, marked, lossy])
def test_nothing_is_chosen_where_nothing_is_feasible(world: Callable[[Knobs], Outcome]) -> None:
    done = run(tuner(budget=15), world)
    assert done.best() is None
    assert all(row.flaws for row in done.report().rows)


def test_what_loses_is_not_chosen_however_fast() -> None:
    def tempting(knobs: Knobs) -> Outcome:
        many = knobs.queues >= 8
        return outcome(9e9 if many else 3e9 + 1e8 * knobs.queues, lost=int(many))

    best = run(tuner(), tempting, noise=0.01).best()
    assert best is not None
    assert best.knobs.queues < 8
    assert best.outcome.lost == 0


def test_nothing_above_a_setting_that_lost_is_tried(climbed: Tuner) -> None:
    rows = climbed.report().rows
    lost: list[Knobs] = []
    for row in rows:
        if row.trial.why not in {"nvme connect", "default policy", "one queue, serial", "scaling", "confirmation"}:
            assert not any(row.trial.knobs.covers(one) for one in lost)
        if any("lost" in flaw or "paused" in flaw for flaw in row.flaws):
            lost.append(row.trial.knobs)
    assert lost


def test_pauses_that_only_just_held_are_not_deployed() -> None:
    """A mean below the limit whose interval reaches above it is luck."""
    shares = (0.002, 0.0095, 0.0099)

    def measure(knobs: Knobs, seed: int) -> Outcome:
        fast = knobs.queues >= 4
        return outcome(8e9 if fast else 4e9, paused=shares[seed % 3] if fast else 0.0)

    one = tuner(budget=30)
    while (trial := one.ask()) is not None:
        one.tell(trial, measure(trial.knobs, trial.seed))
    best = one.best()
    assert best is None or best.knobs.queues < 4


def test_a_bound_on_p99_binds() -> None:
    def slow_when_wide(knobs: Knobs) -> Outcome:
        flying = knobs.flying_bytes(4)
        return outcome(1e9 + flying * 100, p99_ns=flying // 4)

    best = run(tuner(limits=replace(LIMITS, p99_max_ns=1_000_000)), slow_when_wide).best()
    assert best is not None
    assert best.outcome.p99_ns <= 1_000_000


@pytest.mark.parametrize("goal", [Goal.LAST_BYTE, Goal.FAIRNESS])
def test_other_goals_choose_other_settings(goal: Goal) -> None:
    def torn(knobs: Knobs) -> Outcome:
        """Many queues are fast and unfair, and late with the last byte."""
        good = outcome(4e9 + 2e8 * knobs.queues)
        return replace(good, fairness=1 / knobs.queues, last_byte_ns=1_000_000 * knobs.queues)

    other = run(tuner(goal=goal, budget=36), torn).best()
    assert other is not None
    assert other.knobs.queues == 1  # Goal.THROUGHPUT would take 16


def test_it_ends_where_the_path_can_carry_no_more() -> None:
    done = run(tuner(), lambda _: outcome(12.2e9))
    assert done.stopped.startswith("within 3 %")
    assert len(done.report().rows) < 20


def test_it_ends_when_nothing_rises() -> None:
    done = run(tuner(), flat)
    assert done.stopped == "no rise above noise in 20 trials"


def test_a_space_of_one_setting_ends() -> None:
    only = Knobs(2, 4, 64 * KIB, "least-bytes", MIB, MIB)
    one_point = replace(
        SPACE,
        queues=(2,),
        depth=(4,),
        transfer_bytes=(64 * KIB,),
        dealing=("least-bytes",),
        target_bytes=(MIB,),
        receiver_bytes=(MIB,),
    )
    done = run(tuner(space=one_point), lambda knobs: outcome(2e9 if knobs == only else 1e9), noise=0.01)
    best = done.best()
    assert best is not None
    assert best.knobs == only
    assert done.stopped == "every setting near the leader was tried"


def test_equal_seeds_ask_equal_trials_and_others_do_not(climbed: Tuner) -> None:
    first, again, other = (
        [row.trial for row in done.report().rows]
        for done in (climbed, run(tuner(), hill), run(tuner(seed=2), hill, most=15))
    )
    assert first == again
    assert first[:8] == other[:8]  # baselines and scaling draw no lots
    assert first[: len(other)] != other


@pytest.mark.parametrize("seed", [-1, 1 << 31, 1 << 70])
def test_any_seed_will_do(seed: int) -> None:
    assert any(row.trial.why == "estimator" for row in run(tuner(seed=seed), hill).report().rows)


def test_the_same_trial_is_due_until_it_is_told() -> None:
    one = tuner()
    first = one.ask()
    assert first is not None
    assert one.ask() is first
    assert first.knobs == connect_defaults(16, 512 * KIB)
    with pytest.raises(FabricError, match="not due"):
        one.tell(replace(first, seed=5), flat(first.knobs))
    one.tell(first, flat(first.knobs))
    second = one.ask()
    assert second is not None
    assert second.number == 1


def test_without_optuna_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(EnvironmentMissingError) as caught:
        run(tuner(), hill)
    assert caught.value.remedy == "pip install 'fabricctl[tune]'"


def test_limits_default_to_no_loss_and_hardly_a_pause() -> None:
    assert Limits() == Limits(0.01, 0.05, None)


def test_a_finalist_that_falls_sends_the_search_on() -> None:
    """The best of all is feasible until it is confirmed: the study goes on, and names another one."""

    def measure(knobs: Knobs, seed: int) -> Outcome:
        seen = hill(knobs)
        return replace(seen, pause_share=0.5) if seed == 302 and seen.bytes_per_s > 9e9 else seen

    one = tuner(budget=80)
    while (trial := one.ask()) is not None:
        one.tell(trial, measure(trial.knobs, trial.seed))
    rows, best = one.report().rows, one.best()
    fell = next(row.trial.number for row in rows if row.trial.seed == 302 and row.flaws)
    assert any(row.trial.number > fell and row.trial.fidelity < 1 for row in rows)
    assert best is not None
    assert hill(best.knobs).bytes_per_s <= 9e9


@pytest.mark.parametrize("budget", [12, 14])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_few_trials_compare_with_the_best_default_all_the_same(budget: int, seed: int) -> None:
    """Settings that differ by a little luck: the runner-up must not take the trials that the default needs."""
    space = Space.between(queues=4, depth=128, mdts_bytes=16 * KIB)
    model = PathModel(12.5e6, 2_000_000, 22_000_000, 40_000_000, cores=1, chunk_bytes=16 * KIB, requests=16)

    def saturated(knobs: Knobs) -> Outcome:
        return outcome(5e5 * min(16, knobs.queues * knobs.depth))

    best = run(Tuner(space, LIMITS, Goal.THROUGHPUT, model, seed=seed, budget=budget), saturated, noise=0.03).best()
    assert best is not None
    assert best.default in {"nvme connect", "default policy"}
    assert best.outcome.bytes_per_s > 7e6


def test_where_something_lost_the_chosen_one_is_clean_in_eight_trials() -> None:
    def measure(knobs: Knobs) -> Outcome:
        return outcome(2e9 + 1e8 * knobs.queues, lost=int(knobs.queues > 6))

    done = run(tuner(), measure)
    best = done.best()
    assert best is not None
    assert sum(row.trial.fidelity == 1 and row.trial.knobs == best.knobs for row in done.report().rows) >= 8


def test_a_default_that_a_short_trial_alone_speaks_against_is_heard_again() -> None:
    """A burst that no whole trial met: what is deployed is not below the default for it."""
    one = tuner()
    default, _ = defaults(SPACE, MODEL)
    while (trial := one.ask()) is not None:
        is_default = trial.knobs == default
        rate = 6e9 if is_default else 5e9
        one.tell(trial, outcome(rate, paused=0.05 if is_default and trial.fidelity < 1 else 0.0))
    chosen = one.best()
    assert chosen is not None
    assert chosen.knobs == default
