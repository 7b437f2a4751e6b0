"""From a plan and what was read to the subjects of a check. Knows no rule and no network OS."""

from collections.abc import Callable, Mapping

from fabric.compliance.rule import HostMtu, PortState, Subject, expected_of
from fabric.intent.model import Fabric, Switch
from fabric.plan.hosts import cnp_dscps_of
from fabric.plan.model import FabricPlan
from fabric.plan.mtu import needs_of
from fabric.qos import Capabilities, DeviceQos

__all__ = ("subjects_of",)


def subjects_of(
    fabric: Fabric,
    plan: FabricPlan,
    capabilities: Callable[[Switch], Capabilities],
    *,
    observed: Mapping[str, DeviceQos] | None = None,
    states: Mapping[str, tuple[PortState, ...]] | None = None,
) -> tuple[Subject, ...]:
    """Returns the switches to be judged, in the order of the plan.

    Args:
        fabric: the intent: policies, and the hosts behind each port.
        plan: what was made of it.
        capabilities: what the OS of a switch can do.
        observed: device → what its running configuration does; None judges the plan itself. A switch that is missing
            is left out: nobody read it, and that is the reader's failure to report.
        states: device → what its show commands said.
    """
    needs = needs_of(fabric)
    nic_cnp_dscps = tuple(sorted(cnp_dscps_of(fabric)))
    subjects = []
    for planned in plan.switches:
        switch = fabric.switch(planned.device)
        qos = planned.qos if observed is None else observed.get(planned.device)
        if switch is None or qos is None:
            continue
        hosts = tuple(
            HostMtu(need, port.name, tagged=port.vlan is not None)
            for port in switch.ports
            if (need := needs.of(switch.name, port))
        )
        subjects.append(
            Subject(
                qos,
                expected_of(switch.policy, host_mtus=hosts, nic_cnp_dscps=nic_cnp_dscps),
                capabilities(switch),
                plan=planned,
                states=() if states is None else states.get(planned.device, ()),
            )
        )
    return tuple(subjects)
