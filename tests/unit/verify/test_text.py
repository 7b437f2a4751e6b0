from dataclasses import replace

from fabric.qos import UNKNOWN
from fabric.verify import Verdict, judge, verdict_text
from tests.unit.verify.evidence import HOST, HOST_NIC, TARGET, TO_HOST, evidence

PASSED = """\
PASS  grade A  no loss seen in 1,300 packets of the lossless classes
packets: n = 1,300 (1,000 asked); lost 0; rate <= 0.0023 at 95%; n counts packets of the class
by class:
  storage: n = 1,300, lost 0, rate <= 0.0023 at 95%
books of packets:
  whole fabric, all: sent 1,300, received 1,300, missing 0
  cables of s1, into s1: sent 1,300, received 1,300, missing 0
  s1/Ethernet0 - h1/data0, s1 -> h1/data0: sent 1,000, received 1,000, missing 0
  s1/Ethernet4 - t1/data0, s1 -> t1/data0: sent 300, received 300, missing 0
marks before pauses: unknown
"""
FAILED = """\
FAIL  grade A  1 lost of 1,300 packets of the lossless classes
packets: n = 1,300 (1,000 asked); lost 1; rate <= 0.00364 at 95%; n counts packets of the class
FAIL  loss-on-cable  s1/Ethernet0 -> h1/data0
  1 packets lost from s1/Ethernet0 to h1/data0: 1000 sent, 999 came
  -> test this cable alone; clean or change it, and read the error counters of both its ends
by class:
"""


def test_a_pass_is_never_said_without_n_and_its_bound() -> None:
    assert verdict_text(judge(evidence())) == PASSED


def test_a_failure_says_place_cause_evidence_and_remedy() -> None:
    moves = {HOST: {"out_of_sequence": 1}, TARGET: {"packet_seq_err": 1}, HOST_NIC: {"rx_prio3_packets": 999}}
    text = verdict_text(judge(evidence(moves)))
    assert text.startswith(FAILED)
    assert "h1 mlx5_0/1 out_of_sequence +1 (gap-seen)" in text


def test_an_invalid_run_says_why() -> None:
    text = verdict_text(judge(replace(evidence(), asked_packets=2000)))
    assert text.startswith("INVALID  grade A  the run proves neither loss nor its absence\n")
    assert "proves nothing because:\n  1300 packets of the lossless classes, 2000 asked\n" in text


def test_what_is_unknown_is_called_so() -> None:
    verdict = judge(evidence({TO_HOST: {"queue.3.marked": 4}}))
    blank = replace(verdict, packets=UNKNOWN, lost=UNKNOWN, bound_95=UNKNOWN, bursts=3, burst_bound_95=UNKNOWN)
    text = verdict_text(blank)
    assert "n = unknown (1,000 asked); lost unknown; rate unknown" in text
    assert "bursts: 0 of 3 failed; rate unknown" in text
    assert "marks before pauses: yes" in text


def test_disorder_is_not_called_loss() -> None:
    verdict: Verdict = judge(evidence({HOST: {"out_of_sequence": 1}, TARGET: {"packet_seq_err": 1}}))
    assert "loss, damage or disorder among 1,300 packets" in verdict_text(verdict)
