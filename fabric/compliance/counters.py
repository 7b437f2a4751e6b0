"""Rules about what a switch has counted: drops, pauses, marks and storms of the lossless class. Pure.

Counters are cumulative since nobody knows when, so what they show may be of another configuration: such a FAIL is a
warning, and an error only where the running configuration explains it. What is not counted is UNKNOWN, never zero.

| rule | asks for |
|---|---|
| `lossless-drops-seen` | no packet of the data class was dropped, at the queue, by WRED, or at its priority group |
| `pauses-on-other-priority` | no pause frame came or went on a priority other than the data's |
| `no-marks-before-pauses` | where pauses were sent, marks were set: ECN acts before PFC |
| `watchdog-storm-seen` | the PFC watchdog found no storm |
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from fabric.compliance.closure import carries_lossless, data_group, data_queue, group_is_hidden
from fabric.compliance.grouping import Judgement, failed, group, passed, undecided
from fabric.compliance.rule import Subject
from fabric.qos import UNKNOWN, AqmKind, Known, PortQos
from fabric.state import Finding, PortCounters, QueueCounters, Severity, Status, Where
from fabric.units import natural_key

__all__ = ("DROPS", "MARKS", "PAUSES", "STORMS", "counter_findings", "data_queues", "other_queues")

DROPS: Final = "lossless-drops-seen"
PAUSES: Final = "pauses-on-other-priority"
MARKS: Final = "no-marks-before-pauses"
STORMS: Final = "watchdog-storm-seen"
_SINCE: Final = "since the counters began"
_LABELS: Final = ("", "UC", "ALL", "VOQ")  # unicast queues as SONiC and EOS name them
_RUNS: Final = frozenset({"operational", "N/A", "na", ""})  # pfcwd_stats_storm.txt, pfcwd_stats_status_na.txt

Judged: TypeAlias = tuple[Judgement, Severity]
PortJudge: TypeAlias = Callable[[Subject, PortQos, PortCounters], Iterator[Judged]]


def counter_findings(subject: Subject, counters: Sequence[PortCounters]) -> tuple[Finding, ...]:
    """Returns the answers of every rule about counters on the ports that carry RoCE; none where nothing is lossless.

    Args:
        subject: the switch, with its running configuration where it was read.
        counters: of one reading; a port that carries RoCE and is not among them is UNKNOWN.
    """
    if not subject.expected.lossless:
        return ()
    found: list[Finding] = []
    for rule, judge in ((DROPS, _drops), (PAUSES, _pauses), (STORMS, _storms)):
        found += _by_port(rule, judge, subject, counters)
    if subject.expected.ecn:
        found.append(_marks(subject, counters))
    return tuple(found)


def data_queues(subject: Subject, port: PortQos, counters: PortCounters) -> tuple[QueueCounters, ...]:
    """Returns the counters of the data class's queue; of its VOQ too where the platform has both."""
    queue = data_queue(subject, port)
    if queue is UNKNOWN:
        return ()
    names = {f"{label}{queue}" for label in _LABELS}
    return tuple(one for one in counters.queues if one.queue in names)


def other_queues(subject: Subject, port: PortQos, counters: PortCounters) -> tuple[QueueCounters, ...]:
    """Returns the counters of all other queues."""
    own = data_queues(subject, port, counters)
    return tuple(one for one in counters.queues if one not in own)


def _by_port(rule: str, judge: PortJudge, subject: Subject, counters: Sequence[PortCounters]) -> Iterator[Finding]:
    by_name = {one.port: one for one in counters}
    judged: list[tuple[str, Judgement, Severity]] = []
    for port in subject.judged_ports:
        own = by_name.get(port.name)
        if own is None:
            text = "the device listed no counters of this port"
            judged.append((port.name, undecided(text, "read them on the device"), Severity.WARNING))
            continue
        judged += [(port.name, one, severity) for one, severity in judge(subject, port, own)]
    for severity in Severity:
        pairs = [(port, one) for port, one, own_severity in judged if own_severity is severity]
        yield from group(pairs, rule=rule, severity=severity, device=subject.qos.device)


# --- drops ----------------------------------------------------------------------------------------------------------


