"""How each setting of a NIC is judged and told in words. Data; the settings themselves are those of the families."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fabric.host.judging.answers import WARNING, Rule, tos_serves, tos_words
from fabric.host.settings import Value
from fabric.plan.model import HostNicPlan

__all__ = ("SETTINGS", "SettingRule", "numbers", "setting_rule")


def numbers(value: Value) -> str:
    """Returns `3, 4`, `none` for no number, and one value as it is."""
    found = ", ".join(str(one) for one in value) if isinstance(value, tuple) else str(value)
    return found or "none"


def _entries(value: Value) -> str:
    return ", ".join(f"{key}:{one}" for key, one in value) if isinstance(value, tuple) and value else "none"


def _on_off(value: Value) -> str:
    return numbers(tuple("on" if one else "off" for one in (value if isinstance(value, tuple) else (value,))))


def _tos_words(value: Value) -> str:
    return tos_words(value) if isinstance(value, int) else "none"


def _tos_agrees(wanted: Value, found: Value) -> bool:
    return isinstance(wanted, int) and isinstance(found, int) and tos_serves(wanted, found)


def _classes(value: Value) -> str:
    rows = value if isinstance(value, tuple) else ()
    return "; ".join(f"priority {numbers(members)} {kind} {percent} %" for members, kind, percent in rows)


def _point_words(value: Value) -> str:
    np, rp = value if isinstance(value, tuple) and len(value) == 2 else ((), ())
    return f"answers marks on priority {numbers(np)}, slows down on priority {numbers(rp)}"


def _planned_points(plan: HostNicPlan) -> str:
    words = (("answers marks", plan.np_enabled), ("slows down", plan.rp_enabled))
    said = ", ".join(text if on else f"not: {text}" for text, on in words)
    return f"{said} on priority {numbers(plan.pfc_priorities)}"


@dataclass(frozen=True, slots=True)
class SettingRule:
    """How one setting is judged and told.

    Attributes:
        fields: of `NicState`, that it is read from.
        show: makes words of a wanted or found value. wanted: of the plan, where that is another kind of value.
        remedy: what has to change; `{}` is the wanted value in words.
        agrees: in place of the setting's own test, which asks whether anything is to be done.
        tools: sources of it whose layout no sample shows.
        words: what a line about an unread source holds.
        priority: of the plan, that a FAIL is about.
    """

    rule: Rule
    fields: tuple[str, ...]
    what: str
    remedy: str
    show: Callable[[Value], str] = numbers
    wanted: Callable[[HostNicPlan], str] | None = None
    agrees: Callable[[Value, Value], bool] | None = None
    tools: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    priority: Callable[[HostNicPlan], int | None] = field(default=lambda _: None)


def _data_priority(plan: HostNicPlan) -> int | None:
    return plan.pfc_priorities[0] if len(plan.pfc_priorities) == 1 else None


SETTINGS: Final[Mapping[str, SettingRule]] = {
    "dcbx-owner": SettingRule(
        Rule("host-dcbx-owner"),
        ("dcbx_owner",),
        "DCBX is answered by",
        "let the {} answer DCBX: the other side overwrites what is set here",
        tools=("dcb dcbx show",),
        words=("dcbx", "mlnx_qos"),
    ),
    "firmware-lldp": SettingRule(
        Rule("host-firmware-lldp"),
        ("firmware_lldp",),
        "the NIC's own LLDP agent is",
        "switch the agent off (ethtool --set-priv-flags NETDEV fw-lldp-agent off): it refuses what is set here",
        show=_on_off,
        tools=("ethtool --show-priv-flags",),
        words=("priv-flags",),
    ),
    "global-pause": SettingRule(
        Rule("host-global-pause-on"),
        ("global_pause_rx", "global_pause_tx"),
        "802.3x pause of the whole link (receive, send):",
        "switch it off (ethtool -A NETDEV rx off tx off): it stops every priority, and excludes PFC",
        show=_on_off,
        tools=("ethtool -a",),
        words=("ethtool -a",),
    ),
    "trust": SettingRule(
        Rule("host-trust-not-dscp"),
        ("trust",),
        "the NIC trusts",
        "let it trust the DSCP (mlnx_qos -i NETDEV --trust dscp): untagged RoCEv2 has no priority code point",
        words=("mlnx_qos", "dcb"),
    ),
    "dscp-map": SettingRule(
        Rule("host-dscp-map"),
        ("dscp_to_priority",),
        "DSCP to priority:",
        "map {}",
        show=_entries,
        words=("app", "mlnx_qos"),
        priority=_data_priority,
    ),
    "ets": SettingRule(
        Rule("host-ets-classes"),
        ("prio_tc", "tsa", "ets_percent"),
        "traffic classes:",
        "set the classes as planned",
        show=_classes,
        words=("ets", "mlnx_qos"),
    ),
    "pfc": SettingRule(
        Rule("host-pfc-priorities"),
        ("pfc_priorities",),
        "PFC priorities:",
        "pause exactly priority {}: a priority that the switch does not pause loses packets here or there",
        words=("pfc", "mlnx_qos"),
        priority=_data_priority,
    ),
    "cc-points": SettingRule(
        Rule("host-dcqcn-points"),
        ("np_priorities", "rp_priorities"),
        "notification and reaction points:",
        "switch congestion control on or off for the data priority as planned",
        show=_point_words,
        wanted=_planned_points,
        tools=("mstconfig q",),
        words=("mstconfig", "ecn"),
        priority=_data_priority,
    ),
    "cnp-dscp": SettingRule(
        Rule("host-cnp-dscp"),
        ("cnp_dscp",),
        "DSCP of CNPs:",
        "set it to {}: a CNP in the wrong class is paused or lost with the data that it shall slow down",
        tools=("mlx5 debugfs cc_params", "bnxt_re configfs"),
        words=("cnp_dscp",),
    ),
    "cnp-priority": SettingRule(
        Rule("host-cnp-priority", WARNING),
        ("cnp_priority",),
        "802.1p priority of CNPs:",
        "set it to {}",
        tools=("mlx5 debugfs cc_params", "OFED cnp_802p_prio"),
        words=("cnp_prio", "cnp_802p_prio"),
    ),
    "dcqcn": SettingRule(
        Rule("host-dcqcn-values", WARNING),
        ("dcqcn",),
        "DCQCN:",
        "set {}",
        show=_entries,
        tools=("mlx5 debugfs cc_params", "irdma configfs", "OFED DCQCN values"),
        words=("cc_params", "irdma", "roce_"),
    ),
    "mtu": SettingRule(
        Rule("host-netdev-mtu"),
        ("mtu_bytes",),
        "MTU",
        "set the MTU of the netdev to {}: the RDMA path MTU follows it",
        words=("/mtu",),
    ),
    "link-up": SettingRule(
        Rule("host-link-down"),
        ("link_up",),
        "the netdev is set",
        "set it up (ip link set dev NETDEV up)",
        show=lambda value: "up" if value is True else "down",
        words=("ip -j address", "ip -j link"),
    ),
    "addresses": SettingRule(
        Rule("host-address-missing"),
        ("addresses",),
        "addresses:",
        "give NETDEV {}: the GID is made from it",
        words=("ip -j address",),
    ),
    "roce-mode": SettingRule(
        Rule("host-roce-mode"),
        ("default_mode",),
        "the connection manager's default is",
        "make it {}: no router forwards the older one",
        words=("default_roce_mode",),
    ),
    "default-tos": SettingRule(
        Rule("host-default-tos"),
        ("default_tos",),
        "type of service of connections that ask for none:",
        "make it {}: what asks for none goes through the lossy class",
        show=_tos_words,
        agrees=_tos_agrees,
        words=("default_roce_tos",),
        priority=_data_priority,
    ),
    "traffic-class": SettingRule(
        Rule("host-traffic-class-override"),
        ("traffic_class",),
        "the device's own type of service, which overrides every queue pair's:",
        "make it {}",
        show=_tos_words,
        agrees=_tos_agrees,
        words=("traffic_class",),
        priority=_data_priority,
    ),
}


def setting_rule(name: str) -> SettingRule:
    """Returns how the setting is judged; one that this table does not name is judged by its values as they are."""
    return SETTINGS.get(name) or SettingRule(Rule(f"host-{name}"), (), f"{name}:", "set it to {}")
