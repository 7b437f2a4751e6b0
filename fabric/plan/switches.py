"""One switch: its ports, all with the same maps and schedule, and what its neighbours must agree on."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabric.intent.model import Switch, SwitchPort
from fabric.plan.ecn import note_order, plan_curve
from fabric.plan.headroom import Cable, headroom_of, note_cable, note_headroom, plan_cable, plan_groups
from fabric.plan.ledger import Ledger
from fabric.plan.mapping import Classes, numbers, plan_classes
from fabric.plan.model import PortHeadroom, SwitchPlan
from fabric.plan.mtu import Needs, carried_ip_mtu_bytes, planned_mtu_bytes
from fabric.plan.queues import Schedule, plan_dcbx, plan_queues, plan_schedule, plan_watchdog
from fabric.qos import (
    UNKNOWN,
    Aqm,
    Aspect,
    Capabilities,
    DcbxMode,
    DeviceQos,
    HeadroomOwner,
    Kept,
    LinkPause,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    PriorityGroupQos,
    QueueQos,
    Trust,
)
from fabric.qos.headroom import canonical_asic
from fabric.qos.thresholds import pool_of

__all__ = ("Surroundings", "plan_switch")

_LEANS_ON = (
    "mtu_max_bytes",
    "mtu_overhead_bytes",
    "lossless_priorities_max",
    "threshold_quantum_bytes",
    "watchdog_timer_range_ms",
    "watchdog_polling_range_ms",
    "cnp_queue",
    "reserved_queues",
    "dscp_default_to_tc",
    "headroom_owner",
    "cable_lengths_m",
    "watchdog_polls_per_timer",
    "watchdog_restoration_range_ms",
    "watchdog_actions",
    "dcbx_modes",
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a switch's plan needs to know of the rest of the fabric.

    Attributes:
        cnp_dscps: DSCPs on the CNPs of any NIC.
        needs: IP MTUs that must pass.
        switches: name → intent of every switch.
    """

    cnp_dscps: frozenset[int]
    needs: Needs
    switches: Mapping[str, Switch]


@dataclass(frozen=True, slots=True)
class _Common:
    """What all ports of a switch share."""

    classes: Classes
    schedule: Schedule
    watchdog: PortWatchdog | None
    dcbx: DcbxMode


@dataclass(frozen=True, slots=True)
class _Kind:
    """What tells ports of a switch apart as far as numbers go."""

    speed_mbps: int
    cable_m: int | None
    lanes: int | None
    mtu_bytes: int


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The part of a port that follows from its kind."""

    cable: Cable
    queues: tuple[QueueQos, ...]
    groups: tuple[PriorityGroupQos, ...]


def plan_switch(
    switch: Switch, capabilities: Capabilities, around: Surroundings, ledger: Ledger
) -> tuple[SwitchPlan, Classes]:
    """Returns the plan of one switch and its classes; notes and problems go to `ledger`, notes into the plan too."""
    policy = switch.policy
    cnp_dscps = {policy.cnp_dscp, *around.cnp_dscps}
    classes = plan_classes(policy, capabilities, cnp_dscps=cnp_dscps, ledger=ledger)
    common = _Common(
        classes=classes,
        schedule=plan_schedule(policy, capabilities, classes, ledger),
        watchdog=plan_watchdog(policy, capabilities, classes, ledger),
        dcbx=plan_dcbx(policy, capabilities, ledger),
    )
    _check_names(switch, capabilities, ledger)
    kinds = _kinds(switch, capabilities, ledger)
    curves = _curves(switch, capabilities, ledger)
    numbers_of, headroom = _numbers(switch, capabilities, common, kinds, curves, ledger)
    by_port = {name: kind for kind, names in kinds.items() for name in names}
    ports = tuple(_port(port, common, by_port[port.name], numbers_of[by_port[port.name]]) for port in switch.ports)
    _note_hops(switch, capabilities, around, by_port, ledger)
    _note_facts(capabilities, ledger)
    plan = SwitchPlan(
        device=switch.name,
        nos=switch.nos,
        qos=_device(switch, common, ports),
        adopt=switch.adopt,
        version=switch.version,
        hwsku=switch.hwsku,
        asic=switch.asic,
        notes=tuple(ledger.notes),
        headroom=headroom,
        kept=_kept(switch, classes, ledger),
    )
    return plan, classes


def _kept(switch: Switch, classes: Classes, ledger: Ledger) -> tuple[Kept, ...]:
    """Returns what stays as the device has it, ports that keep the same together."""
    groups: dict[frozenset[Aspect], list[str]] = {}
    for port in switch.ports:
        if port.keep:
            groups.setdefault(port.keep, []).append(port.name)
    for aspects, ports in groups.items():
        ledger.note("kept", f"stays as the device has it: {', '.join(sorted(aspects))}", ports=ports)
    return tuple(Kept(tuple(ports), aspects, classes.data, classes.cnp) for aspects, ports in groups.items())


def _check_names(switch: Switch, capabilities: Capabilities, ledger: Ledger) -> None:
    """QoS is bound to physical ports: a name of another OS, or a port channel's, would bind nothing."""
    pattern, example = capabilities.port_names.value
    if wrong := [port.name for port in switch.ports if re.fullmatch(pattern, port.name) is None]:
        ledger.problem(
            f"{switch.nos} has no physical port of this name",
            at="ports",
            found=wrong[0] if len(wrong) == 1 else f"{wrong[0]} and {len(wrong) - 1} more",
            expected=f"names such as {example}; port channels stand in fabric_lags",
        )


