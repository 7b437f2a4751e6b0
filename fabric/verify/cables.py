"""Frames of every class on each cable and direction: what one end sent against what the other received.

They narrow where a loss that others prove may have been, and prove none themselves: ends may differ in whether pause
frames and what is discarded count, and frames may be under way between two readings. So each book has the set of
losses that would explain it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from fabric.qos import UNKNOWN
from fabric.verify.events import Event, Way
from fabric.verify.facts import Facts, Reading
from fabric.verify.model import End, Hop

__all__ = ("CableBook", "cable_books", "only_cable")


@dataclass(frozen=True, slots=True)
class CableBook:
    """One direction of one cable.

    Attributes:
        sent: frames by its near end. received: by its far end.
        tolerance: frames that may be under way between two readings, as many as flow without load.
        losses: how many frames may have been lost on it: what is missing, or that with pauses or discards laid aside.
    """

    hop: Hop
    sent: int
    received: int
    tolerance: int
    losses: tuple[int, ...]

    @property
    def missing(self) -> int:
        """Returns frames sent and not received; below zero where more came."""
        return self.sent - self.received


def cable_books(facts: Facts) -> tuple[CableBook, ...]:
    """Returns the books of each direction of each cable of which both ends count their frames."""
    directed = (one for hop in facts.hops for one in (hop, Hop(hop.far, hop.near)))
    return tuple(book for hop in directed for book in _book(facts, hop))


def only_cable(books: Sequence[CableBook], hops: Iterable[Hop], wanted: int) -> tuple[CableBook, ...]:
    """Returns the books of the one cable that misses about as much as wanted; () where none does, or several.

    Where frames flow without load, every other cable must have been read and have missed none: a frame that was under
    way at one of them looks like a lost one.

    Args:
        books: of all cables.
        hops: the candidates, in the direction of what was lost; both of a cable where it may have been both.
        wanted: how many packets were lost.
    """
    by_hop = {book.hop: book for book in books}
    cables: dict[str, list[CableBook | None]] = {}
    for hop in hops:
        cables.setdefault(hop.name, []).append(by_hop.get(hop))
    found = [name for name, own in cables.items() if _may_miss(own, wanted)]
    if len(found) != 1:
        return ()
    others = [book for name, own in cables.items() if name != found[0] for book in own]
    hit = [book for book in cables[found[0]] if book is not None and max(book.losses) > 0]
    is_restless = any(book.tolerance for book in (*hit, *others) if book is not None)
    if is_restless and any(book is None or book.missing for book in others):
        return ()
    return tuple(hit)


def _may_miss(own: Sequence[CableBook | None], wanted: int) -> bool:
    known_ones = [book for book in own if book is not None]
    most = sum(max(0, *book.losses) for book in known_ones)
    return most >= max(1, wanted - sum(book.tolerance for book in known_ones))


def _book(facts: Facts, hop: Hop) -> Iterator[CableBook]:
    sent, received = _frames(facts, hop.near, Event.PORT_SENT), _frames(facts, hop.far, Event.PORT_RECEIVED)
    if sent is None or received is None or sent.value is UNKNOWN or received.value is UNKNOWN:
        return
    losses = _losses(sent.value - received.value, _pauses(facts, hop), _discards(facts, hop.far))
    yield CableBook(hop, sent.value, received.value, _tolerance(facts, sent, received), losses)


def _frames(facts: Facts, end: End, event: Event) -> Reading | None:
    return next((one for one in facts.pick(end.device, event, place=end.port) if one.value is not UNKNOWN), None)


def _losses(missing: int, pauses: int, discards: int) -> tuple[int, ...]:
    """What is missing may be pauses that one end alone counts, or what the far end discarded without counting it."""
    aside = {pause + discard for pause in (0, pauses, -pauses) for discard in (0, discards)}
    if missing in aside:
        return tuple(sorted({0, missing}))
    return tuple(sorted(missing - one for one in aside))


def _pauses(facts: Facts, hop: Hop) -> int:
    """Pause frames in that direction, as the end that counts most of them says; a total repeats its priorities."""
    found = [0]
    for end, event in ((hop.near, Event.PAUSE_SENT), (hop.far, Event.PAUSE_RECEIVED)):
        counted = [one for one in facts.pick(end.device, event, place=end.port) if one.value is not UNKNOWN]
        found.append(sum(one.value for one in counted if one.meaning.index is not None and one.value is not UNKNOWN))
        found += [one.value for one in counted if one.meaning.index is None and one.value is not UNKNOWN]
    return max(found)


def _discards(facts: Facts, end: End) -> int:
    own = facts.pick(end.device, Event.PORT_DISCARD, place=end.port)
    return sum(one.value for one in own if one.meaning.row.way is Way.IN and one.value is not UNKNOWN)


# --- readings are not of one moment ---------------------------------------------------------------------------------


def _tolerance(facts: Facts, *ends: Reading) -> int:
    """Frames without load, in the time between the readings of the two ends."""
    if facts.idle is None:
        return 0
    windows = {window.source: window for window in facts.idle.windows}
    read = [(windows[one.source], one.name) for one in ends if one.source in windows]
    packets = max((value for window, name in read if (value := window.value(name)) is not UNKNOWN), default=0)
    span_ns = min((window.span_ns for window, _ in read), default=0)
    return ceil(packets * _skew_ns(facts, *ends) / span_ns) if span_ns > 0 else 0


def _skew_ns(facts: Facts, *ends: Reading) -> int:
    skew = 0
    for snapshot in (facts.evidence.before, facts.evidence.after):
        sets = [found for one in ends if (found := snapshot.of(one.source)) is not None]
        times = [one.at_ns for one in sets]
        if times:
            skew += max(times) - min(times) + max(one.span_ns for one in sets) + max(one.cache_ns for one in sets)
    return skew
