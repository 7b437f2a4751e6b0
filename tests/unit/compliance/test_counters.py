"""Rules about what a switch has counted: history warns, what the configuration explains is an error, nothing is zero."""

from dataclasses import replace

import pytest

from fabric.compliance import Subject
from fabric.compliance.counters import counter_findings, data_queues, other_queues
from fabric.qos import UNKNOWN, AqmKind, HeadroomOwner, PfcMode, PortPfc
from fabric.state import Finding, PortCounters, QueueCounters, Severity, Status, WatchdogCounters
from tests.unit.compliance.devices import CURVE, EXPECTED, PORTS, SPOILED, capabilities, device, port, spoil, subject

ZEROS = (0,) * 8


def counted(name: str = SPOILED, **more: object) -> PortCounters:
    """Returns a port that lost, paused and marked nothing."""
    right = PortCounters(
        name,
        ZEROS,
        ZEROS,
        0,
        0,
        ZEROS,
        tuple(QueueCounters(f"UC{index}", 10, 0, 0, 0, 0, 0) for index in range(8)),
        (WatchdogCounters(3, "operational", 0, 0),),
    )
    return replace(right, **more)  # type: ignore[arg-type]  # fields of PortCounters


def at(index: int, value: int) -> tuple[int, ...]:
    return tuple(value if one == index else 0 for one in range(8))


def queues(**more: object) -> tuple[QueueCounters, ...]:
    """Returns the queues with that of the data class changed."""
    return tuple(
        replace(one, **more) if one.queue == "UC3" else one  # type: ignore[arg-type]  # fields of QueueCounters
        for one in counted().queues
    )


def judged(rule: str, changed: PortCounters | None, on: Subject | None = None) -> list[Finding]:
    rest = [counted(name) for name in PORTS if name != SPOILED]
    found = counter_findings(on or subject(), [*rest, *([] if changed is None else [changed])])
    return [one for one in found if one.rule == rule and one.status is not Status.PASS]


def the(rule: str, changed: PortCounters | None, on: Subject | None = None) -> Finding:
    (found,) = judged(rule, changed, on)
    return found


RULES = ("lossless-drops-seen", "pauses-on-other-priority", "watchdog-storm-seen", "no-marks-before-pauses")


def test_quiet_switch_passes_each_rule_once() -> None:
    found = counter_findings(subject(), [counted(name) for name in PORTS])
    assert [(one.rule, one.status) for one in found] == [(rule, Status.PASS) for rule in RULES]


def test_nothing_is_asked_where_nothing_is_lossless_or_marked() -> None:
    every = [counted(name) for name in PORTS]
    assert counter_findings(subject(expected=replace(EXPECTED, lossless=False)), every) == ()
    rules = {one.rule for one in counter_findings(subject(expected=replace(EXPECTED, ecn=False)), every)}
    assert "no-marks-before-pauses" not in rules


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (counted(queues=queues(dropped_packets=7)), "7 dropped at the queue"),
        (counted(queues=queues(wred_dropped_packets=8)), "8 dropped by WRED"),
        (counted(pg_dropped_packets=at(3, 9)), "9 dropped at the priority group"),
        (counted(pg_dropped_packets=at(3, 9), queues=queues(dropped_packets=UNKNOWN)), "9 dropped"),
    ],
)
def test_drops_of_the_data_class_are_history(changed: PortCounters, text: str) -> None:
    found = the("lossless-drops-seen", changed)
    assert (found.status, found.severity, found.where.ports) == (Status.FAIL, Severity.WARNING, (SPOILED,))
    assert text in found.evidence
    assert "since the counters began" in found.evidence


def test_drops_of_other_classes_are_no_matter() -> None:
    other = tuple(replace(one, dropped_packets=5) if one.queue == "UC0" else one for one in counted().queues)
    assert judged("lossless-drops-seen", counted(queues=other, pg_dropped_packets=at(0, 5))) == []


def test_drops_are_an_error_where_the_configuration_explains_them() -> None:
    lossy = counted(queues=queues(dropped_packets=7))
    off = spoil(device(), replace(port(SPOILED), pfc=PortPfc(PfcMode.OFF, frozenset())))
    found = the("lossless-drops-seen", lossy, subject(off))
    assert (found.severity, "PFC does not pause priority 3 here" in found.evidence) == (Severity.ERROR, True)
    one = port(SPOILED)
    dropping = tuple(replace(q, aqm=replace(CURVE, kind=AqmKind.DROP)) if q.index == 3 else q for q in one.queues)
    found = the("lossless-drops-seen", lossy, subject(spoil(device(), replace(one, queues=dropping))))
    assert (found.severity, "the curve of the queue drops" in found.evidence) == (Severity.ERROR, True)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (counted(queues=queues(dropped_packets=UNKNOWN)), "not counted: dropped at the queue"),
        (counted(queues=queues(wred_dropped_packets=UNKNOWN)), "not counted: dropped by WRED"),
        (counted(pg_dropped_packets=UNKNOWN), "not counted: dropped at the priority group"),
        (counted(pg_dropped_packets=(0, 0)), "not counted: dropped at the priority group"),
        (counted(queues=()), "not counted: dropped at the queue, dropped by WRED"),
        (None, "listed no counters of this port"),
    ],
)
def test_what_is_not_counted_is_unknown_and_never_zero(changed: PortCounters | None, text: str) -> None:
    found = the("lossless-drops-seen", changed)
    assert (found.status, found.severity) == (Status.UNKNOWN, Severity.WARNING)
    assert text in found.evidence


