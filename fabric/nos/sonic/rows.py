"""Rows of CONFIG_DB by port and queue, whatever the form of their keys. Reads only; knows no field's meaning.

Keys come as `Ethernet0`, comma-joined `Ethernet0,Ethernet4`, with a queue or range `Ethernet0|3`, `Ethernet0|3-4`,
and on a VOQ chassis `host|asic|Ethernet0|3`. Values refer to rows by name, in old texts as `[TABLE|name]`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import DEVICE_METADATA
from fabric.tree import Value

__all__ = ("NOT_PORTS", "Fields", "Slots", "by_port", "fields_of", "indices_of", "ports_of", "slot_of", "slots")

Fields: TypeAlias = dict[str, str]
Slots: TypeAlias = dict[str, dict[int, Fields]]
"""Port → queue or priority group → fields."""

NOT_PORTS: Final = frozenset({"global", "GLOBAL", "CPU"})

_RANGE: Final = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")  # no device has more queues; 0-999999999 is no range
_OLD_REFERENCE: Final = re.compile(r"\[[^|\]]+\|([^\]]+)\]")  # db_migrator.py before version_3_0_4


def ports_of(key: str) -> tuple[str, ...]:
    """Returns the ports that a key names, comma-joined or not."""
    return tuple(part.strip() for part in key.split(",") if part.strip())


def indices_of(text: str) -> tuple[int, ...]:
    """Returns the numbers of `3` or `3-5`, () when it is neither."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return ()
    first = int(match[1])
    return tuple(range(first, int(match[2] or first) + 1))


def slot_of(key: str, local: str = "") -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Returns ports and numbers of a key such as `Ethernet0,Ethernet4|3-4`.

    Args:
        key: as it stands in the table.
        local: `host|asic|` of this device on a VOQ chassis; its own ports lose that prefix, others keep theirs.
    """
    head, _, last = key.rpartition("|")
    prefix, _, names = head.rpartition("|")
    system = f"{prefix}|" if prefix and f"{prefix}|" != local else ""
    return tuple(f"{system}{port}" for port in ports_of(names)), indices_of(last)


def fields_of(row: Mapping[str, Value]) -> Fields:
    """Returns the fields that hold text, old references resolved to the name."""
    return {field: _OLD_REFERENCE.sub(r"\1", value) for field, value in row.items() if isinstance(value, str)}


def by_port(tables: Tables, table: str) -> dict[str, Fields]:
    """Returns port → fields of a table keyed by port; of two rows for a port, the later field wins."""
    out: dict[str, Fields] = {}
    for key, row in tables.get(table, {}).items():
        for port in ports_of(key):
            if port not in NOT_PORTS:
                out.setdefault(port, {}).update(fields_of(row))
    return out


def slots(tables: Tables, table: str, *, keys: Iterable[str] | None = None) -> Slots:
    """Returns port → number → fields of a table keyed by port and number; the later field wins.

    Args:
        tables: the configuration.
        table: QUEUE, BUFFER_PG or BUFFER_QUEUE.
        keys: only these rows; all when None.
    """
    local = _local_prefix(tables)
    out: Slots = {}
    rows = tables.get(table, {})
    for key in rows if keys is None else keys:
        ports, indices = slot_of(key, local)
        for port in ports:
            if port not in NOT_PORTS:
                of_port = out.setdefault(port, {})
                for index in indices:
                    of_port.setdefault(index, {}).update(fields_of(rows[key]))
    return out


def _local_prefix(tables: Tables) -> str:
    about = tables.get(DEVICE_METADATA, {}).get("localhost", {})
    host, asic = about.get("hostname"), about.get("asic_name")
    return f"{host}|{asic}|" if isinstance(host, str) and isinstance(asic, str) else ""
