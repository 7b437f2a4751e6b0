"""What other people do to a device between a run and its rollback: edits of what the run left, and beside it."""

import random
from collections.abc import Collection, Sequence

from hypothesis import strategies as st

from fabric.diff import Change, Op
from fabric.tree import Path, Tree, Value

__all__ = ("SEEDS", "edits")

SEEDS = st.integers(0, 2**32)
"""Drawn once for each example: drawing every edit by itself takes longer than all that is tested."""


def edits(seed: int, left: Tree, before: Tree, touched: Sequence[Path], beside: Sequence[Change] = ()) -> list[Change]:
    """Returns up to five edits, each on another path.

    Args:
        seed: decides all.
        left: the device as the run left it.
        before: the device before the run.
        touched: paths that the run changed.
        beside: edits of what the run did not touch, to choose from.
    """
    source = random.Random(seed)  # noqa: S311  (test data, no secret)
    found: dict[Path, Change] = {}
    for _ in range(source.randint(1, 5)):
        path = source.choice(touched) if touched else ()
        kind = source.randrange(6)
        if kind == 0 and beside:
            step = source.choice(beside)
            found.setdefault(step.path, step)
        elif not path:
            continue
        elif kind == 1:  # the whole row, or the whole block
            row = path[: max(1, len(path) - 1)]
            found |= {one: Change(Op.REMOVE, one, before=left[one]) for one in left.under(*row)}
        elif kind == 2 and path in before:  # put back by hand
            found[path] = _put(left, path, before[path])
        elif kind == 3 and path in left:
            found[path] = Change(Op.REMOVE, path, before=left[path])
        else:
            found[path] = _put(left, path, _other(source, left, path))
    return [one for one in found.values() if one.op is Op.REMOVE or left.get(one.path, ...) != one.after]


def _put(left: Tree, path: Path, value: Value) -> Change:
    if path in left:
        return Change(Op.REPLACE, path, before=left[path], after=value)
    return Change(Op.ADD, path, after=value)


def _other(source: random.Random, left: Tree, path: Path) -> Value:
    """Returns a value that stands under the same name elsewhere, or a number beside this one."""
    now = left.get(path)
    alike = _alike(left, path)
    if isinstance(now, str) and now.isdecimal() and (not alike or source.random() < 0.5):
        return str(int(now) + source.choice((1, 100)))
    return source.choice(alike) if alike else now


def _alike(left: Tree, path: Path) -> Sequence[Value]:
    found: Collection[Value] = dict.fromkeys(
        value for one, value in left.items() if (one[0], one[-1]) == (path[0], path[-1]) and one != path
    )
    return tuple(found)
