from dataclasses import replace

import pytest

from fabric.qos import UNKNOWN, Known
from fabric.state import Source, SourceKind
from fabric.verify import End, Evidence, Hop, LinkPath, SwitchQueue, TrafficClass, VerdictStatus, judge
from fabric.verify.conserve import Book, Part, books
from fabric.verify.facts import gather
from fabric.verify.scene import look
from tests.unit.verify.evidence import (
    HOST,
    HOST_NIC,
    SECOND,
    TARGET,
    TARGET_NIC,
    TO_HOST,
    TO_TARGET,
    Moves,
    evidence,
    plus,
    without,
)

RXE_HOST = Source("h1", "mlx5_0/1", SourceKind.HOST, "rxe")
RXE_TARGET = Source("t1", "mlx5_0/1", SourceKind.TARGET, "rxe")


def of(found: Evidence, part: Part, port: str = "") -> Book:
    return next(one for one in books(gather(found)) if one.part is part and one.port == port)


def test_sound_books_close_exactly_on_every_part() -> None:
    found = books(gather(evidence()))
    assert [(one.part, one.lost, one.is_exact) for one in found] == [
        (Part.WHOLE, 0, True),
        (Part.INTO, 0, True),
        (Part.OUT_OF, 0, True),
        (Part.OUT_OF, 0, True),
    ]


def test_what_a_switch_counts_as_dropped_is_not_missing_on_a_cable() -> None:
    book = of(evidence({TO_TARGET: {"pg_dropped.3": 4}, TARGET_NIC: {"tx_prio3_packets": 1004}}), Part.INTO)
    assert (book.sent, book.received, book.dropped, book.lost) == (1304, 1300, 4, 0)


def test_more_received_than_sent_is_unknown_and_not_a_gain() -> None:
    book = of(evidence({HOST_NIC: {"rx_prio3_packets": 1003}}), Part.WHOLE)
    assert book.lost is UNKNOWN
    assert "3 packets more came than were sent" in book.why


def rxe(moves: Moves) -> Evidence:
    """Hosts with Soft-RoCE: all RDMA packets are counted, of whatever class."""
    found = without(evidence(), HOST, HOST_NIC, TARGET, TARGET_NIC)
    for source, defaults in ((RXE_HOST, {"sent_pkts": 300, "rcvd_pkts": 1000}), (RXE_TARGET, {"sent_pkts": 1000})):
        quiet = {"out_of_seq_request": 0, "rcvd_seq_err": 0, "completer_retry_err": 0, "duplicate_request": 0}
        shown = {**quiet, "rcvd_pkts": 300, **defaults, **moves.get(source, {})}
        found = plus(found, source, **{name: value for name, value in shown.items() if value is not UNKNOWN})
    return found


def test_soft_roce_counts_all_rdma_packets_and_says_so() -> None:
    verdict = judge(rxe({}))
    assert (verdict.status, verdict.packets, verdict.lost) == (VerdictStatus.PASS, 1300, 0)
    assert verdict.counted_by.startswith("RDMA packets of every class")


def test_books_between_a_queue_and_all_rdma_packets_find_the_place_and_prove_nothing() -> None:
    book = of(rxe({RXE_HOST: {"rcvd_pkts": 999}}), Part.OUT_OF, "Ethernet0")
    assert (book.lost, book.is_exact) == (1, False)


def test_a_lost_read_response_shows_on_soft_roce_as_a_retry_and_a_duplicate_request() -> None:
    lost = {RXE_TARGET: {"completer_retry_err": 1, "rcvd_pkts": 299}, RXE_HOST: {"duplicate_request": 1}}
    assert look(gather(rxe(lost))).late == (("h1", "t1"),)
    verdict = judge(rxe(lost))
    assert (verdict.status, verdict.lost) == (VerdictStatus.FAIL, 1)
    assert verdict.findings[0].place == "s1/Ethernet4 -> t1/data0"


def test_with_two_lossless_classes_a_count_of_all_rdma_packets_tells_of_neither() -> None:
    two = (TrafficClass("storage", 3, lossless=True), TrafficClass("other", 4, lossless=True))
    verdict = judge(replace(rxe({}), classes=two))
    assert verdict.packets is UNKNOWN
    assert verdict.status is VerdictStatus.INVALID


