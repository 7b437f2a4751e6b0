"""QUEUE, SCHEDULER, WRED_PROFILE → egress queues. Knows no buffer and no render."""

from typing import Final

from fabric.nos.sonic.names import QUEUE, SCHEDULER, WRED_PROFILE
from fabric.nos.sonic.reading import Reading
from fabric.nos.sonic.rows import Fields
from fabric.qos import UNKNOWN, Aqm, AqmKind, Known, QueueQos, Scheduler, SchedulerKind, Threshold

__all__ = ("aqm", "aqm_counters", "queues", "scheduler")

# sonic-scheduler.yang, sonic-wred-profile.yang: defaults of absent leaves
_SCHEDULER_TYPE_DEFAULT: Final = "WRR"
_SCHEDULER_WEIGHT_DEFAULT: Final = 1
_ECN_DEFAULT: Final = "ecn_none"
_DROP_PROBABILITY_DEFAULT: Final = 100
_MARKS_GREEN: Final = frozenset({"ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red"})
_KINDS: Final = {"DWRR": SchedulerKind.DWRR, "WRR": SchedulerKind.WRR, "STRICT": SchedulerKind.STRICT}
_WEIGHT: Final = 0  # sonic-swss orchagent/qosorch.cpp WredMapHandler::addQosItem sets SAI_WRED_ATTR_WEIGHT 0 always
_BITS_OF_KILOBYTE_PER_S: Final = 8


def queues(
    reading: Reading, port: str, of_port: dict[int, Fields], lossless: dict[int, Known[bool]]
) -> tuple[QueueQos, ...]:
    """Returns the queues of `port` that QUEUE or BUFFER_QUEUE says anything about, ascending.

    Args:
        reading: the configuration.
        port: its name.
        of_port: queue number → fields of QUEUE.
        lossless: queue number → whether its egress buffer never drops.
    """
    counted = aqm_counters(reading)
    out = []
    for index in sorted({*of_port, *lossless}):
        fields = of_port.get(index, {})
        where = f"{QUEUE}|{port}|{index}"
        out.append(
            QueueQos(
                index=index,
                scheduler=scheduler(reading, fields.get("scheduler"), where),
                aqm=aqm(reading, fields.get("wred_profile"), where, counted),
                lossless_buffer=lossless.get(index, UNKNOWN),
            )
        )
    return tuple(out)


def scheduler(reading: Reading, name: str | None, where: str) -> Known[Scheduler | None]:
    """Returns the scheduler of that name; None when none is bound, UNKNOWN when the text lacks it."""
    if name is None:
        return None
    row = reading.row(SCHEDULER, name, where)
    kind = None if row is None else _KINDS.get(row.get("type", _SCHEDULER_TYPE_DEFAULT).upper())
    if row is None or kind is None:
        return UNKNOWN
    place = f"{SCHEDULER}|{name}"
    weight = reading.number(row, "weight", place)
    if weight is UNKNOWN:
        return UNKNOWN
    return Scheduler(
        kind=kind,
        weight=None if kind is SchedulerKind.STRICT else (weight or _SCHEDULER_WEIGHT_DEFAULT),
        guaranteed_kbps=_kbps(reading, row, "cir", place),
        shape_kbps=_kbps(reading, row, "pir", place),
    )


def aqm(reading: Reading, name: str | None, where: str, counted: Known[bool] = UNKNOWN) -> Known[Aqm | None]:
    """Returns the curve of that WRED profile for green packets, the colour of all that nobody policed.

    Marks when `ecn` names green, drops when it does not (default ecn_none). UNKNOWN when the text lacks the profile,
    or names ECN for green without `wred_green_enable` (default false): whether it then marks is the ASIC's matter.
    """
    if name is None:
        return None
    row = reading.row(WRED_PROFILE, name, where)
    if row is None:
        return UNKNOWN
    marks = row.get("ecn", _ECN_DEFAULT) in _MARKS_GREEN
    enabled = row.get("wred_green_enable", "false") == "true"
    if not enabled:
        return UNKNOWN if marks else None
    place = f"{WRED_PROFILE}|{name}"
    pmax = reading.number(row, "green_drop_probability", place)
    return Aqm(
        kind=AqmKind.MARK if marks else AqmKind.DROP,
        kmin=_threshold(reading, row, "green_min_threshold", place),
        kmax=_threshold(reading, row, "green_max_threshold", place),
        pmax_percent=_DROP_PROBABILITY_DEFAULT if pmax is None else pmax,
        weight=_WEIGHT,
        counted=counted,
    )


def aqm_counters(reading: Reading) -> Known[bool]:
    """Returns whether ECN and WRED are counted per queue: off unless switched on, UNKNOWN without the table.

    Source: SONiC doc/qos/ECN_and_WRED_statistics_HLD.md; sonic-flex_counter.yang.
    """
    table = reading.tables.get("FLEX_COUNTER_TABLE")
    if table is None:
        return UNKNOWN
    return table.get("WRED_ECN_QUEUE", {}).get("FLEX_COUNTER_STATUS") == "enable"


def _threshold(reading: Reading, row: Fields, field: str, where: str) -> Known[Threshold]:
    value = reading.number(row, field, where)
    return UNKNOWN if value is None or value is UNKNOWN else Threshold(value)


def _kbps(reading: Reading, row: Fields, field: str, where: str) -> int | None:
    # bytes per second (sonic-scheduler.yang, leaf cir); packets per second have no rate in bits
    value = None if row.get("meter_type") == "packets" else reading.number(row, field, where)
    return None if value is None or value is UNKNOWN else (value * _BITS_OF_KILOBYTE_PER_S // 1000) or None
