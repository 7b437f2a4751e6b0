"""Causes that hosts, cables and payload show: loss on a cable, a flap, bit errors, reordering, slow software."""

from collections.abc import Iterator, Sequence
from typing import Final

from fabric.qos import UNKNOWN, Known
from fabric.state import SourceKind
from fabric.verify.cables import CableBook, only_cable
from fabric.verify.conserve import Book, Part
from fabric.verify.events import Event
from fabric.verify.facts import Reading, is_above
from fabric.verify.meanings import AGAIN, LOSS_SEEN
from fabric.verify.model import Hop, StreamSummary, VerdictStatus
from fabric.verify.rules import Hit, LocateRule, status_of
from fabric.verify.scene import Scene, hop_text, part_text

__all__ = ("PATH_RULES",)

_SLOW: Final = frozenset({*AGAIN, Event.QP_DEAD})
_MANY: Final = 16  # candidates that are still worth naming
_DAMAGED: Final = frozenset({"wrong", "torn"})


# --- cables ---------------------------------------------------------------------------------------------------------


def _link_state(scene: Scene, event: Event, score: int) -> Iterator[Hit]:
    """Counters of the cable's own state at either end."""
    for one in _moved_anywhere(scene, event):
        hop = scene.facts.hop_at(one.source.device, one.source.place)
        place = f"{one.source.device}/{one.source.place}" if hop is None else hop.name
        yield Hit(one.source.device, (place,), f"{one.name} +{one.value}", score, status_of(scene))


def _flap_by_books(scene: Scene) -> Iterator[Hit]:
    """Lost in both directions of one cable."""
    if _bad_links(scene):
        return
    lost = [one for one in _cable_losses(scene) if one[1] is not UNKNOWN]
    for hop, count, _ in lost:
        back = next((other for one, other, _ in lost if (one.near, one.far) == (hop.far, hop.near)), None)
        if back is not None and str(hop.near) < str(hop.far):
            evidence = f"{count} packets lost {hop_text(hop)}, {back} the other way"
            yield Hit(hop.near.device, (hop.name,), evidence, 86)


def _cable_loss(scene: Scene) -> Iterator[Hit]:
    both = {place for hit in _flap_by_books(scene) for place in hit.candidates} | _bad_links(scene)
    losses: dict[str, list[Hop]] = {}
    for hop, _, evidence in _cable_losses(scene):
        if hop.name not in both:
            losses.setdefault(evidence, []).append(hop)
    for evidence, hops in losses.items():
        device = hops[0].near.device if len({hop.near.device for hop in hops}) == 1 else ""
        places = tuple(hop_text(hop) for hop in hops) if len(hops) <= _MANY else ("any cable on the way",)
        yield Hit(device, places, evidence, 80 if len(hops) == 1 else 70)


def _bad_links(scene: Scene) -> set[str]:
    events = (Event.LINK_DOWN, Event.LINK_ERROR, Event.ICRC_ERROR)
    return {place for event in events for hit in _link_state(scene, event, 0) for place in hit.candidates}


def _cable_losses(scene: Scene) -> list[tuple[Hop, Known[int], str]]:
    """(cable, packets, evidence) that may have lost; candidates for one loss have the same evidence."""
    if scene.misplaced or not scene.is_loss_seen or _is_accounted(scene):
        return []
    found: list[tuple[Hop, Known[int], str]] = []
    suspects = scene.suspects()
    for book in scene.books:
        if book.part is not Part.WHOLE and is_above(book.lost):
            found += _losses_of(scene, book, suspects)
    if not found and not any(book.is_all_there for book in scene.whole):
        evidence = _ends_text(scene)
        only = _by_frames(scene, max(1, scene.missing), suspects, _directed(scene))
        if only:
            return [(one.hop, max(1, one.missing), f"{evidence}{_frames_text(only)}") for one in only]
        found += [(hop, UNKNOWN, evidence) for hop in suspects or _directed(scene)]
    return found


def _losses_of(scene: Scene, book: Book, suspects: tuple[Hop, ...]) -> list[tuple[Hop, Known[int], str]]:
    """Where the packets that a part of the way misses may have been lost: on one cable, if its frames say so."""
    evidence = f"{book.lost} packets lost {part_text(book)}: {book.sent} sent, {book.received} came{_drops_text(book)}"
    hops = _hops_of(scene, book, suspects)
    if book.part is Part.INTO and len(hops) > 1 and book.lost is not UNKNOWN:
        into = [hop for hop in _directed(scene) if hop.far.device == book.device]
        only = _by_frames(scene, book.lost, hops, into)
        if only:
            return [(one.hop, book.lost, f"{evidence}{_frames_text(only)}") for one in only]
    return [(hop, book.lost, evidence) for hop in hops]


