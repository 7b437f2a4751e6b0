from dataclasses import replace

import pytest

from fabric.qos import UNKNOWN
from fabric.state import CounterSet, Finding, Missing, Severity, Snapshot, Source, SourceKind, Status, Where
from fabric.verify import Evidence, FlawSummary, Grade, JobSummary, TrafficClass, Verdict, VerdictStatus, judge
from fabric.verify.bound import exact_zero
from tests.unit.verify.evidence import (
    HOST,
    HOST_NIC,
    SECOND,
    STREAM,
    TARGET,
    TARGET_NIC,
    TO_HOST,
    TO_TARGET,
    Moves,
    evidence,
    plus,
    without,
)

BAD_CHECK = Finding(
    "pfc-on", Status.FAIL, Severity.ERROR, Where("s1", ("Ethernet0",)), "PFC is off", "on", "switch it on"
)


def first(verdict: Verdict) -> tuple[VerdictStatus, str, str]:
    return verdict.status, verdict.findings[0].cause, verdict.findings[0].place


def test_a_run_in_which_nothing_moved_that_must_stand_passes_with_its_bound() -> None:
    verdict = judge(evidence())
    assert (verdict.status, verdict.grade, verdict.lost) == (VerdictStatus.PASS, Grade.A, 0)
    assert verdict.packets == 1300
    assert verdict.bound_95 == exact_zero(1300)
    assert not verdict.findings
    assert not verdict.invalid
    assert not verdict.unobservable


def test_too_few_packets_prove_nothing() -> None:
    verdict = judge(replace(evidence(), asked_packets=1301))
    assert verdict.status is VerdictStatus.INVALID
    assert verdict.invalid == ("1300 packets of the lossless classes, 1301 asked",)


LOST_TO_HOST: Moves = {
    HOST: {"out_of_sequence": 1},
    TARGET: {"packet_seq_err": 1},
    HOST_NIC: {"rx_prio3_packets": 999},
}


@pytest.mark.parametrize(
    ("moves", "cause", "place"),
    [
        (LOST_TO_HOST, "loss-on-cable", "s1/Ethernet0 -> h1/data0"),
        (
            {**LOST_TO_HOST, TARGET_NIC: {"tx_prio3_packets": 1001}, HOST_NIC: {}},
            "loss-on-cable",
            "t1/data0 -> s1/Ethernet4",
        ),
        ({TARGET_NIC: {"rx_prio3_packets": 299}}, "loss-on-cable", "s1/Ethernet4 -> t1/data0"),
        (
            {HOST_NIC: {"rx_prio3_packets": 995, "tx_prio3_packets": 310}, HOST: {"out_of_sequence": 2}},
            "link-flap",
            "h1/data0 - s1/Ethernet0",
        ),
        (
            {**LOST_TO_HOST, TO_TARGET: {"pg_dropped.3": 4}, TARGET_NIC: {"tx_prio3_packets": 1004}},
            "pfc-off",
            "s1/Ethernet4",
        ),
        (
            {TO_TARGET: {"pg_dropped.3": 4, "pfc_tx.3": 9}, TARGET_NIC: {"rx_prio3_pause": 9}},
            "headroom-overflow",
            "s1/Ethernet4",
        ),
        ({TO_TARGET: {"pg_dropped.3": 4, "pfc_tx.3": 9}}, "pause-ignored", "s1/Ethernet4"),
        (
            {TO_TARGET: {"pg_dropped.3": 4, "pfc_tx.3": 9}, TARGET_NIC: {"rx_prio3_pause": UNKNOWN}},
            "pause-ignored",
            "s1/Ethernet4",
        ),
        (
            {TO_TARGET: {"pg_dropped.3": 4, "pfc_tx.3": UNKNOWN}},
            "headroom-overflow",
            "s1/Ethernet4",
        ),
        ({TO_HOST: {"queue.3.dropped": 4}}, "pfc-off", "s1/Ethernet0"),
        ({TO_HOST: {"queue.3.dropped": 4}, TO_TARGET: {"pfc_tx.3": 2}}, "queue-overflow", "s1/Ethernet0"),
        ({TO_HOST: {"queue.3.wred_dropped": 4}}, "wred-drops", "s1/Ethernet0"),
        ({TO_HOST: {"watchdog.3.storms": 1, "watchdog.3.tx_dropped": 7}}, "watchdog-tripped", "s1/Ethernet0"),
        ({HOST_NIC: {"rx_prio3_discards": 2}}, "nic-drops", "h1/data0"),
        ({HOST_NIC: {"rx_crc_errors_phy": 2}, **LOST_TO_HOST}, "loss-on-cable", "s1/Ethernet0 -> h1/data0"),
        (
            {HOST: {"out_of_sequence": 1}, TARGET: {"packet_seq_err": 1}},
            "reordering",
            "s1/Ethernet0 -> h1/data0 or t1/data0 -> s1/Ethernet4",
        ),
        ({HOST: {"rnr_nak_retry_err": 3}}, "software-credits", "h1/mlx5_0/1"),
        ({HOST: {"resp_remote_access_errors": 3}}, "software-protocol", "h1/mlx5_0/1"),
        ({HOST: {"rp_cnp_ignored": 3}}, "cnp-ignored", "h1/mlx5_0/1"),
        ({HOST_NIC: {"tx_pause_storm_error_events": 1}}, "pause-storm", "h1/data0"),
        (
            {**LOST_TO_HOST, TO_HOST: {"queue.3.packets": 400, "queue.1.packets": 599, "queue.1.dropped": 1}},
            "dscp-misclassified",
            "s1 or s1/Ethernet0",
        ),
    ],
)
def test_place_and_cause_follow_from_what_both_ends_and_the_switch_counted(
    moves: Moves, cause: str, place: str
) -> None:
    assert first(judge(evidence(moves))) == (VerdictStatus.FAIL, cause, place)


