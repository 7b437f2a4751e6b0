"""Who is cabled to whom: what LLDP says at both ends, and what somebody listed. Pure.

A listed cable counts more than LLDP, which it may only contradict, and is told so. LLDP of both ends counts where they
agree, or where only one end was asked; where they disagree there is no cable.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabric.intent.fields import DEVICE_NAME, PORT_NAME
from fabric.intent.model import Endpoint
from fabric.nos.base import LldpSeen
from fabric.units import natural_key
from fabric.workflow.importing.model import Cabled, Joined

__all__ = ("Known", "join")


@dataclass(frozen=True, slots=True)
class Known:
    """An imported device, as its neighbours may know it.

    Attributes:
        hostname: as it advertises itself, perhaps with a domain.
        ports: its ports. aliases: what LLDP may call them → their names.
    """

    name: str
    hostname: str
    ports: frozenset[str]
    aliases: Mapping[str, str]

    def port_of(self, seen: LldpSeen) -> str | None:
        """Returns the port that a neighbour means, None when it names none of ours."""
        for text in (seen.port_id, seen.description):
            port = self.aliases.get(text, text)
            if port in self.ports:
                return port
        return None


def join(
    devices: Mapping[str, Known], seen: Mapping[str, Sequence[LldpSeen]], listed: Iterable[Cabled]
) -> tuple[tuple[Cabled, ...], tuple[Joined, ...]]:
    """Returns the cables between imported devices, and what became of each that was seen or listed.

    Args:
        devices: name → device.
        seen: name → its LLDP neighbours, of the devices that were asked.
        listed: what somebody wrote down.
    """
    claims, told = _claims(devices, seen)
    cables: dict[Endpoint, Cabled] = {}
    for one in listed:
        told.append(_listed(one, devices, claims, cables))
    for end, far in sorted(claims.items(), key=lambda item: (natural_key(str(item[0])), natural_key(str(item[1])))):
        if end not in cables and far not in cables:
            told.append(_seen(end, far, claims, seen, cables))
    unique = {id(one): one for one in cables.values()}
    return tuple(unique.values()), tuple(told)


def _claims(
    devices: Mapping[str, Known], seen: Mapping[str, Sequence[LldpSeen]]
) -> tuple[dict[Endpoint, Endpoint], list[Joined]]:
    """Returns end → the far end that it says it sees, of ends that see one imported device; and the others, told."""
    names = {_short(name): one for one in devices.values() for name in (one.name, one.hostname) if name}
    by_end: dict[Endpoint, list[LldpSeen]] = {}
    for device, neighbours in seen.items():
        for one in neighbours:
            if one.port in devices[device].ports:
                by_end.setdefault(Endpoint(device, one.port), []).append(one)
    claims: dict[Endpoint, Endpoint] = {}
    told: list[Joined] = []
    for end, neighbours in by_end.items():
        if len(neighbours) > 1:
            words = f"{len(neighbours)} neighbours behind one port: {', '.join(one.system for one in neighbours)}"
            told.append(Joined(end, None, "ambiguous", words))
            continue
        far = names.get(_short(neighbours[0].system))
        port = far.port_of(neighbours[0]) if far is not None else None
        if far is None or port is None:
            words = f"sees {_described(neighbours[0])}, which is no port of an imported device"
            told.append(Joined(end, None, "unknown-neighbour", words))
        else:
            claims[end] = Endpoint(far.name, port)
    return claims, told


def _listed(
    one: Cabled, devices: Mapping[str, Known], claims: Mapping[Endpoint, Endpoint], cables: dict[Endpoint, Cabled]
) -> Joined:
    missing = [end for end in (one.a, one.b) if end.device not in devices]
    if missing:
        far = one.a if one.a in missing else one.b
        near = one.b if far is one.a else one.a
        return Joined(near, None, "unknown-neighbour", f"listed with {far}, which is no imported device ({one.source})")
    unknown = [end for end in (one.a, one.b) if end.port not in devices[end.device].ports]
    if unknown:
        return Joined(one.a, one.b, "disagree", f"listed, and {unknown[0]} is no port there ({one.source})")
    taken = [end for end in (one.a, one.b) if end in cables]
    if taken or one.a == one.b:
        return Joined(one.a, one.b, "disagree", f"listed twice: {one.a if not taken else taken[0]} ({one.source})")
    cables[one.a] = cables[one.b] = one
    others = [(end, claims[end]) for end, far in ((one.a, one.b), (one.b, one.a)) if claims.get(end, far) != far]
    if others:
        words = "; ".join(f"{end} sees {far}" for end, far in others)
        return Joined(one.a, one.b, "disagree", f"taken as listed, although by LLDP {words} ({one.source})")
    agreed = one.a in claims or one.b in claims
    return Joined(one.a, one.b, "listed", "listed, and LLDP says the same" if agreed else "listed")


def _seen(
    end: Endpoint,
    far: Endpoint,
    claims: Mapping[Endpoint, Endpoint],
    seen: Mapping[str, Sequence[LldpSeen]],
    cables: dict[Endpoint, Cabled],
) -> Joined:
    back = claims.get(far)
    if back == end:
        cables[end] = cables[far] = Cabled(end, far, source="LLDP")
        return Joined(end, far, "both-ends", "both ends see each other")
    if back is not None:
        return Joined(end, far, "disagree", f"{end} sees {far}, and {far} sees {back}: no cable is written")
    if far.device in seen:
        return Joined(end, far, "disagree", f"{end} sees {far}, and {far} sees nobody: no cable is written")
    rivals = [other for other, to in claims.items() if to == far and other != end]
    if rivals:
        return Joined(end, far, "disagree", f"{end} and {rivals[0]} both see {far}: no cable is written")
    cables[end] = cables[far] = Cabled(end, far, source="LLDP")
    return Joined(end, far, "one-end", f"{end} sees {far}, which was not asked")


def _short(name: str) -> str:
    return name.partition(".")[0].lower()


def _described(one: LldpSeen) -> str:
    """Returns the neighbour as words; a name that is none is not repeated."""
    system = one.system if DEVICE_NAME.fullmatch(one.system) else "a neighbour without a proper name"
    return f"{system}:{one.port_id}" if PORT_NAME.fullmatch(one.port_id) else system
