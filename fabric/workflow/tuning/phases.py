"""The order of a study.

    checks ──▶ path, light reads ──▶ [prepare] ──▶ idle pair ──▶ ask, load, counters, tell … ──▶ profile, diff, report
       └─ failed: nothing is measured

Nothing is configured or installed anywhere: each trial's policy goes to the agents, and they end with the run. So
Ctrl-C leaves hosts as they were, and what was measured stays in the journal.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from fabric._version import __version__
from fabric.errors import FabricError
from fabric.observe import Event, Observer
from fabric.policy import PROFILE_PATH, Conditions, ShardPolicy, ShardProfile, profile_from_text, profile_to_text
from fabric.tune import Outcome, Trial, TuneReport, make_profile, no_longer_holds
from fabric.verify import Verdict, VerdictStatus
from fabric.workflow.environment import Environment
from fabric.workflow.planning import load_intent
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.tuning.concluding import Checked, Ending, Tuned, conclude_check, conclude_refused, conclude_study
from fabric.workflow.tuning.measuring import Measured, ready
from fabric.workflow.tuning.modelling import MeasuredPath, measured_path
from fabric.workflow.tuning.options import TuneOptions, load_options
from fabric.workflow.tuning.study import Study, digest_of, opened_study, run_trials
from fabric.workflow.tuning.writing import VARIABLE, FileEdit, edits_of, undo_edits, write_edits
from fabric.workflow.verifying.phases import prechecked
from fabric.workflow.verifying.prechecks import is_refused
from fabric.workflow.verifying.profiles import deployed_profiles
from fabric.workflow.verifying.setting import Asked, Setting, asked_of, expanded, opened

__all__ = ("Measurer", "check_profile", "tune")

_TRIALS: Final = "trials"
_PROFILE: Final = "shard-profile.json"


class Measurer(Protocol):
    """Whoever measures a policy."""

    def measure(self, policy: ShardPolicy, *, fidelity: float = 1.0, seed: int = 0) -> Measured:
        """Returns what the policy came to."""
        ...


def tune(
    request: Request,
    environment: Environment,
    options: TuneOptions,
    *,
    resume: Path | None = None,
    write: bool = False,
) -> Tuned:
    """Returns the fastest policy that lost nothing, and writes it into a run folder.

    Args:
        request: where the inventory is.
        environment: clock and observer.
        options: how far it goes; of a study that is gone on with, that study's own stand in for goal, limits and load.
        resume: run folder of a study that was stopped; of one that has ended, `write` applies what it showed.
        write: the inventory is changed; else only its diff is made.

    Raises:
        IntentError, PlanError: inventory, profile or plan is wrong; nobody was contacted.
        FabricError: a host gave no result, or the study is of another plan.
    """
    study = None
    if resume is not None:
        folder, study = opened_study(resume)
        options = _as_of(study, options)
    asked = asked_of(replace(request, hosts=True), environment, load_options(options))
    if study is None:
        folder = RunFolder.create(request.runs, "tune", environment.clock.unix_s())
        folder.write("fabric", asked.loaded.fabric)
    else:
        _same(study, asked, folder)
        if write and (folder.path / _PROFILE).exists():
            return _reviewed(asked, folder, study)
    with opened(asked, folder) as setting:
        prechecks = prechecked(setting)
        if is_refused(prechecks) and not options.go_on:
            return Tuned(conclude_refused(asked, folder, prechecks))
        study, report = _measured(setting, options, study)
    profile = None if report.chosen is None else _profile(asked, folder, study, report)
    edits = () if profile is None else _edits(asked, profile, study.hosts)
    ending = Ending(report, prechecks, profile, edits)
    if write and profile is not None:
        try:
            _write(asked, edits, profile, study.hosts)
        except FabricError:
            conclude_study(asked, folder, study, ending)  # what was measured is not lost with it
            raise
        ending = replace(ending, is_written=True)
    return conclude_study(asked, folder, study, ending)


def _reviewed(asked: Asked, folder: RunFolder, study: Study) -> Tuned:
    """Writes the profile that an ended study has shown, as it was shown. Contacts nobody."""
    place = folder.path / _PROFILE
    profile = profile_from_text(place.read_text(encoding="utf-8"), place=str(place))
    edits = _edits(asked, profile, study.hosts)
    _write(asked, edits, profile, study.hosts)
    ending = Ending(study.tuner(folder).report(), (), profile, edits, is_written=True)
    return conclude_study(asked, folder, study, ending)


def _measured(setting: Setting, options: TuneOptions, study: Study | None) -> tuple[Study, TuneReport]:
    asked, folder = setting.asked, setting.folder
    with asked.watch.stage("path"):
        _tell(asked, "path", "light reads, one at a time")
        expansion = expanded(setting)
        if study is None:
            study = _study(setting, options, measured_path(setting, expansion))
            folder.write("study", study)
    measurer = ready(setting, expansion, study.goal, study.seconds)
    tuner = study.tuner(folder)
    base = _base(asked)
    try:
        with asked.watch.stage("trials"):
            run_trials(
                tuner,
                _recorded(folder, measurer, asked.environment.observer),
                base=base,
                budget=study.trials,
                clock=asked.environment.clock,
                observer=asked.environment.observer,
            )
    except KeyboardInterrupt:
        _tell(asked, "stopped", f"hosts are as they were; go on with --resume {folder.path}")
        raise
    return study, tuner.report()


def _recorded(folder: RunFolder, measurer: Measurer, observer: Observer) -> Callable[[Trial, ShardPolicy], Outcome]:
    (folder.path / _TRIALS).mkdir(mode=0o700, exist_ok=True)

    def measure(trial: Trial, policy: ShardPolicy) -> Outcome:
        found = measurer.measure(policy, fidelity=trial.fidelity, seed=trial.seed)
        folder.write(f"{_TRIALS}/{trial.number:03}", found)
        if why := _against(found.verdict):
            observer(Event("tune.verdict.failed", message=why, data={"trial": trial.number}))
        return found.outcome

    return measure


def _against(verdict: Verdict) -> str:
    """What speaks against a trial first, with its place; "" when nothing does."""
    if verdict.status is VerdictStatus.FAIL:
        first = verdict.findings[0]
        return f"{first.cause} at {first.place or first.device}: {first.evidence}"
    return next(iter(verdict.invalid), "") if verdict.status is VerdictStatus.INVALID else ""


def _study(setting: Setting, options: TuneOptions, path: MeasuredPath) -> Study:
    asked = setting.asked
    return Study(
        fabric=asked.loaded.fabric.name,
        fabric_digest=digest_of(asked.plan),
        goal=options.goal,
        limits=options.limits,
        trials=options.trials,
        seconds=options.seconds,
        profile=options.profile,
        scratch=options.scratch,
        gentle=options.gentle,
        hosts=asked.hosts,
        seed=secrets.randbits(31) if options.seed is None else options.seed,
        model=path.model,
        space=path.space,
        notes=path.notes,
    )


def _as_of(study: Study, options: TuneOptions) -> TuneOptions:
    """What shapes a study is the study's own; how hosts are checked may differ."""
    return replace(
        options,
        goal=study.goal,
        trials=study.trials,
        seconds=study.seconds,
        profile=study.profile,
        scratch=study.scratch,
        gentle=study.gentle,
    )


