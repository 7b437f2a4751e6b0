"""ECN theme: the lossless queue marks, does not drop early, and its curve makes sense.

Source: switches.md 4.3 rows 17, 18, 20, 21 and 5.5; sonic-net/sonic-mgmt#17149.
"""

from collections.abc import Iterator
from typing import Final

from fabric.compliance.closure import data_queue, is_bound, way
from fabric.compliance.grouping import Judgement, failed, passed, undecided
from fabric.compliance.hints import hint
from fabric.compliance.rule import PortRule, Subject
from fabric.qos import UNKNOWN, Aqm, AqmKind, Known, PortQos, Threshold, Unknown
from fabric.state import Severity
from fabric.units import format_speed

__all__ = (
    "ECN_OFF_ON_LOSSLESS_QUEUE",
    "ECN_PMAX_ZERO",
    "ECN_STEP_CURVE",
    "ECN_THRESHOLDS_REVERSED",
    "ECN_THRESHOLDS_UNSCALED",
    "WRED_DROP_ON_LOSSLESS_QUEUE",
)

_REFERENCE_SPEED_MBPS = 100_000  # switches.md 0: the policy's curve is that of 100G
_BAND = 2  # a threshold at half or twice its scaled value is that of another speed, or a slip of unit


def _aqm(subject: Subject, port: PortQos) -> tuple[Known[int], Known[Aqm | None]]:
    index = data_queue(subject, port)
    if index is UNKNOWN:
        return UNKNOWN, UNKNOWN
    queue = port.queue(index)
    return index, None if queue is None else queue.aqm


def _undecided_queue(subject: Subject, port: PortQos, index: Known[int]) -> Judgement:
    priority = subject.expected.data_priority
    if index is UNKNOWN:
        return undecided(
            way(port.tc_to_queue, priority, name="tc_to_queue"), "bind a map that names the class", priority=priority
        )
    return undecided(
        f"the curve of queue {index} is not in the text", "define the curve that the port names", priority=priority
    )


