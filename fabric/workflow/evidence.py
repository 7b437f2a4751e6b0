"""What switches have counted: read in parallel, judged, and laid beside the NICs at the other end of each cable.

For `check --live`. Switches are asked with the read-only commands of their network OS; an error of one is kept and
stops none. Counters are cumulative, so nothing here says "now".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabric.compliance import Subject
from fabric.compliance.closure import class_of, data_queue, trusts_dscp
from fabric.compliance.counters import counter_findings, data_queues, other_queues
from fabric.errors import FabricError
from fabric.host.judge import PortEvidence
from fabric.intent import Fabric, Loaded
from fabric.intent.model import Endpoint
from fabric.nos import catalog
from fabric.plan import FabricPlan
from fabric.push import run_all
from fabric.qos import UNKNOWN, DeviceQos, Known
from fabric.state import Finding, PortCounters, QueueCounters, Severity, Status, Where
from fabric.workflow.environment import Environment
from fabric.workflow.sessions import session_factories
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.subjects import running_subjects

__all__ = ("SwitchCounters", "port_evidence", "read_counters", "switch_counter_findings")


@dataclass(frozen=True, slots=True)
class SwitchCounters:
    """One reading of all switches.

    Attributes:
        by_device: device → counters of its ports. errors: device → why it gave none.
    """

    by_device: Mapping[str, tuple[PortCounters, ...]] = field(default_factory=dict)
    errors: Mapping[str, FabricError] = field(default_factory=dict)


def read_counters(
    loaded: Loaded, plan: FabricPlan, environment: Environment, watch: Stopwatch, *, workers: int = 8
) -> SwitchCounters:
    """Returns the counters of every switch of the plan. Changes nothing.

    Args:
        loaded: the ways to the switches.
        plan: the switches that are asked.
        environment: clock and observer.
        watch: times the stage `counters`.
        workers: switches at a time.
    """
    commands = {one.device: catalog.get(one.nos).session.fetch_counters for one in plan.switches}
    with watch.stage("counters"):
        readings = run_all(
            session_factories(loaded, plan.switches, environment),
            commands,
            workers=workers,
            observer=environment.observer,
        )
    nos = {one.device: one.nos for one in plan.switches}
    found: dict[str, tuple[PortCounters, ...]] = {}
    errors: dict[str, FabricError] = {}
    for reading in readings:
        if reading.error is not None:
            errors[reading.device] = reading.error
            continue
        try:
            found[reading.device] = catalog.get(nos[reading.device]).counters(reading.outputs)
        except FabricError as error:
            errors[reading.device] = error
    return SwitchCounters(found, errors)


def switch_counter_findings(
    fabric: Fabric, plan: FabricPlan, observed: Mapping[str, DeviceQos], read: SwitchCounters
) -> tuple[Finding, ...]:
    """Returns the findings on what switches have counted; an UNKNOWN for each that could not be asked.

    Args:
        fabric: the intent.
        plan: the switches that were asked.
        observed: device → what its running configuration does; a switch that is missing is judged by its plan.
        read: what they counted.
    """
    found: list[Finding] = []
    for subject in _subjects(fabric, plan, observed):
        device = subject.qos.device
        if device in read.by_device:
            found += counter_findings(subject, read.by_device[device])
    return (*found, *(_unread(device, error) for device, error in read.errors.items()))


def port_evidence(
    fabric: Fabric, plan: FabricPlan, observed: Mapping[str, DeviceQos], read: SwitchCounters
) -> dict[str, dict[str, PortEvidence]]:
    """Returns host or target → netdev → what the switch at the other end counted.

    A NIC whose switch is not of the plan, or that no cable is named for, is absent.
    """
    subjects = {one.qos.device: one for one in _subjects(fabric, plan, observed)}
    found: dict[str, dict[str, PortEvidence]] = {}
    machines = [*((one.name, one.nics) for one in fabric.hosts), *((one.name, one.nics) for one in fabric.targets)]
    for name, nics in machines:
        for nic in nics:
            if nic.peer is not None and nic.peer.device in subjects:
                subject, is_read = subjects[nic.peer.device], nic.peer.device in observed
                found.setdefault(name, {})[nic.netdev] = _evidence(nic.peer, subject, read, is_read=is_read)
    return found


def _subjects(fabric: Fabric, plan: FabricPlan, observed: Mapping[str, DeviceQos]) -> tuple[Subject, ...]:
    planned = {one.device: one.qos for one in plan.switches}
    return running_subjects(fabric, plan, {**planned, **observed})


def _evidence(peer: Endpoint, subject: Subject, read: SwitchCounters, *, is_read: bool) -> PortEvidence:
    error = read.errors.get(peer.device)
    port = subject.qos.port(peer.port)
    counters = next((one for one in read.by_device.get(peer.device, ()) if one.port == peer.port), None)
    if error is not None or port is None or counters is None:
        why = f"{peer.device} could not be asked: {error.what}" if error is not None else f"{peer} is not counted"
        return PortEvidence(peer.device, peer.port, reason=why)
    own, others = data_queues(subject, port, counters), other_queues(subject, port, counters)
    data, rest = _packets(own), _at_least(others)
    shown = data is not UNKNOWN and rest is not UNKNOWN
    return PortEvidence(
        peer.device,
        peer.port,
        data_packets=data,
        other_packets=rest,
        data_queue=data_queue(subject, port),
        classifies=_classifies(subject) if is_read else UNKNOWN,
        reason="" if shown else f"{peer.device} does not show packets by queue",
    )


def _packets(queues: tuple[QueueCounters, ...]) -> Known[int]:
    """Packets of these queues together; UNKNOWN when none is shown, or when one is not counted."""
    counts = [one.packets for one in queues]
    known = [one for one in counts if one is not UNKNOWN]
    return sum(known) if known and len(known) == len(counts) else UNKNOWN


def _at_least(queues: tuple[QueueCounters, ...]) -> Known[int]:
    """Packets of those of these queues that are counted; UNKNOWN when none is. SONiC leaves multicast ones out."""
    known = [one.packets for one in queues if one.packets is not UNKNOWN]
    return sum(known) if known else UNKNOWN


def _classifies(subject: Subject) -> Known[bool]:
    """Whether every port that carries RoCE puts its data into the lossless class."""
    wanted = subject.expected.data_priority
    answers: list[Known[bool]] = []
    for port in subject.judged_ports:
        answers.append(trusts_dscp(port))
        classes = (class_of(port, dscp) for dscp in subject.expected.data_dscps)
        answers += [UNKNOWN if one is UNKNOWN else one == wanted for one in classes]
    if any(one is False for one in answers):
        return False
    return UNKNOWN if UNKNOWN in answers else True


def _unread(device: str, error: FabricError) -> Finding:
    return Finding(
        rule="switch-counters-read",
        status=Status.UNKNOWN,
        severity=Severity.WARNING,
        where=Where(device),
        evidence=f"no rule about counters could be asked: {error.what}" + (f" ({error.found})" if error.found else ""),
        expected="the counters of its ports",
        remedy=error.remedy,
    )
