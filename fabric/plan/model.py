"""What `make_plan` returns: numbers per device, with why. Serialisable into the run folder."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fabric.intent.model import DcqcnSetting
from fabric.qos import DeviceQos, Kept
from fabric.qos.headroom_terms import Headroom

__all__ = ("FabricPlan", "HostNicPlan", "HostPlan", "Note", "PortHeadroom", "SwitchPlan")


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that a reader of the plan must know.

    Attributes:
        code: kebab case, `headroom-unknown`, `threshold-rounded`, `ecn-after-pfc`, `unconfirmed-fact`.
        blocks_lossless: with this the plan cannot be called lossless.
    """

    code: str
    text: str
    ports: tuple[str, ...] = ()
    blocks_lossless: bool = False


@dataclass(frozen=True, slots=True)
class PortHeadroom:
    """What the lossless priority group of these ports needs, whoever sizes it."""

    ports: tuple[str, ...]
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """One switch.

    Attributes:
        qos: all that the device shall do on the ports of the intent.
        adopt: device-wide settings may be changed.
        headroom: the numbers behind each lossless priority group, also where the NOS computes them by itself.
        kept: what stays as the device has it, although `qos` says otherwise.
    """

    device: str
    nos: str
    qos: DeviceQos
    adopt: bool = False
    version: str = ""
    hwsku: str = ""
    asic: str = ""
    notes: tuple[Note, ...] = ()
    headroom: tuple[PortHeadroom, ...] = ()
    kept: tuple[Kept, ...] = ()

    @property
    def lossless(self) -> bool:
        """Returns whether nothing stands against this switch being lossless."""
        return not any(note.blocks_lossless for note in self.notes)


@dataclass(frozen=True, slots=True)
class HostNicPlan:
    """One RoCE port of a host or target.

    Attributes:
        tos: type of service of RoCE traffic: DSCP shifted by two, ECT(0) set by the NIC.
        prio_tc: priority → NIC traffic class, 8 elements. ets_percent: per traffic class, 8 elements.
        pfc_priorities: priorities that the NIC pauses and obeys.
        rdma_mtu_bytes: largest RDMA path MTU that the netdev MTU carries.
    """

    netdev: str
    family: str
    mtu_bytes: int
    rdma_mtu_bytes: int
    dscp_to_priority: tuple[tuple[int, int], ...]
    pfc_priorities: tuple[int, ...]
    prio_tc: tuple[int, ...]
    ets_percent: tuple[int, ...]
    tos: int
    cnp_dscp: int
    cnp_priority: int
    rp_enabled: bool
    np_enabled: bool
    dcqcn: tuple[DcqcnSetting, ...] = ()
    vlan: int | None = None
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPlan:
    """One host or managed target."""

    host: str
    role: str  # "host" or "target"
    nics: tuple[HostNicPlan, ...]
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class FabricPlan:
    """The whole plan."""

    fabric: str
    switches: tuple[SwitchPlan, ...]
    hosts: tuple[HostPlan, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def lossless(self) -> bool:
        """Returns whether nothing stands against any switch, any host or the whole."""
        elsewhere = (*self.notes, *(note for host in self.hosts for note in host.notes))
        return all(switch.lossless for switch in self.switches) and not any(n.blocks_lossless for n in elsewhere)

    def adopted(self) -> "FabricPlan":
        """Returns the plan with device-wide settings adopted on every switch."""
        return replace(self, switches=tuple(replace(one, adopt=True) for one in self.switches))

    def only(self, devices: Iterable[str]) -> "FabricPlan":
        """Returns the plan of these switches alone; hosts stay."""
        kept = frozenset(devices)
        return replace(self, switches=tuple(one for one in self.switches if one.device in kept))

    def switch(self, name: str) -> SwitchPlan | None:
        """Returns the plan of that switch, or None."""
        return next((switch for switch in self.switches if switch.device == name), None)
