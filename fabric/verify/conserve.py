"""The books of packets: what was sent on a part of the way, what arrived, and what is missing.

A lost packet may move no counter of loss (an ACK that the next one covers); the books see it. They compare only what
counts the same thing: packets of the class by priority, or all RDMA packets without CNPs, at both ends. Where the ends
count different things, or somebody who is not sampled sends or receives, the answer is UNKNOWN.

| part | sent | received |
|---|---|---|
| whole | by all hosts and targets | by all hosts and targets |
| into a switch | by everybody at its cables | through its queue, with its drops |
| out of a switch | through the queue of a port | by the host there |
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil
from typing import Final

from fabric.qos import UNKNOWN, Known, known
from fabric.state import SourceKind
from fabric.verify.events import Event
from fabric.verify.facts import Facts
from fabric.verify.meanings import meaning
from fabric.verify.model import End, TrafficClass
from fabric.verify.settled import is_volume

__all__ = ("DROPS", "Book", "Counted", "Part", "books", "dropped", "end_count", "queue_count")

DROPS: Final = (Event.QUEUE_DROP, Event.EARLY_DROP, Event.GROUP_DROP, Event.WATCHDOG_DROP)


class Part(StrEnum):
    """Which part of the way."""

    WHOLE = "whole"
    INTO = "into"
    OUT_OF = "out-of"


class Counted(StrEnum):
    """What an end counts."""

    CLASS = "packets of the class"
    RDMA = "RDMA packets of every class, without CNPs; with ACKs, retransmissions and connection management"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Book:
    """One part of the way.

    Attributes:
        device: the switch; "" for the whole. port: where it leaves the switch. peer: who is at that port.
        dropped: by switches, and counted there.
        lost: sent and neither received nor counted as dropped.
        is_exact: whether `lost` is proof; else ends count nearly the same, and it may serve to find the place.
        tolerance: packets that may be under way between two readings; as many may be missing where `lost` is 0.
    """

    part: Part
    traffic_class: str
    device: str = ""
    port: str = ""
    peer: str = ""
    sent: Known[int] = UNKNOWN
    received: Known[int] = UNKNOWN
    dropped: int = 0
    lost: Known[int] = UNKNOWN
    is_exact: bool = False
    tolerance: int = 0
    why: str = ""

    @property
    def is_all_there(self) -> bool:
        """Returns whether it is proven that no packet is missing, dropped ones aside."""
        return self.is_exact and self.lost == 0 and not self.tolerance


def books(facts: Facts) -> tuple[Book, ...]:
    """Returns the books of every lossless class: the whole, into each switch, out of each switch to each host."""
    return tuple(book for one in facts.lossless for book in _class_books(facts, one))


def _class_books(facts: Facts, traffic_class: TrafficClass) -> Iterator[Book]:
    yield _whole(facts, traffic_class)
    for switch in facts.switches:
        yield _into(facts, traffic_class, switch)
    for hop in facts.hops:
        for near, far in ((hop.near, hop.far), (hop.far, hop.near)):
            if near.kind is SourceKind.SWITCH and far.kind is not SourceKind.SWITCH:
                yield _out_of(facts, traffic_class, near, far)


# --- counting at one place ------------------------------------------------------------------------------------------


def end_count(facts: Facts, end: End, traffic_class: TrafficClass, *, sent: bool) -> tuple[Known[int], Counted]:
    """Returns the packets of the class that a host's or target's port sent or received, and what that counts."""
    event = Event.CLASS_SENT if sent else Event.CLASS_RECEIVED
    own = [
        one
        for one in facts.pick(end.device, event, place=end.port)
        if one.meaning.index == traffic_class.priority and one.value is not UNKNOWN
    ]
    if own:
        return own[0].value, Counted.CLASS
    if len(facts.lossless) > 1:
        return UNKNOWN, Counted.NOTHING
    volume = _at_end(facts, end, Event.RDMA_SENT if sent else Event.RDMA_RECEIVED)
    if volume is UNKNOWN:
        return UNKNOWN, Counted.NOTHING
    events = (Event.CNP_SENT,) if sent else (Event.CNP_HANDLED, Event.CNP_IGNORED)
    return volume - sum(known(_at_end(facts, end, event), 0) for event in events), Counted.RDMA


def _at_end(facts: Facts, end: End, event: Event) -> Known[int]:
    """One counter of the event at the end; names of the same event (IPv4, IPv6) of one source are added."""
    for place in (end.rdma, end.port):
        found = [one.value for one in facts.pick(end.device, event, place=place)] if place else []
        if found and event in {Event.CNP_SENT, Event.CNP_HANDLED}:
            return found[0]  # optional counters of mlx5 repeat the others
        if found:
            return UNKNOWN if any(one is UNKNOWN for one in found) else sum(one for one in found if one is not UNKNOWN)
    return UNKNOWN


def queue_count(facts: Facts, switch: str, queue: int | None, *, port: str | None = None) -> Known[int]:
    """Returns the packets that left through a queue of a switch, or of one port; queue None for all queues."""
    found = [
        one.value
        for one in facts.pick(switch, Event.QUEUE_SENT, place=port)
        if queue is None or one.meaning.index == queue
    ]
    return _total(found) if queue is not None else (_known_total(found) if found else UNKNOWN)


def dropped(facts: Facts, switch: str, traffic_class: TrafficClass, *, port: str | None = None) -> int:
    """Returns the packets of the class that the switch says it dropped, as far as it counts."""
    place = traffic_class.at(switch)
    return _known_total(
        one.value
        for one in facts.pick(switch, *DROPS, place=port)
        if one.meaning.index == (place.group if one.event is Event.GROUP_DROP else place.queue)
    )


def _total(values: Iterable[Known[int]]) -> Known[int]:
    """The sum; UNKNOWN as soon as one is, or when there is none."""
    found = list(values)
    known_ones = [one for one in found if one is not UNKNOWN]
    return sum(known_ones) if found and len(found) == len(known_ones) else UNKNOWN


def _known_total(values: Iterable[Known[int]]) -> int:
    return sum(one for one in values if one is not UNKNOWN)


# --- one part -------------------------------------------------------------------------------------------------------


def _whole(facts: Facts, traffic_class: TrafficClass) -> Book:
    sent = [end_count(facts, end, traffic_class, sent=True) for end in facts.ends]
    received = [end_count(facts, end, traffic_class, sent=False) for end in facts.ends]
    kinds = {kind for _, kind in (*sent, *received)}
    all_sent, all_received = _total(one for one, _ in sent), _total(one for one, _ in received)
    drops = sum(dropped(facts, switch, traffic_class) for switch in facts.switches)
    book = Book(Part.WHOLE, traffic_class.name, sent=all_sent, received=all_received, dropped=drops)
    if all_sent is UNKNOWN or all_received is UNKNOWN:
        return _because(book, _who(facts, traffic_class))
    if len(kinds) > 1:
        return _because(book, "some ends count the class and others all RDMA packets")
    strangers = _strangers(facts, traffic_class)
    if strangers:
        return _because(book, f"packets of the class left at ports that are not sampled: {', '.join(strangers)}")
    tolerance = 0 if _is_settled(facts) else _tolerance(facts, traffic_class)
    return _closed(book, is_exact=_is_closed(facts, traffic_class), tolerance=tolerance)


def _into(facts: Facts, traffic_class: TrafficClass, switch: str) -> Book:
    queue = traffic_class.at(switch).queue
    counts: list[tuple[Known[int], Counted]] = []
    for hop in facts.hops:
        for near, far in ((hop.near, hop.far), (hop.far, hop.near)):
            if far.device == switch and near.kind is SourceKind.SWITCH:
                number = queue_count(facts, near.device, traffic_class.at(near.device).queue, port=near.port)
                counts.append((number, Counted.CLASS))
            elif far.device == switch:
                counts.append(end_count(facts, near, traffic_class, sent=True))
    out, drops = queue_count(facts, switch, queue), dropped(facts, switch, traffic_class)
    sent = _total(one for one, _ in counts)
    book = Book(Part.INTO, traffic_class.name, switch, sent=sent, received=out, dropped=drops)
    if sent is UNKNOWN or out is UNKNOWN:
        return _because(book, "the switch or one of its neighbours does not count the class")
    same = all(kind is Counted.CLASS for _, kind in counts)
    return _closed(book, is_exact=same, tolerance=_tolerance(facts, traffic_class))


def _out_of(facts: Facts, traffic_class: TrafficClass, near: End, far: End) -> Book:
    sent = queue_count(facts, near.device, traffic_class.at(near.device).queue, port=near.port)
    received, kind = end_count(facts, far, traffic_class, sent=False)
    book = Book(Part.OUT_OF, traffic_class.name, near.device, near.port, str(far), sent, received)
    if sent is UNKNOWN or received is UNKNOWN:
        return _because(book, "one of the two ends does not count the class")
    return _closed(book, is_exact=kind is Counted.CLASS, tolerance=_tolerance(facts, traffic_class))


def _closed(book: Book, *, is_exact: bool, tolerance: int) -> Book:
    """Books with both sides known."""
    if book.sent is UNKNOWN or book.received is UNKNOWN:
        return book
    lost = book.sent - book.received - (book.dropped if book.part is not Part.OUT_OF else 0)
    if lost < -tolerance:
        return _because(book, f"{-lost} packets more came than were sent: somebody who is not sampled sends")
    lost = 0 if abs(lost) <= tolerance else lost
    text = "" if is_exact else "the ends count nearly the same, or nobody knows who else sends"
    if is_exact and tolerance:
        text = f"up to {tolerance} may be under way between two readings"
    return replace(book, lost=lost, is_exact=is_exact, tolerance=tolerance, why=text)


def _because(book: Book, why: str) -> Book:
    return replace(book, lost=UNKNOWN, is_exact=False, why=why)


# --- who else -------------------------------------------------------------------------------------------------------


def _who(facts: Facts, traffic_class: TrafficClass) -> str:
    names = [
        str(end)
        for end in facts.ends
        if any(end_count(facts, end, traffic_class, sent=sent)[0] is UNKNOWN for sent in (True, False))
    ]
    return f"no packets of the class are counted at {', '.join(names)}" if names else "nobody counts the class"


def _strangers(facts: Facts, traffic_class: TrafficClass) -> list[str]:
    """Ports at which packets of the class left and nobody listens who is sampled."""
    own = {(end.device, end.port) for hop in facts.hops for end in (hop.near, hop.far)}
    found = set()
    for switch in facts.switches:
        queue = traffic_class.at(switch).queue
        for one in facts.pick(switch, Event.QUEUE_SENT):
            place = (switch, one.source.place)
            if one.meaning.index == queue and one.value is not UNKNOWN and one.value > 0 and place not in own:
                found.add(f"{switch}/{one.source.place}")
    return sorted(found)


def _is_closed(facts: Facts, traffic_class: TrafficClass) -> bool:
    """Whether it is known that nobody else takes part: every switch counts the class, or it was silent when idle."""
    counted = [queue_count(facts, switch, traffic_class.at(switch).queue) for switch in facts.switches]
    if counted and all(one is not UNKNOWN for one in counted):
        return True
    return facts.idle is not None and _idle_packets(facts, traffic_class) == 0


def _idle_packets(facts: Facts, traffic_class: TrafficClass) -> Known[int]:
    """Packets of the class, or of RDMA, that hosts and targets sent without load."""
    if facts.idle is None:
        return UNKNOWN
    values: list[Known[int]] = []
    names = {
        (one.source, one.name)
        for one in facts.readings
        if one.event in {Event.CLASS_SENT, Event.RDMA_SENT} and one.meaning.index in {None, traffic_class.priority}
    }
    for window in facts.idle.windows:
        values += [one.value for one in window.deltas if (window.source, one.name) in names]
    return _total(values)


def counts_packets(family: str, name: str) -> bool:
    """Returns whether the counter is one that the books are made of: packets of ends, or of a switch's queue."""
    found = meaning(family, name)
    return is_volume(family, name) or (found is not None and found.row.event is Event.QUEUE_SENT)


def _tolerance(facts: Facts, traffic_class: TrafficClass) -> int:
    """How many packets may be under way between two readings: what was sent without load, in the time they took."""
    packets = _idle_packets(facts, traffic_class)
    if facts.idle is None or packets is UNKNOWN or packets == 0:
        return 0
    span_ns = max((one.span_ns for one in facts.idle.windows), default=0)
    return ceil(packets * _skew_ns(facts) / span_ns) if span_ns > 0 else 0


def _is_settled(facts: Facts) -> bool:
    """Whether both readings of hosts and targets are one moment each: nothing was under way between them."""
    return facts.evidence.before.is_settled and facts.evidence.after.is_settled


def _skew_ns(facts: Facts) -> int:
    """Over what counts packets: of other counters it does not matter when they were read."""
    skew = 0
    for snapshot in (facts.evidence.before, facts.evidence.after):
        sets = [
            one for one in snapshot.sets if any(counts_packets(one.source.family, own.name) for own in one.counters)
        ]
        times = [one.at_ns for one in sets]
        spans = [one.span_ns for one in sets]
        caches = [one.cache_ns for one in sets]
        skew += max(times) - min(times) + max(spans) + max(caches) if times else 0
    return skew
