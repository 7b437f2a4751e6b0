"""How to say a remedy in a network OS's own words: data, from the configurations of switches.md 1.1 and 1.4.

Knows no rule. A network OS that is not listed gets the vendor-neutral sentence alone.
"""

from typing import Final

__all__ = ("hint",)

_HINTS: Final = {
    ("sonic", "bind"): "a PORT_QOS_MAP row with dscp_to_tc_map, tc_to_queue_map, tc_to_pg_map, pfc_to_queue_map",
    ("sonic", "classify"): 'DSCP_TO_TC_MAP field "{dscp}": "{tc}"; own map name, the stock map comes back with '
    "`config qos reload`",
    ("sonic", "closure"): "TC_TO_QUEUE_MAP, TC_TO_PRIORITY_GROUP_MAP and MAP_PFC_PRIORITY_TO_QUEUE in PORT_QOS_MAP",
    ("sonic", "pfc"): 'PORT_QOS_MAP pfc_enable "{priority}"',
    ("sonic", "strict"): "SCHEDULER with type STRICT, bound to QUEUE |{queue}",
    ("sonic", "ecn"): "WRED_PROFILE with ecn ecn_all, bound to QUEUE |{queue}",
    ("sonic", "headroom"): "BUFFER_PG |{group} with a lossless BUFFER_PROFILE",
    ("sonic", "watchdog"): 'PFC_WD row for the port and pfcwd_sw_enable "{priority}"',
    ("sonic", "mtu"): "PORT mtu",
    ("eos", "bind"): "`service-profile NAME` on the interface",
    ("eos", "classify"): "`qos map dscp {dscp} to traffic-class {tc}`; `qos map traffic-class .. to dscp ..` is the "
    "egress rewrite and classifies nothing",
    ("eos", "trust"): "`qos trust dscp`",
    ("eos", "pfc"): "`priority-flow-control on` and `priority-flow-control priority {priority} no-drop`",
    ("eos", "strict"): "`uc-tx-queue {queue}` / `priority strict`",
    ("eos", "ecn"): "`random-detect ecn minimum-threshold .. maximum-threshold ..` under `uc-tx-queue {queue}`",
    ("eos", "watchdog"): "`priority-flow-control pause watchdog` and `bandwidth guaranteed` on tx-queue {priority}",
    ("eos", "mtu"): "`mtu`",
    ("nxos", "pfc"): "`priority-flow-control mode on` and `pause pfc-cos {priority}` in the network-qos policy",
    ("nxos", "dcbx"): "`priority-flow-control mode on`; add `send-tlv` if the hosts should see the settings",
}


def hint(nos: str, topic: str, **numbers: int) -> str:
    """Returns ` (words)` in the language of `nos`, or "" where none are known.

    Args:
        nos: name of the network OS.
        topic: what is to be done, `classify`.
        numbers: what the words may name: dscp, tc, queue, group, priority.
    """
    words = _HINTS.get((nos, topic), "")
    return f" ({words.format(**numbers)})" if words else ""
