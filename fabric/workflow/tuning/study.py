"""A study in a run folder: what it is about, so that it can be gone on with, and the loop that feeds the tuner.

| file | holds |
|---|---|
| study.json | options, path, seed, digest of the plan: written once, before the first trial |
| journal.jsonl | every trial with its outcome, safe before the next one begins |
| trials/NUMBER.json | jobs, results and verdict of each trial: the evidence of its loss |
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric.clock import Clock
from fabric.errors import FabricError
from fabric.observe import Event, Observer
from fabric.plan import FabricPlan
from fabric.policy import ShardPolicy
from fabric.qos import UNKNOWN
from fabric.serial import to_json
from fabric.tune import Goal, Limits, Outcome, PathModel, Space, Trial, Tuner
from fabric.tune.text import describe
from fabric.workflow.runfolder import RunFolder

__all__ = ("Study", "digest_of", "opened_study", "run_trials")

_JOURNAL: Final = "journal.jsonl"

Measure = Callable[[Trial, ShardPolicy], Outcome]
"""Measures one trial with the policy of its knobs."""


@dataclass(frozen=True, slots=True)
class Study:
    """What a study is about. Two runs of one study have equal ones.

    Attributes:
        fabric: name. fabric_digest: of the plan that it is tuned on.
        profile: of the load. scratch, gentle, seconds: as asked.
        notes: what could not be measured of the path.
    """

    fabric: str
    fabric_digest: str
    goal: Goal
    limits: Limits
    trials: int
    seconds: float
    profile: str
    scratch: tuple[str, ...]
    gentle: bool
    hosts: tuple[str, ...]
    seed: int
    model: PathModel
    space: Space
    notes: tuple[str, ...] = ()

    def tuner(self, folder: RunFolder) -> Tuner:
        """Returns the tuner, as far as the folder's journal goes.

        Raises:
            JournalError: the journal is damaged, or of another version of the search.
        """
        journal = folder.path / _JOURNAL
        return Tuner(
            self.space, self.limits, self.goal, self.model, seed=self.seed, journal=journal, budget=self.trials
        )


def digest_of(plan: FabricPlan) -> str:
    """Returns a digest of the plan, the same for equal plans: a profile holds for the plan that it was tuned on."""
    text = json.dumps(to_json(plan), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def opened_study(run: Path) -> tuple[RunFolder, Study]:
    """Returns the folder of an earlier run, and its study.

    Raises:
        FabricError: the folder holds no study.
    """
    folder = RunFolder(run)
    if not (run / "study.json").exists():
        remedy = "Name the run folder of a `fabricctl tune` that measured something."
        raise FabricError("this run has no study to go on with", where=str(run), remedy=remedy)
    return folder, folder.read("study", Study)


def run_trials(
    tuner: Tuner, measure: Measure, *, base: ShardPolicy, budget: int, clock: Clock, observer: Observer
) -> None:
    """Measures until the tuner has enough. What was told is on the disk, whatever ends this.

    Args:
        tuner: says what is next.
        measure: one trial.
        base: the policy of everything that is not tuned.
        budget: trials in all.
        clock: for the time that is left.
        observer: hears of each trial, and of each that lost.
    """
    begin_ns, done = clock.now_ns(), 0
    while (trial := tuner.ask()) is not None:
        observer(
            Event("tune.trial.started", message=f"{trial.number + 1} of at most {budget}: {describe(trial.knobs)}")
        )
        outcome = measure(trial, trial.knobs.policy(base))
        tuner.tell(trial, outcome)
        done += 1
        each_s = (clock.now_ns() - begin_ns) / 1e9 / done
        left_s = each_s * max(0, budget - trial.number - 1)
        data = {"trial": trial.number, "bytes_per_s": outcome.bytes_per_s, "p99_ns": outcome.p99_ns, "left_s": left_s}
        observer(Event("tune.trial.done", message=_told(outcome, left_s), data=data))
        if outcome.lost is UNKNOWN or outcome.lost:
            observer(Event("tune.loss.failed", message=_loss(outcome), data={"trial": trial.number}))


def _told(outcome: Outcome, left_s: float) -> str:
    rate = f"{outcome.bytes_per_s / 1e9:.3f} GB/s, p99 {outcome.p99_ns / 1e3:.0f} us"
    return f"{rate}; at most {left_s / 60:.0f} min left"


def _loss(outcome: Outcome) -> str:
    if outcome.lost is UNKNOWN:
        return "whether this trial lost is unknown: infeasible, whatever its speed"
    return f"this trial lost {outcome.lost}: infeasible, and nothing above it in every number is tried"
