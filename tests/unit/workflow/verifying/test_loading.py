"""Profiles bent to what was asked, and rounds as a verdict sees them."""

from dataclasses import replace

from fabric.engine.load import Job, JobResult, Region, Stream, StreamResult
from fabric.intent import Fabric
from fabric.intent.model import Host, HostNic
from fabric.workflow.expanding import Round
from fabric.workflow.loads import Background, Burst, LoadProfile, Pattern, Phase
from fabric.workflow.verifying import VerifyOptions
from fabric.workflow.verifying.loading import RoundResult, bent, loaded_pairs, summary_of

FABRIC = Fabric("f", (), (Host("gpu1", (HostNic("e0", "mlx5", 100_000, 9000),)),))
PHASE = Phase(
    "mixed", Pattern.ALL, 65536, 16, 30, write_percent=20, burst=Burst(1 << 20, 80), background=Background(8, 0, 47100)
)
PROFILE = LoadProfile("p", "", "rdma", 1 << 30, (PHASE,))
STREAMS = (Stream("kv1/1@192.0.2.1:4420", "nvme+rdma://192.0.2.1/nqn"), Stream("to-gpu2", "tcp-send://192.0.2.2:47100"))
JOB = Job("mixed", 1, 1, STREAMS, 65536, 2, 0.0, 0, 0, None, 30.0, Region(0, 8), check=True)


def test_without_scratch_nothing_is_written_or_compared() -> None:
    (phase,) = bent(PROFILE, VerifyOptions(seconds=7), FABRIC).phases
    assert (phase.write_percent, phase.is_checked, phase.seconds) == (0, False, 7)
    (same,) = bent(PROFILE, VerifyOptions(scratch=("kv1",)), FABRIC).phases
    assert same == PHASE


def test_gentle_is_few_readers_a_cap_and_neither_bursts_nor_bulk() -> None:
    gentle = bent(PROFILE, VerifyOptions(scratch=("kv1",), gentle=True), FABRIC)
    (phase,) = gentle.phases
    assert (phase.readers, phase.rate_mbps, phase.burst, phase.background) == (2, 5000, None, None)
    assert gentle.span_bytes == 64 << 20
    slow = replace(PROFILE, phases=(replace(PHASE, rate_mbps=400),))
    assert bent(slow, VerifyOptions(gentle=True), FABRIC).phases[0].rate_mbps == 400


def result(*rows: StreamResult, complete: bool = True) -> RoundResult:
    return RoundResult("mixed", (("gpu1", JOB),), (("gpu1", JobResult("mixed", 0.0, 30.0, rows, 1.0, complete)),))


def test_a_round_is_its_streams_to_namespaces_and_bursts_of_the_whole_load() -> None:
    other = replace(STREAMS[0], name="kv2/1@192.0.2.3:4420")
    rows = (
        StreamResult(STREAMS[0].name, reads=5, bursts=10, bursts_failed=1),
        StreamResult(other.name, reads=4, bursts=9, bursts_failed=2),
        StreamResult("to-gpu2", bytes_written=1 << 20),
    )
    made = RoundResult(
        "mixed",
        (("gpu1", replace(JOB, streams=(*STREAMS, other))),),
        (("gpu1", JobResult("mixed", 0.0, 30.0, rows, 1.0)),),
    )
    found = summary_of(made)
    assert [(one.host, one.target, one.reads) for one in found.streams] == [("gpu1", "kv1", 5), ("gpu1", "kv2", 4)]
    assert (found.bursts, found.bursts_failed, found.is_complete) == (10, 3, True)


def test_a_round_that_did_not_run_to_its_end_says_why() -> None:
    stopped = summary_of(result(StreamResult(STREAMS[0].name), complete=False))
    assert (stopped.is_complete, stopped.why) == (False, "gpu1 was stopped after 30.0 s")
    lost = summary_of(RoundResult("mixed", (("gpu1", JOB),), errors=(("gpu1", "the session was lost"),)))
    assert (lost.is_complete, lost.why) == (False, "gpu1: the session was lost")
    bulk = summary_of(result(StreamResult("to-gpu2", errors=(("TransportError", 1),), first_error="refused")))
    assert (bulk.is_complete, bulk.why) == (False, "gpu1: lossy traffic beside the load failed: refused")


def test_pairs_are_those_of_streams_to_namespaces() -> None:
    assert loaded_pairs([Round("mixed", PHASE, {"gpu1": JOB})]) == (("gpu1", "kv1"),)
