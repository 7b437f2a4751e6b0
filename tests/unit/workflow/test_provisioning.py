"""Waves: their order, and what Ctrl-C leaves undone."""

import os
import signal
from pathlib import Path

import pytest

from fabric.errors import EnvironmentMissingError
from fabric.intent import Fabric, Switch, SwitchRole
from fabric.push import DeviceJob, DeviceSession
from fabric.push.session import StagedChange
from fabric.push.sessions.memory import MemoryDevice, MemorySession
from fabric.state import Outcome
from fabric.workflow.environment import Environment
from fabric.workflow.provisioning import push_in_waves
from fabric.workflow.request import Request
from tests.unit.push.bench import AFTER, BEFORE, Bench, apply, bench, differs

ROLES = {"leaf1": SwitchRole.LEAF, "spine1": SwitchRole.SPINE, "top1": SwitchRole.SUPERSPINE}


def fabric() -> Fabric:
    return Fabric("f", tuple(Switch(name, "sonic", role, ()) for name, role in ROLES.items()))


def job(device: MemoryDevice, opened: list[str], interrupted: str = "") -> DeviceJob:
    class Session(MemorySession):
        def open(self) -> None:
            if device.name not in opened:
                opened.append(device.name)
                if device.name == interrupted:
                    os.kill(os.getpid(), signal.SIGINT)
            super().open()

    def make() -> DeviceSession:
        return Session(device)

    return DeviceJob(
        device.name,
        "sonic",
        make_session=make,
        change=StagedChange("t1", AFTER, BEFORE),
        check_base=lambda text: differs(BEFORE, text),
        verify=lambda text: differs(AFTER, text),
    )


def devices(it: Bench) -> list[MemoryDevice]:
    return [MemoryDevice(name, BEFORE, apply, it.clock) for name in ROLES]


def test_spines_come_before_leaves(tmp_path: Path) -> None:
    it, opened = bench(tmp_path), list[str]()
    environment = Environment(clock=it.clock, state_dir=tmp_path / "state")
    jobs = [job(one, opened) for one in devices(it)]

    results = push_in_waves(jobs, fabric(), Request(()), environment, run="r")

    assert opened == ["top1", "spine1", "leaf1"]
    assert [(one.device, one.outcome) for one in results] == [(name, Outcome.COMMITTED) for name in ROLES]


def test_ctrl_c_in_one_wave_begins_no_further_one(tmp_path: Path) -> None:
    it, opened = bench(tmp_path), list[str]()
    environment = Environment(clock=it.clock, state_dir=tmp_path / "state")
    fleet = devices(it)

    results = push_in_waves([job(one, opened, "top1") for one in fleet], fabric(), Request(()), environment, run="r")

    assert opened == ["top1"]
    ends = {one.device: one.outcome for one in results}
    assert (ends["spine1"], ends["leaf1"]) == (Outcome.REFUSED, Outcome.REFUSED)
    assert all(one.running == BEFORE for one in fleet[:2])


def test_a_state_directory_that_cannot_be_used_is_told_before_any_device_is_touched(tmp_path: Path) -> None:
    it, opened = bench(tmp_path), list[str]()
    (tmp_path / "file").write_text("")
    environment = Environment(clock=it.clock, state_dir=tmp_path / "file" / "state")
    jobs = [job(one, opened) for one in devices(it)]

    with pytest.raises(EnvironmentMissingError, match="cannot be written"):
        push_in_waves(jobs, fabric(), Request(()), environment, run="r")

    assert opened == []