def _off(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    priority = subject.expected.data_priority
    if not subject.expected.ecn or not is_bound(subject.qos, port):
        return
    index, aqm = _aqm(subject, port)
    if index is UNKNOWN or aqm is UNKNOWN:
        yield _undecided_queue(subject, port, index)
    elif aqm is None:
        yield failed(
            f"queue {index} does not mark",
            f"ECN marking on queue {index}",
            f"bind an ECN curve to queue {index}{hint(subject.qos.nos, 'ecn', queue=index)}: without it every "
            "congestion becomes a pause",
            priority=priority,
        )
    elif aqm.kind is not AqmKind.DROP:
        yield passed(f"queue {index} marks")


def _drops(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    priority = subject.expected.data_priority
    if not subject.expected.lossless or not is_bound(subject.qos, port):
        return
    index, aqm = _aqm(subject, port)
    if index is UNKNOWN or aqm is UNKNOWN:
        yield _undecided_queue(subject, port, index)
    elif aqm is not None and aqm.kind is AqmKind.DROP:
        yield failed(
            f"queue {index} has WRED without ECN: it drops between {_text(aqm.kmin)} and {_text(aqm.kmax)}",
            f"queue {index} marks, or has no curve",
            f"switch ECN on in the WRED profile of queue {index}, or take the profile off"
            + hint(subject.qos.nos, "ecn", queue=index),
            priority=priority,
        )
    else:
        yield passed(f"queue {index} drops nothing early")


def _text(value: Known[object]) -> str:
    return "an unknown depth" if value is UNKNOWN else str(value)


def _curve(subject: Subject, port: PortQos) -> tuple[int, Aqm] | None:
    """The marking curve of the data queue, when it has one with thresholds of its own."""
    if not is_bound(subject.qos, port):
        return None
    index, aqm = _aqm(subject, port)
    if index is UNKNOWN or aqm is UNKNOWN or aqm is None or aqm.kind is not AqmKind.MARK:
        return None
    return index, aqm


def _reversed(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    found = _curve(subject, port)
    if found is None:
        return
    index, aqm = found
    order = _order(aqm)
    if order is UNKNOWN:
        yield undecided(
            f"queue {index}: {_text(aqm.kmin)} and {_text(aqm.kmax)} cannot be compared",
            "read both thresholds in one unit",
            priority=subject.expected.data_priority,
        )
    elif order > 0:
        yield failed(
            f"queue {index}: the ramp starts at {aqm.kmin} and ends at {aqm.kmax}",
            "a ramp that starts below its end",
            "exchange the thresholds, or correct the unit of one",
            priority=subject.expected.data_priority,
        )
    else:
        yield passed(f"queue {index}: ramp from {aqm.kmin} to {aqm.kmax}")


def _order(aqm: Aqm) -> Known[int]:
    low, high = aqm.kmin, aqm.kmax
    if isinstance(low, Unknown) or isinstance(high, Unknown) or low.unit is not high.unit:
        return UNKNOWN
    return (low.value > high.value) - (low.value < high.value)


def _step(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    found = _curve(subject, port)
    if found is None:
        return
    index, aqm = found
    order = _order(aqm)
    if order is UNKNOWN:
        yield _unread(subject, index)
    elif order == 0:
        yield failed(
            f"queue {index}: kmin and kmax are both {aqm.kmin}: nothing is marked below, everything above",
            "a ramp",
            "widen the ramp: DCQCN needs marks in proportion to the queue",
            priority=subject.expected.data_priority,
        )
    else:
        yield passed(f"queue {index}: kmin and kmax differ")


def _unread(subject: Subject, index: int) -> Judgement:
    return undecided(
        f"queue {index}: the curve cannot be read in full",
        "read the curve from the device",
        priority=subject.expected.data_priority,
    )


def _pmax(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    found = _curve(subject, port)
    if found is None:
        return
    index, aqm = found
    if aqm.pmax_percent is UNKNOWN:
        yield _unread(subject, index)
    elif aqm.pmax_percent == 0:
        yield failed(
            f"queue {index}: the marking probability is 0 % at the end of the ramp",
            "a probability of 1 % or more",
            "set the probability of the ramp's end; at 0 % the ramp marks nothing",
            priority=subject.expected.data_priority,
        )
    else:
        yield passed(f"queue {index}: {aqm.pmax_percent} % at the end of the ramp")


def _unscaled(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    found, wanted = _curve(subject, port), _wanted(subject, port)
    if found is None or wanted is None:
        return
    index, aqm = found
    priority = subject.expected.data_priority
    other = subject.planned_speed(port)
    if other is not None and port.speed_mbps is not UNKNOWN:
        yield failed(
            f"the port runs at {format_speed(port.speed_mbps)}, and the plan is for {format_speed(other)}",
            f"a port of {format_speed(other)}",
            "correct the speed of the port or of the inventory: thresholds and headroom follow from it",
            priority=priority,
        )
        return
    if wanted is UNKNOWN:
        yield undecided("the speed of the port is not known", "give the speed in the inventory", priority=priority)
        return
    pairs = tuple(zip(("kmin", "kmax"), (aqm.kmin, aqm.kmax), wanted, strict=True))
    sizes = [(name, UNKNOWN if isinstance(k, Unknown) else k.size_bytes, want) for name, k, want in pairs]
    if any(size is UNKNOWN for _, size, _ in sizes):
        yield undecided(
            f"queue {index}: {_text(aqm.kmin)} and {_text(aqm.kmax)} are no bytes",
            "give the thresholds in bytes, or the platform's segment size",
            priority=priority,
        )
        return
    off = [f"{name} {size} B instead of {want} B" for name, size, want in sizes if _is_off(size, want)]
    if off:
        speed = "" if isinstance(port.speed_mbps, Unknown) else f" at {format_speed(port.speed_mbps)}"
        yield failed(
            f"queue {index}{speed}: {', '.join(off)}",
            f"kmin {wanted[0]} B and kmax {wanted[1]} B{speed}",
            "scale the thresholds with the speed of the port, and check their unit",
            priority=priority,
        )
    else:
        yield passed(f"queue {index}: thresholds fit the speed")


def _is_off(size: Known[int], want: int) -> bool:
    return size is not UNKNOWN and (size * _BAND <= want or size >= want * _BAND)


def _wanted(subject: Subject, port: PortQos) -> Known[tuple[int, int]] | None:
    """The curve that the plan has for the port, else the policy's, scaled; None when nobody asked."""
    planned = subject.planned(port.name)
    index = data_queue(subject, port)
    queue = None if planned is None or index is UNKNOWN else planned.queue(index)
    aqm = None if queue is None else queue.aqm
    if aqm is not None and aqm is not UNKNOWN:
        low, high = _bytes(aqm.kmin), _bytes(aqm.kmax)
        if low is not UNKNOWN and high is not UNKNOWN:
            return low, high
    kmin, kmax = subject.expected.ecn_kmin_bytes, subject.expected.ecn_kmax_bytes
    if kmin is None or kmax is None:
        return None
    speed = port.speed_mbps
    if speed is UNKNOWN:
        return UNKNOWN
    return kmin * speed // _REFERENCE_SPEED_MBPS, kmax * speed // _REFERENCE_SPEED_MBPS


def _bytes(threshold: Known[Threshold]) -> Known[int]:
    return UNKNOWN if threshold is UNKNOWN else threshold.size_bytes


ECN_OFF_ON_LOSSLESS_QUEUE: Final = PortRule(
    "ecn-off-on-lossless-queue", "The queue of RoCE data marks with ECN.", Severity.ERROR, _off
)
WRED_DROP_ON_LOSSLESS_QUEUE: Final = PortRule(
    "wred-drop-on-lossless-queue", "The queue of RoCE data drops nothing early.", Severity.ERROR, _drops
)
ECN_THRESHOLDS_REVERSED: Final = PortRule(
    "ecn-thresholds-reversed", "The marking ramp starts below its end.", Severity.ERROR, _reversed
)
ECN_STEP_CURVE: Final = PortRule("ecn-step-curve", "The marking curve is a ramp.", Severity.WARNING, _step)
ECN_PMAX_ZERO: Final = PortRule("ecn-pmax-zero", "The marking ramp rises.", Severity.ERROR, _pmax)
ECN_THRESHOLDS_UNSCALED: Final = PortRule(
    "ecn-thresholds-unscaled", "The marking thresholds fit the speed of the port.", Severity.WARNING, _unscaled
)