@pytest.mark.parametrize(
    ("moves", "cause"),
    [
        ({HOST_NIC: {"link_down_events_phy": 1}}, "link-flap"),
        ({HOST_NIC: {"rx_crc_errors_phy": 1}}, "link-errors"),
        ({HOST_NIC: {"rx_discards_phy": 1, "rx_prio3_discards": UNKNOWN}}, "nic-drops"),
        ({TO_HOST: {"watchdog.3.storms": 1}}, "watchdog-tripped"),
        ({TO_HOST: {"queue.3.packets": 400, "queue.1.packets": 600}}, "dscp-misclassified"),
        ({TARGET: {"local_ack_timeout_err": 2}, HOST: {"duplicate_request": 2}}, "host-too-slow-or-unseen-loss"),
    ],
)
def test_what_is_wrong_and_lost_nothing_is_no_pass_and_no_failure(moves: Moves, cause: str) -> None:
    assert first(judge(evidence(moves)))[:2] == (VerdictStatus.INVALID, cause)


def test_errors_of_the_link_are_the_cause_when_something_was_lost_on_it() -> None:
    moves = {**LOST_TO_HOST, HOST_NIC: {"rx_prio3_packets": 999, "rx_crc_errors_phy": 1}}
    assert first(judge(evidence(moves))) == (VerdictStatus.FAIL, "link-errors", "h1/data0 - s1/Ethernet0")


@pytest.mark.parametrize("lost", [LOST_TO_HOST, {}])
def test_errors_that_a_switch_counts_at_its_port_name_the_cable_there(lost: Moves) -> None:
    verdict = judge(evidence({**lost, TO_TARGET: {"rx_errors": 2}}))
    found = next(one for one in verdict.findings if one.cause == "link-errors")
    assert found.place == "s1/Ethernet4 - t1/data0"
    assert found.status is (VerdictStatus.FAIL if lost else VerdictStatus.INVALID)


def test_errors_on_a_cable_that_no_packet_of_the_run_takes_and_discards_of_any_class_are_no_matter() -> None:
    elsewhere = Source("s1", "Ethernet8", SourceKind.SWITCH, "sonic")
    found = evidence({TO_HOST: {"rx_discards": 4, "tx_discards": 4, "tx_errors": 1}})
    assert judge(plus(found, elsewhere, rx_errors=9)).status is VerdictStatus.PASS


def test_drops_of_a_lossy_class_are_no_loss() -> None:
    at_nic = {"rx_prio0_discards": 3, "rx_discards_phy": 3}
    verdict = judge(evidence({TO_HOST: {"queue.1.dropped": 9}, HOST_NIC: at_nic}))
    assert verdict.status is VerdictStatus.PASS


