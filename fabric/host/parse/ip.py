"""`ip -j address show`: link, MTU, addresses. No sample; seen on Debian 12 (iproute2 6.1)."""

import ipaddress
from typing import Any

from fabric.errors import HostError
from fabric.host.parse.text import document
from fabric.qos import UNKNOWN
from fabric.state.host import NicState

__all__ = ("read_address",)


def read_address(text: str, netdev: str = "") -> NicState:
    """Returns the state of that netdev from the list of all; what is below a VLAN is found there too.

    Raises:
        HostError: the text is of another tool, or has no such netdev.
    """
    data = document(text, "ip -j address")
    if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
        raise HostError("ip printed another kind of JSON", expected="a list of objects")
    rows: dict[str, dict[str, Any]] = {str(one.get("ifname", "")): one for one in data}
    own = rows.get(netdev)
    if own is None:
        raise HostError("the host has no such netdev", where=netdev, found=", ".join(sorted(filter(None, rows))))
    parent = str(own["link"]) if "link" in own else None
    below = rows.get(parent or "", {})
    return NicState(
        netdev,
        mtu_bytes=int(own["mtu"]) if "mtu" in own else UNKNOWN,
        link_up="UP" in own["flags"] if "flags" in own else UNKNOWN,
        addresses=tuple(_address(one) for one in own.get("addr_info", ()) if "local" in one),
        parent=parent,
        parent_mtu_bytes=int(below["mtu"]) if "mtu" in below else UNKNOWN,
    )


def _address(one: dict[str, Any]) -> str:
    return str(ipaddress.ip_interface(f"{one['local']}/{one['prefixlen']}"))
