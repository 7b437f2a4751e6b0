"""What a rule is, what it is asked about and how it answers. Knows no single rule and no network OS.

A rule is a frozen object with an id, a title, a severity and `evaluate`. Most rules judge one port at a time:
`PortRule` turns their judgements into findings, one for all ports that share a cause.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from fabric.compliance.grouping import Judgement, group
from fabric.intent.model import Link, RocePolicy
from fabric.plan.model import SwitchPlan
from fabric.qos import UNKNOWN, Capabilities, DeviceQos, Known, PortQos
from fabric.state import Finding, Severity

__all__ = ("Expected", "HostMtu", "LinkRule", "PortRule", "PortState", "Rule", "Subject", "expected_of")


@dataclass(frozen=True, slots=True)
class HostMtu:
    """What must pass one port.

    Attributes:
        ip_mtu_bytes: the largest IP packet of the hosts behind the port.
        port: its name; None for every port that no other entry names.
        tagged: the frames carry a VLAN tag.
    """

    ip_mtu_bytes: int
    port: str | None = None
    tagged: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What the policy wants of one device. None where nobody asked: then nothing is judged.

    Attributes:
        data_dscps: DSCPs of RoCE data. data_priority: their traffic class and PFC priority.
        lossless: PFC, headroom and watchdog are wanted.
        cnp_dscp: DSCP of congestion notification packets.
        nic_cnp_dscps: DSCPs that NICs of the fabric put on theirs instead.
        unlisted_allowed: other DSCPs may be in the lossless class.
        ecn: marking is wanted on the data queue.
        ecn_kmin_bytes: start of the ramp at 100G, likewise ecn_kmax_bytes; scaled with the speed.
        mtu_bytes: smallest port MTU, as the NOS counts it, cut to what the NOS can do.
        host_mtus: what the hosts send; () when nobody knows.
        watchdog_action: `drop`, `forward`, `alert`.
        host_dcbx_willing: the hosts take PFC settings from DCBX.
    """

    data_dscps: tuple[int, ...] = (26,)
    data_priority: int = 3
    lossless: bool = True
    cnp_dscp: int | None = 48
    unlisted_allowed: bool = False
    ecn: bool = True
    ecn_kmin_bytes: int | None = None
    ecn_kmax_bytes: int | None = None
    mtu_bytes: int | None = None
    host_mtus: tuple[HostMtu, ...] = ()
    watchdog: bool = True
    watchdog_action: str | None = None
    host_dcbx_willing: bool | None = None
    nic_cnp_dscps: tuple[int, ...] = ()

    @property
    def cnp_dscps(self) -> tuple[int, ...]:
        """Returns every DSCP that a CNP may carry, the policy's first."""
        own = () if self.cnp_dscp is None else (self.cnp_dscp,)
        return tuple(dict.fromkeys((*own, *self.nic_cnp_dscps)))

    def host_mtu(self, port: str) -> HostMtu | None:
        """Returns what must pass `port`, or None when nobody knows."""
        general = None
        for one in self.host_mtus:
            if one.port == port:
                return one
            general = one if one.port is None else general
        return general


def expected_of(
    policy: RocePolicy, *, host_mtus: tuple[HostMtu, ...] = (), nic_cnp_dscps: tuple[int, ...] = ()
) -> Expected:
    """Returns what `policy` wants of a device that carries such hosts.

    A policy with ECN overrides gives no curve: the plan's own curve is then the measure.
    """
    own_curve = policy.ecn_enabled and not policy.ecn_overrides
    return Expected(
        data_dscps=policy.data_dscps,
        data_priority=policy.data_priority,
        cnp_dscp=policy.cnp_dscp,
        unlisted_allowed=not policy.reassign_unlisted,
        ecn=policy.ecn_enabled,
        ecn_kmin_bytes=policy.ecn_kmin_bytes if own_curve else None,
        ecn_kmax_bytes=policy.ecn_kmax_bytes if own_curve else None,
        mtu_bytes=policy.mtu_bytes,
        host_mtus=host_mtus,
        watchdog=policy.watchdog_enabled,
        watchdog_action=policy.watchdog_action if policy.watchdog_enabled else None,
        nic_cnp_dscps=nic_cnp_dscps,
    )


