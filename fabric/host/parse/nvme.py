"""What nvme-cli lists, versions 1 to 3, and controllers in sysfs. Knows no plan.

The layouts differ in where paths hang: below their subsystem, in an object after it (version 1), below `Controllers`
(verbose), or nowhere. All are read by one walk. A level that a version does not print is UNKNOWN, not empty.
Source: hosts.md 3.2 and 3.3; samples/linux/show/nvme_*.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fabric.host.parse.text import document, number, whole
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NvmePath, NvmeSubsystem

__all__ = ("NvmeDevice", "controller", "read_devices", "read_subsystems", "read_subsystems_text", "with_ana")

_OFF: Final = "off"  # Linux drivers/nvme/host/core.c prints it for -1
_HEAD: Final = re.compile(r"(nvme-subsys\d+) - NQN=(\S+)")
_HOSTNQN: Final = re.compile(r"\s+hostnqn=(\S+)")
_ROW: Final = re.compile(r"\s*\+- (nvme\d+) (\w+) (\S+) (.+?)\s*")


@dataclass(frozen=True, slots=True)
class NvmeDevice:
    """One namespace as `nvme list` names it."""

    path: str
    nsid: Known[int] = UNKNOWN
    model: Known[str] = UNKNOWN
    serial: Known[str] = UNKNOWN


def read_subsystems(text: str) -> tuple[NvmeSubsystem, ...]:
    """Returns the subsystems by NQN, their paths by controller, from any JSON listing of nvme-cli.

    Raises:
        HostError: the text is no JSON; with no NVMe module loaded nvme-cli prints a sentence.
    """
    found: dict[str, NvmeSubsystem] = {}
    _walk(document(text, "nvme"), found, host={})
    return tuple(_sorted(found[nqn]) for nqn in sorted(found))


def _walk(node: Any, found: dict[str, NvmeSubsystem], host: Mapping[str, Any]) -> None:
    if isinstance(node, list):
        last = ""
        for one in node:
            if isinstance(one, Mapping) and isinstance(one.get("Paths"), list) and not _nqn(one) and last:
                _merge(found, replace(found[last], paths=tuple(_paths(one))))  # version 1: the object after
            else:
                _walk(one, found, host)
                last = _nqn(one) if isinstance(one, Mapping) else ""
    elif isinstance(node, Mapping):
        if _nqn(node):
            _merge(found, _subsystem(node, host))
        else:
            inner = {key: node[key] for key in ("HostNQN", "HostID") if key in node}
            for key in ("Devices", "Subsystems"):
                _walk(node.get(key), found, {**host, **inner})


def _nqn(node: Mapping[str, Any]) -> str:
    return str(node.get("NQN") or node.get("SubsystemNQN") or "")


def _subsystem(node: Mapping[str, Any], host: Mapping[str, Any]) -> NvmeSubsystem:
    has_paths = isinstance(node.get("Controllers", node.get("Paths")), list)
    spaces = node.get("Namespaces")
    return NvmeSubsystem(
        nqn=_nqn(node),
        name=_known(node.get("Name") or node.get("Subsystem")),
        iopolicy=_known(node.get("IOPolicy")),
        paths=tuple(_paths(node)) if has_paths else UNKNOWN,
        namespaces=tuple(_space(one) for one in spaces) if isinstance(spaces, list) else UNKNOWN,
        hostnqn=_known(host.get("HostNQN")),
        hostid=_known(host.get("HostID")),
    )


def _space(one: Any) -> str:
    return str(one.get("NameSpace", one) if isinstance(one, Mapping) else one)


def _merge(found: dict[str, NvmeSubsystem], one: NvmeSubsystem) -> None:
    known = found.get(one.nqn)
    if known is not None and known.paths is not UNKNOWN and one.paths is not UNKNOWN:
        own = {path.controller for path in one.paths}
        one = replace(one, paths=(*(path for path in known.paths if path.controller not in own), *one.paths))
    found[one.nqn] = one


def _paths(node: Mapping[str, Any]) -> Iterator[NvmePath]:
    for one in node.get("Controllers", node.get("Paths", ())):
        if not isinstance(one, Mapping):
            continue
        name = str(one.get("Controller") or one.get("Name") or "")
        ana = one.get("Paths")
        state = one.get("ANAState")
        path = _with_address(NvmePath(name), str(one.get("Address", "")))
        yield replace(
            path,
            transport=_known(one.get("Transport")),
            state=_known(one.get("State")),
            ana=_ana(ana) if isinstance(ana, list) else ((name, str(state)),) if state else UNKNOWN,
        )


def _ana(rows: list[Any]) -> tuple[tuple[str, str], ...]:
    own = (row for row in rows if isinstance(row, Mapping) and {"Path", "ANAState"} <= set(row))
    return tuple((str(row["Path"]), str(row["ANAState"])) for row in own)


def _with_address(path: NvmePath, address: str) -> NvmePath:
    words = dict(part.partition("=")[::2] for part in re.split(r"[,\s]+", address) if "=" in part)
    return replace(
        path,
        traddr=_known(words.get("traddr")),
        trsvcid=int(words["trsvcid"]) if re.fullmatch("[0-9]{1,5}", words.get("trsvcid", "")) else UNKNOWN,
        host_traddr=_known(words.get("host_traddr")),
        src_addr=_known(words.get("src_addr")),
    )


def _known(value: Any) -> Known[str]:
    return UNKNOWN if value is None or value == "" else str(value)


def _sorted(one: NvmeSubsystem) -> NvmeSubsystem:
    if one.paths is UNKNOWN:
        return one
    return replace(one, paths=tuple(sorted(one.paths, key=lambda path: (len(path.controller), path.controller))))


def read_subsystems_text(text: str) -> tuple[NvmeSubsystem, ...]:
    """Returns the same from the text of `nvme list-subsys`; version 3 prints the bare address and no port."""
    found: list[NvmeSubsystem] = []
    for line in text.splitlines():
        if head := _HEAD.match(line):
            found.append(NvmeSubsystem(head[2], name=head[1], paths=()))
        elif found and (hostnqn := _HOSTNQN.fullmatch(line)):
            found[-1] = replace(found[-1], hostnqn=hostnqn[1])
        elif found and (row := _ROW.fullmatch(line)):
            address = row[3] if "=" in row[3] else f"traddr={row[3]}"
            path = replace(_with_address(NvmePath(row[1]), address), transport=row[2], state=row[4])
            paths = () if found[-1].paths is UNKNOWN else found[-1].paths
            found[-1] = replace(found[-1], paths=(*paths, path))
    return tuple(sorted((_sorted(one) for one in found), key=lambda one: one.nqn))


def read_devices(text: str) -> tuple[NvmeDevice, ...]:
    """Returns the namespaces of `nvme list -o json`, flat (2.3: seen on Debian 12) or nested (unconfirmed).

    Raises:
        HostError: the text is no JSON.
    """
    return tuple(sorted(set(_devices(document(text, "nvme list"))), key=lambda one: (len(one.path), one.path)))


def _devices(node: Any) -> Iterator[NvmeDevice]:
    if isinstance(node, list):
        for one in node:
            yield from _devices(one)
    elif isinstance(node, Mapping):
        space = node.get("NameSpace", node.get("Namespace"))
        path = node.get("DevicePath") or (f"/dev/{space}" if isinstance(space, str) else "")
        if path:
            nsid = node.get("NSID", space)
            yield NvmeDevice(
                str(path),
                nsid=number(nsid),
                model=_known(node.get("ModelNumber")),
                serial=_known(node.get("SerialNumber")),
            )
        for value in node.values():
            if isinstance(value, list | Mapping):
                yield from _devices(value)


def controller(name: str, attributes: Mapping[str, str]) -> NvmePath:
    """Returns one controller from its files in `/sys/class/nvme/NAME`; `off` is -1, never.

    Raises:
        HostError: a number is none.
    """
    path = _with_address(NvmePath(name), attributes.get("address", "").strip())
    return replace(
        path,
        transport=_known(attributes.get("transport", "").strip()),
        state=_known(attributes.get("state", "").strip()),
        ctrl_loss_tmo_s=_seconds(attributes, "ctrl_loss_tmo"),
        reconnect_delay_s=_seconds(attributes, "reconnect_delay"),
        fast_io_fail_tmo_s=_seconds(attributes, "fast_io_fail_tmo"),
        keep_alive_s=_seconds(attributes, "kato"),
        queue_count=_seconds(attributes, "queue_count"),
        queue_size=_size(_seconds(attributes, "sqsize")),
    )


def _seconds(attributes: Mapping[str, str], name: str) -> Known[int]:
    text = attributes.get(name, "").strip()
    if not text:
        return UNKNOWN
    return -1 if text == _OFF else whole(text, name)


def _size(sqsize: Known[int]) -> Known[int]:
    return UNKNOWN if sqsize is UNKNOWN else sqsize + 1  # sysfs counts from 0


def with_ana(one: NvmeSubsystem, listed: Mapping[str, NvmePath]) -> NvmeSubsystem:
    """Returns `one` with the ANA states of a listing, by controller: sysfs keeps them elsewhere."""
    if one.paths is UNKNOWN:
        return one
    paths = (
        replace(path, ana=listed[path.controller].ana) if path.controller in listed else path for path in one.paths
    )
    return replace(one, paths=tuple(paths))
