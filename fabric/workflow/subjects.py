"""What compliance is asked about: the plan itself, what a change would make of a device, or what a device does now."""

from collections.abc import Mapping, Sequence

from fabric.compliance import Subject, evaluate, evaluate_links, subjects_of
from fabric.errors import FabricError
from fabric.intent import Fabric, Switch
from fabric.nos import catalog
from fabric.plan import FabricPlan
from fabric.qos import Capabilities, DeviceQos
from fabric.state import Finding, Severity, Status, Where
from fabric.workflow.design import DeviceChange

__all__ = (
    "capabilities_of",
    "findings_on",
    "parsed",
    "planned_subjects",
    "predicted",
    "running_findings",
    "running_subjects",
    "unjudged",
)


def capabilities_of(switch: Switch) -> Capabilities:
    """Returns what the switch's network OS can do on its ASIC."""
    return catalog.get(switch.nos).capabilities(asic=switch.asic, version=switch.version)


def planned_subjects(fabric: Fabric, plan: FabricPlan) -> tuple[Subject, ...]:
    """Returns one subject a switch: what the plan says it shall do."""
    return subjects_of(fabric, plan, capabilities_of)


def running_subjects(fabric: Fabric, plan: FabricPlan, observed: Mapping[str, DeviceQos]) -> tuple[Subject, ...]:
    """Returns one subject a switch that is in `observed`: what it does now."""
    return subjects_of(fabric, plan, capabilities_of, observed=observed)


def running_findings(
    fabric: Fabric, plan: FabricPlan, texts: Mapping[str, str], errors: Mapping[str, FabricError]
) -> tuple[Finding, ...]:
    """Returns the findings on running configurations; UNKNOWN for each switch that gave none, or none to be read.

    Args:
        fabric: the intent.
        plan: the switches that were asked.
        texts: running configuration by device.
        errors: why a device gave none.
    """
    observed, broken = parsed(plan, texts)
    found = findings_on(fabric, running_subjects(fabric, plan, observed))
    return (*found, *unjudged({**errors, **broken}))


def parsed(plan: FabricPlan, texts: Mapping[str, str]) -> tuple[dict[str, DeviceQos], dict[str, FabricError]]:
    """Returns what each configuration in `texts` does with packets, and why one could not be read."""
    observed: dict[str, DeviceQos] = {}
    broken: dict[str, FabricError] = {}
    for one in plan.switches:
        if one.device not in texts:
            continue
        try:
            observed[one.device] = catalog.get(one.nos).parse(texts[one.device], device=one.device)
        except FabricError as error:
            broken[one.device] = error
    return observed, broken


def unjudged(errors: Mapping[str, FabricError]) -> tuple[Finding, ...]:
    """Returns one UNKNOWN a device that no rule could look at: silence would read as a pass."""
    return tuple(
        Finding(
            rule="running-configuration-read",
            status=Status.UNKNOWN,
            severity=Severity.ERROR,
            where=Where(device),
            evidence=f"no rule could be asked: {error.what}" + (f" ({error.found})" if error.found else ""),
            expected="a running configuration",
            remedy=error.remedy,
        )
        for device, error in errors.items()
    )


def predicted(changes: Sequence[DeviceChange], texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the configuration that each change makes of its device's, by device; the device, simulated."""
    return {
        one.device: catalog.get(one.nos).apply(texts[one.device], one.payload) if one.payload else texts[one.device]
        for one in changes
    }


def findings_on(fabric: Fabric, subjects: Sequence[Subject]) -> tuple[Finding, ...]:
    """Returns the findings of every rule, those on cables last."""
    return (*evaluate(subjects), *evaluate_links(subjects, fabric.links))
