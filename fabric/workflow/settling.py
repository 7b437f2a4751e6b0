"""Before a rollback looks at devices: the timers that dead runs left there must have run."""

from collections.abc import Iterable

from fabric.observe import Event
from fabric.push import in_our_time, left_behind
from fabric.workflow.environment import Environment
from fabric.workflow.stopwatch import Stopwatch

__all__ = ("settle",)


def settle(devices: Iterable[str], environment: Environment, watch: Stopwatch) -> None:
    """Waits until no device has a timer that a dead run left: what it runs before that would not last."""
    now_s = environment.clock.unix_s()
    found = {device: left_behind(environment.state_dir, device) for device in devices}
    records = {device: in_our_time(one, environment.clock) for device, one in found.items() if one is not None}
    left_s = {device: record.settles_unix_s - now_s for device, record in records.items()}
    running = {device: seconds for device, seconds in left_s.items() if seconds > 0}
    if not running:
        return
    with watch.stage("settle"):
        for device, seconds in running.items():
            said = f"run {records[device].run} died here; its timer runs for {seconds:.0f} s yet"
            environment.observer(Event("rollback.settle.started", device=device, message=said))
        environment.clock.sleep_s(max(running.values()))
