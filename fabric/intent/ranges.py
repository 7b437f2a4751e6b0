"""Ranges in names: `Ethernet[0:252:4]` is Ethernet0, Ethernet4, … Ethernet252. Knows no port and no device."""

import re
from collections.abc import Sequence
from itertools import product
from typing import Final

__all__ = ("RangeError", "expand")

MOST_NAMES: Final = 65_536  # more than any device has ports; a guard against [0:999999999]

_RANGE: Final = re.compile(r"\[([0-9]{1,9}):([0-9]{1,9})(?::([0-9]{1,9}))?\]")


class RangeError(ValueError):
    """The text is no name and no range of names."""


def expand(text: str) -> tuple[str, ...]:
    """Returns the names that `start:end` and `start:end:step` in brackets stand for, both ends included.

    Several ranges in one text give every combination, the last one running fastest. A start with leading
    zeros keeps its width: `leaf[01:12]`.

    Raises:
        RangeError: a bracket without its pair, an empty or backward range, or too many names.
    """
    pieces = _RANGE.split(text)
    literals, ranges = pieces[0::4], list(zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True))
    if any("[" in literal or "]" in literal for literal in literals):
        raise RangeError("a bracket is no range start:end or start:end:step")
    choices = [_numbers(*one) for one in ranges]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_NAMES:
        raise RangeError(f"the ranges make {count} names, more than {MOST_NAMES}")
    widths = [len(start) if start.startswith("0") else 0 for start, _, _ in ranges]
    texts = [[str(number).zfill(width) for number in choice] for choice, width in zip(choices, widths, strict=True)]
    return tuple(_join(literals, numbers) for numbers in product(*texts))


def _join(literals: Sequence[str], numbers: tuple[str, ...]) -> str:
    return "".join(part for pair in zip(literals, (*numbers, ""), strict=True) for part in pair)


def _numbers(start: str, end: str, step: str | None) -> range:
    by = int(step) if step is not None else 1
    if by == 0:
        raise RangeError("the step is 0")
    if int(end) < int(start):
        raise RangeError(f"the range runs backward, from {int(start)} to {int(end)}")
    return range(int(start), int(end) + 1, by)
