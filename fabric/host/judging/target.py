"""Rules about the kernel's NVMe target: what is published, where it listens, whom it admits. Pure."""

import ipaddress
from collections.abc import Iterator
from typing import Final

from fabric.host.judging.answers import Rule, reason
from fabric.host.report import HostReport
from fabric.qos import UNKNOWN
from fabric.state import Finding, Where
from fabric.state.host import NvmetPort, NvmetState, NvmetSubsystem

__all__ = ("ADMITTED", "LISTENER", "NAMESPACE", "PUBLISHED", "target_findings")

PUBLISHED: Final = Rule("nvmet-subsystem-not-published")
LISTENER: Final = Rule("nvmet-listener-missing")
ADMITTED: Final = Rule("nvmet-allowed-hosts")
NAMESPACE: Final = Rule("nvmet-namespace-not-enabled")


def target_findings(wanted: NvmetState, report: HostReport) -> Iterator[Finding]:
    """Returns the findings on each subsystem and each address that a target shall have."""
    found = report.reading.state.target
    if found is UNKNOWN:
        text = f"the kernel's target {reason(report.reading.unread, 'nvmet')}"
        for one in wanted.subsystems:
            yield PUBLISHED.unknown(_place(report, one), text, f"{one.nqn} on every port")
        return
    for port in wanted.ports:
        yield _listener(port, found, report)
    for one in wanted.subsystems:
        yield from _subsystem(one, wanted, found, report)


def _place(report: HostReport, one: NvmetSubsystem) -> Where:
    return Where(report.host, details=(("nqn", one.nqn),))


def _name(port: NvmetPort) -> str:
    return f"{port.transport} {port.traddr} {port.trsvcid}"


def _standing(port: NvmetPort, found: NvmetState) -> NvmetPort | None:
    return next((one for one in found.ports if _key(one) == _key(port)), None)


def _key(port: NvmetPort) -> tuple[str, str, str]:
    try:
        return port.transport, str(ipaddress.ip_address(port.traddr)), port.trsvcid
    except ValueError:
        return port.transport, port.traddr, port.trsvcid


def _listener(port: NvmetPort, found: NvmetState, report: HostReport) -> Finding:
    where = Where(report.host, details=(("traddr", port.traddr),))
    if _standing(port, found) is not None:
        return LISTENER.passed(where, _name(port))
    others = ", ".join(_name(one) for one in found.ports) or "no port"
    remedy = f"make a port with {port.traddr} on an RDMA netdev, which must have the address before"
    return LISTENER.failed(where, others, _name(port), remedy)


def _subsystem(one: NvmetSubsystem, wanted: NvmetState, found: NvmetState, report: HostReport) -> Iterator[Finding]:
    where = _place(report, one)
    there = next((other for other in found.subsystems if other.nqn == one.nqn), None)
    if there is None:
        yield PUBLISHED.failed(where, "no such subsystem", one.nqn, "set the target up (fabricctl hosts apply)")
        return
    # a port that does not stand is its own finding
    planned = [port for port in wanted.ports if one.nqn in port.subsystems]
    ports = [(port, standing) for port in planned if (standing := _standing(port, found))]
    mute = [_name(port) for port, standing in ports if one.nqn not in standing.subsystems]
    if mute:
        remedy = "link the subsystem to the port: only then does the target listen"
        yield PUBLISHED.failed(where, f"not on {', '.join(mute)}", f"{one.nqn} on every port", remedy)
    else:
        yield PUBLISHED.passed(where, f"on {', '.join(_name(port) for port, _ in ports) or 'no standing port'}")
    yield _namespaces(one, there, where)
    yield _admitted(one, there, where)


def _namespaces(one: NvmetSubsystem, there: NvmetSubsystem, where: Where) -> Finding:
    standing = {nsid: (device, on) for nsid, device, on in there.namespaces}
    wrong = [
        f"nsid {nsid}: {_namespace(standing.get(nsid))}"
        for nsid, device, on in one.namespaces
        if standing.get(nsid) != (device, on)
    ]
    expected = ", ".join(f"nsid {nsid}: {device}" for nsid, device, _ in one.namespaces)
    if wrong:
        return NAMESPACE.failed(where, "; ".join(wrong), expected, "give the namespace its device and enable it")
    return NAMESPACE.passed(where, expected or "no namespace is planned")


def _namespace(found: tuple[str, bool] | None) -> str:
    if found is None:
        return "absent"
    device, on = found
    return f"{device or 'no device'}, {'enabled' if on else 'not enabled'}"


def _admitted(one: NvmetSubsystem, there: NvmetSubsystem, where: Where) -> Finding:
    expected = "any host" if one.any_host is True else ", ".join(one.allowed_hosts) or "no host"
    if there.any_host is UNKNOWN:
        return ADMITTED.unknown(where, "attr_allow_any_host was not read", expected)
    found = "any host" if there.any_host else ", ".join(there.allowed_hosts) or "no host"
    same = there.any_host == one.any_host and (there.any_host or set(there.allowed_hosts) == set(one.allowed_hosts))
    if same:
        return ADMITTED.passed(where, f"admits {found}")
    return ADMITTED.failed(where, f"admits {found}", expected, "admit exactly the planned hosts")
