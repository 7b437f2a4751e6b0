"""Three ways: what a run did is undone where it still stands; what others changed since stays theirs. Pure.

Three trees: `base` is what the run left, `theirs` what runs now, `wanted` what stood before the run. Only what the run
changed (base against wanted) is ever restored. The unit is the smallest part of which half would make no sense, a row
of CONFIG_DB or a profile: it is restored whole or kept whole. A unit that others changed is kept. Then the outcome is
judged by the network OS's own check (`Flaw`): a restoration that would break what is kept, such as the removal of a
profile that somebody's row names, is left out too, and so on until nothing breaks that was whole.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fabric.diff.model import Change, DiffRules, IntendedConfig, Op, Pattern
from fabric.diff.remediation import future
from fabric.tree import Path, Tree, Value

__all__ = ("NOTHING", "Flaw", "Kept", "Merge", "State", "Unit", "Units", "exactly", "merge")

State: TypeAlias = tuple[Value, ...]
"""What stands at a path: its one value, or nothing."""

NOTHING: Final[State] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """Paths that are restored together or not at all.

    Attributes:
        rows: containers that belong to the unit alone: where the run made or removed one, whatever else somebody put
            into it is a change of the unit.
    """

    paths: tuple[Path, ...]
    rows: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something in one configuration that does not hold together.

    Attributes:
        text: what it is, for people.
        paths: the paths or containers concerned; restoring one of them may have made it.
    """

    text: str
    paths: tuple[Path, ...]


Units: TypeAlias = Callable[[Collection[Path]], Sequence[Unit]]
"""Divides paths into units: each path in exactly one."""

Flaws: TypeAlias = Callable[[Tree], Collection[Flaw]]


@dataclass(frozen=True, slots=True)
class Kept:
    """A path that the run changed, or that lies in what it made, and that is not restored.

    Attributes:
        base: what the run left. now: what stands there. wanted: what stood there before the run.
        because: why it is kept although it is as the run left it; "" when somebody changed it.
    """

    path: Path
    base: State
    now: State
    wanted: State
    because: str = ""


@dataclass(frozen=True, slots=True)
class Merge:
    """What a rollback does to one device, and what it leaves.

    Attributes:
        hold: paths that get their value back. gone: paths that go.
        kept: what is not restored, in the order of the run's changes.
    """

    hold: Tree
    gone: tuple[Path, ...]
    kept: tuple[Kept, ...] = ()

    def intended(self, device: str, nos: str) -> IntendedConfig:
        """Returns the restored part as an intent: `diff.changes` makes the way there."""
        return IntendedConfig(device=device, nos=nos, tree=self.hold, owned=exactly(self.gone))


def merge(
    base: Tree,
    theirs: Tree,
    wanted: Tree,
    rules: DiffRules,
    *,
    units: Units,
    flaws: Flaws,
    known: Collection[Flaw] = (),
) -> Merge:
    """Returns what of the run can be undone on a device that others may have changed.

    Args:
        base: what the run left, as far as it owned it.
        theirs: the whole running configuration.
        wanted: what stood before the run, as far as it owned it.
        rules: which values are the same.
        units: the network OS's division.
        flaws: the network OS's check of one configuration.
        known: flaws that the device had before the run: to come back to them is no harm.
    """
    sides = _Sides(_Side(base), _Side(theirs), _Side(wanted), rules)
    divided = units(sides.touched())
    kept = dict.fromkeys(sides.changed_by_others(divided), "")
    tolerated: frozenset[Flaw] | None = None
    while True:
        going = [unit for unit in divided if unit not in kept and any(map(sides.is_open, unit.paths))]
        steps = sides.steps(path for unit in going for path in unit.paths)
        if not going:
            break
        if tolerated is None:
            tolerated = frozenset((*flaws(theirs), *known))
        broken = [flaw for flaw in flaws(future(theirs, steps)) if flaw not in tolerated]
        if not broken:
            break
        concerned = {unit: flaw.text for flaw in reversed(broken) for unit in going if _concerns(flaw, unit)}
        kept |= concerned or dict.fromkeys(going, broken[0].text)
    return Merge(
        hold=Tree({one.path: one.after for one in steps if one.op is not Op.REMOVE}),
        gone=tuple(one.path for one in steps if one.op is Op.REMOVE),
        kept=tuple(sides.told(kept)),
    )


def exactly(paths: Iterable[Path]) -> tuple[Pattern, ...]:
    """Returns patterns that match these paths and no other, few of them: each is tried on every path of a device."""
    leaves: dict[Path, list[str]] = {}
    for path in paths:
        leaves.setdefault(path[:-1], []).append(path[-1])
    alike: dict[tuple[Path, tuple[str, ...]], list[str]] = {}
    for parent, names in leaves.items():
        alike.setdefault((parent[:-1], tuple(names)), []).extend(parent[-1:])
    return tuple(
        (*map(re.escape, above), *((_any_of(parents),) if parents else ()), _any_of(names))
        for (above, names), parents in alike.items()
    )


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in names)