def _device(switch: Switch, common: _Common, ports: tuple[PortQos, ...]) -> DeviceQos:
    """Returns the whole device. Its device-wide map is that of the ports; whether it may be set is not decided here."""
    watchdog = common.watchdog
    return DeviceQos(
        device=switch.name,
        nos=switch.nos,
        ports=ports,
        global_dscp_to_tc=common.classes.dscp_to_tc,
        watchdog_polling_ms=None if watchdog is None else watchdog.polling_ms,
        pfc_disabled_globally=False,
        aqm_counters=True,
    )


def _port(port: SwitchPort, common: _Common, kind: _Kind, planned: _Numbers) -> PortQos:
    classes = common.classes
    return PortQos(
        name=port.name,
        speed_mbps=port.speed_mbps,
        mtu_bytes=kind.mtu_bytes,
        fec=UNKNOWN if port.fec is None else port.fec,
        cable_m=planned.cable.told_m,
        lag=port.lag,
        trust=Trust.DSCP,
        dscp_to_tc=classes.dscp_to_tc,
        pcp_to_tc=None,
        tc_to_queue=classes.tc_to_queue,
        tc_to_pg=classes.tc_to_pg,
        pfc_to_queue=classes.pfc_to_queue,
        pfc_to_pg=classes.pfc_to_pg,
        rewrite=None,
        pfc=PortPfc(
            mode=PfcMode.ON,
            priorities=frozenset({classes.data}),
            rx=True,
            tx=True,
            asymmetric=False,
            send_tlv=common.dcbx is not DcbxMode.OFF,
        ),
        link_pause=LinkPause(rx=False, tx=False),
        queues=planned.queues,
        priority_groups=planned.groups,
        watchdog=common.watchdog,
        dcbx=common.dcbx,
        lldp=True,
    )


def _kinds(switch: Switch, capabilities: Capabilities, ledger: Ledger) -> dict[_Kind, list[str]]:
    """Returns the ports of each kind, and notes where the OS's largest MTU is below the intent's."""
    kinds: dict[_Kind, list[str]] = {}
    clamped: dict[int, list[str]] = {}
    for port in switch.ports:
        mtu = planned_mtu_bytes(port, switch.policy, capabilities)
        wanted = min(port.mtu_bytes, switch.policy.mtu_bytes)
        if mtu < wanted:
            clamped.setdefault(wanted, []).append(port.name)
        kinds.setdefault(_Kind(port.speed_mbps, port.cable_m, port.lanes, mtu), []).append(port.name)
    limit = capabilities.mtu_max_bytes.value
    for wanted, ports in clamped.items():
        text = f"MTU {wanted} B becomes {limit} B, the largest that {switch.nos} takes"
        ledger.note("mtu-clamped", text, ports=ports)
    return kinds


