"""The discovery service's log: what a host may connect to. Knows no connection.

Source: Linux target/discovery.c (nvmet_execute_disc_get_log_page).
"""

from fabric.engine.nvmeof.target.model import Address, Subsystem
from fabric.engine.nvmeof.target.profile import TargetProfile
from fabric.engine.nvmeof.wire.logs import DiscoveryEntry, DiscoveryHeader, SubsystemType

__all__ = ("DiscoveryService",)

_LARGEST_ADMIN_DEPTH = 32  # ASQSZ of nvmet: NVME_AQ_DEPTH


class DiscoveryService:
    """The log, made anew for each reader.

    Args:
        subsystems: what is served, shared with the target.
        addresses: where.
        profile: the target's ways.
    """

    def __init__(
        self, subsystems: dict[str, Subsystem], addresses: tuple[Address, ...], profile: TargetProfile
    ) -> None:
        self._subsystems = subsystems
        self._addresses = addresses
        self._admin_depth = profile.cm_admin_depth or _LARGEST_ADMIN_DEPTH
        self._generation = 1

    def changed(self) -> None:
        """Notes that the log is another now."""
        self._generation += 1

    def log(self, hostnqn: str) -> bytes:
        """Returns the whole log for a host: each subsystem that it may use, at each address."""
        entries = [
            self._entry(subsystem, port, address).pack()
            for subsystem in self._subsystems.values()
            if subsystem.allows(hostnqn)
            for port, address in enumerate(self._addresses, 1)
        ]
        return DiscoveryHeader(self._generation, len(entries)).pack() + b"".join(entries)

    def _entry(self, subsystem: Subsystem, port: int, address: Address) -> DiscoveryEntry:
        return DiscoveryEntry(
            transport=address.transport,
            family=address.family,
            subsystem_type=SubsystemType.NVM,
            subnqn=subsystem.nqn,
            address=address.address,
            service=address.service,
            port_id=port,
            admin_depth=self._admin_depth,
        )
