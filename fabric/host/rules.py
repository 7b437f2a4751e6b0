"""Rules about hosts: GID index, RDMA MTU, link-local targets, controller loss time. Pure; each returns findings.

A rule answers for each place that it was given, PASS too, so that a caller can tell "right" from "not looked at".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.qos import UNKNOWN, Known
from fabric.state import Finding, Severity, Status, Where
from fabric.state.host import GidEntry, NvmePath, RdmaPort

__all__ = (
    "KERNEL_HEADERS_BYTES",
    "MtuEnd",
    "ctrl_loss_tmo_default",
    "gid_not_routable",
    "linklocal_needs_host_traddr",
    "path_mtu_bytes",
    "rdma_mtu_mismatch",
)

_GID: Final = "gid-not-routable-rocev2"
_MTU: Final = "rdma-mtu-mismatch"
_LOCAL: Final = "nvme-linklocal-needs-host-traddr"
_LOSS: Final = "nvme-ctrl-loss-tmo-default"
KERNEL_HEADERS_BYTES: Final = 96  # Linux iboe_get_mtu: GRH, UDP, BTH, XRC, atomic, ICRC; hosts.md 4.1
_NEVER: Final = -1
_PATH_MTUS: Final = (4096, 2048, 1024, 512, 256)  # InfiniBand Architecture Specification volume 1, table 95


# --- GID index ------------------------------------------------------------------------------------------------------


def gid_not_routable(
    host: str, gids: Known[tuple[GidEntry, ...]], environment: Mapping[str, str], *, routed: bool = True
) -> tuple[Finding, ...]:
    """Returns whether the GID that NCCL is told to use can leave its subnet, one finding a port.

    Args:
        host: whose table and environment they are.
        gids: the host's own table: index numbers differ from host to host.
        environment: `NCCL_IB_GID_INDEX` and `NCCL_IB_HCA`; nothing is judged without the first.
        routed: peers are in other subnets; if not, a link-local RoCEv2 GID will do.
    """
    text = environment.get("NCCL_IB_GID_INDEX", "").strip()
    if not text or text == str(_NEVER):  # NCCL user guide: -1 lets the library choose
        return ()
    if gids is UNKNOWN or not text.isdigit():
        evidence = f"NCCL_IB_GID_INDEX={text}, and the table of GIDs was not read"
        return (Finding(_GID, Status.UNKNOWN, Severity.ERROR, Where(host), evidence),)
    ports = dict.fromkeys((one.device, one.port) for one in gids)
    chosen = [port for port in ports if _is_chosen(*port, environment.get("NCCL_IB_HCA", ""))]
    return tuple(_judge_gid(host, port, int(text), gids, routed=routed) for port in chosen)


def _is_chosen(device: str, port: int, rule: str) -> bool:
    """NCCL user guide, NCCL_IB_HCA: prefixes; `=` exact names, `^` all but these, `:1` a port."""
    inverted, exact = rule.startswith("^"), "=" in rule[:2]
    parts = [part for part in rule.lstrip("^=").split(",") if part]
    if not parts:
        return True
    hit = False
    for part in parts:
        name, _, number = part.partition(":")
        same = device == name if exact else device.startswith(name)
        hit |= same and number in {"", str(port)}
    return hit != inverted


def _judge_gid(host: str, port: tuple[str, int], index: int, gids: tuple[GidEntry, ...], *, routed: bool) -> Finding:
    own = [one for one in gids if (one.device, one.port) == port]
    entry = next((one for one in own if one.index == index), None)
    right = next((one for one in own if _is_usable(one, routed=routed)), None)
    where = Where(host, (f"{port[0]}/{port[1]}",), details=(("gid_index", index),))
    if entry is not None and _is_usable(entry, routed=routed):
        return Finding(_GID, Status.PASS, Severity.ERROR, where, f"index {index} is RoCEv2, {entry.ipv4 or entry.gid}")
    return Finding(
        _GID,
        Status.FAIL,
        Severity.ERROR,
        where,
        f"index {index} is {_described(entry)}",
        "a RoCEv2 GID with a routable address" if routed else "a RoCEv2 GID",
        (
            (f"use index {right.index} on this host, or better: " if right else "give the netdev an IP address, and ")
            + "leave NCCL_IB_GID_INDEX unset and let the library choose; pin the address family and prefix instead"
        ),
    )


def _is_usable(one: GidEntry, *, routed: bool) -> bool:
    return one.kind == "v2" and not (routed and one.is_link_local)


def _described(entry: GidEntry | None) -> str:
    if entry is None:
        return "not in the table of this port"
    if entry.kind != "v2":
        return f"RoCE{entry.kind}, which no router forwards"
    return "RoCEv2 and link-local: its packets never leave the subnet"


# --- RDMA MTU -------------------------------------------------------------------------------------------------------


def path_mtu_bytes(netdev_mtu_bytes: int) -> int:
    """Returns the RDMA path MTU that Linux takes over a netdev of that MTU, 0 when none fits."""
    room = netdev_mtu_bytes - KERNEL_HEADERS_BYTES
    return next((mtu for mtu in _PATH_MTUS if mtu <= room), 0)


@dataclass(frozen=True, slots=True)
class MtuEnd:
    """One end of a path. netdev_mtu_bytes: the IP MTU below it."""

    host: str
    port: RdmaPort
    netdev: str
    netdev_mtu_bytes: Known[int] = UNKNOWN


def rdma_mtu_mismatch(one: MtuEnd, other: MtuEnd) -> tuple[Finding, ...]:
    """Returns a finding for each end: the smaller one fails, since a library may build queue pairs for the larger."""
    sizes = (one.port.active_mtu_bytes, other.port.active_mtu_bytes)
    low, high = sizes
    if low is UNKNOWN or high is UNKNOWN:
        unread = [end for end, size in zip((one, other), sizes, strict=True) if size is UNKNOWN]
        return tuple(
            Finding(_MTU, Status.UNKNOWN, Severity.ERROR, Where(end.host, (end.port.name,)), "active MTU not read")
            for end in unread
        )
    wanted = max(low, high)
    ends = ((one, low, other), (other, high, one))
    return tuple(_judge_mtu(end, size, wanted, peer) for end, size, peer in ends)


def _judge_mtu(end: MtuEnd, found: int, wanted: int, peer: MtuEnd) -> Finding:
    if found == wanted:
        return Finding(_MTU, Status.PASS, Severity.ERROR, Where(end.host, (end.port.name,)), f"active MTU {found}")
    need = wanted + KERNEL_HEADERS_BYTES
    like = "" if peer.netdev_mtu_bytes is UNKNOWN else f", {peer.netdev_mtu_bytes} like {peer.netdev} of {peer.host}"
    netdev = "not read" if end.netdev_mtu_bytes is UNKNOWN else f"{end.netdev_mtu_bytes} B"
    details = (("found", found), ("wanted", wanted), ("netdev", end.netdev))
    return Finding(
        _MTU,
        Status.FAIL,
        Severity.ERROR,
        Where(end.host, (end.port.name,), details=details),
        f"active MTU {found} over {end.netdev} with MTU {netdev}; {peer.host} has {wanted}",
        f"active MTU {wanted} at both ends",
        f"raise the MTU of {end.netdev} to {need} or more{like}: the active MTU then becomes {wanted}",
    )


# --- link-local targets ---------------------------------------------------------------------------------------------


def linklocal_needs_host_traddr(
    host: str, options: Mapping[str, str], addresses: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Returns whether a connection to a link-local address names its source.

    Args:
        host: who connects.
        options: of `nvme connect`, by long name.
        addresses: RDMA netdev → its link-local address, with or without prefix length.
    """
    address, _, scope = options.get("traddr", "").partition("%")
    if options.get("transport") != "rdma" or not address.lower().startswith(("fe8", "fe9", "fea", "feb")):
        return ()
    source, _, source_scope = options.get("host-traddr", "").partition("%")
    where = Where(host, (scope,) if scope else (), details=(("traddr", address),))
    if source and source_scope and (not scope or source_scope == scope):
        return (Finding(_LOCAL, Status.PASS, Severity.ERROR, where, f"{address} from {source}%{source_scope}"),)
    own = addresses.get(scope, "").partition("/")[0]
    flag = f"-w {own}%{scope}" if own else "-w ADDRESS%NETDEV"
    return (
        Finding(
            _LOCAL,
            Status.FAIL,
            Severity.ERROR,
            where,
            f"{address} is link-local and the connection names no host address of that scope",
            "a host address with the same scope",
            f"give the host's address ({flag}), or better, publish the target on a routable address; "
            "the rdma transport does not take host_iface",
        ),
    )


