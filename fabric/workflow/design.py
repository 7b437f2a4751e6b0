"""One switch: its plan and its running configuration to the change that closes the gap. Pure but for the catalog.

The text of the running configuration is an argument and is not kept: what leaves here is the owned part and digests.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from fabric.diff import Change, ChangeSet, Flaw, IntendedConfig, Kept, changes, owned_part
from fabric.nos import Nos, RenderContext, catalog
from fabric.plan.model import SwitchPlan
from fabric.qos import CommitConfirm
from fabric.tree import Tree

__all__ = ("ASKED", "DeviceChange", "design", "differences")


ASKED: Final = "asked for: install by load and reload"
"""The reason in a change set that a user gave."""


@dataclass(frozen=True, slots=True)
class DeviceChange:
    """What one switch needs.

    Attributes:
        intended: what shall stand there.
        changes: the ordered way there and back.
        owned_now: the owned part of the running tree.
        payload: `changes.forward` in the device's language; rollback: `changes.backward`.
        flaws: what did not hold together in the running configuration: a rollback may come back to it.
        kept: of a rollback, what it leaves since others changed it. undoes: the run that it takes back.
    """

    device: str
    nos: str
    intended: IntendedConfig
    changes: ChangeSet
    owned_now: Tree
    payload: str
    rollback: str
    flaws: tuple[Flaw, ...] = field(default=(), compare=False)  # none of these decides what is pushed
    kept: tuple[Kept, ...] = field(default=(), compare=False)
    undoes: str = field(default="", compare=False)


def design(plan: SwitchPlan, running_text: str, *, install: bool = False) -> DeviceChange:
    """Returns what the switch of `plan` needs, given its running configuration.

    Args:
        plan: of the switch.
        running_text: its running configuration.
        install: by load and reload, where the network OS has no timer of its own and so offers that way.

    Raises:
        FabricError: the text is not of the planned network OS, or the plan cannot be rendered on it.
    """
    nos = catalog.get(plan.nos)
    running = nos.tree(running_text)
    found = _changes(nos, plan, running, install=False)
    reasons = found[1].disruptive
    if install and found[1].forward and _has_install(nos, plan):
        reasons = (ASKED, *reasons)
    if reasons:  # what the device takes only by a reload may then be part of it
        intended, by_install = _changes(nos, plan, running, install=True)
        told = dict.fromkeys((*reasons, *by_install.disruptive)) if by_install.forward else ()
        found = intended, replace(by_install, disruptive=tuple(told))
    intended, change_set = found
    return DeviceChange(
        device=plan.device,
        nos=plan.nos,
        intended=intended,
        changes=change_set,
        owned_now=owned_part(running, intended),
        payload=nos.payload(change_set.forward, running) if change_set.forward else "",
        rollback=_payload_back(nos, change_set, running_text),
        flaws=nos.flaws(running) if change_set.forward else (),
    )


def differences(change: DeviceChange, plan: SwitchPlan, running_text: str) -> tuple[Change, ...]:
    """Returns what still differs from the intent in a configuration read anew; held-back paths do not count."""
    nos = catalog.get(change.nos)
    again = changes(nos.tree(running_text), change.intended, nos.rules, adopt=plan.adopt)
    return again.forward


def _changes(nos: Nos, plan: SwitchPlan, running: Tree, *, install: bool) -> tuple[IntendedConfig, ChangeSet]:
    context = RenderContext(
        version=plan.version,
        asic=plan.asic,
        hwsku=plan.hwsku,
        running=running,
        adopt=plan.adopt,
        install=install,
        kept=plan.kept,
    )
    intended = nos.render(plan.qos, context)
    outside = nos.outside_ports(running, intended)
    change_set = changes(running, intended, nos.rules, adopt=plan.adopt, outside_ports=outside)
    refused = nos.refusals(change_set.forward, running, context)
    return intended, replace(change_set, disruptive=(*change_set.disruptive, *refused))


def _has_install(nos: Nos, plan: SwitchPlan) -> bool:
    confirm = nos.capabilities(asic=plan.asic, version=plan.version).commit_confirm.value
    return confirm is CommitConfirm.DEADMAN


def _payload_back(nos: Nos, change_set: ChangeSet, running_text: str) -> str:
    if not change_set.forward:
        return ""
    after = nos.tree(nos.apply(running_text, nos.payload(change_set.forward, nos.tree(running_text))))
    return nos.payload(change_set.backward, after)
