"""Mapping theme, egress half: traffic class, priority group, queue and PFC priority must land together.

Source: switches.md 4.3 rows 4-6, 35; IEEE 802.1Q-2018 clause 36.
"""

from collections.abc import Iterator
from typing import Final

from fabric.compliance.closure import carries_lossless, class_of, element, group_is_hidden, is_bound, way
from fabric.compliance.grouping import Judgement, failed, passed, undecided
from fabric.compliance.hints import hint
from fabric.compliance.rule import PortRule, Subject
from fabric.qos import PRIORITY_COUNT, UNKNOWN, Known, PfcMode, PortQos, TcMap
from fabric.state import Severity

__all__ = (
    "LOSSLESS_CLASS_NOT_CLOSED",
    "OTHER_CLASS_IN_LOSSLESS_BUFFER",
    "PFC_ASYMMETRIC",
    "PFC_MODE_DEPENDS_ON_DCBX",
    "PFC_NOT_ON_DATA_PRIORITY",
    "PFC_ON_OTHER_PRIORITY",
)


def _is_auto(port: PortQos) -> bool:
    return port.pfc.mode is PfcMode.AUTO


def _priority(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    wanted = subject.expected.data_priority
    if not subject.expected.lossless or not is_bound(subject.qos, port) or _is_auto(port):
        return
    expected = f"PFC pauses priority {wanted}, sent and obeyed"
    remedy = f"enable PFC on priority {wanted}{hint(subject.qos.nos, 'pfc', priority=wanted)}"
    active = port.pfc.active
    if subject.qos.pfc_disabled_globally is True:
        yield failed(
            "one line switches PFC off on the whole device",
            expected,
            "take the device-wide line away (`no priority-flow-control all off` on EOS)",
            priority=wanted,
        )
    elif active is UNKNOWN:
        yield undecided(
            "the text does not say which priorities pause", "define what the port refers to", priority=wanted
        )
    elif wanted not in active:
        names = ", ".join(map(str, sorted(active))) or "none"
        yield failed(f"PFC priorities: {names}", expected, remedy, priority=wanted)
    elif port.pfc.rx is False or port.pfc.tx is False:
        half = "obeys no pauses" if port.pfc.rx is False else "sends no pauses"
        yield failed(f"PFC {half}", expected, "switch PFC on in both directions", priority=wanted)
    else:
        yield passed(f"PFC pauses priority {wanted}")


def _others(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    """A class of data or CNPs that is paused is the matter of the rules on those."""
    if not carries_lossless(subject, port):
        return
    expected, active = subject.expected, port.pfc.active
    p = expected.data_priority
    if active is UNKNOWN:
        yield undecided("the text does not say which priorities pause", "define what the port refers to", priority=p)
        return
    judged = {p, *(class_of(port, dscp) for dscp in (*expected.data_dscps, *expected.cnp_dscps))}
    others = sorted(active - judged)
    if others:
        names = ", ".join(map(str, others))
        yield failed(
            f"PFC also pauses priority {names}",
            f"PFC pauses priority {p} alone",
            f"take PFC off priority {names}: each paused class takes headroom, and a storm of it stops the port"
            + hint(subject.qos.nos, "pfc", priority=p),
            priority=others[0] if len(others) == 1 else None,
        )
    else:
        yield passed(f"PFC pauses no priority but {p}" if active == {p} else "PFC pauses no further priority")


def _dcbx(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    wanted = subject.expected.data_priority
    if not subject.expected.lossless or not is_bound(subject.qos, port):
        return
    if port.pfc.mode is UNKNOWN:
        yield undecided("the text does not show the PFC mode", "define what the port refers to", priority=wanted)
        return
    if not _is_auto(port):
        yield passed(f"PFC mode {port.pfc.mode}")
        return
    shown = subject.state(port.name).pfc_operational
    if shown is not UNKNOWN and wanted in shown and subject.expected.host_dcbx_willing:
        yield passed(f"PFC mode auto, and up on priority {wanted} with a willing host")
        return
    state = "state not read" if shown is UNKNOWN else f"up on priority {wanted}" if wanted in shown else "down now"
    yield failed(
        f"PFC mode auto: it stays off unless the host negotiates DCBX ({state})",
        "PFC mode on",
        "set PFC on without negotiation" + hint(subject.qos.nos, "dcbx"),
        priority=wanted,
    )


def _asymmetric(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    if not carries_lossless(subject, port):
        return
    if port.pfc.asymmetric is UNKNOWN:
        yield undecided(
            "the text does not say whether PFC is asymmetric",
            "read it from the device",
            priority=subject.expected.data_priority,
        )
    elif port.pfc.asymmetric:
        yield failed(
            "asymmetric PFC: pauses on all priorities are obeyed",
            "pauses on the lossless priorities alone are obeyed",
            "switch asymmetric PFC off (`config interface pfc asymmetric PORT off` on SONiC)",
            priority=subject.expected.data_priority,
        )
    else:
        yield passed("symmetric PFC")


def _closure(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    if not carries_lossless(subject, port):
        return
    p = subject.expected.data_priority
    queues = _together(port.tc_to_queue, port.pfc_to_queue, p, names=("tc_to_queue", "pfc_to_queue"))
    halves = [queues]
    if not _has_no_group(subject, port):
        # Without a map of its own a PFC priority pauses the group of its own number: the default of the
        # switch abstraction interface (SAI), so that SONiC renders the map for two ASIC families only.
        pfc_to_pg = tuple(range(PRIORITY_COUNT)) if port.pfc_to_pg is None else port.pfc_to_pg
        halves.append(_together(port.tc_to_pg, pfc_to_pg, p, names=("tc_to_pg", "pfc_to_pg")))
    evidence = "; ".join(text for _, text in halves)
    if any(verdict is False for verdict, _ in halves):
        yield failed(
            evidence,
            f"traffic class {p} and PFC priority {p} meet in one queue and one priority group",
            "correct the maps: a pause for the priority must stop the queue, and come from the group, of the class"
            + hint(subject.qos.nos, "closure"),
            priority=p,
        )
    elif any(verdict is UNKNOWN for verdict, _ in halves):
        yield undecided(evidence, f"bind maps that name class {p}{hint(subject.qos.nos, 'closure')}", priority=p)
    else:
        yield passed(evidence)


def _has_no_group(subject: Subject, port: PortQos) -> bool:
    return group_is_hidden(subject) and (port.tc_to_pg is UNKNOWN or port.tc_to_pg is None)


def _together(
    by_class: Known[TcMap | None], by_pfc: Known[TcMap | None], p: int, *, names: tuple[str, str]
) -> tuple[Known[bool], str]:
    one, two = element(by_class, p), element(by_pfc, p)
    text = f"{way(by_class, p, name=names[0])}, {way(by_pfc, p, name=names[1])}"
    return (UNKNOWN if one is UNKNOWN or two is UNKNOWN else one == two), text


def _mixed(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    if not carries_lossless(subject, port):
        return
    p = subject.expected.data_priority
    halves = [("queue", port.tc_to_queue)]
    if not _has_no_group(subject, port):
        halves.append(("priority group", port.tc_to_pg))
    found, unread = [], []
    for what, mapping in halves:
        target = element(mapping, p)
        if target is UNKNOWN or mapping is UNKNOWN or mapping is None:
            unread.append(what)
            continue
        others = [tc for tc, to in enumerate(mapping) if tc != p and to == target]
        if others:
            found.append(f"traffic class {', '.join(map(str, others))} shares {what} {target} with class {p}")
    if found:
        yield failed(
            "; ".join(found),
            f"class {p} alone in its queue and priority group",
            "give the other classes a queue and a priority group of their own",
            priority=p,
        )
    elif unread:
        yield undecided(
            f"which classes share the {' and the '.join(unread)} of class {p} is not in the text",
            "bind maps that name all classes" + hint(subject.qos.nos, "closure"),
            priority=p,
        )
    else:
        yield passed(f"class {p} shares neither queue nor priority group")


PFC_NOT_ON_DATA_PRIORITY: Final = PortRule(
    "pfc-not-on-data-priority", "PFC pauses the priority of RoCE data.", Severity.ERROR, _priority
)
PFC_ON_OTHER_PRIORITY: Final = PortRule(
    "pfc-on-other-priority", "PFC pauses no other priority than the policy's.", Severity.WARNING, _others
)
PFC_MODE_DEPENDS_ON_DCBX: Final = PortRule(
    "pfc-mode-depends-on-dcbx", "PFC is on by configuration, not by negotiation.", Severity.ERROR, _dcbx
)
PFC_ASYMMETRIC: Final = PortRule(
    "pfc-asymmetric", "PFC is obeyed on the lossless priorities alone.", Severity.WARNING, _asymmetric
)
LOSSLESS_CLASS_NOT_CLOSED: Final = PortRule(
    "lossless-class-not-closed",
    "Traffic class, queue, priority group and PFC priority of RoCE data are one.",
    Severity.ERROR,
    _closure,
)
OTHER_CLASS_IN_LOSSLESS_BUFFER: Final = PortRule(
    "other-class-in-lossless-buffer", "No other class uses the lossless queue or group.", Severity.ERROR, _mixed
)