# --- controller loss ------------------------------------------------------------------------------------------------


def ctrl_loss_tmo_default(
    host: str, controllers: Sequence[NvmePath], *, survive_outage_s: int | None
) -> tuple[Finding, ...]:
    """Returns whether each fabrics controller outlives a target's outage; when its time is over its disk is deleted.

    Args:
        host: whose controllers they are.
        controllers: of any transport; those of this machine's own disks are not judged.
        survive_outage_s: the longest outage that must be outlived, None for one of any length.
    """
    fabrics = (one for one in controllers if one.transport in {"rdma", "tcp", "fc"})
    return tuple(_judge_loss(host, one, survive_outage_s) for one in fabrics)


def _judge_loss(host: str, one: NvmePath, survive_s: int | None) -> Finding:
    found = one.ctrl_loss_tmo_s
    if found is UNKNOWN:
        where = Where(host, (one.controller,))
        return Finding(_LOSS, Status.UNKNOWN, Severity.WARNING, where, "ctrl_loss_tmo was not read")
    if found == _NEVER or (survive_s is not None and found >= survive_s):
        text = "tried for ever" if found == _NEVER else f"tried for {found} s"
        return Finding(_LOSS, Status.PASS, Severity.WARNING, Where(host, (one.controller,)), text)
    least = "" if survive_s is None else f", or at least {survive_s} s"
    option = "" if survive_s is None else f" (or at least {survive_s})"
    fast = "" if _fails_fast(one) else ", and set --fast_io_fail_tmo so that reads fail over in seconds meanwhile"
    return Finding(
        _LOSS,
        Status.FAIL,
        Severity.WARNING,
        Where(host, (one.controller,), details=(("found_s", found), ("wanted_s", _NEVER))),
        f"after {found} s without its target the kernel deletes the controller and its disk",
        f"-1 (never){least}",
        f"connect with --ctrl-loss-tmo=-1{option}{fast}",
    )


def _fails_fast(one: NvmePath) -> bool:
    return one.fast_io_fail_tmo_s is not UNKNOWN and one.fast_io_fail_tmo_s != _NEVER
