import sys
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.lab.site import LabFolder, Tools, bring_up, open_site, site, take_down
from fabric.lab.site.states import WarmStates, qemu_version
from fabric.lab.vm import Accelerator, Machine, MachineSpec
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


def test_warm_state_whose_machine_does_not_go_on_is_used_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each `lab up` would fail alike, for `--fresh` leaves states as they are. The machine stands for QEMU's."""

    class Stuck:
        spec = MachineSpec("host1")

        def go_on(self) -> None:
            raise HostError("QEMU hung up", where="host1")

    used = tools("", tmp_path)
    warm = WarmStates(used.cache, used.image, used.accelerator, qemu_version(), used.clock)
    (used.cache / "states" / warm.key(Stuck.spec)).mkdir(parents=True)
    monkeypatch.setattr(site, "_restored", lambda *_: Stuck())
    monkeypatch.setattr(Machine, "go_on", Stuck.go_on)
    folder = begun(tmp_path / "lab")
    with pytest.raises(HostError, match="QEMU hung up"):
        site._start_machines(folder, [Stuck.spec], used, is_fresh=False)
    assert warm.find(Stuck.spec) is None
