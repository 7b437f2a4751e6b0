"""Where in the inventory a problem lies that came up while the fabric was planned: the plan knows devices and fields.

It must not know what a field means.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from fabric.errors import Problem
from fabric.intent.places import Places

__all__ = ("placed",)

_PREFIX: Final = "fabric_"
_UNITS: Final = ("_bytes", "_mbps")
_CURVE: Final = ("ecn_kmin", "ecn_kmax", "ecn_overrides")


def placed(problems: Sequence[Problem], places: Places) -> tuple[Problem, ...]:
    """Returns the problems with their places; one that many devices have at one place is told once."""
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for one in problems:
        found = replace(one, place=one.place or _place(one, places))
        # a device is not named in the key: what group_vars say is wrong is wrong once
        key = (found.place or found.device, found.field, found.what, found.found, found.expected, found.remedy)
        groups.setdefault(key, []).append(found)
    return tuple(_told(group) for group in groups.values())


def _told(group: Sequence[Problem]) -> Problem:
    names = dict.fromkeys(one.device for one in group)
    more = len(names) - 1
    return replace(group[0], device=f"{group[0].device} and {more} more") if more else group[0]


def _place(problem: Problem, places: Places) -> str:
    for variable in _variables(problem.field):
        place = places.find(problem.device, variable)
        if place is not None and not place.is_shadowed_by_vault:
            return str(place)
    return ""


def _variables(field: str) -> Iterator[str]:
    """Yields the variables that a field of the plan may come from, the nearest first: `ens1.mtu` may be the NIC's."""
    head, dot, last = field.partition(".")
    names = (last, "nics") if dot else _CURVE if head == "ecn" else (head,)
    for name in names:
        yield f"{_PREFIX}{name}"
        yield from (f"{_PREFIX}{name.removesuffix(unit)}" for unit in _UNITS if name.endswith(unit))
