"""`support-bundle` as a shell sees it."""

import json
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.cli.app import app
from fabric.workflow.runfolder import RunFolder, write_data

RUNNER = CliRunner()


@pytest.fixture(name="run")
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FABRICCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    run = RunFolder.create(Path("runs"), "check", 100.0).path
    write_data(run / "summary.json", "Summary", {"roles": {"acme-leaf1": "leaf"}})
    return run


def test_what_is_in_it_is_said_and_then_it_is_written(run: Path) -> None:
    result = RUNNER.invoke(app, ["support-bundle", "-o", "out.tar.gz"])
    assert result.exit_code == 0, result.output
    assert result.output.index("summary.json") < result.output.index("wrote out.tar.gz")
    with tarfile.open("out.tar.gz") as archive:
        assert f"support/{run}/summary.json" in archive.getnames()
    again = RUNNER.invoke(app, ["support-bundle", "-o", "out.tar.gz"])
    assert again.exit_code == 2
    assert "there already" in again.output


def test_list_writes_nothing(run: Path) -> None:
    result = RUNNER.invoke(app, ["support-bundle", str(run), "--list", "--anonymize"])
    assert result.exit_code == 0, result.output
    assert "summary.json" in result.output
    assert sorted(path.name for path in Path().iterdir()) == ["runs"]


def test_json_is_one_document_and_pseudonyms_go_on(run: Path) -> None:
    argv = ["support-bundle", "--anonymize", "--json", "--map", "map.json"]
    documents = []
    for output in ("one.tar.gz", "two.tar.gz"):
        result = RUNNER.invoke(app, [*argv, "-o", output])
        assert result.exit_code == 0, result.output
        documents.append(json.loads(result.stdout))
    assert [one["written"] for one in documents] == ["one.tar.gz", "two.tar.gz"]
    assert documents[0]["manifest"]["data"]["anonymized"] is True
    assert "acme-leaf1" in Path("map.json").read_text()
    assert "acme-leaf1" not in json.dumps(documents)


def test_wrong_options_are_refused(run: Path) -> None:
    assert RUNNER.invoke(app, ["support-bundle", "--map", "map.json"]).exit_code == 2
    assert RUNNER.invoke(app, ["support-bundle", "nowhere"]).exit_code == 2
    Path("map.json").write_text("{}")
    assert RUNNER.invoke(app, ["support-bundle", "--anonymize", "--map", "map.json"]).exit_code == 2
