"""A study end to end without VMs: agents over SSH, NVMe/TCP, an emulated switch, the inventory's diff."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.cli import tune as tune_module
from fabric.cli.app import app
from fabric.errors import FabricError, HostError
from fabric.intent import load
from fabric.policy import ShardPolicy, ShardProfile, profile_from_text, profile_policy, profile_to_text
from fabric.tune import Goal, PathModel, Space
from fabric.verify import judge
from fabric.workflow import RunFolder, Verdict
from fabric.workflow.tuning import TuneOptions, check_profile, tune
from fabric.workflow.tuning.measuring import Measured
from fabric.workflow.tuning.options import load_options
from fabric.workflow.tuning.study import Study, digest_of
from fabric.workflow.tuning.writing import edits_of, write_edits
from fabric.workflow.verifying.setting import asked_of
from tests.dialogue.verifysite import VerifySite, verify_site

TRIALS = 12  # the fewest that a study may have


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[VerifySite]:
    with verify_site(tmp_path) as served:
        served.at["verify.load.done"] = served.carry
        yield served


def options(site: VerifySite) -> TuneOptions:
    return TuneOptions(
        trials=TRIALS,
        seconds=0.5,
        profile=str(site.profile),
        checked=site.checked,
        seed=7,
        quiesce_s=0.1,
        marks_share=1.0,
    )


def trials_of(folder: Path) -> int:
    return len((folder / "journal.jsonl").read_text().splitlines()) - 1


@pytest.mark.slow
def test_a_study_chooses_writes_resumes_and_holds(site: VerifySite) -> None:
    inventory = site.request.sources[0]
    before = inventory.read_text()

    def stop() -> None:
        if len([one for one in site.recorder.events if one.name == "tune.trial.done"]) == 3:
            raise KeyboardInterrupt

    site.at["tune.trial.done"] = stop
    with pytest.raises(KeyboardInterrupt):
        tune(site.request, site.environment, options(site))
    (folder,) = site.request.runs.glob("*-tune")
    assert trials_of(folder) == 3
    assert list((site.host.folder / "tmp").iterdir()) == []  # the agents are gone, and all that they had
    told = [one.message for one in site.recorder.events if one.name == "tune.stopped.started"]
    assert str(folder) in told[0]

    del site.at["tune.trial.done"]
    shown = tune(site.request, site.environment, options(site), resume=folder)
    assert shown.profile is not None, shown.report
    assert not shown.is_written
    assert load(site.request.sources).fabric.hosts[0].shard_profile is None
    commands = len(site.servers["gpu1"].commands)
    done = tune(site.request, site.environment, options(site), resume=folder, write=True)
    assert (done.profile, done.diff, done.is_written) == (shown.profile, shown.diff, True)
    assert len(site.servers["gpu1"].commands) == commands  # it had been reviewed: nobody was asked again
    assert done.profile is not None
    assert done.summary.verdict is Verdict.OK
    assert trials_of(folder) == TRIALS
    assert done.profile.conditions is not None
    assert done.profile.conditions.packets_lost == 0
    assert done.profile.conditions.packets > 0
    assert done.profile.conditions.run == folder.name
    assert inventory.read_text() == before  # the variable went into a file of its own
    loaded = load(site.request.sources)
    assert loaded.fabric.hosts[0].shard_profile == done.profile
    assert profile_from_text((folder / "shard-profile.json").read_text()) == done.profile
    assert profile_policy(folder / "shard-profile.json") == done.profile.policy
    assert "fabric_shard_profile" in (folder / "inventory.diff").read_text()
    report = json.loads((folder / "report.json").read_text())
    assert [one["title"] for one in report["sections"]] == ["Tuning", "Inventory, written"]
    for name in ("scaling.svg", "pareto.svg", "tune.txt", "report.html", "trials/000.json"):
        assert (folder / name).stat().st_size > 0, name

    slow = replace(done.profile.conditions, bytes_per_s=1, p99_ns=10**12)  # what holds by a wide margin
    _rewrite(site, replace(done.profile, conditions=slow))
    assert check_profile(site.request, site.environment, options(site)).why == ()
    _rewrite(site, replace(done.profile, conditions=replace(slow, bytes_per_s=10**12)))
    stale = check_profile(site.request, site.environment, options(site))
    assert stale.summary.verdict is Verdict.FINDINGS
    assert any("GB/s" in one for one in stale.why)


def _rewrite(site: VerifySite, profile: ShardProfile) -> None:
    write_edits(edits_of(site.request.sources, profile, ("gpu1",), is_all=True))


@pytest.mark.slow
def test_trials_that_lose_are_told_and_nothing_is_deployed(site: VerifySite) -> None:
    site.at["verify.load.done"] = lambda: site.carry(1000, lost=1)
    done = tune(site.request, site.environment, options(site), write=True)
    assert done.profile is None
    assert done.summary.verdict is Verdict.FINDINGS
    assert not done.diff
    told = [one.message for one in site.recorder.events if one.name == "tune.loss.failed"]
    assert "lost 1" in told[0]
    why = [one.message for one in site.recorder.events if one.name == "tune.verdict.failed"]
    assert why[0].startswith("loss-on-cable at ")
    folder = RunFolder(Path(done.summary.run_folder))
    first = folder.read("trials/000", Measured)
    assert first.evidence is not None
    assert judge(first.evidence) == first.verdict
    assert {one.cause for one in first.verdict.findings} == {"loss-on-cable"}


def test_a_fabric_that_fails_its_checks_is_not_tuned(site: VerifySite) -> None:
    done = tune(site.request, site.environment, replace(options(site), checked=None))
    assert done.report is None
    assert done.summary.verdict is Verdict.FINDINGS
    assert not [one for one in site.recorder.events if one.name == "verify.load.started"]


def test_a_host_that_is_lost_ends_the_run_and_the_study_can_go_on(site: VerifySite) -> None:
    def cut() -> None:
        if [one for one in site.recorder.events if one.name == "tune.trial.started"]:
            site.servers["gpu1"].cut()

    site.at["verify.load.started"] = cut
    with pytest.raises(HostError) as lost:
        tune(site.request, site.environment, replace(options(site), seconds=20.0))
    assert "--resume" in lost.value.remedy
    (folder,) = site.request.runs.glob("*-tune")
    assert RunFolder(folder).read("study", Study).trials == TRIALS


def test_a_check_without_a_profile_is_refused(site: VerifySite) -> None:
    with pytest.raises(FabricError, match="no profile"):
        check_profile(site.request, site.environment, options(site))


def test_the_command_refuses_wrong_checks_and_ends_by_who_must_act(
    site: VerifySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune_module, "environment_of", lambda _: site.environment)
    named = [one for source in site.request.sources for one in ("-i", str(source))]
    words = ["tune", *named, "--profile", str(site.profile), "--runs", str(site.request.runs)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1, done.output
    assert "checks failed" in done.output


def test_a_variable_that_wins_elsewhere_is_told_and_the_files_go_back(site: VerifySite) -> None:
    """A study that has ended is written without contacting anybody: so a folder by hand serves here."""
    inventory = site.request.sources[0]
    inventory.write_text(
        inventory.read_text().replace(
            "    gpu1:\n      fabric_nics", "    gpu1:\n      fabric_shard_profile: {}\n      fabric_nics"
        )
    )
    asked = asked_of(replace(site.request, hosts=True), site.environment, load_options(options(site)))
    folder = RunFolder.create(site.request.runs, "tune", 0.0)
    limits, space = options(site).limits, Space.between(queues=4, depth=8, mdts_bytes=65536)
    study = Study(
        asked.loaded.fabric.name, digest_of(asked.plan), Goal.THROUGHPUT, limits, TRIALS, 0.5, str(site.profile), (),
        gentle=False, hosts=("gpu1",), seed=7, model=PathModel(1e9, 1000, 1000, 1000), space=space,
    )  # fmt: skip
    folder.write("study", study)
    folder.write_text("shard-profile.json", profile_to_text(ShardProfile(ShardPolicy(queues=2))))
    with pytest.raises(FabricError, match="another place") as refused:
        tune(site.request, site.environment, options(site), resume=folder.path, write=True)
    assert refused.value.where == "gpu1"
    assert not (inventory.parent / "group_vars").joinpath("hosts.yml").exists()
    folder.write("study", replace(study, fabric_digest="0"))
    with pytest.raises(FabricError, match="another fabric, plan"):
        tune(site.request, site.environment, options(site), resume=folder.path)
    assert site.servers["gpu1"].commands == []
