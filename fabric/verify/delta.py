"""Differences of two snapshots: how far each counter moved, or why that cannot be told. Never zero for unknown.

| what is seen | what it means |
|---|---|
| another epoch | the device or its driver began anew: the window is void |
| a counter fell by more than half its width | it was reset: the window is void |
| a counter fell, and modulo its width moved a little | it wrapped |
| a value may be older than the load's end | the window is void |
| the source, or a counter of the table, was there once of twice | the window is void |
| the source never answered, or has no such counter | not observable; nothing is void |
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fabric.qos import UNKNOWN, Known
from fabric.state import Counter, CounterSet, Snapshot, Source
from fabric.verify.meanings import meaning

__all__ = ("Delta", "Differences", "Void", "Window", "difference", "moved")


@dataclass(frozen=True, slots=True)
class Delta:
    """How far one counter moved; why: what kept it from being known."""

    name: str
    value: Known[int]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Void:
    """Why the window of a source proves nothing. kind: `epoch`, `reset`, `stale`, `early`, `vanished`."""

    source: Source
    kind: str
    why: str

    def __str__(self) -> str:
        return f"{self.source}: {self.why}"


@dataclass(frozen=True, slots=True)
class Window:
    """One source over the time between two snapshots; every delta is UNKNOWN where it is void.

    Attributes:
        span_ns: from reading to reading. skew_ns: how long the two readings took together.
    """

    source: Source
    span_ns: int
    deltas: tuple[Delta, ...] = ()
    voids: tuple[Void, ...] = ()
    skew_ns: int = 0

    def value(self, name: str) -> Known[int]:
        """Returns how far that counter moved, UNKNOWN when there is none."""
        return next((one.value for one in self.deltas if one.name == name), UNKNOWN)


@dataclass(frozen=True, slots=True)
class Differences:
    """All sources. unobservable: sources that gave no counters, with the reason."""

    windows: tuple[Window, ...]
    unobservable: tuple[tuple[Source, str], ...] = ()

    @property
    def voids(self) -> tuple[Void, ...]:
        """Returns why any window is void."""
        return tuple(void for window in self.windows for void in window.voids)


def difference(
    before: Snapshot, after: Snapshot, *, started_ns: int | None = None, ended_ns: int | None = None
) -> Differences:
    """Returns how far every counter moved.

    Args:
        before: the first snapshot.
        after: the second.
        started_ns: when the load between them began, on the clock of the snapshots; None for not checked.
        ended_ns: when it ended, likewise.
    """
    late = {one.source: one for one in after.sets}
    windows = [_window(one, late.get(one.source), started_ns, ended_ns) for one in before.sets]
    early = {one.source for one in before.sets}
    windows += [
        _vanished(one.source, "it was not read before the load") for one in after.sets if one.source not in early
    ]
    seen = {one.source for one in windows}
    whys = {one.source: one.why for one in (*before.missing, *after.missing) if one.source not in seen}
    return Differences(tuple(windows), tuple(whys.items()))


def moved(before: Counter, after: Known[int]) -> Delta:
    """Returns how far a counter moved, modulo its width. More than half of the width is no wrap but a reset."""
    first = before.value
    if first is UNKNOWN or after is UNKNOWN:
        return Delta(before.name, UNKNOWN, "not counted")
    step = after - first
    if step >= 0:
        return Delta(before.name, step)
    if before.bits == 0:
        return Delta(before.name, UNKNOWN, f"fell from {first} to {after}, and it never wraps")
    step %= 1 << before.bits
    if step >> (before.bits - 1):
        return Delta(before.name, UNKNOWN, f"fell from {first} to {after}")
    return Delta(before.name, step)


def _window(before: CounterSet, after: CounterSet | None, started_ns: int | None, ended_ns: int | None) -> Window:
    source = before.source
    if after is None:
        return _vanished(source, "it gave no counters after the load")
    late = {one.name: one.value for one in after.counters}
    deltas = [moved(one, late.get(one.name, UNKNOWN)) for one in before.counters]
    names = {one.name for one in before.counters}
    deltas += [Delta(one.name, UNKNOWN, "not there before the load") for one in after.counters if one.name not in names]
    voids = tuple(_voids(before, after, deltas, started_ns, ended_ns))
    if voids:
        deltas = [Delta(one.name, UNKNOWN, voids[0].why) for one in deltas]
    return Window(source, after.at_ns - before.at_ns, tuple(deltas), voids, before.span_ns + after.span_ns)


def _voids(
    before: CounterSet, after: CounterSet, deltas: list[Delta], started_ns: int | None, ended_ns: int | None
) -> Iterator[Void]:
    source = before.source
    if before.epoch != after.epoch:
        why = f"it began anew between the snapshots ({before.epoch or '?'}, then {after.epoch or '?'})"
        yield Void(source, "epoch", why)
        return
    fallen = [one for one in deltas if one.why.startswith("fell")]
    if fallen:
        yield Void(source, "reset", f"counters were reset: {fallen[0].name} {fallen[0].why}")
    early, late = _read(before), _read(after)
    for gone, text in (
        (early - late, "before the load and not after it"),
        (late - early, "after the load and not before it"),
    ):
        known_ones = sorted(one for one in gone if meaning(source.family, one))
        if known_ones:
            yield Void(source, "vanished", f"{known_ones[0]} was counted {text}")
    if started_ns is not None and before.at_ns + before.span_ns > started_ns:
        yield Void(source, "early", "the load had begun when the first reading ended")
    fresh_ns = after.at_ns - after.cache_ns
    if ended_ns is not None and fresh_ns < ended_ns:
        text = f"the last reading may show values from {(ended_ns - fresh_ns) / 1e6:.0f} ms before the load's end"
        yield Void(source, "stale", text)
    elif fresh_ns <= before.at_ns:
        yield Void(source, "stale", f"both readings may be one: {after.cache_ns / 1e6:.0f} ms of cache")


def _read(found: CounterSet) -> frozenset[str]:
    return frozenset(one.name for one in found.counters if one.value is not UNKNOWN)


def _vanished(source: Source, why: str) -> Window:
    return Window(source, 0, voids=(Void(source, "vanished", why),))
