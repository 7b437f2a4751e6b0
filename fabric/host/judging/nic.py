"""Rules about one NIC: the settings that its family has, its RDMA link, path MTU and GIDs.

What a family has no setting for is not judged: Soft-RoCE has no PFC, and on that hop the wire has it. What the family
has and nobody could read is UNKNOWN.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from fabric.host.families.catalog import driver
from fabric.host.judging.answers import WARNING, Rule, at_nic, doubtful, reason
from fabric.host.judging.settings import numbers, setting_rule
from fabric.host.report import HostReport
from fabric.host.rules import KERNEL_HEADERS_BYTES
from fabric.host.settings import Driver, NicFacts, Setting, Value
from fabric.host.unconfirmed import FAMILIES_WITHOUT_SAMPLE
from fabric.plan.hosts import rdma_mtu_bytes
from fabric.plan.model import HostNicPlan
from fabric.qos import UNKNOWN
from fabric.state import Finding, Severity, Where
from fabric.state.host import GidEntry, LldpNeighbour, NicState, RdmaPort

__all__ = ("gid_address", "nic_findings", "own_port")

LINK_MISSING: Final = Rule("rdma-link-missing")
LINK_DOWN: Final = Rule("rdma-link-down")
PATH_MTU: Final = Rule("rdma-mtu-below-planned")
GID: Final = Rule("gid-missing-for-address")
AGENTS: Final = Rule("dcbx-two-agents", WARNING)
RATE: Final = Rule("host-rate-limit-on-data-class", WARNING)
_OWN_RULES: Final = frozenset({"rdma-link", "rdma-mtu"})  # judged for every family, not as settings


def nic_findings(plan: HostNicPlan, role: str, report: HostReport) -> Iterator[Finding]:
    """Returns the findings on one NIC of the plan.

    Args:
        plan: of the NIC.
        role: `host` or `target`: a target's answers carry what its hosts asked for, so its own default counts less.
        report: of its host.
    """
    state = report.reading.state.nic(plan.netdev)
    facts = next((one for one in report.reading.facts if one.netdev == plan.netdev), NicFacts(plan.netdev))
    doubts = [f"family {plan.family}"] if plan.family in FAMILIES_WITHOUT_SAMPLE else []
    found = [*_settings(driver(plan.family, facts.flavour), plan, state, role, report)]
    found += _rdma(plan, state, report)
    found += _gids(plan, state, report)
    found += _agents(plan, report)
    found += _rate(plan, state, report)
    for one in found:
        yield replace(one, evidence=doubtful(one.evidence, doubts)) if doubts else one


# --- settings -------------------------------------------------------------------------------------------------------


def _settings(own: Driver, plan: HostNicPlan, state: NicState, role: str, report: HostReport) -> Iterator[Finding]:
    names = {one.name for one in own.settings}
    for setting in own.settings:
        if setting.wanted(plan) is None or setting.name in _OWN_RULES:
            continue
        if setting.name == "dscp-map" and "trust" in names and state.trust == "pcp":
            continue  # without trust the map has no effect, and mlnx_qos prints none: that is one cause
        yield _judge(setting, plan, state, role=role, report=report)


def _judge(setting: Setting, plan: HostNicPlan, state: NicState, *, role: str, report: HostReport) -> Finding:
    how, wanted, found = setting_rule(setting.name), setting.wanted(plan), setting.found(state)
    unseen = [one for one in how.tools if one in report.reading.state.unconfirmed]
    expected = how.wanted(plan) if how.wanted else how.show(wanted)
    where = at_nic(report.host, plan.netdev)
    if found is UNKNOWN:
        conflict = next((one for one in state.conflicts if one.partition(":")[0] in how.fields), "")
        text = conflict or reason(report.reading.unread, *how.words)
        severity = WARNING if setting.name == "default-tos" and role == "target" else how.rule.severity
        return Rule(how.rule.id, severity).unknown(where, doubtful(f"{how.what} {text}", unseen), expected)
    evidence = doubtful(f"{how.what} {how.show(found)}", unseen)
    if (how.agrees or setting.agrees)(wanted, found):
        return how.rule.passed(where, evidence)
    return how.rule.failed(
        at_nic(report.host, plan.netdev, how.priority(plan)),
        evidence,
        expected,
        how.remedy.replace("NETDEV", plan.netdev).format(expected),
        severity=_severity(setting.name, how.rule, role, wanted, found),
    )


def _severity(name: str, rule: Rule, role: str, wanted: Value, found: Value) -> Severity:
    """A target's own default marks nothing that its hosts asked for; a larger MTU carries the path MTU all the same."""
    if name == "default-tos" and role == "target":
        return WARNING
    if name in {"default-tos", "traffic-class"}:  # the same DSCP without ECT, or no override: not marked, not lost
        harmless = found is None or (isinstance(found, int) and isinstance(wanted, int) and found >> 2 == wanted >> 2)
        return WARNING if harmless else rule.severity
    if name == "mtu" and isinstance(found, int) and isinstance(wanted, int) and found > wanted:
        return WARNING
    return rule.severity


