"""A change set as text for people: one line a row, equal values together. The JSON of the run folder has every path."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from fabric.diff import Change, Op
from fabric.tree import Value

__all__ = ("shown", "told")

_SIGNS: Final = {Op.ADD: "+", Op.REPLACE: "~", Op.REMOVE: "-"}
_TOLD: Final = 3  # lines that one line of an error names


def shown(steps: Sequence[Change]) -> str:
    """Returns one line for neighbouring steps of one kind below one parent: sign, path, values."""
    return "\n".join(line for _, group in groupby(steps, key=_row) for line in _lines(tuple(group)))


def told(steps: Sequence[Change]) -> str:
    """Returns the first lines of `shown` in one line, "" for no step."""
    lines = shown(steps).splitlines()
    more = len(lines) - _TOLD
    return "; ".join(lines[:_TOLD]) + (f"; and {more} more" if more > 0 else "")


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
    yield f"{sign} {parent}: " + "; ".join(f"{_ranges(names)} = {value}" for value, names in fields.items())


def _values(step: Change) -> str:
    match step.op:
        case Op.ADD:
            return _text(step.after)
        case Op.REMOVE:
            return _text(step.before)
        case Op.REPLACE:
            return f"{_text(step.before)} → {_text(step.after)}"


def _text(value: Value) -> str:
    return ",".join(value) if isinstance(value, tuple) else value or ""


def _equals(text: str) -> str:
    return f" = {text}" if text else ""


def _ranges(names: Sequence[str]) -> str:
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
