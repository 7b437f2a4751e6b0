"""Looks a counter up in the table: by family and name, what it means.

A family that counts no loss at all (`irdma` with RoCE) is known here, so that its silence is no evidence.
"""

import functools
import re
from collections.abc import Mapping
from typing import Final

from fabric.verify.events import Event, Meaning, Per, Row
from fabric.verify.table import TABLE

__all__ = ("AGAIN", "IN_SEEN", "LOSS_SEEN", "OUT_SEEN", "RDMA_FAMILIES", "counts", "meaning", "width")

RDMA_FAMILIES: Final = ("mlx5", "bnxt_re", "irdma", "rxe", "ionic")
SWITCH_FAMILIES: Final = ("sonic", "eos")
# what tells of a packet lost on its way to the device, or from it; a timer tells of either
IN_SEEN: Final = frozenset({Event.GAP_SEEN, Event.READ_GAP})
OUT_SEEN: Final = frozenset({Event.GAP_NAKED, Event.ACK_TIMEOUT})
# what was sent again, for a loss or without one
AGAIN: Final = frozenset({Event.ACK_TIMEOUT, Event.DUPLICATE, Event.RETRANSMITTED})
LOSS_SEEN: Final = frozenset({*IN_SEEN, *OUT_SEEN, *AGAIN, Event.QP_DEAD})


def meaning(family: str, name: str) -> Meaning | None:
    """Returns what the counter means, None when the table does not have it.

    Args:
        family: of the source: `rxe`, `netdev`, `sonic`.
        name: as the driver, or `fabric.state.snapshot` for a switch, has it.
    """
    if family in SWITCH_FAMILIES:
        family = "switch"
    return _look_up(family, name)


def width(family: str, name: str) -> int:
    """Returns the bits at which the counter wraps. mlx5's queue counters have 32 (hosts.md 5.1)."""
    found = meaning(family, name)
    congestion = found is not None and found.row.event in _CONGESTION
    return 32 if family == "mlx5" and found is not None and not congestion else 64


_CONGESTION: Final = frozenset({Event.CE_RECEIVED, Event.CNP_SENT, Event.CNP_HANDLED, Event.CNP_IGNORED})


def counts(family: str) -> frozenset[Event]:
    """Returns the events that the family has a name for."""
    return frozenset(row.event for row in TABLE if row.family == family)


@functools.cache
def _look_up(family: str, name: str) -> Meaning | None:
    exact, patterns = _index().get(family, ({}, ()))
    if name in exact:
        return Meaning(exact[name])
    for pattern, row in patterns:
        found = pattern.fullmatch(name)
        if found is not None:
            return Meaning(row, int(found[1]))
    return None


@functools.cache
def _index() -> Mapping[str, tuple[Mapping[str, Row], tuple[tuple[re.Pattern[str], Row], ...]]]:
    families = {row.family for row in TABLE}
    return {one: (_exact(one), _patterns(one)) for one in families}


def _exact(family: str) -> Mapping[str, Row]:
    return {name: row for row in TABLE if row.family == family and row.per is Per.DEVICE for name in row.names}


def _patterns(family: str) -> tuple[tuple[re.Pattern[str], Row], ...]:
    return tuple(
        (re.compile(re.escape(name).replace(r"\{\}", _NUMBER[row.per])), row)
        for row in TABLE
        if row.family == family and row.per is not Per.DEVICE
        for name in row.names
    )


# A queue is `3` or, where unicast has a name, `UC3`, `ALL3`; a virtual output queue `VOQ3` counts its own drops.
_NUMBER: Final = {
    Per.PRIORITY: r"(\d+)",
    Per.GROUP: r"(\d+)",
    Per.QUEUE: r"(?:UC|ALL|VOQ)?(\d+)",
    Per.DEVICE: "",
}
