"""One row of the fault table: a subject, a state, a kind of fault. What it may strike, and how it is run and judged.

A fault strikes each command of the step alone, one run each; then every command of the step, until the step is over.
"""

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fabric.cli.exits import Exit, exit_of_verdict
from fabric.intent.access import DeviceAccess
from fabric.lab import Fault, FaultKind, Front
from fabric.nos import catalog
from fabric.observe import Event, Observer, silent
from fabric.push.fanout import Stop
from fabric.push.jobs import DeviceJob, PushOptions
from fabric.push.provision import push_all, rehearse_all
from fabric.push.transaction import TABLE, Action, Kind, State
from fabric.state import DeviceResult, Outcome
from fabric.workflow.outcomes import verdict_of
from tests.faults.clock import JumpClock
from tests.faults.steering import CAUSES, Steps, way_to, why_unreached
from tests.faults.subjects import BY_NAME, SUBJECTS, Need, Subject, configs, served

__all__ = ("EVERY", "Row", "Run", "all_rows", "run_row", "why_not")

EVERY: Final = 0
"""The position that stands for every command of the step."""

_CONFIRM_S: Final = 60
_TRIES: Final = 3  # a machine with too much to do misses time limits of SSH libraries, which are real seconds
_UNREACHED: Final = "the state was not reached"
_MOST: Final = 12  # commands of one step; a step that has more must say so here
_OUTAGE_S: Final = 0.4  # real: what ran out may have been a reload

_NEEDS: Final[dict[FaultKind, Need]] = {
    FaultKind.DROP_AT: "command",
    FaultKind.DROP_AFTER: "command",
    FaultKind.DROP_AFTER_COMMIT: "commit",
    FaultKind.REBOOT: "command",
    FaultKind.REBOOT_AFTER: "command",
    FaultKind.REFUSE: "command",
    FaultKind.DELAY: "command",
    FaultKind.WRONG_PROMPT: "prompt",
    FaultKind.DENY_AUTH: "login",
    FaultKind.REFUSE_REVERT: "revert",
}
_WHY: Final[dict[Need, str]] = {
    "command": "the step sends the device no command",
    "prompt": "the step waits for no prompt",
    "login": "the step does not log in",
    "commit": "no command of the step makes a change take effect",
    "revert": "no command of the step takes a change back",
}


@dataclass(frozen=True, order=True)
class Row:
    """One combination."""

    subject: str
    state: State
    kind: FaultKind

    def __str__(self) -> str:
        return f"{self.subject} {self.state.value} {self.kind.value}"


@dataclass(frozen=True)
class Run:
    """What came of one run of a row.

    Attributes:
        position: which command of the step the fault struck; EVERY for all of them.
        struck: whether it struck.
        ended: `intended` or `before`; anything else is a device that is neither.
        said: the outcome that the run told.
        played: recovery commands were typed, and the device was as before after them.
        wrong: why the row does not hold, "" if it does.
    """

    position: int
    struck: bool
    ended: str
    said: str
    played: bool = False
    later: str = ""
    wrong: str = ""


def all_rows() -> tuple[Row, ...]:
    """Returns the cross product."""
    return tuple(Row(one.name, state, kind) for one in SUBJECTS for state in TABLE for kind in FaultKind)


def why_not(row: Row) -> str:
    """Returns why the combination cannot be, "" if it can."""
    subject = BY_NAME[row.subject]
    if why := why_unreached(subject, row.state):
        return why
    need = _NEEDS.get(row.kind)
    return "" if need is None or need in _needs(subject, row.state) else _WHY[need]


def _needs(subject: Subject, state: State) -> frozenset[Need]:
    return subject.needs_at.get(state, subject.needs.get(TABLE[state].action, frozenset()))


def run_row(row: Row) -> tuple[Run, ...]:
    """Returns the runs of a row that can be reached: one for each command that the fault strikes, and one for all."""
    runs: list[Run] = []
    for position in range(1, _MOST + 1):
        run = _run(row, position)
        if not run.struck:
            break
        runs.append(run)
        if row.kind is FaultKind.NEW_HOST_KEY:  # keys are no command's: there is one run
            return tuple(runs)
    else:
        runs.append(replace(runs[-1], wrong=f"the step has more than {_MOST} commands"))
    if not runs:
        why = why_not(row)
        return (replace(run, wrong=run.wrong if why else "the fault did not strike, and nothing says why"),)
    # while the run waits the device's own timer takes its change back, at the moment when the fault is laid or after it
    is_by_timer = row.kind is FaultKind.REFUSE_REVERT and TABLE[row.state].action is Action.WAIT
    if why_not(row) and not is_by_timer:
        runs[0] = replace(runs[0], wrong=f"the fault struck although {why_not(row)}")
    return (*runs, _run(row, EVERY))


