"""Units of a model host, small: enabled, started, stopped, tried again; what each runs, the host performs."""

from typing import Protocol

from fabric.remote.ssh import ExecResult
from tests.unit.host.answers import FULL, OK, failed

UNITS = "/etc/systemd/system"


class Units(Protocol):
    """What systemd sees of the host, and what it asks of it."""

    files: dict[str, tuple[str, int]]
    enabled: set[str]
    active: set[str]
    failed_units: set[str]
    loaded: dict[str, str]
    journal: dict[str, str]
    is_full: bool

    def start_unit(self, unit: str) -> ExecResult:
        """Starts a unit: `start`, or what stands in its place."""

    def run_line(self, line: str) -> ExecResult:
        """Performs a line of a unit."""


def systemctl(host: Units, words: list[str]) -> ExecResult:
    verb, units = words[0], [word for word in words[1:] if word.endswith(".service")]
    if verb == "show":
        blocks = [_shown(host, unit) for unit in units]
        return ExecResult(0, "\n".join(blocks), "")
    if verb == "is-active":
        return OK if units[0] in host.active else failed("", 3)
    if verb == "daemon-reload":
        host.loaded = {}
        return OK
    if verb == "reset-failed":
        if units[0] not in host.failed_units:
            return failed(f"Failed to reset failed state of unit {units[0]}: Unit {units[0]} not loaded.")
        host.failed_units.discard(units[0])
        return OK
    for unit in units:
        if f"{UNITS}/{unit}" not in host.files and unit not in host.active:
            return failed(f"Unit file {unit} does not exist.")
    return _performed(host, words, units)


def _shown(host: Units, unit: str) -> str:
    is_file = f"{UNITS}/{unit}" in host.files
    state = ("enabled" if unit in host.enabled else "disabled") if is_file else ""
    now = "active" if unit in host.active else "activating" if is_tried(host, unit) else "inactive"
    is_stale = is_file and host.loaded.get(unit, "") not in {"", host.files[f"{UNITS}/{unit}"][0]}
    reload = "yes" if is_stale else "no"
    return f"Id={unit}\nActiveState={now}\nUnitFileState={state}\nNeedDaemonReload={reload}\n"


def is_tried(host: Units, unit: str) -> bool:
    return unit in host.failed_units and _lines(host, unit, "Restart") == ["on-failure"]


def _performed(host: Units, words: list[str], units: list[str]) -> ExecResult:
    verb, done = words[0], []
    for unit in units:
        if verb == "enable" and host.is_full and unit not in host.enabled:
            done.append(failed(FULL))
        elif verb == "enable":
            host.enabled.add(unit)
        elif verb == "disable":
            host.enabled.discard(unit)
            done += [_stop(host, unit)] if "--now" in words else []
        elif verb == "stop":
            done.append(_stop(host, unit))
        elif "--no-block" in words:
            host.start_unit(unit)
        elif verb in {"start", "restart"}:
            done += [_stop(host, unit)] if verb == "restart" else []
            done.append(host.start_unit(unit))
    return next((one for one in done if not one.ok), OK)


def _lines(host: Units, unit: str, key: str) -> list[str]:
    text = host.loaded.setdefault(unit, host.files.get(f"{UNITS}/{unit}", ("", 0))[0])
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def start(host: Units, unit: str) -> ExecResult:
    if unit in host.active:
        return OK
    for other in " ".join(_lines(host, unit, "Wants")).split():
        if f"{UNITS}/{other}" in host.files:
            host.start_unit(other)
    for line in (*_lines(host, unit, "ExecStartPre"), *_lines(host, unit, "ExecStart")):
        done = host.run_line(line.removeprefix("-"))
        host.journal[unit] = host.journal.get(unit, "") + (f"{done.stderr}\n" if done.stderr else "")
        if not done.ok and not line.startswith("-"):
            host.failed_units.add(unit)
            return failed(f"Job for {unit} failed.")
    host.failed_units.discard(unit)
    host.active.add(unit)
    return OK


def _stop(host: Units, unit: str) -> ExecResult:
    if is_tried(host, unit):
        host.failed_units.discard(unit)
    if unit in host.active:
        host.active.discard(unit)
        for line in _lines(host, unit, "ExecStop"):
            host.run_line(line.removeprefix("-"))
    return OK
