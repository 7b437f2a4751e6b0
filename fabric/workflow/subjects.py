"""What compliance is asked about: the plan itself, what a change would make of a device, or what a device does now."""

from collections.abc import Mapping, Sequence

from fabric.compliance import Expected, HostMtu, Subject, expected_of
from fabric.intent.model import Fabric, HostNic, Switch
from fabric.nos import catalog
from fabric.plan.model import FabricPlan, SwitchPlan
from fabric.qos import Capabilities, DeviceQos
from fabric.workflow.design import DeviceChange

__all__ = ("capabilities_of", "expectation", "observed_subjects", "planned_subjects", "predicted")


def capabilities_of(switch: Switch) -> Capabilities:
    """Returns what the switch's network OS can do on its ASIC."""
    return catalog.get(switch.nos).capabilities(asic=switch.asic, version=switch.version)


def expectation(fabric: Fabric, switch: Switch) -> Expected:
    """Returns what the policy wants of `switch`, given the hosts and targets behind the fabric.

    A port that faces a NIC must pass that NIC's packets; every other port must pass the largest of the fabric. Routed
    ports between switches carry no tag.
    """
    nics = _nics(fabric)
    faced = {nic.peer.port: nic for nic in nics if nic.peer is not None and nic.peer.device == switch.name}
    tagged = any(nic.vlan is not None for nic in nics) and not all(
        port.routed for port in switch.ports if port.name not in faced
    )
    rest = [HostMtu(max(nic.mtu_bytes for nic in nics), tagged=tagged)] if nics else []
    here = [HostMtu(nic.mtu_bytes, port=port, tagged=nic.vlan is not None) for port, nic in faced.items()]
    return expected_of(switch.policy, host_mtus=(*rest, *here))


def planned_subjects(fabric: Fabric, plan: FabricPlan) -> tuple[Subject, ...]:
    """Returns one subject a switch: what the plan says it shall do."""
    return tuple(_subject(fabric, switch, one, one.qos) for switch, one in _pairs(fabric, plan))


def observed_subjects(fabric: Fabric, plan: FabricPlan, texts: Mapping[str, str]) -> tuple[Subject, ...]:
    """Returns one subject a switch whose configuration is in `texts`: what it does."""
    return tuple(
        _subject(fabric, switch, one, catalog.get(one.nos).parse(texts[one.device], device=one.device))
        for switch, one in _pairs(fabric, plan)
        if one.device in texts
    )


def predicted(changes: Sequence[DeviceChange], texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the configuration that each change makes of its device's, by device; the device, simulated."""
    return {
        one.device: catalog.get(one.nos).apply(texts[one.device], one.payload) if one.payload else texts[one.device]
        for one in changes
    }


def _pairs(fabric: Fabric, plan: FabricPlan) -> list[tuple[Switch, SwitchPlan]]:
    planned = {one.device: one for one in plan.switches}
    return [(switch, planned[switch.name]) for switch in fabric.switches if switch.name in planned]


def _subject(fabric: Fabric, switch: Switch, plan: SwitchPlan, qos: DeviceQos) -> Subject:
    return Subject(qos=qos, expected=expectation(fabric, switch), capabilities=capabilities_of(switch), plan=plan)


def _nics(fabric: Fabric) -> list[HostNic]:
    return [nic for one in fabric.hosts for nic in one.nics] + [nic for one in fabric.targets for nic in one.nics]
