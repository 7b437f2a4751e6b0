"""What the push dialogues share: access to a front of the lab, and a push of one device."""

from collections.abc import Sequence
from pathlib import Path

from fabric.clock import Clock
from fabric.intent.access import DeviceAccess
from fabric.lab import Front, Fronts
from fabric.lab.alarms import WallClock
from fabric.push.jobs import DeviceJob, PushOptions
from fabric.push.provision import push_all
from fabric.state import DeviceResult

CLOCK: Clock = WallClock()


def access(front: Front, known_hosts: Path, *, password: str | None = None, enable: str | None = None) -> DeviceAccess:
    return DeviceAccess(
        device=front.name,
        host=front.host,
        port=front.port,
        username=front.username,
        password=front.password if password is None else password,
        enable_secret=enable,
        known_hosts=known_hosts,
    )


def options(confirm_s: int, *, disruptive: bool = False) -> PushOptions:
    return PushOptions(
        run="r1", confirm_s=confirm_s, allow_disruptive=disruptive, settle_s=1.5, retry_s=0.1, margin_s=0.2
    )


def push(jobs: Sequence[DeviceJob], state_dir: Path, opts: PushOptions) -> tuple[DeviceResult, ...]:
    return push_all(jobs, options=opts, clock=CLOCK, state_dir=state_dir)


def lines_missing(text: str, wanted: Sequence[str]) -> str:
    """Returns the wanted lines that the text lacks."""
    present = {line.strip() for line in text.splitlines()}
    return ", ".join(line for line in wanted if line not in present)


__all__ = ("CLOCK", "Fronts", "access", "lines_missing", "options", "push")
