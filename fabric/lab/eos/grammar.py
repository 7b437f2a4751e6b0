"""The lines that the emulated EOS takes, read from `grammar.json`. Facts about lines live there, not here."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from fabric.lab.eos.template import Match, Miss, Template, Values, expand_ints, interface_names

__all__ = ("Entry", "Grammar", "Kind", "grammar")

_FILE: Final = Path(__file__).with_name("grammar.json")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of line.

    Attributes:
        contexts: where it may stand. rank: its place in the running configuration.
        key: what makes two lines of the kind the same setting; the later one replaces the earlier.
        opens: the context below it, or "". prompt: its part of the prompt.
        undo: further forms that `no` and `default` take beside key and line.
        keeps_no: `no KEY` is itself a setting and is shown; otherwise it removes the line.
        defaults: key → the line that means the default and is hidden.
        each: parameter of which every value is a setting of its own, or "".
        hides_empty: a context without lines is not shown.
    """

    contexts: tuple[str, ...]
    rank: int
    line: Template
    key: Template
    undo: tuple[Template, ...]
    opens: str
    prompt: str
    keeps_no: bool
    defaults: Mapping[str, str]
    each: str
    hides_empty: bool
    equal: tuple[str, ...]
    not_above: tuple[str, ...]
    source: str
    unconfirmed: str

    def split(self, values: Values) -> tuple[Values, ...]:
        """Returns one set of values per setting."""
        if self.each:
            return tuple({**values, self.each: str(number)} for number in expand_ints(values[self.each]))
        if "interface" in values:
            return tuple({**values, "interface": name} for name in interface_names(values["interface"]))
        return (values,)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line as the device understood it: `line` is None when the setting goes back to its default."""

    kind: Kind
    key: str
    line: str | None
    values: Values


class Grammar:
    """All kinds of lines.

    Args:
        data: the parsed `grammar.json`.
    """

    def __init__(self, data: Mapping[str, object]) -> None:
        types = cast("Mapping[str, str]", data["types"])
        rows = cast("Sequence[Mapping[str, object]]", data["lines"])
        self.interface_order = tuple(cast("Sequence[str]", data["interface_order"]))
        self.kinds = tuple(_kind(rank, row, types) for rank, row in enumerate(rows))
        self._by_context: dict[str, list[Kind]] = {}
        for kind in self.kinds:
            for context in kind.contexts:
                self._by_context.setdefault(context, []).append(kind)

    def read(self, line: str, context: str) -> tuple[Entry, ...] | Miss:
        """Returns what the line sets in that context, or the furthest place where it stops fitting."""
        for word in ("no", "default"):
            if line.startswith(f"{word} "):
                return self._read_undo(line.removeprefix(f"{word} ").strip(), context, is_no=word == "no")
        furthest = 0
        for kind in self._by_context.get(context, ()):
            found = kind.line.match(line)
            if isinstance(found, Miss):
                furthest = max(furthest, found.at)
            elif not _is_sound(kind, found):
                furthest = max(furthest, len(line.split()) - 1)
            else:
                return tuple(_entry(kind, values) for values in kind.split(found.values))
        return Miss(furthest)

    def _read_undo(self, rest: str, context: str, *, is_no: bool) -> tuple[Entry, ...] | Miss:
        furthest = 0
        for kind in self._by_context.get(context, ()):
            for form in (kind.key, kind.line, *kind.undo):
                found = form.match(rest)
                if isinstance(found, Miss):
                    furthest = max(furthest, found.at)
                    continue
                return tuple(_undone(kind, values, is_no=is_no) for values in kind.split(found.values))
        return Miss(furthest + 1)


@functools.cache
def grammar() -> Grammar:
    """Returns the grammar, read once."""
    return Grammar(json.loads(_FILE.read_text("utf-8")))


def _entry(kind: Kind, values: Values) -> Entry:
    key, line = kind.key.write(values), kind.line.write(values)
    return Entry(kind, key, None if kind.defaults.get(key) == line else line, values)


def _undone(kind: Kind, values: Values, *, is_no: bool) -> Entry:
    key = kind.key.write(values)
    return Entry(kind, key, f"no {key}" if is_no and kind.keeps_no else None, values)


def _is_sound(kind: Kind, found: Match) -> bool:
    values = found.values
    if kind.equal and len({values[name] for name in kind.equal}) > 1:
        return False
    numbers = [float(values[name]) for name in kind.not_above]
    return numbers == sorted(numbers)


def _kind(rank: int, row: Mapping[str, object], common: Mapping[str, str]) -> Kind:
    types = {**common, **cast("Mapping[str, str]", row.get("types", {}))}
    line, key = Template(cast("str", row["line"]), types), Template(cast("str", row["key"]), types)
    checks = cast("Mapping[str, Sequence[str]]", row.get("check", {}))
    each = cast("str", row.get("each", ""))
    prompt = cast("str", row.get("prompt", ""))
    unconfirmed = cast("str", row.get("unconfirmed", ""))
    return Kind(
        contexts=tuple(cast("Sequence[str]", row["in"])),
        rank=rank,
        line=line,
        key=key,
        undo=tuple(Template(form, types) for form in cast("Sequence[str]", row.get("undo", ()))),
        opens=cast("str", row.get("opens", "")),
        prompt=prompt,
        keeps_no=row.get("no") == "line",
        defaults=_defaults(row, line, key, each),
        each=each,
        hides_empty=row.get("empty") == "hidden",
        equal=tuple(checks.get("equal", ())),
        not_above=tuple(checks.get("not_above", ())),
        source=cast("str", row["source"]),
        unconfirmed=unconfirmed or ("the line as a whole" if row.get("status") == "unconfirmed" else ""),
    )


def _defaults(row: Mapping[str, object], line: Template, key: Template, each: str) -> Mapping[str, str]:
    if "default" in row:
        return {key.write({}): cast("str", row["default"])}
    table: dict[str, str] = {}
    for values in cast("Sequence[Mapping[str, str]]", row.get("defaults", ())):
        for number in expand_ints(values[each]):
            one = {**values, each: str(number)}
            table[key.write(one)] = line.write(one)
    return table
