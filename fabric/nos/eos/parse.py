"""A running configuration of EOS as `DeviceQos`, defaults of the OS applied. Pure; whoever wrote the text.

How lines combine: a profile below, a port channel's lines over it, the member's own over both; MTU and routing mode
of a member are those of its port channel (EOS User Manual, "Port Channels": unconfirmed).
"""

import re
from typing import Final

from fabric.nos.eos.defaults import COS_TO_TC, DSCP_TO_TC, MTU_ROUTED, MTU_SWITCHED, TC_TO_DSCP
from fabric.nos.eos.keys import NO
from fabric.nos.eos.parse_queues import queues, unknown_queues
from fabric.nos.eos.parse_watchdog import device_polling_ms, watchdog
from fabric.nos.eos.sections import EMPTY_SECTION, Section, Sections, sections
from fabric.nos.eos.text import tree
from fabric.qos import (
    IDENTITY,
    UNKNOWN,
    DcbxMode,
    DeviceQos,
    DscpMap,
    DscpRewrite,
    Known,
    LinkPause,
    PfcMode,
    PortPfc,
    PortQos,
    PriorityGroupQos,
    Reference,
    TcMap,
    Trust,
)
from fabric.tree import Tree

__all__ = ("ALL_OFF", "cos_to_tc", "is_routed", "parse", "parse_tree", "port_qos", "priority_groups")

ALL_OFF: Final = "priority-flow-control all off"
_POLICY: Final = "service-policy type qos input"
_SPEED: Final = re.compile(r"(?:forced |auto )?([0-9]{1,5})g.*")
_NO_DROP: Final = re.compile(r"priority-flow-control priority ([0-7])")
_FEC: Final = {"reed-solomon": "rs", "fire-code": "fc"}


def parse(text: str, *, device: str = "") -> DeviceQos:
    """Returns what the configuration does; `device` defaults to its own `hostname`.

    Raises:
        FabricError: the text is not of EOS.
    """
    return parse_tree(tree(text), device=device)


def parse_tree(running: Tree, *, device: str = "") -> DeviceQos:
    """Returns what the configuration in `running` does."""
    found = sections(running)
    hostname = found.device.get("hostname")
    return DeviceQos(
        device=device or (hostname if isinstance(hostname, str) else ""),
        nos="eos",
        ports=tuple(port_qos(found, name) for name in found.ports()),
        global_dscp_to_tc=_dscp_map(found),
        watchdog_polling_ms=device_polling_ms(found.device),
        pfc_disabled_globally=ALL_OFF in found.device,
        headroom_pool_bytes=None,
        # some ASICs count marks only with this line; without it the text cannot tell (switches.md 1.4)
        aqm_counters=True if "hardware counter feature ecn out" in found.device else UNKNOWN,
        undefined=tuple(_undefined(found)),
    )


def port_qos(found: Sections, name: str) -> PortQos:
    """Returns one physical port of the device."""
    own = found.interfaces.get(name, EMPTY_SECTION)
    channel = found.channel_of(name)
    shared = found.interfaces.get(channel, EMPTY_SECTION) if channel else EMPTY_SECTION
    upper = own.over(shared)
    profile_name = upper.text("service-profile")
    profile = found.profiles.get(profile_name, EMPTY_SECTION) if profile_name else EMPTY_SECTION
    lines = upper.over(profile)
    is_told = profile_name is None or profile_name in found.profiles
    routed = is_routed(found, name)
    speed = _speed(own)
    trust = _trust(lines, routed=routed, is_told=is_told)
    pfc = _pfc(lines, off=ALL_OFF in found.device, is_told=is_told)
    tc_to_queue = _tc_map(found, "qos map traffic-class to tx-queue", IDENTITY)
    policed = _POLICY in lines.lines  # a policy map may classify by access lists, which nobody reads here
    return PortQos(
        name=name,
        speed_mbps=speed,
        mtu_bytes=_mtu(shared if shared.lines else own, routed=routed),
        fec=_fec(own),
        cable_m=None,
        lag=channel,
        trust=trust,
        dscp_to_tc=UNKNOWN if policed else _bound(trust, Trust.DSCP, _dscp_map(found)),
        pcp_to_tc=UNKNOWN if policed else _bound(trust, Trust.PCP, cos_to_tc(found)),
        tc_to_queue=tc_to_queue,
        tc_to_pg=IDENTITY,
        pfc_to_queue=IDENTITY,
        pfc_to_pg=IDENTITY,
        rewrite=_rewrite(found),
        pfc=pfc,
        link_pause=_link_pause(own),
        queues=queues(lines, speed_mbps=speed) if is_told else unknown_queues(),
        priority_groups=priority_groups(pfc),
        watchdog=watchdog(found.device, lines, pfc, tc_to_queue=tc_to_queue) if is_told else UNKNOWN,
        dcbx=_dcbx(own),
        lldp=not ("no lldp run" in found.device or "no lldp transmit" in own.lines),
    )


