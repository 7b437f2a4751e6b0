"""What a lab is, as data: machines, switches, cables, and the seed that all its randomness comes from.

It goes to the lab's own process as JSON, and into saved states. Starts nothing; knows no inventory and no folder.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabric.errors import FabricError
from fabric.lab.spec import DeviceSpec
from fabric.lab.vm import Disk
from fabric.lab.wire import Platform

__all__ = ("Cable", "End", "LabMachine", "LabPort", "LabSpec", "LabSwitch", "mac_of")


@dataclass(frozen=True, slots=True, order=True)
class End:
    """One end of a cable: `leaf1:Ethernet0`."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True, slots=True)
class Cable:
    """One cable, between a switch and a machine, two switches, or two machines."""

    a: End
    b: End

    def other(self, device: str) -> End | None:
        """Returns the end that is not on the device, None when neither is."""
        return self.b if self.a.device == device else self.a if self.b.device == device else None


@dataclass(frozen=True, slots=True)
class LabPort:
    """One data port of a machine.

    Attributes:
        name: of the interface in the guest. mac: lower-case, with colons.
        mtu_bytes: the largest that the guest may set.
        dscp_to_priority: of the emulated NIC, 64 elements: which of its queues a pause of the switch holds.
        pauses: PFC priorities that the emulated NIC pauses when the guest does not read.
    """

    name: str
    mac: str
    mtu_bytes: int
    dscp_to_priority: tuple[int, ...]
    pauses: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class LabMachine:
    """One virtual machine: `role` is "host" or "target"."""

    name: str
    role: str
    memory_mib: int
    cpus: int
    ports: tuple[LabPort, ...]
    disks: tuple[Disk, ...] = ()


@dataclass(frozen=True, slots=True)
class LabSwitch:
    """One emulated switch.

    Attributes:
        front: its network OS and the configuration that it starts with.
        ports: the ports that forward frames.
        platform: its board.
    """

    front: DeviceSpec
    ports: tuple[str, ...]
    platform: Platform

    @property
    def name(self) -> str:
        """Returns the name of the device."""
        return self.front.name


@dataclass(frozen=True, slots=True)
class LabSpec:
    """A whole lab.

    Attributes:
        seed: MAC addresses and the draws of every switch come from it.
        rate_bps: of each link.
    """

    name: str
    seed: int
    rate_bps: int
    machines: tuple[LabMachine, ...]
    switches: tuple[LabSwitch, ...]
    cables: tuple[Cable, ...]

    def __post_init__(self) -> None:
        """Refuses a lab that cannot be wired."""
        names = Counter([one.name for one in self.machines] + [one.name for one in self.switches])
        if twice := sorted(name for name, count in names.items() if count > 1):
            raise FabricError("two devices of the lab have one name", found=", ".join(twice))
        ends = {End(one.name, port.name) for one in self.machines for port in one.ports}
        ends |= {End(one.name, port) for one in self.switches for port in one.ports}
        used = Counter(end for cable in self.cables for end in (cable.a, cable.b))
        for end, count in sorted(used.items()):
            if end not in ends:
                raise FabricError("a cable ends at a port that the lab does not have", where=str(end))
            if count > 1:
                raise FabricError("two cables end at one port", where=str(end))

    def machine(self, name: str) -> LabMachine | None:
        """Returns the machine of that name, or None."""
        return next((one for one in self.machines if one.name == name), None)

    def port_at(self, end: End) -> LabPort | None:
        """Returns the machine's port at an end, None when that is a switch's."""
        machine = self.machine(end.device)
        return next((port for port in machine.ports if port.name == end.port), None) if machine else None

    def guests(self) -> Mapping[End, LabPort]:
        """Returns by switch port the machine's port that hangs on it."""
        found: dict[End, LabPort] = {}
        for cable in self.cables:
            for near, far in ((cable.a, cable.b), (cable.b, cable.a)):
                port = self.port_at(far)
                if port is not None and self.machine(near.device) is None:
                    found[near] = port
        return found

    def trunks(self) -> Iterator[Cable]:
        """Yields the cables between switches."""
        yield from (one for one in self.cables if not self.port_at(one.a) and not self.port_at(one.b))

    def cable_at(self, end: End) -> Cable | None:
        """Returns the cable that ends there, or None."""
        return next((one for one in self.cables if end in (one.a, one.b)), None)

    def draw(self, switch: str) -> random.Random:
        """Returns a source of randomness for one switch."""
        return random.Random(f"{self.seed} {switch}")  # noqa: S311  (marks on packets are no secret)


def mac_of(seed: int, end: End) -> str:
    """Returns the address of a machine's port: locally administered, the same for the same seed."""
    digest = hashlib.sha256(f"{seed} {end}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))
