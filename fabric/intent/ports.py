"""Ports and NICs out of their ranges: what a profile says, spelled out port by port, before any cable is looked at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabric.intent.doors import LagDoor, NicsDoor, PortsDoor, SwitchDoor
from fabric.intent.flaws import Flaw, Spot

__all__ = ("NicDraft", "PortDraft", "draft_nics", "draft_ports", "named")


@dataclass(frozen=True, slots=True)
class PortDraft:
    """A port of a switch. `index` is the entry of `fabric_ports` that it comes from."""

    name: str
    index: int
    profile: PortsDoor
    breakout_of: str | None = None
    lag: str | None = None
    mlag: bool = False


@dataclass(frozen=True, slots=True)
class NicDraft:
    """A RoCE port of a host or target. `index` is the entry of `fabric_nics` that it comes from."""

    netdev: str
    index: int
    profile: NicsDoor
    addresses: tuple[str, ...] = ()


def draft_ports(door: SwitchDoor) -> tuple[dict[str, PortDraft], tuple[Flaw, ...]]:
    """Returns the ports of a switch by name, and what is wrong with its profiles; the flaws have no device."""
    flaws: list[Flaw] = []
    lags = _lag_members(door, flaws)
    ports: dict[str, PortDraft] = {}
    for index, profile in enumerate(door.ports):
        parents = _parents(index, profile, flaws)
        if profile.vlan is not None and profile.routed:
            what = "a port with a VLAN tag is switched, not routed"
            flaws.append(Flaw(what, Spot(variable="fabric_ports", path=(index, "vlan")), found=str(profile.vlan)))
        twice = []
        for position, name in enumerate(profile.ports):
            lag = lags.get(name)
            if name in ports:
                twice.append(name)
            ports[name] = PortDraft(
                name=name,
                index=index,
                profile=profile,
                breakout_of=parents[position],
                lag=lag[0] if lag else None,
                mlag=lag[1].mlag if lag else False,
            )
        if twice:
            spot = Spot(variable="fabric_ports", path=(index, "ports"))
            flaws.append(Flaw("a port may stand in one profile, once", spot, found=named(twice)))
    flaws += _lag_flaws(door, ports)
    return ports, tuple(flaws)


def _parents(index: int, profile: PortsDoor, flaws: list[Flaw]) -> list[str | None]:
    """Returns the parent of each port: as many ports each as there are ports to a parent."""
    count = len(profile.ports)
    if profile.breakout_of is None:
        return [None] * count
    share, rest = divmod(count, len(profile.breakout_of))
    if rest or not share:
        spot = Spot(variable="fabric_ports", path=(index, "breakout_of"))
        found = f"{count} ports of {len(profile.breakout_of)} parents"
        flaws.append(Flaw("the ports cannot be shared out evenly among their parents", spot, found=found))
        return [None] * count
    return [parent for parent in profile.breakout_of for _ in range(share)]


def _lag_members(door: SwitchDoor, flaws: list[Flaw]) -> dict[str, tuple[str, LagDoor]]:
    """Returns member → the port channel's name and entry."""
    members: dict[str, tuple[str, LagDoor]] = {}
    names: set[str] = set()
    for index, lag in enumerate(door.lags):
        twice = [name for position, name in enumerate(lag.name) if name in names or name in lag.name[:position]]
        names |= set(lag.name)
        if twice:
            spot = Spot(variable="fabric_lags", path=(index, "name"))
            flaws.append(Flaw("a port channel may stand here once", spot, named(twice)))
        share, rest = divmod(len(lag.members), len(lag.name))
        spot = Spot(variable="fabric_lags", path=(index, "members"))
        if rest or not share:
            found = f"{len(lag.members)} members of {len(lag.name)} port channels"
            flaws.append(Flaw("the members cannot be shared out evenly among the port channels", spot, found))
            continue
        twice = []
        for position, member in enumerate(lag.members):
            if member in members:
                twice.append(member)
            members[member] = (lag.name[position // share], lag)
        if twice:
            flaws.append(Flaw("a port may be a member of one port channel, once", spot, named(twice)))
    return members


def _lag_flaws(door: SwitchDoor, ports: dict[str, PortDraft]) -> Iterator[Flaw]:
    for index, lag in enumerate(door.lags):
        spot = Spot(variable="fabric_lags", path=(index, "members"))
        unknown = [member for member in lag.members if member not in ports]
        if unknown:
            yield Flaw("a member is no port of fabric_ports", spot, found=named(unknown))
        speeds = {ports[member].profile.speed for member in lag.members if member in ports}
        if len(speeds) > 1:
            found = ", ".join(f"{speed // 1000}G" for speed in sorted(speeds))
            yield Flaw("the members of a port channel run at one speed", spot, found=found)


def draft_nics(nics: Sequence[NicsDoor]) -> tuple[dict[str, NicDraft], tuple[Flaw, ...]]:
    """Returns the NICs of a host or target by name, and what is wrong with them; the flaws have no device."""
    drafts: dict[str, NicDraft] = {}
    flaws: list[Flaw] = []
    for index, profile in enumerate(nics):
        count = len(profile.netdev)
        for position, addresses in enumerate(profile.addresses):
            if len(addresses) != count:
                spot = Spot(variable="fabric_nics", path=(index, "addresses", position))
                found = f"{len(addresses)} for {count}"
                flaws.append(Flaw("there must be one address for each network device", spot, found=found))
        twice = [name for name in profile.netdev if name in drafts]
        if twice:
            spot = Spot(variable="fabric_nics", path=(index, "netdev"))
            flaws.append(Flaw("a network device may stand here once", spot, found=named(twice)))
        for position, name in enumerate(profile.netdev):
            own = tuple(addresses[position] for addresses in profile.addresses if len(addresses) == count)
            drafts[name] = NicDraft(name, index, profile, own)
    return drafts, tuple(flaws)


def named(names: Sequence[str]) -> str:
    """Returns the first three names, and how many more there are."""
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
