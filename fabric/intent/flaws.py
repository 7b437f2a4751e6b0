"""What is wrong with an inventory, before anybody looked up the line: flaws, and their way into `Problem`s.

It must not know which variables there are, nor read a file.
"""

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fabric.errors import Problem
from fabric.intent.places import Place, Places
from fabric.remote.ansible import RawInventory

__all__ = ("Flaw", "Path", "Spot", "shown", "to_problems")

Path: TypeAlias = tuple[str | int, ...]

_LONGEST_SHOWN: Final = 60
_SCALAR: Final = re.compile(r"true|false|-?[0-9]+(\.[0-9]+)?")
_HIDDEN: Final = "a value from a vault or a secret, not shown"


@dataclass(frozen=True, slots=True)
class Spot:
    """Where in the inventory: a variable of a device, and the path inside its value."""

    device: str = ""
    variable: str = ""
    path: Path = ()

    @property
    def text(self) -> str:
        """Returns `fabric_ports[0].speed`."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return self.variable + "".join(parts)


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing wrong; see `fabric.errors.Problem`. `place` is set when the finder already knows the line."""

    what: str
    spot: Spot = field(default_factory=Spot)
    found: str = ""
    expected: str = ""
    remedy: str = ""
    place: str = ""

    def on(self, device: str) -> "Flaw":
        """Returns the same flaw on a device."""
        return dataclasses.replace(self, spot=dataclasses.replace(self.spot, device=device))


def shown(value: object) -> str:
    """Returns a value as it may stand in a message: one line, short, control characters escaped."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def to_problems(
    flaws: Iterable[Flaw], inventory: RawInventory, places: Places, shared: frozenset[str] = frozenset()
) -> tuple[Problem, ...]:
    """Returns the problems in order of place; a flaw that many devices inherit is one problem.

    Args:
        flaws: what was found.
        inventory: what Ansible read.
        places: finds the lines.
        shared: variables that are about no single device, so that none is named.
    """
    groups: dict[tuple[object, ...], list[Flaw]] = {}
    for flaw in flaws:
        groups.setdefault(_identity(flaw, inventory), []).append(flaw)
    problems = [_problem(group, inventory, places, shared) for group in groups.values()]
    told = {problem.place for group, problem in zip(groups.values(), problems, strict=True) if not group[0].place}
    # a number that YAML misread may have been refused by its own field too: that is the better message
    kept = [
        one for group, one in zip(groups.values(), problems, strict=True) if not (group[0].place and one.place in told)
    ]
    return tuple(sorted(kept, key=lambda problem: _place_key(problem.place)))


def _identity(flaw: Flaw, inventory: RawInventory) -> tuple[object, ...]:
    index = _index(flaw.spot, inventory)
    return (flaw.spot.variable, index, flaw.spot.path, flaw.what, flaw.found, flaw.expected, flaw.place)


def _index(spot: Spot, inventory: RawInventory) -> int | None:
    host = inventory.hosts.get(spot.device)
    return host.variables.get(spot.variable) if host is not None else None


def _problem(group: Sequence[Flaw], inventory: RawInventory, places: Places, shared: frozenset[str]) -> Problem:
    flaw = group[0]
    spot = flaw.spot
    place = places.find(spot.device, spot.variable, spot.path) if spot.variable and not flaw.place else None
    names = {one.spot.device: None for one in group}
    device = spot.device if len(names) == 1 else f"{spot.device} and {len(names) - 1} more"
    if spot.variable in shared and spot.path:
        device = ""
    hidden = _index(spot, inventory) in inventory.hidden or (place is not None and place.is_shadowed_by_vault)
    return Problem(
        what=flaw.what,
        place=flaw.place or _where(spot, place),
        device=device,
        field=spot.text,
        found=_HIDDEN if flaw.found and hidden else _found(flaw, place),
        expected=flaw.expected,
        remedy=flaw.remedy,
    )


def _where(spot: Spot, place: Place | None) -> str:
    if place is not None and not place.is_shadowed_by_vault:
        return str(place)
    return f"host {spot.device}, variable {spot.variable}" if spot.device and spot.variable else ""


def _found(flaw: Flaw, place: Place | None) -> str:
    """Returns what stands in the file where YAML made something else of it: `on`, not `true`."""
    if place is None or place.text is None or _SCALAR.fullmatch(flaw.found) is None:
        return flaw.found
    return flaw.found if place.text == flaw.found else f"{place.text}, which YAML reads as {flaw.found}"


def _place_key(place: str) -> tuple[str, int]:
    head, _, line = place.rpartition(":")
    return (head, int(line)) if line.isdigit() else (place, 0)
