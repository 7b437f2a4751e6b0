"""What a target serves: subsystems, namespaces, addresses. Knows no connection."""

from dataclasses import dataclass, field

from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.logs import AddressFamily, TransportType

__all__ = ("Address", "Subsystem")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the target listens, for the discovery log."""

    address: str
    service: str = "4420"
    transport: TransportType = TransportType.RDMA
    family: AddressFamily = AddressFamily.IPV4


@dataclass(slots=True)
class Subsystem:
    """One subsystem.

    Attributes:
        nqn: its name.
        namespaces: geometry by id; change it through the target, which tells the hosts.
        allowed_hosts: host NQNs, or None for any.
        serial, model: for Identify.
    """

    nqn: str
    namespaces: dict[int, IdentifyNamespace] = field(default_factory=dict)
    allowed_hosts: frozenset[str] | None = None
    serial: str = "fabricctl"
    model: str = "fabricctl target"

    def allows(self, hostnqn: str) -> bool:
        """Returns whether a host may connect."""
        return self.allowed_hosts is None or hostnqn in self.allowed_hosts
