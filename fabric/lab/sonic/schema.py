"""Does a whole SONiC database satisfy the models of its QoS tables? The models' demands are data in `schema.json`.

Judges values, names and references; meaning (a lossless queue without ECN) is nobody's business here, as on the device.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from fabric.lab.sonic.configdb import Database, Row

__all__ = ("Schema", "schema")

_FILE: Final = Path(__file__).with_name("schema.json")
_INTEGER: Final = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class _Shape:
    """One form that the rows of a table may have."""

    key: tuple[str, ...]
    fields: Mapping[str, str] | None
    pair: tuple[str, ...]
    mandatory: tuple[str, ...]
    at_least: tuple[tuple[str, str], ...]
    not_below: Mapping[str, object]
    when: str


class Schema:
    """The models.

    Args:
        data: the parsed `schema.json`.
    """

    def __init__(self, data: Mapping[str, object]) -> None:
        tables = cast("Mapping[str, Sequence[Mapping[str, object]]]", data["tables"])
        self._tables = {name: tuple(_shape(one) for one in shapes) for name, shapes in tables.items()}

    def problems(self, database: Database) -> tuple[str, ...]:
        """Returns what is wrong with the database, one sentence each."""
        return tuple(self._problems(database))

    def _problems(self, database: Database) -> Iterator[str]:
        switch_type = str(database.get("DEVICE_METADATA", {}).get("localhost", {}).get("switch_type", ""))
        for table, shapes in self._tables.items():
            fitting = [one for one in shapes if one.when in {"", switch_type}]
            for key, row in database.get(table, {}).items():
                shape = _matching(fitting, key, database)
                if shape is None:
                    yield f"Invalid key or dangling reference in the key: {table}|{key}"
                    continue
                yield from (f"{table}|{key}: {problem}" for problem in _row_problems(shape, table, row, database))


@functools.cache
def schema() -> Schema:
    """Returns the models, read once."""
    return Schema(json.loads(_FILE.read_text("utf-8")))


def _shape(row: Mapping[str, object]) -> _Shape:
    fields = cast("Mapping[str, str] | None", row.get("fields"))
    pairs = cast("Sequence[Sequence[str]]", row.get("at_least", ()))
    return _Shape(
        key=tuple(cast("Sequence[str]", row["key"])),
        fields=fields,
        pair=tuple(cast("Sequence[str]", row.get("map", ()))),
        mandatory=tuple(cast("Sequence[str]", row.get("mandatory", ()))),
        at_least=tuple((one[0], one[1]) for one in pairs),
        not_below=cast("Mapping[str, object]", row.get("not_below_global", {})),
        when=cast("str", row.get("when", "")),
    )


def _matching(shapes: Sequence[_Shape], key: str, database: Database) -> _Shape | None:
    for shape in shapes:
        parts = key.split("|")
        if len(parts) == len(shape.key) and all(
            _fits(part, kind, database) for part, kind in zip(parts, shape.key, strict=True)
        ):
            return shape
    return None


def _row_problems(shape: _Shape, table: str, row: Row, database: Database) -> Iterator[str]:
    for name, value in row.items():
        if shape.fields is None:
            key_kind, value_kind = shape.pair
            if not _fits(name, key_kind, database):
                yield f'Invalid value "{name}" of a key of the map'
            kind = value_kind
        elif name in shape.fields:
            kind = shape.fields[name]
        else:
            yield f'Not found a schema node of name "{name}"'
            continue
        if not _fits(value, kind, database):
            yield _bad_value(name, value, kind)
    yield from (f'Missing mandatory field "{name}"' for name in shape.mandatory if name not in row)
    for high, low in shape.at_least:
        if high in row and (low not in row or _number(row[high]) < _number(row[low])):
            yield f"{high} must be greater than or equal to {low}"
    yield from _below_global(shape, table, row, database)


def _below_global(shape: _Shape, table: str, row: Row, database: Database) -> Iterator[str]:
    if not shape.not_below:
        return
    whole = database.get(table, {}).get(cast("str", shape.not_below["row"]))
    if whole is None:
        return
    limit = cast("str", shape.not_below["field"])
    for name in cast("Sequence[str]", shape.not_below["fields"]):
        if name in row and (limit not in whole or _number(row[name]) < _number(whole[limit])):
            yield f"{name} must be greater than or equal to {limit}"


def _bad_value(name: str, value: object, kind: str) -> str:
    if "ref" in kind.rsplit(" or ", maxsplit=1)[-1].split(" ", maxsplit=1)[0]:
        return f'Leafref "{name}" of value "{value}" points to a non-existing leaf'
    return f'Value "{value}" of "{name}" does not satisfy its type ({kind})'


def _fits(value: object, kind: str, database: Database) -> bool:
    return any(_fits_one(value, one, database) for one in kind.split(" or "))


def _fits_one(value: object, kind: str, database: Database) -> bool:
    name, _, argument = kind.partition(" ")
    if name == "refs":
        many = value if isinstance(value, list) else str(value).split(",")
        return all(str(one) in database.get(argument, {}) for one in many)
    if isinstance(value, list | dict):
        return name == "text" and isinstance(value, list)
    text = str(value)
    match name:
        case "text":
            return True
        case "enum":
            return text in argument.split(" ")
        case "re":
            return re.fullmatch(argument, text) is not None
        case "ref":
            return text in database.get(argument, {})
        case "int":
            low, high = argument.split(" ")
            return _INTEGER.fullmatch(text) is not None and int(low) <= int(text) <= int(high)
    raise ValueError(f"unknown type {kind}")


def _number(value: object) -> int:
    text = str(value)
    return int(text) if _INTEGER.fullmatch(text) else -1
