"""Netdevs of a model host and the RDMA devices on them, small: what `ip`, `rdma` and `ibv_devinfo` do and refuse."""

import json
from dataclasses import dataclass, field
from typing import Protocol

from fabric.remote.ssh import ExecResult
from tests.unit.host.answers import OK, failed


@dataclass
class Netdev:
    """One netdev, as hardware and kernel make it."""

    mtu: int = 1500
    up: bool = False
    addresses: list[str] = field(default_factory=list)
    parent: str = ""


class Wired(Protocol):
    """What the network is of the host."""

    netdevs: dict[str, Netdev]
    rdma: dict[str, str]
    active_mtu: dict[str, int]
    cm: dict[str, list[str]]
    modules: set[str]


def has_address(host: Wired, netdev: str, address: str) -> bool:
    own = [host.netdevs[netdev], *(one for one in host.netdevs.values() if one.parent == netdev)]
    return any(one.up and address in {text.partition("/")[0] for text in one.addresses} for one in own)


def ip(host: Wired, words: list[str]) -> ExecResult:
    if words[:2] == ["-j", "address"]:
        return ExecResult(0, json.dumps([_row(*one) for one in host.netdevs.items()]), "")
    name = words[words.index("dev") + 1]
    own = host.netdevs.get(name)
    if own is None:
        return failed("Cannot find device")
    if words[:2] == ["link", "set"]:
        if words[4:] == ["up"] and own.parent and not host.netdevs[own.parent].up:
            return failed("RTNETLINK answers: Network is down")
        _link(host, own, name, words[4:])
    elif words[:2] == ["address", "replace"] and words[2] not in own.addresses:
        own.addresses.append(words[2])
    return OK


def _link(host: Wired, own: Netdev, name: str, words: list[str]) -> None:
    if words[0] == "mtu":
        own.mtu = int(words[1])
        for device, netdev in host.rdma.items():
            if netdev == name:
                host.active_mtu[device] = _path_mtu(own.mtu)
    else:
        own.up = words[0] == "up"


def _path_mtu(mtu: int) -> int:
    return next(one for one in (4096, 2048, 1024, 512, 256) if one <= mtu - 96)


def _row(name: str, own: Netdev) -> dict[str, object]:
    places = [one.partition("/") for one in own.addresses]
    info = [{"family": "inet", "local": one, "prefixlen": int(size)} for one, _, size in places]
    row: dict[str, object] = {"ifname": name, "mtu": own.mtu, "flags": ["UP"] if own.up else [], "addr_info": info}
    return row | ({"link": own.parent} if own.parent else {})


def rdma(host: Wired, words: list[str]) -> ExecResult:
    if words[:2] == ["-j", "link"]:
        rows = [{"ifname": dev, "port": 1, "state": "ACTIVE", "netdev": net} for dev, net in host.rdma.items()]
        return ExecResult(0, json.dumps(rows), "")
    name = words[2]
    if words[1] == "delete":
        if host.rdma.pop(name, None) is None:
            return failed("Invalid argument")
        host.cm.pop(name, None)
        return OK
    if words[1] != "add":
        return failed("no such command")
    netdev = words[words.index("netdev") + 1]
    if "rdma_rxe" not in host.modules or name in host.rdma or netdev not in host.netdevs:
        return failed("Invalid argument")
    if host.netdevs[netdev].parent:  # Linux rxe_newlink: on top of a real device only
        return failed("Invalid argument")
    host.rdma[name] = netdev
    host.cm[name] = ["RoCE v2", "0"]
    host.active_mtu[name] = _path_mtu(host.netdevs[host.rdma[name]].mtu)
    return OK


def ibv_devinfo(host: Wired, words: list[str]) -> ExecResult:
    name = words[-1] if words else ""
    if name not in host.rdma:
        return failed("No IB devices found")
    text = f"hca_id:\t{name}\n\tfw_ver:\t0\n\t\tport:\t1\n\t\t\tstate:\tPORT_ACTIVE (4)\n"
    return ExecResult(0, f"{text}\t\t\tactive_mtu:\t{host.active_mtu[name]} (5)\n", "")
