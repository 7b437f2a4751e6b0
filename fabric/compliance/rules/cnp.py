"""Mapping theme, congestion notification packets: a strict queue that is neither paused nor dropped from.

Source: switches.md 0 and 4.3 row 22; ROCm/gpu-cluster-networking (CNPs sent to a starved queue).
"""

from collections.abc import Iterator
from typing import Final

from fabric.compliance.closure import class_of, element, is_bound, trusts_dscp, way
from fabric.compliance.grouping import Judgement, failed, passed, undecided
from fabric.compliance.hints import hint
from fabric.compliance.rule import PortRule, Subject
from fabric.qos import UNKNOWN, Known, PortQos, Scheduler, SchedulerKind
from fabric.state import Severity

__all__ = ("CNP_CLASS_IS_PAUSED", "CNP_NOT_IN_STRICT_QUEUE", "CNP_QUEUE_HAS_CURVE")


def _cnps(subject: Subject, port: PortQos) -> tuple[int, ...]:
    """The DSCPs to judge; () when nobody asked, or when the port looks at no DSCP (`dscp-not-trusted`)."""
    if not is_bound(subject.qos, port) or trusts_dscp(port) is False:
        return ()
    return subject.expected.cnp_dscps


def _unclassified(port: PortQos, dscp: int) -> Judgement:
    return undecided(
        f"DSCP {dscp}: {way(port.dscp_to_tc, dscp, name='dscp_to_tc')}",
        f"name DSCP {dscp} in the map that the port uses",
    )


def _queue_of(port: PortQos, tc: int) -> Known[int]:
    return tc if port.tc_to_queue is None else element(port.tc_to_queue, tc)


def _unqueued(port: PortQos, tc: int) -> Judgement:
    return undecided(way(port.tc_to_queue, tc, name="tc_to_queue"), "bind a map that names the class", priority=tc)


def _strict(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    for dscp in _cnps(subject, port):
        yield from _strict_one(subject, port, dscp)


def _strict_one(subject: Subject, port: PortQos, dscp: int) -> Iterator[Judgement]:
    tc = class_of(port, dscp)
    if tc is UNKNOWN:
        yield _unclassified(port, dscp)
        return
    index = _queue_of(port, tc)
    if index is UNKNOWN:
        yield _unqueued(port, tc)
        return
    yield _scheduled(subject, port, dscp=dscp, tc=tc, index=index)


def _scheduled(subject: Subject, port: PortQos, *, dscp: int, tc: int, index: int) -> Judgement:
    queue = port.queue(index)
    scheduler: Known[Scheduler | None] = None if queue is None else queue.scheduler
    place = f"DSCP {dscp} → traffic class {tc} → queue {index}"
    steps = hint(subject.qos.nos, "strict", queue=index)
    if scheduler is UNKNOWN:
        return undecided(f"{place}, whose scheduler is not in the text", "define the scheduler", priority=tc)
    if scheduler is None:
        return undecided(
            f"{place}, to which no scheduler is bound: the platform decides",
            f"bind a strict scheduler{steps}",
            priority=tc,
        )
    if scheduler.kind is SchedulerKind.STRICT:
        return passed(f"{place}, strict")
    share = "" if scheduler.weight is None else f" with {scheduler.weight}{' %' if scheduler.percent else ''}"
    return failed(
        f"{place}, {scheduler.kind}{share}",
        f"{place}, strict",
        f"make queue {index} strict{steps}, or map DSCP {dscp} to a class whose queue is strict"
        + hint(subject.qos.nos, "classify", dscp=dscp, tc=tc),
        priority=tc,
        details=(("dscp", dscp),),
    )


def _paused(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    for dscp in _cnps(subject, port):
        yield _paused_one(port, dscp)


def _paused_one(port: PortQos, dscp: int) -> Judgement:
    tc, active = class_of(port, dscp), port.pfc.active
    if tc is UNKNOWN:
        return _unclassified(port, dscp)
    if active is UNKNOWN:
        return undecided(
            "the text does not say which priorities pause for certain", "define what the port refers to", priority=tc
        )
    if tc in active:
        return failed(
            f"DSCP {dscp} is in traffic class {tc}, which PFC pauses",
            "CNPs in a class that is never paused",
            f"map DSCP {dscp} to a class without PFC: a paused CNP comes too late",
            priority=tc,
            details=(("dscp", dscp),),
        )
    return passed(f"DSCP {dscp} is in traffic class {tc}, without PFC")


def _curve(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    for dscp in _cnps(subject, port):
        yield from _curve_one(subject, port, dscp)


def _curve_one(subject: Subject, port: PortQos, dscp: int) -> Iterator[Judgement]:
    tc = class_of(port, dscp)
    if tc is UNKNOWN:
        yield _unclassified(port, dscp)
        return
    if tc == subject.expected.data_priority:  # the data queue must have a curve; `cnp-not-in-strict-queue` speaks
        return
    index = _queue_of(port, tc)
    if index is UNKNOWN:
        yield _unqueued(port, tc)
        return
    queue = port.queue(index)
    aqm = None if queue is None else queue.aqm
    if aqm is UNKNOWN:
        yield undecided(f"the curve of queue {index} is not in the text", "define the curve", priority=tc)
    elif aqm is None:
        yield passed(f"queue {index} has no curve")
    else:
        yield failed(
            f"queue {index} of DSCP {dscp} has a curve ({aqm.kind})",
            "no WRED and no ECN on the queue of CNPs",
            f"take the curve off queue {index}: a CNP that is dropped or marked slows nobody down",
            priority=tc,
            details=(("dscp", dscp),),
        )


CNP_NOT_IN_STRICT_QUEUE: Final = PortRule(
    "cnp-not-in-strict-queue", "CNPs are sent from a strict queue.", Severity.ERROR, _strict
)
CNP_CLASS_IS_PAUSED: Final = PortRule("cnp-class-is-paused", "PFC does not pause CNPs.", Severity.ERROR, _paused)
CNP_QUEUE_HAS_CURVE: Final = PortRule(
    "cnp-queue-has-curve", "The queue of CNPs has neither WRED nor ECN.", Severity.WARNING, _curve
)