def test_ends_that_count_different_things_have_no_common_books() -> None:
    found = without(evidence(), TARGET, TARGET_NIC)
    found = plus(found, RXE_TARGET, sent_pkts=1000, rcvd_pkts=300, out_of_seq_request=0)
    book = of(found, Part.WHOLE)
    assert (book.lost, book.why) == (UNKNOWN, "some ends count the class and others all RDMA packets")


def test_cnps_are_no_packets_of_the_class() -> None:
    found = without(evidence(), HOST_NIC, TARGET_NIC)
    for source, sent, received in ((HOST_NIC, 310, 1000), (TARGET_NIC, 1000, 309)):
        counts = {"tx_vport_rdma_unicast_packets": sent, "rx_vport_rdma_unicast_packets": received}
        found = plus(found, source, **counts)
    found = plus(found, replace(HOST, place="data0"), np_cnp_sent=10)
    found = plus(found, replace(TARGET, place="data0"), rp_cnp_handled=9)
    book = of(found, Part.WHOLE)
    assert (book.sent, book.received, book.lost) == (1300, 1300, 0)


def test_a_switch_may_put_the_class_into_another_queue_than_its_priority() -> None:
    classes = (TrafficClass("storage", 3, lossless=True, switches=(SwitchQueue("s1", 5, 1),)),)
    assert classes[0].at("s1") == SwitchQueue("s1", 5, 1)
    assert classes[0].at("s2") == SwitchQueue("s2", 3, 3)
    moved = {"queue.5.packets": 1000, "queue.5.dropped": 2, "pg_dropped.1": 1}
    verdict = judge(replace(evidence({TO_HOST: moved}), classes=classes))
    assert {one.cause for one in verdict.findings if one.device == "s1"} >= {"pfc-off"}
    named = {moved.counter for one in verdict.per_device for moved in one.moved}
    assert named == {"queue.5.dropped", "pg_dropped.1"}


@pytest.mark.parametrize("on_the_way", ["s1 to s2", "s2 to t1"])
def test_the_cable_between_two_switches_has_books_of_its_own(on_the_way: str) -> None:
    found = without(evidence(), TO_TARGET)
    uplink = Source("s1", "Ethernet8", SourceKind.SWITCH, "sonic")
    down, back = (Source("s2", port, SourceKind.SWITCH, "sonic") for port in ("Ethernet0", "Ethernet4"))
    first = 300 if on_the_way == "s2 to t1" else 301
    for source, packets in ((uplink, first), (down, 300), (back, 1000)):
        found = plus(found, source, queue__3__packets=packets, queue__3__dropped=0, pfc_tx__3=0)
    if on_the_way == "s2 to t1":
        lost = {HOST_NIC: {"tx_prio3_packets": 300}, TARGET_NIC: {"rx_prio3_packets": 299}}
    else:
        lost = {HOST_NIC: {"tx_prio3_packets": 301}, TARGET_NIC: {}}
    moved = evidence(lost)
    sets = {one.source: one for one in moved.after.sets}
    after = tuple(
        sets.get(one.source, one) if one.source in {HOST_NIC, TARGET_NIC} else one for one in found.after.sets
    )
    switch = SourceKind.SWITCH
    hops = (
        Hop(End("h1", "data0", SourceKind.HOST, "mlx5_0/1"), End("s1", "Ethernet0", switch)),
        Hop(End("s1", "Ethernet8", switch), End("s2", "Ethernet4", switch)),
        Hop(End("s2", "Ethernet0", switch), End("t1", "data0", SourceKind.TARGET, "mlx5_0/1")),
    )
    found = replace(found, after=replace(found.after, sets=after), links=(LinkPath("h1", "t1", hops),))
    verdict = judge(found)
    wanted = {"s1 to s2": "s1/Ethernet8 -> s2/Ethernet4", "s2 to t1": "s2/Ethernet0 -> t1/data0"}[on_the_way]
    assert verdict.status is VerdictStatus.FAIL
    assert wanted in verdict.findings[0].place.split(" or ")


def test_shares_of_pauses_are_taken_over_the_shortest_span_that_was_sampled() -> None:
    found = evidence({HOST_NIC: {"rx_prio3_pause_duration": 1_000_000}})
    middle = replace(
        found.after, label="1", sets=tuple(replace(one, at_ns=2 * SECOND) for one in found.after.sets)
    )  # all of it within the first two seconds
    assert share_of_host(found) == pytest.approx(0.1)
    assert share_of_host(replace(found, samples=(middle,))) == pytest.approx(0.5)


def share_of_host(found: Evidence) -> Known[float]:
    return next(one.share for one in judge(found).pause_share if one.device == "h1")
