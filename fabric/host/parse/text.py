"""Reading of small things that several tools print: JSON documents, `0:50 1:0` lists, numbers by index."""

from collections.abc import Iterable
from typing import Any, Final

from fabric.errors import HostError
from fabric.qos import UNKNOWN, Known
from fabric.serial import SerialError, parse_json

__all__ = ("PRIORITIES", "document", "indexed", "number", "numbers", "pairs", "whole")

PRIORITIES: Final = 8


def document(text: str, tool: str) -> Any:
    """Returns the JSON document.

    Raises:
        HostError: the text is none; `tool` says whose it should have been.
    """
    try:
        return parse_json(text)
    except SerialError as error:
        raise HostError(f"{tool} printed no JSON", found=repr(text.strip()[:80])) from error


def pairs(words: Iterable[str]) -> dict[str, str]:
    """Returns `0:50 1:0` as {"0": "50", "1": "0"}; words without a colon are left out."""
    split = (word.partition(":") for word in words)
    return {key: value for key, colon, value in split if colon}


def indexed(found: dict[int, int]) -> tuple[int, ...]:
    """Returns a tuple of eight, 0 where nothing was listed."""
    return tuple(found.get(index, 0) for index in range(PRIORITIES))


def number(value: Any) -> Known[int]:
    """Returns a number of a JSON document; UNKNOWN for anything else, and a boolean is something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else UNKNOWN


def numbers(values: Any) -> Known[tuple[int, ...]]:
    """Returns a list of eight numbers, by priority or class; UNKNOWN for anything else."""
    if not isinstance(values, list) or len(values) != PRIORITIES:
        return UNKNOWN
    found = tuple(one for one in map(number, values) if one is not UNKNOWN)
    return found if len(found) == PRIORITIES else UNKNOWN


def whole(text: str, what: str) -> int:
    """Returns the number.

    Raises:
        HostError: it is none; `what` says what it should have been.
    """
    try:
        return int(text, 0)
    except ValueError as error:
        raise HostError(f"{what} is no number", found=repr(text[:60])) from error
