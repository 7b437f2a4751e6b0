"""The verdict: PASS, FAIL or INVALID, with how much it is worth.

| verdict | when |
|---|---|
| FAIL | loss or damage is proven, whatever else was wrong with the run |
| INVALID | a window is void, an end was not read, a precheck failed, n is too small, or timers alone ran out |
| PASS | every counter that must stand stood, no byte was wrong, and n is what was asked |
"""

from collections.abc import Iterator
from itertools import product

from fabric.qos import UNKNOWN, Known
from fabric.state import Severity, Status
from fabric.verify.bound import upper_bound
from fabric.verify.conserve import Book, Part, end_count
from fabric.verify.facts import Facts, gather, is_above
from fabric.verify.grade import blind_pairs, grade, unobservable
from fabric.verify.health import marks_before_pauses, notes, pause_shares, storms, victims
from fabric.verify.locate import locate
from fabric.verify.model import (
    ClassResult,
    DeviceVerdict,
    Evidence,
    LinkResult,
    LossFinding,
    Moved,
    TrafficClass,
    Verdict,
    VerdictStatus,
)
from fabric.verify.scene import Scene, hop_text, look, part_text

__all__ = ("judge",)


def judge(evidence: Evidence) -> Verdict:
    """Returns the verdict on one run. The same evidence gives the same verdict, anywhere and at any time."""
    facts = gather(evidence)
    scene = look(facts)
    findings = (*_precheck_findings(evidence), *locate(scene))
    invalid = tuple(_invalid(scene, findings))
    status = _status(findings, invalid)
    packets, counted_by = _volume(facts)
    lost = _lost(scene)
    bursts, failed = sum(one.bursts for one in evidence.jobs), sum(one.bursts_failed for one in evidence.jobs)
    seen = 0 if status is VerdictStatus.PASS and lost is UNKNOWN else lost
    return Verdict(
        status=status,
        grade=grade(scene),
        packets=packets,
        lost=lost,
        bound_95=_bound(seen, packets, evidence.confidence),
        bursts=bursts,
        bursts_failed=failed,
        burst_bound_95=_bound(failed, bursts, evidence.confidence),
        asked_packets=evidence.asked_packets,
        confidence=evidence.confidence,
        counted_by=counted_by,
        findings=findings,
        per_class=tuple(_class_result(scene, one, status) for one in facts.lossless),
        per_link=(*map(_link_result, scene.books), *_cable_results(scene)),
        per_device=tuple(_device_result(scene, one) for one in _devices(facts)),
        pause_share=pause_shares(facts),
        storms=storms(facts),
        marks_before_pauses=marks_before_pauses(facts),
        victims=victims(facts),
        unobservable=unobservable(scene),
        invalid=invalid,
        notes=(*notes(facts), *_sent_again(scene)),
    )


def _status(findings: tuple[LossFinding, ...], invalid: tuple[str, ...]) -> VerdictStatus:
    if any(one.status is VerdictStatus.FAIL for one in findings):
        return VerdictStatus.FAIL
    return VerdictStatus.INVALID if invalid or findings else VerdictStatus.PASS


def _precheck_findings(evidence: Evidence) -> Iterator[LossFinding]:
    """Prechecks that failed: INVALID, or FAIL where the load was asked for in spite of them."""
    status = VerdictStatus.FAIL if evidence.go_on else VerdictStatus.INVALID
    for one in evidence.prechecks:
        if one.status is Status.FAIL and one.severity is Severity.ERROR:
            place = ", ".join(one.where.ports) or one.where.device
            yield LossFinding(
                one.rule, status, one.where.device, place, "precheck-failed", one.evidence, one.remedy, 20
            )


def _invalid(scene: Scene, findings: tuple[LossFinding, ...]) -> Iterator[str]:
    facts = scene.facts
    evidence = facts.evidence
    yield from (str(one) for one in facts.differences.voids)
    yield from _unread(facts)
    yield from (f"{one.place}: {one.evidence}" for one in findings if one.status is VerdictStatus.INVALID)
    if not facts.lossless:
        yield "no class is lossless: there is nothing to prove"
    if not evidence.jobs:
        yield "there was no load"
    for job in evidence.jobs:
        if not job.is_complete:
            yield f"load {job.name} did not run to its end: {job.why or 'no reason given'}"
        failed = [f"{one.host} to {one.target} {kind} {count}" for one in job.streams for kind, count in one.errors]
        if failed:
            yield f"commands failed in load {job.name}: {', '.join(failed)}"
    for sender, receiver in blind_pairs(scene):
        yield f"nobody would have seen a packet lost from {sender} to {receiver}"
    packets = _volume(facts)[0]
    if packets is UNKNOWN:
        yield "the packets of the lossless classes were not counted"
    elif packets < max(1, evidence.asked_packets):
        yield f"{packets} packets of the lossless classes, {max(1, evidence.asked_packets)} asked"
    yield from _open_books(scene)


def _open_books(scene: Scene) -> Iterator[str]:
    """Packets that are missing where nobody can say whether a stranger took them, or ends count nearly the same."""
    for one in scene.whole:
        if not one.is_exact and is_above(one.lost):
            yield f"{one.lost} packets of class {one.traffic_class} were sent and not received: lost, or gone elsewhere"
    if not scene.is_whole_known:
        for one in scene.books:
            if one.part is not Part.WHOLE and is_above(one.lost):
                yield f"{one.lost} packets missing {part_text(one)}, and the books of the whole do not close"


