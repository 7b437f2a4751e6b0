"""How a transaction is brought to a state: the shortest way through the product's own table whose turns can be caused.

A turn is an answer other than OK. Each has a real cause: a fault of the lab that strikes in that step, Ctrl-C, or a
comparison that finds the device wrong. A state that no way leads to has a reason, which is the row's.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fabric.lab import Fault, FaultKind, Front
from fabric.push.transaction import ENDS, TABLE, Kind, State
from tests.faults.subjects import Subject

__all__ = ("CAUSES", "Cause", "Steps", "shortest", "way_to", "why_unreached")

Steps = tuple[tuple[State, Kind], ...]
"""The states before the target, each with the answer that leads on."""


@dataclass(frozen=True)
class Cause:
    """What makes a step answer otherwise than OK.

    Attributes:
        arm: prepares the device; None when nothing of it is concerned.
        planted: the comparison of this step finds the device wrong.
        stops: the run is stopped, as by Ctrl-C.
        needs: what the step must do for the cause to work: see `Subject.needs`.
    """

    arm: Callable[[Front], None] | None = None
    planted: bool = False
    stops: bool = False
    needs: str = ""


def _faults(*faults: Fault) -> Callable[[Front], None]:
    def arm(front: Front) -> None:
        for one in faults:
            front.add_fault(one)

    return arm


_EVERY: Final = _faults(Fault(FaultKind.DROP_AT, nth=0))
CAUSES: Final[Mapping[tuple[State, Kind], Cause]] = {
    (State.STAGING, Kind.LOST): Cause(lambda front: front.restart()),
    (State.DECIDING, Kind.FAILED): Cause(stops=True),
    (State.COMMITTING, Kind.LOST): Cause(_EVERY, needs="command"),
    (State.VERIFYING, Kind.FAILED): Cause(planted=True),
    (State.CONFIRMING, Kind.LOST): Cause(_EVERY, needs="command"),
    (State.VERIFYING_AGAIN, Kind.FAILED): Cause(planted=True),
    (State.SAVING, Kind.LOST): Cause(_faults(Fault(FaultKind.DROP_AFTER, nth=1)), needs="command"),
    (State.SAVING, Kind.FAILED): Cause(_faults(Fault(FaultKind.REFUSE, times=1)), needs="command"),
    (State.SAVING_LATE, Kind.LOST): Cause(_EVERY, needs="command"),
    (State.SAVING_LAST, Kind.LOST): Cause(_EVERY, needs="command"),
    (State.LOOKING_CONFIRMED, Kind.INTENDED): Cause(),  # the confirmation arrived: nothing needs to be done for it
    (State.LOOKING_UNSAVED, Kind.INTENDED): Cause(),  # likewise
}


_NEVER: Final = {(State.LOOKING_CONFIRMED, Kind.OK), (State.LOOKING_UNSAVED, Kind.OK)}


def way_to(subject: Subject, target: State) -> Steps | None:
    """Returns the shortest way to `target` that can be caused with this subject, or None."""

    def can(state: State, kind: Kind) -> bool:
        cause = CAUSES.get((state, kind))
        needs = subject.needs_at.get(state, subject.needs.get(TABLE[state].action, frozenset()))
        return cause is not None and (not cause.needs or cause.needs in needs)

    return shortest(target, can)


def shortest(target: State, can: Callable[[State, Kind], bool]) -> Steps | None:
    """Returns the shortest way to `target` by OK and by the answers that `can` be caused."""
    queue: deque[tuple[State, Steps]] = deque([(State.OPENING, ())])
    seen = {State.OPENING}
    while queue:
        state, steps = queue.popleft()
        if state is target:
            return steps
        if state in ENDS:
            continue
        row = TABLE[state]
        turns = [(kind, row.next(kind)) for kind in Kind if kind is not Kind.OK and can(state, kind)]
        for kind, following in [(Kind.OK, row.ok), *turns]:
            # after a lost save the device is as intended: a look there never finds it as before
            if following not in seen and (state, kind) not in _NEVER:
                seen.add(following)
                queue.append((following, (*steps, (state, kind))))
    return None


def why_unreached(subject: Subject, target: State) -> str:
    """Returns why no way leads to `target`, "" where one does."""
    if way_to(subject, target) is not None:
        return ""
    entered = [(state, kind) for state, row in TABLE.items() for kind in Kind if _leads(state, kind, target)]
    if subject.is_dry:
        return "a rehearsal does not come here: what comes after the commit sends nothing that could be lost or refused"
    return f"nothing in the lab makes a step answer so: {', '.join(f'{one} {kind}' for one, kind in entered)}"


def _leads(state: State, kind: Kind, target: State) -> bool:
    row = TABLE[state]
    return (kind is not Kind.INTENDED or row.intended is not None) and row.next(kind) is target
