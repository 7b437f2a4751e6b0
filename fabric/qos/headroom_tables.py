"""Headroom from vendors' tables: rows by speed and cable length, shipped as data with their source.

A table is never interpolated: it answers with its next longer cable and says so, and past its last row not at all.
"""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from fabric.qos.headroom_terms import Headroom, HeadroomQuery
from fabric.qos.known import UNKNOWN
from fabric.serial import Json, from_json

__all__ = ("HeadroomRow", "HeadroomTable", "table_headroom", "tables", "tables_of_asic", "tables_of_hwsku")

_DATA: Final = Path(__file__).with_name("data") / "headroom_tables.json"


@dataclass(frozen=True, slots=True)
class HeadroomRow:
    """One row; bytes as the file has them. `alpha_log2` is its threshold column."""

    speed_mbps: int
    cable_m: int
    size_bytes: int
    xon_bytes: int
    xoff_bytes: int
    alpha_log2: int
    xon_offset_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class HeadroomTable:
    """One vendor's table.

    Attributes:
        asic: canonical name. hwskus: boards that it is for.
        shared_pool: its sizes assume a shared headroom pool.
        board_only: the board adds delay of its own (a gearbox), so that it says nothing of its ASIC.
    """

    name: str
    asic: str
    hwskus: tuple[str, ...]
    source: str
    rows: tuple[HeadroomRow, ...]
    shared_pool: bool = False
    board_only: bool = False


@functools.cache
def tables() -> tuple[HeadroomTable, ...]:
    """Returns every table, read once."""
    document = json.loads(_DATA.read_text(encoding="utf-8"))
    return tuple(_table(one) for one in document["tables"])


def _table(raw: dict[str, Any]) -> HeadroomTable:
    """Returns one table; its rows are written as lists to keep the file short."""
    names = [field.name for field in fields(HeadroomRow)]
    rows: list[Json] = [dict(zip(names, row, strict=False)) for row in raw["rows"]]
    return from_json(HeadroomTable, {**raw, "rows": rows})


def tables_of_hwsku(hwsku: str) -> tuple[HeadroomTable, ...]:
    """Returns the tables of that very board."""
    return tuple(table for table in tables() if hwsku and hwsku.lower() in {name.lower() for name in table.hwskus})


def tables_of_asic(asic: str) -> tuple[HeadroomTable, ...]:
    """Returns the tables of boards with that ASIC (canonical name) that hold for other boards too."""
    return tuple(table for table in tables() if table.asic == asic and not table.board_only)


def table_headroom(candidates: Sequence[HeadroomTable], query: HeadroomQuery, *, cable_m: int) -> Headroom:
    """Returns the largest answer of `candidates`, which are not empty; UNKNOWN when none has the speed and length."""
    answers = [(table, _row(table, query.speed_mbps, cable_m)) for table in candidates]
    found = [(table, row) for table, row in answers if row is not None]
    if not found:
        return _nothing(candidates, query, cable_m)
    table, row = max(found, key=lambda pair: pair[1].xoff_bytes)
    notes = []
    if row.cable_m != cable_m:
        notes.append(f"the table has no row for {cable_m} m: the one for {row.cable_m} m was taken")
    own = query.hwsku.lower() in {name.lower() for name in table.hwskus}
    if not own:
        notes.append(f"the table is {table.name}'s, a board with the same ASIC")
    return Headroom(
        xoff_bytes=row.xoff_bytes,
        xon_bytes=row.xon_bytes,
        size_bytes=row.size_bytes,
        formula=f"table {table.name}",
        source=table.source,
        inputs=(("speed_mbps", query.speed_mbps), ("cable_m", cable_m), ("row_cable_m", row.cable_m)),
        alpha_log2=row.alpha_log2,
        xon_offset_bytes=row.xon_offset_bytes,
        notes=tuple(notes),
        unconfirmed=not own,
    )


def _row(table: HeadroomTable, speed_mbps: int, cable_m: int) -> HeadroomRow | None:
    long_enough = [row for row in table.rows if row.speed_mbps == speed_mbps and row.cable_m >= cable_m]
    return min(long_enough, key=lambda row: row.cable_m, default=None)


def _nothing(candidates: Sequence[HeadroomTable], query: HeadroomQuery, cable_m: int) -> Headroom:
    names = ", ".join(table.name for table in candidates)
    lengths = [row.cable_m for table in candidates for row in table.rows if row.speed_mbps == query.speed_mbps]
    why = f"ends at {max(lengths)} m" if lengths else f"has no row for {query.speed_mbps} Mb/s"
    return Headroom(
        xoff_bytes=UNKNOWN,
        formula=f"table {names}",
        source="; ".join(dict.fromkeys(table.source for table in candidates)),
        inputs=(("speed_mbps", query.speed_mbps), ("cable_m", cable_m)),
        notes=(f"the table of {names} {why}",),
    )