def _unread(facts: Facts) -> Iterator[str]:
    """Hosts and targets that gave no counters. Both ends must be read, or half of the losses stay unseen (5.2).

    One that nobody may read is no reason as long as each switch that its cables end at was read: there, what was lost
    on those cables is counted as errors. It lowers the grade (`grade.unobservable`).
    """
    loaded = {end.device for end in facts.ends}
    read = {one.source.device for one in facts.readings}
    excused = set(facts.evidence.unmanaged) & loaded
    for source, why in facts.differences.unobservable:
        if source.device in loaded - excused:
            yield f"{source} was not read ({why}): losses that it alone would count stay unseen"
    named = {source.device for source, _ in facts.differences.unobservable}
    yield from (f"{device} was not read" for device in sorted(loaded - read - named - excused))
    for device in sorted(excused - read):
        for other in sorted(_beside(facts, device) - read):
            yield f"{device} is not managed, and {other} at the other end of its cable was not read"


def _beside(facts: Facts, device: str) -> set[str]:
    """Returns what stands at the other ends of a device's cables."""
    hops = [hop for path in facts.evidence.links for hop in path.hops]
    return {
        far.device for hop in hops for near, far in ((hop.near, hop.far), (hop.far, hop.near)) if near.device == device
    }


def _volume(facts: Facts) -> tuple[Known[int], str]:
    """The packets of the lossless classes that hosts and targets sent, and what was counted for it.

    Where none of the targets may be read, what hosts received stands for what those sent.
    """
    unmanaged = set(facts.evidence.unmanaged)
    ways = (True, False) if {path.target for path in facts.evidence.links} <= unmanaged else (True,)
    total, kinds = 0, set[str]()
    for traffic_class in facts.lossless:
        for end, is_sent in product(facts.ends, ways):
            count, kind = end_count(facts, end, traffic_class, sent=is_sent)
            if count is not UNKNOWN and end.device not in unmanaged:
                total += count
                kinds.add(kind.value)
    return (total, " and ".join(sorted(kinds))) if kinds else (UNKNOWN, "")


def _lost(scene: Scene) -> Known[int]:
    """Packets missing, drops of switches included; UNKNOWN where the books of a class do not close."""
    if not scene.whole or not all(one.is_exact and one.lost is not UNKNOWN for one in scene.whole):
        return UNKNOWN
    return scene.missing


def _bound(events: Known[int], trials: Known[int], confidence: float) -> Known[float]:
    if events is UNKNOWN or trials is UNKNOWN or trials < 1 or events > trials:
        return UNKNOWN
    return upper_bound(events, trials, confidence=confidence)


def _class_result(scene: Scene, traffic_class: TrafficClass, status: VerdictStatus) -> ClassResult:
    facts = scene.facts
    counts = [end_count(facts, end, traffic_class, sent=True)[0] for end in facts.ends]
    known_counts = [one for one in counts if one is not UNKNOWN]
    packets = sum(known_counts) if known_counts else UNKNOWN
    book = next((one for one in scene.whole if one.traffic_class == traffic_class.name and one.is_exact), None)
    lost = UNKNOWN if book is None or book.lost is UNKNOWN else book.lost + book.dropped
    seen = 0 if status is VerdictStatus.PASS and lost is UNKNOWN else lost
    return ClassResult(traffic_class.name, packets, lost, _bound(seen, packets, facts.evidence.confidence))


def _link_result(book: Book) -> LinkResult:
    match book.part:
        case Part.WHOLE:
            link, direction = "whole fabric", "all"
        case Part.INTO:
            link, direction = f"cables of {book.device}", f"into {book.device}"
        case Part.OUT_OF:
            link, direction = f"{book.device}/{book.port} - {book.peer}", f"{book.device} -> {book.peer}"
    drops = f"{book.dropped} dropped by switches" if book.dropped else ""
    why = "; ".join(one for one in (book.why, drops) if one)
    return LinkResult(link, direction, book.sent, book.received, book.lost, why)


def _cable_results(scene: Scene) -> Iterator[LinkResult]:
    """Cables that miss frames of whatever class, beyond what may be under way: for people, no proof."""
    why = "frames of every class; ends may differ in which they count"
    for one in scene.frames:
        if one.missing > one.tolerance:
            yield LinkResult(one.hop.name, hop_text(one.hop), one.sent, one.received, one.missing, why)


def _devices(facts: Facts) -> tuple[str, ...]:
    return (*dict.fromkeys(end.device for end in facts.ends), *facts.switches)


def _sent_again(scene: Scene) -> Iterator[str]:
    """What was sent again although every packet had come, for people."""
    for one in scene.facts.readings:
        if one.event in scene.excused and is_above(one.value) and scene.facts.must_stand(one):
            where = f"{one.source} {one.name} +{one.value}"
            yield f"sent again, and no packet is missing: {where}: a timer ran out early, or an end was slow"


def _device_result(scene: Scene, device: str) -> DeviceVerdict:
    facts = scene.facts
    readings = [one for one in facts.readings if one.source.device == device and facts.must_stand(one)]
    moved = tuple(
        Moved(one.source.place, one.name, one.value, one.event.value)
        for one in readings
        if one.value is not UNKNOWN and one.value > 0 and one.event not in scene.excused
    )
    voids = [void.why for void in facts.differences.voids if void.source.device == device]
    blind = tuple(f"{source}: {why}" for source, why in facts.differences.unobservable if source.device == device)
    if voids:
        status = VerdictStatus.INVALID
    elif moved:
        status = VerdictStatus.FAIL
    else:
        status = VerdictStatus.PASS if readings else VerdictStatus.INVALID
    silent = "" if readings or voids else "no counter of loss was read"
    return DeviceVerdict(device, status, moved, blind, voids[0] if voids else silent)
