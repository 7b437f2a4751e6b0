"""The configuration database of an emulated SONiC: reading any file of one, and writing it out. Knows no rule."""

import json
from typing import TypeAlias, cast

from fabric.errors import FabricError
from fabric.serial import SerialError, parse_json
from fabric.units import natural_key

__all__ = ("Database", "Row", "copy_database", "is_database", "merge", "read_database", "write_database")

Row: TypeAlias = dict[str, object]
Database: TypeAlias = dict[str, dict[str, Row]]


def read_database(text: str, *, where: str = "") -> Database:
    """Returns the tables of a config_db.json, nested or in the flat `TABLE|key` form; of a double key the last wins.

    A table without rows is none: Redis keeps none, and the updater would refuse every patch beside it.

    Raises:
        FabricError: the text is no JSON object of tables.
    """
    try:
        data: object = parse_json(text)
    except SerialError as error:
        raise FabricError(f"the configuration is no JSON: {error}", where=where) from error
    if not isinstance(data, dict):
        raise FabricError("the configuration is no JSON object", where=where)
    tables: Database = {}
    for name, rows in data.items():
        table, bar, key = name.partition("|")
        if bar:
            tables.setdefault(table, {})[key] = rows
        else:
            tables.setdefault(table, {}).update(rows if isinstance(rows, dict) else {})
    if not is_database(tables):
        raise FabricError("the configuration has a row that is no JSON object", where=where)
    return {table: rows for table, rows in tables.items() if rows}


def is_database(data: object) -> bool:
    """Returns whether the data are tables of rows of fields."""
    return isinstance(data, dict) and all(
        isinstance(rows, dict) and all(isinstance(row, dict) for row in rows.values()) for rows in data.values()
    )


def write_database(database: Database) -> str:
    """Returns the text that `sonic-cfggen -d --print-data` prints: naturally sorted, four spaces."""
    return json.dumps(_ordered(database), indent=4) + "\n"


def copy_database(database: Database) -> Database:
    """Returns an independent copy."""
    return cast("Database", json.loads(json.dumps(database)))


def merge(database: Database, more: Database) -> None:
    """Puts the fields of `more` over those of `database`, as `config load` does; nothing is removed."""
    for table, rows in more.items():
        target = database.setdefault(table, {})
        for key, row in rows.items():
            target.setdefault(key, {}).update(row)


def _ordered(data: object) -> object:
    if isinstance(data, dict):
        return {key: _ordered(data[key]) for key in sorted(data, key=natural_key)}
    return data
