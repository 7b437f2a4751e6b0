"""What `diff` takes and returns. A network OS gives its ordering and negation as `DiffRules`: data, not code."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from fabric.tree import Path, Tree, Value

__all__ = ("Change", "ChangeSet", "DiffRules", "IntendedConfig", "Op", "Pattern", "matcher", "matches")

Pattern = tuple[str, ...]
"""One regular expression per path element, each matched whole; the last may be `**` for any rest."""


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


@lru_cache(maxsize=4096)
def _parts(pattern: Pattern) -> tuple[bool, tuple[Callable[[str], object], ...]]:
    """Returns whether any rest may follow, and what matches each element before it."""
    is_open = pattern[-1:] == ("**",)
    return is_open, tuple(_compiled(one).fullmatch for one in (pattern[:-1] if is_open else pattern))


def matches(pattern: Pattern, path: Path) -> bool:
    """Returns whether `path` is of `pattern`."""
    is_open, parts = _parts(pattern)
    if len(path) < len(parts) or not (is_open or len(path) == len(parts)):
        return False
    for fits, part in zip(parts, path, strict=False):  # noqa: SIM110  (a generator costs more than what it asks)
        if not fits(part):
            return False
    return True


def matcher(patterns: Iterable[Pattern]) -> Callable[[Path], bool]:
    """Returns what tells whether a path is of any of `patterns`: for the many paths of a whole configuration.

    Most of them share their first element and their length with others, so that each such kind is asked once which
    patterns are left.
    """
    known = tuple(patterns)
    by_kind: dict[tuple[str, int], tuple[Pattern, ...]] = {}

    def is_of_any(path: Path) -> bool:
        if not path:
            return any(matches(pattern, path) for pattern in known)
        kind = path[0], len(path)
        left = by_kind.get(kind)
        if left is None:
            left = by_kind[kind] = tuple(one for one in known if _may_fit(one, *kind))
        for pattern in left:  # noqa: SIM110  (as above)
            if matches(pattern, path):
                return True
        return False

    return is_of_any


def _may_fit(pattern: Pattern, first: str, length: int) -> bool:
    is_open, parts = _parts(pattern)
    if length < len(parts) or not (is_open or length == len(parts)):
        return False
    return not parts or bool(parts[0](first))


class Op(StrEnum):
    """What is done to one path."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that changes.

    Attributes:
        before: value now; meaningless when `op` is ADD. after: value then; meaningless when REMOVE.
    """

    op: Op
    path: Path
    before: Value = None
    after: Value = None

    @property
    def inverse(self) -> "Change":
        """Returns the change that undoes this one."""
        op = {Op.ADD: Op.REMOVE, Op.REMOVE: Op.ADD, Op.REPLACE: Op.REPLACE}[self.op]
        return Change(op=op, path=self.path, before=self.after, after=self.before)


@dataclass(frozen=True, slots=True)
class DiffRules:
    """How one network OS wants its changes.

    Attributes:
        order: patterns in the order in which additions must be made (a map before its binding). A path takes
            the place of the first pattern it is of; removals go in the reverse order, after all
            additions. A path that no pattern names goes between additions and removals.
        disruptive: patterns whose change interrupts traffic, with the reason.
        unsaid: patterns with a regular expression of what in their values may as well be left out, a default: values
            that differ in nothing else are the same. Such a value stays, and comes back, as it stood.
    """

    order: tuple[Pattern, ...]
    disruptive: tuple[tuple[Pattern, str], ...] = ()
    unsaid: tuple[tuple[Pattern, str], ...] = ()

    def same(self, path: Path, one: Value, other: Value) -> bool:
        """Returns whether two values at `path` say the same."""
        return one == other or self._said(path, one) == self._said(path, other)

    def _said(self, path: Path, value: Value) -> Value:
        if not isinstance(value, str):
            return value
        for pattern, default in self.unsaid:
            if matches(pattern, path):
                value = _compiled(default).sub("", value)
        return value


@dataclass(frozen=True, slots=True)
class IntendedConfig:
    """What shall stand on one device, and what of it is ours.

    Attributes:
        tree: the paths that must hold these values.
        owned: patterns of the paths that are ours: a running path of one of them that `tree` lacks goes away.
            Everything else is foreign and stays.
        device_wide: patterns of paths that ports outside the intent feel; held back unless adopted.
        text: the same in the device's own language, for people.
    """

    device: str
    nos: str
    tree: Tree
    owned: tuple[Pattern, ...]
    device_wide: tuple[Pattern, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """The ordered way from running to intended, and back.

    Attributes:
        forward: changes in order. backward: their undoing, in order.
        held_back: changes to device-wide paths that need `--adopt`.
        outside_ports: ports outside the intent that feel the device-wide changes.
        disruptive: reasons why applying this interrupts traffic; () if it does not.
        base_digest: SHA-256 of the owned part of the running tree that this was made from.
    """

    device: str
    nos: str
    forward: tuple[Change, ...] = ()
    backward: tuple[Change, ...] = ()
    held_back: tuple[Change, ...] = ()
    outside_ports: tuple[str, ...] = ()
    disruptive: tuple[str, ...] = ()
    base_digest: str = ""

    @property
    def empty(self) -> bool:
        """Returns whether there is nothing to do, and nothing held back."""
        return not self.forward and not self.held_back
