"""Timers of the emulated devices (commit timers, transient units), on a clock that is handed in.

Whoever touches a device calls `run_due` first, and the lab's ticker calls it every few milliseconds, so that
a timer fires also when nobody is connected. With a standing clock nothing fires until a test moves it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fabric.clock import Clock

__all__ = ("Alarm", "Alarms", "WallClock")


class WallClock:
    """The machine's clock: the lab is a program of its own and may make one."""

    def now_ns(self) -> int:
        """Returns monotonic nanoseconds."""
        return time.monotonic_ns()

    def unix_s(self) -> float:
        """Returns seconds since 1970-01-01 UTC."""
        return time.time()

    def sleep_s(self, seconds: float) -> None:
        """Returns after `seconds`."""
        time.sleep(seconds)


@dataclass(eq=False, slots=True)
class Alarm:
    """One pending call; `due_ns` on the clock's monotonic scale."""

    due_ns: int
    action: Callable[[], None] = field(repr=False)
    is_pending: bool = True


class Alarms:
    """The pending alarms of one device. `fired` counts those that went off."""

    def __init__(self, clock: Clock) -> None:
        self.fired = 0
        self._clock = clock
        self._alarms: list[Alarm] = []
        self._lock = threading.Lock()

    def after(self, seconds: float, action: Callable[[], None]) -> Alarm:
        """Returns an alarm that calls `action` once, `seconds` from now."""
        alarm = Alarm(self._clock.now_ns() + round(seconds * 1e9), action)
        with self._lock:
            self._alarms.append(alarm)
        return alarm

    def cancel(self, alarm: Alarm) -> None:
        """Makes sure that the alarm never fires."""
        with self._lock:
            alarm.is_pending = False
            if alarm in self._alarms:
                self._alarms.remove(alarm)

    def remaining_s(self, alarm: Alarm) -> float:
        """Returns the seconds until the alarm fires, not below 0."""
        return max(0.0, (alarm.due_ns - self._clock.now_ns()) / 1e9)

    def run_due(self) -> None:
        """Calls, oldest first, every action whose time has come."""
        while (alarm := self._take()) is not None:
            alarm.action()
            self.fired += 1

    def _take(self) -> Alarm | None:
        with self._lock:
            now_ns = self._clock.now_ns()
            due = [alarm for alarm in self._alarms if alarm.due_ns <= now_ns]
            if not due:
                return None
            first = min(due, key=lambda alarm: alarm.due_ns)
            self._alarms.remove(first)
            first.is_pending = False
            return first
