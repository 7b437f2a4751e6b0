"""The lines of an EOS tree by what they configure: device, maps, profiles, interfaces. Knows no meaning of a value."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fabric.tree import Tree, Value
from fabric.units import natural_key

__all__ = ("EMPTY_SECTION", "ETHERNET", "Section", "Sections", "sections")

ETHERNET: Final = re.compile(r"Ethernet[0-9]{1,4}(?:/[0-9]{1,4}){0,3}")
_MEMBER: Final = re.compile("[0-9]{1,2}")  # a DSCP, a class of service or a traffic class
_QUEUE: Final = re.compile(r"(?:uc-)?tx-queue ([0-9])")  # mc-tx-queue carries multicast, which is never RoCE
_INTERFACE: Final = "interface "
_PROFILE: Final = "qos profile "

Lines = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Section:
    """One interface or profile: its own lines by key, and those of its queues."""

    lines: dict[str, Value] = field(default_factory=dict)
    queues: dict[int, dict[str, Value]] = field(default_factory=dict)

    def over(self, below: "Section") -> "Section":
        """Returns `below` overridden line by line by this section."""
        indices = sorted({*below.queues, *self.queues})
        queues = {index: {**below.queues.get(index, {}), **self.queues.get(index, {})} for index in indices}
        return Section(lines={**below.lines, **self.lines}, queues=queues)

    def text(self, key: str) -> str | None:
        """Returns the value at `key` where it is text, else None."""
        value = self.lines.get(key)
        return value if isinstance(value, str) else None


EMPTY_SECTION: Final = Section()


@dataclass(frozen=True, slots=True)
class Sections:
    """A device: its own lines and maps, its profiles, its interfaces."""

    device: dict[str, Value]
    maps: dict[str, dict[int, str]]
    profiles: dict[str, Section]
    interfaces: dict[str, Section]
    policies: frozenset[str]

    def ports(self) -> tuple[str, ...]:
        """Returns the physical data ports in natural order."""
        return tuple(sorted(filter(ETHERNET.fullmatch, self.interfaces), key=natural_key))

    def channel_of(self, port: str) -> str | None:
        """Returns the port channel that `port` is a member of, or None."""
        value = self.interfaces.get(port, EMPTY_SECTION).text("channel-group")
        return f"Port-Channel{value.split()[0]}" if value else None


def sections(tree: Tree) -> Sections:
    """Returns the lines of `tree`, gathered in one pass."""
    found = Sections(device={}, maps={}, profiles={}, interfaces={}, policies=frozenset(_policies(tree)))
    for path, value in tree.items():
        head = path[0]
        if head.startswith(_INTERFACE):
            _put(found.interfaces, head.removeprefix(_INTERFACE), path[1:], value)
        elif head.startswith(_PROFILE):
            _put(found.profiles, head.removeprefix(_PROFILE), path[1:], value)
        elif head.startswith("qos map ") and len(path) == 2 and _MEMBER.fullmatch(path[1]):
            found.maps.setdefault(head, {})[int(path[1])] = str(value)
        elif len(path) == 1:
            found.device[head] = value
    return found


def _put(into: dict[str, Section], name: str, rest: tuple[str, ...], value: Value) -> None:
    section = into.setdefault(name, Section())
    if len(rest) == 1:
        section.lines[rest[0]] = value
    elif len(rest) == 2 and (queue := _QUEUE.fullmatch(rest[0])) is not None:
        section.queues.setdefault(int(queue[1]), {})[rest[1]] = value


def _policies(tree: Tree) -> Iterator[str]:
    for path in tree:
        if path[0].startswith("policy-map "):
            yield path[0].split()[-1]
