"""Whether readings of many machines are one moment: what was read twice, and stood, stood all the while between.

Counters of two ends are read one after the other. A packet that is sent in between is in the one and not in the other,
as one that was lost is. When every end's count of packets is the same in two readings, no packet moved between the end
of the first and the begin of the second, as far as caches let one see; so the first is one moment, and the books are
exact. It needs no silence for longer than two readings take.
"""

from collections.abc import Iterable
from typing import Final

from fabric.qos import UNKNOWN
from fabric.state import CounterSet, Source
from fabric.verify.events import Event
from fabric.verify.meanings import meaning

__all__ = ("stood", "volume_cache_ns")

_VOLUME: Final = frozenset({Event.CLASS_SENT, Event.CLASS_RECEIVED, Event.RDMA_SENT, Event.RDMA_RECEIVED})


def stood(first: Iterable[CounterSet], second: Iterable[CounterSet]) -> bool:
    """Returns whether every count of packets is the same in both readings; False where nobody counts any.

    Args:
        first: of all hosts and targets.
        second: read at least `volume_cache_ns` after the first had ended.
    """
    before, after = _volumes(first), _volumes(second)
    return bool(before) and before == after


def volume_cache_ns(sets: Iterable[CounterSet]) -> int:
    """Returns how old a count of packets in these may be."""
    return max((one.cache_ns for one in sets if any(_is_volume(one, own.name) for own in one.counters)), default=0)


def _volumes(sets: Iterable[CounterSet]) -> dict[tuple[Source, str, str], int]:
    return {
        (one.source, one.epoch, own.name): own.value
        for one in sets
        for own in one.counters
        if own.value is not UNKNOWN and _is_volume(one, own.name)
    }


def _is_volume(one: CounterSet, name: str) -> bool:
    found = meaning(one.source.family, name)
    return found is not None and found.row.event in _VOLUME
