"""Transient systemd units of an emulated SONiC: what `systemd-run --on-active` and `systemctl` need.

    state of a timer    waiting → elapsed (gone)      or stopped (gone)
    state of a service  inactive → exited (gone)      or failed (kept until reset-failed)

Knows no command but `systemctl` and `systemd-run`; what a unit runs is a function that is handed in.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fabric.lab.alarms import Alarm, Alarms
from fabric.lab.device import Reply

__all__ = ("Units",)

_UNIT_SECONDS: Final = {"": 1, "s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "ms": 0.001}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_NO_EFFECT: Final = ("--quiet", "-q", "--collect", "-G", "--no-block", "--no-ask-password", "--system")
_WITH_VALUE: Final = ("--timer-property", "--property", "-p", "--description", "--slice", "--uid", "--gid", "--setenv")


@dataclass(slots=True)
class _Unit:
    name: str
    argv: tuple[str, ...]
    alarm: Alarm | None = None
    has_failed: bool = False
    output: str = field(default="", repr=False)


class Units:
    """The transient units of one device.

    Args:
        run: runs a command as root and returns its answer.
    """

    def __init__(self, alarms: Alarms, run: Callable[[Sequence[str]], Reply]) -> None:
        self._alarms = alarms
        self._run = run
        self._units: dict[str, _Unit] = {}
        self._count = 0
        self._journal: dict[str, str] = {}

    def start(self, arguments: Sequence[str]) -> Reply:
        """Returns the answer of `systemd-run` with these arguments."""
        name, seconds, wait, rest = "", -1.0, False, list(arguments)
        while rest and rest[0].startswith("-"):
            option, has_value, value = rest.pop(0).partition("=")
            if option in _NO_EFFECT:
                continue
            if option == "--wait":
                wait = True
                continue
            if not has_value:
                if not rest:
                    return Reply(error=f"systemd-run: option '{option}' requires an argument\n", exit_status=1)
                value = rest.pop(0)
            if option in {"--unit", "-u"}:
                name = value.removesuffix(".timer").removesuffix(".service")
            elif option == "--on-active":
                seconds = _span(value)
                if seconds < 0:
                    return Reply(error=f"Failed to parse timer value: {value}\n", exit_status=1)
            elif option not in _WITH_VALUE:
                return Reply(error=f"systemd-run: unrecognized option '{option}'\n", exit_status=1)
        return self._add(name, seconds, tuple(rest), wait=wait)

    def _add(self, name: str, seconds: float, argv: tuple[str, ...], *, wait: bool) -> Reply:
        if not argv:
            return Reply(error="Command line to execute required.\n", exit_status=1)
        self._count += 1
        name = name or f"run-r{self._count:08x}"
        if name in self._units:
            loaded = f"Unit {name}.{'timer' if seconds >= 0 else 'service'} was already loaded or has a fragment file."
            return Reply(error=f"Failed to start transient timer unit: {loaded}\n", exit_status=1)
        unit = _Unit(name, argv)
        self._units[name] = unit
        if seconds < 0:
            status = self._elapse(unit)
            if wait:  # collected: systemd-run(1), the exit status is that of the command
                self._units.pop(name, None)
                return Reply(exit_status=status)
            return Reply(error=f"Running as unit: {name}.service\n")
        unit.alarm = self._alarms.after(seconds, lambda: self._fire(unit))
        return Reply(error=f"Running timer as unit: {name}.timer\nWill run service as unit: {name}.service\n")

    def _fire(self, unit: _Unit) -> None:
        self._elapse(unit)

    def _elapse(self, unit: _Unit) -> int:
        unit.alarm = None
        reply = self._run(unit.argv)
        unit.output = self._journal[unit.name] = reply.text + reply.error
        if reply.exit_status:
            unit.has_failed = True
        else:
            self._units.pop(unit.name, None)
        return reply.exit_status

    def forget(self) -> None:
        """Drops every unit, as a boot does."""
        for unit in self._units.values():
            if unit.alarm is not None:
                self._alarms.cancel(unit.alarm)
        self._units.clear()
        self._journal.clear()

    def journal(self, arguments: Sequence[str]) -> Reply:
        """Returns the answer of `journalctl … -u UNIT`: what the unit printed."""
        name = arguments[-1] if list(arguments[-2:-1]) == ["-u"] else ""
        return Reply(self._journal.get(name.removesuffix(".service"), "-- No entries --\n"))

    def control(self, arguments: Sequence[str]) -> Reply:
        """Returns the answer of `systemctl` with these arguments."""
        words = [one for one in arguments if not one.startswith("-")]
        is_quiet = any(one in {"-q", "--quiet"} for one in arguments)
        verb, names = (words[0], words[1:]) if words else ("list-units", [])
        if verb == "list-timers":
            return self._list()
        if verb not in {"stop", "is-active", "is-failed", "status", "reset-failed"}:
            return Reply(error=f"Unknown command verb {verb}.\n", exit_status=1)
        reply = Reply()
        for name in names:
            one = self._verb(verb, name)
            text = "" if is_quiet else one.text
            reply = Reply(reply.text + text, reply.error + one.error, max(reply.exit_status, one.exit_status))
        return reply

    def _verb(self, verb: str, name: str) -> Reply:
        stem, _, kind = name.partition(".")
        unit = self._units.get(stem)
        waits = unit is not None and unit.alarm is not None and kind == "timer"
        failed = unit is not None and unit.has_failed and kind in {"service", ""}
        match verb:
            case "is-active":
                state = "active" if waits else "failed" if failed else "inactive"
                return Reply(f"{state}\n", exit_status=0 if waits else 3)
            case "is-failed":
                return Reply(
                    "failed\n" if failed else "active\n" if waits else "inactive\n", exit_status=int(not failed)
                )
            case "status":
                return self._status(name, unit, waits=waits, failed=failed)
            case "reset-failed":
                if not failed:
                    return Reply(
                        error=f"Failed to reset failed state of unit {name}: Unit {name} not loaded.\n", exit_status=1
                    )
                self._units.pop(stem)
                return Reply()
        if unit is None or not (waits or failed):
            return Reply(error=f"Failed to stop {name}: Unit {name} not loaded.\n", exit_status=5)
        if unit.alarm is not None:
            self._alarms.cancel(unit.alarm)
        if not failed:
            self._units.pop(stem)
        return Reply()

    def _status(self, name: str, unit: _Unit | None, *, waits: bool, failed: bool) -> Reply:
        if unit is None or not (waits or failed):
            return Reply(error=f"Unit {name} could not be found.\n", exit_status=4)
        if failed:
            return Reply(f"x {name}\n     Active: failed (Result: exit-code)\n\n{unit.output}", exit_status=3)
        left = self._alarms.remaining_s(unit.alarm) if unit.alarm else 0
        return Reply(f"* {name}\n     Active: active (waiting)\n    Trigger: {left:.0f}s left\n")

    def _list(self) -> Reply:
        waiting = [one for one in self._units.values() if one.alarm is not None]
        lines = [
            f"{self._alarms.remaining_s(one.alarm):.0f}s left {one.name}.timer {one.name}.service"
            for one in waiting
            if one.alarm is not None
        ]
        return Reply("\n".join(["LEFT UNIT ACTIVATES", *lines, f"{len(lines)} timers listed.", ""]))


def _span(text: str) -> float:
    """Returns the seconds of `300`, `5min`, `1min 30s`; -1 when it is no time span."""
    parts = _SPAN.findall(text)
    if not parts or _SPAN.sub("", text).strip() or any(unit not in _UNIT_SECONDS for _, unit in parts):
        return -1.0
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
