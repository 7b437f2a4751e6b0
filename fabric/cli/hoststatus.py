"""What hosts and targets said of themselves, in words. Returns lines; prints nothing."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fabric.cli.wording import Line
from fabric.host.report import Definition, HostReport
from fabric.qos import UNKNOWN, Known
from fabric.state.host import HostState, NicState, NvmePath, NvmetState

__all__ = ("status_lines",)

_LIVE: Final = "live"


def status_lines(reports: Iterable[HostReport]) -> Iterator[Line]:
    """Yields for each host its NICs, its connections, and what it publishes; UNKNOWN for what was not read."""
    for report in reports:
        state = report.reading.state
        yield report.host, "bold"
        for nic in state.nics:
            yield f"    {_nic(nic, state)}", ""
        yield from ((f"    {text}", style) for text, style in _connections(state, report.definitions))
        if state.target is not UNKNOWN:
            yield from ((f"    {text}", "") for text in _target(state.target))
        yield from ((f"    not read: {one}", "dim") for one in report.reading.unread)
        yield "", ""


def _nic(nic: NicState, state: HostState) -> str:
    ports = () if state.rdma_ports is UNKNOWN else state.rdma_ports
    port = next((one for one in ports if one.netdev == nic.netdev), None)
    port = port or next((one for one in ports if one.device == nic.rdma_device), None)
    link = f"{port.name} {_told(port.state)}, PMTU {_told(port.active_mtu_bytes)}" if port else "RDMA link none"
    if state.rdma_ports is UNKNOWN:
        link = "RDMA link UNKNOWN"
    pfc = UNKNOWN if nic.pfc_priorities is UNKNOWN else ",".join(map(str, nic.pfc_priorities)) or "off"
    return f"{nic.netdev}: MTU {_told(nic.mtu_bytes)}, {link}, default ToS {_told(nic.default_tos)}, PFC {_told(pfc)}"


def _connections(state: HostState, definitions: Known[tuple[Definition, ...]]) -> Iterator[Line]:
    if state.subsystems is UNKNOWN:
        yield "connections UNKNOWN", "yellow"
        return
    for subsystem in state.subsystems:
        yield f"{subsystem.nqn}: I/O policy {_told(subsystem.iopolicy)}", ""
        if subsystem.paths is UNKNOWN:
            yield "    paths UNKNOWN", "yellow"
            continue
        for path in subsystem.paths:
            tos = _defined_tos(subsystem.nqn, path, definitions)
            text = (
                f"    {path.controller}: {_told(path.state)}, {_told(path.host_traddr)} → {_told(path.traddr)}, "
                f"{_queues(path)} I/O queues, defined ToS {tos}"
            )
            yield text, "" if path.state == _LIVE else "yellow"


def _queues(path: NvmePath) -> str:
    return "UNKNOWN" if path.queue_count is UNKNOWN else str(path.queue_count - 1)  # the kernel counts the admin queue


def _defined_tos(nqn: str, path: NvmePath, definitions: Known[tuple[Definition, ...]]) -> str:
    if definitions is UNKNOWN or path.traddr is UNKNOWN:
        return "UNKNOWN"
    found = [one for one in definitions if one.traddr == path.traddr and one.nqn in {nqn, ""}]
    near = [one for one in found if one.host_traddr in {path.host_traddr, ""}] or found
    return "nowhere" if not near else ", ".join(dict.fromkeys(_told(one.tos) for one in near))


def _target(target: NvmetState) -> Sequence[str]:
    ports = [f"{one.traddr}:{one.trsvcid} ({one.transport})" for one in target.ports]
    lines = [f"target port {text}" for text in ports]
    for one in target.subsystems:
        spaces = ", ".join(f"{nsid} {path}{'' if on else ' (off)'}" for nsid, path, on in one.namespaces)
        admitted = "any host" if one.any_host is True else f"{len(one.allowed_hosts)} hosts"
        where = ", ".join(f"port {port.number}" for port in target.ports if one.nqn in port.subsystems) or "no port"
        lines.append(f"{one.nqn}: namespaces {spaces or 'none'}, {admitted}, published at {where}")
    return lines


def _told(value: object) -> str:
    return "UNKNOWN" if value is UNKNOWN else "none" if value is None else str(value)
