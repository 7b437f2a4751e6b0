"""Egress queues: `QueueQos` → SCHEDULER, WRED_PROFILE and QUEUE."""

import hashlib
import re
from collections import Counter
from dataclasses import replace
from typing import Final

from fabric.nos.sonic import standing
from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import OWN_PREFIX, QUEUE, SCHEDULER, STOCK_WRED, WRED_PROFILE
from fabric.nos.sonic.placing import settle
from fabric.nos.sonic.rows import Fields, slots
from fabric.qos import UNKNOWN, Aqm, AqmKind, Aspect, DeviceQos, QueueQos, Scheduler, SchedulerKind
from fabric.tree import Path, Value

__all__ = ("needs_stock_wred", "queues")

_COLOURS: Final = ("green", "yellow", "red")
_FREE_WRED_NAMES: Final = 202605  # first branch with sonic-utilities PR #4219
_BRANCH_DATE: Final = re.compile(r"(?<!\d)(20\d{6})(?!\d)")  # GCU takes the 8-digit part of build_version
_BYTES_OF_KILOBIT: Final = 125
_NAME_LENGTH: Final = 32  # sonic-wred-profile.yang, leaf name


def needs_stock_wred(version: str) -> bool:
    """Returns whether the generic config updater of that release changes no WRED profile but AZURE_LOSSLESS.

    Source: sonic-buildimage issue 22295; sonic-utilities PR #4219. A version without a branch date tells nothing.
    """
    match = _BRANCH_DATE.search(version)
    return match is not None and int(match[1][:6]) < _FREE_WRED_NAMES


def queues(qos: DeviceQos, running: Tables, aspects: standing.Aspects, *, stock_wred: bool) -> dict[Path, Value]:
    """Returns the QUEUE rows of every port, with the schedulers and curves that they name.

    Args:
        qos: the plan.
        running: what the device runs now.
        aspects: what stays on which port.
        stock_wred: the curve of most queues takes the stock name; any other curve is refused in service.
    """
    out: dict[Path, Value] = {}
    stock = _commonest(qos, running) if stock_wred else None
    rows = slots(running, QUEUE)
    for port in qos.ports:
        now, kept = rows.get(port.name, {}), aspects.get(port.name, frozenset())
        desired: dict[int, Fields] = {}
        for index in sorted({*now, *(queue.index for queue in port.queues)}):
            queue = port.queue(index) or QueueQos(index)
            fields = _kept(queue, now.get(index, {}), kept)
            if isinstance(queue.scheduler, Scheduler) and Aspect.SCHEDULERS not in kept:
                name, more = _scheduler(queue.scheduler, running, now.get(index, {}).get("scheduler"))
                out.update(more)
                fields["scheduler"] = name
            if isinstance(queue.aqm, Aqm) and Aspect.ECN not in kept:
                name, more = _curve(_comparable(queue.aqm), running, now.get(index, {}).get("wred_profile"), stock)
                out.update(more)
                fields["wred_profile"] = name
            if fields:
                desired[index] = fields
        for key, row in settle(running, QUEUE, port.name, desired).items():
            out.update({(QUEUE, key, field): value for field, value in row.items()})
    return out


def _kept(queue: QueueQos, now: Fields, kept: frozenset[Aspect]) -> Fields:
    """Returns the fields that stay; what cannot be read of another class's queue stays too."""
    fields = (
        ("scheduler", Aspect.SCHEDULERS, queue.scheduler),
        ("wred_profile", Aspect.ECN, queue.aqm),
    )
    is_others = Aspect.OTHERS in kept
    return {
        field: now[field]
        for field, aspect, wanted in fields
        if field in now and (aspect in kept or (is_others and wanted is UNKNOWN))
    }


def _scheduler(wanted: Scheduler, running: Tables, now: str | None) -> tuple[str, dict[Path, Value]]:
    """Returns the name to bind and the rows of ours that it needs; `now` is what is bound."""
    if now is not None and standing.says_scheduler(running, now, wanted):
        return now, {}
    name = _scheduler_name(wanted)
    return name, _scheduler_rows(name, wanted)


