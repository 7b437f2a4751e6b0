"""`mlnx_qos -i IF` of mlnx-tools, old and new layout, and logs that hold several of its outputs. Knows no plan.

Trusting the priority code point, the tool prints no DSCP section: the map is then not UNKNOWN but of no effect.
Source: samples/linux/show/mlnx_qos_*, lossless_setup_log_2018, rdma_qos_query_priority5_tos160.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fabric.errors import HostError
from fabric.host.parse.text import PRIORITIES, indexed
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NicState

__all__ = ("read_mlnx_qos", "read_query")

_OWNERS: Final = {"OS": "os", "Firmware": "firmware"}
_DCBX: Final = re.compile(r"DCBX mode:\s*(\w+) controlled")
_TRUST: Final = re.compile(r"Priority trust state:\s*(pcp|dscp|both)")
_DSCPS: Final = re.compile(r"prio:([0-7]) dscp:([0-9]{1,2}(?:,[0-9]{1,2})*)")
_BUFFERS: Final = re.compile(
    r"Receive buffer size \(bytes\): ([0-9]{1,10}(?:,[0-9]{1,10})*),*max_buffer_size=([0-9]{1,10})(?![0-9])"
)
_CABLE: Final = re.compile(r"Cable len: ([0-9]{1,9})(?![0-9])")
_TC: Final = re.compile(
    r"tc: ([0-7]) ratelimit: (unlimited|[0-9]{1,9}(?:\.[0-9]{1,9})? [GMK]bps), tsa: (\w+)(?:, bw: ([0-9]{1,3})%)?"
)
_PRIORITY: Final = re.compile(r"\s+priority:\s+([0-7])")
_MBPS: Final = {"Gbps": 1000.0, "Mbps": 1.0, "Kbps": 0.001}
_NP_RP: Final = re.compile(r"/ecn/roce_(np|rp)/enable/([0-7]) = ([01])")


def read_mlnx_qos(text: str, netdev: str = "") -> NicState:
    """Returns what the last output of `mlnx_qos` in the text shows.

    Raises:
        HostError: there is none.
    """
    start = max(text.rfind("DCBX mode:"), 0)
    text = text[start:]
    trust = _TRUST.search(text)
    if trust is None or "PFC configuration:" not in text:
        raise HostError("this is no output of mlnx_qos", found=repr(text.strip()[:60]))
    owner = _DCBX.search(text)
    cable = _CABLE.search(text)
    dscps = {int(dscp): int(m[1]) for m in _DSCPS.finditer(text) for dscp in m[2].split(",") if dscp}
    buffers = _BUFFERS.search(text)
    rows = _pfc_rows(text.splitlines())
    state = NicState(
        netdev,
        dcbx_owner=_OWNERS.get(owner[1], UNKNOWN) if owner else UNKNOWN,
        trust=trust[1],
        dscp_to_priority=tuple(sorted(dscps.items())),
        pfc_priorities=tuple(index for index, value in enumerate(rows["enabled"]) if value),
        prio_buffer=tuple(rows["buffer"]) if "buffer" in rows else UNKNOWN,
        buffer_bytes=tuple(int(size) for size in buffers[1].split(",") if size) if buffers else UNKNOWN,
        buffer_total_bytes=int(buffers[2]) if buffers else UNKNOWN,
        cable_m=int(cable[1]) if cable else UNKNOWN,
    )
    return _with_classes(state, text.splitlines())


def read_query(text: str, netdev: str = "") -> NicState:
    """Returns the state from the query script of spiderpool: `mlnx_qos`, then ECN, CNP and ToS lines of sysfs."""
    state = read_mlnx_qos(text, netdev)
    tos = re.search(r"cma_roce_tos: ([0-9]{1,3})(?![0-9])", text)
    cnp = re.search(r"/ecn/roce_np/cnp_dscp = ([0-9]{1,2})(?![0-9])", text)
    override = re.search(r"Global tclass=([0-9]{1,3})(?![0-9])", text)
    enabled = [(m[1], int(m[2])) for m in _NP_RP.finditer(text) if m[3] == "1"]
    seen = _NP_RP.search(text) is not None
    return replace(
        state,
        dscp_to_priority=state.dscp_to_priority or UNKNOWN,  # this script leaves the section out
        default_tos=int(tos[1]) if tos else UNKNOWN,
        cnp_dscp=int(cnp[1]) if cnp else UNKNOWN,
        traffic_class=int(override[1]) if override else UNKNOWN,
        np_priorities=tuple(prio for kind, prio in enabled if kind == "np") if seen else UNKNOWN,
        rp_priorities=tuple(prio for kind, prio in enabled if kind == "rp") if seen else UNKNOWN,
    )


def _pfc_rows(lines: Iterable[str]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    inside = False
    for line in lines:
        words = line.split()
        if line.startswith("PFC configuration:"):
            inside = True
        elif inside and words and words[0] in {"enabled", "buffer"} and len(words) == PRIORITIES + 1:
            if all(word.isdecimal() and len(word) <= 3 for word in words[1:]):
                rows[words[0]] = [int(word) for word in words[1:]]
        elif inside and not line[:1].isspace():
            break
    if "enabled" not in rows:
        raise HostError("mlnx_qos shows no PFC row", expected="a row `enabled` with eight numbers")
    return rows


def _with_classes(state: NicState, lines: Iterable[str]) -> NicState:
    tsa: dict[int, str] = {}
    percent: dict[int, int] = {}
    rates: dict[int, int] = {}
    prio_tc: dict[int, int] = {}
    current: int | None = None
    for line in lines:
        head = _TC.fullmatch(line.rstrip())
        member = _PRIORITY.fullmatch(line.rstrip())
        if head:
            current = int(head[1])
            tsa[current], percent[current] = head[3], int(head[4] or 0)
            if head[2] != "unlimited":
                number, unit = head[2].split()
                rates[current] = round(float(number) * _MBPS[unit])
        elif member and current is not None:
            prio_tc[int(member[1])] = current
        else:
            current = None
    if len(prio_tc) < PRIORITIES:
        return state  # cut off, or a tool that prints no classes
    limits: Known[tuple[int | None, ...]] = tuple(rates.get(index) for index in range(PRIORITIES))
    return replace(
        state,
        prio_tc=indexed(prio_tc),
        tsa=tuple(tsa.get(index, "") for index in range(PRIORITIES)),
        ets_percent=indexed(percent),
        rate_limit_mbps=limits,
    )
