"""A run folder gives back what it was given, and refuses what it cannot read."""

import json
import resource
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabric._version import __version__
from fabric.errors import EnvironmentMissingError, FabricError
from fabric.serial import Json, SerialError
from fabric.workflow import migrating
from fabric.workflow.runfolder import RunFolder, check_room, read_data, read_document, write_data, write_document

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


def test_what_a_later_release_wrote_is_refused_with_that_release(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for change in ({"schema": 2}, {"data": {"device": "leaf1", "paths": [], "new": 1}}):
        write_document(path, Stage("leaf1", ()))
        before = _rewritten(path, tool="99.1.0", **change).read_text()
        with pytest.raises(FabricError, match=r"Read it with fabricctl 99\.1\.0 or later"):
            read_document(path, Stage)
        assert path.read_text() == before
    with pytest.raises(FabricError, match=r"found schema 2, by .*Read it with the release that wrote it"):
        read_document(_rewritten(path, schema=2, tool=__version__), Stage)
    for schema in (0, -1, True, "1", None, 1.0):
        with pytest.raises(FabricError, match="another schema"):
            read_document(_rewritten(path, schema=schema), Stage)


def test_document_of_an_earlier_schema_is_brought_up_in_memory_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name_it(data: Json) -> Json:  # schema 1 called it `name`
        if not isinstance(data, dict) or "name" not in data:
            raise SerialError("no name")
        return {"device": data["name"]}

    def give_paths(data: Json) -> Json:  # schema 2 had none
        assert isinstance(data, dict)
        return {**data, "paths": ["a"]}

    path = tmp_path / "plan.json"
    write_data(path, "Stage", {"name": "leaf1"})
    first = path.read_text()
    monkeypatch.setattr(migrating, "MIGRATIONS", {"Stage": (name_it, give_paths)})
    assert read_document(path, Stage) == Stage("leaf1", ("a",))
    assert path.read_text() == first
    assert read_data(path, "Stage") == {"device": "leaf1", "paths": ["a"]}
    write_document(path, Stage("leaf1", ("a",)))  # circular: what is read can be written and read again
    assert json.loads(path.read_text())["schema"] == 3
    assert read_document(path, Stage) == Stage("leaf1", ("a",))
    assert read_document(_rewritten(path, schema=2, data={"device": "leaf2"}), Stage) == Stage("leaf2", ("a",))
    with pytest.raises(FabricError, match=r"does not hold a whole Stage .*no name"):
        read_document(_rewritten(path, schema=1, data={}), Stage)
    with pytest.raises(FabricError, match=r"does not hold a whole Stage .*no name"):
        read_data(path, "Stage")


def test_clock_that_was_set_back_overwrites_no_run(tmp_path: Path) -> None:
    folders = [RunFolder.create(tmp_path, "plan", unix_s).path for unix_s in (EPOCH_S, EPOCH_S - 3600, EPOCH_S)]
    assert len(set(folders)) == 3
    assert folders[0].name < folders[2].name


def test_room_is_held_and_given_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.room(4096):
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) >= 4096
    check_room(tmp_path, 1)
    assert list(tmp_path.iterdir()) == []
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(EnvironmentMissingError, match="cannot be written"), folder.room(1001):
            pytest.fail("there was no room")
        with pytest.raises(EnvironmentMissingError, match="cannot be written"):
            check_room(tmp_path, 1001)
        assert folder.write_late("push", Stage("x" * 1001, ()))[0].startswith(f"{tmp_path}/push.json cannot be written")
        assert folder.write_late("push", Stage("x", ())) == ()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["push.json"]
