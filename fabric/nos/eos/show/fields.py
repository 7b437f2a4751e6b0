"""Reading fields of EOS show output: JSON objects of any release, numbers that may be strings, short port names."""

import re
from collections.abc import Mapping
from typing import Final, cast

from fabric.errors import FabricError
from fabric.qos import UNKNOWN, Known
from fabric.serial import SerialError, parse_json

__all__ = ("count", "long_name", "read_object", "within")

_SHORT: Final = re.compile(r"(Et|Ma|Po)(?=\d)")
_LONG: Final = {"Et": "Ethernet", "Ma": "Management", "Po": "Port-Channel"}
_NUMBER: Final = re.compile(r"[0-9][0-9,]{0,39}")  # a counter has 64 bits: 20 digits


def read_object(output: str, *, command: str) -> Mapping[str, object]:
    """Returns the JSON object that a command printed.

    Raises:
        FabricError: it printed something else.
    """
    try:
        data = parse_json(output)
    except SerialError as error:
        raise FabricError(f"`{command}` did not print JSON", found=output.strip()[:80], expected="an object") from error
    if not isinstance(data, dict):
        raise FabricError(f"`{command}` did not print a JSON object", found=output.strip()[:80])
    return cast("Mapping[str, object]", data)


def within(data: object, *keys: str) -> Mapping[str, object]:
    """Returns the object below `keys`; an empty one where the path ends early."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def count(value: object) -> Known[int]:
    """Returns a counter; UNKNOWN for `-`, `N/A`, nothing: not counted is not zero."""
    if isinstance(value, bool):
        return UNKNOWN
    if isinstance(value, int):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return int(value.replace(",", ""))
    return UNKNOWN


def long_name(port: str) -> str:
    """Returns `Ethernet3/1` for `Et3/1`; any other name as it is."""
    match = _SHORT.match(port)
    return _LONG[match[1]] + port[match.end() :] if match is not None else port
