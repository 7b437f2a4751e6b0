"""The rows of the device in memory: its own kinds of fault, no socket, and a clock that stands still."""

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from fabric.clock import FakeClock
from fabric.observe import Event
from fabric.push.fanout import Stop
from fabric.push.jobs import DeviceJob, PushOptions
from fabric.push.provision import push_all
from fabric.push.session import StagedChange
from fabric.push.sessions.memory import Fault, FaultKind, MemoryDevice, MemorySession
from fabric.push.transaction import TABLE, Action, Kind, State
from fabric.state import DeviceResult, Outcome
from tests.faults.steering import shortest

__all__ = ("MemoryRow", "MemoryRun", "memory_rows", "run_memory_row", "why_not_in_memory")

_BEFORE: Final = "a 1\nb 1"
_AFTER: Final = "a 2\nb 2"
_CONFIRM_S: Final = 60
_EVERY: Final = 0
_VERBS: Final = {
    **{action: action.value for action in Action},
    Action.REOPEN: "open",
    Action.READ: "fetch",
    Action.VERIFY: "fetch",
    Action.LOOK: "fetch",
    Action.CHECK: "",
    Action.DECIDE: "",
    Action.WAIT: "",
}
_ONLY: Final = {
    FaultKind.HALF_DONE: (Action.COMMIT, "only a commit is done in part"),
    FaultKind.TIMER_DEAD: (Action.COMMIT, "only a commit starts a timer"),
    FaultKind.ROLLBACK_REFUSED: (Action.REVERT, "the step takes nothing back"),
}
_CAUSES: Final[dict[tuple[State, Kind], FaultKind | None]] = {
    (State.STAGING, Kind.LOST): FaultKind.LOST_BEFORE,
    (State.DECIDING, Kind.FAILED): None,
    (State.COMMITTING, Kind.LOST): FaultKind.LOST_BEFORE,
    (State.VERIFYING, Kind.FAILED): None,
    (State.CONFIRMING, Kind.LOST): FaultKind.LOST_BEFORE,
    (State.VERIFYING_AGAIN, Kind.FAILED): None,
    (State.SAVING, Kind.LOST): FaultKind.LOST_AFTER,
    (State.SAVING, Kind.FAILED): FaultKind.REJECTED,
    (State.SAVING_LATE, Kind.LOST): FaultKind.LOST_BEFORE,
    (State.SAVING_LAST, Kind.LOST): FaultKind.LOST_BEFORE,
    (State.LOOKING_CONFIRMED, Kind.INTENDED): None,
    (State.LOOKING_UNSAVED, Kind.INTENDED): None,
}


@dataclass(frozen=True, order=True)
class MemoryRow:
    """One combination."""

    state: State
    kind: FaultKind
    subject: str = "memory"

    def __str__(self) -> str:
        return f"{self.subject} {self.state.value} {self.kind.value}"


@dataclass(frozen=True)
class MemoryRun:
    """As `rows.Run`."""

    position: int
    struck: bool
    ended: str
    said: str
    played: bool = False
    later: str = ""
    wrong: str = ""


def memory_rows() -> tuple[MemoryRow, ...]:
    """Returns the cross product."""
    return tuple(MemoryRow(state, kind) for state in TABLE for kind in FaultKind)


def why_not_in_memory(row: MemoryRow) -> str:
    """Returns why the combination cannot be, "" if it can."""
    action = TABLE[row.state].action
    if not _VERBS[action]:
        return "the step does nothing with the device"
    if row.kind is FaultKind.DENIED:
        return "" if _VERBS[action] == "open" else "the step does not log in"
    only, why = _ONLY.get(row.kind, (action, ""))
    return "" if only is action else why


def run_memory_row(row: MemoryRow) -> tuple[MemoryRun, ...]:
    """Returns the runs of a row: the fault once, and as often as the step asks; none for one that cannot be."""
    if why_not_in_memory(row):
        return ()
    return tuple(_run(row, position) for position in (1, _EVERY))