def _by_frames(scene: Scene, wanted: int, *candidates: Sequence[Hop]) -> tuple[CableBook, ...]:
    """The one cable whose frames miss as much, of the first candidates of which it is one."""
    found = (only_cable(scene.frames, hops, wanted) for hops in candidates)
    return next((one for one in found if one), ())


def _frames_text(only: tuple[CableBook, ...]) -> str:
    return "".join(f"; of all frames {hop_text(one.hop)} {one.sent} sent, {one.received} came" for one in only)


def _is_accounted(scene: Scene) -> bool:
    """Whether switches or NICs have dropped all that is missing, or nothing is."""
    if scene.is_all_there:
        return True
    if scene.is_whole_known and any(one.lost for one in scene.whole):
        return False
    return bool(scene.switch_drops) or bool(_moved(scene, Event.DEVICE_DROP))


def _hops_of(scene: Scene, book: Book, suspects: tuple[Hop, ...]) -> list[Hop]:
    directed = _directed(scene)
    if book.part is Part.OUT_OF:
        return [hop for hop in directed if (hop.near.device, hop.near.port) == (book.device, book.port)]
    into = [hop for hop in directed if hop.far.device == book.device]
    narrowed = [hop for hop in into if hop in suspects]
    if not scene.pairs and scene.is_late_by_itself:  # timers point somewhere, but not always to what was lost
        return [*narrowed, *(hop for hop in into if hop not in narrowed)]
    return narrowed or into


def _directed(scene: Scene) -> list[Hop]:
    return [one for hop in scene.facts.hops for one in (hop, Hop(hop.far, hop.near))]


def _drops_text(book: Book) -> str:
    return f", {book.dropped} dropped by it" if book.dropped else ""


def _ends_text(scene: Scene) -> str:
    pairs = ", ".join(f"{sender} to {receiver}" for sender, receiver in scene.pairs or scene.late)
    known = [one for one in scene.whole if one.is_exact and is_above(one.lost)]
    books = f"{known[0].lost} packets lost on the way" if known else "the ends saw a gap"
    return f"{books}: {pairs}" if pairs else f"{books}, and no end saw a gap: an ACK or a connection message"


# --- ends -----------------------------------------------------------------------------------------------------------


def _nic_drops(scene: Scene) -> Iterator[Hit]:
    for one in _moved(scene, Event.DEVICE_DROP, Event.SEND_ERROR):
        mixed = one.meaning.row.mixed
        status = status_of(scene) if mixed else VerdictStatus.FAIL
        more = ", of any class" if mixed else ""
        place = f"{one.source.device}/{one.source.place}"
        yield Hit(one.source.device, (place,), f"{one.name} +{one.value}{more}", 60 if mixed else 87, status)


def _software(scene: Scene, *events: Event) -> Iterator[Hit]:
    for one in _moved(scene, *events):
        place = f"{one.source.device}/{one.source.place}"
        yield Hit(one.source.device, (place,), f"{one.name} +{one.value}", 85)


def _reordered(scene: Scene) -> Iterator[Hit]:
    """Gaps, and nothing is missing."""
    if not scene.is_all_there or scene.switch_drops:
        return
    gaps = _moved(scene, Event.GAP_SEEN, Event.READ_GAP, Event.GAP_NAKED)
    if gaps:
        hops = scene.cables(scene.pairs)
        places = tuple(hop_text(hop) for hop in hops) or (gaps[0].source.device,)
        evidence = f"{', '.join(f'{one.source.device} {one.name} +{one.value}' for one in gaps)}; no packet is missing"
        yield Hit("", places, evidence, 75)


def _timers(scene: Scene) -> Iterator[Hit]:
    """Timers alone: an end was slow, or a packet was lost that nobody else counts.

    Where it is proven that every packet came, they are no reason for doubt: see `health.notes`.
    """
    if scene.is_loss_seen:
        return
    late = [one for one in _moved(scene, *_SLOW) if one.event not in scene.excused]
    for device in sorted({one.source.device for one in late}):
        moved = [one for one in late if one.source.device == device]
        void = sorted(scene.facts.void_devices & {*scene.facts.peers(device), device})
        because = f"; {', '.join(void)} began anew meanwhile" if void else ""
        evidence = ", ".join(f"{one.name} +{one.value}" for one in moved) + because
        books = "no packet is missing" if scene.is_all_there else "the books of packets do not tell"
        yield Hit(device, (f"{device}/{moved[0].source.place}",), f"{evidence}; {books}", 40, VerdictStatus.INVALID)


def _storms(scene: Scene) -> Iterator[Hit]:
    for one in _moved(scene, Event.STORM):
        place = f"{one.source.device}/{one.source.place}"
        yield Hit(one.source.device, (place,), f"{one.name} +{one.value}", 88)


# --- payload --------------------------------------------------------------------------------------------------------