def _drops(subject: Subject, port: PortQos, counters: PortCounters) -> Iterator[Judged]:
    priority = subject.expected.data_priority
    cells = dict(_drop_cells(subject, port, counters))
    seen = [f"{value} {name}" for name, value in cells.items() if value is not UNKNOWN and value > 0]
    unread = [name for name, value in cells.items() if value is UNKNOWN]
    if seen:
        explained = _why_drops(subject, port)
        evidence = f"{', '.join(seen)} {_SINCE}" + (f"; {explained}" if explained else "")
        remedy = (
            "put the class right as the other findings say"
            if explained
            else "read again after a while: what grows is of now, the rest is history"
        )
        judgement = failed(evidence, "no packet of the lossless class dropped", remedy, priority=priority)
        yield judgement, Severity.ERROR if explained else Severity.WARNING
    elif unread:
        yield (
            undecided(f"not counted: {', '.join(unread)}", "switch these counters on", priority=priority),
            Severity.WARNING,
        )
    else:
        yield passed(f"no drop of the data class {_SINCE}"), Severity.WARNING


def _drop_cells(subject: Subject, port: PortQos, counters: PortCounters) -> Iterator[tuple[str, Known[int]]]:
    queues = data_queues(subject, port, counters)
    yield "dropped at the queue", _sum([one.dropped_packets for one in queues])
    if any(one.wred_dropped_packets is not UNKNOWN for one in counters.queues) or not group_is_hidden(subject):
        yield "dropped by WRED", _sum([one.wred_dropped_packets for one in queues])
    if not group_is_hidden(subject):
        index, dropped = data_group(subject, port), counters.pg_dropped_packets
        known = index is not UNKNOWN and dropped is not UNKNOWN and index < len(dropped)
        yield "dropped at the priority group", dropped[index] if known else UNKNOWN  # type: ignore[index]  # known


def _why_drops(subject: Subject, port: PortQos) -> str:
    """What of the running configuration makes the class lossy, "" when nothing does."""
    if not carries_lossless(subject, port):
        return f"PFC does not pause priority {subject.expected.data_priority} here"
    index = data_queue(subject, port)
    queue = None if index is UNKNOWN else port.queue(index)
    if queue is not None and queue.aqm is not UNKNOWN and queue.aqm is not None and queue.aqm.kind is AqmKind.DROP:
        return "the curve of the queue drops"
    return ""


def _sum(values: Sequence[Known[int]]) -> Known[int]:
    """The sum; UNKNOWN when nothing was counted, or when what was is zero and the rest is not known."""
    known = [value for value in values if value is not UNKNOWN]
    total = sum(known)
    return UNKNOWN if not known or (total == 0 and len(known) < len(values)) else total


# --- pauses ---------------------------------------------------------------------------------------------------------


def _pauses(subject: Subject, port: PortQos, counters: PortCounters) -> Iterator[Judged]:
    wanted = subject.expected.data_priority
    frames = (
        ("received", counters.pfc_rx_frames, counters.pfc_rx_total),
        ("sent", counters.pfc_tx_frames, counters.pfc_tx_total),
    )
    if any(by is UNKNOWN and total != 0 for _, by, total in frames):
        text = "pause frames are not counted by priority"
        yield undecided(text, "read them at the other end of the cable"), Severity.WARNING
        return
    others: dict[int, list[str]] = {}
    unread = False
    for way, by, _ in frames:
        for priority, count in enumerate(() if by is UNKNOWN else by):
            if priority != wanted and count is UNKNOWN:
                unread = True
            elif priority != wanted and count is not UNKNOWN and count > 0:
                others.setdefault(priority, []).append(f"{way} {count}")
    for priority, said in others.items():
        yield _other_pause(subject, port, priority, f"{', '.join(said)} pause frames on priority {priority} {_SINCE}")
    if not others and unread:
        yield undecided("some priorities are not counted", "read them at the other end"), Severity.WARNING
    elif not others:
        yield passed(f"no pause frame on another priority than {wanted} {_SINCE}"), Severity.WARNING


def _other_pause(subject: Subject, port: PortQos, priority: int, evidence: str) -> Judged:
    wanted = subject.expected.data_priority
    active = port.pfc.active
    explained = active is not UNKNOWN and priority in active
    remedy = (
        f"take PFC off priority {priority} here"
        if explained
        else f"look at the neighbour's PFC: this port does not pause priority {priority}"
    )
    expected = f"pause frames on priority {wanted} alone"
    judgement = failed(evidence, expected, remedy, priority=priority)
    return judgement, Severity.ERROR if explained else Severity.WARNING


