"""The loop over a fake measurer: journal, progress, what a loss says; and a study that is gone on with."""

from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.errors import FabricError
from fabric.observe import Recorder
from fabric.plan import FabricPlan
from fabric.policy import ShardPolicy
from fabric.qos import UNKNOWN
from fabric.tune import Goal, Limits, Outcome, Trial
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.tuning.options import TuneOptions, load_options
from fabric.workflow.tuning.study import Study, digest_of, opened_study, run_trials
from tests.unit.tune.worlds import LIMITS, MODEL, SPACE, hill, outcome

STUDY = Study(
    "small", "0123", Goal.THROUGHPUT, LIMITS, 16, 10.0, "incast", ("kv1",), gentle=False, hosts=("gpu1",), seed=3,
    model=MODEL, space=SPACE,
)  # fmt: skip
BASE = ShardPolicy(redeals=2)


class Fake:
    """Measures a world of arithmetic; each trial takes ten seconds."""

    def __init__(self, *, stop_after: int = 1000) -> None:
        self.clock, self.observer, self.policies = FakeClock(), Recorder(), [ShardPolicy()]
        self._left = stop_after

    def __call__(self, trial: Trial, policy: ShardPolicy) -> Outcome:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        self.clock.sleep_s(10)
        self.policies.append(policy)
        return hill(trial.knobs)

    def run(self, folder: RunFolder) -> Study:
        run_trials(STUDY.tuner(folder), self, base=BASE, budget=STUDY.trials, clock=self.clock, observer=self.observer)
        return STUDY


def test_every_trial_is_told_with_the_time_that_is_left(tmp_path: Path) -> None:
    fake = Fake()
    fake.run(RunFolder(tmp_path))
    done = [one for one in fake.observer.events if one.name == "tune.trial.done"]
    assert len(done) <= STUDY.trials
    assert done[0].data["left_s"] == 10 * (STUDY.trials - 1)
    assert all(one.redeals == 2 for one in fake.policies[1:])


def test_a_study_that_was_stopped_goes_on_with_the_trial_that_was_due(tmp_path: Path) -> None:
    whole = Fake()
    whole.run(RunFolder.create(tmp_path, "whole", 0.0))
    folder = RunFolder.create(tmp_path, "tune", 0.0)
    folder.write("study", STUDY)
    first = Fake(stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        first.run(folder)
    again, study = opened_study(folder.path)
    assert study == STUDY
    second = Fake()
    second.run(again)
    assert first.policies[1:] + second.policies[1:] == whole.policies[1:]


def test_a_trial_that_lost_says_so_and_so_does_one_of_which_it_is_unknown(tmp_path: Path) -> None:
    class Losing(Fake):
        def __call__(self, trial: Trial, policy: ShardPolicy) -> Outcome:
            del policy
            found = outcome(1e9, lost=3)
            return found if trial.number % 2 else Outcome(found.bytes_per_s, 1, 1, lost=UNKNOWN)

    fake = Losing()
    fake.run(RunFolder(tmp_path))
    told = [one.message for one in fake.observer.events if one.name == "tune.loss.failed"]
    assert "unknown" in told[0]
    assert "lost 3" in told[1]


def test_a_folder_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match="no study"):
        opened_study(tmp_path)


def test_a_plan_has_one_digest_and_another_plan_another() -> None:
    assert digest_of(FabricPlan("a", ())) == digest_of(FabricPlan("a", ())) != digest_of(FabricPlan("b", ()))


def test_options_are_limits_and_those_of_the_load() -> None:
    options = TuneOptions(p99_ms=2.5, pause_share=0.02, gentle=True, scratch=("kv1",), go_on=True)
    assert options.limits == Limits(0.02, 0.05, 2_500_000)
    load = load_options(options)
    assert (load.gentle, load.scratch, load.go_on, load.profile) == (True, ("kv1",), True, "incast")
