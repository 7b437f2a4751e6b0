"""`ip -j address show`: link, MTU, addresses. No sample; seen on Debian 12 (iproute2 6.1)."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from fabric.errors import HostError
from fabric.host.parse.text import document, number
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
    parent = own.get("link") if isinstance(own.get("link"), str) else None
    below = rows.get(parent or "", {})
    flags, info = own.get("flags"), own.get("addr_info")
    return NicState(
        netdev,
        mtu_bytes=number(own.get("mtu")),
        link_up="UP" in flags if isinstance(flags, list) else UNKNOWN,
        addresses=tuple(_addresses(info)) if isinstance(info, list) else UNKNOWN,
        parent=parent,
        parent_mtu_bytes=number(below.get("mtu")),
        parent_link_up="UP" in below["flags"] if isinstance(below.get("flags"), list) else UNKNOWN,
    )


def _addresses(info: list[Any]) -> Iterator[str]:
    for one in info:
        if isinstance(one, dict) and "local" in one:
            text = f"{one['local']}/{one.get('prefixlen')}"
            try:
                yield str(ipaddress.ip_interface(text))
            except ValueError as error:
                raise HostError("ip printed an address that is none", found=repr(text)) from error
