"""The secrets' search of `test_secrets`, for the verbs that load a fabric: what agents, studies and evidence leave."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.cli.app import app
from fabric.workflow import RunFolder
from fabric.workflow.tuning import TuneOptions, tune
from fabric.workflow.verifying import VerifyOptions, WatchOptions, verify, watch
from tests.dialogue.canary import Watch, forms_of, found_in_files
from tests.dialogue.verifysite import VerifySite, verify_site

SECRETS = {
    "leaf1": "Cn4ry' swt%l$Qa1-switch",
    "gpu1": 'Cn4ry" hst%l$Qa2-host',
    "kv1": "Cn4ry' tgt%l$Qa3-target",
}


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[VerifySite]:
    with verify_site(tmp_path, SECRETS) as served:
        served.at["verify.load.done"] = served.carry
        yield served


def _kept(site: VerifySite) -> list[Path]:
    """Returns the files that the user keeps secrets in, and what this machine plays the fabric from."""
    return [*site.request.sources, site.folder / "lab"]


def _stop_at_the_second(site: VerifySite) -> Callable[[], None]:
    def stop() -> None:
        if len([one for one in site.recorder.events if one.name == "tune.trial.done"]) == 2:
            raise KeyboardInterrupt

    return stop


def test_no_secret_is_left_told_or_passed_on_by_a_load(site: VerifySite) -> None:
    looked = Watch(SECRETS, folders=(site.request.runs, site.host.folder, site.target.folder))
    verified = VerifyOptions(profile=str(site.profile), scratch=("kv1",), checked=site.checked)
    tuned = TuneOptions(trials=12, seconds=0.5, profile=str(site.profile), checked=site.checked, quiesce_s=0.1)
    with looked.running():
        done = verify(site.request, site.environment, verified)
        watch(site.request, site.environment, replace(verified, scratch=()), WatchOptions(total_s=40.0))
        site.at["tune.trial.done"] = _stop_at_the_second(site)
        with pytest.raises(KeyboardInterrupt):
            tune(site.request, site.environment, tuned)
        site.servers["kv1"].cut()
        broken = verify(site.request, site.environment, verified)
    folders = [RunFolder(Path(one.summary.run_folder)).path for one in (done, broken)]
    for number, run in enumerate(folders):
        said = CliRunner().invoke(app, ["support-bundle", str(run), "-o", str(site.folder / f"bundle{number}.tar.gz")])
        assert said.exit_code == 0, said.output

    told = "".join(f"{one.name} {one.device} {one.message} {one.data}" for one in site.recorder.events)
    told += repr([one.commands for one in site.servers.values()])
    assert [name for name, secret in SECRETS.items() if any(one in told.encode() for one in forms_of(secret))] == []
    assert sorted(looked.found) == []
    assert found_in_files([site.folder], SECRETS, but=_kept(site)) == []
    assert looked.looks > 50
    assert len(looked.seen) > 2, "agents ran meanwhile"
    assert {path.name.partition("-")[2].partition("-")[2] for path in site.request.runs.iterdir()} >= {"verify", "tune"}