def _same(study: Study, asked: Asked, folder: RunFolder) -> None:
    now = (asked.loaded.fabric.name, digest_of(asked.plan), asked.hosts)
    then = (study.fabric, study.fabric_digest, study.hosts)
    if now != then:
        raise FabricError(
            "the study is of another fabric, plan or choice of hosts",
            where=str(folder.path),
            found=f"{now[0]} {now[1]}, {len(now[2])} hosts",
            expected=f"{then[0]} {then[1]}, {len(then[2])} hosts",
            remedy="Begin a new study: what was measured on another plan does not compare.",
        )


# --- the profile ----------------------------------------------------------------------------------------------------


def _profile(asked: Asked, folder: RunFolder, study: Study, report: TuneReport) -> ShardProfile:
    stamp = Conditions(
        tuned_unix_s=round(asked.environment.clock.unix_s()),
        tool=f"fabricctl {__version__}",
        fabric_digest=study.fabric_digest,
        workload=asked.profile.name,
        run=folder.path.name,
    )
    return make_profile(report, study.model, stamp, _base(asked))


def _base(asked: Asked) -> ShardPolicy:
    """What is not tuned: as the inventory has it where its hosts agree, else the default."""
    own = {one.shard_profile for one in asked.loaded.fabric.hosts if one.name in asked.hosts}
    found = own.pop() if len(own) == 1 else None
    return ShardPolicy() if found is None else found.policy