def test_wrong_bytes_fail_although_no_packet_was_lost() -> None:
    stream = replace(STREAM, flaws=(FlawSummary(4096, 17, "wrong"),), flaw_count=1)
    verdict = judge(evidence(stream=stream))
    assert first(verdict) == (
        VerdictStatus.FAIL,
        "payload-corrupted",
        "h1/data0 - s1/Ethernet0 or s1/Ethernet4 - t1/data0",
    )
    assert "LBA 4096 byte 17" in verdict.findings[0].evidence


def test_a_whole_sector_that_was_not_asked_for_is_laid_at_target_or_engine() -> None:
    stream = replace(STREAM, flaws=(FlawSummary(4096, 0, "stale"),), flaw_count=1)
    assert first(judge(evidence(stream=stream))) == (VerdictStatus.FAIL, "wrong-data-delivered", "h1 or t1")


# --- void windows ---------------------------------------------------------------------------------------------------


def after(found: Evidence, source: Source, **changes: object) -> Evidence:
    """Returns the evidence with fields of one source's set changed in the second snapshot."""
    sets = tuple(replace(one, **changes) if one.source == source else one for one in found.after.sets)  # type: ignore[arg-type]
    return replace(found, after=replace(found.after, sets=sets))


def test_a_reboot_voids_the_run() -> None:
    verdict = judge(after(evidence(), HOST, epoch="boot-2"))
    assert verdict.status is VerdictStatus.INVALID
    assert "h1 mlx5_0/1: it began anew" in verdict.invalid[0]


def test_loss_that_others_prove_beats_a_void_window_and_both_are_said() -> None:
    found = after(evidence({TARGET: {"packet_seq_err": 1}, TO_TARGET: {"pg_dropped.3": 1}}), HOST, epoch="boot-2")
    verdict = judge(found)
    assert verdict.status is VerdictStatus.FAIL
    assert any("began anew" in one for one in verdict.invalid)


def test_timers_that_ran_out_because_a_peer_began_anew_prove_nothing() -> None:
    found = evidence({TARGET: {"local_ack_timeout_err": 8, "req_cqe_error": 1}})
    verdict = judge(after(found, HOST, epoch="boot-2"))
    assert verdict.status is VerdictStatus.INVALID
    assert "h1 began anew meanwhile" in verdict.findings[0].evidence


def test_a_reading_that_may_be_older_than_the_end_of_the_load_proves_nothing() -> None:
    verdict = judge(after(evidence(), HOST, cache_ns=2 * SECOND))
    assert verdict.status is VerdictStatus.INVALID
    assert "1000 ms before the load's end" in verdict.invalid[0]


def test_a_load_that_began_before_the_first_reading_proves_nothing() -> None:
    assert judge(replace(evidence(), load_started_ns=-1)).status is VerdictStatus.INVALID


def test_timers_that_ran_out_prove_nothing_against_books_that_prove_that_all_came() -> None:
    found = evidence({HOST: {"local_ack_timeout_err": 2}, TARGET: {"duplicate_request": 3}})
    assert judge(found).status is VerdictStatus.INVALID
    verdict = judge(settled(found))
    assert verdict.status is VerdictStatus.PASS
    assert {one.status for one in verdict.per_device} == {VerdictStatus.PASS}
    assert any("h1 mlx5_0/1 local_ack_timeout_err +2" in one for one in verdict.notes)
    dead = settled(evidence({HOST: {"local_ack_timeout_err": 8, "req_cqe_error": 1}}))
    assert judge(dead).status is VerdictStatus.INVALID  # a queue pair that died is never excused


def test_of_several_timers_some_may_be_about_the_packet_and_some_about_its_answer() -> None:
    moves = {
        HOST: {"local_ack_timeout_err": 2},
        TARGET: {"duplicate_request": 1},
        TARGET_NIC: {"rx_prio3_packets": 299},
    }
    found = without(evidence(moves), TO_HOST, TO_TARGET)
    earlier = replace(found.before, sets=tuple(replace(one, at_ns=one.at_ns - SECOND) for one in found.before.sets))
    verdict = judge(replace(found, idle=(earlier, found.before)))
    places = " ".join(one.place for one in verdict.findings)
    assert "h1/data0 -> s1/Ethernet0" in places
    assert "t1/data0 -> s1/Ethernet4" in places


# --- what was not observed ------------------------------------------------------------------------------------------


