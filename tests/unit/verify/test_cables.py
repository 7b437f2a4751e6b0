from dataclasses import replace

import pytest

from fabric.state import Counter, CounterSet, Snapshot, Source, SourceKind
from fabric.verify import Evidence, VerdictStatus, judge
from fabric.verify.cables import CableBook, cable_books, only_cable
from fabric.verify.facts import gather
from fabric.verify.model import End, Hop
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
INTO_FROM_HOST, INTO_FROM_TARGET = "h1/data0 -> s1/Ethernet0", "t1/data0 -> s1/Ethernet4"
FRAMES: Moves = {
    HOST_NIC: {"statistics.tx_packets": 310, "statistics.rx_packets": 1010},
    TO_HOST: {"rx_packets": 310, "tx_packets": 1010},
    TARGET_NIC: {"statistics.tx_packets": 1020, "statistics.rx_packets": 320},
    TO_TARGET: {"rx_packets": 1020, "tx_packets": 320},
}


def timers(frames: Moves = FRAMES) -> Evidence:
    """Returns a run on Soft-RoCE: one packet is missing into the switch, and timers ran out at both ends."""
    moves = {one: {**FRAMES[one], **frames.get(one, {})} for one in FRAMES}
    moves[TO_TARGET] = {**moves[TO_TARGET], "queue.3.packets": 299}
    found = without(evidence(moves), HOST, TARGET)
    quiet = {"out_of_seq_request": 0, "rcvd_seq_err": 0, "completer_retry_err": 1, "duplicate_request": 0}
    for source, sent, received in ((RXE_HOST, 300, 1000), (RXE_TARGET, 1000, 299)):
        found = plus(found, source, sent_pkts=sent, rcvd_pkts=received, **quiet)
    return without_class(found)


def without_class(found: Evidence) -> Evidence:
    """Returns the evidence without what a NIC counts by class: below Soft-RoCE it does not."""

    def cut(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, sets=tuple(_soft(one) for one in snapshot.sets))

    return replace(found, before=cut(found.before), after=cut(found.after))


def _soft(one: CounterSet) -> CounterSet:
    if one.source.family != "netdev":
        return one
    return replace(one, counters=tuple(own for own in one.counters if own.name.startswith("statistics.")))


def place(found: Evidence) -> list[str]:
    verdict = judge(found)
    assert (verdict.status, verdict.lost) == (VerdictStatus.FAIL, 1)
    assert verdict.findings[0].cause == "loss-on-cable"
    return verdict.findings[0].place.split(" or ")


def test_timers_alone_leave_every_cable_into_the_switch() -> None:
    assert sorted(place(timers())) == [INTO_FROM_HOST, INTO_FROM_TARGET]


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        ({HOST_NIC: {"statistics.tx_packets": 311}}, INTO_FROM_HOST),
        ({TO_TARGET: {"rx_packets": 1019}}, INTO_FROM_TARGET),
        # more frames than packets of the class were lost there
        ({TO_TARGET: {"rx_packets": 1000}}, INTO_FROM_TARGET),
        # the ends of the other cable differ by its pauses, and by what the switch discarded
        ({HOST_NIC: {"statistics.tx_packets": 311}, TO_TARGET: {"rx_packets": 1029, "pfc_rx.3": 9}}, INTO_FROM_HOST),
    ],
)
def test_frames_of_every_class_say_which_cable_it_was(frames: Moves, where: str) -> None:
    assert place(timers(frames)) == [where]


@pytest.mark.parametrize(
    "frames",
    [
        {HOST_NIC: {"statistics.tx_packets": 311}, TO_TARGET: {"rx_packets": 1019}},  # both miss one
        {HOST_NIC: {"statistics.tx_packets": 309}},  # more came than were sent
    ],
)
def test_several_cables_that_miss_as_much_or_none_stay_candidates(frames: Moves) -> None:
    assert sorted(place(timers(frames))) == [INTO_FROM_HOST, INTO_FROM_TARGET]


def test_frames_that_are_missing_are_shown_and_prove_nothing() -> None:
    moves = {source: dict(own) for source, own in FRAMES.items()}
    moves[TO_HOST]["rx_packets"] = 300
    verdict = judge(evidence(moves))
    assert verdict.status is VerdictStatus.PASS
    (shown,) = [one for one in verdict.per_link if one.direction == INTO_FROM_HOST]
    assert (shown.sent, shown.received, shown.lost) == (310, 300, 10)