# --- RDMA -----------------------------------------------------------------------------------------------------------


def _rdma(plan: HostNicPlan, state: NicState, report: HostReport) -> Iterator[Finding]:
    where = at_nic(report.host, plan.netdev)
    unread = report.reading.unread
    device = state.rdma_device
    if device is UNKNOWN:
        yield LINK_MISSING.unknown(where, f"RDMA devices: {reason(unread, 'rdma -j link')}")
    elif device is None:
        remedy = f"load the NIC's RDMA driver, or for Soft-RoCE: rdma link add NAME type rxe netdev {plan.netdev}"
        yield LINK_MISSING.failed(where, "no RDMA device on this netdev", "an RDMA device", remedy)
        return
    else:
        yield LINK_MISSING.passed(where, f"RDMA device {device}")
    port = None if device is UNKNOWN else own_port(device, plan.netdev, report)
    yield _link_state(port, where, unread)
    yield _path_mtu(plan, state, port, where, unread)


def own_port(device: str, netdev: str, report: HostReport) -> RdmaPort | None:
    """Returns what `ibv_devinfo` showed of the NIC's port, or None."""
    number = next((one.rdma_port for one in report.reading.facts if one.netdev == netdev), 1)
    ports = report.reading.state.rdma_ports
    return next(
        (one for one in (() if ports is UNKNOWN else ports) if (one.device, one.port) == (device, number)), None
    )


def _link_state(port: RdmaPort | None, where: Where, unread: Iterable[str]) -> Finding:
    if port is None or port.state is UNKNOWN:
        return LINK_DOWN.unknown(where, f"state of the RDMA port: {reason(unread, 'ibv_devinfo')}", "ACTIVE")
    if port.state == "ACTIVE":
        return LINK_DOWN.passed(where, f"{port.name} is ACTIVE")
    remedy = "bring the netdev up and look at the cable and the switch port"
    return LINK_DOWN.failed(where, f"{port.name} is {port.state}", "ACTIVE", remedy)


def _path_mtu(
    plan: HostNicPlan, state: NicState, port: RdmaPort | None, where: Where, unread: Iterable[str]
) -> Finding:
    wanted = plan.rdma_mtu_bytes
    expected = f"an active MTU of {wanted}"
    read = state.rdma_mtu_bytes if port is None or port.active_mtu_bytes is UNKNOWN else port.active_mtu_bytes
    at_most = UNKNOWN if state.mtu_bytes is UNKNOWN else rdma_mtu_bytes(state.mtu_bytes, ipv6=False)
    remedy = f"raise the MTU of {plan.netdev} to {max(plan.mtu_bytes, wanted + KERNEL_HEADERS_BYTES)} or more"
    if read is UNKNOWN:
        said = f"active MTU {reason(unread, 'ibv_devinfo')}"
        if at_most is UNKNOWN or at_most >= wanted:
            return PATH_MTU.unknown(where, said, expected)
        text = f"{said}; over a netdev with MTU {state.mtu_bytes} it is {at_most} at most"
        return PATH_MTU.failed(where, text, expected, remedy)
    if read >= wanted:
        return PATH_MTU.passed(where, f"active MTU {read}")
    return PATH_MTU.failed(where, f"active MTU {read} over a netdev with MTU {state.mtu_bytes}", expected, remedy)


