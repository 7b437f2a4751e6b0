"""One reading of a configuration: its tables, and the references that lead nowhere, collected on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import DEVICE_METADATA
from fabric.nos.sonic.rows import Fields, fields_of
from fabric.qos import UNKNOWN, Known, Reference

__all__ = ("Reading",)


@dataclass(slots=True)
class Reading:
    """What a parser reads from, and what it could not resolve.

    Attributes:
        tables: the configuration.
        unresolved: names used and never defined, and values that are no number, in order of use.
    """

    tables: Tables
    unresolved: dict[Reference, None] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Returns whether the text is a whole configuration: then a table that it lacks is empty on the device."""
        return DEVICE_METADATA in self.tables

    def row(self, table: str, name: str, where: str) -> Fields | None:
        """Returns the row of that name, or None and notes that `where` refers to nothing."""
        found = self.tables.get(table, {}).get(name)
        if found is None:
            self.unresolved.setdefault(Reference(kind=table, name=name, where=where))
            return None
        return fields_of(found)

    def number(self, row: Mapping[str, str], name: str, where: str) -> Known[int] | None:
        """Returns a field as a number, None when it is absent, UNKNOWN when it is no number."""
        text = row.get(name)
        return None if text is None else self.integer(text, f"{where}|{name}")

    def integer(self, text: str, where: str) -> Known[int]:
        """Returns a text as a number; UNKNOWN, and noted, when it is none."""
        try:
            return int(text)
        except ValueError:
            self.unresolved.setdefault(Reference(kind="number", name=text, where=where))
            return UNKNOWN
