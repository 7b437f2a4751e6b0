"""What each RoCE NIC is told, from the same policy as the switches, and whether the two ends agree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fabric.intent.model import Fabric, HostNic, NicPolicy, RocePolicy, Switch
from fabric.plan.ledger import Ledger
from fabric.plan.mapping import numbers
from fabric.plan.model import HostNicPlan, HostPlan
from fabric.qos import PRIORITY_COUNT

__all__ = ("Peer", "cnp_dscps_of", "nic_policy", "plan_nic", "plan_nics", "rdma_mtu_bytes")

_CNP_PRIORITY: Final = 6  # switches.md 0: where no switch port says otherwise
_PATH_MTUS: Final = (4096, 2048, 1024, 512, 256)  # InfiniBand Architecture Specification volume 1, table 95
_IPV4, _IPV6 = 20, 40  # RFC 791, RFC 8200
_ROCE_HEADERS: Final = 8 + 12 + 16 + 4 + 4  # UDP, BTH, RETH, immediate, ICRC; switches.md 4.3 row 11
_KERNEL_HEADERS: Final = 96  # Linux iboe_get_mtu: GRH, UDP, BTH, XRC, atomic, ICRC; hosts.md 4.1
_ECT0: Final = 0b10  # RFC 3168 section 5
_COPIES_TOS: Final = frozenset({"rxe"})  # hosts.md 4.1: it copies the byte, so that ECT must stand in it
_TRAFFIC_CLASSES: Final = {"irdma": 4}  # hosts.md 4.3: at most four classes, one of them with PFC


@dataclass(frozen=True, slots=True)
class Peer:
    """The switch at the other end of a NIC's cable and the class that it keeps for CNPs."""

    switch: Switch
    cnp_class: int


def nic_policy(policy: RocePolicy, family: str) -> NicPolicy:
    """Returns what the policy tells that NIC family, defaults when it does not name it."""
    return next((nic for nic in policy.nics if nic.family == family), NicPolicy(family))


def cnp_dscps_of(fabric: Fabric) -> frozenset[int]:
    """Returns every DSCP that a NIC of the fabric puts on its CNPs: each switch must know them all."""
    found = set()
    for policy, nic in _nics(fabric):
        own = nic_policy(policy, nic.family).cnp_dscp
        found.add(policy.cnp_dscp if own is None else own)
    return frozenset(found)


def rdma_mtu_bytes(ip_mtu_bytes: int, *, ipv6: bool) -> int:
    """Returns the largest RDMA path MTU that fits, 0 when none does.

    Source: switches.md 4.3 row 11: IP, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4; 4160 B for 4096 over IPv4.
    """
    room = ip_mtu_bytes - (_IPV6 if ipv6 else _IPV4) - _ROCE_HEADERS
    return next((mtu for mtu in _PATH_MTUS if mtu <= room), 0)


def plan_nics(
    name: str, role: str, nics: tuple[HostNic, ...], policy: RocePolicy, peers: Mapping[str, Peer], ledger: Ledger
) -> HostPlan:
    """Returns the plan of one host or target.

    Args:
        name: the host's.
        role: `host` or `target`.
        nics: its RoCE ports.
        policy: the host's own, after all overrides.
        peers: switch name → its end.
        ledger: takes notes and problems; its notes become the plan's.
    """
    planned = tuple(plan_nic(nic, policy, _peer(nic, peers), ledger) for nic in nics)
    return HostPlan(host=name, role=role, nics=planned, notes=tuple(ledger.notes))


