"""A change set as lines to type on EOS. Pure; knows how contexts are entered and left, and no transport.

Each context is closed by `exit`, so that the next line is read where it belongs: `priority-flow-control …` exists on
a port and device-wide.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from fabric.diff import Change, Op, future
from fabric.nos.eos.keys import line_of, place_of, undo_of
from fabric.nos.eos.lines import INDENT
from fabric.tree import Path, Tree

__all__ = ("payload",)

_PROFILE: Final = "qos profile "
_OPENS_CONTEXT: Final = ("interface ", _PROFILE)


def payload(changes: Sequence[Change], running: Tree) -> str:
    """Returns the lines that make `changes` on a device that holds `running`, in order, or "" for none.

    A profile that loses all its lines is removed as a whole.
    """
    after = future(running, changes)
    left = after.containers() | set(after)
    lines: list[str] = []
    gone: set[Path] = set()
    for context, steps in groupby(changes, key=lambda one: _context(one)[:1]):
        if context and context[0].startswith(_PROFILE) and context not in left:
            lines += () if context in gone else (f"no {context[0]}",)
            gone.add(context)
        else:
            lines += _block((), list(steps), indent=0)
    return "".join(f"{line}\n" for line in lines)


def _context(change: Change) -> Path:
    return place_of(change.path)[0]


def _block(context: Path, steps: Sequence[Change], *, indent: int) -> Iterator[str]:
    """Yields the lines of one context: its own lines first, then each context nested in it, closed by `exit`."""
    for one in _merged([one for one in steps if _context(one) == context]):
        yield from _typed(one, " " * indent)
    below = [one for one in steps if _context(one) != context]
    for name in dict.fromkeys(one.path[len(context)] for one in below):
        yield " " * indent + name
        inner = [one for one in below if one.path[len(context)] == name]
        yield from _block((*context, name), inner, indent=indent + INDENT)
        yield " " * indent + "exit"


def _merged(steps: Sequence[Change]) -> Iterator[Change]:
    """Yields the steps, neighbours that put members of one map to one value as one: `qos map dscp 24 25 to …`."""

    def kind(one: Change) -> tuple[object, ...]:
        is_map = one.op is not Op.REMOVE and len(place_of(one.path)[1]) > 1
        return (one.path[0], one.after) if is_map else (one.path, one.op)

    for _, group in groupby(steps, key=kind):
        same = list(group)
        members = " ".join(one.path[-1] for one in same)
        yield same[0] if len(same) == 1 else replace(same[0], path=(same[0].path[0], members))


def _typed(change: Change, margin: str) -> Iterator[str]:
    if change.op is Op.REMOVE:
        yield margin + undo_of(change.path, change.before)
        return
    line = line_of(change.path, change.after)
    yield margin + line
    yield from change.after if isinstance(change.after, tuple) else ()
    if line.startswith(_OPENS_CONTEXT):
        yield margin + "exit"
