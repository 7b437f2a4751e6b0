"""From the intent to numbers: a `DeviceQos` per switch, a `HostPlan` per host. Pure; talks to nobody.

Everything that cannot be met is collected over the whole fabric before anything is raised. What can be met and is
not as the intent has it (a rounded threshold, a clamped MTU, an unknown headroom) is a note of the plan.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from fabric.errors import UnsupportedFeatureError
from fabric.intent.model import Fabric, NvmeTarget, Switch
from fabric.plan.hosts import Peer, cnp_dscps_of, plan_nics
from fabric.plan.ledger import Ledger, raise_problems
from fabric.plan.model import FabricPlan, HostPlan, Note
from fabric.plan.mtu import needs_of
from fabric.plan.switches import Surroundings, plan_switch
from fabric.qos import Capabilities

__all__ = ("make_plan",)

_SUPPORTED: Final[frozenset[str]] = frozenset()  # names in `Switch.features` that this release can plan


def make_plan(fabric: Fabric, capabilities: Callable[[Switch], Capabilities]) -> FabricPlan:
    """Returns the plan of the whole fabric.

    Args:
        fabric: the intent, validated.
        capabilities: what a switch's network OS can do.

    Raises:
        UnsupportedFeatureError: a switch asks for what this release lacks; names all of them.
        PlanError: a value is out of a network OS's range, or two parts of the intent contradict each other; has
            every problem of every device.
    """
    _refuse_features(fabric)
    around = Surroundings(
        cnp_dscps=cnp_dscps_of(fabric),
        needs=needs_of(fabric),
        switches={switch.name: switch for switch in fabric.switches},
    )
    ledgers: list[Ledger] = []
    switches = []
    peers: dict[str, Peer] = {}
    for switch in fabric.switches:
        ledgers.append(Ledger(switch.name))
        plan, classes = plan_switch(switch, capabilities(switch), around, ledgers[-1])
        switches.append(plan)
        peers[switch.name] = Peer(switch, classes.cnp)
    hosts: list[HostPlan] = []
    for name, role, nics, policy in (
        *((host.name, "host", host.nics, host.policy) for host in fabric.hosts),
        *((target.name, "target", target.nics, target.policy) for target in fabric.targets if target.managed),
    ):
        ledgers.append(Ledger(name))
        hosts.append(plan_nics(name, role, nics, policy, peers, ledgers[-1]))
    notes: list[Note] = []
    for target in (one for one in fabric.targets if not one.managed):
        ledgers.append(Ledger(target.name))
        notes += _foreign_notes(target, peers, ledgers[-1])
    raise_problems(ledgers)
    return FabricPlan(fabric.name, tuple(switches), tuple(hosts), tuple(notes))


def _refuse_features(fabric: Fabric) -> None:
    asked = {
        switch.name: missing for switch in fabric.switches if (missing := sorted(set(switch.features) - _SUPPORTED))
    }
    if asked:
        names = sorted({name for missing in asked.values() for name in missing})
        listed = "; ".join(f"{device}: {', '.join(missing)}" for device, missing in asked.items())
        raise UnsupportedFeatureError(
            f"this release cannot plan {', '.join(names)}",
            found=listed,
            remedy="Take these names out of the switches' features, and configure them by other means",
        )


def _foreign_notes(target: NvmeTarget, peers: Mapping[str, Peer], ledger: Ledger) -> list[Note]:
    """Returns what must be set on a target that is not ours, and where its switches do not fit what it does."""
    plan_nics(target.name, "target", target.nics, target.policy, peers, ledger)
    blocking = [note for note in ledger.notes if note.blocks_lossless]
    return [
        Note("unmanaged-target", _terms(target)),
        *(replace(note, text=f"{target.name}: {note.text}") for note in blocking),
    ]


def _terms(target: NvmeTarget) -> str:
    """Returns what somebody else must set on a target that is not ours."""
    policy = target.policy
    return (
        f"{target.name} is not managed: whoever does must mark DSCP {policy.data_dscps[0]}, pause priority "
        f"{policy.data_priority} and send CNPs with DSCP {policy.cnp_dscp}"
    )