def _concerns(flaw: Flaw, unit: Unit) -> bool:
    return any(_related(one, path) for one in flaw.paths for path in unit.paths)


def _related(one: Path, other: Path) -> bool:
    depth = min(len(one), len(other))
    return one[:depth] == other[:depth]


class _Side:
    """One tree, with what it implies: a container stands where something stands below it."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.containers = tree.containers()

    def state(self, path: Path) -> State:
        if path in self.tree:
            return (self.tree[path],)
        return (None,) if path in self.containers else NOTHING

    def has(self, path: Path) -> bool:
        return path in self.tree or path in self.containers


class _Sides:
    def __init__(self, base: _Side, theirs: _Side, wanted: _Side, rules: DiffRules) -> None:
        self.base = base
        self.theirs = theirs
        self.wanted = wanted
        self._rules = rules

    def touched(self) -> tuple[Path, ...]:
        """Returns the paths that the run changed."""
        every = dict.fromkeys((*self.base.tree, *self.wanted.tree))
        return tuple(path for path in every if not self._alike(path, self.base, self.wanted))

    def is_open(self, path: Path) -> bool:
        """Returns whether the path is not as before the run."""
        return not self._alike(path, self.theirs, self.wanted)

    def changed_by_others(self, units: Sequence[Unit]) -> Iterator[Unit]:
        strange = self._strangers(units)
        for unit in units:
            moved = any(self._is_theirs(path) or self._is_homeless(path) for path in unit.paths)
            if moved or any(row in strange for row in unit.rows):
                yield unit

    def steps(self, paths: Iterable[Path]) -> tuple[Change, ...]:
        """Returns the restoration of `paths`, in no order; a row that stood empty comes back as one."""
        steps = [self._step(path) for path in paths if self.is_open(path)]
        after = _Side(future(self.theirs.tree, steps))
        above = {one.path[:depth] for one in steps for depth in range(1, len(one.path))}
        empty = (path for path in self.wanted.tree if path in above and not after.has(path))
        return (*steps, *(Change(op=Op.ADD, path=path, after=self.wanted.tree[path]) for path in empty))

    def told(self, kept: Mapping[Unit, str]) -> Iterator[Kept]:
        strange = self._strangers(tuple(kept))
        for unit, because in kept.items():
            added = [path for row in unit.rows for path in strange.get(row, ())]
            named = [path for path in (*unit.paths, *added) if self.is_open(path)]
            moved = [path for path in named if not self._alike(path, self.base, self.theirs)]
            reason = because or f"it belongs together with {' / '.join(moved[0] if moved else unit.paths[0])}"
            for path in named:
                states = (self.base.state(path), self.theirs.state(path), self.wanted.state(path))
                yield Kept(path, *states, because="" if path in moved else reason)

    def _step(self, path: Path) -> Change:
        now, then = self.theirs.state(path), self.wanted.state(path)
        if not then:
            return Change(op=Op.REMOVE, path=path, before=now[0])
        if not now:
            return Change(op=Op.ADD, path=path, after=then[0])
        return Change(op=Op.REPLACE, path=path, before=now[0], after=then[0])

    def _alike(self, path: Path, one: _Side, other: _Side) -> bool:
        left, right = one.state(path), other.state(path)
        if not left or not right:
            return left == right
        return self._rules.same(path, left[0], right[0])

    def _is_theirs(self, path: Path) -> bool:
        filled = path in self.base.tree and path in self.theirs.containers and not self.wanted.has(path)
        return self.is_open(path) and (filled or not self._alike(path, self.base, self.theirs))

    def _is_homeless(self, path: Path) -> bool:
        """Returns whether others removed a container that the path would come back to."""
        homes = (path[:depth] for depth in range(1, len(path)))
        gone = any(self.base.has(home) and self.wanted.has(home) and not self.theirs.has(home) for home in homes)
        return gone and self.is_open(path)

    def _strangers(self, units: Sequence[Unit]) -> Mapping[Path, list[Path]]:
        """Returns what others put into a row that the run made or removed, by row."""
        rows = {row for unit in units for row in unit.rows if not (self.base.has(row) and self.wanted.has(row))}
        depths = sorted({len(row) for row in rows})
        found: dict[Path, list[Path]] = {}
        for path in self.theirs.tree:
            for depth in depths:
                row = path[:depth]
                if row in rows and not self.base.has(path) and not self.wanted.has(path):
                    found.setdefault(row, []).append(path)
        return found
