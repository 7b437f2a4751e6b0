"""Files of ours: only what differs is put, and the way back is exact."""

import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.host.actions import PutFile
from fabric.host.executor import Executor, LocalExecutor, RecordedExecutor, perform_all
from fabric.host.files import FileChange, changed_files, restoring, standing
from tests.unit.host.nics import said


def snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    return {path.name: (path.read_text(), stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()}


def changed(files: Sequence[PutFile], executor: Executor) -> tuple[FileChange, ...]:
    return changed_files(files, standing([one.path for one in files], executor))


def test_second_time_nothing_changes_and_the_way_back_is_exact(tmp_path: Path) -> None:
    executor = LocalExecutor()
    (tmp_path / "changed").write_text("old\n")
    (tmp_path / "changed").chmod(0o640)
    (tmp_path / "same").write_text("same\n")
    (tmp_path / "same").chmod(0o644)
    (tmp_path / "mode").write_text("mode\n")
    (tmp_path / "mode").chmod(0o666)
    before = snapshot(tmp_path)
    files = tuple(PutFile(f"{tmp_path}/{name}", f"{name}\n") for name in ("changed", "same", "mode", "new"))
    changes = changed(files, executor)
    assert [Path(one.path).name for one in changes] == ["changed", "mode", "new"]
    perform_all(executor, (one.after for one in changes), host="gpu1")
    assert changed(files, executor) == ()
    assert snapshot(tmp_path)["new"] == ("new\n", 0o644)
    perform_all(executor, restoring(changes), host="gpu1")
    assert snapshot(tmp_path) == before


def test_file_that_two_parts_want_is_put_once(tmp_path: Path) -> None:
    agent = PutFile(f"{tmp_path}/agent.py", "x\n")
    assert len(changed((agent, agent), LocalExecutor())) == 1


def test_old_secret_is_in_no_repr(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("DHHC-1:old")
    assert "DHHC" not in repr(changed((PutFile(f"{tmp_path}/key", "DHHC-1:new"),), LocalExecutor()))


def test_file_that_cannot_be_read_is_not_replaced() -> None:
    executor = RecordedExecutor({("stat", "-L", "-c", "%a", "--", "/etc/x"): said("600\n")})
    with pytest.raises(HostError, match="cannot be read"):
        changed((PutFile("/etc/x", ""),), executor)
