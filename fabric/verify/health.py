"""What is no loss and yet evidence: shares of time paused, storms, marks before pauses, victims, what merely moved.

Source: hosts.md 5.3, derived health. A share needs a counter of time; frames alone do not tell how long.
"""

import itertools
from collections.abc import Iterator
from typing import Final

from fabric.qos import UNKNOWN, Known
from fabric.state import SourceKind
from fabric.verify.conserve import end_count
from fabric.verify.delta import Differences, difference
from fabric.verify.events import Event, Rule
from fabric.verify.facts import Facts, add, is_above
from fabric.verify.meanings import meaning
from fabric.verify.model import PauseShare

__all__ = ("PAUSE_FAIL", "PAUSE_WARN", "marks_before_pauses", "notes", "pause_shares", "storms", "victims")

PAUSE_WARN: Final = 0.01
PAUSE_FAIL: Final = 0.10
_STORM_SHARE: Final = 0.99
_STORM_NS: Final = 100_000_000
_NS_PER_US: Final = 1000
_TIMES: Final = {Event.PAUSED_TIME: "rx", Event.PAUSING_TIME: "tx"}


def pause_shares(facts: Facts) -> tuple[PauseShare, ...]:
    """Returns for each place that counts time the largest share of any span between two snapshots."""
    largest: dict[tuple[str, str, int, str], Known[float]] = {}
    for window in _spans(facts):
        for key, share, _ in _shares(window):
            old = largest.get(key, UNKNOWN)
            if old is UNKNOWN or (share is not UNKNOWN and share > old):
                largest[key] = share
    return tuple(PauseShare(*key, share) for key, share in sorted(largest.items(), key=lambda item: item[0]))


def _spans(facts: Facts) -> Iterator[Differences]:
    yield facts.differences
    snapshots = (facts.evidence.before, *facts.evidence.samples, facts.evidence.after)
    if facts.evidence.samples:
        yield from (difference(one, other) for one, other in itertools.pairwise(snapshots))


def _shares(found: Differences) -> Iterator[tuple[tuple[str, str, int, str], Known[float], int]]:
    for window in found.windows:
        for one in window.deltas:
            what = meaning(window.source.family, one.name)
            if what is None or what.row.event not in _TIMES or what.index is None:
                continue
            key = (window.source.device, window.source.place, what.index, _TIMES[what.row.event])
            known_time = one.value is not UNKNOWN and window.span_ns > 0
            share = min(1.0, one.value * _NS_PER_US / window.span_ns) if known_time else UNKNOWN  # type: ignore[operator]
            yield key, share, window.span_ns


def storms(facts: Facts) -> tuple[str, ...]:
    """Returns where pauses did not end: by watchdogs, by the NIC's own count, and by time."""
    found = {
        f"{one.source.device}/{one.source.place}: {one.name} +{one.value}"
        for one in facts.readings
        if one.event in {Event.STORM, Event.WATCHDOG_STORM} and facts.matters(one) and is_above(one.value)
    }
    for span in _spans(facts):
        for (device, place, priority, way), share, span_ns in _shares(span):
            if share is not UNKNOWN and share >= _STORM_SHARE and span_ns >= _STORM_NS:
                ms = span_ns // 1_000_000
                found.add(f"{device}/{place}: priority {priority} paused ({way}) for all of {ms} ms")
    return tuple(sorted(found))


def marks_before_pauses(facts: Facts) -> Known[bool]:
    """Returns whether ECN acted before PFC: True when at least as many packets were marked as pauses sent.

    UNKNOWN where nothing was congested, or marks or pauses are not counted.
    """
    marked = add(facts.count(one, Event.MARKED) for one in facts.switches)
    paused = add(_pauses_sent(facts, one) for one in facts.switches)
    if marked is UNKNOWN or paused is UNKNOWN or marked == paused == 0:
        return UNKNOWN
    return marked >= paused


