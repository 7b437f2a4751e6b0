"""Port MTUs as each network OS counts them, and whether every hop carries the hosts' IP packets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fabric.intent.model import Endpoint, Fabric, PortRole, RocePolicy, SwitchPort
from fabric.qos import Capabilities

__all__ = ("Needs", "carried_ip_mtu_bytes", "needs_of", "planned_mtu_bytes")

_ETHERNET: Final = 14  # IEEE 802.3 header: two addresses and the type
_VLAN_TAG: Final = 4  # IEEE 802.1Q-2018 clause 9.3
_BETWEEN_SWITCHES: Final = frozenset({PortRole.FABRIC, PortRole.PEER_LINK})


def planned_mtu_bytes(port: SwitchPort, policy: RocePolicy, capabilities: Capabilities) -> int:
    """Returns the port MTU as the network OS counts it: the least of policy, port and what the OS can."""
    return min(port.mtu_bytes, policy.mtu_bytes, capabilities.mtu_max_bytes.value)


def carried_ip_mtu_bytes(mtu_bytes: int, *, tagged: bool, capabilities: Capabilities) -> int:
    """Returns the largest IP packet that passes a port of that MTU.

    A network OS that leaves the Ethernet header out of its MTU carries as much IP; one that counts it carries so
    much less. A tag that the OS's MTU does not leave out takes its four bytes too.

    Source: switches.md 4.3 row 9.
    """
    header = _ETHERNET + (_VLAN_TAG if tagged else 0)
    return mtu_bytes - max(0, header - capabilities.mtu_overhead_bytes.value)


@dataclass(frozen=True, slots=True)
class Needs:
    """Which IP MTU must pass: between switches the largest of all hosts', at the edge the host's own."""

    between_bytes: int
    at_edge: Mapping[Endpoint, int]

    def of(self, device: str, port: SwitchPort) -> int:
        """Returns the IP MTU that must pass that port, 0 when nothing is known to be behind it."""
        if port.role in _BETWEEN_SWITCHES:
            return self.between_bytes
        return self.at_edge.get(Endpoint(device, port.name), 0)


def needs_of(fabric: Fabric) -> Needs:
    """Returns what the hosts and targets of the fabric send."""
    nics = [
        *(nic for host in fabric.hosts for nic in host.nics),
        *(nic for target in fabric.targets for nic in target.nics),
    ]
    edge: dict[Endpoint, int] = {}
    for nic in nics:
        if nic.peer is not None:
            edge[nic.peer] = max(nic.mtu_bytes, edge.get(nic.peer, 0))
    return Needs(max((nic.mtu_bytes for nic in nics), default=0), edge)