def plan_nic(nic: HostNic, policy: RocePolicy, peer: Peer | None, ledger: Ledger) -> HostNicPlan:
    """Returns the plan of one NIC, and notes where its switch was planned otherwise."""
    own = nic_policy(policy, nic.family)
    data = policy.data_priority
    cnp_dscp = policy.cnp_dscp if own.cnp_dscp is None else own.cnp_dscp
    cnp = _cnp_priority(own, policy, peer)
    if cnp == data:
        what = "CNPs would be paused with the data they slow down"
        ledger.problem(what, at=f"{nic.netdev}.cnp_priority", found=cnp)
    if cnp_dscp in policy.data_dscps:
        what = "a DSCP is both data and CNP"
        ledger.problem(what, at=f"{nic.netdev}.cnp_dscp", found=cnp_dscp)
    prio_tc = _prio_tc(nic.family, data=data, cnp=cnp)
    if peer is not None:
        _note_disagreement(nic, policy, peer.switch, ledger)
    return HostNicPlan(
        netdev=nic.netdev,
        family=nic.family,
        mtu_bytes=nic.mtu_bytes,
        rdma_mtu_bytes=_path_mtu(nic, ledger),
        dscp_to_priority=tuple(sorted({cnp_dscp: cnp, **dict.fromkeys(policy.data_dscps, data)}.items())),
        pfc_priorities=(data,),
        prio_tc=prio_tc,
        ets_percent=_ets(policy, prio_tc, cnp=cnp),
        tos=policy.data_dscps[0] << 2 | (_ECT0 if nic.family in _COPIES_TOS else 0),
        cnp_dscp=cnp_dscp,
        cnp_priority=cnp,
        rp_enabled=own.rp_enabled,
        np_enabled=own.np_enabled,
        dcqcn=own.dcqcn,
        vlan=nic.vlan,
        addresses=nic.addresses,
    )


def _nics(fabric: Fabric) -> list[tuple[RocePolicy, HostNic]]:
    hosts = [(host.policy, nic) for host in fabric.hosts for nic in host.nics]
    return hosts + [(target.policy, nic) for target in fabric.targets for nic in target.nics]


def _peer(nic: HostNic, peers: Mapping[str, Peer]) -> Peer | None:
    return None if nic.peer is None else peers.get(nic.peer.device)


def _cnp_priority(own: NicPolicy, policy: RocePolicy, peer: Peer | None) -> int:
    if own.cnp_priority is not None:
        return own.cnp_priority
    if policy.cnp_priority is not None:
        return policy.cnp_priority
    return _CNP_PRIORITY if peer is None else peer.cnp_class


def _prio_tc(family: str, *, data: int, cnp: int) -> tuple[int, ...]:
    """Returns priority → NIC traffic class: data and CNPs have one each, everything else shares one."""
    if _TRAFFIC_CLASSES.get(family, PRIORITY_COUNT) < PRIORITY_COUNT:
        return tuple({data: 1, cnp: 2}.get(priority, 0) for priority in range(PRIORITY_COUNT))
    rest = next(tc for tc in range(PRIORITY_COUNT) if tc not in (data, cnp))
    return tuple(priority if priority in (data, cnp) else rest for priority in range(PRIORITY_COUNT))


def _ets(policy: RocePolicy, prio_tc: tuple[int, ...], *, cnp: int) -> tuple[int, ...]:
    """Returns the share of each NIC traffic class; CNPs are strict and have none."""
    shares = [0] * PRIORITY_COUNT
    for share in policy.ets:
        if share.traffic_class != cnp:
            shares[prio_tc[share.traffic_class]] += share.percent
    return tuple(shares)


def _path_mtu(nic: HostNic, ledger: Ledger) -> int:
    mtu = rdma_mtu_bytes(nic.mtu_bytes, ipv6=any(":" in address for address in nic.addresses))
    if mtu == 0:
        what = "no RDMA path MTU fits this IP MTU"
        ledger.problem(what, at=f"{nic.netdev}.mtu", found=f"{nic.mtu_bytes} B", expected="at least 340 B")
        return 0
    if nic.mtu_bytes - _KERNEL_HEADERS < mtu:
        text = (
            f"{nic.netdev}: {mtu} B fit an IP MTU of {nic.mtu_bytes} B, but Linux sets {_KERNEL_HEADERS} B aside and "
            f"takes the next smaller path MTU: make it {mtu + _KERNEL_HEADERS} B"
        )
        ledger.note("rdma-mtu-falls-short", text)
    return mtu


def _note_disagreement(nic: HostNic, policy: RocePolicy, switch: Switch, ledger: Ledger) -> None:
    """Notes, as blocking, that the switch does not give this NIC's data its lossless class."""
    marked = policy.data_dscps[0]
    if marked not in switch.policy.data_dscps:
        text = (
            f"{nic.netdev} marks DSCP {marked}, and {switch.name} takes only DSCP "
            f"{numbers(sorted(switch.policy.data_dscps))} for RoCE data"
        )
        ledger.note("host-switch-mismatch", text, blocks_lossless=True)
    if policy.data_priority != switch.policy.data_priority:
        text = (
            f"{nic.netdev} pauses priority {policy.data_priority}, and {switch.name} "
            f"priority {switch.policy.data_priority}"
        )
        ledger.note("host-switch-mismatch", text, blocks_lossless=True)