def _curves(switch: Switch, capabilities: Capabilities, ledger: Ledger) -> dict[int, Aqm | None]:
    """Returns the data queue's curve by line rate, None for each when ECN is off."""
    by_speed: dict[int, list[str]] = {}
    for port in switch.ports:
        by_speed.setdefault(port.speed_mbps, []).append(port.name)
    if not switch.policy.ecn_enabled:
        ledger.note("ecn-off", "nothing is marked: every congestion becomes a pause")
        return dict.fromkeys(by_speed)
    curves: dict[int, Aqm | None] = {}
    groups = len(switch.ports)  # one lossless group a port
    pool = pool_of(canonical_asic(switch.asic), hwsku=switch.hwsku)
    if pool is None:
        text = "the shared buffer of this ASIC is not known, nor whether ECN marks before PFC pauses"
        ledger.note("ecn-before-pfc-unknown", text)
    for speed, ports in by_speed.items():
        curve = plan_curve(switch.policy, capabilities, speed_mbps=speed, role=switch.role, ports=ports, ledger=ledger)
        if pool is not None:
            note_order(curve, pool, switch.policy, speed_mbps=speed, ports=ports, groups=groups, ledger=ledger)
        curves[speed] = curve.aqm
    return curves


def _numbers(
    switch: Switch,
    capabilities: Capabilities,
    common: _Common,
    kinds: Mapping[_Kind, Sequence[str]],
    curves: Mapping[int, Aqm | None],
    ledger: Ledger,
) -> tuple[dict[_Kind, _Numbers], tuple[PortHeadroom, ...]]:
    found: dict[_Kind, _Numbers] = {}
    rows: list[PortHeadroom] = []
    for kind, ports in kinds.items():
        cable = plan_cable(kind.cable_m, capabilities)
        headroom = headroom_of(
            switch, speed_mbps=kind.speed_mbps, cable=cable, mtu_bytes=kind.mtu_bytes, lanes=kind.lanes
        )
        if cable.told_m != cable.real_m:
            note_cable(cable, ports, ledger)
        rows.append(PortHeadroom(tuple(ports), headroom))
        found[kind] = _Numbers(
            cable=cable,
            queues=plan_queues(common.classes, common.schedule, curves[kind.speed_mbps]),
            groups=plan_groups(switch.policy, capabilities, common.classes, headroom),
        )
    note_headroom(rows, switch, ledger)
    owner = capabilities.headroom_owner.value
    if owner is not HeadroomOwner.CONFIG and rows:
        who = f"{switch.nos} sizes the headroom by itself"
        how = "from speed, cable and MTU" if owner is HeadroomOwner.NOS else "and does not show it"
        ledger.note("headroom-by-device", f"{who} {how}: the plan's numbers are there to compare")
    return found, tuple(rows)


def _note_hops(
    switch: Switch, capabilities: Capabilities, around: Surroundings, by_port: Mapping[str, _Kind], ledger: Ledger
) -> None:
    """Notes, as blocking, ports that cut the hosts' packets, and cables whose two ends disagree."""
    small: dict[tuple[int, int], list[str]] = {}
    apart: dict[str, list[str]] = {}
    for port in switch.ports:
        needed = around.needs.of(switch.name, port)
        mtu = by_port[port.name].mtu_bytes
        carried = carried_ip_mtu_bytes(mtu, tagged=port.vlan is not None, capabilities=capabilities)
        if carried < needed:
            small.setdefault((carried, needed), []).append(port.name)
        peer = None if port.peer is None else around.switches.get(port.peer.device)
        if peer is not None and (disagreement := _disagreement(switch, peer)):
            apart.setdefault(disagreement, []).append(port.name)
    for (carried, needed), ports in small.items():
        text = f"IP packets of up to {carried} B pass, and hosts send {needed} B"
        ledger.note("mtu-too-small", text, ports=ports, blocks_lossless=True)
    for text, ports in apart.items():
        ledger.note("hop-mismatch", text, ports=ports, blocks_lossless=True)


def _disagreement(switch: Switch, peer: Switch) -> str:
    """Returns what the two switches call lossless and the other does not, "" when they agree."""
    ours, theirs = switch.policy, peer.policy
    if ours.data_priority != theirs.data_priority:
        return f"priority {ours.data_priority} pauses here, and priority {theirs.data_priority} on {peer.name}"
    if set(ours.data_dscps) != set(theirs.data_dscps):
        here, there = numbers(sorted(ours.data_dscps)), numbers(sorted(theirs.data_dscps))
        return f"DSCP {here} is RoCE data here, and DSCP {there} on {peer.name}"
    return ""


def _note_facts(capabilities: Capabilities, ledger: Ledger) -> None:
    """Notes which capabilities this plan leans on although nobody confirmed them."""
    shaky = [name for name in _LEANS_ON if getattr(capabilities, name).unconfirmed]
    if shaky:
        text = f"nobody confirmed these facts about {capabilities.nos} on a device: {', '.join(shaky)}"
        ledger.note("unconfirmed-fact", text)