def _edits(asked: Asked, profile: ShardProfile, hosts: tuple[str, ...]) -> tuple[FileEdit, ...]:
    everybody = {one.name for one in asked.loaded.fabric.hosts}
    return edits_of(asked.request.sources, profile, hosts, is_all=everybody == set(hosts))


def _write(asked: Asked, edits: tuple[FileEdit, ...], profile: ShardProfile, hosts: tuple[str, ...]) -> None:
    """Writes the edits, and takes them back where Ansible then reads something else."""
    write_edits(edits)
    try:
        loaded = load_intent(asked.request, asked.environment, Stopwatch(asked.environment.clock))
        other = [one.name for one in loaded.fabric.hosts if one.name in hosts and one.shard_profile != profile]
        if other:
            raise FabricError(
                f"another place of the inventory sets {VARIABLE}, and wins",
                where=", ".join(other),
                remedy="Take it away there, or set it by hand. The files are as they were.",
            )
    except FabricError:
        undo_edits(edits)
        raise


# --- whether it still holds -----------------------------------------------------------------------------------------


def check_profile(request: Request, environment: Environment, options: TuneOptions) -> Checked:
    """Returns whether the profile that hosts have still holds, by one trial of its policy.

    Raises:
        IntentError, PlanError: inventory or profile is wrong; nobody was contacted.
        FabricError: hosts have no profile, or several, or a host gave no result.
    """
    asked = asked_of(replace(request, hosts=True), environment, load_options(options))
    folder = RunFolder.create(request.runs, "tune-check", environment.clock.unix_s())
    folder.write("fabric", asked.loaded.fabric)
    with opened(asked, folder) as setting:
        profile, where = _deployed(setting)
        prechecks = prechecked(setting)
        if is_refused(prechecks) and not options.go_on:
            return Checked(conclude_refused(asked, folder, prechecks))
        expansion = expanded(setting)
        path = measured_path(setting, expansion)
        measurer = ready(setting, expansion, options.goal, options.seconds)
        _tell(asked, "check", f"one trial of the profile of {where}")
        with asked.watch.stage("trial"):
            found = measurer.measure(profile.policy)
    folder.write("trial", found)
    conditions = profile.conditions or Conditions()
    why = no_longer_holds(conditions, path.model, found.outcome, options.limits, fabric_digest=digest_of(asked.plan))
    folder.write_text(_PROFILE, profile_to_text(profile))
    return conclude_check(asked, folder, found.outcome, why, prechecks)


def _deployed(setting: Setting) -> tuple[ShardProfile, str]:
    """The profile that stands on hosts; where none does, that of the inventory."""
    asked = setting.asked
    machines = [one for one in asked.machines if one.name in asked.hosts]
    there = {*deployed_profiles(setting.ways, machines).values()}
    where = "the hosts"
    if not there:
        where = "the inventory"
        own = (one.shard_profile for one in asked.loaded.fabric.hosts if one.name in asked.hosts)
        there = {one for one in own if one is not None}
    if len(there) != 1:
        raise FabricError(
            "there is no profile to check" if not there else "hosts have several profiles",
            where=", ".join(asked.hosts),
            expected=f"one profile, in {PROFILE_PATH} or as {VARIABLE}",
            remedy="Tune and provision first." if not there else "Check them apart, with --limit.",
        )
    return there.pop(), where


def _tell(asked: Asked, stage: str, message: str) -> None:
    asked.environment.observer(Event(f"tune.{stage}.started", message=message))
