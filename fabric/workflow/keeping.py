"""What a rollback leaves on a switch, in words: whose it is now, or who needs it."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from fabric.diff import Kept, Op, State
from fabric.plan.model import Note
from fabric.tree import Path
from fabric.workflow.design import DeviceChange
from fabric.workflow.difftext import named, value_text
from fabric.workflow.laterruns import Later
from fabric.workflow.summary import KEPT_NEEDED, KEPT_THEIRS

__all__ = ("notes_on_kept",)


def notes_on_kept(back: DeviceChange, later: Sequence[Later] = ()) -> tuple[Note, ...]:
    """Returns one note for neighbouring paths below one parent that are kept for one reason.

    Args:
        back: the way back of a run.
        later: what runs after it did there, oldest first: the newest whose value stands is named.
    """
    rows = [(one, _author(one, later)) for one in back.kept]
    return tuple(
        _note(parent, because, author, [one for one, _ in group])
        for (parent, because, author), group in groupby(
            rows, key=lambda row: (row[0].path[:-1], row[0].because, row[1])
        )
    )


def _note(parent: Path, because: str, author: str, group: Sequence[Kept]) -> Note:
    told = "; ".join(_told(group, is_theirs=not because))
    where = " / ".join(parent)
    text = f"{where}: {told}" if where else told
    if because:
        return Note(KEPT_NEEDED, f"{text}; kept, since {because}")
    return Note(KEPT_THEIRS, f"{text}; put there by {author}" if author else text)


def _told(group: Sequence[Kept], *, is_theirs: bool) -> Iterator[str]:
    alike: dict[tuple[State, State, State], list[str]] = {}
    for one in group:
        alike.setdefault((one.base, one.now, one.wanted), []).append(one.path[-1])
    for (base, now, wanted), names in alike.items():
        changed = f", now {_said(now)}" if is_theirs else ""
        yield f"{named(names)}: the run left {_said(base)}{changed}, before the run {_said(wanted)}"


def _said(state: State) -> str:
    if not state:
        return "nothing"
    return value_text(state[0]) or "it"


def _author(kept: Kept, later: Sequence[Later]) -> str:
    """Returns the newest run that left what stands there, "" when none did."""
    if kept.because:
        return ""
    for one in reversed(later):
        for step in reversed(one.change.changes.forward):
            if step.path == kept.path:
                return one.run if kept.now == (() if step.op is Op.REMOVE else (step.after,)) else ""
    return ""
