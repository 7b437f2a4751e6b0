"""CONFIG_DB as text: nested config_db.json or flat `TABLE|key` dump to a tree, and back. Knows no field's meaning.

Tree paths are (table, key, field). A row without fields is its (table, key) with None. A table without rows has no
path: Redis keeps none, and the generic config updater refuses a patch that would leave one
(sonic-utilities generic_config_updater/generic_updater.py, EmptyTableError).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from fabric.errors import FabricError, UnsupportedFeatureError
from fabric.qos import Reference
from fabric.tree import Path, Tree, Value

__all__ = ("Row", "Rows", "Tables", "dump", "load", "tables")

Row: TypeAlias = dict[str, Value]
Rows: TypeAlias = dict[str, Row]
Tables: TypeAlias = dict[str, Rows]

_NAMESPACE: Final = re.compile(r"asic\d+")
_EMPTY_ROW: Final = {"NULL": "NULL"}  # how swsssdk stores a hash without fields in Redis


@dataclass(frozen=True, slots=True)
class _Object:
    pairs: list[tuple[str, object]]


def load(text: str) -> tuple[Tree, tuple[Reference, ...]]:
    """Returns the tree of a configuration, and the keys that it gives twice (the last one stands in the tree).

    Raises:
        FabricError: the text is no CONFIG_DB.
        UnsupportedFeatureError: it is that of a multi-ASIC device.
    """
    try:
        root = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError) as error:  # not only JSONDecodeError: a number may have too many digits
        at = f"line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise FabricError(
            "the configuration is not JSON",
            where=at,
            found=error.msg if isinstance(error, json.JSONDecodeError) else str(error),
            expected="the output of `show runningconfiguration all` or a config_db.json",
        ) from error
    if not isinstance(root, _Object):
        raise FabricError(
            "the configuration is no CONFIG_DB", found=type(root).__name__, expected="an object of tables"
        )
    if any(_NAMESPACE.fullmatch(key) for key, _ in root.pairs):
        raise UnsupportedFeatureError(
            "a multi-ASIC configuration (one CONFIG_DB for each namespace) is not supported",
            remedy="Give one namespace: `sonic-cfggen -d --print-data -n asic0`.",
        )
    duplicates: list[Reference] = []
    items: dict[Path, Value] = {}
    for key, value in _last(root, "CONFIG_DB", duplicates).items():
        table, _, row = key.partition("|")  # flat dump: TABLE|key
        if row:
            _put_row(items, (table, row), value, duplicates)
        else:
            _put_table(items, table, value, duplicates)
    return Tree(items), tuple(dict.fromkeys(duplicates))


def dump(data: Mapping[str, object]) -> str:
    """Returns nested tables as the text that the device prints: JSON, four spaces, one newline at the end."""
    return json.dumps(data, indent=4) + "\n"


def tables(tree: Tree) -> Tables:
    """Returns the same as table → key → field → value, for reading."""
    out: Tables = {}
    for path, value in tree.items():
        if len(path) >= 2:
            row = out.setdefault(path[0], {}).setdefault(path[1], {})
            if len(path) == 3:
                row[path[2]] = value
    return out


def _last(node: _Object, where: str, duplicates: list[Reference]) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in node.pairs:
        if key in out:
            duplicates.append(Reference(kind="duplicate", name=key, where=where))
            del out[key]  # the last one also stands last
        out[key] = value
    return out


def _put_table(items: dict[Path, Value], table: str, value: object, duplicates: list[Reference]) -> None:
    if not isinstance(value, _Object):
        raise FabricError("a table is no object of rows", where=table, found=_shown(value))
    for key, row in _last(value, table, duplicates).items():
        _put_row(items, (table, key), row, duplicates)


def _put_row(items: dict[Path, Value], path: tuple[str, str], value: object, duplicates: list[Reference]) -> None:
    where = "|".join(path)
    if not isinstance(value, _Object):
        raise FabricError("a row is no object of fields", where=where, found=_shown(value))
    row = _last(value, where, duplicates)
    if not row or row == _EMPTY_ROW:
        items[path] = None
        return
    for field, content in row.items():
        items[(*path, field)] = _value(content, f"{where}|{field}")


def _shown(value: object) -> str:
    return "a list" if isinstance(value, list) else json.dumps(value)[:80]


def _value(content: object, where: str) -> Value:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        if any(isinstance(one, list | _Object) for one in content):
            raise FabricError("a field is a list of lists or objects", where=where, expected="a list of strings")
        return tuple(one if isinstance(one, str) else json.dumps(one) for one in content)
    if isinstance(content, _Object):
        raise FabricError("a field is an object", where=where, expected="a string or a list of strings")
    return json.dumps(content)