def _pauses_sent(facts: Facts, switch: str, *, port: str | None = None) -> Known[int]:
    own = facts.pick(switch, Event.PAUSE_SENT, place=port)
    return add(one.value for one in own if one.meaning.index is not None and facts.matters(one))


def victims(facts: Facts) -> tuple[str, ...]:
    """Returns hosts and targets that their switch paused although no port on their way was congested.

    None is named where a port on its way counts no marks: nobody knows then whether it was.
    """
    congested = set(_congested(facts))
    found = []
    for end in facts.ends:
        hop = next(hop for hop in facts.hops if end in {hop.near, hop.far})
        switch = hop.far if hop.near == end else hop.near
        is_paused = is_above(_pauses_sent(facts, switch.device, port=switch.port))
        ways = _last_ports(facts, end.device)
        if is_paused and all(port not in congested and _counts_marks(facts, *port) for port in ways):
            found.append(f"{end} is paused, and no port towards its peers is congested")
    return tuple(found)


def _congested(facts: Facts) -> Iterator[tuple[str, str]]:
    """Ports whose queue of the class marks or drops, or that are paused by who is behind them."""
    events = (Event.MARKED, Event.QUEUE_DROP, Event.EARLY_DROP, Event.PAUSE_RECEIVED, Event.WATCHDOG_STORM)
    for switch in facts.switches:
        for one in facts.pick(switch, *events):
            if one.meaning.index is not None and facts.matters(one) and is_above(one.value):
                yield switch, one.source.place


def _counts_marks(facts: Facts, switch: str, port: str) -> bool:
    marks = [one.value for one in facts.pick(switch, Event.MARKED, place=port) if facts.matters(one)]
    return bool(marks) and UNKNOWN not in marks


def _last_ports(facts: Facts, device: str) -> set[tuple[str, str]]:
    """Every switch port that a packet of the device leaves through."""
    ways = [path.hops for path in facts.evidence.links if path.host == device]
    back = [path.hops for path in facts.evidence.links if path.target == device]
    found = {(hop.near.device, hop.near.port) for hops in ways for hop in hops}
    found |= {(hop.far.device, hop.far.port) for hops in back for hop in hops}
    return {one for one in found if one[0] != device}


def notes(facts: Facts) -> tuple[str, ...]:
    """Returns what is bounded and moved, for people: one line an event."""
    totals: dict[Event, int] = {}
    for one in facts.readings:
        moved = one.meaning.row.rule is Rule.BOUNDED and facts.matters(one) and is_above(one.value)
        if moved and one.event in _NOTED and one.value is not UNKNOWN:
            totals[one.event] = totals.get(one.event, 0) + one.value
    lines = [f"{event.value}: {totals[event]}" for event in sorted(totals)]
    shares = [one for one in pause_shares(facts) if one.share is not UNKNOWN and one.share > PAUSE_WARN]
    for share in shares:
        level = "far too long" if share.share is not UNKNOWN and share.share > PAUSE_FAIL else "long"
        place = f"{share.device}/{share.place} priority {share.priority} {share.way}"
        lines.append(f"paused {level}: {place} {share.share:.1%}")
    lines += [f"{end} sent nothing of the class" for end in facts.ends if _is_silent(facts, end.device)]
    return tuple(lines)


_NOTED: Final = frozenset({
    Event.CE_RECEIVED, Event.CNP_SENT, Event.CNP_HANDLED, Event.MARKED, Event.SLOW_RESTART, Event.PAUSE_SENT,
    Event.BITS_CORRECTED, Event.SLOW_HOST,
})  # fmt: skip


def _is_silent(facts: Facts, device: str) -> bool:
    own = [end for end in facts.ends if end.device == device]
    counts = [end_count(facts, end, one, sent=True)[0] for end in own for one in facts.lossless]
    return bool(counts) and all(one == 0 for one in counts) and own[0].kind is not SourceKind.SWITCH