@dataclass(frozen=True, slots=True)
class PortState:
    """What a show command said of one port.

    Attributes:
        pfc_operational: the priorities for which PFC is up now.
    """

    port: str
    pfc_operational: Known[frozenset[int]] = UNKNOWN


@dataclass(frozen=True, slots=True)
class Subject:
    """One device to be judged.

    Attributes:
        qos: what it does: planned, or parsed from its running configuration.
        expected: what it should do.
        capabilities: what its OS can do; None when nobody knows.
        plan: the plan for it; None when there is none.
        states: what show commands said, if anybody asked.
        ports: the ports that carry RoCE; None for those of the plan, without a plan all.
    """

    qos: DeviceQos
    expected: Expected
    capabilities: Capabilities | None = None
    plan: SwitchPlan | None = None
    states: tuple[PortState, ...] = ()
    ports: tuple[str, ...] | None = None

    @property
    def wanted_ports(self) -> tuple[str, ...]:
        """Returns the names of the ports that carry RoCE."""
        if self.ports is not None:
            return self.ports
        qos = self.qos if self.plan is None else self.plan.qos
        return tuple(port.name for port in qos.ports)

    @property
    def judged_ports(self) -> tuple[PortQos, ...]:
        """Returns those of `wanted_ports` that the device has."""
        wanted = frozenset(self.wanted_ports)
        return tuple(port for port in self.qos.ports if port.name in wanted)

    def planned(self, port: str) -> PortQos | None:
        """Returns the plan for `port`, or None."""
        return None if self.plan is None else self.plan.qos.port(port)

    def planned_speed(self, port: PortQos) -> int | None:
        """Returns the speed that the plan's numbers are for where the port is known to run at another, else None."""
        planned = self.planned(port.name)
        if planned is None or UNKNOWN in (planned.speed_mbps, port.speed_mbps):
            return None
        return None if planned.speed_mbps in (UNKNOWN, port.speed_mbps) else planned.speed_mbps

    def state(self, port: str) -> PortState:
        """Returns what was shown of `port`, all UNKNOWN if nothing was."""
        return next((state for state in self.states if state.port == port), PortState(port))


class Rule(Protocol):
    """One rule on one device. Declared frozen; registered under its id."""

    @property
    def id(self) -> str:
        """Returns the id, kebab case: it names what is wrong."""
        ...

    @property
    def title(self) -> str:
        """Returns what the rule demands, one sentence."""
        ...

    @property
    def severity(self) -> Severity:
        """Returns what a FAIL means."""
        ...

    def evaluate(self, subject: Subject) -> Iterable[Finding]:
        """Returns the findings on `subject`; none when the rule does not concern it."""
        ...


class LinkRule(Protocol):
    """One rule on the cables between devices."""

    @property
    def id(self) -> str:
        """Returns the id, kebab case."""
        ...

    @property
    def title(self) -> str:
        """Returns what the rule demands, one sentence."""
        ...

    @property
    def severity(self) -> Severity:
        """Returns what a FAIL means."""
        ...

    def evaluate_links(self, subjects: tuple[Subject, ...], links: tuple[Link, ...]) -> Iterable[Finding]:
        """Returns the findings on the links whose two ends are both among `subjects`."""
        ...


@dataclass(frozen=True, slots=True)
class PortRule:
    """A rule that looks at one port at a time.

    Attributes:
        judge: returns the port's judgements; none when the rule does not concern the port.
    """

    id: str
    title: str
    severity: Severity
    judge: Callable[[Subject, PortQos], Iterable[Judgement]]

    def evaluate(self, subject: Subject) -> Iterable[Finding]:
        """Returns one finding for each cause, and one for all ports that pass."""
        judged = [(port.name, one) for port in subject.judged_ports for one in self.judge(subject, port)]
        return group(judged, rule=self.id, severity=self.severity, device=subject.qos.device)
