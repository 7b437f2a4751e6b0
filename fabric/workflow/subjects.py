"""What compliance is asked about: the plan itself, what a change would make of a device, or what a device does now."""

from collections.abc import Mapping, Sequence

from fabric.compliance import Subject, evaluate, evaluate_links, subjects_of
from fabric.intent import Fabric, Switch
from fabric.nos import catalog
from fabric.plan import FabricPlan
from fabric.qos import Capabilities, DeviceQos
from fabric.state import Finding
from fabric.workflow.design import DeviceChange

__all__ = ("capabilities_of", "findings_on", "planned_subjects", "predicted", "running_subjects")


def capabilities_of(switch: Switch) -> Capabilities:
    """Returns what the switch's network OS can do on its ASIC."""
    return catalog.get(switch.nos).capabilities(asic=switch.asic, version=switch.version)


def planned_subjects(fabric: Fabric, plan: FabricPlan) -> tuple[Subject, ...]:
    """Returns one subject a switch: what the plan says it shall do."""
    return subjects_of(fabric, plan, capabilities_of)


def running_subjects(fabric: Fabric, plan: FabricPlan, texts: Mapping[str, str]) -> tuple[Subject, ...]:
    """Returns one subject a switch whose configuration is in `texts`: what that does."""
    observed = {one.device: _parsed(one.nos, one.device, texts) for one in plan.switches if one.device in texts}
    return subjects_of(fabric, plan, capabilities_of, observed=observed)


def predicted(changes: Sequence[DeviceChange], texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the configuration that each change makes of its device's, by device; the device, simulated."""
    return {
        one.device: catalog.get(one.nos).apply(texts[one.device], one.payload) if one.payload else texts[one.device]
        for one in changes
    }


def findings_on(fabric: Fabric, subjects: Sequence[Subject]) -> tuple[Finding, ...]:
    """Returns the findings of every rule, those on cables last."""
    return (*evaluate(subjects), *evaluate_links(subjects, fabric.links))


def _parsed(nos: str, device: str, texts: Mapping[str, str]) -> DeviceQos:
    return catalog.get(nos).parse(texts[device], device=device)
