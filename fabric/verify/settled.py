"""Whether readings of many machines are one moment: what was read twice, and stood, stood all the while between.

Counters of two ends are read one after the other. A packet that is sent in between is in the one and not in the other,
as one that was lost is. When every end's count of packets is the same in two readings, no packet moved between the end
of the first and the begin of the second, as far as caches let one see; so the first is one moment, and the books are
exact. It needs no silence for longer than two readings take.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from fabric.qos import UNKNOWN
from fabric.state import CounterSet, Source
from fabric.verify.events import Event
from fabric.verify.meanings import meaning

__all__ = ("Volumes", "is_volume", "volume_cache_ns", "volumes_of", "with_volumes")

_VOLUME: Final = frozenset({Event.CLASS_SENT, Event.CLASS_RECEIVED, Event.RDMA_SENT, Event.RDMA_RECEIVED})

Volumes = Mapping[tuple[Source, str], int]
"""(source, counter) → packets, of counters that count packets of RDMA or of a class."""


def is_volume(family: str, name: str) -> bool:
    """Returns whether the counter counts packets sent or received."""
    found = meaning(family, name)
    return found is not None and found.row.event in _VOLUME


def volumes_of(sets: Iterable[CounterSet]) -> dict[tuple[Source, str], int]:
    """Returns the counts of packets in these."""
    return {
        (one.source, own.name): own.value
        for one in sets
        for own in one.counters
        if own.value is not UNKNOWN and is_volume(one.source.family, own.name)
    }


def volume_cache_ns(sets: Iterable[CounterSet]) -> int:
    """Returns how old a count of packets in these may be."""
    caches = (one.cache_ns for one in sets if any(is_volume(one.source.family, own.name) for own in one.counters))
    return max(caches, default=0)


def with_volumes(one: CounterSet, volumes: Volumes, *, at_ns: int, span_ns: int) -> CounterSet:
    """Returns the set with counts of packets as they were read later; as it is where they were not.

    What counts troubles keeps its earlier value: that it moved is enough, whenever that was.
    """
    if not any((one.source, own.name) in volumes for own in one.counters):
        return one
    counters = tuple(replace(own, value=volumes.get((one.source, own.name), own.value)) for own in one.counters)
    return replace(one, counters=counters, at_ns=at_ns, span_ns=span_ns)
