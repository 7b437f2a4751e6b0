"""Classification and queueing maps as fixed-length tuples. Knows no network OS.

Each element is the target number, or None where the text says nothing and the platform decides.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

__all__ = ("DSCP_COUNT", "IDENTITY", "PRIORITY_COUNT", "DscpMap", "TcMap", "dscp_map", "dscps_of", "tc_map")

DSCP_COUNT: Final = 64  # RFC 2474 section 3: six bits
PRIORITY_COUNT: Final = 8  # IEEE 802.1Q-2018 section 6.5.9: three bits

DscpMap: TypeAlias = tuple[int | None, ...]
"""64 elements: DSCP → traffic class."""
TcMap: TypeAlias = tuple[int | None, ...]
"""8 elements: traffic class, PFC priority or PCP → queue, priority group, class or priority."""

IDENTITY: Final[TcMap] = tuple(range(PRIORITY_COUNT))


def dscp_map(entries: Mapping[int, int], *, default: int | None = None) -> DscpMap:
    """Returns 64 elements, `default` where `entries` has none.

    Raises:
        ValueError: a DSCP is not 0..63 or a class not 0..7.
    """
    _check(entries, DSCP_COUNT)
    return tuple(entries.get(dscp, default) for dscp in range(DSCP_COUNT))


def tc_map(entries: Mapping[int, int], *, default: int | None = None) -> TcMap:
    """Returns 8 elements, `default` where `entries` has none.

    Raises:
        ValueError: a key or value is not 0..7.
    """
    _check(entries, PRIORITY_COUNT)
    return tuple(entries.get(index, default) for index in range(PRIORITY_COUNT))


def dscps_of(mapping: DscpMap, traffic_class: int) -> tuple[int, ...]:
    """Returns the DSCPs that fall into `traffic_class`, ascending."""
    return tuple(dscp for dscp, tc in enumerate(mapping) if tc == traffic_class)


def _check(entries: Mapping[int, int], count: int) -> None:
    for key, value in entries.items():
        if not 0 <= key < count or not 0 <= value < PRIORITY_COUNT:
            raise ValueError(f"{key} → {value}: expected 0..{count - 1} → 0..{PRIORITY_COUNT - 1}")