@dataclass
class _Hook:
    row: MemoryRow
    position: int
    device: MemoryDevice
    stop: Stop
    turns: dict[State, Kind]
    state: State = State.OPENING
    planted: bool = False
    reached: bool = False
    calls: dict[str, int] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        self.state = State(str(event.data["state"]))
        self.planted, self.device.faults = False, ()
        if not event.name.endswith(".started"):
            return
        verb = _VERBS[TABLE[self.state].action]
        kind = None if self.reached else self.turns.get(self.state, Kind.OK)
        if self.state is self.row.state and not self.reached:
            self.reached = True
            nth = self.device.calls.get(verb, 0) + 1 if self.position else 0
            self.device.faults = (Fault(verb, self.row.kind, nth=nth, seconds=_CONFIRM_S + 1.0),)
        elif kind is not None and kind is not Kind.OK:
            cause = _CAUSES[self.state, kind]
            self.planted = self.state in {State.VERIFYING, State.VERIFYING_AGAIN}
            if self.state is State.DECIDING:
                self.stop.set()
            if cause is not None:
                self.device.faults = (Fault(verb, cause, nth=0),)


def _run(row: MemoryRow, position: int) -> MemoryRun:
    steps = shortest(row.state, lambda state, kind: (state, kind) in _CAUSES)
    if steps is None:
        raise ValueError(f"{row}: no way leads there")
    clock, stop = FakeClock(1_000_000.0), Stop()
    device = MemoryDevice("leaf1", _BEFORE, lambda _text, payload: payload, clock)
    hook = _Hook(row, position, device, stop, dict(steps))
    with tempfile.TemporaryDirectory() as folder:
        result = _push(device, hook, clock, Path(folder) / "state", stop)
        device.faults = ()
        run = MemoryRun(position, struck=hook.reached, ended=_where(device), said=result.outcome.value)
        return _judged(run, row, device, clock, result, Path(folder) / "state")


def _push(device: MemoryDevice, hook: _Hook | None, clock: FakeClock, state_dir: Path, stop: Stop) -> DeviceResult:
    def verify(text: str) -> str:
        if hook is not None and hook.planted:
            return "the test says so"
        return "" if text == _AFTER else "it is another configuration"

    job = DeviceJob(
        device=device.name,
        nos="memory",
        make_session=lambda: MemorySession(device),
        change=StagedChange("t1", _AFTER, _BEFORE),
        check_base=lambda text: "" if text == _BEFORE else "it is another configuration",
        verify=verify,
    )
    options = PushOptions(run="r1" if hook else "r2", owner="anna", confirm_s=_CONFIRM_S)
    hears = hook or (lambda _event: None)
    (result,) = push_all([job], options=options, clock=clock, state_dir=state_dir, observer=hears, stop=stop)
    return result


def _where(device: MemoryDevice) -> str:
    device.tick()
    names = {_AFTER: "intended", _BEFORE: "before"}
    running, startup = names.get(device.running, "neither"), names.get(device.startup, "neither")
    return running if running == startup else f"running {running}, saved {startup}"


def _judged(
    run: MemoryRun, row: MemoryRow, device: MemoryDevice, clock: FakeClock, result: DeviceResult, state_dir: Path
) -> MemoryRun:
    if not run.struck:
        return replace(run, wrong=f"the state was not reached: {result.error}")
    match result.outcome:
        case Outcome.COMMITTED:
            return run if run.ended == "intended" else replace(run, wrong="committed, and it is not as intended")
        case Outcome.ROLLBACK_FAILED:
            allowed = TABLE[row.state].action is Action.REVERT
            session = MemorySession(device)
            session.open()
            session.revert(StagedChange("t1", _AFTER, _BEFORE))
            after = _where(device)
            wrong = "" if allowed and after == "before" and "revert t1" in result.remedy else f"{after}: {result.error}"
            return replace(run, played=True, wrong=wrong)
        case Outcome.UNCERTAIN:
            clock.sleep_s(2.0 * _CONFIRM_S)
            settled = _where(device)
            second = _push(device, None, clock, state_dir, Stop())
            ended = _where(device)
            fine = settled in {"before", "intended", "running intended, saved before"} and ended == "intended"
            later = f"{second.outcome.value}: {ended}"
            return replace(run, ended=settled, later=later, wrong="" if fine else f"{settled}, then {later}")
        case _:
            return run if run.ended == "before" else replace(run, wrong=f"{run.said}, and it is {run.ended}")
