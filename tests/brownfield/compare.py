"""What changed on a switch beyond what was asked for: a comparator that shares no code with the product.

A CONFIG_DB is compared by table, row and field, after joined keys (`Ethernet0,Ethernet4|3-4`) are spelled out: a port
that nobody asked for must do what it did, under whatever key. An EOS configuration is compared as the lines of each
section, in whatever order.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from tests.brownfield.samples import Tables

__all__ = ("canonical_lines", "canonical_tables", "eos_changes", "port_channels", "sonic_changes")

_OURS: Final = "FABRICCTL"
_BY_PORT: Final = ("PORT_QOS_MAP", "PFC_WD")
_BY_SLOT: Final = ("QUEUE", "BUFFER_PG", "BUFFER_QUEUE")
_WIDE: Final = {"PORT_QOS_MAP": "global", "PFC_WD": "GLOBAL"}
_NAMED: Final = (
    "DSCP_TO_TC_MAP",
    "DOT1P_TO_TC_MAP",
    "TC_TO_QUEUE_MAP",
    "TC_TO_PRIORITY_GROUP_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "TC_TO_DSCP_MAP",
    "SCHEDULER",
    "WRED_PROFILE",
    "BUFFER_PROFILE",
)
_PORT_FIELDS: Final = frozenset({"mtu", "pfc_asym"})
_STEP: Final = 3

Cell = tuple[str, ...]


def canonical_tables(tables: Tables) -> dict[Cell, str]:
    """Returns (table, row, field) → value as text; a row without fields is (table, row). Order does not count."""
    out: dict[Cell, str] = {}
    for table, rows in tables.items():
        for key, row in rows.items():
            if not isinstance(row, Mapping):
                out[table, key] = repr(row)
            elif not row:
                out[table, key] = ""
            for field, value in row.items() if isinstance(row, Mapping) else ():
                out[table, key, field] = repr(value)
    return out


def sonic_changes(before: Tables, after: Tables, ours: Collection[str], *, adopted: bool) -> tuple[str, ...]:
    """Returns each cell that differs and is not what a takeover of the ports `ours` may touch."""
    one, other = _effective(before), _effective(after)
    cells = sorted(cell for cell in {*one, *other} if one.get(cell) != other.get(cell))
    had_wide = {table for table, key in _WIDE.items() if key in before.get(table, {})}
    return tuple(
        f"{'|'.join(cell)}: {one.get(cell, 'absent')} became {other.get(cell, 'absent')}"
        for cell in cells
        if not _is_asked_for(cell, ours, adopted=adopted, had_wide=had_wide)
    )


def _is_asked_for(cell: Cell, ours: Collection[str], *, adopted: bool, had_wide: Collection[str]) -> bool:
    table, key, *rest = cell
    field = rest[-1] if rest else ""
    if table in _NAMED:
        return key.startswith(_OURS)
    if table == "PORT":
        return key in ours and field in _PORT_FIELDS
    if table == "CABLE_LENGTH":
        return key in ours
    if key == _WIDE.get(table):
        return adopted or (table == "PFC_WD" and table not in had_wide)
    if table == "PORT_QOS_MAP":
        return key in ours and field != "scheduler"
    return table in {*_BY_PORT, *_BY_SLOT} and key in ours


def _effective(tables: Tables) -> dict[Cell, str]:
    """Returns the cells with joined keys spelled out: (table, port, number, field) where rows are of ports."""
    out: dict[Cell, str] = {}
    for (table, key, *rest), value in canonical_tables(tables).items():
        if table in {*_BY_PORT, *_BY_SLOT}:
            out |= {(table, *place, *rest): value for place in _places(table, key)}
        elif table == "CABLE_LENGTH":
            out[table, rest[0]] = value
        else:
            out[table, key, *rest] = value
    return out


def _places(table: str, key: str) -> Iterator[Cell]:
    if table in _BY_PORT:
        yield from ((port,) for port in key.split(","))
        return
    head, _, numbers = key.rpartition("|")
    system, _, ports = head.rpartition("|")
    first, _, last = numbers.partition("-")
    for port in ports.split(","):
        for number in range(int(first), int(last or first) + 1):
            yield (f"{system}|{port}" if system else port), str(number)


def canonical_lines(text: str) -> Counter[Cell]:
    """Returns how often each line stands in each section; separators, comments and headers are left out."""
    found: Counter[Cell] = Counter()
    above: list[tuple[int, str]] = []
    for raw in text.splitlines():
        line = raw.strip()
        if not line or (line.startswith("!") and not line.startswith("!!")) or line == "end":
            continue
        indent = len(raw) - len(raw.lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        above.append((indent, line))
        found[tuple(name for _, name in above)] += 1
    return found


def port_channels(text: str) -> dict[str, tuple[str, ...]]:
    """Returns port channel → its members."""
    out: dict[str, list[str]] = {}
    for section in canonical_lines(text):
        member = re.fullmatch(r"channel-group (\d+) mode \S+", section[-1])
        if member is not None and len(section) == 2:
            out.setdefault(f"Port-Channel{member[1]}", []).append(section[0].removeprefix("interface "))
    return {name: tuple(members) for name, members in out.items()}


_OF_PORT: Final = re.compile(
    r"(?:l2 )?mtu \d+|dcbx mode \w+|service-profile \S+|service-policy type qos input \S+|(?:no )?qos trust(?: \w+)?"
    r"|(?:no )?priority-flow-control\b.*|flowcontrol .*"
)
_OF_DEVICE: Final = re.compile(
    r"qos map dscp .*|qos map traffic-class .* to (?:uc-)?tx-queue \d|priority-flow-control all off|qos rewrite dscp"
    r"|priority-flow-control pause watchdog (?:default|action) .*"
)
_QUEUE: Final = re.compile(r"(?:uc-)?tx-queue \d")


def eos_changes(before: str, after: str, ours: Collection[str], *, adopted: bool) -> tuple[str, ...]:
    """Returns each line that came or went and is not what a takeover of the ports `ours` may touch."""
    one, other = canonical_lines(before), canonical_lines(after)
    interfaces = {f"interface {name}" for name in ours}
    interfaces |= {f"interface {name}" for name, members in port_channels(before).items() if set(members) & set(ours)}
    gone = [("-", section) for section in (one - other)]
    come = [("+", section) for section in (other - one)]
    return tuple(
        f"{sign} {' / '.join(section)}"
        for sign, section in (*gone, *come)
        if not _is_ours(section, interfaces, adopted=adopted)
    )


def _is_ours(section: Cell, interfaces: Collection[str], *, adopted: bool) -> bool:
    head, *rest = section
    if head.startswith(f"qos profile {_OURS}-"):
        return True
    if head in interfaces and rest:
        return _OF_PORT.fullmatch(rest[0]) is not None or _QUEUE.fullmatch(rest[0]) is not None
    return adopted and not rest and _OF_DEVICE.fullmatch(head) is not None
