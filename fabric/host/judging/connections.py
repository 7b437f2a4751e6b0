"""Rules about what a host is connected to, and with which type of service. Pure.

The kernel shows the type of service of a connection nowhere. Two things tell: the definition that the connection is
made from, and what the switch counted on the way. A definition can be wrong about a connection that somebody made by
hand; cumulative counters can be of the time before. So a right definition passes, a wrong one fails, and without one
the counters may prove a fault, and never that there is none.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fabric.host.change import HostIntent
from fabric.host.judging.answers import WARNING, Rule, doubtful, reason, tos_serves, tos_words
from fabric.host.judging.evidence import PortEvidence
from fabric.host.judging.traffic import lossy_only, rdma_received
from fabric.host.nvme.connect import Connection
from fabric.host.report import Definition, HostReport
from fabric.host.rules import ctrl_loss_tmo_default, linklocal_needs_host_traddr
from fabric.plan.model import HostPlan
from fabric.qos import UNKNOWN, Known
from fabric.state import Finding, Where
from fabric.state.host import NvmePath

__all__ = ("ANA", "IDENTITY", "MISSING", "NOT_LIVE", "SOURCE", "TOS", "connection_findings", "identity_findings")

MISSING: Final = Rule("nvme-connection-missing")
SOURCE: Final = Rule("nvme-connection-wrong-source")
NOT_LIVE: Final = Rule("nvme-connection-not-live")
TOS: Final = Rule("nvme-connection-tos")
ANA: Final = Rule("nvme-path-not-optimized", WARNING)
IDENTITY: Final = Rule("nvme-identity-pair", WARNING)
_UUID_PREFIX: Final = "nqn.2014-08.org.nvmexpress:uuid:"  # NVM Express Base Specification 2.0, section 4.5.1
_DISCOVERY: Final = frozenset({"", "nqn.2014-08.org.nvmexpress.discovery"})  # a definition that names no subsystem


def connection_findings(intent: HostIntent, report: HostReport, peers: Mapping[str, PortEvidence]) -> Iterator[Finding]:
    """Returns the findings on each planned connection, by the NIC that it starts at."""
    doubts = [one for one in report.reading.state.unconfirmed if one.startswith("nvme")]
    for one in intent.connections:
        where = Where(intent.host, (one.netdev,), details=(("nqn", one.nqn), ("traddr", one.traddr)))
        yield from _standing(intent, one, where, report, doubts)
        yield _tos(intent.plan, one, where, report, peers.get(one.netdev))
        options = {"transport": "rdma", "traddr": one.traddr, "host-traddr": one.host_traddr}
        yield from linklocal_needs_host_traddr(intent.host, options, {})


# --- whether it stands ----------------------------------------------------------------------------------------------


def _standing(
    intent: HostIntent, one: Connection, where: Where, report: HostReport, doubts: list[str]
) -> Iterator[Finding]:
    expected = f"a controller at {one.traddr} from {one.host_traddr}"
    found = _paths(one, report)
    if found is UNKNOWN:
        text = f"controllers {reason(report.reading.unread, 'nvme')}"
        yield MISSING.unknown(where, doubtful(text, doubts), expected)
        return
    reached = [path for path in found if path.transport in {"rdma", UNKNOWN}]
    own = next((path for path in reached if _same(path.host_traddr, one.host_traddr)), None)
    path = own or next((path for path in reached if _is_stray(path, one, intent)), None)
    if path is None:
        others = ", ".join(f"{path.controller} over {path.transport}" for path in found if path not in reached)
        remedy = "connect it (fabricctl hosts connect), and read the kernel's log"
        yield MISSING.failed(where, doubtful(others or "no controller", doubts), expected, remedy)
        return
    yield MISSING.passed(where, doubtful(path.controller, doubts))
    yield from _described(one, path, where, own is not None, doubts)
    after = one.policy.ctrl_loss_tmo_s
    yield from ctrl_loss_tmo_default(intent.host, [path], survive_outage_s=None if after < 0 else after)


def _described(one: Connection, path: NvmePath, where: Where, is_own: bool, doubts: list[str]) -> Iterator[Finding]:
    name = path.controller
    if is_own:
        yield SOURCE.passed(where, doubtful(f"{name} from {path.host_traddr}", doubts))
    else:
        source = "a source that routing chose" if path.host_traddr is UNKNOWN else path.host_traddr
        remedy = f"connect it anew with --host-traddr={one.host_traddr}: another NIC carries it, in whatever class"
        yield SOURCE.failed(where, doubtful(f"{name} from {source}", doubts), one.host_traddr, remedy)
    if path.state is UNKNOWN:
        yield NOT_LIVE.unknown(where, doubtful(f"state of {name} not read", doubts), "live")
    elif path.state == "live":
        yield NOT_LIVE.passed(where, doubtful(f"{name} is live", doubts))
    else:
        later = (
            "it will not come back by itself: connect it again"
            if "deleting" in path.state
            else ("look at the target, its listener and the path MTU of both ends; the kernel's log has the reason")
        )
        yield NOT_LIVE.failed(where, doubtful(f"{name} is {path.state}", doubts), "live", later)
    lame = [f"{device} {state}" for device, state in (() if path.ana is UNKNOWN else path.ana) if _is_lame(state)]
    if lame:
        yield ANA.failed(where, doubtful(", ".join(lame), doubts), "optimized", "look at the target's ANA groups")


def _is_lame(state: str) -> bool:
    return state in {"inaccessible", "persistent-loss"}


def _paths(one: Connection, report: HostReport) -> Known[list[NvmePath]]:
    subsystems = report.reading.state.subsystems
    if subsystems is UNKNOWN:
        return UNKNOWN
    own = [subsystem.paths for subsystem in subsystems if subsystem.nqn == one.nqn]
    if UNKNOWN in own:
        return UNKNOWN
    return [
        path
        for paths in own
        if paths is not UNKNOWN
        for path in paths
        if _same(path.traddr, one.traddr) and path.trsvcid in {one.trsvcid, UNKNOWN}
    ]


def _is_stray(path: NvmePath, one: Connection, intent: HostIntent) -> bool:
    """Whether no planned connection to the same address starts where this path does."""
    siblings = [other for other in intent.connections if (other.nqn, other.traddr) == (one.nqn, one.traddr)]
    return not any(_same(path.host_traddr, other.host_traddr) for other in siblings)


def _same(found: Known[str], wanted: str) -> bool:
    return found is not UNKNOWN and _address(found) == _address(wanted)


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


# --- type of service ------------------------------------------------------------------------------------------------


def _tos(plan: HostPlan, one: Connection, where: Where, report: HostReport, evidence: PortEvidence | None) -> Finding:
    expected = tos_words(one.tos)
    remedy = f"connect with --tos={one.tos}: the target's answers inherit it"
    default = report.reading.state.nic(one.netdev).default_tos
    defined = () if report.definitions is UNKNOWN else report.definitions
    own = [each for each in defined if _defines(each, one)]
    faults = [said for each in own if (said := _fault(each, one.tos, default))]
    if faults:
        text, is_lost = max(faults, key=lambda said: said[1])
        return TOS.failed(where, text, expected, remedy, severity=TOS.severity if is_lost else WARNING)
    if own:
        return TOS.passed(where, f"{tos_words(one.tos)} by {own[0].source}")
    nothing = "no unit and no file defines this connection, and the kernel does not show its type of service"
    if report.definitions is UNKNOWN:
        nothing = f"definitions of connections {reason(report.reading.unread, 'nvme', 'systemd')}"
    seen, why = _by_counters(plan, one, report, evidence)
    if seen:
        return TOS.failed(where, f"{nothing}; {seen}", expected, remedy)
    return TOS.unknown(where, f"{nothing}; {why}", expected, remedy)


def _defines(defined: Definition, one: Connection) -> bool:
    names = {one.nqn} | _DISCOVERY
    return (
        defined.nqn in names
        and _same(defined.traddr, one.traddr)
        and (not defined.host_traddr or _same(defined.host_traddr, one.host_traddr))
    )


def _fault(defined: Definition, wanted: int, default: Known[int]) -> tuple[str, bool] | None:
    """What is wrong with a definition, and whether traffic is in the wrong class by it; None if nothing is."""
    if defined.tos is not UNKNOWN and defined.tos >= 0:  # -1 asks for the device's default, hosts.md 3.1
        if tos_serves(wanted, defined.tos):
            return None
        return f"{tos_words(defined.tos)} by {defined.source}", wanted >> 2 != defined.tos >> 2
    said = f"{defined.source} names no type of service"
    if default is UNKNOWN:
        return f"{said}, and the device's default was not read", True
    return f"{said}; the device's default is {tos_words(default)} now", not tos_serves(wanted, default)


def _by_counters(plan: HostPlan, one: Connection, report: HostReport, evidence: PortEvidence | None) -> tuple[str, str]:
    """The proof of the counters that the mark is missing, and when there is none, why they do not tell."""
    if evidence is None:
        return "", "no switch was asked"
    seen = lossy_only(evidence, rdma_received(plan, one.netdev, report))
    if seen and evidence.classifies is True:
        return seen, ""
    if evidence.classifies is False:
        return "", f"{evidence.switch} puts the DSCP into another class itself, so its counters do not tell"
    return "", evidence.reason or f"the counters of {evidence.switch} {evidence.port} do not tell"


# --- identity -------------------------------------------------------------------------------------------------------


def identity_findings(report: HostReport) -> Iterable[Finding]:
    """Returns whether hostnqn and hostid are one identity; some targets take a torn pair for two hosts."""
    state = report.reading.state
    where = Where(report.host)
    if state.hostnqn is UNKNOWN or state.hostid is UNKNOWN:
        missing = [name for name, text in (("hostnqn", state.hostnqn), ("hostid", state.hostid)) if text is UNKNOWN]
        yield IDENTITY.unknown(where, f"{' and '.join(missing)} not read, or not there", "both files of /etc/nvme")
        return
    own = state.hostnqn.removeprefix(_UUID_PREFIX).lower() if state.hostnqn.startswith(_UUID_PREFIX) else ""
    if own and own != state.hostid.lower():
        text = f"hostid {state.hostid} is not the UUID of {state.hostnqn}"
        remedy = "make the pair anew only while no target admits this host by it"
        yield IDENTITY.failed(where, text, "the UUID of hostnqn as hostid", remedy)
        return
    yield IDENTITY.passed(where, "hostnqn and hostid are one identity")
