"""`niccli --dev N qos --ets --show` of Broadcom. Knows no plan. Source: samples/linux/show/niccli_qos_bcm57608.txt."""

import re
from typing import Final

from fabric.errors import HostError
from fabric.host.parse.text import PRIORITIES, indexed, pairs, whole
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NicState

__all__ = ("read_niccli_qos",)

_APP: Final = re.compile(r"Priority:\s*([0-7])\s+Sel:\s*([0-7])\s+(?:DSCP|UDP or DCCP|[\w ]+):\s*([0-9]{1,5})(?![0-9])")
_SEL_UDP, _SEL_DSCP = 3, 5  # IEEE 802.1Q-2018 table D-9: 3 is UDP or DCCP, 5 is DSCP


def read_niccli_qos(text: str, netdev: str = "") -> NicState:
    """Returns classes, PFC priorities and APP entries; `PFC enabled: 3` is a list of priorities, not a count or mask.

    Raises:
        HostError: the text is of another tool.
    """
    text = text.replace("\r", "")
    prio_map = re.search(r"PRIO_MAP:\s*(.+)", text)
    if prio_map is None:
        raise HostError("this is no output of niccli qos", found=repr(text.strip()[:60]))
    prio_tc = {
        whole(priority, "a priority of niccli"): whole(tc, "a class of niccli")
        for priority, tc in pairs(prio_map[1].split()).items()
    }
    bandwidth = re.search(r"TC Bandwidth:\s*(.+)", text)
    tsa_map = re.search(r"TSA_MAP:\s*(.+)", text)
    pfc = re.search(r"PFC enabled:[ \t]*(.*)", text)
    limits = re.search(r"TC Rate Limit:\s*(.+)", text)
    tsa = (
        {int(tc): kind for tc, kind in pairs(tsa_map[1].split()).items() if re.fullmatch("[0-7]", tc)}
        if tsa_map
        else {}
    )
    app = [(int(m[1]), int(m[2]), int(m[3])) for m in _APP.finditer(text)]
    dscps = tuple(sorted((value, priority) for priority, sel, value in app if sel == _SEL_DSCP))
    return NicState(
        netdev,
        prio_tc=indexed(prio_tc),
        ets_percent=_percents(bandwidth[1]) if bandwidth else UNKNOWN,
        tsa=tuple(tsa.get(index, "") for index in range(PRIORITIES)) if tsa else UNKNOWN,
        pfc_priorities=_priorities(pfc[1]) if pfc else UNKNOWN,
        dscp_to_priority=dscps,
        udp_port_to_priority=tuple(sorted((value, priority) for priority, sel, value in app if sel == _SEL_UDP)),
        trust="dscp" if dscps else "pcp",
        rate_limit_percent=_percents(limits[1]) if limits else UNKNOWN,
    )


def _priorities(text: str) -> Known[tuple[int, ...]]:
    """`3`, `3,4`, `none` or nothing at all; UNKNOWN for other words."""
    words = re.findall(r"[^\s,]+", text)
    if words in ([], ["none"]):
        return ()
    if not all(re.fullmatch(r"[0-7]", word) for word in words):
        return UNKNOWN
    return tuple(sorted(int(word) for word in words))


def _percents(text: str) -> tuple[int, ...]:
    return indexed(dict(enumerate(int(number) for number in re.findall(r"(?<![0-9])([0-9]{1,3})%", text))))
