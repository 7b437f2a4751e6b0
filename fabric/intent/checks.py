"""Rules that need several variables or several devices at once: curves, shares, DSCPs, NQNs, addresses."""

from collections.abc import Iterator, Mapping
from typing import Final

from fabric.intent.doors import EcnOverrideDoor, PolicyDoor, TargetDoor
from fabric.intent.flaws import Flaw, Spot, shown
from fabric.intent.model import RocePolicy
from fabric.intent.ports import NicDraft
from fabric.registry import nearest

__all__ = ("address_flaws", "connect_flaws", "policy_flaws", "target_flaws", "unique_nqn_flaws")

_LOSSLESS_CNP: Final = "CNPs would wait behind the data that they should slow down"


def policy_flaws(door: PolicyDoor, policy: RocePolicy, failed: frozenset[str] = frozenset()) -> Iterator[Flaw]:
    """Returns what is wrong with a policy whose single values are right; the flaws have no device.

    Args:
        door: what the inventory says, for the variable to name.
        policy: the same with defaults.
        failed: fields that could not be read: the defaults in their place prove nothing.
    """
    if "data_dscps" not in failed:
        yield from _data_dscp_flaws(policy)
    if policy.cnp_dscp in policy.data_dscps and not failed & {"cnp_dscp", "data_dscps"}:
        spot = Spot(variable=_said(door, "cnp_dscp", "data_dscps"))
        yield Flaw("one DSCP cannot mark data and CNPs", spot, str(policy.cnp_dscp), remedy=f"{_LOSSLESS_CNP}.")
    if policy.cnp_priority == policy.data_priority and not failed & {"cnp_priority", "data_priority"}:
        spot = Spot(variable=_said(door, "cnp_priority", "data_priority"))
        yield Flaw("data and CNPs need two priorities", spot, str(policy.cnp_priority), remedy=f"{_LOSSLESS_CNP}.")
    if policy.ecn_kmin_bytes >= policy.ecn_kmax_bytes and not failed & {"ecn_kmin", "ecn_kmax"}:
        spot = Spot(variable=_said(door, "ecn_kmin", "ecn_kmax"))
        found = f"kmin {policy.ecn_kmin_bytes} B, kmax {policy.ecn_kmax_bytes} B"
        yield Flaw("kmin must be smaller than kmax", spot, found)
    for index, override in enumerate(door.ecn_overrides or ()):
        yield from _override_flaws(index, override)
    if door.ets is not None:
        yield from _ets_flaws(door.ets)


def _data_dscp_flaws(policy: RocePolicy) -> Iterator[Flaw]:
    spot = Spot(variable="fabric_data_dscps")
    if not policy.data_dscps:
        yield Flaw("there must be one DSCP for data at least", spot, "[]")
    twice = sorted({dscp for dscp in policy.data_dscps if policy.data_dscps.count(dscp) > 1})
    if twice:
        yield Flaw("a DSCP may stand here once", spot, str(twice[0]))


def _said(door: PolicyDoor, *fields: str) -> str:
    return f"fabric_{next((field for field in fields if getattr(door, field) is not None), fields[0])}"


def _override_flaws(index: int, override: EcnOverrideDoor) -> Iterator[Flaw]:
    spot = Spot(variable="fabric_ecn_overrides", path=(index, "kmin"))
    if override.kmin >= override.kmax:
        yield Flaw("kmin must be smaller than kmax", spot, f"kmin {override.kmin} B, kmax {override.kmax} B")
    if override.speed is None and override.role is None:
        spot = Spot(variable="fabric_ecn_overrides", path=(index,))
        yield Flaw("the override holds for no speed and no role", spot, remedy="Add speed, role, or both.")


def _ets_flaws(shares: Mapping[int, int]) -> Iterator[Flaw]:
    total = sum(shares.values())
    if total != 100:
        yield Flaw("the shares must sum to 100", Spot(variable="fabric_ets"), f"{total} percent")
    for traffic_class, percent in shares.items():
        if percent == 0:
            spot = Spot(variable="fabric_ets", path=(str(traffic_class),))
            yield Flaw("a share is 1 percent at least", spot, "0", remedy="Leave the traffic class out.")


def target_flaws(name: str, door: TargetDoor, nics: Mapping[str, NicDraft]) -> Iterator[Flaw]:
    """Returns what is wrong inside one target."""
    for index, subsystem in enumerate(door.subsystems):
        seen: set[int] = set()
        for position, namespace in enumerate(subsystem.namespaces):
            spot = Spot(name, "fabric_subsystems", (index, "namespaces", position))
            twice = sorted(seen & set(namespace.nsid))
            if twice or len(set(namespace.nsid)) < len(namespace.nsid):
                yield Flaw("a namespace may stand in a subsystem once", spot, str((twice or namespace.nsid)[0]))
            if namespace.device is not None and len(namespace.device) != len(namespace.nsid):
                found = f"{len(namespace.device)} devices for {len(namespace.nsid)} namespaces"
                yield Flaw("there must be one device for each namespace", spot, found)
            if namespace.device is None and door.managed:
                yield Flaw("a managed target needs the block device of each namespace", spot)
            seen |= set(namespace.nsid)
    addresses = {address.partition("/")[0] for nic in nics.values() for address in nic.addresses}
    for index, port in enumerate(door.nvme_ports):
        if addresses and port.traddr not in addresses:
            spot = Spot(name, "fabric_nvme_ports", (index, "traddr"))
            yield Flaw("no NIC of the target has this address", spot, shown(port.traddr), ", ".join(sorted(addresses)))


def unique_nqn_flaws(targets: Mapping[str, TargetDoor]) -> Iterator[Flaw]:
    """Returns NQNs that name two subsystems."""
    owners: dict[str, str] = {}
    for name, door in targets.items():
        for index, subsystem in enumerate(door.subsystems):
            if subsystem.nqn in owners:
                spot = Spot(name, "fabric_subsystems", (index, "nqn"))
                yield Flaw(f"the NQN names a subsystem of {owners[subsystem.nqn]} already", spot, subsystem.nqn)
            owners.setdefault(subsystem.nqn, name)


def connect_flaws(name: str, wanted: tuple[str, ...], known: frozenset[str]) -> Iterator[Flaw]:
    """Returns the NQNs that a host connects to and no target has."""
    for index, nqn in enumerate(wanted):
        if nqn not in known:
            close = nearest(nqn, known)
            spot = Spot(name, "fabric_connect", (index,))
            yield Flaw("no target has this subsystem", spot, nqn, remedy=f"Did you mean {close}?" if close else "")


def address_flaws(nics: Mapping[str, Mapping[str, NicDraft]]) -> Iterator[Flaw]:
    """Returns the addresses that two NICs have. `nics`: device → NIC → draft."""
    owners: dict[str, str] = {}
    for device, drafts in nics.items():
        for draft in drafts.values():
            for address in (one.partition("/")[0] for one in draft.addresses):
                if address in owners:
                    spot = Spot(device, "fabric_nics", (draft.index, "addresses"))
                    yield Flaw(f"{owners[address]} has this address already", spot, address)
                owners.setdefault(address, f"{device}:{draft.netdev}")
