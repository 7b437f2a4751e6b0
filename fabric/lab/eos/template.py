r"""Line templates: how one kind of configuration line is written down, matched, and written out again.

`random-detect ecn count` is three fixed words; `a|b` is a choice of fixed words; `{name}` is a parameter of the
type declared for that name; `[…]` may be left out. Types: `int LO HI`, `decimal LO HI`, `ints LO HI` (one or more,
also as ranges), `word`, `text` (the rest of the line), `choice A B`, `re PATTERN`, `interface`.
Knows no line in particular.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ("Match", "Miss", "Template", "expand_ints", "interface_names")

Values: TypeAlias = Mapping[str, str]

_PARTS: Final = re.compile(r"\[|\]|[^\s\[\]]+")
_WORD: Final = re.compile(r"\S+")
_INTS: Final = re.compile(r"[0-9]{1,18}(-[0-9]{1,18})?(,[0-9]{1,18}(-[0-9]{1,18})?)*")
_MAX_RANGE: Final = 1024  # more interfaces than any device has; keeps a mistyped range from filling the memory
_INTERFACE: Final = re.compile(r"([A-Za-z-]+?)([0-9][0-9/.,-]*)")
# Abbreviations that EOS prints in prompts and takes as input; source: EOS manual, "Data Transfer" (unconfirmed).
_INTERFACE_TYPES: Final = ("Ethernet", "Loopback", "Management", "Port-Channel", "Vlan", "Vxlan", "Tunnel")


@dataclass(frozen=True, slots=True)
class Match:
    """A line of that kind; `values` by parameter name, choice (`a|b`) or optional part (`[a]`), as written."""

    values: Values


@dataclass(frozen=True, slots=True)
class Miss:
    """No line of that kind.

    Attributes:
        at: index of the first word that does not fit; the number of words if more was expected.
    """

    at: int


@dataclass(frozen=True, slots=True)
class _Fixed:
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Param:
    name: str
    kind: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Optional:
    """`mark` stands among the values when the part was there, for parts without parameters."""

    items: tuple["_Item", ...]
    mark: str


_Item: TypeAlias = _Fixed | _Param | _Optional


def expand_ints(text: str) -> tuple[int, ...]:
    """Returns the numbers of `1 2 5-7,9`, in the order written.

    Raises:
        ValueError: it is no list of numbers.
    """
    numbers: list[int] = []
    for part in text.replace(",", " ").split():
        low, dash, high = part.partition("-")
        span = range(int(low), int(high) + 1) if dash else range(int(low), int(low) + 1)
        if span.stop - span.start > _MAX_RANGE:
            raise ValueError("too many")
        numbers += span
    if not numbers:
        raise ValueError("empty")
    return tuple(numbers)


def interface_names(text: str) -> tuple[str, ...]:
    """Returns the full names of `Et1`, `Ethernet1-4`, `Ethernet1/1,3/1`; () if it names no interface."""
    match = _INTERFACE.fullmatch(text)
    if match is None:
        return ()
    stem = match[1].lower()
    types = [one for one in _INTERFACE_TYPES if len(stem) >= 2 and one.lower().startswith(stem)]
    if len(types) != 1:
        return ()
    names: list[str] = []
    for part in match[2].split(","):
        ends = re.fullmatch(r"((?:[0-9]{1,6}/)*)([0-9]{1,6})(?:-([0-9]{1,6}))?(\.[0-9]{1,6})?", part)
        if ends is None:
            return ()
        low, high = int(ends[2]), int(ends[3] or ends[2])
        if not low <= high < low + _MAX_RANGE:
            return ()
        names += [f"{types[0]}{ends[1]}{number}{ends[4] or ''}" for number in range(low, high + 1)]
    return tuple(names)


class Template:
    """One compiled template.

    Args:
        text: the template. types: parameter name → type.

    Raises:
        ValueError: a parameter has no type, or brackets do not close.
    """

    def __init__(self, text: str, types: Mapping[str, str]) -> None:
        self.text = text
        self._items, rest = _compile(_PARTS.findall(text), types)
        if rest:
            raise ValueError(f"unbalanced brackets: {text}")

    def match(self, line: str) -> Match | Miss:
        """Returns the values of the line, or where it stops fitting."""
        words = _WORD.findall(line)
        furthest = 0
        for at, values in _walk(self._items, words, 0, {}):
            if values is not None and at == len(words):
                return Match(values)
            furthest = max(furthest, at)
        return Miss(furthest)

    def write(self, values: Values) -> str:
        """Returns the line with these values; optional parts appear when all their parameters have one."""
        return " ".join(_write(self._items, values))


def _compile(parts: list[str], types: Mapping[str, str]) -> tuple[tuple[_Item, ...], list[str]]:
    items: list[_Item] = []
    while parts:
        first, parts = parts[0], parts[1:]
        if first == "[":
            inner, rest = _compile(parts, types)
            if not rest:
                raise ValueError("a bracket does not close")
            mark = " ".join(parts[: len(parts) - len(rest)])
            items.append(_Optional(inner, f"[{mark}]"))
            parts = rest[1:]
        elif first == "]":
            return tuple(items), [first, *parts]
        elif first.startswith("{"):
            items.append(_param(first[1:-1], types))
        else:
            items.append(_Fixed(tuple(first.split("|"))))
    return tuple(items), []


def _param(name: str, types: Mapping[str, str]) -> _Param:
    if name not in types:
        raise ValueError(f"parameter {name} has no type")
    kind, *arguments = types[name].split(" ")
    return _Param(name, kind, tuple(arguments))


def _walk(
    items: tuple[_Item, ...], words: list[str], at: int, values: dict[str, str]
) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Yields every (position, values) that the items can reach; values None for a dead end at that position."""
    if not items:
        yield at, values
        return
    first, rest = items[0], items[1:]
    match first:
        case _Optional(inner, mark):
            yield from _walk(inner + rest, words, at, values | {mark: mark})
            yield from _walk(rest, words, at, values)
        case _Fixed(choices):
            if at < len(words) and words[at] in choices:
                chosen = {"|".join(choices): words[at]} if len(choices) > 1 else {}
                yield from _walk(rest, words, at + 1, values | chosen)
            else:
                yield at, None
        case _Param(name):
            ends = list(_spans(first, words, at))
            if not ends:
                yield at, None
            for end, value in ends:
                yield from _walk(rest, words, end, values | {name: value})