class _Hook:
    """Hears of each step before it is done: brings about the way to the state, and then the fault."""

    def __init__(self, row: Row, position: int, steps: Steps, front: Front, stop: Stop, clock: JumpClock) -> None:
        self.row = row
        self.position = position
        self.turns = dict(steps)
        self.front = front
        self.stop = stop
        self.clock = clock
        self.state = State.OPENING
        self.is_on_the_way = True
        self.reached = False
        self.struck = False
        self.planted = False
        self._strikes = 0

    def __call__(self, event: Event) -> None:
        _, _, phase = event.name.split(".")
        state = State(str(event.data["state"]))
        if phase == "started":
            self.state = state
            self._begin(state)
        else:
            self._end(state)

    def _begin(self, state: State) -> None:
        self.planted = False
        if state is self.row.state and not self.reached:
            self.reached, self.is_on_the_way = True, False
            self._strikes = self.front.strikes()
            self._arm()
        elif self.is_on_the_way and (kind := self.turns.get(state, Kind.OK)) is not Kind.OK:
            cause = CAUSES[state, kind]
            self.planted = cause.planted
            if cause.arm is not None:
                cause.arm(self.front)
            if cause.stops:
                self.stop.set()

    def _arm(self) -> None:
        kind, nth = self.row.kind, self.position
        if kind is FaultKind.NEW_HOST_KEY:
            self.front.restart(change_host_keys=True)
            self.struck = True
            return
        if kind is FaultKind.WRONG_PROMPT:
            self.clock.hurry = 50.0
        seconds = _CONFIRM_S + 1.0 if kind is FaultKind.DELAY else 0.0
        self.front.add_fault(Fault(kind, seconds=seconds, nth=max(nth, 0), times=1 if nth else 0))

    def _end(self, state: State) -> None:
        if state is self.row.state and self.reached:
            self.struck = self.struck or self.front.strikes() > self._strikes
            if self.row.kind is FaultKind.NEW_HOST_KEY:
                self.front.restart(change_host_keys=False, publish=True)  # somebody has looked, and accepts it
        self.clock.hurry = 1.0
        self.front.clear_faults()


def _run(row: Row, position: int) -> Run:
    for _ in range(_TRIES - 1):
        run = _once(row, position)
        if not run.wrong.startswith(_UNREACHED):
            return run
    return _once(row, position)


@dataclass
class _Stage:
    """One run while it goes on: the subject's device, the way to it, the clock of both, and where the state lies."""

    row: Row
    position: int
    subject: Subject
    front: Front
    how: DeviceAccess
    clock: JumpClock
    state_dir: Path

    def job(self, hook: _Hook | None) -> DeviceJob:
        def compare(expected: object) -> _Compare:
            return _Compare(self.subject, expected, hook)

        real = replace(self.subject, is_dry=False)
        return DeviceJob(
            device=self.how.device,
            nos=self.subject.nos,
            make_session=lambda: real.session(self.how, self.clock),
            change=self.subject.change,
            check_base=compare(self.subject.before),
            verify=compare(self.subject.intended),
            changes=1,
        )

    def push(self, hook: _Hook | None, stop: Stop, *, run: str) -> DeviceResult:
        options = PushOptions(
            run=run, owner="anna", confirm_s=_CONFIRM_S, allow_disruptive=True, settle_s=60.0, retry_s=2.0, margin_s=5.0
        )
        hears: Observer = hook or silent
        job = self.job(hook)
        if self.subject.is_dry:
            (result,) = rehearse_all(
                [(job, catalog.get(self.subject.nos).apply)],
                options=options,
                clock=self.clock,
                state_dir=self.state_dir,
                observer=hears,
                stop=stop,
            )
        else:
            (result,) = push_all(
                [job], options=options, clock=self.clock, state_dir=self.state_dir, observer=hears, stop=stop
            )
        return result

    def where(self) -> str:
        """Returns `intended` or `before` if running and saved configuration are so, else what each of them is."""
        names = [
            "intended" if one == self.subject.intended else "before" if one == self.subject.before else "neither"
            for one in configs(self.subject, self.front)
        ]
        return names[0] if names[0] == names[1] else f"running {names[0]}, saved {names[1]}"