# --- marks ----------------------------------------------------------------------------------------------------------


def _marks(subject: Subject, counters: Sequence[PortCounters]) -> Finding:
    """One for the device: pauses go out where packets come in, marks are set where they leave."""
    by_name = {one.port: one for one in counters}
    ports = [port for port in subject.judged_ports if port.name in by_name]
    sent = _sum([_sent(subject, port, by_name[port.name]) for port in ports])
    marked = _sum([one.marked_packets for port in ports for one in data_queues(subject, port, by_name[port.name])])
    priority = subject.expected.data_priority
    where = Where(subject.qos.device, priority=priority)

    def answer(status: Status, text: str, remedy: str = "", severity: Severity = Severity.WARNING) -> Finding:
        expected = "marks before pauses: ECN acts before PFC" if status is Status.FAIL else ""
        return Finding(MARKS, status, severity, where, text, expected, remedy)

    if sent is UNKNOWN:
        return answer(Status.UNKNOWN, f"pauses sent on priority {priority} are not counted on every port")
    if sent == 0:
        return answer(Status.PASS, f"no pause was sent on priority {priority} {_SINCE}")
    if marked is UNKNOWN:
        text = f"{sent} pause frames sent, and marks are not counted on every queue"
        return answer(Status.UNKNOWN, text, "switch the counters of ECN on")
    if marked:
        return answer(Status.PASS, f"{sent} pause frames sent, {marked} packets marked {_SINCE}")
    off = [port.name for port in ports if _marks_nothing(subject, port)]
    text = f"{sent} pause frames sent, no packet marked {_SINCE}"
    if off:
        named = ", ".join(sorted(off, key=natural_key))
        return answer(Status.FAIL, f"{text}; no curve marks on {named}", "switch marking on", Severity.ERROR)
    remedy = "lower kmin below the XOFF threshold, and see that hosts send ECN-capable packets"
    return answer(Status.FAIL, text, remedy)


def _sent(subject: Subject, port: PortQos, counters: PortCounters) -> Known[int]:
    """Pauses sent for the data class; a total serves where the port pauses nothing else, or nothing was sent."""
    by, priority = counters.pfc_tx_frames, subject.expected.data_priority
    if by is not UNKNOWN and priority < len(by):
        return by[priority]
    alone = port.pfc.active is not UNKNOWN and port.pfc.active <= {priority}
    return counters.pfc_tx_total if alone or counters.pfc_tx_total == 0 else UNKNOWN


def _marks_nothing(subject: Subject, port: PortQos) -> bool:
    index = data_queue(subject, port)
    if index is UNKNOWN:
        return False
    queue = port.queue(index)
    if queue is None or queue.aqm is None:
        return True
    return queue.aqm is not UNKNOWN and queue.aqm.kind is AqmKind.DROP


# --- storms ---------------------------------------------------------------------------------------------------------


def _storms(subject: Subject, _: PortQos, counters: PortCounters) -> Iterator[Judged]:
    if not counters.watchdog:
        if subject.expected.watchdog:
            yield undecided("the watchdog's counters are not shown", "read them on the device"), Severity.WARNING
        return
    for one in counters.watchdog:
        now = one.status not in _RUNS
        detected = one.storms_detected
        if now:
            text = f"queue {one.queue} is {one.status}: the watchdog acts on a storm of pauses now"
            remedy = "find who sends the pauses: a host that does not drain, or a wrong threshold"
            yield failed(text, "operational", remedy, priority=one.queue), Severity.ERROR
        elif detected is UNKNOWN:
            yield undecided(f"storms of queue {one.queue} are not counted", "", priority=one.queue), Severity.WARNING
        elif detected > 0:
            text = f"{detected} storms on queue {one.queue} {_SINCE}"
            remedy = "read again after a while: what grows is of now, the rest is history"
            yield failed(text, "no storm", remedy, priority=one.queue), Severity.WARNING
        else:
            yield passed(f"no storm {_SINCE}"), Severity.WARNING
