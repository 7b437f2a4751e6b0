"""A finished run, backwards: each committed change set turned into the one that restores what stood there before.

Only what the run changed is restored, and only where it still stands: what others changed since stays theirs, and so
does what their changes need (`fabric.diff.threeway`). A strict reversal refuses such a device instead. Newer runs that
still stand are others too, and what they would need to be taken back in their turn is kept for them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from fabric.diff import Change, Flaw, IntendedConfig, Op, changes, future, matches, merge, owned_part
from fabric.errors import DriftError
from fabric.nos import Nos, RenderContext, catalog
from fabric.tree import Tree
from fabric.workflow.design import DeviceChange
from fabric.workflow.difftext import told

__all__ = ("reverse", "undone")

_NO_RUNS: Final[Mapping[str, DeviceChange]] = MappingProxyType({})


def reverse(
    change: DeviceChange, text: str, *, newer: Mapping[str, DeviceChange] = _NO_RUNS, strict: bool = False
) -> DeviceChange:
    """Returns the change that takes `change` back where it still stands; what it leaves is in `kept`.

    Args:
        change: what the run did.
        text: the running configuration now.
        newer: by name, what later runs did to this device, oldest first; no rollbacks.
        strict: nothing of what the run owned may have been changed since.

    Raises:
        DriftError: with `strict`, what the run owned is no longer as the run left it.
    """
    nos = catalog.get(change.nos)
    running = nos.tree(text)
    if strict:
        _refuse_drift(nos, change, running)
    base, wanted = _left_and_before(change)
    merged = merge(
        base,
        running,
        wanted,
        nos.rules,
        units=nos.units,
        flaws=lambda tree: _flaws(nos, tree, newer),
        known=change.flaws,
    )
    before = merged.intended(change.device, change.nos)
    back = changes(running, before, nos.rules, adopt=True)
    refused = nos.refusals(back.forward, running, RenderContext())
    back = replace(back, disruptive=(*back.disruptive, *refused))
    payload = nos.payload(back.forward, running) if back.forward else ""
    after = nos.tree(nos.apply(text, payload)) if payload else running
    return DeviceChange(
        device=change.device,
        nos=change.nos,
        intended=before,
        changes=back,
        owned_now=owned_part(running, before),
        payload=payload,
        rollback=nos.payload(back.backward, after) if back.backward else "",
        flaws=nos.flaws(running) if back.forward else (),
        kept=merged.kept,
    )


def undone(back: DeviceChange, text: str) -> tuple[Change, ...]:
    """Returns what of the way back is still missing in a configuration read anew."""
    nos = catalog.get(back.nos)
    return changes(nos.tree(text), back.intended, nos.rules, adopt=True).forward


def _left_and_before(change: DeviceChange) -> tuple[Tree, Tree]:
    """Returns what the run left and what stood before it, as far as it owned it, with rows that it filled."""
    steps = change.changes.backward
    empty = {one.path: one.after for one in steps if one.op is Op.ADD and one.after is None}
    missing = {path: value for path, value in empty.items() if path not in change.owned_now}
    before = change.owned_now.with_changes(missing)
    return future(before, change.changes.forward), before


def _flaws(nos: Nos, tree: Tree, newer: Mapping[str, DeviceChange]) -> tuple[Flaw, ...]:
    """Returns the flaws now, and those that would come when the newer runs are taken back, the newest first."""
    found = list(nos.flaws(tree))
    for name, run in reversed(tuple(newer.items())):
        tree = _without(nos, tree, run)
        found += [Flaw(f"{one.text}, once {name} is taken back", one.paths) for one in nos.flaws(tree)]
    return tuple(found)


def _without(nos: Nos, tree: Tree, run: DeviceChange) -> Tree:
    """Returns the tree with all undone that the run did and that still stands, whatever comes of it."""
    base, before = _left_and_before(run)
    left = merge(base, tree, before, nos.rules, units=nos.units, flaws=lambda _: ())
    return future(tree, changes(tree, left.intended(run.device, run.nos), nos.rules, adopt=True).forward)


def _refuse_drift(nos: Nos, change: DeviceChange, running: Tree) -> None:
    before = _as_it_was(change)
    left = future(change.owned_now, change.changes.forward)
    back = changes(running, before, nos.rules, adopt=True)
    drift = changes(owned_part(running, before), replace(before, tree=left), nos.rules, adopt=True)
    if back.forward and drift.forward:  # a device that is as before already needs nothing, however it came there
        raise DriftError(
            "the device has changed since that run, in what the run owns",
            where=change.device,
            found=told(drift.forward),
            remedy="Leave --strict away: then what others changed is kept, told, and the rest goes back.",
        )


def _as_it_was(change: DeviceChange) -> IntendedConfig:
    """Returns the owned part before the run, as an intent that owns all that the run put there."""
    intended = change.intended
    loose = [path for path in intended.tree if not any(matches(one, path) for one in intended.owned)]
    exact: Sequence[tuple[str, ...]] = [tuple(re.escape(part) for part in path) for path in loose]
    return replace(intended, tree=change.owned_now, owned=(*intended.owned, *exact), device_wide=(), text="")
