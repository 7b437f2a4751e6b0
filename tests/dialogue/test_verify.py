"""A verification end to end without VMs: sessions, agents, load, counters, verdict, documents."""

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.cli import verify as verify_module
from fabric.cli.app import app
from fabric.errors import PlanError, UnsupportedFeatureError
from fabric.qos import UNKNOWN
from fabric.verify import Evidence, Grade, VerdictStatus, judge
from fabric.workflow import RunFolder, Verdict
from fabric.workflow.verifying import VerifyOptions, WatchOptions, prove, verify, watch
from fabric.workflow.verifying.watchmetrics import METRICS
from tests.dialogue.verifysite import NQN, VerifySite, verify_site
from tests.unit.engine.load.test_bulk import free_port


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[VerifySite]:
    with verify_site(tmp_path) as served:
        yield served


def options(site: VerifySite, *, scratch: tuple[str, ...] = ("kv1",)) -> VerifyOptions:
    return VerifyOptions(profile=str(site.profile), scratch=scratch, checked=site.checked)


def test_nothing_lost_is_a_pass_with_its_bound_documents_and_report(site: VerifySite) -> None:
    site.at["verify.load.done"] = lambda: site.carry(200_000)
    done = verify(site.request, site.environment, options(site))
    verdict = done.verdict
    assert verdict.status is VerdictStatus.PASS, (verdict.findings, verdict.invalid)
    assert verdict.packets == 400_000
    assert verdict.bound_95 is not UNKNOWN
    assert verdict.bound_95 == pytest.approx(3 / 400_000, rel=0.01)
    assert done.summary.verdict is Verdict.OK
    run = RunFolder(Path(done.summary.run_folder))
    assert judge(run.read("evidence", Evidence)) == verdict
    report = json.loads((run.path / "report.json").read_text())
    assert report["sections"][0]["lines"][0].startswith("PASS")
    assert "PASS" in (run.path / "report.html").read_text()
    (stream,) = [one for job in run.read("evidence", Evidence).jobs for one in job.streams]
    assert (stream.host, stream.target, stream.checked) == ("gpu1", "kv1", True)
    assert stream.reads > 0
    assert list((site.host.folder / "tmp").iterdir()) == []


def test_a_lost_packet_is_a_fail_that_names_the_way(site: VerifySite) -> None:
    site.at["verify.load.done"] = lambda: site.carry(1000, lost=1)
    done = verify(site.request, site.environment, options(site))
    assert done.verdict.status is VerdictStatus.FAIL
    assert done.verdict.lost == 1
    assert {one.cause for one in done.verdict.findings} == {"loss-on-cable"}
    assert done.summary.verdict is Verdict.FINDINGS


def test_the_load_is_repeated_until_as_many_packets_as_asked_have_gone(site: VerifySite) -> None:
    site.at["verify.load.done"] = lambda: site.carry(600)
    done = verify(site.request, site.environment, replace(options(site), packets=2000))
    assert done.verdict.status is VerdictStatus.PASS, done.verdict.invalid
    assert done.verdict.packets == 2400
    site.at.clear()
    none = verify(site.request, site.environment, replace(options(site), packets=2000))
    assert none.verdict.status is VerdictStatus.INVALID


def test_without_scratch_nothing_is_written_and_the_grade_says_so(site: VerifySite) -> None:
    before = site.disk.read_bytes()
    site.at["verify.load.done"] = site.carry
    done = verify(site.request, site.environment, options(site, scratch=()))
    assert site.disk.read_bytes() == before
    assert done.verdict.status is VerdictStatus.PASS, done.verdict.invalid
    assert done.verdict.grade is not Grade.A
    assert any("payload" in one for one in done.verdict.unobservable)
    assert any("--scratch" in one for one in done.summary.limits)


def test_counters_that_are_not_there_lower_the_grade_and_are_listed(site: VerifySite) -> None:
    site.at["verify.load.done"] = site.carry
    site.target.without_counters()
    site.at["verify.load.started"] = site.target.without_counters
    site.at["verify.quiesce.started"] = site.target.without_counters
    done = verify(site.request, site.environment, options(site))
    assert done.verdict.status is not VerdictStatus.PASS or done.verdict.grade is not Grade.A
    assert any("kv1" in one for one in done.verdict.unobservable)


def test_an_agent_that_is_lost_makes_the_run_invalid(site: VerifySite) -> None:
    site.at["load.progress"] = site.servers["gpu1"].cut
    done = verify(site.request, site.environment, replace(options(site), seconds=20))
    assert done.verdict.status is VerdictStatus.INVALID
    assert any("gpu1" in one for one in done.verdict.invalid)
    assert done.summary.verdict is Verdict.FAILED


def test_a_fabric_that_fails_the_checks_is_not_loaded_unless_told(site: VerifySite) -> None:
    refused = verify(site.request, site.environment, replace(options(site), checked=None))
    assert refused.verdict.status is VerdictStatus.INVALID
    assert "there was no load" in refused.verdict.invalid
    assert not [event for event in site.recorder.events if event.name == "verify.load.started"]
    site.at["verify.load.done"] = site.carry
    forced = verify(site.request, site.environment, replace(options(site), checked=None, go_on=True))
    assert [event for event in site.recorder.events if event.name == "verify.load.started"]
    assert forced.verdict.status is VerdictStatus.FAIL  # of the checks


