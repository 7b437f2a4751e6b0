"""Scratch by name, places by name, findings of a verdict, alert rules that name what there is."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from fabric.errors import FabricError, PlanError
from fabric.intent import Fabric
from fabric.intent.model import Host, Namespace, NvmeTarget, Subsystem
from fabric.resources import data_path
from fabric.state import Finding, Severity, Status, Where
from fabric.verify import Grade, LossFinding, VerdictStatus
from fabric.verify import Verdict as LossVerdict
from fabric.workflow import RunFolder, Summary, Verdict
from fabric.workflow.verifying.concluding import findings_of
from fabric.workflow.verifying.prechecks import earlier_findings, is_refused
from fabric.workflow.verifying.prove import names_place
from fabric.workflow.verifying.scratching import given_volumes, read_volumes
from fabric.workflow.verifying.watchmetrics import METRICS, Totals, WatchMetrics

SUBSYSTEMS = (Subsystem("nqn.a", (Namespace(1), Namespace(2))), Subsystem("nqn.b", (Namespace(1),)))
FABRIC = Fabric("f", (), (Host("gpu1", (), connect=("nqn.b",)),), (NvmeTarget("kv1", (), SUBSYSTEMS),))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("kv1",), (("nqn.a", 1), ("nqn.a", 2), ("nqn.b", 1))),
        (("kv1/2",), (("nqn.a", 2),)),
        (("nqn.b", "kv1/1"), (("nqn.b", 1), ("nqn.a", 1))),
        (("nqn.a/1",), (("nqn.a", 1),)),
    ],
)
def test_scratch_is_a_target_or_an_nqn_and_perhaps_one_namespace(
    words: tuple[str, ...], found: tuple[tuple[str, int], ...]
) -> None:
    assert given_volumes(FABRIC, words) == found


@pytest.mark.parametrize("word", ["kv2", "kv1/3", "", "nqn"])
def test_scratch_that_names_nothing_is_refused_with_what_there_is(word: str) -> None:
    with pytest.raises(PlanError) as refused:
        given_volumes(FABRIC, ("kv1", word))
    assert "kv1/1" in refused.value.expected


def test_reads_alone_go_to_what_hosts_connect_to() -> None:
    assert read_volumes(FABRIC, ("gpu1",)) == (("nqn.b", 1),)
    assert read_volumes(FABRIC, ()) == ()


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("leaf1/Ethernet16 - target1/data0", True),
        ("leaf1/Ethernet1 -> target1/data0", True),
        ("leaf1/Ethernet160 - target1/data0", False),
        ("a-leaf1/Ethernet16", False),
    ],
)
def test_a_place_is_named_whole(text: str, *, is_named: bool) -> None:
    place = "leaf1/Ethernet1" if "Ethernet1 " in text else "leaf1/Ethernet16"
    assert names_place(text, place) is is_named
    assert not names_place(text, "")


def test_a_verdict_is_findings_for_every_report() -> None:
    passed = findings_of(LossVerdict(VerdictStatus.PASS, Grade.A, packets=3000, lost=0, bound_95=0.001))
    assert [(one.rule, one.status) for one in passed] == [("nothing-was-lost", Status.PASS)]
    assert "3,000 packets" in passed[0].evidence
    assert "0.001 at 95%" in passed[0].evidence
    lost = LossFinding(
        "lost-on-the-way", VerdictStatus.FAIL, "leaf1", "leaf1/1 - h/e0", "loss-on-cable", "1 lost", "do"
    )
    (failed,) = findings_of(LossVerdict(VerdictStatus.FAIL, Grade.A, findings=(lost,)))
    assert (failed.status, failed.where.device, failed.where.ports) == (Status.FAIL, "leaf1", ("leaf1/1 - h/e0",))
    (unknown,) = findings_of(LossVerdict(VerdictStatus.INVALID, Grade.C, invalid=("there was no load",)))
    assert (unknown.status, unknown.evidence) == (Status.UNKNOWN, "there was no load")


def test_an_earlier_run_stands_for_the_checks_only_if_it_judged_devices(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    broken = Finding("a-rule", Status.FAIL, Severity.ERROR, Where("leaf1"), "off")
    run.write("summary", Summary("check", "f", Verdict.OK, findings=(broken,)))
    with pytest.raises(FabricError, match="did not judge"):
        earlier_findings(tmp_path, "f")
    run.write("summary", Summary("check", "f", Verdict.OK, findings=(broken,), counted=True))
    assert is_refused(earlier_findings(tmp_path, "f"))
    with pytest.raises(FabricError, match="another fabric"):
        earlier_findings(tmp_path, "g")


def test_totals_of_a_watch_leave_out_windows_that_prove_nothing() -> None:
    totals = Totals()
    assert totals.bound_95 is None
    for status in (VerdictStatus.PASS, VerdictStatus.INVALID, VerdictStatus.PASS):
        totals.add(LossVerdict(status, Grade.A, packets=1500, lost=0))
    assert (totals.windows, totals.packets) == ({"pass": 2, "invalid": 1}, 3000)
    assert totals.bound_95 == pytest.approx(0.001, rel=0.01)


def test_alert_rules_name_metrics_that_there_are() -> None:
    from prometheus_client import generate_latest

    metrics = WatchMetrics()
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    shown = {family.name for family in families if not family.name.endswith("_created")}
    assert shown == {f"fabricctl_watch_{name}" for name, *_ in METRICS}
    rules = YAML(typ="safe").load(data_path("templates", "alerts", "fabricctl.rules.yml").read_text())
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    named = {one for text in expressions for one in re.findall(r"fabricctl_watch_\w+", text)}
    assert named
    assert {one.removesuffix("_total") for one in named} <= shown
