"""The intent and its plan in words. Returns lines; prints nothing."""

from collections.abc import Iterator

from fabric.cli.wording import Line
from fabric.plan import HostPlan, SwitchPlan
from fabric.qos import UNKNOWN, AqmKind, PortQos
from fabric.units import format_speed
from fabric.workflow import Shown

__all__ = ("intent_lines",)


def intent_lines(shown: Shown) -> Iterator[Line]:
    """Yields the fabric, its switches with their port groups, and its hosts."""
    fabric, plan = shown.fabric, shown.plan
    yield (
        (
            f"fabric {fabric.name}: {len(fabric.switches)} switches, {len(fabric.hosts)} hosts, "
            f"{len(fabric.targets)} targets, {len(fabric.links)} links"
        ),
        "bold",
    )
    roles = {switch.name: switch.role.value for switch in fabric.switches}
    for one in plan.switches:
        yield "", ""
        told = " ".join(part for part in (roles.get(one.device, ""), one.nos, one.version, one.hwsku, one.asic) if part)
        yield f"{one.device}: {told}{'' if one.lossless else ' — not lossless by plan'}", "bold"
        yield from _port_groups(one)
        yield from ((f"    note {note.code}: {note.text}", "dim") for note in one.notes)
    for host in plan.hosts:
        yield "", ""
        yield from _host(host)


def _port_groups(plan: SwitchPlan) -> Iterator[Line]:
    groups: dict[str, list[str]] = {}
    for port in plan.qos.ports:
        groups.setdefault(_port(port), []).append(port.name)
    for told, names in groups.items():
        span = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"
        yield f"    {span}: {told}", ""


def _port(port: PortQos) -> str:
    speed = "speed unknown" if port.speed_mbps is UNKNOWN else format_speed(port.speed_mbps)
    cable = "cable unknown" if port.cable_m is UNKNOWN or port.cable_m is None else f"{port.cable_m} m"
    pfc = port.pfc.active
    paused = "unknown" if pfc is UNKNOWN else ",".join(map(str, sorted(pfc))) or "none"
    return f"{speed}, {cable}, MTU {port.mtu_bytes}, PFC {paused}, {_curve(port)}"


def _curve(port: PortQos) -> str:
    for queue in port.queues:
        if queue.aqm is not UNKNOWN and queue.aqm is not None and queue.aqm.kind is AqmKind.MARK:
            return f"ECN queue {queue.index}: {queue.aqm.kmin} … {queue.aqm.kmax}, {queue.aqm.pmax_percent} %"
    return "no ECN"


def _host(plan: HostPlan) -> Iterator[Line]:
    yield f"{plan.host}: {plan.role}", "bold"
    for nic in plan.nics:
        yield (
            (
                f"    {nic.netdev} ({nic.family}): MTU {nic.mtu_bytes}, RDMA MTU {nic.rdma_mtu_bytes}, ToS {nic.tos}, "
                f"PFC {','.join(map(str, nic.pfc_priorities))}, CNP DSCP {nic.cnp_dscp}"
            ),
            "",
        )
    yield from ((f"    note {note.code}: {note.text}", "dim") for note in plan.notes)
