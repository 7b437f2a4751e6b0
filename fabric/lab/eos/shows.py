"""What the emulated EOS shows. Layouts are those of the samples named."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from fabric.lab.eos import counters
from fabric.lab.eos.config import Config

if TYPE_CHECKING:
    from fabric.lab.eos.device import EosDevice, Session

__all__ = ("show",)


def show(device: "EosDevice", command: str, *, session: "Session | None", privileged: bool) -> str | None:
    """Returns the output of `show <command>`, None when there is no such command.

    Args:
        device: whose state is shown.
        command: without `show`, pipes included.
        session: the configuration session one is in, or None.
        privileged: after `enable`.
    """
    words, _, pipe = command.partition("|")
    what = " ".join(words.split())
    text = _session_text(device, what, session)
    if text is None and privileged:
        text = _configuration(device, what)
    if text is None:
        return _state(device, what, pipe.strip())
    return _piped(text, pipe.strip(), device)


def _piped(text: str, pipe: str, device: "EosDevice") -> str | None:
    verb, _, argument = pipe.partition(" ")
    lines = text.splitlines(keepends=True)
    pattern = argument.strip().strip('"')
    match verb:
        case "" | "no-more" | "nz":
            return text
        case "include":
            return "".join(line for line in lines if re.search(pattern, line))
        case "exclude":
            return "".join(line for line in lines if not re.search(pattern, line))
        case "section":
            return device.config.section(pattern)
    return None


def _session_text(device: "EosDevice", what: str, session: "Session | None") -> str | None:
    match = re.fullmatch(r"session-config(?: named (\S+))?( diffs)?", what)
    if match is None:
        return None
    chosen = device.sessions.get(match[1]) if match[1] else session
    if chosen is None:
        return None
    if match[2]:
        return device.diff(chosen)
    return device.header("session-config") + chosen.candidate.text()


def _configuration(device: "EosDevice", what: str) -> str | None:
    if what in {"running-config", "running-config sanitized"}:
        return device.running()
    if what == "startup-config":
        return device.startup()
    match = re.fullmatch(r"running-config (?:section|interfaces?) (.+)", what)
    return device.config.section(match[1]) if match else None


def _state(device: "EosDevice", what: str, pipe: str) -> str | None:
    for pattern, (data, text) in _STATES.items():
        if re.fullmatch(pattern, what):
            if pipe.split() == ["json"]:
                return json.dumps(data(device), indent=4) + "\n"
            shown = text(device)
            return None if shown is None else _piped(shown, pipe, device)
    return None


def _version(device: "EosDevice") -> Mapping[str, object]:
    return {
        "mfgName": "Arista",
        "modelName": device.model,
        "hardwareRevision": "11.00",
        "serialNumber": f"LAB{device.spec.name.upper()}",
        "systemMacAddress": "02:00:5e:00:00:01",
        "version": device.version,
        "architecture": "x86_64",
        "internalVersion": f"{device.version}-lab",
        "uptime": round((device.clock.now_ns() - device.started_ns) / 1e9, 2),
        "memTotal": 8099732,
        "memFree": 5000000,
    }


def _version_text(device: "EosDevice") -> str:
    data = _version(device)
    return (
        f"Arista {data['modelName']}\nHardware version: {data['hardwareRevision']}\n"
        f"Serial number: {data['serialNumber']}\nSystem MAC address: 0200.5e00.0001\n\n"
        f"Software image version: {data['version']}\nArchitecture: {data['architecture']}\n"
        f"Internal build version: {data['internalVersion']}\n\n"
        f"Uptime: {int(float(str(data['uptime'])) // 60)} minutes\n"
        f"Total memory: {data['memTotal']} kB\nFree memory: {data['memFree']} kB\n\n"
    )


def _sessions(device: "EosDevice") -> Mapping[str, object]:
    """Source of the keys: NAPALM's EOS driver reads `sessions`, `state`, `commitUser` (read)."""
    table: dict[str, object] = {}
    for one in device.sessions.values():
        row: dict[str, object] = {"state": one.state, "commitUser": one.user, "description": "", "instances": {}}
        if one.alarm is not None:
            row["commitBy"] = round(device.clock.unix_s() + device.alarms.remaining_s(one.alarm), 1)
        table[one.name] = row
    return {"maxSavedSessions": 1, "maxOpenSessions": 5, "mergeOnCommit": False, "sessions": table}


