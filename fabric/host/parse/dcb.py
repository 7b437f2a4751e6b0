"""`dcb` of iproute2, JSON and text. Knows no NIC family.

Without support in the driver the tool prints nothing on stdout: that is UNKNOWN. `{}` from `dcb app` is measured: no
entries, and the port trusts the priority code point. Source: hosts.md 4.2; samples/linux/show/dcb_*.
"""

from typing import Any, Final

from fabric.errors import HostError
from fabric.host.parse.text import PRIORITIES, document, number, numbers, pairs, whole
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NicState, PauseCounters

__all__ = ("read_app", "read_buffer", "read_dcbx", "read_ets", "read_pause_counters", "read_pfc", "read_text")

# iproute2 /etc/iproute2/rt_dsfield and RFC 2474, 2597, 3246, 5865: the names that `dcb` prints without -N
_DSCP: Final = {
    **{f"CS{index}": 8 * index for index in range(8)},
    **{f"AF{row}{column}": 8 * row + 2 * column for row in range(1, 5) for column in range(1, 4)},
    "EF": 46,
    "VOICE-ADMIT": 44,
    "default": 0,
}
_DSCPS: Final = 64
_UDP_PORTS: Final = 65536


def read_pfc(text: str, netdev: str = "") -> NicState:
    """Returns the priorities with PFC from `dcb -j pfc show`."""
    data = _object(text)
    return NicState(
        netdev,
        pfc_priorities=_on(data.get("prio_pfc")),
        pfc_capability=number(data.get("pfc_cap")),
        pfc_delay=number(data.get("delay")),
    )


def read_pause_counters(text: str, netdev: str = "") -> PauseCounters:
    """Returns pause frames by priority from `dcb -j -s pfc show`: requests were sent, indications received."""
    data = _object(text)
    return PauseCounters(
        netdev, pfc_rx_xoff=numbers(data.get("indications")), pfc_tx_xoff=numbers(data.get("requests"))
    )


def read_ets(text: str, netdev: str = "") -> NicState:
    """Returns classes and shares from `dcb -j ets show`."""
    data = _object(text)
    willing = data.get("willing")
    return NicState(
        netdev,
        prio_tc=_classes(numbers(data.get("prio_tc"))),
        ets_percent=numbers(data.get("tc_bw")),
        tsa=_words(data.get("tc_tsa")),
        ets_willing=willing if isinstance(willing, bool) else UNKNOWN,
    )


def read_app(text: str, netdev: str = "") -> NicState:
    """Returns the DSCP entries from `dcb -j app show`, and what the port trusts because of them."""
    data = _object(text)
    dscps = _entries(data.get("dscp_prio", []), below=_DSCPS)
    return NicState(
        netdev,
        dscp_to_priority=dscps,
        udp_port_to_priority=_entries(data.get("dgram_port_prio", []), below=_UDP_PORTS),
        trust="dscp" if dscps else "pcp",
    )


def read_buffer(text: str, netdev: str = "") -> NicState:
    """Returns receive buffers from `dcb -j buffer show`."""
    data = _object(text)
    return NicState(
        netdev,
        prio_buffer=numbers(data.get("prio_buffer")),
        buffer_bytes=numbers(data.get("buffer_size")),
        buffer_total_bytes=number(data.get("total_size")),
    )


def read_dcbx(text: str, netdev: str = "") -> NicState:
    """Returns who answers DCBX from `dcb -j dcbx show`; flags as iproute2 dcb_dcbx.c names them."""
    data = _object(text)
    host, managed = data.get("host"), data.get("lld_managed")
    if host is True:
        return NicState(netdev, dcbx_owner="os")
    return NicState(netdev, dcbx_owner="firmware" if managed is True else UNKNOWN)


