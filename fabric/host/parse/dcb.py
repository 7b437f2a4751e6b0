"""`dcb` of iproute2, JSON and text. Knows no NIC family.

Without support in the driver the tool prints nothing on stdout: that is UNKNOWN. `{}` from `dcb app` is measured: no
entries, and the port trusts the priority code point. Source: hosts.md 4.2; samples/linux/show/dcb_*.
"""

from typing import Any, Final

from fabric.errors import HostError
from fabric.host.parse.text import document, pairs, whole
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NicState

__all__ = ("read_app", "read_buffer", "read_dcbx", "read_ets", "read_pfc", "read_text")

# iproute2 /etc/iproute2/rt_dsfield and RFC 2474, 2597, 3246, 5865: the names that `dcb` prints without -N
_DSCP: Final = {
    **{f"CS{index}": 8 * index for index in range(8)},
    **{f"AF{row}{column}": 8 * row + 2 * column for row in range(1, 5) for column in range(1, 4)},
    "EF": 46,
    "VOICE-ADMIT": 44,
    "default": 0,
}


def read_pfc(text: str, netdev: str = "") -> NicState:
    """Returns the priorities with PFC from `dcb -j pfc show`."""
    data = _object(text)
    return NicState(
        netdev,
        pfc_priorities=_on(data.get("prio_pfc")),
        pfc_capability=_number(data.get("pfc_cap")),
        pfc_delay=_number(data.get("delay")),
    )


def read_ets(text: str, netdev: str = "") -> NicState:
    """Returns classes and shares from `dcb -j ets show`."""
    data = _object(text)
    willing = data.get("willing")
    return NicState(
        netdev,
        prio_tc=_numbers(data.get("prio_tc")),
        ets_percent=_numbers(data.get("tc_bw")),
        tsa=tuple(str(one) for one in data["tc_tsa"]) if "tc_tsa" in data else UNKNOWN,
        ets_willing=willing if isinstance(willing, bool) else UNKNOWN,
    )


def read_app(text: str, netdev: str = "") -> NicState:
    """Returns the DSCP entries from `dcb -j app show`, and what the port trusts because of them."""
    data = _object(text)
    dscps = _entries(data.get("dscp_prio", []))
    return NicState(
        netdev,
        dscp_to_priority=dscps,
        udp_port_to_priority=_entries(data.get("dgram_port_prio", [])),
        trust="dscp" if dscps else "pcp",
    )


def read_buffer(text: str, netdev: str = "") -> NicState:
    """Returns receive buffers from `dcb -j buffer show`."""
    data = _object(text)
    return NicState(
        netdev,
        prio_buffer=_numbers(data.get("prio_buffer")),
        buffer_bytes=_numbers(data.get("buffer_size")),
        buffer_total_bytes=_number(data.get("total_size")),
    )


def read_dcbx(text: str, netdev: str = "") -> NicState:
    """Returns who answers DCBX from `dcb -j dcbx show`; flags as iproute2 dcb_dcbx.c names them."""
    data = _object(text)
    host, managed = data.get("host"), data.get("lld_managed")
    if host is True:
        return NicState(netdev, dcbx_owner="os")
    return NicState(netdev, dcbx_owner="firmware" if managed is True else UNKNOWN)


def read_text(text: str, netdev: str = "") -> NicState:
    """Returns the same from the text form of `dcb … show`, one or several outputs after each other."""
    rows = {words[0]: words[1:] for line in text.splitlines() if (words := line.split()) and words[0] != "#"}
    pfc = rows.get("prio-pfc")
    flags = _flags(text)
    sizes = _by_index(rows.get("buffer-size"))
    app = "dscp-prio" in rows or "dgram-port-prio" in rows
    dscps = tuple(sorted((_dscp(name), int(prio)) for name, prio in pairs(rows.get("dscp-prio", ())).items()))
    udp = tuple(sorted((int(port), int(prio)) for port, prio in pairs(rows.get("dgram-port-prio", ())).items()))
    tsa = rows.get("tc-tsa")
    return NicState(
        netdev,
        pfc_priorities=UNKNOWN if pfc is None else tuple(int(k) for k, v in pairs(pfc).items() if v == "on"),
        pfc_capability=_flag_number(flags, "pfc-cap"),
        pfc_delay=_flag_number(flags, "delay"),
        prio_tc=_by_index(rows.get("prio-tc")),
        ets_percent=_by_index(rows.get("tc-bw")),
        tsa=UNKNOWN if tsa is None else tuple(pairs(tsa).values()),
        ets_willing=flags["willing"] == "on" if "willing" in flags else UNKNOWN,
        dscp_to_priority=dscps if app else UNKNOWN,
        udp_port_to_priority=udp if app else UNKNOWN,
        trust=("dscp" if dscps else "pcp") if app else UNKNOWN,
        prio_buffer=_by_index(rows.get("prio-buffer")),
        buffer_bytes=sizes,
        buffer_total_bytes=whole(rows["total-size"][0].rstrip("b"), "total-size") if "total-size" in rows else UNKNOWN,
    )


def _object(text: str) -> dict[str, Any]:
    if not text.strip():
        raise HostError("dcb printed nothing", remedy="The driver of this netdev has no DCB operations.")
    data = document(text, "dcb")
    if not isinstance(data, dict):
        raise HostError("dcb printed another kind of JSON", found=type(data).__name__, expected="an object")
    return data


def _on(values: list[bool] | None) -> Known[tuple[int, ...]]:
    return UNKNOWN if values is None else tuple(index for index, value in enumerate(values) if value)


def _number(value: Any) -> Known[int]:
    return value if isinstance(value, int) else UNKNOWN


def _numbers(values: list[int] | None) -> Known[tuple[int, ...]]:
    return UNKNOWN if values is None else tuple(values)


def _entries(values: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((key, priority) for key, priority in values))


def _flags(text: str) -> dict[str, str]:
    """`willing off ets-cap 8`: words and values in turn, on lines whose second word has no colon."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] != "#" and ":" not in words[1]:
            found |= dict(zip(words[::2], words[1::2], strict=False))
    return found


def _flag_number(flags: dict[str, str], name: str) -> Known[int]:
    return whole(flags[name], name) if name in flags else UNKNOWN


def _by_index(words: list[str] | None) -> Known[tuple[int, ...]]:
    return UNKNOWN if words is None else tuple(whole(value.rstrip("b"), "value") for value in pairs(words).values())


def _dscp(name: str) -> int:
    return _DSCP[name] if name in _DSCP else whole(name, "DSCP")