def test_platform_that_hides_groups_is_asked_for_its_queues_and_voqs() -> None:
    on = replace(subject(), capabilities=capabilities(owner=HeadroomOwner.PLATFORM))
    eos = counted(
        pg_dropped_packets=UNKNOWN,
        queues=(QueueCounters("3", dropped_packets=0), QueueCounters("VOQ3", dropped_packets=4)),
    )
    found = counter_findings(on, [eos])
    assert "4 dropped at the queue" in next(one for one in found if one.where.ports == (SPOILED,)).evidence


def test_pauses_on_another_priority() -> None:
    found = the("pauses-on-other-priority", counted(pfc_rx_frames=at(4, 120)))
    assert (found.status, found.severity, found.where.priority) == (Status.FAIL, Severity.WARNING, 4)
    assert "received 120 pause frames on priority 4" in found.evidence
    assert "neighbour" in found.remedy
    four = PortPfc(PfcMode.ON, frozenset({3, 4}), rx=True, tx=True, asymmetric=False)
    on = subject(spoil(device(), replace(port(SPOILED), pfc=four)))
    assert the("pauses-on-other-priority", counted(pfc_tx_frames=at(4, 5)), on).severity is Severity.ERROR
    both = judged("pauses-on-other-priority", counted(pfc_rx_frames=at(4, 1), pfc_tx_frames=at(5, 1)))
    assert [one.where.priority for one in both] == [4, 5]


def test_pauses_on_the_data_priority_are_as_they_should_be() -> None:
    assert judged("pauses-on-other-priority", counted(pfc_rx_frames=at(3, 9), pfc_tx_frames=at(3, 9))) == []


@pytest.mark.parametrize(
    "changed",
    [
        counted(pfc_rx_frames=UNKNOWN, pfc_rx_total=9),
        counted(pfc_tx_frames=UNKNOWN, pfc_tx_total=UNKNOWN),
        counted(pfc_rx_frames=(UNKNOWN, *ZEROS[1:])),
    ],
)
def test_pauses_that_are_not_told_apart_are_unknown(changed: PortCounters) -> None:
    assert the("pauses-on-other-priority", changed).status is Status.UNKNOWN


def test_a_total_of_no_pauses_is_none_on_any_priority() -> None:
    assert judged("pauses-on-other-priority", counted(pfc_rx_frames=UNKNOWN, pfc_tx_frames=UNKNOWN)) == []


def test_pauses_without_marks() -> None:
    found = the("no-marks-before-pauses", counted(pfc_tx_frames=at(3, 40)))
    assert (found.status, found.severity, found.where.device) == (Status.FAIL, Severity.WARNING, "leaf1")
    assert "40 pause frames sent, no packet marked" in found.evidence
    one = port(SPOILED)
    unmarked = spoil(device(), replace(one, queues=tuple(replace(q, aqm=None) for q in one.queues)))
    explained = the("no-marks-before-pauses", counted(pfc_tx_frames=at(3, 40)), subject(unmarked))
    assert (explained.severity, f"no curve marks on {SPOILED}" in explained.evidence) == (Severity.ERROR, True)


def test_marks_and_pauses_are_as_they_should_be() -> None:
    assert judged("no-marks-before-pauses", counted(pfc_tx_frames=at(3, 40), queues=queues(marked_packets=1))) == []


@pytest.mark.parametrize(
    "changed",
    [
        counted(pfc_tx_frames=at(3, 40), queues=queues(marked_packets=UNKNOWN)),
        counted(pfc_tx_frames=UNKNOWN, pfc_tx_total=UNKNOWN),
        counted(pfc_tx_frames=(UNKNOWN,) * 8),
    ],
)
def test_marks_or_pauses_that_are_not_counted_are_unknown(changed: PortCounters) -> None:
    assert the("no-marks-before-pauses", changed).status is Status.UNKNOWN


def test_total_of_pauses_serves_where_one_priority_pauses() -> None:
    total = counted(pfc_tx_frames=UNKNOWN, pfc_tx_total=40)
    assert the("no-marks-before-pauses", total).status is Status.FAIL
    two = PortPfc(PfcMode.ON, frozenset({3, 4}), rx=True, tx=True, asymmetric=False)
    on = subject(spoil(device(), replace(port(SPOILED), pfc=two)))
    assert the("no-marks-before-pauses", total, on).status is Status.UNKNOWN


def test_storms() -> None:
    past = the("watchdog-storm-seen", counted(watchdog=(WatchdogCounters(3, "operational", 2, 2),)))
    assert (past.status, past.severity) == (Status.FAIL, Severity.WARNING)
    now = the("watchdog-storm-seen", counted(watchdog=(WatchdogCounters(3, "stormed", 3, 2),)))
    assert (now.status, now.severity, now.where.priority) == (Status.FAIL, Severity.ERROR, 3)
    unread = the("watchdog-storm-seen", counted(watchdog=(WatchdogCounters(3, "N/A"),)))
    assert unread.status is Status.UNKNOWN
    assert the("watchdog-storm-seen", counted(watchdog=())).status is Status.UNKNOWN
    unwanted = subject(expected=replace(EXPECTED, watchdog=False))
    assert judged("watchdog-storm-seen", counted(watchdog=()), unwanted) == []


def test_queues_of_a_class_that_no_map_names_are_not_known() -> None:
    one = replace(port(SPOILED), tc_to_queue=UNKNOWN)
    assert data_queues(subject(), one, counted()) == ()
    assert other_queues(subject(), port(SPOILED), counted()) == tuple(
        queue for queue in counted().queues if queue.queue != "UC3"
    )
