import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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


@contextmanager
def sleeper(token: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yields a process that has the token in its command line, which one that has just begun has not yet."""
    argv = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", f"fabric-{token}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


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
    with sleeper(record.token) as process:
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


def test_folder_of_the_users_state_is_absolute_however_it_is_named() -> None:
    assert lab_path({"XDG_STATE_HOME": "state"}).is_absolute()  # the lab's process does not stay where it was started


@pytest.mark.parametrize("text", ["{", "[]", '{"spec": 1, "token": "0123456789abcdef"}'])
def test_lab_that_another_version_left_is_seen_and_can_be_removed(tmp_path: Path, text: str) -> None:
    folder = begun(tmp_path / "lab")
    (folder.path / "lab.json").write_text(text, encoding="utf-8")
    assert folder.record() is None
    assert "lab.json" in folder.remains()
    assert take_down(folder.path) == ("lab.json",)
    assert not folder.path.exists()
    assert folder.remains() == ()


def test_process_of_a_lab_that_another_version_left_is_ended(tmp_path: Path) -> None:
    folder = begun(tmp_path / "lab")
    token = "0123456789abcdef"
    (folder.path / "lab.json").write_text(json.dumps({"schema": 99, "token": token}), encoding="utf-8")
    with sleeper(token) as process:
        found = processes.record_of(process.pid, token)
        assert found is not None
        take_down(folder.path)
        assert not processes.is_running(found)


@pytest.mark.parametrize("text", ["[]", '{"leaf1": {}}', '{"leaf1": 1}'])
def test_logins_of_another_version_are_none(tmp_path: Path, text: str) -> None:
    folder = begun(tmp_path / "lab")
    (folder.path / "running.json").write_text(text, encoding="utf-8")
    assert folder.logins() == {}


def test_folder_that_is_no_labs_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "machines").mkdir(parents=True)
    (home / "machines" / "mine").touch()
    home.chmod(0o755)
    assert take_down(home) == ()
    with pytest.raises(HostError, match="is not the lab's") as caught, LabFolder(home).locked():
        pass
    assert "FABRICCTL_LAB" in caught.value.remedy
    assert [one.name for one in home.iterdir()] == ["machines"]
    assert (home / "machines" / "mine").exists()
    assert home.stat().st_mode & 0o777 == 0o755


def test_lock_whose_file_was_removed_meanwhile_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One waits between opening the file and locking it, while the other ends the lab: nobody else sees that lock."""
    folder = LabFolder(tmp_path / "lab")
    flock, removed = fcntl.flock, list[int]()

    def late(descriptor: int, how: int) -> None:
        if not removed:
            removed.append(1)
            (folder.path / "lock").unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with folder.locked(), pytest.raises(HostError, match="changing this lab"), LabFolder(folder.path).locked():
        pass
    assert removed


def test_who_changes_a_lab_can_be_told(tmp_path: Path) -> None:
    folder = LabFolder(tmp_path / "lab")
    assert not folder.is_changing()
    with folder.locked():
        assert folder.is_changing()
    assert not folder.is_changing()


def test_many_write_one_private_file_and_it_is_whole(tmp_path: Path) -> None:
    folder = begun(tmp_path / "lab")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: folder.write_private("leaf1.password", "secret\n"), range(200)))
    assert (folder.path / "leaf1.password").read_text(encoding="utf-8") == "secret\n"
    take_down(folder.path)
    assert not folder.path.exists()


def test_what_a_killed_writer_left_goes_with_the_lab(tmp_path: Path) -> None:
    folder = begun(tmp_path / "lab")
    for name in (".lab.json.0123.part", "process.json.part", "leaf1.password", "leaf1.askpass"):
        (folder.path / name).touch()
    take_down(folder.path)
    assert not folder.path.exists()
