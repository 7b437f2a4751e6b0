"""Mapping theme, ingress half: binding, trust, DSCP → traffic class, and what leaves the port rewritten.

Source: switches.md 4.3 rows 1-3, 30, 33 (public reports: sonic-net/SONiC#888 and others).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fabric.compliance.closure import class_of, is_bound, trusts_dscp, way
from fabric.compliance.grouping import Judgement, failed, group, passed, undecided
from fabric.compliance.hints import hint
from fabric.compliance.rule import PortRule, Subject
from fabric.qos import UNKNOWN, PortQos
from fabric.state import Finding, Severity, Status, Where

__all__ = (
    "DSCP_MAPS_TO_LOSSY_TC",
    "DSCP_MAPS_TO_OTHER_TC",
    "DSCP_NOT_TRUSTED",
    "DSCP_REWRITTEN",
    "PORT_WITHOUT_QOS",
    "UNLISTED_DSCP_IN_LOSSLESS_CLASS",
)


@dataclass(frozen=True, slots=True)
class PortWithoutQos:
    """A wanted port that nothing is bound to, or that the configuration does not have at all."""

    id: str = "port-without-qos"
    title: str = "Every port that carries RoCE has a QoS binding."
    severity: Severity = Severity.ERROR

    def evaluate(self, subject: Subject) -> Iterable[Finding]:
        """Returns the unbound ports in one finding, the bound ones in another."""
        if not subject.wanted_ports:
            # Rules that look at ports say nothing of a device without any: silence must not read as a pass.
            nothing = "the configuration shows no port"
            remedy = "give the whole running configuration, or name the ports in the inventory"
            yield Finding(self.id, Status.UNKNOWN, self.severity, Where(subject.qos.device), nothing, remedy=remedy)
        judged = [(name, self._judge(subject, name)) for name in subject.wanted_ports]
        yield from group(judged, rule=self.id, severity=self.severity, device=subject.qos.device)

    @staticmethod
    def _judge(subject: Subject, name: str) -> Judgement:
        port = subject.qos.port(name)
        if port is None:
            return failed(
                "the configuration has no such port",
                "a port with the QoS of the plan",
                "correct the port name in the inventory, or create the port (breakout)",
            )
        if is_bound(subject.qos, port):
            return passed("QoS is bound")
        return failed(
            "no DSCP map, no PFC and no ECN is bound to the port",
            "maps, PFC and ECN of the RoCE policy",
            f"bind the RoCE QoS to the port{hint(subject.qos.nos, 'bind')}, or take the port out of the check",
        )


PORT_WITHOUT_QOS: Final = PortWithoutQos()


def _trust(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    if not is_bound(subject.qos, port):
        return
    trusted = trusts_dscp(port)
    if trusted is UNKNOWN:
        yield undecided("the text does not say what the port trusts", "read the trust mode from the device")
    elif trusted:
        yield passed(f"trust {port.trust}")
    else:
        yield failed(
            f"trust {port.trust}: the DSCP of a packet is not looked at",
            "trust dscp",
            "make the port trust DSCP; routed RoCEv2 carries no 802.1p priority" + hint(subject.qos.nos, "trust"),
        )


def _judged_dscps(subject: Subject, port: PortQos) -> tuple[int, ...]:
    """A port that looks at no DSCP is the matter of `dscp-not-trusted` alone."""
    if not is_bound(subject.qos, port) or trusts_dscp(port) is False:
        return ()
    return subject.expected.data_dscps


def _by_class(subject: Subject, port: PortQos) -> tuple[tuple[int, tuple[int, ...]], ...]:
    found: dict[int, list[int]] = {}
    for dscp in _judged_dscps(subject, port):
        tc = class_of(port, dscp)
        if tc is not UNKNOWN:
            found.setdefault(tc, []).append(dscp)
    return tuple((tc, tuple(dscps)) for tc, dscps in found.items())


def _misplaced(subject: Subject, tc: int, dscps: tuple[int, ...], kind: str) -> Judgement:
    priority = subject.expected.data_priority
    names = ", ".join(map(str, dscps))
    steps = hint(subject.qos.nos, "classify", dscp=dscps[0], tc=priority)
    return failed(
        f"DSCP {names} maps to traffic class {tc}, {kind}",
        f"DSCP {names} maps to traffic class {priority}",
        f"map DSCP {names} to traffic class {priority} in the map that the port uses, or give the port its own{steps}",
        priority=priority,
        details=(("dscp", dscps[0] if len(dscps) == 1 else names), ("found_tc", tc)),
    )


def _is_lossless_elsewhere(port: PortQos, tc: int) -> bool:
    active = port.pfc.active
    return active is not UNKNOWN and tc in active


def _lossy(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    priority = subject.expected.data_priority
    for tc, dscps in _by_class(subject, port):
        if tc == priority:
            yield passed(f"DSCP {', '.join(map(str, dscps))} maps to traffic class {tc}")
        elif not _is_lossless_elsewhere(port, tc):
            yield _misplaced(subject, tc, dscps, "which is lossy")
    for dscp in _judged_dscps(subject, port):
        if class_of(port, dscp) is UNKNOWN:
            yield undecided(
                f"DSCP {dscp}: {way(port.dscp_to_tc, dscp, name='dscp_to_tc')}",
                f"name DSCP {dscp} in the map that the port uses, or read the map from the device",
                priority=priority,
            )


def _other(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    for tc, dscps in _by_class(subject, port):
        if tc == subject.expected.data_priority:
            yield passed(f"DSCP {', '.join(map(str, dscps))} maps to traffic class {tc}")
        elif _is_lossless_elsewhere(port, tc):
            yield _misplaced(subject, tc, dscps, "which is lossless but not the class of RoCE data")


def _unlisted(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    expected = subject.expected
    if expected.unlisted_allowed or not _judged_dscps(subject, port):
        return
    if port.dscp_to_tc is UNKNOWN or port.dscp_to_tc is None:
        yield undecided(way(port.dscp_to_tc, 0, name="dscp_to_tc"), "read the map from the device")
        return
    listed = {*expected.data_dscps, *expected.cnp_dscps}
    strangers = [d for d, tc in enumerate(port.dscp_to_tc) if tc == expected.data_priority and d not in listed]
    unnamed = [d for d, tc in enumerate(port.dscp_to_tc) if tc is None and d not in listed]
    if strangers:
        yield failed(
            f"traffic class {expected.data_priority} also holds DSCP {_ranges(strangers)}",
            f"DSCP {_ranges(sorted(expected.data_dscps))} alone in traffic class {expected.data_priority}",
            "move the other DSCPs to a lossy class: whoever marks them is paused with RoCE, and pauses it",
            priority=expected.data_priority,
        )
    elif unnamed:
        yield undecided(
            f"{len(unnamed)} DSCPs are not in the map, the platform decides", "name all 64 DSCPs in the map"
        )
    else:
        yield passed(f"traffic class {expected.data_priority} holds the listed DSCPs alone")


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _rewritten(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    expected = subject.expected
    if not is_bound(subject.qos, port):
        return
    if port.rewrite is UNKNOWN:
        yield undecided("the text does not say whether the DSCP is rewritten", "read the rewrite map from the device")
        return
    changed = []
    if port.rewrite is not None:
        to = port.rewrite.tc_to_dscp
        if to[expected.data_priority] not in (None, *expected.data_dscps):
            changed.append((expected.data_priority, to[expected.data_priority]))
        kept = (None, *expected.cnp_dscps)
        cnp_classes = dict.fromkeys(class_of(port, dscp) for dscp in expected.cnp_dscps)
        changed += [
            (tc, to[tc])
            for tc in cnp_classes
            if tc is not UNKNOWN and tc != expected.data_priority and to[tc] not in kept
        ]
    for tc, dscp in changed:
        yield failed(
            f"packets of traffic class {tc} leave with DSCP {dscp}",
            "the DSCP leaves as it came",
            f"take the rewrite of traffic class {tc} away: the next hop classifies by what it sees",
            priority=tc,
        )
    if not changed:
        yield passed("the DSCP leaves as it came")


DSCP_NOT_TRUSTED: Final = PortRule(
    "dscp-not-trusted", "Every port chooses the traffic class by DSCP.", Severity.ERROR, _trust
)
DSCP_MAPS_TO_LOSSY_TC: Final = PortRule(
    "dscp-maps-to-lossy-tc", "The DSCPs of RoCE data map to the lossless traffic class.", Severity.ERROR, _lossy
)
DSCP_MAPS_TO_OTHER_TC: Final = PortRule(
    "dscp-maps-to-other-tc",
    "The DSCPs of RoCE data map to no other lossless class than the policy's.",
    Severity.ERROR,
    _other,
)
UNLISTED_DSCP_IN_LOSSLESS_CLASS: Final = PortRule(
    "unlisted-dscp-in-lossless-class",
    "No DSCP that the policy does not list is in the lossless class.",
    Severity.WARNING,
    _unlisted,
)
DSCP_REWRITTEN: Final = PortRule(
    "dscp-rewritten-on-egress", "RoCE data and CNPs leave with the DSCP they came with.", Severity.ERROR, _rewritten
)
