"""The verdict in lines for people, without colour: what is claimed with which n, then what was wrong, then the rest."""

from collections.abc import Iterator

from fabric.qos import UNKNOWN, Known
from fabric.verify.model import LossFinding, Verdict, VerdictStatus

__all__ = ("verdict_text",)


def verdict_text(verdict: Verdict) -> str:
    """Returns the verdict as lines; never "lossless" without n."""
    return "\n".join(_lines(verdict)) + "\n"


def _lines(verdict: Verdict) -> Iterator[str]:
    yield f"{verdict.status.value.upper()}  grade {verdict.grade.value}  {_headline(verdict)}"
    yield _packets_line(verdict)
    if verdict.bursts:
        yield (
            f"bursts: {verdict.bursts_failed} of {verdict.bursts} failed; "
            f"rate {_bound(verdict.burst_bound_95, verdict.confidence)}"
        )
    for one in verdict.findings:
        yield from _finding_lines(one)
    yield from _section("proves nothing because", verdict.invalid)
    yield from _section("by class", [_class_line(verdict, index) for index in range(len(verdict.per_class))])
    yield from _section("books of packets", [_book_line(verdict, index) for index in range(len(verdict.per_link))])
    yield from _section(
        "counters that must stand and moved",
        [
            f"{one.device} {moved.place} {moved.counter} +{moved.by} ({moved.meaning})"
            for one in verdict.per_device
            for moved in one.moved
        ],
    )
    yield from _section("storms", verdict.storms)
    yield from _section("victims", verdict.victims)
    yield from _section("not observable, lowers the grade", verdict.unobservable)
    yield f"marks before pauses: {_claim(verdict.marks_before_pauses)}"
    yield from _section("seen", verdict.notes)


def _headline(verdict: Verdict) -> str:
    match verdict.status:
        case VerdictStatus.PASS:
            return f"no loss seen in {_count(verdict.packets)} packets of the lossless classes"
        case VerdictStatus.FAIL:
            among = f"{_count(verdict.packets)} packets of the lossless classes"
            if verdict.lost is UNKNOWN or verdict.lost == 0:
                return f"loss, damage or disorder among {among}"
            return f"{verdict.lost:,} lost of {among}"
        case VerdictStatus.INVALID:
            return "the run proves neither loss nor its absence"


def _packets_line(verdict: Verdict) -> str:
    asked = f" ({verdict.asked_packets:,} asked)" if verdict.asked_packets else ""
    counted = f"; n counts {verdict.counted_by}" if verdict.counted_by else ""
    rate = _bound(verdict.bound_95, verdict.confidence)
    return f"packets: n = {_count(verdict.packets)}{asked}; lost {_count(verdict.lost)}; rate {rate}{counted}"


def _bound(bound: Known[float], confidence: float) -> str:
    return "unknown" if bound is UNKNOWN else f"<= {bound:.3g} at {confidence:.0%}"


def _count(value: Known[int]) -> str:
    return "unknown" if value is UNKNOWN else f"{value:,}"


def _claim(value: Known[bool]) -> str:
    return "unknown" if value is UNKNOWN else ("yes" if value else "no")


def _finding_lines(one: LossFinding) -> Iterator[str]:
    yield f"{one.status.value.upper()}  {one.cause}  {one.place or one.device or 'place unknown'}"
    yield f"  {one.evidence}"
    if one.remedy:
        yield f"  -> {one.remedy}"


def _class_line(verdict: Verdict, index: int) -> str:
    one = verdict.per_class[index]
    rate = _bound(one.bound_95, verdict.confidence)
    return f"{one.name}: n = {_count(one.packets)}, lost {_count(one.lost)}, rate {rate}"


def _book_line(verdict: Verdict, index: int) -> str:
    one = verdict.per_link[index]
    why = f" ({one.why})" if one.why else ""
    return (
        f"{one.link}, {one.direction}: sent {_count(one.sent)}, received {_count(one.received)}, "
        f"missing {_count(one.lost)}{why}"
    )


def _section(title: str, lines: list[str] | tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)
