"""The queues of an EOS port: scheduler and curve from the lines of its profile and its own. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from fabric.nos.eos.defaults import KBYTE, QUEUE_COUNT
from fabric.nos.eos.keys import NO
from fabric.nos.eos.sections import Section
from fabric.qos import UNKNOWN, Aqm, AqmKind, Known, QueueQos, Scheduler, SchedulerKind, Threshold, ThresholdUnit
from fabric.tree import Value

__all__ = ("is_guaranteed", "queues", "unknown_queues")

_CURVE: Final = re.compile(
    r"minimum-threshold (?P<kmin>[0-9]{1,12}) (?P<unit>\w+) maximum-threshold (?P<kmax>[0-9]{1,12}) \w+"
    r"(?: (?:max-mark|drop)-probability (?P<pmax>[0-9]{1,3}))?(?: weight (?P<weight>[0-9]{1,3}))?"
)
_PMAX_DEFAULT: Final = 100  # and weight 0: unconfirmed
_SHARE: Final = re.compile(r"percent ([0-9]{1,3})|([0-9]{1,3}) percent|([0-9]{1,12})")

# word on the line → unit and how many of it (PyAVD schema `random_detect.ecn.threshold.units`; avd issue 4900 for
# microseconds)
_UNITS: Final = {
    "bytes": (ThresholdUnit.BYTES, 1),
    "kbytes": (ThresholdUnit.BYTES, KBYTE),
    "mbytes": (ThresholdUnit.BYTES, KBYTE * KBYTE),
    "segments": (ThresholdUnit.SEGMENTS, 1),
    "microseconds": (ThresholdUnit.NANOSECONDS, 1_000),
    "milliseconds": (ThresholdUnit.NANOSECONDS, 1_000_000),
}

QueueLines = Mapping[str, Value]


def queues(section: Section, *, speed_mbps: Known[int]) -> tuple[QueueQos, ...]:
    """Returns all eight queues; one that no line names is strict and has no curve, as EOS has it by default."""
    return tuple(_queue(index, section.queues.get(index, {}), speed_mbps) for index in range(QUEUE_COUNT))


def unknown_queues() -> tuple[QueueQos, ...]:
    """Returns eight queues of which nothing can be told: their profile is not in the text."""
    return tuple(QueueQos(index=index, scheduler=UNKNOWN, aqm=UNKNOWN) for index in range(QUEUE_COUNT))


def is_guaranteed(lines: QueueLines) -> bool:
    """Returns whether the queue has guaranteed bandwidth, without which the watchdog does not watch it."""
    return "bandwidth guaranteed" in lines


def _queue(index: int, lines: QueueLines, speed_mbps: Known[int]) -> QueueQos:
    kind = SchedulerKind.DWRR if lines.get("priority") == NO else SchedulerKind.STRICT
    percent = lines.get("bandwidth percent")
    scheduler = Scheduler(
        kind=kind,
        weight=int(percent) if isinstance(percent, str) else None,
        percent=isinstance(percent, str),
        guaranteed_kbps=_rate(lines.get("bandwidth guaranteed"), speed_mbps),
        shape_kbps=_rate(lines.get("shape rate"), speed_mbps),
    )
    return QueueQos(index=index, scheduler=scheduler, aqm=_aqm(lines))


def _rate(value: Value, speed_mbps: Known[int]) -> int | None:
    """Returns kb/s; None for no line, and for a percentage of a speed that the text does not tell."""
    match = _SHARE.match(value) if isinstance(value, str) else None
    if match is None:
        return None
    if match[3] is not None:
        return int(match[3])
    return None if speed_mbps is UNKNOWN else speed_mbps * 10 * int(match[1] or match[2])


def _aqm(lines: QueueLines) -> Known[Aqm | None]:
    drops = [value for key, value in lines.items() if key.startswith("random-detect drop")]
    if "random-detect ecn" in lines:
        if drops:
            return UNKNOWN  # no source says whether a queue with both drops what it could mark
        return _curve(AqmKind.MARK, lines["random-detect ecn"], counted="random-detect ecn count" in lines)
    return _curve(AqmKind.DROP, drops[0], counted=UNKNOWN) if drops else None


def _curve(kind: AqmKind, value: Value, *, counted: Known[bool]) -> Known[Aqm | None]:
    match = _CURVE.fullmatch(value) if isinstance(value, str) else None
    unit = _UNITS.get(match["unit"]) if match is not None else None
    if match is None or unit is None:
        return UNKNOWN
    return Aqm(
        kind=kind,
        kmin=Threshold(int(match["kmin"]) * unit[1], unit[0]),
        kmax=Threshold(int(match["kmax"]) * unit[1], unit[0]),
        pmax_percent=int(match["pmax"] or _PMAX_DEFAULT),
        weight=int(match["weight"] or 0),
        counted=counted,
    )
