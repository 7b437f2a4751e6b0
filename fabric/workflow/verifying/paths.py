"""The ways between hosts and targets, by the cables of the intent: what a packet may pass. Pure.

Where there are several shortest ways, each may be taken; where no cable is named, the way is one cable from end to end.
"""

import ipaddress
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fabric.intent import Fabric
from fabric.intent.model import Endpoint, HostNic
from fabric.state import SourceKind
from fabric.verify import End, Hop, LinkPath

__all__ = ("link_paths",)

_MOST: Final = 256  # ways between two NICs: beyond that, places would not be told apart anyway

_Cables = Mapping[str, Sequence[tuple[Endpoint, Endpoint]]]


def link_paths(
    fabric: Fabric, pairs: Iterable[tuple[str, str]], rdma: Mapping[tuple[str, str], str]
) -> tuple[LinkPath, ...]:
    """Returns every way between each pair.

    Args:
        fabric: the cables.
        pairs: (host, target) between which there is load.
        rdma: (device, netdev) → its RDMA port, `rxe0/1`.
    """
    cables = _cables(fabric)
    hosts = {one.name: one.nics for one in fabric.hosts}
    targets = {one.name: one.nics for one in fabric.targets}
    return tuple(
        LinkPath(host, target, hops)
        for host, target in dict.fromkeys(pairs)
        for near, far in _rails(hosts.get(host, ()), targets.get(target, ()))
        for hops in _ways((host, near), (target, far), cables, rdma)
    )


def _cables(fabric: Fabric) -> _Cables:
    """Switch → its cables to other switches, own end first."""
    switches = {one.name for one in fabric.switches}
    found: dict[str, list[tuple[Endpoint, Endpoint]]] = {}
    for link in fabric.links:
        if {link.a.device, link.b.device} <= switches:
            found.setdefault(link.a.device, []).append((link.a, link.b))
            found.setdefault(link.b.device, []).append((link.b, link.a))
    return found


def _rails(hosts: Sequence[HostNic], targets: Sequence[HostNic]) -> Iterator[tuple[HostNic, HostNic]]:
    """The NICs that share a network; where none do, there are routers between, and every pair may talk."""
    every = [(near, far) for near in hosts for far in targets]
    near_ones = [(near, far) for near, far in every if _networks(near) & _networks(far)]
    yield from near_ones or every


def _networks(nic: HostNic) -> frozenset[object]:
    return frozenset(ipaddress.ip_interface(one).network for one in nic.addresses)


def _ways(
    host: tuple[str, HostNic], target: tuple[str, HostNic], cables: _Cables, rdma: Mapping[tuple[str, str], str]
) -> Iterator[tuple[Hop, ...]]:
    first = _end(host, SourceKind.HOST, rdma)
    last = _end(target, SourceKind.TARGET, rdma)
    begin, end = host[1].peer, target[1].peer
    if begin is None or end is None or begin.device == target[0]:
        yield (Hop(first, last),)
        return
    for count, way in enumerate(_shortest(begin.device, end.device, cables)):
        if count == _MOST:
            return
        between = tuple(Hop(_port(near), _port(far)) for near, far in way)
        yield (Hop(first, _port(begin)), *between, Hop(_port(end), last))


def _end(one: tuple[str, HostNic], kind: SourceKind, rdma: Mapping[tuple[str, str], str]) -> End:
    name, nic = one
    return End(name, nic.netdev, kind, rdma.get((name, nic.netdev), ""))


def _port(one: Endpoint) -> End:
    return End(one.device, one.port, SourceKind.SWITCH)


def _shortest(begin: str, end: str, cables: _Cables) -> Iterator[tuple[tuple[Endpoint, Endpoint], ...]]:
    """Every shortest way from a switch to another, as cables in order; () where they are one."""
    distance = {end: 0}
    queue = deque([end])
    while queue:
        name = queue.popleft()
        for _, far in cables.get(name, ()):
            if far.device not in distance:
                distance[far.device] = distance[name] + 1
                queue.append(far.device)
    if begin in distance:
        yield from _down(begin, end, cables, distance)


def _down(
    name: str, end: str, cables: _Cables, distance: Mapping[str, int]
) -> Iterator[tuple[tuple[Endpoint, Endpoint], ...]]:
    if name == end:
        yield ()
        return
    for near, far in cables.get(name, ()):
        if distance.get(far.device, len(distance)) == distance[name] - 1:
            for rest in _down(far.device, end, cables, distance):
                yield ((near, far), *rest)
