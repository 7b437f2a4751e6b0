"""Waiting for what a dead run left: a device under its timer runs today what it will not run in a minute.

Whoever reads it earlier plans from a configuration that does not last. A device that another run is at is not waited
for: it is refused at the push, by its lock.
"""

from collections.abc import Iterable

from fabric.observe import Event
from fabric.push import in_our_time, left_behind
from fabric.workflow.environment import Environment
from fabric.workflow.stopwatch import Stopwatch

__all__ = ("settle",)


def settle(devices: Iterable[str], environment: Environment, watch: Stopwatch) -> None:
    """Returns when no device has a timer that a dead run left; says so while it waits."""
    clock = environment.clock
    found = {device: left_behind(environment.state_dir, device) for device in devices}
    left = {device: in_our_time(record, clock) for device, record in found.items() if record is not None}
    wait_s = max((one.settles_unix_s for one in left.values()), default=0.0) - clock.unix_s()
    if wait_s <= 0:
        return
    with watch.stage("settle"):
        for device, record in left.items():
            said = f"run {record.run} died here; its timer runs for {wait_s:.0f} s yet"
            environment.observer(Event("push.settle.started", device=device, message=said))
        clock.sleep_s(wait_s)
