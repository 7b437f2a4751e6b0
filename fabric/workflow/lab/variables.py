"""The `lab_…` variables of an inventory: how to emulate, not what the fabric is. Knows no switch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from fabric.errors import HostError, IntentError, Problem
from fabric.lab.vm import Disk, DiskKind
from fabric.registry import nearest
from fabric.remote.ansible import read_inventory
from fabric.serial import Json

__all__ = ("DEFAULT_DISK_MIB", "LabVariables", "disks_of", "read_variables", "variables_of")

DEFAULT_DISK_MIB: Final = 64
_PREFIX: Final = "lab_"
_DISK_KEYS: Final = ("device", "size_mib", "latency_us", "on")
_MAX_RAM_DISKS: Final = 10
_LEAST_MEMORY_MIB: Final = 128  # the lab's own choice; what comes up with less was not tried


@dataclass(frozen=True, slots=True)
class LabVariables:
    """The variables of one device, `lab_` left out.

    Attributes:
        memory_mib, cpus: of a virtual machine.
        disks: rows of `device`, `size_mib`, `latency_us`, `on`; see docs/how-to/lab.md.
    """

    memory_mib: int = 512
    cpus: int = 1
    disks: tuple[Mapping[str, Any], ...] = ()


def read_variables(sources: Sequence[Path], extra_vars: Mapping[str, Json]) -> dict[str, LabVariables]:
    """Returns the variables by device.

    Raises:
        IntentError: one is unknown or cannot be, with every such problem.
    """
    found = read_inventory(sources, extra_vars=extra_vars, prefixes=(_PREFIX,))
    return variables_of(
        {
            name: {key: found.values[index] for key, index in host.variables.items() if key.startswith(_PREFIX)}
            for name, host in found.hosts.items()
        }
    )


def variables_of(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, LabVariables]:
    """Returns the variables by device, from `lab_…` name to value by device.

    Raises:
        IntentError: as `read_variables`.
    """
    problems: list[Problem] = []
    ours: dict[str, dict[str, Any]] = {}
    for device, row in rows.items():
        ours[device] = {name: row[_PREFIX + name] for name in _NAMES if _PREFIX + name in row}
        problems += [*_unknown(device, tuple(row)), *_misshapen(device, ours[device])]
    if problems:
        raise IntentError(problems)
    return {device: LabVariables(**_typed(row)) for device, row in ours.items()}


_NAMES: Final = tuple(one.name for one in fields(LabVariables))
_LOOKUPS: Final = ("file", "folder", "login", "running")  # helpers of the shipped inventories


def _unknown(device: str, names: Sequence[str]) -> list[Problem]:
    known = [f"{_PREFIX}{name}" for name in (*_NAMES, *_LOOKUPS)]
    return [
        Problem(
            "there is no such variable of the lab",
            device=device,
            field=name,
            remedy=f"Did you mean {close}?" if (close := nearest(name, known)) else "",
        )
        for name in names
        if name not in known
    ]


def _misshapen(device: str, rows: Mapping[str, Any]) -> list[Problem]:
    problems = [
        Problem(
            f"the value is no number from {least} on", device=device, field=_PREFIX + name, found=str(rows.get(name))
        )
        for name, least in (("memory_mib", _LEAST_MEMORY_MIB), ("cpus", 1))
        if name in rows and not _is_number(rows[name], least)
    ]
    disks = rows.get("disks", [])
    if not isinstance(disks, list) or not all(isinstance(one, dict) for one in disks):
        problems.append(Problem("the value is no list of disks", device=device, field="lab_disks"))
        return problems
    for row in disks:
        problems += [replace(one, device=device, field=f"lab_disks.{one.field}") for one in _disk_problems(row)]
    names = [row.get("device") for row in disks]
    problems += [
        Problem("two disks have one name", device=device, field="lab_disks.device", found=str(name))
        for name in dict.fromkeys(map(str, names))
        if names.count(name) > 1
    ]
    return problems


def _disk_problems(row: Mapping[str, Any]) -> list[Problem]:
    """Returns what is wrong with one row of `lab_disks`."""
    problems = []
    for key in row:
        if key not in _DISK_KEYS:
            close = nearest(str(key), _DISK_KEYS)
            remedy = f"Did you mean {close}?" if close else ""
            problems.append(Problem("there is no such key", field=str(key), remedy=remedy))
    for key, least in (("size_mib", 1), ("latency_us", 0)):
        if key in row and not _is_number(row[key], least):
            problems.append(Problem(f"the value is no number from {least} on", field=key, found=str(row[key])))
    name = row.get("device")
    if not isinstance(name, str):
        return [*problems, Problem("the key is missing", field="device")]
    if problems:
        return problems
    try:
        disk = _disk(name, row)
    except HostError as error:
        field = "on" if row.get("on") and _is_disk(name) else "device"
        return [Problem(error.what, field=field, found=error.found, expected=error.expected)]
    if row.get("latency_us") and disk.kind is not DiskKind.NULL:
        problems.append(Problem("only a null_blk disk has a latency", field="latency_us", found=name))
    if row.get("on") and disk.kind is not DiskKind.FILE:
        problems.append(Problem("only a file lies on a disk", field="on", found=name))
    return problems


def _is_disk(name: str) -> bool:
    try:
        _disk(name, {})
    except HostError:
        return False
    return True


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _typed(rows: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if name == "disks" else value for name, value in rows.items()}


def disks_of(devices: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> tuple[Disk, ...]:
    """Returns the disks of a target, those that carry others first.

    Args:
        devices: of the namespaces, as the inventory has them.
        rows: what `lab_disks` says; a device without a row is made by its name.
    """
    told = {str(row["device"]): row for row in rows}
    wanted = dict.fromkeys((*told, *devices))
    for row in rows:
        if row.get("on"):
            wanted.setdefault(str(row["on"]))
    disks = [_disk(device, told.get(device, {})) for device in wanted]
    return tuple(sorted(disks, key=lambda one: one.kind is DiskKind.FILE))


def _disk(device: str, row: Mapping[str, Any]) -> Disk:
    size_mib = int(row.get("size_mib", DEFAULT_DISK_MIB))
    name = device.removeprefix("/dev/")
    if not device.startswith("/dev/"):
        return Disk(DiskKind.FILE, device, size_mib, under=str(row.get("on", "")))
    if name in {f"ram{number}" for number in range(_MAX_RAM_DISKS)}:
        return Disk(DiskKind.RAM, name, size_mib)
    return Disk(DiskKind.NULL, name, size_mib, latency_ns=int(row.get("latency_us", 0)) * 1000)