def _spans(param: _Param, words: list[str], at: int) -> Iterator[tuple[int, str]]:
    if at >= len(words):
        return
    if param.kind == "text":
        yield len(words), " ".join(words[at:])
    elif param.kind == "ints":
        end = at
        while end < len(words) and _fits_ints(words[end], param.arguments):
            end += 1
        for stop in range(end, at, -1):
            yield stop, " ".join(words[at:stop])
    elif _fits(param, words[at]):
        yield at + 1, words[at]


def _fits_ints(text: str, arguments: tuple[str, ...]) -> bool:
    if not _INTS.fullmatch(text):
        return False
    low, high = int(arguments[0]), int(arguments[1])
    ranges = [part.split("-") for part in text.split(",")]
    return all(low <= int(ends[0]) <= int(ends[-1]) <= high for ends in ranges)


def _fits(param: _Param, word: str) -> bool:
    match param.kind:
        case "int":
            return word.isascii() and word.isdigit() and _between(float(word), param.arguments)
        case "decimal":
            return bool(re.fullmatch(r"\d+(\.\d+)?", word)) and _between(float(word), param.arguments)
        case "choice":
            return word in param.arguments
        case "re":
            return re.fullmatch(" ".join(param.arguments), word) is not None
        case "interface":
            return bool(interface_names(word))
        case "word":
            return True
    raise ValueError(f"unknown type {param.kind}")


def _between(number: float, arguments: tuple[str, ...]) -> bool:
    return float(arguments[0]) <= number <= float(arguments[1])


def _write(items: tuple[_Item, ...], values: Values) -> Iterator[str]:
    for item in items:
        match item:
            case _Fixed(choices):
                yield choices[0] if len(choices) == 1 else values.get("|".join(choices), choices[0])
            case _Param(name):
                yield values[name]
            case _Optional(inner, mark):
                if mark in values or _has_all(inner, values):
                    yield from _write(inner, values)


def _has_all(items: tuple[_Item, ...], values: Values) -> bool:
    names = [item.name for item in items if isinstance(item, _Param)]
    choices = ["|".join(item.choices) for item in items if isinstance(item, _Fixed) and len(item.choices) > 1]
    wanted = names + choices
    return bool(wanted) and all(name in values for name in wanted)
