"""What a trial came to: unknown stays unknown, and frames bound pauses where nobody counts their time."""

from dataclasses import replace

import pytest

from fabric.engine.load import Job, JobResult, Region, Stream, StreamResult
from fabric.qos import UNKNOWN
from fabric.tune import Goal, Limits, Outcome, flaws, is_feasible
from fabric.verify import Evidence
from fabric.workflow.tuning.outcomes import cpu_ns_of, jain, outcome_of
from fabric.workflow.verifying.loading import RoundResult
from tests.unit.verify.evidence import HOST, TARGET, TARGET_NIC, TO_HOST, Moves, evidence, without

STREAM = StreamResult("t1/1@192.0.2.1:4420", bytes_read=4_000_000, reads=40, p50_ns=100, p99_ns=900, p999_ns=1000)
JOB = Job(
    "incast", 1, 1, (Stream(STREAM.name, "nvme+rdma://192.0.2.1/nqn"),), 65536, 2, 0.0, 0, 0, None, 2.0,
    Region(0, 8), check=True,
)  # fmt: skip
SPEEDS = {("s1", "Ethernet0"): 100_000, ("s1", "Ethernet4"): 100_000}


def round_of(*results: tuple[str, JobResult]) -> RoundResult:
    return RoundResult("incast", tuple((host, JOB) for host, _ in results), results)


def result(*streams: StreamResult, cpu_s: float = 0.02) -> JobResult:
    return JobResult("incast", 0.0, 2.0, streams, cpu_s)


def measured(found: Evidence, *streams: StreamResult, goal: Goal = Goal.THROUGHPUT, is_marked: bool = True) -> Outcome:
    rounds = (round_of(("h1", result(*(streams or (STREAM,))))),)
    return outcome_of(found, rounds, goal=goal, speeds_mbps=SPEEDS, is_marked=is_marked)[0]


def without_times(moves: Moves | None = None) -> Evidence:
    """Returns evidence in which no NIC counts the time of its pauses."""
    from tests.unit.verify.evidence import HOST_NIC

    return without(evidence(moves), HOST_NIC, TARGET_NIC)


def test_a_clean_trial_is_its_rate_latencies_packets_and_nothing_lost() -> None:
    found = measured(evidence())
    assert (found.bytes_per_s, found.p50_ns, found.p99_ns) == (2_000_000, 100, 900)
    assert (found.lost, found.errors, found.pause_share, found.marks_share) == (0, 0, 0.0, 0.0)
    assert found.packets == 1300
    assert is_feasible(found, Limits())


def test_loss_is_counted_and_loss_that_nobody_counted_is_one() -> None:
    found = measured(evidence({HOST: {"out_of_sequence": 1}, TARGET: {"packet_seq_err": 1}}))
    assert found.lost is not UNKNOWN
    assert found.lost >= 1
    assert not is_feasible(found, Limits())


def test_a_trial_that_proves_nothing_has_unknown_loss() -> None:
    assert measured(without(evidence(), TARGET, TARGET_NIC)).lost is UNKNOWN


def test_time_of_pauses_is_a_share_of_the_trial() -> None:
    found = measured(evidence({TARGET_NIC: {"rx_prio3_pause": 9, "rx_prio3_pause_duration": 500_000}}))
    assert found.pause_share == pytest.approx(0.05)


def test_frames_bound_the_share_where_time_is_not_counted() -> None:
    assert measured(without_times()).pause_share == 0.0
    found = measured(without_times({TO_HOST: {"pfc_tx.3": 100}}))
    assert found.pause_share == pytest.approx(100 * 65_535 * 512 / 100e9 / 10)
    unknown = outcome_of(
        without_times({TO_HOST: {"pfc_tx.3": 100}}), (round_of(("h1", result(STREAM))),), goal=Goal.THROUGHPUT,
        speeds_mbps={},
    )[0]  # fmt: skip
    assert unknown.pause_share is UNKNOWN


def test_marks_are_a_share_of_packets_unknown_where_not_counted_and_none_where_nobody_marks() -> None:
    assert measured(evidence({TO_HOST: {"queue.3.marked": 130}})).marks_share == pytest.approx(0.1)
    blind = evidence({TO_HOST: {"queue.3.marked": UNKNOWN}})
    assert measured(blind).marks_share is UNKNOWN
    assert measured(blind, is_marked=False).marks_share == 0.0
    assert flaws(measured(blind), Limits()) == ("share marked unknown",)
    assert is_feasible(measured(blind), Limits(marks_share_max=1.0))


def test_the_last_byte_is_the_slowest_of_a_burst_where_it_is_the_goal() -> None:
    assert measured(evidence()).last_byte_ns == 0
    assert measured(evidence(), goal=Goal.LAST_BYTE).last_byte_ns == 1000


def test_failed_requests_wrong_sectors_and_a_load_that_was_stopped_are_errors() -> None:
    bad = replace(STREAM, errors=(("TransportError", 2),), flaw_count=3)
    assert measured(evidence(), bad).errors == 5
    stopped = replace(result(STREAM), is_complete=False)
    rounds = (round_of(("h1", stopped)),)
    assert outcome_of(evidence(), rounds, goal=Goal.THROUGHPUT, speeds_mbps=SPEEDS)[0].errors == 1


def test_fairness_is_over_hosts_or_over_the_streams_of_the_only_one() -> None:
    less = replace(STREAM, bytes_read=0)
    assert measured(evidence(), STREAM, less).fairness == 0.5
    rounds = (round_of(("h1", result(STREAM)), ("h2", result(STREAM, STREAM)), ("h3", result(less))),)
    found = outcome_of(evidence(), rounds, goal=Goal.FAIRNESS, speeds_mbps=SPEEDS)[0]
    assert found.fairness == pytest.approx(jain([1, 2, 0]))
    assert jain([]) == 1.0


def test_cpu_of_one_request_is_the_least_that_a_host_needed() -> None:
    assert cpu_ns_of([result(STREAM), result(STREAM, cpu_s=0.04), result()]) == 500_000
