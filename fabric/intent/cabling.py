"""Cables out of ranges of ends: who is connected to whom, and whether both ends agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.intent.devices import HOSTS, SWITCHES, TARGETS
from fabric.intent.doors import LinkDoor, NicsDoor, PortsDoor
from fabric.intent.flaws import Flaw, Spot, shown
from fabric.intent.model import Endpoint, PortRole
from fabric.registry import nearest
from fabric.units import format_speed

__all__ = ("Cable", "Cabling", "Ends", "connect")

_VARIABLE: Final = "fabric_links"
ROLE_OF_PEER: Final = {SWITCHES: PortRole.FABRIC, HOSTS: PortRole.HOST, TARGETS: PortRole.TARGET}


@dataclass(frozen=True, slots=True)
class Cable:
    """One cable, its ends known to exist and to be used once."""

    a: Endpoint
    b: Endpoint
    door: LinkDoor
    index: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends that a cable can have.

    Attributes:
        kinds: device → its kind.
        ports: device → port or NIC → its profile; a device whose ports could not be read is not in it.
    """

    kinds: Mapping[str, str]
    ports: Mapping[str, Mapping[str, PortsDoor | NicsDoor]]

    def speed(self, end: Endpoint) -> int:
        """Returns the speed of an end in Mb/s."""
        return self.ports[end.device][end.port].speed


@dataclass(frozen=True, slots=True)
class Cabling:
    """What `fabric_links` comes to.

    Attributes:
        cables: those whose two ends exist and are free.
        named: every end that some entry names: one that got no cable has its flaw there, and needs no second one.
    """

    cables: list[Cable]
    flaws: list[Flaw]
    named: frozenset[Endpoint] = frozenset()


def connect(links: Sequence[LinkDoor], ends: Ends, owner: str) -> Cabling:
    """Returns the cables, and what is wrong with them.

    Args:
        links: the entries of `fabric_links`.
        ends: what can be connected.
        owner: the device whose `fabric_links` this is, for the place.
    """
    cables: list[Cable] = []
    flaws: list[Flaw] = []
    used: dict[Endpoint, int] = {}
    for index, door in enumerate(links):
        complaints = _Complaints(owner, index)
        if len(door.a) != len(door.b):
            found = f"{len(door.a)} and {len(door.b)} ends"
            flaws.append(Flaw("both sides must name as many ends", Spot(owner, _VARIABLE, (index,)), found))
            continue
        for pair in zip(door.a, door.b, strict=True):
            a, b = Endpoint(*pair[0]), Endpoint(*pair[1])
            if _exist(a, b, ends, complaints) and _are_free(a, b, used, index, complaints):
                cables.append(Cable(a, b, door, index))
                _agree(Cable(a, b, door, index), ends, complaints)
        flaws += complaints.flaws()
    named = frozenset(Endpoint(*end) for door in links for end in (*door.a, *door.b))
    return Cabling(cables, flaws, named)


class _Complaints:
    """The complaints about one entry: the same one about many cables is made once, with the first few named."""

    def __init__(self, owner: str, index: int) -> None:
        self._owner = owner
        self._index = index
        self._found: dict[tuple[str, str, str], list[str]] = {}

    def add(self, what: str, found: str, *, side: str = "", remedy: str = "") -> None:
        self._found.setdefault((what, side, remedy), []).append(found)

    def flaws(self) -> list[Flaw]:
        flaws = []
        for (what, side, remedy), found in self._found.items():
            path = (self._index, side) if side else (self._index,)
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            flaws.append(Flaw(what, Spot(self._owner, _VARIABLE, path), f"{found[0]}{more}", remedy=remedy))
        return flaws


def _exist(a: Endpoint, b: Endpoint, ends: Ends, complaints: _Complaints) -> bool:
    found = [_exists(end, side, ends, complaints) for end, side in ((a, "a"), (b, "b"))]
    return all(found)


def _exists(end: Endpoint, side: str, ends: Ends, complaints: _Complaints) -> bool:
    if end.device not in ends.kinds:
        close = nearest(end.device, ends.kinds)
        remedy = f"Did you mean {close}?" if close else ""
        complaints.add("the inventory has no such device", end.device, side=side, remedy=remedy)
        return False
    ports = ends.ports.get(end.device)
    if ports is None:
        return False  # its own flaws have been told
    if end.port not in ports:
        complaints.add("the device has no such port", str(end), side=side)
    return end.port in ports


def _are_free(a: Endpoint, b: Endpoint, used: dict[Endpoint, int], index: int, complaints: _Complaints) -> bool:
    if a == b:
        complaints.add("a cable has two ends", str(a))
        return False
    for end, side in ((a, "a"), (b, "b")):
        if end in used:
            complaints.add(f"the port is used by fabric_links[{used[end]}] already", str(end), side=side)
    is_free = a not in used and b not in used
    if is_free:
        used[a] = used[b] = index
    return is_free


def _agree(cable: Cable, ends: Ends, complaints: _Complaints) -> None:
    a, b = cable.a, cable.b
    speeds = {end: ends.speed(end) for end in (a, b)}
    told = ", ".join(f"{end} {format_speed(speed)}" for end, speed in speeds.items())
    if speeds[a] != speeds[b]:
        complaints.add("the two ends run at different speeds", told)
    elif cable.door.speed not in {None, speeds[a]}:
        complaints.add("the ports run at another speed than the link", told, side="speed")
    kinds = {ends.kinds[a.device], ends.kinds[b.device]}
    if SWITCHES not in kinds and kinds != {HOSTS, TARGETS}:
        complaints.add("a cable without a switch connects a host with a target", f"{a}, {b}")
    fecs = {end: profile.fec for end in (a, b) if isinstance(profile := _profile(end, ends), PortsDoor)}
    if len({fec for fec in fecs.values() if fec is not None}) > 1 and cable.door.fec is None:
        complaints.add("the two ends use different FEC", ", ".join(f"{end} {fec}" for end, fec in fecs.items()))
    tags = {_profile(end, ends).vlan for end in (a, b)} - {None}
    if len(tags) > 1:
        complaints.add(
            "the two ends use different VLAN tags", f"{a} {_profile(a, ends).vlan}, {b} {_profile(b, ends).vlan}"
        )
    for end, peer in ((a, b), (b, a)):
        _fits_role(end, peer, ends, complaints)
        tag = _profile(end, ends).vlan
        if isinstance(_profile(end, ends), NicsDoor) and tag is not None and _profile(peer, ends).vlan is None:
            complaints.add("the NIC sends tagged frames, and the port has no vlan", f"{end} {tag}, {peer}")


def _profile(end: Endpoint, ends: Ends) -> PortsDoor | NicsDoor:
    return ends.ports[end.device][end.port]


def _fits_role(end: Endpoint, peer: Endpoint, ends: Ends, complaints: _Complaints) -> None:
    profile = _profile(end, ends)
    if not isinstance(profile, PortsDoor) or profile.role is None:
        return
    role = PortRole.FABRIC if profile.role == PortRole.PEER_LINK else PortRole(profile.role)
    kind = ends.kinds[peer.device]
    if role is not ROLE_OF_PEER[kind]:
        found = f"{end} with role {shown(profile.role)}, connected to {peer} of {kind}"
        complaints.add("the port's role does not fit what it is connected to", found)
