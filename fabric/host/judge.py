"""All findings on one host or target: what it shall be against what it showed. Pure; reaches nothing.

| theme | rules |
|---|---|
| NIC | `host-*`, `rdma-link-missing`, `rdma-link-down`, `rdma-mtu-below-planned`, `gid-missing-for-address` |
| connection | `nvme-*` |
| target | `nvmet-*` |
| path | `rdma-mtu-mismatch`: needs the other end's report |
| engine | `shard-profile-differs` |
| counters | `data-in-lossy-queue`: needs the switch's evidence |
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from fabric.host.change import HostIntent
from fabric.host.judging.answers import WARNING, Rule
from fabric.host.judging.connections import connection_findings, identity_findings
from fabric.host.judging.evidence import PortEvidence
from fabric.host.judging.nic import gid_address, nic_findings, own_port
from fabric.host.judging.target import target_findings
from fabric.host.judging.traffic import traffic_findings
from fabric.host.nvme.connect import Connection
from fabric.host.report import HostReport
from fabric.host.rules import MtuEnd, rdma_mtu_mismatch
from fabric.policy import PROFILE_PATH
from fabric.qos import UNKNOWN
from fabric.state import Finding, Where
from fabric.state.host import RdmaPort

__all__ = ("PortEvidence", "host_findings", "unread_host")

_READ: Final = Rule("host-read")
_PROFILE: Final = Rule("shard-profile-differs", WARNING)  # it makes reads slower, and nothing lossy


def host_findings(
    intent: HostIntent,
    report: HostReport,
    peers: Mapping[str, PortEvidence],
    *,
    peer_reports: Mapping[str, HostReport] | None = None,
) -> tuple[Finding, ...]:
    """Returns the answers of every rule about one host or target, PASS too.

    Args:
        intent: what it shall be.
        report: what it showed.
        peers: its netdevs → what the switch at the other end counted; a netdev whose switch was not asked is absent.
        peer_reports: hosts → their reports, for rules that need both ends of a path; its own may be among them.
    """
    found: list[Finding] = []
    for nic in intent.plan.nics:
        found += nic_findings(nic, intent.role, report)
    if intent.role == "host":
        found += connection_findings(intent, report, peers)
        if intent.connections:
            found += identity_findings(report)
        found += _profile(intent, report)
    if intent.target is not None:
        found += target_findings(intent.target, report)
    found += traffic_findings(intent, report, peers)
    others = [one for name, one in (peer_reports or {}).items() if name != intent.host]
    found += _paths(intent, report, others)
    return tuple(dict.fromkeys(found))


def unread_host(host: str, why: str, remedy: str = "") -> Finding:
    """Returns the UNKNOWN for a host that no rule could look at: silence would read as a pass."""
    return _READ.unknown(Where(host), f"no rule could be asked: {why}", "a report of the host", remedy)


def _profile(intent: HostIntent, report: HostReport) -> Iterator[Finding]:
    """Of a host that shall have no profile, only one that stands there is told."""
    where, stands, wanted = Where(intent.host), report.shard_profile, intent.shard_profile
    remedy = "Provision the host, or `fabricctl hosts connect`."
    if stands is UNKNOWN:
        if wanted:
            yield _PROFILE.unknown(where, f"{PROFILE_PATH} was not read", "the profile of the inventory")
    elif wanted and stands == wanted:
        yield _PROFILE.passed(where, f"{PROFILE_PATH} is the inventory's")
    elif wanted:
        found = f"{PROFILE_PATH} {'differs' if stands else 'is not there'}"
        yield _PROFILE.failed(where, found, "the profile of the inventory", remedy)
    elif stands:
        yield _PROFILE.failed(where, f"{PROFILE_PATH} stands there", "none: the inventory has none", remedy)


# --- both ends of a path --------------------------------------------------------------------------------------------


def _paths(intent: HostIntent, report: HostReport, others: list[HostReport]) -> Iterator[Finding]:
    """One finding for each end of each connection whose other end was read; ends that nothing shows are not judged."""
    for one in intent.connections:
        here = _end_of_netdev(one, report)
        there = next((end for other in others if (end := _end_of_address(one.traddr, other)) is not None), None)
        if here is not None and there is not None:
            yield from rdma_mtu_mismatch(here, there)


def _end_of_netdev(one: Connection, report: HostReport) -> MtuEnd | None:
    nic = report.reading.state.nic(one.netdev)
    if nic.rdma_device is UNKNOWN or nic.rdma_device is None:
        return None
    port = own_port(nic.rdma_device, one.netdev, report)
    return None if port is None else MtuEnd(report.host, port, one.netdev, nic.mtu_bytes)


def _end_of_address(traddr: str, other: HostReport) -> MtuEnd | None:
    state = other.reading.state
    gids, ports = state.gids, state.rdma_ports
    if gids is UNKNOWN or ports is UNKNOWN:
        return None
    wanted = ipaddress.ip_address(traddr.partition("%")[0])
    gid = next((one for one in gids if gid_address(one) == wanted), None)
    if gid is None:
        return None
    port: RdmaPort | None = next((one for one in ports if (one.device, one.port) == (gid.device, gid.port)), None)
    return None if port is None else MtuEnd(other.host, port, gid.netdev, state.nic(gid.netdev).mtu_bytes)
