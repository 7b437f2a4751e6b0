"""What one trial came to, from its jobs and the counters before and after it. Reaches nobody.

Loss is what the verdict of `verify` says: a trial that proves nothing has UNKNOWN loss, which is infeasible. Where
nothing counts the time of pauses, their frames bound it: each holds a sender for 65,535 quanta at most.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from fabric.engine.load import JobResult, StreamResult
from fabric.qos import UNKNOWN, Known
from fabric.tune import Goal, Outcome
from fabric.verify import Evidence, Verdict, VerdictStatus, judge
from fabric.verify.events import Event
from fabric.verify.facts import Facts, Reading, add, gather
from fabric.workflow.verifying.loading import RoundResult

__all__ = ("cpu_ns_of", "jain", "lost_of", "marks_share_of", "outcome_of", "pause_share_of")

# IEEE 802.3-2022 annex 31B.2: a pause time is 16 bits of quanta, a quantum is 512 bit times
_LONGEST_PAUSE_BITS: Final = 65_535 * 512
_PAUSES: Final = (Event.PAUSE_SENT, Event.PAUSE_RECEIVED)


def outcome_of(
    evidence: Evidence,
    rounds: Sequence[RoundResult],
    *,
    goal: Goal,
    speeds_mbps: Mapping[tuple[str, str], int],
    is_marked: bool = True,
) -> tuple[Outcome, Verdict]:
    """Returns the outcome of one trial, with the verdict that its loss is from.

    Args:
        evidence: of this trial alone.
        rounds: its load.
        goal: of the study; the last byte counts where it is the goal.
        speeds_mbps: (device, port) → speed of switch ports.
        is_marked: whether switches mark at all, as planned.
    """
    verdict, facts = judge(evidence), gather(evidence)
    results = [result for one in rounds for _, result in one.results]
    streams = [stream for result in results for stream in result.streams]
    seconds = sum(max((result.seconds for _, result in one.results), default=0.0) for one in rounds)
    packets = 0 if verdict.packets is UNKNOWN else verdict.packets
    outcome = Outcome(
        bytes_per_s=sum(one.bytes_read + one.bytes_written for one in streams) / seconds if seconds else 0.0,
        p50_ns=_p50_ns(streams),
        p99_ns=max((one.p99_ns or 0 for one in streams), default=0),
        last_byte_ns=_last_byte_ns(streams) if goal is Goal.LAST_BYTE else 0,
        fairness=min((_fairness(one) for one in rounds), default=1.0),
        lost=lost_of(verdict),
        pause_share=pause_share_of(verdict, facts, speeds_mbps),
        marks_share=marks_share_of(facts, packets) if is_marked else 0.0,
        errors=sum(_errors(one) for one in streams) + sum(not one.is_complete for one in results),
        packets=packets,
    )
    return outcome, verdict


def lost_of(verdict: Verdict) -> Known[int]:
    """Returns the packets lost: 0 only where that is proven; at least 1 where loss is proven and not counted."""
    match verdict.status:
        case VerdictStatus.PASS:
            return 0
        case VerdictStatus.FAIL:
            return max(1, 0 if verdict.lost is UNKNOWN else verdict.lost)
        case VerdictStatus.INVALID:
            return UNKNOWN


def pause_share_of(verdict: Verdict, facts: Facts, speeds_mbps: Mapping[tuple[str, str], int]) -> Known[float]:
    """Returns the largest share of the trial for which one place was paused, at most; UNKNOWN where nobody counts.

    Where time is counted that is it. Else each frame stands for the longest pause that it may ask for.
    """
    timed = [one.share for one in verdict.pause_share]
    if timed and all(one is not UNKNOWN for one in timed):
        return max(float(one) for one in timed if one is not UNKNOWN)
    spans = {window.source: window.span_ns for window in facts.differences.windows}
    found: list[Known[float]] = [one for one in timed if one is not UNKNOWN]
    for one in _pause_frames(facts):
        speed_mbps = speeds_mbps.get((one.source.device, one.source.place), 0)
        found.append(_longest_share(one.value, speed_mbps, spans.get(one.source, 0)))
    shares = [one for one in found if one is not UNKNOWN]
    return max(shares) if shares and len(shares) == len(found) else UNKNOWN


def _pause_frames(facts: Facts) -> Iterator[Reading]:
    """Frames of the lossless classes at switches; of all classes where a port shows only that."""
    for switch in facts.switches:
        own = [one for one in facts.pick(switch, *_PAUSES) if facts.matters(one)]
        by_class = {(one.source, one.event) for one in own if one.meaning.index is not None}
        yield from (one for one in own if one.meaning.index is not None or (one.source, one.event) not in by_class)


def _longest_share(frames: Known[int], speed_mbps: int, span_ns: int) -> Known[float]:
    if frames == 0:
        return 0.0
    if frames is UNKNOWN or not speed_mbps or not span_ns:
        return UNKNOWN
    return min(1.0, frames * _LONGEST_PAUSE_BITS * 1000 / speed_mbps / span_ns)


def marks_share_of(facts: Facts, packets: int) -> Known[float]:
    """Returns the share of packets that switches marked, else that hosts saw marked; UNKNOWN where nobody counts."""
    marked = add(facts.count(one, Event.MARKED) for one in facts.switches)
    if marked is UNKNOWN:
        marked = add(facts.count(one, Event.CE_RECEIVED) for one in sorted({end.device for end in facts.ends}))
    if marked is UNKNOWN or not packets:
        return UNKNOWN
    return min(1.0, marked / packets)


def jain(values: Sequence[float]) -> float:
    """Returns Jain's index, 1 where all are equal; 1 for none. Source: Jain, Chiu, Hawe, DEC-TR-301, 1984."""
    squares = sum(one * one for one in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def _fairness(one: RoundResult) -> float:
    """Over the hosts of a round, or over the streams of the only one."""
    if len(one.results) > 1:
        return jain([sum(row.bytes_read for row in result.streams) for _, result in one.results])
    return min((jain([row.bytes_read for row in result.streams]) for _, result in one.results), default=1.0)


def _p50_ns(streams: Iterable[StreamResult]) -> int:
    found = [one.p50_ns for one in streams if one.p50_ns is not None]
    return round(fmean(found)) if found else 0


def _last_byte_ns(streams: Iterable[StreamResult]) -> int:
    """All requests of a burst are sent at its begin, so that the slowest one is the last byte."""
    return max((one.p999_ns or 0 for one in streams), default=0)


def _errors(one: StreamResult) -> int:
    return sum(count for _, count in one.errors) + one.flaw_count


def cpu_ns_of(results: Iterable[JobResult]) -> int:
    """Returns CPU time of one request, 0 without one: an upper bound, since an agent polls while it waits."""
    rows = [(one.cpu_s, sum(stream.reads for stream in one.streams)) for one in results]
    return min((round(cpu_s * 1e9 / reads) for cpu_s, reads in rows if reads), default=0)