def cos_to_tc(found: Sections) -> TcMap:
    """Returns the device's 802.1p map, EOS's own where no line says otherwise."""
    return _tc_map(found, "qos map cos", COS_TO_TC)


def priority_groups(pfc: PortPfc) -> tuple[PriorityGroupQos, ...]:
    """Returns the lossless groups of a port: EOS sizes their headroom by itself and does not show it."""
    active = pfc.active
    if active is UNKNOWN:
        return ()
    return tuple(PriorityGroupQos(index=one, lossless=True, derived_by_nos=True) for one in sorted(active))


def _dscp_map(found: Sections) -> DscpMap:
    entries = found.maps.get("qos map dscp", {})
    return tuple(int(entries[dscp].split()[0]) if dscp in entries else tc for dscp, tc in enumerate(DSCP_TO_TC))


def _tc_map(found: Sections, name: str, default: TcMap) -> TcMap:
    entries = found.maps.get(name, {})
    return tuple(int(entries[index]) if index in entries else value for index, value in enumerate(default))


def _rewrite(found: Sections) -> DscpRewrite | None:
    if "qos rewrite dscp" not in found.device:
        return None  # `qos map traffic-class … to dscp` alone does nothing (cases/04)
    return DscpRewrite(tc_to_dscp=_tc_map(found, "qos map traffic-class to dscp", TC_TO_DSCP))


def _bound(trust: Known[Trust], wanted: Trust, mapping: TcMap) -> Known[TcMap | None]:
    if trust is UNKNOWN:
        return UNKNOWN
    return mapping if trust is wanted else None


def is_routed(found: Sections, name: str) -> bool:
    """Returns whether a port, or the port channel that it is a member of, is an IP interface."""
    channel = found.channel_of(name)
    section = found.interfaces.get(channel or name, EMPTY_SECTION)
    if channel and not section.lines:
        section = found.interfaces.get(name, EMPTY_SECTION)
    if "no switchport" in section.lines or "switchport" in section.lines:
        return "no switchport" in section.lines
    # an address has no effect on a switched port, so that the device's default mode must be routed
    addressed = any(key.startswith(("ip address ", "ipv6 address ")) for key in section.lines)
    return addressed or "switchport default mode routed" in found.device


def _mtu(section: Section, *, routed: bool) -> int:
    told = [int(value) for key in ("mtu", "l2 mtu") if (value := section.text(key)) is not None]
    return min(told) if told else (MTU_ROUTED if routed else MTU_SWITCHED)


def _speed(section: Section) -> Known[int]:
    match = _SPEED.fullmatch(section.text("speed") or "")
    return int(match[1]) * 1000 if match is not None else UNKNOWN


def _fec(section: Section) -> Known[str | None]:
    named = [_FEC[word] for word in _FEC if f"error-correction encoding {word}" in section.lines]
    if named:
        return named[0]
    return None if "no error-correction encoding" in section.lines else UNKNOWN


def _trust(lines: Section, *, routed: bool, is_told: bool) -> Known[Trust]:
    value = lines.lines.get("qos trust")
    if value is None:
        return (Trust.DSCP if routed else Trust.PCP) if is_told else UNKNOWN
    return {NO: Trust.NONE, "dscp": Trust.DSCP}.get(str(value), Trust.PCP)


def _pfc(lines: Section, *, off: bool, is_told: bool) -> PortPfc:
    switch = lines.lines.get("priority-flow-control")
    if not is_told and switch is None:
        return PortPfc(mode=PfcMode.OFF) if off else PortPfc()
    matches = ((_NO_DROP.fullmatch(key), value) for key, value in lines.lines.items())
    named = frozenset(int(match[1]) for match, value in matches if match is not None and value == "no-drop")
    on = switch is not None and switch != NO and not off
    return PortPfc(
        mode=PfcMode.ON if on else PfcMode.OFF,
        priorities=named if is_told else UNKNOWN,
        rx=on,
        tx=on,
        asymmetric=False,
        send_tlv=_dcbx(lines) is not DcbxMode.OFF,
    )


def _link_pause(section: Section) -> LinkPause:
    return LinkPause(
        rx=section.text("flowcontrol receive") not in {None, "off"},
        tx=section.text("flowcontrol send") not in {None, "off"},
    )


def _dcbx(section: Section) -> DcbxMode:
    mode = section.text("dcbx mode")
    return DcbxMode(mode) if mode in {"ieee", "cee"} else DcbxMode.OFF  # off by default (unconfirmed)


def _undefined(found: Sections) -> list[Reference]:
    missing = []
    for name, section in found.interfaces.items():
        profile, policy = section.text("service-profile"), section.text(_POLICY)
        if profile is not None and profile not in found.profiles:
            missing.append(Reference(kind="profile", name=profile, where=name))
        if policy is not None and policy not in found.policies:
            missing.append(Reference(kind="policy", name=policy, where=name))
    return missing
