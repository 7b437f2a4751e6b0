import sys
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.lab.site import LabFolder, Tools, bring_up, open_site, take_down
from fabric.lab.vm import Accelerator
from fabric.observe import Recorder
from fabric.workflow.environment import SystemClock

from .test_folder import IMAGE, begun
from .test_spec import SPEC


def tools(command: str, folder: Path, recorder: Recorder | None = None) -> Tools:
    words = (sys.executable, "-c", command)
    return Tools(IMAGE, Accelerator.TCG, folder / "cache", words, SystemClock(), recorder or Recorder())


def test_process_that_ends_at_once_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="did not come up: it ended") as caught:
        bring_up(tmp_path / "lab", SPEC, tools("raise SystemExit('no port is free')", tmp_path))
    assert "no port is free" in caught.value.found
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_lab_left_is_cleared_before_the_next(tmp_path: Path) -> None:
    begun(tmp_path / "lab")
    recorder = Recorder()
    with pytest.raises(HostError):
        bring_up(tmp_path / "lab", SPEC, tools("", tmp_path, recorder))
    assert recorder.events[0].message == "cleared what a dead lab left: leaf1, leaf2"


def test_dead_lab_cannot_be_opened(tmp_path: Path) -> None:
    folder = begun(tmp_path / "lab")
    with pytest.raises(HostError, match="no lab runs here"):
        open_site(folder.path, tools("", tmp_path))
    assert take_down(folder.path) == ("leaf1", "leaf2")
    assert not LabFolder(folder.path).is_ours()
