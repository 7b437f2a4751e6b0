"""A change set as text for people: one line a row, equal values together. The JSON of the run folder has every path."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from fabric.diff import Change, Op
from fabric.tree import Value

__all__ = ("inverted", "named", "shown", "told", "value_text")

_SIGNS: Final = {Op.ADD: "+", Op.REPLACE: "~", Op.REMOVE: "-"}
_SPANS: Final = re.compile(r"^@@ -(\S+) \+(\S+) @@")
_HEAD: Final = 2  # lines that name a file in a unified diff
_TOLD: Final = 3  # lines that one line of an error names


def shown(steps: Sequence[Change]) -> str:
    """Returns one line for neighbouring steps of one kind below one parent: sign, path, values."""
    return "\n".join(line for _, group in groupby(steps, key=_row) for line in _lines(tuple(group)))


def told(steps: Sequence[Change]) -> str:
    """Returns the first lines of `shown` in one line, "" for no step."""
    lines = shown(steps).splitlines()
    more = len(lines) - _TOLD
    return "; ".join(lines[:_TOLD]) + (f"; and {more} more" if more > 0 else "")


def inverted(diff: str) -> str:
    """Returns a unified diff as that of the way back: what came goes, and what went comes, removals first."""
    return "\n".join(line for block in _blocks(diff.splitlines()) for line in _inverted(block))


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yields the head of each file, the lines that go with those that come for them, and every other line alone."""
    at = 0
    while at < len(lines):
        size = _HEAD if _is_head(lines, at) else _replaced(lines, at) or 1
        yield list(lines[at : at + size])
        at += size


def _is_head(lines: Sequence[str], at: int) -> bool:
    found = lines[at : at + _HEAD + 1]
    return [one[:4] for one in found[:_HEAD]] == ["--- ", "+++ "] and found[-1].startswith("@@ ")


def _replaced(lines: Sequence[str], at: int) -> int:
    end = at
    for sign in "-+":
        while end < len(lines) and lines[end].startswith(sign) and not _is_head(lines, end):
            end += 1
    return end - at


def _inverted(block: Sequence[str]) -> list[str]:
    if _is_head([*block, "@@ "], 0):
        return [f"--- {block[1][4:]}", f"+++ {block[0][4:]}"]
    if block[0][:1] not in {"-", "+"}:
        return [_SPANS.sub(r"@@ -\2 +\1 @@", block[0])]
    come = [f"-{line[1:]}" for line in block if line.startswith("+")]
    return [*come, *(f"+{line[1:]}" for line in block if line.startswith("-"))]


def _row(step: Change) -> tuple[Op, tuple[str, ...]]:
    return step.op, step.path[:-1]


def _lines(steps: tuple[Change, ...]) -> Iterator[str]:
    sign, parent = _SIGNS[steps[0].op], " / ".join(steps[0].path[:-1])
    if len(steps) == 1 or not parent or any(_values(one) == "" for one in steps):
        yield from (f"{sign} {' / '.join(one.path)}{_equals(_values(one))}" for one in steps)
        return
    fields: dict[str, list[str]] = {}
    for one in steps:
        fields.setdefault(_values(one), []).append(one.path[-1])
    yield f"{sign} {parent}: " + "; ".join(f"{named(names)} = {value}" for value, names in fields.items())


def _values(step: Change) -> str:
    match step.op:
        case Op.ADD:
            return value_text(step.after)
        case Op.REMOVE:
            return value_text(step.before)
        case Op.REPLACE:
            return f"{value_text(step.before)} → {value_text(step.after)}"


def value_text(value: Value) -> str:
    """Returns a value as one word, "" for none."""
    return ",".join(value) if isinstance(value, tuple) else value or ""


def _equals(text: str) -> str:
    return f" = {text}" if text else ""


def named(names: Sequence[str]) -> str:
    """Returns `0-25,27` for consecutive numbers, else the names."""
    if not all(name.isdecimal() for name in names):
        return ", ".join(names)
    numbers = sorted(int(name) for name in names)
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return ",".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)
