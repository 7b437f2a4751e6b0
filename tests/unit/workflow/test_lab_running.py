"""States of a lab's folder that need no virtual machine: what status, down and open make of them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.lab.site import LabFolder
from fabric.lab.vm import Accelerator, Image
from fabric.workflow import Environment
from fabric.workflow.lab import lab_down, lab_status, lab_up, opened_lab, running_lab
from tests.unit.lab.site.test_spec import SPEC

pytestmark = pytest.mark.traces_processes

IMAGE = Image("0" * 16, Path("/cache/0"))


@pytest.fixture
def folder(tmp_path: Path) -> LabFolder:
    return LabFolder(tmp_path / "lab")


def begin(folder: LabFolder) -> str:
    return folder.begin(SPEC, IMAGE, Accelerator.TCG).token


@contextmanager
def alive(folder: LabFolder, token: str) -> Iterator[None]:
    """A lab's process that does not answer, or not yet."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", f"fabric-{token}"]) as process:
        folder.note_process(process.pid, token)
        try:
            yield
        finally:
            process.kill()


def test_nothing_is_none(folder: LabFolder) -> None:
    assert lab_status(Environment(), folder.path).state == "none"


def test_lab_that_is_coming_up_is_neither_dead_nor_an_error(folder: LabFolder) -> None:
    with folder.locked():
        token = begin(folder)
        assert lab_status(Environment(), folder.path).state == "changing"
        with alive(folder, token):
            status = lab_status(Environment(), folder.path)
    assert status.state == "changing"
    assert {one.name: one.running for one in status.devices} == {
        "leaf1": True,
        "leaf2": True,
        "host1": False,
        "target1": False,
    }


def test_lab_whose_starter_was_killed_is_dead(folder: LabFolder) -> None:
    with folder.locked():
        token = begin(folder)
    with alive(folder, token):
        assert lab_status(Environment(), folder.path).state == "dead"
        lab_down(folder.path)


def test_lab_of_another_version_is_told_and_refuses_with_the_way_out(folder: LabFolder) -> None:
    with folder.locked():
        begin(folder)
        (folder.path / "lab.json").write_text('{"schema": 2}', encoding="utf-8")
    status = lab_status(Environment(), folder.path)
    assert status.state == "unreadable"
    assert "lab.json" in status.left
    with pytest.raises(HostError, match="cannot be read") as caught:
        opened_lab(Environment(), folder.path)
    assert "fabricctl lab down" in caught.value.remedy
    lab_down(folder.path)
    assert lab_status(Environment(), folder.path).state == "none"


def test_second_lab_is_refused_and_the_first_one_lives(folder: LabFolder) -> None:
    with folder.locked():
        token = begin(folder)
    with alive(folder, token):
        with pytest.raises(HostError, match="a lab runs here already"):
            lab_up(SPEC, Environment(), folder=folder.path)
        with (
            pytest.raises(HostError, match="a lab runs here already"),
            running_lab(SPEC, folder.path, environment=Environment()),
        ):
            pass
        assert folder.is_running()
        lab_down(folder.path)