def test_scratch_that_names_nothing_is_refused_before_anybody_is_contacted(site: VerifySite) -> None:
    with pytest.raises(PlanError) as refused:
        verify(site.request, site.environment, options(site, scratch=("kv2",)))
    assert f"{NQN}/1" in refused.value.expected
    assert site.servers["gpu1"].commands == []


def test_the_control_is_refused_where_nobody_can_drop_a_packet(
    site: VerifySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICCTL_LAB", str(site.folder / "no-lab"))
    with pytest.raises(UnsupportedFeatureError) as refused:
        prove(site.request, site.environment, options(site))
    assert "lab" in refused.value.remedy
    assert site.servers["gpu1"].commands == []


def test_a_watch_counts_windows_until_its_time_is_over(site: VerifySite) -> None:
    site.at["verify.load.done"] = site.carry
    found = watch(site.request, site.environment, options(site, scratch=()), WatchOptions(total_s=40.0))
    (verdict,) = found.windows
    assert verdict[0] == "pass"
    assert verdict[1] >= 2
    assert found.packets == 2000 * verdict[1]
    assert found.bound_95 == pytest.approx(3 / found.packets, rel=0.01)


def test_a_watch_writes_its_scratch_before_it_reads_it(site: VerifySite) -> None:
    before = site.disk.read_bytes()
    site.at["verify.load.done"] = site.carry
    found = watch(site.request, site.environment, options(site), WatchOptions(total_s=20.0))
    assert [name for name, _ in found.windows] == ["pass"], found.last and found.last.verdict.findings
    assert site.disk.read_bytes() != before


def test_a_watch_ends_on_a_loss_and_has_served_its_metrics_until_then(site: VerifySite) -> None:
    scraped: list[str] = []
    windows = iter((0, 1))
    port = free_port()

    def judged() -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            scraped.append(answer.read().decode())

    site.at["verify.load.done"] = lambda: site.carry(1000, lost=next(windows))
    site.at["verify.window.done"] = judged
    found = watch(site.request, site.environment, options(site, scratch=()), WatchOptions(listen=("127.0.0.1", port)))
    assert found.windows == (("pass", 1), ("fail", 1))
    assert found.last is not None
    assert found.last.summary.verdict is Verdict.FINDINGS
    first, last = scraped
    assert "fabricctl_watch_packets_total 2000.0" in first
    assert "fabricctl_watch_lost_packets_total 0.0" in first
    assert "fabricctl_watch_lost_packets_total 1.0" in last
    assert 'fabricctl_watch_reads_total{host="gpu1",target="kv1"}' in last
    for name, *_ in METRICS:
        assert f"fabricctl_watch_{name}" in last, name


def test_a_host_that_began_anew_is_an_invalid_window_and_the_watch_goes_on(site: VerifySite) -> None:
    def cut_once() -> None:
        del site.at["load.progress"]
        site.servers["gpu1"].cut()

    site.at["load.progress"] = cut_once
    site.at["verify.load.done"] = site.carry
    found = watch(site.request, site.environment, options(site, scratch=()), WatchOptions(total_s=90.0))
    assert dict(found.windows).get("invalid") == 1
    assert dict(found.windows).get("pass", 0) >= 1
    told = [one.message for one in site.recorder.events if one.name == "verify.window.done"]
    (why,) = [one for one in told if one.startswith("invalid; ")]
    assert "gpu1" in why.split("; ", 2)[2], "a window that proves nothing says why"


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--packets", "5000"), 4)])
def test_the_command_ends_by_who_must_act(
    site: VerifySite, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int
) -> None:
    site.at["verify.load.done"] = lambda: site.carry(1000 if not words else 0)
    monkeypatch.setattr(verify_module, "environment_of", lambda _: site.environment)
    done = CliRunner().invoke(app, [*typed(site), "--scratch", "kv1", *words])
    assert done.exit_code == code, done.output
    assert ("PASS  grade" if not words else "INVALID  grade") in done.output
    assert "report: " in done.output


def typed(site: VerifySite) -> list[str]:
    named = [one for source in site.request.sources for one in ("-i", str(source))]
    named += ["--profile", str(site.profile), "--checked", str(site.checked), "--runs", str(site.request.runs)]
    return ["verify", *named]


def test_the_control_elsewhere_than_in_the_lab_is_exit_3(site: VerifySite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "environment_of", lambda _: site.environment)
    monkeypatch.setenv("FABRICCTL_LAB", str(site.folder / "no-lab"))
    done = CliRunner().invoke(app, [*typed(site), "--prove"])
    assert done.exit_code == 3, done.output
    assert "one packet cannot be dropped on purpose here" in done.output


def test_a_watch_that_loses_is_exit_1_with_its_document(site: VerifySite, monkeypatch: pytest.MonkeyPatch) -> None:
    site.at["verify.load.done"] = lambda: site.carry(1000, lost=1)
    monkeypatch.setattr(verify_module, "environment_of", lambda _: site.environment)
    done = CliRunner().invoke(app, [*typed(site), "--watch", "--json"])
    assert done.exit_code == 1, done.output
    document = json.loads(done.stdout)
    assert document["windows"] == [["fail", 1]]
    assert document["last"]["verdict"]["lost"] == 1
    assert document["last"]["summary"]["verb"] == "watch"