def test_a_switch_that_cannot_be_asked_lowers_the_grade_and_is_listed() -> None:
    found = without(evidence(), TO_HOST, TO_TARGET)
    gone = Missing(TO_HOST, "no answer")
    found = replace(found, before=replace(found.before, missing=(gone,)), after=replace(found.after, missing=(gone,)))
    verdict = judge(found)
    assert verdict.grade is Grade.B
    assert "s1 Ethernet0: no answer" in verdict.unobservable


def unread_target(*gone: Source) -> Evidence:
    """Returns the evidence on a fabric whose target may not be read."""
    missing = tuple(Missing(one, "it is not contacted") for one in (TARGET, TARGET_NIC))
    found = without(evidence(), TARGET, TARGET_NIC, *gone)
    shots = {name: replace(getattr(found, name), missing=missing) for name in ("before", "after")}
    return replace(found, **shots, unmanaged=("t1",))


def test_a_target_that_may_not_be_read_lowers_the_grade_where_its_switch_was_read() -> None:
    verdict = judge(unread_target())
    assert verdict.status is VerdictStatus.PASS
    assert verdict.grade is Grade.C
    assert verdict.packets == 1300
    assert any(one.startswith("t1 is not managed") for one in verdict.unobservable)


def test_a_target_that_may_not_be_read_proves_nothing_behind_a_switch_that_was_not() -> None:
    verdict = judge(unread_target(TO_HOST, TO_TARGET))
    assert verdict.status is VerdictStatus.INVALID
    assert "t1 is not managed, and s1 at the other end of its cable was not read" in verdict.invalid


def test_books_that_do_not_close_over_a_fabric_with_strangers_are_no_proof() -> None:
    found = without(evidence({HOST_NIC: {"rx_prio3_packets": 990}}), TO_HOST, TO_TARGET)
    verdict = judge(found)
    assert verdict.status is VerdictStatus.INVALID
    assert verdict.invalid == ("10 packets of class storage were sent and not received: lost, or gone elsewhere",)


def test_silence_in_idleness_makes_the_books_proof() -> None:
    found = without(evidence({HOST_NIC: {"rx_prio3_packets": 990}}), TO_HOST, TO_TARGET)
    earlier = replace(found.before, sets=tuple(replace(one, at_ns=one.at_ns - SECOND) for one in found.before.sets))
    verdict = judge(replace(found, idle=(earlier, found.before)))
    assert verdict.status is VerdictStatus.FAIL
    assert verdict.lost == 10


