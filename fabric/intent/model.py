"""What is wanted, validated: the frozen form of an inventory. Holds no secret and no file format.

Defaults are the canonical intent of switches.md section 0: data on DSCP 26 / priority 3, CNP on DSCP 48 in a
strict queue, ECN 150 KB / 1500 KB / 10 % at 100G, MTU 9216, watchdog 200 / 400 ms, drop.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from fabric.policy import ShardProfile
from fabric.qos.keeping import Aspect

__all__ = (
    "ConnectPolicy",
    "DcqcnSetting",
    "EcnOverride",
    "Endpoint",
    "EtsShare",
    "Fabric",
    "Host",
    "HostNic",
    "Link",
    "Namespace",
    "NicPolicy",
    "NvmePort",
    "NvmeTarget",
    "PortRole",
    "RocePolicy",
    "Subsystem",
    "Switch",
    "SwitchPort",
    "SwitchRole",
)


class SwitchRole(StrEnum):
    """Where a switch stands."""

    LEAF = "leaf"
    SPINE = "spine"
    SUPERSPINE = "superspine"


class PortRole(StrEnum):
    """What a switch port faces."""

    HOST = "host"
    TARGET = "target"
    FABRIC = "fabric"  # another switch of the fabric
    PEER_LINK = "peer-link"  # the other half of an MLAG pair


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """One end of a cable: `leaf1:Ethernet0`."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True, slots=True)
class Link:
    """One cable.

    Attributes:
        cable_m: length; None when nobody said.
        fec: `rs`, `fc`, `none`, or None when the platform chooses.
    """

    a: Endpoint
    b: Endpoint
    speed_mbps: int
    cable_m: int | None
    fec: str | None
    mtu_bytes: int


@dataclass(frozen=True, slots=True)
class EcnOverride:
    """A curve for one speed, one role, or both, instead of the scaled default. Values are absolute, in bytes."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_percent: int
    speed_mbps: int | None = None
    role: SwitchRole | None = None


@dataclass(frozen=True, slots=True)
class EtsShare:
    """A DWRR share: `percent` of the link for the queue of this traffic class."""

    traffic_class: int
    percent: int


@dataclass(frozen=True, slots=True)
class DcqcnSetting:
    """One DCQCN value of a NIC family, by the driver's own name (`rp_dce_tcp_g`)."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class NicPolicy:
    """What one NIC family is told.

    Attributes:
        family: `mlx5`, `bnxt_re`, `irdma`, `rxe`, `generic`.
        rp_enabled: reaction point: slow down on CNP. np_enabled: notification point: send CNPs.
        cnp_dscp: None for the fabric's. cnp_priority: 802.1p priority of CNPs, None for the fabric's.
    """

    family: str
    rp_enabled: bool = True
    np_enabled: bool = True
    cnp_dscp: int | None = None
    cnp_priority: int | None = None
    dcqcn: tuple[DcqcnSetting, ...] = ()


