"""Documents of earlier schemas, brought up to what this release reads; in memory, the file stays as it was.

A kind of document has its own schema, from 1 on. Fields that are added, with a default, do not raise it; whatever makes
an earlier document unreadable does, and comes with a function from the schema before. tests/golden/runfolders holds
run folders that the code of their time wrote. Knows no kind.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fabric._version import __version__
from fabric.errors import FabricError
from fabric.serial import Json

__all__ = ("MIGRATIONS", "Migration", "is_newer", "schema_of", "upgraded")

Migration: TypeAlias = Callable[[Json], Json]
"""Makes of the data of one schema that of the next; SerialError where it cannot."""

MIGRATIONS: Mapping[str, tuple[Migration, ...]] = {}
"""Kind → from schema 1 to 2, from 2 to 3, …. Empty: until now fields were only added."""


def schema_of(kind: str) -> int:
    """Returns the schema that this release writes."""
    return 1 + len(MIGRATIONS.get(kind, ()))


def upgraded(data: Json, kind: str, schema: Json, *, tool: Json, where: str) -> Json:
    """Returns the data as this release has it.

    Args:
        data: of the document.
        kind: of the document.
        schema: that it says it has.
        tool: version of the release that it says wrote it, None if it does not.
        where: its path, for messages.

    Raises:
        FabricError: a later release wrote it, or nobody did.
        SerialError: it is not what its schema says.
    """
    known = schema_of(kind)
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise FabricError(f"{where} was written with another schema", found=str(schema), expected=f"1 to {known}")
    if schema > known:
        raise FabricError(
            f"{where} was written with another schema",
            found=f"schema {schema}{_by(tool)}",
            expected=f"schema {known} or earlier",
            remedy=f"Read it with {f'fabricctl {tool} or later' if is_newer(tool) else 'the release that wrote it'}.",
        )
    for step in MIGRATIONS.get(kind, ())[schema - 1 :]:
        data = step(data)
    return data


def is_newer(tool: Json) -> bool:
    """Returns whether a release later than this one is meant: what it added is not known here."""
    return isinstance(tool, str) and _numbers(tool) > _numbers(__version__)


def _by(tool: Json) -> str:
    return f", by fabricctl {tool}" if tool else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isascii() and part.isdigit())
