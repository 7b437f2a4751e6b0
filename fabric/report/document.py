"""`RunDocument` to JSON text and back. Knows no other format."""

import json

from fabric.errors import FabricError
from fabric.report.model import SCHEMA_VERSION, RunDocument
from fabric.serial import SerialError, parse_json
from fabric.serial import from_json as build_from
from fabric.serial import to_json as plain

__all__ = ("from_json", "to_json")


def to_json(run: RunDocument) -> str:
    """Returns the run as JSON text, one newline at its end."""
    return json.dumps(plain(run), indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> RunDocument:
    """Returns the run that `to_json` wrote.

    Raises:
        FabricError: the text is no run, or one of another schema version.
    """
    try:
        data = parse_json(text)
    except SerialError as error:
        raise FabricError("the report is no JSON", found=str(error)) from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA_VERSION:
        raise FabricError(
            "the report has another schema version",
            expected=str(SCHEMA_VERSION),
            found=str(schema),
            remedy="Read it with the fabricctl that wrote it.",
        )
    try:
        return build_from(RunDocument, data)
    except SerialError as error:
        raise FabricError("the report does not fit its schema", found=str(error)) from error
