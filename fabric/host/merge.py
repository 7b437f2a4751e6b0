"""Several readings of one NIC as one state. Knows no tool."""

import dataclasses
from collections.abc import Iterable
from typing import Any, Final

from fabric.qos import UNKNOWN
from fabric.state.host import NicState

__all__ = ("merge",)


_MAPS: Final = frozenset({"dscp_to_priority", "dcqcn"})


def merge(parts: Iterable[NicState], *, netdev: str) -> NicState:
    """Returns what the readings say together.

    What only one reading shows is taken from it. Where two disagree the value is UNKNOWN, and `conflicts` says so:
    nothing tells which tool is right. Maps are compared where both list an entry, and joined.
    """
    found: dict[str, Any] = {}
    conflicts: list[str] = []
    for part in parts:
        conflicts += part.conflicts
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if value is UNKNOWN or field.name in {"netdev", "conflicts"}:
                continue
            known = found.setdefault(field.name, value)
            if known == value or known is UNKNOWN:
                continue
            joined = _joined(known, value) if field.name in _MAPS else UNKNOWN
            found[field.name] = joined
            if joined is UNKNOWN:
                conflicts.append(f"{field.name}: one tool shows {known}, another {value}")
    return NicState(netdev, conflicts=tuple(conflicts), **found)


def _joined(one: tuple[tuple[Any, int], ...], other: tuple[tuple[Any, int], ...]) -> Any:
    left, right = dict(one), dict(other)
    agree = all(left[dscp] == right[dscp] for dscp in left.keys() & right.keys())
    return tuple(sorted((left | right).items())) if agree else UNKNOWN
