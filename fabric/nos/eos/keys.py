"""Which part of an EOS line is its key and which its value, how a line is undone, and what EOS hides: data.

A line that no row of the tables names is foreign: its key is the whole line and it has no value. Knows no text
layout and no meaning of a value beyond its spelling.

Sources: switches.md 1.4 (EOS RoCE guide); samples/eos/configs; PyAVD 6.4 eos_cli_config_gen. Undoing forms follow
the EOS User Manual's `no`/`default` rule and were typed on no device: unconfirmed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from fabric.nos.eos.defaults import COS_TO_TC, DSCP_TO_TC
from fabric.tree import Path, Value

__all__ = (
    "NO",
    "QUEUE_CONTEXT",
    "Keyed",
    "Scope",
    "is_hidden",
    "is_implicit",
    "keyed",
    "line_of",
    "place_of",
    "scope_of",
    "undo_of",
)

_UNDO_NEGATIVE: Final = "default {key}"  # `priority strict` in its place would stand where nothing stood
NO: Final = "no"  # value of a key whose explicit `no` form stands in the configuration: `no priority`

QUEUE_CONTEXT: Final = re.compile(r"(?:uc-|mc-)?tx-queue [0-9]")

Keyed = tuple[tuple[Path, Value], ...]


class Scope(Enum):
    """Where a line stands, as far as the tables care."""

    TOP = "top"
    INTERFACE = "interface"
    PROFILE = "profile"
    INTERFACE_QUEUE = "interface queue"
    PROFILE_QUEUE = "profile queue"
    OTHER = "other"


_PORTS: Final = frozenset({Scope.INTERFACE, Scope.PROFILE})
_QUEUES: Final = frozenset({Scope.INTERFACE_QUEUE, Scope.PROFILE_QUEUE})


def _seconds(text: str) -> str:
    return re.sub(r"(\d+)\.(\d*?)0*(?=\D|$)", lambda m: f"{m[1]}.{m[2]}" if m[2] else m[1], text)


_NUMBER: Final = "[0-9]{{1,12}}"
_CURVE: Final = (
    rf"minimum-threshold {_NUMBER} \w+ maximum-threshold {_NUMBER} \w+(?: {{0}} {_NUMBER})?(?: weight {_NUMBER})?"
)


def _bare_kbps(text: str) -> str:
    return text.removesuffix(" kbps")


@dataclass(frozen=True, slots=True)
class _Line:
    """One kind of line.

    Attributes:
        key, value: regular expressions; no `value` means a bare line.
        undo: what is typed to take it away, {key} filled in; its `no` form goes by `default {key}`.
        negative: `no key` may stand in the configuration and means something of its own.
        hidden: scope → value that EOS does not show there since it is the default.
        spelling: brings spellings of one value to one.
    """

    scopes: frozenset[Scope]
    key: str
    value: str = ""
    undo: str = "no {key}"
    negative: bool = False
    hidden: Mapping[Scope, str] = field(default_factory=lambda: MappingProxyType({}))
    spelling: Callable[[str], str] = str

    def read(self, line: str) -> Keyed | None:
        """Returns the key and value of `line`, None if it is of another kind."""
        if self.negative and line.startswith("no ") and _match(self.key, line[3:]):
            return (((line[3:],), NO),)
        match = _match(rf"({self.key})" + (rf" ({self.value})" if self.value else ""), line)
        if match is None:
            return None
        return (((match[1],), self.spelling(match[2]) if self.value else None),)


@dataclass(frozen=True, slots=True)
class _Map:
    """One device-wide map, whose lines name several members at once.

    Attributes:
        pattern: groups `members` and `value`. name: first element of the path, the member is the second.
        line, undo: what is typed for one member.
        hidden: member → value that EOS does not show.
    """

    pattern: str
    name: str
    line: str
    undo: str
    hidden: Mapping[str, str]

    def read(self, line: str) -> Keyed | None:
        match = _match(self.pattern, line)
        if match is None:
            return None
        return tuple(((self.name, one), match["value"]) for one in _members(match["members"]))


def _table(values: tuple[int, ...]) -> Mapping[str, str]:
    return MappingProxyType({str(index): str(value) for index, value in enumerate(values)})


_MEMBER: Final = "[0-9]{1,2}(?:-[0-9]{1,2})?"
_MEMBERS: Final = rf"(?P<members>{_MEMBER}(?:[ ,]+{_MEMBER})*)"
_MAPS: Final = (
    _Map(
        pattern=rf"qos map dscp {_MEMBERS} to traffic-class (?P<value>[0-7](?: drop-precedence [0-9])?)",
        name="qos map dscp",
        line="qos map dscp {member} to traffic-class {value}",
        undo="no qos map dscp {member}",
        hidden=_table(DSCP_TO_TC),
    ),
    _Map(
        pattern=rf"qos map cos {_MEMBERS} to traffic-class (?P<value>[0-7])",
        name="qos map cos",
        line="qos map cos {member} to traffic-class {value}",
        undo="no qos map cos {member}",
        hidden=_table(COS_TO_TC),
    ),
    _Map(
        pattern=rf"qos map traffic-class {_MEMBERS} to (?:uc-)?tx-queue (?P<value>[0-9])",
        name="qos map traffic-class to tx-queue",
        line="qos map traffic-class {member} to tx-queue {value}",
        undo="no qos map traffic-class {member} to tx-queue",
        hidden=_table(tuple(range(8))),
    ),
    _Map(
        pattern=rf"qos map traffic-class {_MEMBERS} to dscp (?P<value>[0-9]{{1,2}})",
        name="qos map traffic-class to dscp",
        line="qos map traffic-class {member} to dscp {value}",
        undo="no qos map traffic-class {member} to dscp",
        hidden=MappingProxyType({}),
    ),
)
_MAP_OF: Final = MappingProxyType({one.name: one for one in _MAPS})

_WATCHDOG: Final = "priority-flow-control pause watchdog"
_LINES: Final = (
    _Line(frozenset({Scope.TOP}), "hostname", r"\S+"),
    _Line(frozenset({Scope.TOP}), "priority-flow-control all off"),
    _Line(
        frozenset({Scope.TOP}),
        rf"{_WATCHDOG} default (?:timeout|recovery-time|polling-interval)",
        r"[\d.]+|auto",
        spelling=_seconds,
    ),
    _Line(frozenset({Scope.TOP}), rf"{_WATCHDOG} action", r"\S+"),
    _Line(frozenset({Scope.TOP}), "qos rewrite dscp"),
    _Line(_PORTS, "qos trust", "cos|dscp", undo="default {key}", negative=True),
    _Line(_PORTS, "priority-flow-control", "(?:mode )?on", undo="default {key}", negative=True),
    _Line(_PORTS, r"priority-flow-control priority [0-7]", "drop|no-drop"),
    _Line(_PORTS, _WATCHDOG, undo="default {key}", negative=True),
    _Line(_PORTS, rf"{_WATCHDOG} port timer", "timeout .+", spelling=_seconds),
    _Line(_PORTS, rf"{_WATCHDOG} port action", r"\S+"),
    _Line(_PORTS, "service-policy type qos input", r"\S+"),
    _Line(frozenset({Scope.INTERFACE}), "(?:l2 )?mtu", "[0-9]{1,6}"),
    _Line(frozenset({Scope.INTERFACE}), "speed", ".+"),
    _Line(frozenset({Scope.INTERFACE}), "dcbx mode", r"\w+"),
    _Line(frozenset({Scope.INTERFACE}), "service-profile", r"\S+"),
    _Line(frozenset({Scope.INTERFACE}), "channel-group", r"[0-9]{1,7} mode \w+"),
    _Line(
        frozenset({Scope.INTERFACE}),
        "flowcontrol (?:receive|send)",
        r"\w+",
        hidden=MappingProxyType({Scope.INTERFACE: "off"}),
    ),
    _Line(
        _QUEUES,
        "priority",
        "strict",
        undo="default {key}",
        negative=True,
        # strict is the default of a queue (SOURCES.md, amd_7388_dcqcn_example); on an interface it may override
        # the profile
        hidden=MappingProxyType({Scope.PROFILE_QUEUE: "strict"}),
    ),
    _Line(_QUEUES, "bandwidth percent", "[0-9]{1,3}"),
    _Line(_QUEUES, "bandwidth guaranteed", "[0-9]{1,12}(?: kbps)?|percent [0-9]{1,3}", spelling=_bare_kbps),
    _Line(_QUEUES, "shape rate", ".+"),
    _Line(_QUEUES, "random-detect ecn", _CURVE.format("max-mark-probability")),
    _Line(_QUEUES, "random-detect ecn count"),
    _Line(
        _QUEUES,
        r"random-detect drop(?: drop-precedence \d)?",
        _CURVE.format("drop-probability"),
    ),
)


def scope_of(context: Path) -> Scope:
    """Returns where lines nested in `context` stand."""
    if not context:
        return Scope.TOP
    kind = context[0]
    if kind.startswith("interface "):
        scopes = (Scope.INTERFACE, Scope.INTERFACE_QUEUE)
    elif kind.startswith("qos profile "):
        scopes = (Scope.PROFILE, Scope.PROFILE_QUEUE)
    else:
        return Scope.OTHER
    if len(context) == 1:
        return scopes[0]
    return scopes[1] if len(context) == 2 and QUEUE_CONTEXT.fullmatch(context[1]) else Scope.OTHER


def is_implicit(context: Path, line: str) -> bool:
    """Returns whether `line` opens a context that exists by what stands in it: a queue."""
    return scope_of(context) in _PORTS and QUEUE_CONTEXT.fullmatch(line) is not None


def keyed(context: Path, line: str) -> Keyed:
    """Returns what `line` says: path below `context` → value; several for a map, none for a bare queue."""
    scope = scope_of(context)
    if scope is Scope.TOP and line.startswith("qos map "):
        for table in _MAPS:
            entries = table.read(line)
            if entries is not None:
                return entries
    if is_implicit(context, line):
        return ()
    for row in _LINES_OF[scope]:
        found = row.read(line)
        if found is not None:
            return found
    return (((line,), None),)


def is_hidden(path: Path, value: Value) -> bool:
    """Returns whether EOS leaves this out of what it shows, because it is the default there."""
    context, tail = place_of(path)
    if len(tail) == 2:
        return _MAP_OF[tail[0]].hidden.get(tail[1]) == value
    scope = scope_of(context)
    return value is not None and any(
        row.hidden.get(scope) == value and _match(row.key, tail[0]) is not None for row in _HIDING_OF[scope]
    )


def place_of(path: Path) -> tuple[Path, Path]:
    """Returns the context of a path and the rest of it: two elements for a device-wide map, else one."""
    return ((), path) if path[0] in _MAP_OF and len(path) == 2 else (path[:-1], path[-1:])


def line_of(path: Path, value: Value) -> str:
    """Returns the line that says `value` at `path`; of a multi-line text, its first line."""
    _, tail = place_of(path)
    if len(tail) == 2:
        return _MAP_OF[tail[0]].line.format(member=tail[1], value=value)
    if value is None or isinstance(value, tuple):
        return tail[0]
    return f"no {tail[0]}" if value == NO else f"{tail[0]} {value}"


def undo_of(path: Path, value: Value) -> str:
    """Returns what is typed to take away what `path` and `value` say."""
    context, tail = place_of(path)
    if len(tail) == 2:
        return _MAP_OF[tail[0]].undo.format(member=tail[1])
    for row in _LINES_OF[scope_of(context)]:
        if _match(row.key, tail[0]):
            return (_UNDO_NEGATIVE if value == NO else row.undo).format(key=tail[0])
    line = line_of(path, value)
    return f"default {line[3:]}" if line.startswith("no ") else f"no {line}"


_LINES_OF: Final = MappingProxyType({scope: tuple(row for row in _LINES if scope in row.scopes) for scope in Scope})
_HIDING_OF: Final = MappingProxyType(
    {scope: tuple(row for row in rows if row.hidden) for scope, rows in _LINES_OF.items()}
)


@lru_cache(maxsize=512)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _match(expression: str, text: str) -> re.Match[str] | None:
    return _compiled(expression).fullmatch(text)


def _members(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for part in re.split(r"[ ,]+", text.strip()):
        first, _, last = part.partition("-")
        found += [str(number) for number in range(int(first), int(last or first) + 1)]
    return tuple(found)