def test_a_flap_is_the_one_cable_that_misses_frames_in_both_directions() -> None:
    """No switch counts packets by queue: EOS."""
    moves = {source: dict(own) for source, own in FRAMES.items()}
    moves[TO_HOST] |= {"rx_packets": 308}
    moves[HOST_NIC] |= {"statistics.rx_packets": 1007, "rx_prio3_packets": 997}
    moves[TARGET_NIC] |= {"rx_prio3_packets": 298}
    moves[HOST] = {"out_of_sequence": 1}
    found = evidence(moves)

    def cut(snapshot: Snapshot) -> Snapshot:
        kept = [
            replace(one, counters=tuple(own for own in one.counters if not own.name.startswith("queue.3.packets")))
            for one in snapshot.sets
        ]
        return replace(snapshot, sets=tuple(kept))

    later = tuple(replace(one, at_ns=5 * SECOND) for one in found.before.sets)
    silence = found.before, replace(found.before, sets=later)
    found = replace(found, before=cut(found.before), after=cut(found.after), idle=silence)
    verdict = judge(found)
    assert (verdict.status, verdict.lost) == (VerdictStatus.FAIL, 5)
    first = verdict.findings[0]
    assert (first.cause, first.place) == ("link-flap", "h1/data0 - s1/Ethernet0")


def test_ends_that_differ_by_their_pauses_may_have_lost_nothing_or_that() -> None:
    found = evidence({**FRAMES, TO_TARGET: {"rx_packets": 1011, "tx_packets": 320, "pfc_rx.3": 9, "pfc_rx_total": 9}})
    losses = {str(one.hop.near): one.losses for one in cable_books(gather(found))}
    assert losses["t1/data0"] == (0, 9)
    assert losses["h1/data0"] == (0,)
    discarded = evidence({**FRAMES, TO_HOST: {"rx_packets": 306, "rx_discards": 4}})
    assert {str(one.hop.near): one.losses for one in cable_books(gather(discarded))}["h1/data0"] == (0, 4)


def test_frames_that_flow_without_load_may_be_under_way() -> None:
    found = evidence(FRAMES)

    def at(label: str, at_ns: int, frames: int) -> Snapshot:
        sets = [
            CounterSet(HOST_NIC, "boot-1", at_ns, counters=(Counter("statistics.tx_packets", frames),)),
            CounterSet(TO_HOST, "boot-1", at_ns, counters=(Counter("rx_packets", frames),)),
        ]
        return Snapshot(label, 0.0, tuple(sets))

    def later(snapshot: Snapshot) -> Snapshot:
        moved = [replace(one, span_ns=SECOND // 2) if one.source == TO_HOST else one for one in snapshot.sets]
        return replace(snapshot, sets=tuple(moved))

    idle = at("idle-1", 0, 100), at("idle-2", 10 * SECOND, 130)
    found = replace(found, idle=idle, before=later(found.before), after=later(found.after))
    tolerances = {str(one.hop.near): one.tolerance for one in cable_books(gather(found))}
    assert tolerances == {"h1/data0": 3, "s1/Ethernet0": 0, "s1/Ethernet4": 0, "t1/data0": 0}


def book(number: int, missing: int, *, tolerance: int = 0) -> CableBook:
    return CableBook(hop(number), 100 + missing, 100, tolerance, (missing,))


def hop(number: int) -> Hop:
    return Hop(End(f"h{number}", "data0", SourceKind.HOST), End("s1", f"p{number}", SourceKind.SWITCH))


HOPS = (hop(1), hop(2), hop(3))


@pytest.mark.parametrize(
    ("books", "wanted", "found"),
    [
        ((book(1, 0), book(2, 5), book(3, 0)), 5, 2),
        ((book(1, 0), book(2, 4), book(3, 0)), 5, None),  # it misses less than was lost
        ((book(1, 0), book(2, 4, tolerance=1), book(3, 0)), 5, 2),
        ((book(1, 0), book(2, 5)), 5, 2),  # nobody counts the third, and nothing flows without load
        ((book(1, 0), book(2, 5, tolerance=1)), 5, None),
        ((book(1, 1), book(2, 5, tolerance=1), book(3, 0)), 5, None),  # what was under way, at two of them
        ((book(1, 5), book(2, 5), book(3, 0)), 5, None),
        ((), 1, None),
    ],
)
def test_one_cable_that_misses_about_as_much_is_the_place(
    books: tuple[CableBook, ...], wanted: int, found: int | None
) -> None:
    expected = [] if found is None else [hop(found)]
    assert [one.hop for one in only_cable(books, HOPS, wanted)] == expected
