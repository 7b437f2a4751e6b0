"""What a study says of itself."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise

import pytest

from fabric.errors import FabricError
from fabric.policy import Conditions, ShardPolicy, profile_from_text, profile_to_text
from fabric.serial import from_json, to_json
from fabric.tune import TuneReport, make_profile, no_longer_holds, pareto_svg, scaling_svg, to_text
from tests.unit.tune.worlds import LIMITS, MODEL, hill, outcome, run, tuner

STAMP = Conditions(tuned_unix_s=1_764_460_800, tool="fabricctl 0.1", fabric_digest="abc", workload="kv", run="runs/7")


@pytest.fixture(scope="module")
def report() -> TuneReport:
    return run(tuner(), hill, noise=0.01).report()


@pytest.fixture(scope="module")
def hopeless() -> TuneReport:
    return run(tuner(budget=15), lambda _: outcome(1e9, lost=1)).report()


def test_a_report_is_json_both_ways(report: TuneReport, hopeless: TuneReport) -> None:
    for one in (report, hopeless):
        assert from_json(TuneReport, json.loads(json.dumps(to_json(one)))) == one


def test_the_front_is_one_that_nothing_beats(report: TuneReport) -> None:
    front = report.pareto
    assert front
    assert all(a.bytes_per_s > b.bytes_per_s and a.p99_ns > b.p99_ns for a, b in pairwise(front))


def test_the_curve_has_its_fit(report: TuneReport) -> None:
    assert report.law is not None
    assert len(report.curve) == 5
    assert [one.queues for one in report.curve] == sorted({one.queues for one in report.curve})
    assert all(one.fitted == report.law.at(one.queues) for one in report.curve)


def test_loss_is_bounded_by_the_packets_of_the_chosen_setting(report: TuneReport) -> None:
    assert report.loss is not None
    assert report.loss.lost == 0
    assert report.loss.packets == 10_000 * report.loss.trials
    assert report.loss.bound_95 == 3 / report.loss.packets


def test_the_text_has_before_after_and_every_trial(report: TuneReport) -> None:
    text = to_text(report)
    for part in (
        "goal throughput",
        "chosen: ",
        "before, nvme connect",
        "before, one queue, serial",
        "after: ",
        "loss: 0 of",
    ):
        assert part in text
    assert sum(line.lstrip().split(" ", 1)[0].isdigit() and " x " in line for line in text.splitlines()) == len(
        report.rows
    )
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_the_text_says_when_nothing_may_be_deployed(hopeless: TuneReport) -> None:
    text = to_text(hopeless)
    assert "nothing may be deployed" in text
    assert "lost 1" in text


@pytest.mark.parametrize("draw", [scaling_svg, pareto_svg])
def test_figures_are_well_formed(report: TuneReport, hopeless: TuneReport, draw: Callable[[TuneReport], str]) -> None:
    for one in (report, hopeless, tuner().report()):
        root = ET.fromstring(draw(one))  # noqa: S314  (our own text)
        assert root.tag.endswith("svg")
    whole = ET.fromstring(draw(report))  # noqa: S314  (our own text)
    dots = [node for node in whole.iter() if node.tag.endswith("circle")]
    wanted = len(report.curve) if draw is scaling_svg else len(report.rows) + 1
    assert len(dots) == wanted


def test_a_profile_carries_the_conditions(report: TuneReport) -> None:
    profile = make_profile(report, MODEL, STAMP, ShardPolicy(redeals=3))
    assert profile_from_text(profile_to_text(profile)) == profile
    conditions = profile.conditions
    assert conditions is not None
    assert report.chosen is not None
    assert profile.policy.queues == report.chosen.knobs.queues
    assert profile.policy.redeals == 3
    assert (conditions.workload, conditions.link_mbps, conditions.fan_in) == ("kv", 100_000, 4)
    assert (conditions.trials, conditions.packets_lost) == (len(report.rows), 0)


def test_no_profile_is_made_of_nothing(hopeless: TuneReport) -> None:
    with pytest.raises(FabricError, match="chose nothing"):
        make_profile(hopeless, MODEL, STAMP)


def test_a_profile_holds_until_something_changes(report: TuneReport) -> None:
    conditions = make_profile(report, MODEL, STAMP).conditions
    assert conditions is not None
    now = outcome(float(conditions.bytes_per_s), p99_ns=conditions.p99_ns)
    assert no_longer_holds(conditions, MODEL, now, LIMITS, fabric_digest="abc") == ()
    slow = outcome(conditions.bytes_per_s * 0.8, p99_ns=2 * conditions.p99_ns, lost=1)
    other = type(MODEL)(3e9, 1, 1, 1, fan_in=5)
    found = no_longer_holds(conditions, other, slow, LIMITS, fabric_digest="def")
    assert [one.split(" ")[0] for one in found] == [
        "lost",
        "another",
        "the",
        "4",
        f"{slow.bytes_per_s / 1e9:.3f}",
        "p99",
    ]