def _curve(wanted: Aqm, running: Tables, now: str | None, stock: Aqm | None) -> tuple[str, dict[Path, Value]]:
    """Likewise of a curve; `stock` is the one that goes by the stock name."""
    if now is not None and standing.says_curve(running, now, wanted):
        return now, {}
    name = STOCK_WRED if wanted == stock else _curve_name(wanted)
    return name, _curve_rows(name, wanted, running)


def _comparable(aqm: Aqm) -> Aqm:
    return replace(aqm, counted=UNKNOWN, weight=UNKNOWN)


def _commonest(qos: DeviceQos, running: Tables) -> Aqm | None:
    """Returns the curve of most queues, None when the device has them all under names of ours (after an install)."""
    curves = Counter(_comparable(q.aqm) for port in qos.ports for q in port.queues if isinstance(q.aqm, Aqm))
    rows = [row for curve in curves for row in _curve_rows(_curve_name(curve), curve, running).items()]
    profiles = running.get(WRED_PROFILE, {})
    if all(profiles.get(name, {}).get(field) == value for (_, name, field), value in rows):
        return None
    return min(curves, key=lambda curve: (-curves[curve], _curve_name(curve)), default=None)


def _scheduler_name(scheduler: Scheduler) -> str:
    parts = [OWN_PREFIX, scheduler.kind.value.upper()]
    parts += [f"W{scheduler.weight}"] if scheduler.weight and scheduler.kind is not SchedulerKind.STRICT else []
    parts += [f"MIN{scheduler.guaranteed_kbps}K"] if scheduler.guaranteed_kbps else []
    parts += [f"MAX{scheduler.shape_kbps}K"] if scheduler.shape_kbps else []
    return "_".join(parts)


def _scheduler_rows(name: str, scheduler: Scheduler) -> dict[Path, Value]:
    row: Fields = {"type": scheduler.kind.value.upper()}
    if scheduler.kind is not SchedulerKind.STRICT and scheduler.weight:
        row["weight"] = str(scheduler.weight)
    guaranteed, shape = scheduler.guaranteed_kbps or 0, scheduler.shape_kbps or 0
    if guaranteed or shape:
        row["meter_type"] = "bytes"
        # a pir needs a cir above 0 (sonic-scheduler.yang): one byte a second guarantees nothing
        row["cir"] = str(guaranteed * _BYTES_OF_KILOBIT or 1)
    if shape:
        row["pir"] = str(shape * _BYTES_OF_KILOBIT)
    return {(SCHEDULER, name, field): value for field, value in row.items()}


def _curve_name(aqm: Aqm) -> str:
    kind = {AqmKind.MARK: "ECN", AqmKind.DROP: "WRED"}.get(aqm.kind, aqm.kind.value)
    low, high = ("" if one is UNKNOWN else str(one.value) for one in (aqm.kmin, aqm.kmax))
    content = f"{low}_{high}" + ("" if aqm.pmax_percent is UNKNOWN else f"_{aqm.pmax_percent}")
    name = f"{OWN_PREFIX}_{kind}_{content}"
    if len(name) <= _NAME_LENGTH:
        return name
    return f"{OWN_PREFIX}_{kind}_{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def _curve_rows(name: str, aqm: Aqm, running: Tables) -> dict[Path, Value]:
    # Nobody colours packets here, so all are green. Older GCU refuses yellow and red (sonic-buildimage #24933):
    # an existing stock profile keeps its own.
    keep = name == STOCK_WRED and name in running.get(WRED_PROFILE, {})
    row: Fields = {"ecn": "ecn_all"} if aqm.kind is AqmKind.MARK else {"ecn": "ecn_none"}
    for colour in _COLOURS[:1] if keep else _COLOURS:
        row[f"wred_{colour}_enable"] = "true"
        if aqm.kmin is not UNKNOWN and aqm.kmax is not UNKNOWN:
            row[f"{colour}_min_threshold"] = str(aqm.kmin.value)
            row[f"{colour}_max_threshold"] = str(aqm.kmax.value)
        if aqm.pmax_percent is not UNKNOWN:
            row[f"{colour}_drop_probability"] = str(aqm.pmax_percent)
    return {(WRED_PROFILE, name, field): value for field, value in row.items()}