def read_text(text: str, netdev: str = "") -> NicState:
    """Returns the same from the text form of `dcb … show`, one or several outputs after each other.

    Raises:
        HostError: a value that stands there is none.
    """
    rows = {words[0]: words[1:] for line in text.splitlines() if (words := line.split()) and words[0] != "#"}
    flags = _flags(text)
    app = "dscp-prio" in rows or "dgram-port-prio" in rows
    dscps = _entries([[name, _whole(prio)] for name, prio in pairs(rows.get("dscp-prio", ())).items()], below=_DSCPS)
    ports = [[_whole(port), _whole(prio)] for port, prio in pairs(rows.get("dgram-port-prio", ())).items()]
    pfc, tsa, total = _by_index(rows.get("prio-pfc")), _by_index(rows.get("tc-tsa")), rows.get("total-size")
    return NicState(
        netdev,
        pfc_priorities=UNKNOWN if pfc is UNKNOWN else tuple(at for at, word in enumerate(pfc) if word == "on"),
        pfc_capability=_flag_number(flags, "pfc-cap"),
        pfc_delay=_flag_number(flags, "delay"),
        prio_tc=_whole_by_index(rows.get("prio-tc")),
        ets_percent=_whole_by_index(rows.get("tc-bw")),
        tsa=tsa,
        ets_willing=flags["willing"] == "on" if "willing" in flags else UNKNOWN,
        dscp_to_priority=dscps if app else UNKNOWN,
        udp_port_to_priority=_entries(ports, below=_UDP_PORTS) if app else UNKNOWN,
        trust=("dscp" if dscps else "pcp") if app else UNKNOWN,
        prio_buffer=_whole_by_index(rows.get("prio-buffer")),
        buffer_bytes=_whole_by_index(rows.get("buffer-size")),
        buffer_total_bytes=_whole(total[0]) if total else UNKNOWN,
    )


def _object(text: str) -> dict[str, Any]:
    if not text.strip():
        raise HostError("dcb printed nothing", remedy="The driver of this netdev has no DCB operations.")
    data = document(text, "dcb")
    if not isinstance(data, dict):
        raise HostError("dcb printed another kind of JSON", found=type(data).__name__, expected="an object")
    return data


def _on(values: Any) -> Known[tuple[int, ...]]:
    """Eight booleans; `"off"`, which is true to Python, makes no priority paused."""
    if not isinstance(values, list) or len(values) != PRIORITIES or not all(isinstance(one, bool) for one in values):
        return UNKNOWN
    return tuple(index for index, value in enumerate(values) if value)


def _words(values: Any) -> Known[tuple[str, ...]]:
    if not isinstance(values, list) or len(values) != PRIORITIES or not all(isinstance(one, str) for one in values):
        return UNKNOWN
    return tuple(values)


def _classes(found: Known[tuple[int, ...]]) -> Known[tuple[int, ...]]:
    return UNKNOWN if found is UNKNOWN or not all(0 <= tc < PRIORITIES for tc in found) else found


def _entries(values: Any, *, below: int) -> tuple[tuple[int, int], ...]:
    """`[[26, 3], ["CS6", 6]]`. One key with two priorities is refused: drivers differ in which of them holds."""
    rows = values if isinstance(values, list) else [values]
    found: dict[int, int] = {}
    for row in rows:
        pair = [_DSCP.get(one, one) if isinstance(one, str) else one for one in row] if isinstance(row, list) else []
        if len(pair) != 2:
            raise HostError("dcb printed an entry that is no pair", found=repr(row))
        key, priority = (number(_whole(one) if isinstance(one, str) else one) for one in pair)
        if key is UNKNOWN or priority is UNKNOWN or not (0 <= key < below and 0 <= priority < PRIORITIES):
            raise HostError("dcb printed an entry out of range", found=repr(row))
        if found.setdefault(key, priority) != priority:
            raise HostError("dcb maps one entry to two priorities", found=f"{key} to {found[key]} and {priority}")
    return tuple(sorted(found.items()))


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


def _whole(text: str) -> int:
    return whole(text.rstrip("b"), "a value of dcb")


def _by_index(words: list[str] | None) -> Known[tuple[str, ...]]:
    """`0:50 1:0 …`, eight of them in any order."""
    found = pairs(words or ())
    keys = [str(index) for index in range(PRIORITIES)]
    return tuple(found[key] for key in keys) if set(found) == set(keys) else UNKNOWN


def _whole_by_index(words: list[str] | None) -> Known[tuple[int, ...]]:
    found = _by_index(words)
    return UNKNOWN if found is UNKNOWN else tuple(_whole(one) for one in found)