# --- GIDs and neighbours --------------------------------------------------------------------------------------------


def _gids(plan: HostNicPlan, state: NicState, report: HostReport) -> Iterator[Finding]:
    where = at_nic(report.host, plan.netdev)
    table = report.reading.state.gids
    for address in plan.addresses:
        wanted = ipaddress.ip_interface(address).ip
        expected = f"a RoCE v2 GID with {wanted}"
        if table is UNKNOWN:
            text = f"table of GIDs: {reason(report.reading.unread, '/sys/class/infiniband')}"
            yield GID.unknown(where, text, expected)
            continue
        own = [one for one in table if state.rdma_device in {UNKNOWN, one.device} and gid_address(one) == wanted]
        right = next((one for one in own if one.kind == "v2"), None)
        if right is not None:
            yield GID.passed(where, f"index {right.index} of {right.device}/{right.port} is RoCE v2 with {wanted}")
            continue
        text = f"{wanted} has a GID of RoCE{own[0].kind} only" if own else f"no GID has {wanted}"
        remedy = f"give {plan.netdev} the address {address}: the kernel makes the GID from it"
        yield GID.failed(where, text, expected, remedy)


def gid_address(one: GidEntry) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Returns the IP address that a GID is made from, None for a text that is no GID."""
    try:
        address = ipaddress.IPv6Address(one.gid)
    except ValueError:
        return None
    return address.ipv4_mapped or address


def _agents(plan: HostNicPlan, report: HostReport) -> Iterator[Finding]:
    """Two agents behind one port that announce different PFC sets: one of them is a NIC's firmware."""
    neighbours = report.reading.state.neighbours
    places = {plan.netdev, *(one.port for one in report.reading.facts if one.netdev == plan.netdev)}
    own = [one for one in (() if neighbours is UNKNOWN else neighbours) if one.netdev in places]
    said = [one for one in own if one.dcbx.pfc_priorities is not UNKNOWN]
    if len({one.dcbx.pfc_priorities for one in said}) < 2:
        return
    text = "; ".join(f"{_agent(one)} announces PFC on {numbers(one.dcbx.pfc_priorities)}" for one in said)
    remedy = "switch the firmware's agent off, or the other one: the NIC follows whichever spoke last"
    yield AGENTS.failed(at_nic(report.host, plan.netdev), text, "one agent", remedy)


def _agent(one: LldpNeighbour) -> str:
    return "an agent without a name" if one.system is UNKNOWN else one.system


def _rate(plan: HostNicPlan, state: NicState, report: HostReport) -> Iterator[Finding]:
    """A rate limit on the class that carries the data. Only the tools that show limits are asked; others have none."""
    if state.prio_tc is UNKNOWN or not plan.pfc_priorities:
        return
    tc = state.prio_tc[plan.pfc_priorities[0]]
    mbps = None if state.rate_limit_mbps is UNKNOWN else state.rate_limit_mbps[tc]
    percent = 0 if state.rate_limit_percent is UNKNOWN else state.rate_limit_percent[tc]
    if mbps is None and percent in {0, 100}:
        return
    limit = f"{percent} % of the link" if mbps is None else f"{mbps} Mb/s"
    where = at_nic(report.host, plan.netdev, plan.pfc_priorities[0])
    remedy = "take the limit away: the NIC holds back data that it could send"
    yield RATE.failed(where, f"class {tc} is limited to {limit}", "no limit", remedy)
