"""The ordered way from running to intended, and back. Pure: trees and rules in, a change set out.

What is foreign stays: only paths that the intent names, or that match an owned pattern, ever change. Additions and
replacements come first, in the network OS's order (a map before its binding); removals follow in reverse
order, so that nothing is removed while something still refers to it. The way back is the exact mirror.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence

from fabric.diff.model import Change, ChangeSet, DiffRules, IntendedConfig, Op, matcher, matches
from fabric.serial import to_json
from fabric.tree import Path, Tree, Value

__all__ = ("changes", "digest", "future", "owned_part", "rollback_of")


def changes(
    running: Tree,
    intended: IntendedConfig,
    rules: DiffRules,
    *,
    adopt: bool = False,
    outside_ports: tuple[str, ...] = (),
) -> ChangeSet:
    """Returns the change set that makes `running` hold `intended`.

    Args:
        running: the whole running configuration.
        intended: what shall stand there, and which patterns are ours.
        rules: the network OS's order.
        adopt: device-wide paths may change; else their changes are held back.
        outside_ports: ports outside the intent that feel device-wide paths, for the record.
    """
    wanted = [*_removals(running, intended), *_puts(running, intended, rules)]
    is_wide = matcher(intended.device_wide)
    allowed = [one for one in wanted if adopt or not is_wide(one.path)]
    held_back = [one for one in wanted if not (adopt or not is_wide(one.path))]
    forward = _emptied_last(_in_order(allowed, rules), running)
    wide = any(is_wide(one.path) for one in wanted)
    return ChangeSet(
        device=intended.device,
        nos=intended.nos,
        forward=tuple(forward),
        backward=rollback_of(running, forward),
        held_back=tuple(_in_order(held_back, rules)),
        outside_ports=outside_ports if wide else (),
        disruptive=_disruptive(forward, rules),
        base_digest=digest(owned_part(running, intended)),
    )


def future(tree: Tree, steps: Iterable[Change]) -> Tree:
    """Returns the configuration after `steps`: `future(running, forward)` holds the intended paths.

    A container that gets its first child stops having a path of its own (see `fabric.tree`).
    """
    put: dict[Path, Value] = {}
    drop: list[Path] = []
    for step in steps:
        if step.op is Op.REMOVE:
            put.pop(step.path, None)
            drop.append(step.path)
        else:
            put[step.path] = step.after
    filled = {up for path in put for up in _ancestors(path) if up in tree and up not in put}
    return tree.with_changes(put, drop=[*drop, *(filled - tree.containers())])


def rollback_of(running: Tree, forward: Sequence[Change]) -> tuple[Change, ...]:
    """Returns the changes that bring `future(running, forward)` back to `running`."""
    full = running.containers()
    mirror = [one.inverse for one in reversed(forward) if not (one.op is Op.ADD and one.path in full)]
    added = {one.path for one in forward if one.op is Op.ADD}
    filled = dict.fromkeys(up for path in added for up in _ancestors(path) if up in running)
    return (*mirror, *(Change(op=Op.ADD, path=up) for up in filled if up not in full))


def owned_part(running: Tree, intended: IntendedConfig) -> Tree:
    """Returns what of `running` is ours: the paths that the intent names or owns."""
    is_owned = matcher(intended.owned)
    return Tree({p: v for p, v in running.items() if p in intended.tree or is_owned(p)})


def digest(tree: Tree) -> str:
    """Returns the SHA-256 of a tree, whatever its order."""
    rows = sorted(json.dumps(to_json(pair)) for pair in tree.items())
    text = "\n".join(rows)
    return hashlib.sha256(text.encode()).hexdigest()


def _removals(running: Tree, intended: IntendedConfig) -> Iterable[Change]:
    is_owned = matcher(intended.owned)
    filled = intended.tree.containers()  # an empty container that is about to get children need not go
    for path, value in running.items():
        if path not in intended.tree and path not in filled and is_owned(path):
            yield Change(op=Op.REMOVE, path=path, before=value)


def _puts(running: Tree, intended: IntendedConfig, rules: DiffRules) -> Iterable[Change]:
    for path, value in intended.tree.items():
        if path not in running:
            yield Change(op=Op.ADD, path=path, after=value)
        elif not rules.same(path, running[path], value):
            yield Change(op=Op.REPLACE, path=path, before=running[path], after=value)


def _in_order(steps: Sequence[Change], rules: DiffRules) -> list[Change]:
    puts = [one for one in steps if one.op is not Op.REMOVE]
    removals = [one for one in steps if one.op is Op.REMOVE]
    puts.sort(key=lambda one: _rank(one.path, rules))
    removals.sort(key=lambda one: _rank(one.path, rules))
    return [*puts, *reversed(removals)]


def _emptied_last(steps: list[Change], running: Tree) -> list[Change]:
    """Returns the steps, behind them those that keep a container which the others empty: some devices drop it then."""
    bare = [one for one in steps if one.op is Op.ADD and one.after is None]
    full = running.containers() if bare else frozenset()
    emptied = {one.path for one in bare if one.path in full}
    return [*(one for one in steps if one.path not in emptied), *(one for one in bare if one.path in emptied)]


def _rank(path: Path, rules: DiffRules) -> int:
    ranks = (index for index, pattern in enumerate(rules.order) if matches(pattern, path))
    return next(ranks, len(rules.order))


def _disruptive(steps: Iterable[Change], rules: DiffRules) -> tuple[str, ...]:
    reasons = (reason for one in steps for pattern, reason in rules.disruptive if matches(pattern, one.path))
    return tuple(dict.fromkeys(reasons))


def _ancestors(path: Path) -> Iterable[Path]:
    return (path[:depth] for depth in range(1, len(path)))
