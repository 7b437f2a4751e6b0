"""What stands on the device already: what a plan keeps of it, and which of its objects say just what is wanted.

An object of somebody else's that says what the plan says is bound as well as one of ours: such a binding stays, since
to swap it would change nothing but a name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from fabric.nos.base import RenderContext
from fabric.nos.sonic import parse_queues
from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import (
    BOUND_MAPS,
    BUFFER_PG,
    OWN_PREFIX,
    PFC_WD,
    PORT,
    PORT_QOS_MAP,
    QUEUE,
    SCHEDULER,
    WRED_PROFILE,
)
from fabric.nos.sonic.parse import parse_tree
from fabric.nos.sonic.placing import joined_keys
from fabric.nos.sonic.reading import Reading
from fabric.nos.sonic.rows import NOT_PORTS, fields_of, ports_of, slots
from fabric.qos import ALL_ASPECTS, UNKNOWN, Aqm, Aspect, DeviceQos, Scheduler
from fabric.qos.keeping import by_port, merged
from fabric.tree import Path, Value

__all__ = (
    "Aspects",
    "Raw",
    "described",
    "kept_rows",
    "left_groups",
    "raw_rows",
    "says_curve",
    "says_map",
    "says_scheduler",
)

Aspects: TypeAlias = Mapping[str, frozenset[Aspect]]
"""Port → what stays there."""
Raw: TypeAlias = dict[str, dict[str, str]]
"""Port → field → value as it is written, old references included."""

_FIELDS = {
    Aspect.MAPS: (*BOUND_MAPS,),
    Aspect.PFC: ("pfc_enable",),
    Aspect.WATCHDOG: ("pfcwd_sw_enable",),
}


def described(qos: DeviceQos, context: RenderContext) -> DeviceQos:
    """Returns what of the plan is to be rendered: without ports that stay altogether, others' classes as they are."""
    aspects = by_port(context.kept)
    ports = tuple(port for port in qos.ports if aspects.get(port.name) != ALL_ASPECTS)
    left = replace(qos, ports=ports)
    if not any(Aspect.OTHERS in aspects.get(port.name, frozenset()) for port in ports):
        return left
    return merged(left, context.kept, parse_tree(context.running, device=qos.device))


def raw_rows(running: Tables, table: str) -> Raw:
    """Returns the rows of a table keyed by port as they are written; of two rows for a port, the later field wins."""
    out: Raw = {}
    for key, row in running.get(table, {}).items():
        for port in ports_of(key):
            if port not in NOT_PORTS:
                out.setdefault(port, {}).update({f: value for f, value in row.items() if isinstance(value, str)})
    return out


def kept_rows(running: Tables, aspects: Aspects) -> dict[Path, Value]:
    """Returns the rows that stay as they are on each port, under keys of its own; placed as written by `placing`."""
    out: dict[Path, Value] = {}
    bound, watchdogs = raw_rows(running, PORT_QOS_MAP), raw_rows(running, PFC_WD)
    for port, kept in aspects.items():
        for aspect, fields in _FIELDS.items():
            row = bound.get(port, {}) if aspect in kept else {}
            out.update({(PORT_QOS_MAP, port, field): row[field] for field in fields if field in row})
        if Aspect.WATCHDOG in kept:
            out.update({(PFC_WD, port, field): value for field, value in watchdogs.get(port, {}).items()})
        if Aspect.PFC in kept and "pfc_asym" in running.get(PORT, {}).get(port, {}):
            out[PORT, port, "pfc_asym"] = running[PORT][port]["pfc_asym"]
    return out


def left_groups(running: Tables, ports: Iterable[str]) -> dict[Path, Value]:
    """Returns the BUFFER_PG rows of `ports` that stand under a key joined with others: the key goes, the rows stay."""
    now = slots(running, BUFFER_PG)
    out: dict[Path, Value] = {}
    for port in ports:
        if joined_keys(running, BUFFER_PG, (port,)):
            for index, fields in now.get(port, {}).items():
                out.update({(BUFFER_PG, f"{port}|{index}", field): value for field, value in fields.items()})
    return out


def says_map(running: Tables, field: str, name: str, entries: Sequence[int | None]) -> bool:
    """Returns whether the map `name` has just these entries."""
    row = running.get(BOUND_MAPS[field], {}).get(name)
    if row is None:
        return False
    return fields_of(row) == {str(key): str(target) for key, target in enumerate(entries) if target is not None}


def says_scheduler(running: Tables, name: str | None, wanted: Scheduler) -> bool:
    """Returns whether the scheduler `name` of somebody else does what `wanted` says."""
    if name is None or name.startswith(OWN_PREFIX):
        return False
    now = parse_queues.scheduler(Reading({SCHEDULER: running.get(SCHEDULER, {})}), name, QUEUE)
    if not isinstance(now, Scheduler) or now.kind is not wanted.kind:
        return False
    rates = (wanted.guaranteed_kbps or None, wanted.shape_kbps or None)
    weight = now.weight if wanted.weight is None and now.weight is None else (wanted.weight or 1)
    return now.weight == weight and (now.guaranteed_kbps, now.shape_kbps) == rates


def says_curve(running: Tables, name: str | None, wanted: Aqm) -> bool:
    """Returns whether the WRED profile `name` of somebody else does to green packets what `wanted` says."""
    if name is None or name.startswith(OWN_PREFIX):
        return False
    now = parse_queues.aqm(Reading({WRED_PROFILE: running.get(WRED_PROFILE, {})}), name, QUEUE)
    if not isinstance(now, Aqm):
        return False
    pmax = 100 if wanted.pmax_percent is UNKNOWN else wanted.pmax_percent
    return (now.kind, now.kmin, now.kmax, now.pmax_percent) == (wanted.kind, wanted.kmin, wanted.kmax, pmax)