def _sessions_text(device: "EosDevice") -> str:
    """Layout unconfirmed."""
    lines = ["Maximum number of completed sessions: 1", "Maximum number of pending sessions: 5", ""]
    lines += [
        f"  {'Name':<24} {'State':<20} {'User':<10} Commit Time Left",
        f"  {'-' * 24} {'-' * 20} {'-' * 10} -----",
    ]
    for one in device.sessions.values():
        left = f"{device.alarms.remaining_s(one.alarm):.0f}s" if one.alarm else ""
        lines.append(f"  {one.name:<24} {one.state:<20} {one.user:<10} {left}".rstrip())
    return "\n".join([*lines, ""])


def _ethernets(device: "EosDevice") -> tuple[str, ...]:
    return tuple(name for name in device.config.interfaces() if name.startswith("Ethernet"))


def _pfc(device: "EosDevice") -> Mapping[str, object]:
    """Keys unconfirmed; the text form is that of switches.md 1.4."""
    table: dict[str, object] = {}
    for name in _ethernets(device):
        priorities = _no_drop(device.config, name)
        enabled = bool(_lines(device.config, name, r"priority-flow-control on"))
        table[name] = {
            "priorities": list(priorities),
            "enabled": enabled,
            "active": enabled and bool(priorities),
            "note": "DCBX disabled" if enabled else "",
        }
    return {"interfaceStatuses": table}


def _pfc_text(device: "EosDevice") -> str:
    lines = [f"{'Port':<10} {'Enabled':<8} {'Priorities':<11} {'Active':<7} Note"]
    for name in _ethernets(device):
        priorities = "".join(str(one) for one in _no_drop(device.config, name))
        enabled = bool(_lines(device.config, name, r"priority-flow-control on"))
        active = "Yes" if enabled and priorities else "No"
        note = "DCBX disabled" if enabled else ""
        lines.append(f"{name:<10} {'Yes' if enabled else 'No':<8} {priorities:<11} {active:<7} {note}".rstrip())
    return "\n".join([*lines, ""])


def _lines(config: Config, interface: str, pattern: str) -> list[re.Match[str]]:
    matches = (re.fullmatch(pattern, node.line) for node in config.acting_on(interface))
    return [match for match in matches if match]


def _no_drop(config: Config, interface: str) -> tuple[int, ...]:
    chosen: dict[int, str] = {}
    for match in _lines(config, interface, r"priority-flow-control priority (\d) (no-drop|drop)"):
        chosen[int(match[1])] = match[2]
    return tuple(sorted(priority for priority, what in chosen.items() if what == "no-drop"))


_Data = Callable[["EosDevice"], Mapping[str, object]]
_Text = Callable[["EosDevice"], "str | None"]
_STATES: Final[Mapping[str, tuple[_Data, _Text]]] = {
    r"version": (_version, _version_text),
    r"hostname": (
        lambda device: {"hostname": device.name, "fqdn": device.name},
        lambda device: f"Hostname: {device.name}\nFQDN:     {device.name}\n",
    ),
    r"configuration sessions?( detail)?": (_sessions, _sessions_text),
    r"configuration checkpoints": (
        lambda device: {"checkpoints": {name: {} for name in device.checkpoints}},
        lambda device: "".join(f"{name}\n" for name in device.checkpoints),
    ),
    r"priority-flow-control( status)?": (_pfc, _pfc_text),
    r"priority-flow-control counters": (counters.pfc, counters.pfc_text),
    r"qos interfaces ecn counters queue": (counters.ecn, lambda _: None),
    r"interfaces counters queue drops": (counters.drops, lambda _: None),
    r"interfaces counters": (counters.interfaces, lambda _: None),
    r"interfaces counters errors": (counters.errors, lambda _: None),
    r"lldp neighbors detail": (counters.lldp, counters.lldp_text),
}