def _streams(scene: Scene) -> list[StreamSummary]:
    return [one for job in scene.facts.evidence.jobs for one in job.streams if one.flaw_count]


def _corrupted(scene: Scene) -> Iterator[Hit]:
    flawed = [one for one in _streams(scene) if not one.flaws or any(flaw.kind in _DAMAGED for flaw in one.flaws)]
    if not flawed:
        return
    hops = scene.cables(tuple(sorted({(one.target, one.host) for one in flawed})))
    names = ", ".join(f"{one.target} to {one.host}: {one.flaw_count}" for one in flawed)
    at = "; ".join(f"LBA {flaw.lba} byte {flaw.offset_bytes} {flaw.kind}" for flaw in flawed[0].flaws[:3])
    # a byte may have turned on the way of the write already
    places = tuple(sorted({hop.name for hop in hops})) or (flawed[0].host,)
    yield Hit("", places, f"wrong bytes, every checksum right: {names}" + (f" ({at})" if at else ""), 96)


def _misdelivered(scene: Scene) -> Iterator[Hit]:
    for one in _streams(scene):
        kinds = sorted({flaw.kind for flaw in one.flaws} - _DAMAGED)
        if kinds and len(kinds) == len({flaw.kind for flaw in one.flaws}):
            evidence = f"{one.flaw_count} sectors {', '.join(kinds)} from {one.target}"
            yield Hit(one.host, (f"{one.host} or {one.target}",), evidence, 96)


def _moved(scene: Scene, *events: Event) -> list[Reading]:
    """At hosts and targets."""
    return [one for one in _moved_anywhere(scene, *events) if one.source.kind is not SourceKind.SWITCH]


def _moved_anywhere(scene: Scene, *events: Event) -> list[Reading]:
    facts = scene.facts
    return [one for one in facts.readings if one.event in events and facts.must_stand(one) and is_above(one.value)]


PATH_RULES: Final = (
    LocateRule(
        "wrong-bytes",
        "payload-corrupted",
        _corrupted,
        frozenset(),
        "change the cable, then the NIC; a checksum of the payload end to end alone can see this",
    ),
    LocateRule(
        "wrong-sector",
        "wrong-data-delivered",
        _misdelivered,
        frozenset(),
        "look at target and engine: the sector is whole and not the one that was asked for",
    ),
    LocateRule(
        "link-went-down",
        "link-flap",
        lambda scene: _link_state(scene, Event.LINK_DOWN, 94),
        LOSS_SEEN | {Event.LINK_DOWN},
        "reseat or change the cable and its modules; see the logs of both ends for who went down first",
    ),
    LocateRule(
        "frames-with-errors",
        "link-errors",
        lambda scene: (hit for event in (Event.LINK_ERROR, Event.ICRC_ERROR) for hit in _link_state(scene, event, 90)),
        LOSS_SEEN | {Event.LINK_ERROR, Event.ICRC_ERROR},
        "clean or change the cable; compare FEC and speed at both ends",
    ),
    LocateRule(
        "lost-in-both-directions",
        "link-flap",
        _flap_by_books,
        LOSS_SEEN,
        "reseat or change the cable and its modules: it lost in both directions and no end counted why",
    ),
    LocateRule(
        "lost-on-the-way",
        "loss-on-cable",
        _cable_loss,
        LOSS_SEEN,
        "test this cable alone; clean or change it, and read the error counters of both its ends",
    ),
    LocateRule(
        "dropped-by-nic",
        "nic-drops",
        _nic_drops,
        LOSS_SEEN | {Event.DEVICE_DROP, Event.SEND_ERROR},
        "see the receive buffer of the priority, PCIe width and where interrupts and memory are",
    ),
    LocateRule(
        "storm-at-nic",
        "pause-storm",
        _storms,
        frozenset({Event.STORM}),
        "this NIC paused its switch without end: its host does not drain it",
    ),
    LocateRule(
        "receiver-not-ready",
        "software-credits",
        lambda scene: _software(scene, Event.NOT_READY, Event.NO_BUFFER),
        frozenset({Event.NOT_READY, Event.NO_BUFFER}),
        "more commands were sent than receives posted: a bug of the software here; the fabric lost nothing",
    ),
    LocateRule(
        "operation-failed",
        "software-protocol",
        lambda scene: _software(scene, Event.PROTOCOL_ERROR),
        frozenset({Event.PROTOCOL_ERROR}),
        "a key, address or length was wrong: a bug of the software at this end",
    ),
    LocateRule(
        "gaps-without-loss",
        "reordering",
        _reordered,
        LOSS_SEEN,
        "see that one flow takes one way: hash of equal ways, LAG members, adaptive routing",
    ),
    LocateRule(
        "timers-without-loss",
        "host-too-slow-or-unseen-loss",
        _timers,
        _SLOW,
        "repeat with less load on this host; a timer alone is no proof of loss",
    ),
)
