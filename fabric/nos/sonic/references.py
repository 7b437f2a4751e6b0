"""Which fields refer to which rows, and in which form the device wants that: `name`, or `[TABLE|name]`. Knows no port.

Releases that keep the brackets take nothing else: a plain name is "malformed" there, and the binding does nothing.
Source: sonic-swss orchagent/orch.cpp, Orch::parseReference of the branches up to 202106; sonic-utilities
scripts/db_migrator.py, migrate_qos_db_fieldval_reference_remove, which takes the brackets away in later ones.
"""

import re
from collections.abc import Mapping
from typing import Final

from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import (
    BOUND_MAPS,
    BUFFER_PG,
    BUFFER_POOL,
    BUFFER_PROFILE,
    BUFFER_QUEUE,
    PORT_QOS_MAP,
    QUEUE,
    SCHEDULER,
    WRED_PROFILE,
)
from fabric.tree import Path, Value

__all__ = ("as_device_writes", "has_brackets", "target_of")

_REFERENCES: Final = {
    PORT_QOS_MAP: BOUND_MAPS | {"scheduler": SCHEDULER},
    QUEUE: {"scheduler": SCHEDULER, "wred_profile": WRED_PROFILE},
    BUFFER_PG: {"profile": BUFFER_PROFILE},
    BUFFER_QUEUE: {"profile": BUFFER_PROFILE},
    BUFFER_PROFILE: {"pool": BUFFER_POOL},
}
_BRACKETS: Final = re.compile(r"\[[^|\]]+\|([^\]]+)\]")
_NO_ROW: Final = frozenset({"", "NULL"})  # buffermgrdyn computes the profile


def target_of(path: Path, value: Value) -> tuple[str, str] | None:
    """Returns table and name of the row that a field refers to, None when it refers to none."""
    if len(path) != 3 or not isinstance(value, str) or value in _NO_ROW:
        return None
    table = _REFERENCES.get(path[0], {}).get(path[2])
    if table is None:
        return None
    match = _BRACKETS.fullmatch(value)
    return table, match[1] if match else value


def has_brackets(running: Tables) -> bool:
    """Returns whether the device holds references as `[TABLE|name]`."""
    return any(
        isinstance(value := row.get(field), str) and _BRACKETS.fullmatch(value) is not None
        for table, fields in _REFERENCES.items()
        for row in running.get(table, {}).values()
        for field in fields
    )


def as_device_writes(running: Tables, wanted: Mapping[Path, Value]) -> dict[Path, Value]:
    """Returns `wanted` with its references in the form of those that the device holds."""
    if not has_brackets(running):
        return dict(wanted)
    return {path: _bracketed(path, value) for path, value in wanted.items()}


def _bracketed(path: Path, value: Value) -> Value:
    target = target_of(path, value)
    return value if target is None else f"[{target[0]}|{target[1]}]"
