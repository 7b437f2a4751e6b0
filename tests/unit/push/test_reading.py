"""Reading many devices: texts, outputs, errors per device."""

import os
import signal
from pathlib import Path

import pytest

from fabric.errors import ConnectError
from fabric.push import fetch_all, run_all
from fabric.push.sessions.memory import Fault, FaultKind, MemorySession
from tests.unit.push.bench import BEFORE, bench


def test_each_device_gives_its_text_or_its_error(tmp_path: Path) -> None:
    good, bad = bench(tmp_path), bench(tmp_path, Fault("open", FaultKind.LOST_BEFORE, nth=0))

    leaf1, leaf2 = fetch_all(
        {"leaf1": lambda: MemorySession(good.device), "leaf2": lambda: MemorySession(bad.device)},
        observer=good.recorder,
    )

    assert (leaf1.device, leaf1.text, leaf1.error) == ("leaf1", BEFORE, None)
    assert isinstance(leaf2.error, ConnectError)
    names = {(event.device, event.name) for event in good.recorder.events}
    assert {("leaf1", "push.fetch.done"), ("leaf2", "push.fetch.failed")} <= names
    assert BEFORE not in repr(leaf1)


def test_commands_give_their_outputs_by_name(tmp_path: Path) -> None:
    it = bench(tmp_path)

    (reading,) = run_all({"leaf1": lambda: MemorySession(it.device)}, {"leaf1": {"pfc": "show pfc counters"}})

    assert reading.outputs == {"pfc": ""}
    assert it.device.calls["run"] == 1


def test_a_defect_is_the_error_of_its_device(tmp_path: Path) -> None:
    it = bench(tmp_path)

    def broken() -> MemorySession:
        raise KeyError("x")

    good, bad = fetch_all({"leaf1": lambda: MemorySession(it.device), "leaf2": broken})

    assert good.error is None
    assert "a defect of this program: KeyError" in str(bad.error)


def test_ctrl_c_while_reading_is_raised_so_that_nobody_goes_on_with_half_a_picture(tmp_path: Path) -> None:
    device = bench(tmp_path).device

    class Interrupted(MemorySession):
        def open(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            super().open()

    with pytest.raises(KeyboardInterrupt):
        fetch_all({"leaf1": lambda: Interrupted(device), "leaf2": lambda: MemorySession(device)}, workers=1)
