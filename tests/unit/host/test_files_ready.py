"""Files are laid ready before the first one changes: a full disk, a kill, a torn write; by the agent and by commands."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.errors import HostError
from fabric.host import LocalExecutor, Part, PartChange, RecordedExecutor, apply_part
from fabric.host.actions import Action, PutFile, StageFile
from fabric.host.batch import perform_together
from fabric.host.executor import Executor, perform_all
from tests.unit.host.faulty import run_folder_is_full

Perform = Callable[..., None]


@pytest.fixture(params=[perform_together, perform_all], ids=["agent", "commands"])
def perform(request: pytest.FixtureRequest) -> Perform:
    found: Perform = request.param
    return found


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_file_that_lies_ready_gets_its_name_and_mode(perform: Perform, tmp_path: Path) -> None:
    path = f"{tmp_path}/sub/profile.json"
    perform(LocalExecutor(), (StageFile(path, "ä\n", 0o644), StageFile(path, "old", back=True)), host="gpu1")
    assert names(tmp_path / "sub") == ["profile.json.fabricctl-new", "profile.json.fabricctl-old"]
    perform(LocalExecutor(), (PutFile(path, "ä\n", 0o600), StageFile(path, "x", 0o600)), host="gpu1")
    assert Path(path).read_text(encoding="utf-8") == "ä\n"
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    perform(LocalExecutor(), (PutFile(path, "old", 0o644),), host="gpu1")
    assert Path(path).read_text(encoding="utf-8") == "old"
    assert names(tmp_path / "sub") == ["profile.json", "profile.json.fabricctl-new"]


def test_text_that_was_laid_ready_for_something_else_is_not_taken(perform: Perform, tmp_path: Path) -> None:
    path = f"{tmp_path}/a"
    perform(LocalExecutor(), (StageFile(path, "of a run that was killed"), PutFile(path, "mine")), host="gpu1")
    assert Path(path).read_text(encoding="utf-8") == "mine"


def test_full_disk_is_found_before_the_first_file_changes(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a", "b")]
    Path(paths[0]).write_text("before", encoding="utf-8")
    forward: tuple[Action, ...] = tuple(PutFile(path, "x" * 9) for path in paths)
    back: tuple[Action, ...] = (PutFile(paths[0], "before"),)
    change = PartChange("gpu1", Part.CONNECT, forward, back, "+")
    with run_folder_is_full() as fill:
        fill()  # children inherit it, as all on the host share its disk
        with pytest.raises(HostError, match="was not changed"):
            apply_part(change, LocalExecutor(), redesign=lambda: change, clock=FakeClock())
    assert Path(paths[0]).read_text(encoding="utf-8") == "before"
    assert names(tmp_path) == ["a"]


def test_secret_text_is_shown_nowhere() -> None:
    executor: Executor = RecordedExecutor()
    with pytest.raises(HostError) as error:
        perform_all(executor, (StageFile("/etc/x", "DHHC-1:secret"),), host="gpu1")
    assert "DHHC" not in f"{error.value}{StageFile('/etc/x', 'DHHC-1:secret')!r}"
