import subprocess
import sys
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.lab.site import LabFolder, Login, lab_path, take_down
from fabric.lab.vm import Accelerator, Image, processes

from .test_spec import SPEC

IMAGE = Image("0" * 16, Path("/cache/0"))


def begun(path: Path) -> LabFolder:
    path.mkdir()
    folder = LabFolder(path)
    folder.begin(SPEC, IMAGE, Accelerator.TCG)
    return folder


def test_folder_is_named_or_in_the_users_state() -> None:
    assert lab_path({"FABRICCTL_LAB": "/x"}) == Path("/x")
    assert lab_path({"XDG_STATE_HOME": "/s"}) == Path("/s/fabricctl/lab")


def test_second_change_at_the_same_time_is_refused(tmp_path: Path) -> None:
    one, other = LabFolder(tmp_path / "lab"), LabFolder(tmp_path / "lab")
    with one.locked(), pytest.raises(HostError, match="changing this lab"), other.locked():
        pass
    with other.locked():
        assert (tmp_path / "lab").stat().st_mode & 0o777 == 0o700


def test_logins_are_private_and_come_back(tmp_path: Path) -> None:
    folder = begun(tmp_path / "lab")
    logins = {"leaf1": Login("127.0.0.1", 4711, "admin", "/k", password="secret")}
    folder.write_logins(logins)
    assert folder.logins() == logins
    assert (folder.path / "running.json").stat().st_mode & 0o777 == 0o600
    assert "secret" not in repr(logins)


def test_process_that_nobody_noted_is_found_by_its_token_and_ended(tmp_path: Path) -> None:
    folder = begun(tmp_path / "lab")
    record = folder.record()
    assert record is not None
    code = "import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, f"fabric-{record.token}"]) as process:
        found = processes.record_of(process.pid, record.token)
        assert found is not None

        assert take_down(folder.path) == ("leaf1", "leaf2")

        assert not processes.is_running(found)
    assert not folder.path.exists()


def test_strangers_files_stay(tmp_path: Path) -> None:
    folder = begun(tmp_path / "lab")
    (folder.path / "notes.txt").write_text("mine", encoding="utf-8")
    take_down(folder.path)
    assert [one.name for one in folder.path.iterdir()] == ["notes.txt"]


def test_nothing_to_take_down_is_no_error(tmp_path: Path) -> None:
    assert take_down(tmp_path / "lab") == ()
    assert not (tmp_path / "lab").exists()
