"""A run folder gives back what it was given, and refuses what it cannot read."""

import json
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabric.errors import EnvironmentMissingError, FabricError
from fabric.workflow.runfolder import RunFolder, read_document, write_document

EPOCH_S = 1_795_972_282.0  # 2026-11-29T17:11:22Z


@dataclass(frozen=True, slots=True)
class Stage:
    device: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Other:
    device: str


def test_stage_comes_back_equal_and_only_the_owner_can_read_it(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "plan", EPOCH_S)
    written = folder.write("plan", Stage("leaf1", ("a", "b")))
    assert folder.read("plan", Stage) == Stage("leaf1", ("a", "b"))
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert json.loads(written.read_text())["schema"] == 1
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_two_runs_of_one_second_get_two_folders(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, "plan", EPOCH_S)
    second = RunFolder.create(tmp_path, "plan", EPOCH_S)
    assert (first.path.name, second.path.name) == ("20261129-171122-plan", "20261129-171122-plan-1")


def test_unwritable_root_is_an_environment_error(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(EnvironmentMissingError, match="cannot be written"):
        RunFolder.create(blocker / "runs", "plan", EPOCH_S)
    with pytest.raises(EnvironmentMissingError, match=r"cannot be written .*--runs"):
        write_document(tmp_path / "nowhere" / "x.json", Stage("a", ()))


def test_text_made_from_the_json_stands_beside_it(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "plan", EPOCH_S)
    assert folder.write_text("report.html", "<p>ok</p>").read_text() == "<p>ok</p>"


def _rewritten(path: Path, **change: object) -> Path:
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    return path


def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(FabricError, match="there is no"):
        read_document(path, Stage)
    path.write_bytes(b"\xff{")
    with pytest.raises(FabricError, match="cannot be read as JSON"):
        read_document(path, Stage)
    path.write_text("[]")
    with pytest.raises(FabricError, match="found list, expected Stage"):
        read_document(path, Stage)
    write_document(path, Other("leaf1"))
    with pytest.raises(FabricError, match="found Other, expected Stage"):
        read_document(path, Stage)
    write_document(path, Stage("leaf1", ()))
    with pytest.raises(FabricError, match="another schema"):
        read_document(_rewritten(path, schema=99), Stage)
    with pytest.raises(FabricError, match="does not hold a whole Stage"):
        read_document(_rewritten(path, schema=1, data={"device": 1}), Stage)
