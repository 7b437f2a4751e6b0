"""Which key a row stands under. What already says the right thing stays as it is written; else one row a number.

A device whose QUEUE has `Ethernet0|3-4` and wants just that is not rewritten into two rows; a comma-joined key that a
port of the intent shares with others is taken apart, and the others keep what they had.
"""

from collections.abc import Iterable, Mapping

from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import BUFFER_PG, BUFFER_QUEUE, PFC_WD, PORT_QOS_MAP, QUEUE
from fabric.nos.sonic.rows import Fields, by_port, fields_of, ports_of, slots
from fabric.tree import Path, Value

__all__ = ("PORT_SHAPER", "SLOT_TABLES", "as_written", "joined_keys", "settle", "split")

SLOT_TABLES = (QUEUE, BUFFER_PG, BUFFER_QUEUE)
_PORT_TABLES = (PORT_QOS_MAP, PFC_WD)
PORT_SHAPER = "scheduler"
"""Field of PORT_QOS_MAP that shapes a whole port: none of ours."""


def settle(running: Tables, table: str, port: str, desired: Mapping[int, Fields]) -> dict[str, Fields]:
    """Returns key → fields that give `port` exactly `desired` in a table keyed by port and number."""
    prefix = f"{port}|"
    own = [key for key in running.get(table, {}) if key.startswith(prefix) and key.count("|") == 1]
    if own and slots(running, table, keys=own).get(port, {}) == desired:
        # as it is written, old references included
        return {key: {f: value for f, value in running[table][key].items() if isinstance(value, str)} for key in own}
    return {f"{port}|{index}": dict(desired[index]) for index in sorted(desired)}


def joined_keys(running: Tables, table: str, ports: Iterable[str]) -> tuple[str, ...]:
    """Returns the comma-joined keys of `table` that one of `ports` is in."""
    ours = set(ports)
    return tuple(
        key for key in running.get(table, {}) if "," in key and ours.intersection(ports_of(key.partition("|")[0]))
    )


def split(running: Tables, ports: Iterable[str]) -> dict[Path, Value]:
    """Returns the rows that give foreign ports on their own what they had in a comma-joined key with one of `ports`."""
    ours = set(ports)
    out: dict[Path, Value] = {}
    for table in (*_PORT_TABLES, *SLOT_TABLES):
        for key in joined_keys(running, table, ours):
            names, bar, number = key.partition("|")
            for port in ports_of(names):
                row = {} if port in ours else fields_of(running[table][key])
                out.update({(table, f"{port}{bar}{number}", field): value for field, value in row.items()})
    out.update(_own_rows_win(running, out))
    out.update(_kept_shapers(running, ours))
    return out


def _own_rows_win(running: Tables, rows: Mapping[Path, Value]) -> dict[Path, Value]:
    """Returns the values of rows that exist already, where they stand after the joined key and so won."""
    out: dict[Path, Value] = {}
    for table, key, field in rows:
        keys = list(running[table])
        if field not in running[table].get(key, {}):
            continue
        port, _, number = key.partition("|")
        joined = [
            at
            for at, (names, _, other) in enumerate(one.partition("|") for one in keys)
            if "," in names and port in ports_of(names) and other == number
        ]
        if max(joined) < keys.index(key):
            out[table, key, field] = running[table][key][field]
    return out


def _kept_shapers(running: Tables, ours: set[str]) -> dict[Path, Value]:
    if not joined_keys(running, PORT_QOS_MAP, ours):
        return {}
    rows = by_port(running, PORT_QOS_MAP)
    return {
        (PORT_QOS_MAP, port, PORT_SHAPER): rows[port][PORT_SHAPER] for port in ours if PORT_SHAPER in rows.get(port, {})
    }


def as_written(running: Tables, wanted: Mapping[Path, Value], ports: Iterable[str]) -> dict[Path, Value]:
    """Returns `wanted` with comma-joined keys left whole where none of their ports would get anything else."""
    ours, out = set(ports), dict(wanted)
    for table in (*_PORT_TABLES, *SLOT_TABLES):
        joined = joined_keys(running, table, ours)
        if not joined:
            continue
        single = [key for key in running[table] if "," not in key]
        after: Tables = {table: {key: running[table][key] for key in single if key.partition("|")[0] not in ours}}
        for path, value in wanted.items():
            if path[0] == table and len(path) == 3:
                after[table].setdefault(path[1], {})[path[2]] = value
        then, now = _effective(after, table), _effective(running, table)
        for names, keys in _together(joined):
            if all(then.get(port, {}) == now.get(port, {}) for port in names):
                out = {path: value for path, value in out.items() if path[0] != table or _port_of(path) not in names}
                for key in (*keys, *(key for key in single if key.partition("|")[0] in names)):
                    out.update({(table, key, f): value for f, value in running[table][key].items()})
    return out


def _effective(tables: Tables, table: str) -> Mapping[str, object]:
    return slots(tables, table) if table in SLOT_TABLES else by_port(tables, table)


def _port_of(path: Path) -> str:
    return path[1].partition("|")[0]


def _together(keys: Iterable[str]) -> list[tuple[set[str], list[str]]]:
    """Returns the ports that hang together by joined keys, with those keys."""
    found: list[tuple[set[str], list[str]]] = []
    for key in keys:
        names, members = set(ports_of(key.partition("|")[0])), [key]
        for one in [one for one in found if one[0] & names]:
            found.remove(one)
            names, members = names | one[0], [*one[1], *members]
        found.append((names, members))
    return found
