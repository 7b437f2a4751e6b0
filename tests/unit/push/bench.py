"""A device in memory, a job for it and a push of one, for tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabric.clock import FakeClock
from fabric.observe import Recorder
from fabric.push.jobs import DeviceJob, PushOptions
from fabric.push.provision import push_all
from fabric.push.session import StagedChange
from fabric.push.sessions.memory import Fault, MemoryDevice, MemorySession
from fabric.state import DeviceResult

BEFORE = "a 1\nb 1\nc 1\nd 1"
AFTER = "a 2\nb 2\nc 2\nd 2"


def apply(text: str, payload: str) -> str:
    """Returns the payload, which in this language is the whole configuration."""
    if "nonsense" in payload:
        raise ValueError("nonsense is no line")
    return payload


def differs(expected: str, text: str) -> str:
    return "" if text == expected else f"found {text!r}"


@dataclass
class Bench:
    device: MemoryDevice
    clock: FakeClock
    recorder: Recorder
    state_dir: Path
    options: PushOptions

    def job(self, *, payload: str = AFTER, disruptive: bool = False) -> DeviceJob:
        change = StagedChange("t1", payload, BEFORE, disruptive=disruptive, full_config=payload if disruptive else "")
        return DeviceJob(
            device=self.device.name,
            nos="memory",
            make_session=lambda: MemorySession(self.device),
            change=change,
            check_base=lambda text: differs(BEFORE, text),
            verify=lambda text: differs(AFTER, text),
            changes=4,
        )

    def push(self, job: DeviceJob | None = None) -> DeviceResult:
        (result,) = push_all(
            [job or self.job()],
            options=self.options,
            clock=self.clock,
            state_dir=self.state_dir,
            observer=self.recorder,
        )
        return result


def bench(tmp_path: Path, *faults: Fault, options: PushOptions | None = None, running: str = BEFORE) -> Bench:
    clock = FakeClock(1_000_000.0)
    device = MemoryDevice("leaf1", running, apply, clock, faults)
    return Bench(device, clock, Recorder(), tmp_path / "state", options or PushOptions(run="r1", confirm_s=60))


def verbs(recorder: Recorder) -> Sequence[str]:
    return [event.name.split(".")[1] for event in recorder.events if event.name.endswith(".started")]
