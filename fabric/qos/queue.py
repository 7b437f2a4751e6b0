"""What one egress queue and one ingress priority group do. Knows no network OS.

Thresholds keep the unit in which the device holds them: a percentage of a queue buffer, a segment or a
microsecond is bytes only where the platform's denominator is known (switches.md 1.4, 1.5).
"""

from dataclasses import dataclass
from enum import StrEnum

from fabric.qos.known import UNKNOWN, Known

__all__ = (
    "Aqm",
    "AqmKind",
    "PriorityGroupQos",
    "QueueQos",
    "Scheduler",
    "SchedulerKind",
    "Threshold",
    "ThresholdUnit",
)


class ThresholdUnit(StrEnum):
    """The unit of a queue threshold."""

    BYTES = "bytes"
    SEGMENTS = "segments"
    PERCENT = "percent"
    NANOSECONDS = "nanoseconds"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A queue depth: `value` in `unit`."""

    value: int
    unit: ThresholdUnit = ThresholdUnit.BYTES

    @property
    def size_bytes(self) -> Known[int]:
        """Returns bytes, or UNKNOWN where the unit needs a platform's denominator."""
        return self.value if self.unit is ThresholdUnit.BYTES else UNKNOWN

    def __str__(self) -> str:
        return f"{self.value} {self.unit.value}"


class AqmKind(StrEnum):
    """What happens to a packet that the curve selects."""

    MARK = "mark"
    DROP = "drop"
    DYNAMIC_MARK = "dynamic-mark"  # the device chooses the curve (Huawei AI-ECN)


@dataclass(frozen=True, slots=True)
class Aqm:
    """An active queue management curve: nothing below kmin, a ramp to pmax at kmax.

    Attributes:
        kind: mark (ECN) or drop (WRED).
        kmin: ramp start; UNKNOWN for a dynamic or vendor-chosen curve.
        kmax: ramp end.
        pmax_percent: probability at the ramp's end, 0..100. What happens beyond kmax is the NOS's own
            (mark all on SONiC, NVUE, NX-OS; stay at pmax on EOS): see its capabilities.
        weight: exponent of the moving average; 0 is the instantaneous queue.
        counted: whether marks are counted on this queue.
    """

    kind: AqmKind
    kmin: Known[Threshold]
    kmax: Known[Threshold]
    pmax_percent: Known[int]
    weight: Known[int] = UNKNOWN
    counted: Known[bool] = UNKNOWN


class SchedulerKind(StrEnum):
    """How a queue gets its turn."""

    STRICT = "strict"
    DWRR = "dwrr"
    WRR = "wrr"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A queue's turn.

    Attributes:
        kind: strict, DWRR or WRR.
        weight: relative weight, or percent where `percent` is true; None for strict without a share.
        percent: whether `weight` is a percentage of the link.
        guaranteed_kbps: guaranteed bandwidth in kb/s, None if none.
        shape_kbps: maximum rate in kb/s, None if none.
    """

    kind: SchedulerKind
    weight: int | None = None
    percent: bool = False
    guaranteed_kbps: int | None = None
    shape_kbps: int | None = None


@dataclass(frozen=True, slots=True)
class QueueQos:
    """One egress queue of one port.

    Attributes:
        index: queue number.
        scheduler: UNKNOWN when the text names one that it does not define; None when none is bound.
        aqm: likewise; None means neither marks nor drops early.
        lossless_buffer: whether its egress buffer profile never drops (SONiC egress lossless pool).
    """

    index: int
    scheduler: Known[Scheduler | None] = None
    aqm: Known[Aqm | None] = None
    lossless_buffer: Known[bool] = UNKNOWN


@dataclass(frozen=True, slots=True)
class PriorityGroupQos:
    """One ingress priority group of one port.

    Attributes:
        index: priority group number.
        lossless: whether it may pause the peer rather than drop.
        xoff_bytes: headroom above the XOFF threshold; UNKNOWN where the NOS computes it by itself.
        xon_bytes: XON threshold below which the peer is resumed.
        xon_offset_bytes: XON below XOFF by this much (Broadcom).
        size_bytes: reserved size.
        alpha_log2: n of alpha = 2^n, the dynamic XOFF threshold (SONiC dynamic_th).
        static_threshold_bytes: fixed XOFF threshold instead of alpha.
        derived_by_nos: the NOS computes the headroom from speed, cable length and MTU.
    """

    index: int
    lossless: Known[bool]
    xoff_bytes: Known[int] = UNKNOWN
    xon_bytes: Known[int] = UNKNOWN
    xon_offset_bytes: Known[int | None] = UNKNOWN
    size_bytes: Known[int] = UNKNOWN
    alpha_log2: Known[int | None] = UNKNOWN
    static_threshold_bytes: Known[int | None] = UNKNOWN
    derived_by_nos: bool = False
