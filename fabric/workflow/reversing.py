"""A finished run, backwards: each committed change set turned into the one that restores what stood there before.

Only what the run owned is restored; what others changed elsewhere since stays. A device whose owned part is no longer
what the run left is refused: somebody else's change would be lost.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from fabric.diff import Change, IntendedConfig, changes, future, matches, owned_part
from fabric.errors import DriftError
from fabric.nos import RenderContext, catalog
from fabric.workflow.design import DeviceChange
from fabric.workflow.difftext import told

__all__ = ("reverse", "undone")


def reverse(change: DeviceChange, text: str) -> DeviceChange:
    """Returns the change that brings the device back to what it was before `change`.

    Args:
        change: what the run did.
        text: the running configuration now.

    Raises:
        DriftError: what the run owned is no longer as the run left it.
    """
    nos = catalog.get(change.nos)
    running = nos.tree(text)
    before = _as_it_was(change)
    left = future(change.owned_now, change.changes.forward)
    back = changes(running, before, nos.rules, adopt=True)
    drift = changes(owned_part(running, before), replace(before, tree=left), nos.rules, adopt=True)
    if back.forward and drift.forward:  # a device that is as before already needs nothing, however it came there
        raise DriftError(
            "the device has changed since that run, in what the run owns",
            where=change.device,
            found=told(drift.forward),
            remedy="Provision again instead, or bring these lines back by hand first.",
        )
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
    )


def undone(back: DeviceChange, text: str) -> tuple[Change, ...]:
    """Returns what still differs from the state before the run in a configuration read anew."""
    nos = catalog.get(back.nos)
    return changes(nos.tree(text), back.intended, nos.rules, adopt=True).forward


def _as_it_was(change: DeviceChange) -> IntendedConfig:
    """Returns the owned part before the run, as an intent that owns all that the run put there."""
    intended = change.intended
    loose = [path for path in intended.tree if not any(matches(one, path) for one in intended.owned)]
    exact: Sequence[tuple[str, ...]] = [tuple(re.escape(part) for part in path) for path in loose]
    return replace(intended, tree=change.owned_now, owned=(*intended.owned, *exact), device_wide=(), text="")
