"""Bar 1 without VMs: no false PASS, no false FAIL, place and cause right. FABRIC_VERIFY_RUNS sets how many runs."""

import os
from dataclasses import replace

import pytest

from fabric.lab.wire import FaultRule, PacketKind, WireFault
from fabric.qos import UNKNOWN
from fabric.serial import from_json, to_json
from fabric.verify import Evidence, Verdict, VerdictStatus, judge, verdict_text
from fabric.verify.bound import exact_zero, upper_bound
from tests.verify_plant.scenario import Run
from tests.verify_plant.trial import RUNS, Trial, trial
from tests.verify_plant.truth import BAR_1, CAUSE, KINDS, MORE, Fault

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]  # long and alike: tracing them would double their time

CHUNK = 25
COMMANDS = int(os.environ.get("VERIFY_COMMANDS", "500"))  # 5,000 are 200,000 packets: tests/bars/05_2
SHARE_OF_FAULTS = 8  # seeds among which every fault does something


def complaints(trials: list[Trial]) -> list[str]:
    return [f"seed {one.seed}, {one.truth.fault.value}: {', '.join(one.wrong())}" for one in trials if one.wrong()]


@pytest.mark.parametrize(
    "first", [pytest.param(at, marks=pytest.mark.sweep if at else ()) for at in range(0, RUNS, CHUNK)]
)
def test_no_verdict_is_wrong(first: int) -> None:
    assert complaints([trial(seed) for seed in range(first, min(first + CHUNK, RUNS))]) == []


@pytest.mark.parametrize("fault", [one for one in (*BAR_1, *MORE) if one in CAUSE])
def test_every_fault_does_harm_and_is_found(fault: Fault) -> None:
    trials = [trial(10_000 + seed, fault=fault) for seed in range(SHARE_OF_FAULTS)]
    assert complaints(trials) == []
    assert any(one.verdict.status is VerdictStatus.FAIL for one in trials)


def test_a_slow_host_is_no_loss() -> None:
    trials = [trial(30_000 + seed, fault=Fault.SLOW) for seed in range(SHARE_OF_FAULTS)]
    assert complaints(trials) == []
    assert any(one.verdict.status is VerdictStatus.INVALID for one in trials)


@pytest.mark.parametrize("kind", [one for one in KINDS if one is not PacketKind.CNP])
def test_one_lost_packet_of_any_kind_of_the_class_is_a_failure(kind: PacketKind) -> None:
    rule = FaultRule(WireFault.DROP, packet=kind, nth=1)
    for seed in range(20_000, 20_012):
        evidence, truth = Run(seed, fault=Fault.NTH, rule=rule).go()
        if truth.lost:
            verdict = judge(evidence)
            assert (verdict.status, verdict.lost) == (VerdictStatus.FAIL, truth.lost)
            return
    pytest.fail(f"no run sent a {kind.value} there")


def test_a_verdict_and_its_evidence_go_through_json() -> None:
    evidence, _ = Run(3, fault=Fault.RANDOM).go()
    again = from_json(Evidence, to_json(evidence))
    assert again == evidence
    verdict = judge(again)
    assert from_json(Verdict, to_json(verdict)) == verdict


def test_one_lost_packet_of_many_is_found_and_the_bound_printed() -> None:
    rule = FaultRule(WireFault.DROP, packet=PacketKind.WRITE, nth=COMMANDS * 3 // 5)
    evidence, truth = Run(1, fault=Fault.NTH, commands=COMMANDS, rule=rule).go()
    verdict = judge(evidence)
    assert truth.lost == 1
    assert verdict.status is VerdictStatus.FAIL
    assert verdict.packets is not UNKNOWN
    assert verdict.packets >= 40 * COMMANDS
    assert verdict.lost == 1
    assert verdict.bound_95 == pytest.approx(upper_bound(1, verdict.packets))
    assert verdict.bound_95 is not UNKNOWN
    assert verdict.bound_95 > exact_zero(verdict.packets)
    assert f"rate <= {verdict.bound_95:.3g} at 95%" in verdict_text(verdict)


def test_a_wrong_verdict_is_called_wrong() -> None:
    harmed = trial(10_000, fault=Fault.FLAP)
    clean = trial(10_000, fault=Fault.NONE)
    assert harmed.is_harmed
    assert replace(harmed, verdict=clean.verdict).wrong()[:2] == ("false PASS", "harm that is no FAIL")
    assert replace(clean, verdict=harmed.verdict).wrong() == ("false FAIL", "clean run that is no PASS")
    moved = replace(harmed.verdict.findings[0], place="elsewhere", cause="something")
    spoilt = replace(harmed, verdict=replace(harmed.verdict, findings=(moved,)))
    assert spoilt.wrong()[:2] == ("wrong cause", "wrong place")