def test_what_flows_without_load_may_be_under_way_between_two_readings() -> None:
    found = evidence({HOST_NIC: {"rx_prio3_packets": 998}})
    earlier = replace(
        found.before,
        sets=tuple(
            replace(one, at_ns=-SECOND, counters=tuple(replace(own, value=4000) for own in one.counters))
            for one in found.before.sets
        ),
    )
    late = replace(found.after, sets=tuple(replace(one, span_ns=SECOND // 100) for one in found.after.sets))
    assert judge(replace(found, after=late)).status is VerdictStatus.FAIL
    assert judge(replace(found, after=late, idle=(earlier, found.before))).status is VerdictStatus.PASS


def settled(found: Evidence) -> Evidence:
    """Returns the evidence with readings that are one moment each."""
    return replace(found, before=replace(found.before, is_settled=True), after=replace(found.after, is_settled=True))


def chatting(found: Evidence) -> Evidence:
    """Returns the evidence with packets of the class on the way all the time, by the snapshots without load."""
    earlier = replace(
        found.before,
        sets=tuple(
            replace(one, at_ns=-SECOND, counters=tuple(replace(own, value=4990) for own in one.counters))
            for one in found.before.sets
        ),
    )
    late = replace(found.after, sets=tuple(replace(one, span_ns=SECOND // 4) for one in found.after.sets))
    return replace(found, after=late, idle=(earlier, found.before))


def test_one_lost_packet_hides_in_what_is_on_the_way_unless_the_readings_are_one_moment() -> None:
    found = chatting(evidence({HOST_NIC: {"rx_prio3_packets": 999}}))
    assert judge(found).lost == 0  # it may be under way
    verdict = judge(settled(found))
    assert verdict.status is VerdictStatus.FAIL
    assert verdict.lost == 1


def test_gaps_beside_books_with_room_for_the_lost_packet_are_no_reordering() -> None:
    """Soak of 2026-11-30: 18 packets dropped of 25,480, keep-alives on the way, and "no packet is missing" was said."""
    lossy = {HOST_NIC: {"rx_prio3_packets": 999}, HOST: {"out_of_sequence": 1}, TARGET: {"packet_seq_err": 1}}
    found = chatting(evidence(lossy))
    verdict = judge(found)
    assert verdict.status is VerdictStatus.FAIL
    assert {one.cause for one in verdict.findings} == {"loss-on-cable"}
    assert any("may be under way" in one.why for one in verdict.per_link)
    assert not any("no packet is missing" in one.evidence for one in verdict.findings)
    overtaken = chatting(evidence({HOST: {"out_of_sequence": 1}, TARGET: {"packet_seq_err": 1}}))
    assert {one.cause for one in judge(settled(overtaken)).findings} == {"reordering"}


def test_pairs_whose_loss_nobody_would_see_prove_nothing() -> None:
    verdict = judge(without(evidence(), HOST, HOST_NIC, TARGET, TARGET_NIC))
    assert verdict.status is VerdictStatus.INVALID
    assert verdict.grade is Grade.C
    assert "nobody would have seen a packet lost from h1 to t1" in verdict.invalid


def test_irdma_counts_no_loss_and_its_silence_is_no_evidence() -> None:
    def as_irdma(snapshot: Snapshot) -> Snapshot:
        def changed(one: CounterSet) -> CounterSet:
            if one.source.family != "mlx5":
                return one
            shown = tuple(own for own in one.counters if own.name == "none")
            return replace(one, source=replace(one.source, family="irdma", place="irdma0/1"), counters=shown)

        return replace(snapshot, sets=tuple(changed(one) for one in snapshot.sets))

    found = evidence()
    verdict = judge(replace(found, before=as_irdma(found.before), after=as_irdma(found.after)))
    assert verdict.grade is Grade.C
    assert any(one.startswith("h1 does not count gaps seen") for one in verdict.unobservable)


def test_packets_of_the_class_at_a_port_that_is_not_sampled_open_the_books() -> None:
    stranger = CounterSet(Source("s1", "Ethernet8", SourceKind.SWITCH, "sonic"), "boot-1", 0)
    found = evidence()
    queue = next(one for one in found.after.sets if one.source == TO_TARGET).counters

    def plus(snapshot: Snapshot, at_ns: int, moved: int) -> Snapshot:
        counters = tuple(replace(one, value=moved if one.name == "queue.3.packets" else 0) for one in queue)
        return replace(snapshot, sets=(*snapshot.sets, replace(stranger, at_ns=at_ns, counters=counters)))

    verdict = judge(replace(found, before=plus(found.before, 0, 0), after=plus(found.after, 10 * SECOND, 5)))
    assert verdict.lost is UNKNOWN
    assert "s1/Ethernet8" in verdict.unobservable[0]


# --- load and prechecks ---------------------------------------------------------------------------------------------


def test_a_failed_precheck_proves_nothing_and_fails_when_asked_to_go_on() -> None:
    found = replace(evidence(), prechecks=(BAD_CHECK,))
    assert first(judge(found)) == (VerdictStatus.INVALID, "precheck-failed", "Ethernet0")
    assert judge(replace(found, go_on=True)).status is VerdictStatus.FAIL


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ((), "there was no load"),
        ((JobSummary("incast", 1.0, (STREAM,), is_complete=False, why="h1 was killed"),), "load incast did not run"),
        ((JobSummary("incast", 1.0, (replace(STREAM, errors=(("timeout", 3),)),)),), "commands failed in load incast"),
    ],
)
def test_a_load_that_was_none_proves_nothing(jobs: tuple[JobSummary, ...], why: str) -> None:
    verdict = judge(replace(evidence(), jobs=jobs))
    assert verdict.status is VerdictStatus.INVALID
    assert any(one.startswith(why) for one in verdict.invalid)


def test_without_a_lossless_class_there_is_nothing_to_prove() -> None:
    verdict = judge(replace(evidence(), classes=(TrafficClass("rest", 0, lossless=False),)))
    assert verdict.status is VerdictStatus.INVALID
    assert verdict.packets is UNKNOWN


def test_bursts_have_a_bound_of_their_own() -> None:
    jobs = (JobSummary("bursts", 1.0, (STREAM,), bursts=60),)
    verdict = judge(replace(evidence(), jobs=jobs))
    assert (verdict.bursts, verdict.bursts_failed, verdict.burst_bound_95) == (60, 0, exact_zero(60))


# --- health ---------------------------------------------------------------------------------------------------------


def test_pauses_have_a_share_of_the_time_and_are_no_loss() -> None:
    verdict = judge(evidence({HOST_NIC: {"rx_prio3_pause": 9, "rx_prio3_pause_duration": 500_000}}))
    assert verdict.status is VerdictStatus.PASS
    (share,) = [one for one in verdict.pause_share if one.device == "h1"]
    assert (share.way, share.priority) == ("rx", 3)
    assert share.share == pytest.approx(0.05)
    assert any("paused long: h1/data0 priority 3 rx 5.0%" in one for one in verdict.notes)


def test_a_port_paused_all_the_time_is_a_storm() -> None:
    verdict = judge(evidence({HOST_NIC: {"rx_prio3_pause_duration": 10_000_000}}))
    assert verdict.storms == ("h1/data0: priority 3 paused (rx) for all of 10000 ms",)


@pytest.mark.parametrize(("marked", "paused", "answer"), [(9, 2, True), (1, 5, False), (0, 0, UNKNOWN)])
def test_marks_before_pauses(marked: int, paused: int, answer: object) -> None:
    verdict = judge(evidence({TO_HOST: {"queue.3.marked": marked}, TO_TARGET: {"pfc_tx.3": paused}}))
    assert verdict.marks_before_pauses is answer


def test_a_paused_target_whose_way_is_free_is_a_victim() -> None:
    assert judge(evidence({TO_TARGET: {"pfc_tx.3": 5}})).victims == (
        "t1/data0 is paused, and no port towards its peers is congested",
    )
    assert judge(evidence({TO_TARGET: {"pfc_tx.3": 5}, TO_HOST: {"queue.3.marked": 5}})).victims == ()


def test_nobody_is_a_victim_where_no_marks_are_counted() -> None:
    assert judge(evidence({TO_TARGET: {"pfc_tx.3": 5}, TO_HOST: {"queue.3.marked": UNKNOWN}})).victims == ()


def test_a_counter_that_is_there_only_after_the_load_voids_the_run() -> None:
    found = evidence({HOST: {"roce_adp_retrans": 3}})
    sets = tuple(
        replace(one, counters=tuple(own for own in one.counters if own.name != "roce_adp_retrans"))
        for one in found.before.sets
    )
    verdict = judge(replace(found, before=replace(found.before, sets=sets)))
    assert verdict.status is VerdictStatus.INVALID
    assert verdict.invalid == ("h1 mlx5_0/1: roce_adp_retrans was counted after the load and not before it",)


def silent(found: Evidence, *gone: Source) -> Evidence:
    """Returns the evidence with these sources missing from both snapshots."""
    missing = tuple(Missing(one, "no answer") for one in gone)
    cut = without(found, *gone)
    return replace(cut, before=replace(cut.before, missing=missing), after=replace(cut.after, missing=missing))


def test_an_end_that_was_not_read_proves_nothing_since_half_of_the_losses_would_stay_unseen() -> None:
    verdict = judge(silent(evidence(), TARGET, TARGET_NIC))
    assert verdict.status is VerdictStatus.INVALID
    assert verdict.invalid[0] == "t1 mlx5_0/1 was not read (no answer): losses that it alone would count stay unseen"


def test_loss_on_one_cable_is_proven_by_its_two_ends_although_others_were_not_read() -> None:
    found = silent(evidence({HOST_NIC: {"rx_prio3_packets": 999}}), TARGET, TARGET_NIC)
    earlier = replace(found.before, sets=tuple(replace(one, at_ns=one.at_ns - SECOND) for one in found.before.sets))
    verdict = judge(replace(found, idle=(earlier, found.before)))
    assert first(verdict) == (VerdictStatus.FAIL, "loss-on-cable", "s1/Ethernet0 -> h1/data0")
    doubtful = judge(found)  # nobody knows what flows there without load
    assert doubtful.status is VerdictStatus.INVALID
    assert (
        "1 packets missing from s1/Ethernet0 to h1/data0, and the books of the whole do not close" in doubtful.invalid
    )