@dataclass(frozen=True, slots=True)
class RocePolicy:
    """The RoCE policy of one device after all overrides.

    Attributes:
        data_dscps: DSCPs of RoCE data, the first is what hosts mark.
        data_priority: traffic class and PFC priority of RoCE data.
        cnp_priority: traffic class of CNPs; None for the NOS's usual one.
        ecn_kmin_bytes: at 100G; scaled by speed/100G. Likewise ecn_kmax_bytes.
        ecn_pmax_percent: marking probability at kmax, the ramp's end.
        watchdog_polling_ms: None: the largest that the NOS and the timers allow.
        ets: DWRR shares; what no share names gets none.
        alpha_log2: n of alpha = 2^n for the lossless priority group; None leaves the platform's.
        small_packet_percent: share of 64 B packets assumed in headroom, 0..100.
        reassign_unlisted: DSCPs that nobody listed leave the lossless class (EOS puts 24-31 into TC 3).
    """

    data_dscps: tuple[int, ...] = (26,)
    data_priority: int = 3
    cnp_dscp: int = 48
    cnp_priority: int | None = None
    ecn_enabled: bool = True
    ecn_kmin_bytes: int = 150_000
    ecn_kmax_bytes: int = 1_500_000
    ecn_pmax_percent: int = 10
    ecn_overrides: tuple[EcnOverride, ...] = ()
    watchdog_enabled: bool = True
    watchdog_detection_ms: int = 200
    watchdog_restoration_ms: int = 400
    watchdog_polling_ms: int | None = None
    watchdog_action: str = "drop"
    ets: tuple[EtsShare, ...] = (EtsShare(0, 50), EtsShare(3, 50))
    mtu_bytes: int = 9216
    dcbx: str = "ieee"
    alpha_log2: int | None = None
    small_packet_percent: int = 100
    reassign_unlisted: bool = True
    nics: tuple[NicPolicy, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """One physical port that the intent owns.

    Attributes:
        lanes: serdes lanes, None when nobody said. breakout_of: the parent port, or None.
        lag: port channel it belongs to, or None. mlag: whether that port channel spans two switches.
        vlan: tag of the storage VLAN on this port, or None for untagged or routed.
        routed: an IP interface rather than a switched port.
        peer: the other end, or None when nobody said.
        keep: what stays as the device has it, whatever the policy says.
    """

    name: str
    role: PortRole
    speed_mbps: int
    mtu_bytes: int
    cable_m: int | None = None
    fec: str | None = None
    lanes: int | None = None
    breakout_of: str | None = None
    lag: str | None = None
    mlag: bool = False
    vlan: int | None = None
    routed: bool = True
    peer: Endpoint | None = None
    keep: frozenset[Aspect] = frozenset()


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch.

    Attributes:
        nos: network OS, a name that `nos.catalog` knows.
        version: as the device prints it, "" when nobody said.
        asic: `spectrum1`, `spectrum3`, `trident3`, `tomahawk2`, …, "" when nobody said.
        hwsku: SONiC HwSKU or EOS model, "" when nobody said.
        adopt: device-wide settings may be changed although ports outside the intent feel it.
        features: things that this release may refuse by name (`evpn_vxlan`).
    """

    name: str
    nos: str
    role: SwitchRole
    ports: tuple[SwitchPort, ...]
    policy: RocePolicy = field(default_factory=RocePolicy)
    version: str = ""
    asic: str = ""
    hwsku: str = ""
    adopt: bool = False
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostNic:
    """One RoCE port of a host or target.

    Attributes:
        netdev: Linux name, `ens1f0np0`. family: see `NicPolicy`.
        addresses: IPv4 or IPv6 with prefix length, `192.0.2.21/26`.
        vlan: VLAN tag of the storage interface, or None.
        mtu_bytes: IP MTU of the netdev.
    """

    netdev: str
    family: str
    speed_mbps: int
    mtu_bytes: int
    addresses: tuple[str, ...] = ()
    vlan: int | None = None
    peer: Endpoint | None = None


@dataclass(frozen=True, slots=True)
class ConnectPolicy:
    """How the NVMe-oF connections of a host behave.

    Attributes:
        nr_io_queues: always given: the default is one a CPU, and large hosts then run out of memory regions.
        ctrl_loss_tmo_s: how long a lost controller is tried again; -1 for ever. When it ends, the disk is deleted.
        fast_io_fail_tmo_s: when I/O fails over while the controller is still tried; -1 for never.
        iopolicy: how the paths to a subsystem share the load: `numa`, `round-robin`, `queue-depth`.
    """

    nr_io_queues: int = 8
    queue_size: int = 128  # Linux nvme-rdma clamps to it
    keep_alive_s: int = 5
    reconnect_delay_s: int = 2
    ctrl_loss_tmo_s: int = -1
    fast_io_fail_tmo_s: int = 15
    iopolicy: str = "round-robin"


@dataclass(frozen=True, slots=True)
class Host:
    """One GPU host.

    Attributes:
        connect: NQNs of the subsystems that it connects to.
        managed: False for a host that somebody else sets up: it is planned for, never contacted.
        shard_profile: how the engine there cuts and deals its reads, None for its defaults.
    """

    name: str
    nics: tuple[HostNic, ...]
    policy: RocePolicy = field(default_factory=RocePolicy)
    connect: tuple[str, ...] = ()
    connect_policy: ConnectPolicy = field(default_factory=ConnectPolicy)
    managed: bool = True
    shard_profile: ShardProfile | None = None


@dataclass(frozen=True, slots=True)
class Namespace:
    """One NVMe namespace: `nsid` and the block device behind it ("" on an unmanaged array)."""

    nsid: int
    device: str = ""


@dataclass(frozen=True, slots=True)
class Subsystem:
    """One NVM subsystem with its namespaces and the host NQNs it admits (() admits any)."""

    nqn: str
    namespaces: tuple[Namespace, ...] = ()
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NvmePort:
    """One NVMe-oF transport address: RDMA `traddr` and service id."""

    traddr: str
    trsvcid: int = 4420  # NVMe over Fabrics, IANA nvme


@dataclass(frozen=True, slots=True)
class NvmeTarget:
    """One NVMe-oF target. `managed` is False for a third-party array: it is planned for, never touched."""

    name: str
    nics: tuple[HostNic, ...]
    subsystems: tuple[Subsystem, ...] = ()
    ports: tuple[NvmePort, ...] = ()
    managed: bool = True
    policy: RocePolicy = field(default_factory=RocePolicy)


@dataclass(frozen=True, slots=True)
class Fabric:
    """The whole intent; every tuple in natural order of names."""

    name: str
    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...] = ()
    targets: tuple[NvmeTarget, ...] = ()
    links: tuple[Link, ...] = ()

    def switch(self, name: str) -> Switch | None:
        """Returns the switch of that name, or None."""
        return next((switch for switch in self.switches if switch.name == name), None)
