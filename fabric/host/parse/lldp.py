"""`lldpcli show neighbors details`: JSON, json0 and text, with the DCBX TLVs inside. Knows no plan.

In `-f json` a list of one is printed as the element itself, at every level; `json0` prints lists always. Two agents
behind one port make two entries. Source: samples/linux/show/lldpcli_*; TLVs: IEEE 802.1Q-2018 annex D.2.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from fabric.errors import HostError
from fabric.host.parse.text import PRIORITIES, document
from fabric.qos import UNKNOWN, Known
from fabric.state.host import DcbxState, LldpNeighbour

__all__ = ("read_lldp", "read_lldp_text", "with_tlv")

_OUI: Final = "00,80,C2"  # IEEE 802.1
_ETS, _PFC, _APP = 9, 11, 12  # IEEE 802.1Q-2018 table D-1
_TSA: Final = {0: "strict", 1: "cbs", 2: "ets", 255: "vendor"}  # IEEE 802.1Q-2018 table 8-5
_BODY_KEYS: Final = frozenset({"via", "chassis", "port"})
_TLV_LINE: Final = re.compile(r"\s+TLV:\s+OUI: ([0-9A-F,]+), SubType: ([0-9]{1,3}), Len: [0-9]+ ([0-9A-F,]+)")


def read_lldp(text: str) -> tuple[LldpNeighbour, ...]:
    """Returns every agent that was heard, from `-f json` or `-f json0`, in the tool's order.

    Raises:
        HostError: the text is of another tool.
    """
    root = document(text, "lldpcli")
    if not isinstance(root, dict) or not isinstance(root.get("lldp"), dict | list):
        raise HostError("this is no JSON of lldpcli", expected="an object with the key `lldp`")
    return tuple(_neighbour(name, body) for part in _each(root["lldp"]) for name, body in _interfaces(part))


def read_lldp_text(text: str) -> tuple[LldpNeighbour, ...]:
    """Returns the same from the text form.

    Raises:
        HostError: the text is of another tool.
    """
    if "LLDP neighbors:" not in text:
        raise HostError("this is no text of lldpcli", found=repr(text.strip()[:60]))
    found: list[LldpNeighbour] = []
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        value = value.strip()
        if key == "Interface":
            found.append(LldpNeighbour(value.split(",")[0]))
        elif not found:
            continue
        elif key == "SysName":
            found[-1] = replace(found[-1], system=value)
        elif key == "SysDescr":
            found[-1] = replace(found[-1], system_description=value)
        elif key == "PortID":
            found[-1] = replace(found[-1], port_id=value.split()[-1] if value else UNKNOWN)
        elif key == "PortDescr":
            found[-1] = replace(found[-1], port_description=value)
        elif (tlv := _TLV_LINE.fullmatch(line)) and tlv[1] == _OUI:
            found[-1] = replace(found[-1], dcbx=with_tlv(found[-1].dcbx, int(tlv[2]), _bytes(tlv[3])))
    return tuple(found)


def _each(node: Any) -> Iterator[Mapping[str, Any]]:
    for one in node if isinstance(node, list) else [node]:
        if isinstance(one, Mapping):
            yield one


def _interfaces(part: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for entry in _each(part.get("interface", [])):
        if "name" in entry and _BODY_KEYS & set(entry):  # json0
            yield str(entry["name"]), entry
        else:
            yield from ((name, body) for name, body in entry.items() if isinstance(body, Mapping))


def _neighbour(netdev: str, body: Mapping[str, Any]) -> LldpNeighbour:
    system, chassis = _chassis(body.get("chassis"))
    port = next(_each(body.get("port", {})), {})
    dcbx = DcbxState()
    for group in _each(body.get("unknown-tlvs", {})):
        for tlv in _each(group.get("unknown-tlv", [])):
            subtype = str(tlv.get("subtype"))
            if str(tlv.get("oui")).upper() == _OUI and re.fullmatch("[0-9]{1,3}", subtype):
                dcbx = with_tlv(dcbx, int(subtype), _bytes(str(tlv.get("value", ""))))
    return LldpNeighbour(
        netdev,
        system=system,
        system_description=_text(chassis.get("descr")),
        port_id=_text(port.get("id")),
        port_description=_text(port.get("descr")),
        dcbx=dcbx,
    )


def _chassis(node: Any) -> tuple[Known[str], Mapping[str, Any]]:
    """The system's name is the key in `json`, a field in `json0`, absent when the peer sent none."""
    first = next(_each(node), {})
    if "name" in first:
        return _text(first["name"]), first
    if "id" in first or len(first) != 1:
        return UNKNOWN, first
    name, body = next(iter(first.items()))
    return (str(name), body) if isinstance(body, Mapping) else (UNKNOWN, first)


def _text(node: Any) -> Known[str]:
    if isinstance(node, list):
        node = node[0] if node else None
    if isinstance(node, Mapping):
        node = node.get("value")
    return node if isinstance(node, str) else UNKNOWN


def _bytes(text: str) -> bytes:
    """The octets of `08,0A`; none of a text that is no such list, so that the TLV changes nothing."""
    try:
        return bytes.fromhex(text.replace(",", ""))
    except ValueError:
        return b""


def with_tlv(state: DcbxState, subtype: int, value: bytes) -> DcbxState:
    """Returns `state` with one TLV of IEEE 802.1 added; one that is too short or of no concern changes nothing."""
    if subtype == _PFC and len(value) >= 2:
        return replace(
            state,
            pfc_willing=bool(value[0] & 0x80),
            pfc_mbc=bool(value[0] & 0x40),
            pfc_capability=value[0] & 0x0F,
            pfc_priorities=tuple(index for index in range(PRIORITIES) if value[1] >> index & 1),
        )
    if subtype == _ETS and len(value) >= 21:
        return replace(
            state,
            ets_willing=bool(value[0] & 0x80),
            ets_cbs=bool(value[0] & 0x40),
            ets_max_tcs=value[0] & 0x07 or PRIORITIES,  # 0 stands for 8
            prio_tc=tuple(half for byte in value[1:5] for half in (byte >> 4, byte & 0x0F)),
            ets_percent=tuple(value[5:13]),
            tsa=tuple(_TSA.get(byte, f"reserved {byte}") for byte in value[13:21]),
        )
    if subtype == _APP and len(value) >= 1:
        return replace(state, app=tuple(_app(value[1:])))
    return state


def _app(entries: bytes) -> Iterable[tuple[int, int, int]]:
    for at in range(0, len(entries) - 2, 3):
        head, high, low = entries[at : at + 3]
        yield head >> 5, head & 0x07, high << 8 | low