@dataclass
class _Compare:
    subject: Subject
    expected: object
    hook: _Hook | None

    def __call__(self, text: str) -> str:
        if self.hook is not None and self.hook.planted and TABLE[self.hook.state].action is Action.VERIFY:
            return "the test says so"
        return "" if self.subject.canonical(text) == self.expected else "it is another configuration"


def _once(row: Row, position: int) -> Run:
    subject = BY_NAME[row.subject]
    steps = way_to(subject, row.state)
    if steps is None:
        raise ValueError(f"{row}: {why_not(row)}")
    clock, stop = JumpClock(), Stop()
    with tempfile.TemporaryDirectory() as folder, served(subject, Path(folder) / "lab", clock) as (front, how):
        stage = _Stage(row, position, subject, front, how, clock, Path(folder) / "state")
        hook = _Hook(row, position, steps, front, stop, clock)
        result = stage.push(hook, stop, run="r1")
        front.clear_faults()
        return _judged(stage, hook, result)


def _judged(stage: _Stage, hook: _Hook, result: DeviceResult) -> Run:
    run = Run(stage.position, hook.struck, stage.where(), result.outcome.value)
    if not hook.reached:
        return replace(run, wrong=f"{_UNREACHED}: {result.error}")
    match result.outcome:
        case Outcome.COMMITTED:
            expected = "intended"
        case Outcome.ROLLBACK_FAILED:
            return _recovered(run, stage, result)
        case Outcome.UNCERTAIN:
            return _asked_again(run, stage, result)
        case _:
            expected = "before"
    if run.ended != expected:
        return replace(run, wrong=f"{run.said}, and the device is {run.ended}")
    is_told = result.error or result.outcome is Outcome.COMMITTED or stage.subject.is_dry or not hook.struck
    return run if is_told else replace(run, wrong="it does not say what went wrong")


def _recovered(run: Run, stage: _Stage, result: DeviceResult) -> Run:
    """Holds a refused rollback to what is promised of it: only then, exit 4, the file, and commands that work."""
    row, subject = stage.row, stage.subject
    commands = tuple(line.strip() for line in result.remedy.split("\n") if line.startswith("  "))
    saved = Path(result.remedy.rsplit(": ", 1)[1])
    refused = row.kind in {FaultKind.REFUSE, FaultKind.REFUSE_REVERT}
    lasted = run.position == EVERY or row.kind is FaultKind.NEW_HOST_KEY  # every attempt of the step was lost
    if not (refused or lasted) or TABLE[row.state].action is not Action.REVERT:
        return replace(run, wrong=f"the device refused no rollback: {result.error}")
    if exit_of_verdict(verdict_of([result], (), ())) is not Exit.DEVICE:
        return replace(run, wrong="the exit code is not 4")
    if subject.canonical(saved.read_text()) != subject.before:
        return replace(run, wrong=f"{saved} does not hold the configuration from before")
    subject.play(stage.how, stage.clock, commands)
    stage.clock.sleep_s(2 * _CONFIRM_S)  # nothing that is armed yet may undo it
    after = stage.where()
    return replace(run, played=True, wrong="" if after == "before" else f"after the recovery commands it is {after}")


def _asked_again(run: Run, stage: _Stage, result: DeviceResult) -> Run:
    """Holds a device that nobody could look at to its own timer, and the next run to saying where it is."""
    stage.clock.sleep_s(2 * _CONFIRM_S)
    settled = stage.where()
    time.sleep(_OUTAGE_S)
    second = stage.push(None, Stop(), run="r2")
    ended = stage.where()
    run = replace(run, ended=settled, later=f"{second.outcome.value}: {ended}")
    if settled not in {"before", "intended", "running intended, saved before"}:
        return replace(run, wrong=f"nobody knows, and it is {settled}")
    if second.outcome not in {Outcome.COMMITTED, Outcome.UNCHANGED} or ended != "intended":
        return replace(run, wrong=f"the next run: {second.outcome.value}, {second.error}; the device is {ended}")
    return run if result.remedy else replace(run, wrong="it does not say what to do")
