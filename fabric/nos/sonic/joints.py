"""Which rows of CONFIG_DB stand or fall together when a run is taken back, and what does not hold together. Pure.

The unit is a row. Rows that name one port, or one queue of it, in several ways (`Ethernet0,Ethernet4|3`,
`Ethernet0|3-4`, `Ethernet0|3`) are one unit: half of them would leave a queue with two rows or none. So are what a port
pauses and its headroom, and the watchdog's polling interval and the times that it bounds, where a run changed both.
Fields of PORT and CABLE_LENGTH have nothing to do with each other. Sources of the demands: the YANG models named
at each.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from fabric.diff import Flaw, Unit
from fabric.nos.sonic.config import Row, Tables, tables
from fabric.nos.sonic.names import (
    BOUND_MAPS,
    BUFFER_PG,
    BUFFER_POOL,
    BUFFER_PROFILE,
    BUFFER_QUEUE,
    CABLE_LENGTH,
    PFC_WD,
    PORT,
    PORT_QOS_MAP,
    QUEUE,
    SCHEDULER,
    WRED_PROFILE,
)
from fabric.nos.sonic.rows import NOT_PORTS, by_port, fields_of, ports_of, slot_of, slots
from fabric.tree import Path, Tree

__all__ = ("flaws", "units")

_SLOTS: Final = frozenset({QUEUE, BUFFER_PG, BUFFER_QUEUE})
_BY_PORT: Final = frozenset({PORT_QOS_MAP, PFC_WD})
_BY_FIELD: Final = frozenset({PORT, CABLE_LENGTH})
_COMPUTED: Final = "NULL"  # profile of a priority group that the buffer manager computes

_REFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    PORT_QOS_MAP: {**BOUND_MAPS, "scheduler": SCHEDULER},
    QUEUE: {"scheduler": SCHEDULER, "wred_profile": WRED_PROFILE},
    BUFFER_PG: {"profile": BUFFER_PROFILE},
    BUFFER_QUEUE: {"profile": BUFFER_PROFILE},
    BUFFER_PROFILE: {"pool": BUFFER_POOL},
    "BUFFER_PORT_INGRESS_PROFILE_LIST": {"profile_list": BUFFER_PROFILE},
    "BUFFER_PORT_EGRESS_PROFILE_LIST": {"profile_list": BUFFER_PROFILE},
}
"""Table → field → table of the rows that it names: leafrefs of sonic-port-qos-map, -queue, -buffer-*.yang."""

_NOT_BELOW: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    WRED_PROFILE: tuple((f"{color}_max_threshold", f"{color}_min_threshold") for color in ("green", "yellow", "red")),
    SCHEDULER: (("pir", "cir"), ("pbs", "cbs")),
}
"""Fields of one row of which the first is at least the second: sonic-wred-profile.yang, sonic-scheduler.yang."""


def units(paths: Collection[Path]) -> tuple[Unit, ...]:
    """Returns the rows, those that depend on each other together; fields of PORT and CABLE_LENGTH each alone."""
    together: dict[Path, list[Path]] = {}
    for path in paths:
        together.setdefault(path if path[0] in _BY_FIELD else path[:2], []).append(path)
    return tuple(
        Unit(tuple(path for place in places for path in together[place]), rows=tuple(filter(_is_own, places)))
        for places in _joined(together)
    )


def flaws(tree: Tree) -> tuple[Flaw, ...]:
    """Returns rows that name what is not there, contradict each other, or pause without headroom."""
    found = tables(tree)
    return (
        *_dangling(found),
        *_portless(found),
        *_overlapping(found),
        *_contradicting(found),
        *_polled_too_rarely(found),
        *_without_headroom(found),
    )


def _is_own(place: Path) -> bool:
    # a port's bindings are independent of each other: somebody's shaper in the same row is no change of ours
    return len(place) == 2 and place[0] != PORT_QOS_MAP


def _joined(places: Collection[Path]) -> list[list[Path]]:
    """Returns the places, those that share a port and queue together, in order of the first of each."""
    group_of: dict[Path, list[Path]] = {}
    owner: dict[Path, Path] = {}
    polled = (PFC_WD, "GLOBAL") in places
    for place in places:
        group_of[place] = [place]
        for point in (*_points(place), *_bonds(place, polled=polled)):
            other = owner.setdefault(point, place)
            if group_of[other] is not group_of[place]:
                first, second = group_of[other], group_of[place]
                first += second
                group_of |= dict.fromkeys(second, first)
    return list({id(group): group for group in group_of.values()}.values())


def _points(place: Path) -> Iterator[Path]:
    table, key = place[0], place[-1]
    if table in _BY_PORT and len(place) == 2:
        yield from ((table, port) for port in ports_of(key))
    elif table in _SLOTS and len(place) == 2:
        ports, indices = slot_of(key)
        yield from ((table, port, str(index)) for port in ports for index in indices)


def _bonds(place: Path, *, polled: bool) -> Iterator[Path]:
    """Yields points that rows of more than one table, or of a whole table, have in common."""
    table, key = place[0], place[-1]
    if table == PORT_QOS_MAP:
        yield from (("lossless", port) for port in ports_of(key) if port not in NOT_PORTS)
    elif table == BUFFER_PG:
        yield from (("lossless", port) for port in slot_of(key)[0])
    elif table == PFC_WD and polled:
        yield (PFC_WD,)


def _dangling(found: Tables) -> Iterator[Flaw]:
    for table, fields in _REFERENCES.items():
        for key, row in found.get(table, {}).items():
            for field, target in fields.items():
                for name in _names(row, field):
                    if name not in found.get(target, {}) and (table, name) != (BUFFER_PG, _COMPUTED):
                        yield Flaw(f"{table}|{key} names {target}|{name}", ((table, key), (target, name)))


def _names(row: Row, field: str) -> tuple[str, ...]:
    value = row.get(field)
    if isinstance(value, tuple):
        return value
    text = fields_of(row).get(field, "")
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _portless(found: Tables) -> Iterator[Flaw]:
    ports = found.get(PORT, {})
    for table in (*sorted(_BY_PORT), *sorted(_SLOTS)) if ports else ():
        for key in found.get(table, {}):
            named = slot_of(key)[0] if table in _SLOTS else ports_of(key)
            known = (port in ports or port in NOT_PORTS or "|" in port for port in named)  # |: of a VOQ chassis
            for port in (port for port, is_known in zip(named, known, strict=True) if not is_known):
                yield Flaw(f"{table}|{key} names PORT|{port}", ((table, key), (PORT, port)))


def _overlapping(found: Tables) -> Iterator[Flaw]:
    for table in (*sorted(_BY_PORT), *sorted(_SLOTS)):
        first: dict[Path, str] = {}
        told: set[tuple[str, str]] = set()
        for key in found.get(table, {}):
            for point in _points((table, key)):
                other = first.setdefault(point, key)
                if other != key and (other, key) not in told:
                    told.add((other, key))
                    text = f"{table}|{min(other, key)} and {table}|{max(other, key)} are about one and the same"
                    yield Flaw(text, ((table, other), (table, key)))


def _contradicting(found: Tables) -> Iterator[Flaw]:
    for table, pairs in _NOT_BELOW.items():
        for key, row in found.get(table, {}).items():
            for high, low in pairs:
                if _number(row, high, default=-1) < _number(row, low, default=-1):
                    yield Flaw(f"{table}|{key}: {high} is below {low}", ((table, key),))


def _polled_too_rarely(found: Tables) -> Iterator[Flaw]:
    """Yields watchdog times below the polling interval: sonic-pfcwd.yang."""
    interval = _number(found.get(PFC_WD, {}).get("GLOBAL", {}), "POLL_INTERVAL", default=0)
    for key, row in found.get(PFC_WD, {}).items():
        for field in ("detection_time", "restoration_time"):
            if _number(row, field, default=interval) < interval:
                text = f"PFC_WD|{key}: {field} is below the polling interval"
                yield Flaw(text, ((PFC_WD, key), (PFC_WD, "GLOBAL")))


def _without_headroom(found: Tables) -> Iterator[Flaw]:
    """Yields priorities that a port pauses, whose priority group has no headroom row: it would lose what it paused."""
    groups = slots(found, BUFFER_PG)
    profiles = found.get(BUFFER_PROFILE, {})
    maps = found.get(BOUND_MAPS["pfc_to_pg_map"], {})
    for port, row in by_port(found, PORT_QOS_MAP).items():
        group_of = fields_of(maps.get(row.get("pfc_to_pg_map", ""), {}))
        for priority in (part.strip() for part in row.get("pfc_enable", "").split(",")):
            group = group_of.get(priority, priority)
            name = groups.get(port, {}).get(int(group), {}).get("profile", "") if group.isdigit() else _COMPUTED
            if priority and not (name == _COMPUTED or "xoff" in profiles.get(name, {})):
                paths = [(PORT_QOS_MAP, key) for key in found[PORT_QOS_MAP] if port in ports_of(key)]
                paths += [(BUFFER_PG, key) for key in _keys_of(found, port, group)]
                text = f"{port} pauses priority {priority}, and its group {group} has no headroom"
                yield Flaw(text, (*paths, (BUFFER_PG, f"{port}|{group}")))


def _keys_of(found: Tables, port: str, group: str) -> Iterator[str]:
    for key in found.get(BUFFER_PG, {}):
        ports, indices = slot_of(key)
        if port in ports and int(group) in indices:
            yield key


def _number(row: Mapping[str, object], field: str, *, default: int) -> int:
    text = row.get(field)
    return int(text) if isinstance(text, str) and text.isdecimal() else default
