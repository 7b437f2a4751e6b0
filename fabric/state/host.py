"""What a host showed: NIC settings, RDMA ports, GIDs, pause counters, neighbours, NVMe paths. UNKNOWN where not read.

A tuple of eight is by priority or by traffic class. A value that a tool did not print stays UNKNOWN; a counter that a
driver does not have is UNKNOWN too, never zero.
"""

from dataclasses import dataclass, field

from fabric.qos import UNKNOWN, Known

__all__ = (
    "DcbxState",
    "GidEntry",
    "HostState",
    "LldpNeighbour",
    "NicState",
    "NvmePath",
    "NvmeSubsystem",
    "NvmetPort",
    "NvmetState",
    "NvmetSubsystem",
    "PauseCounters",
    "RdmaCounters",
    "RdmaPort",
)


@dataclass(frozen=True, slots=True)
class NicState:
    """QoS of one netdev, as far as it was read.

    Attributes:
        dcbx_owner: who answers DCBX: `os` or `firmware`.
        trust: `dscp` or `pcp`.
        dscp_to_priority: the entries that the tool lists; (): measured, there are none.
        udp_port_to_priority: likewise, for UDP ports.
        pfc_capability: how many priorities may have PFC. pfc_delay: link delay allowance, bits.
        prio_tc: priority → traffic class.
        tsa: per traffic class `ets`, `strict`, `vendor`; "" where the tool lists no such class.
        ets_percent: per traffic class; 0 where it has no share.
        prio_buffer: priority → receive buffer. buffer_bytes: per buffer.
        rate_limit_mbps: per traffic class, None for none. rate_limit_percent: likewise, of the link, 0 for none.
        firmware_lldp: the NIC's own LLDP agent runs.
        rdma_device: the RDMA device on this netdev, None: there is none.
        link_up: an administrator set it up; the cable may be out nevertheless.
        addresses: with prefix length, `192.0.2.21/26`, in the order of the tool.
        parent: the netdev below a VLAN's, None for none. parent_mtu_bytes, parent_link_up: of it.
        rdma_mtu_bytes: the path MTU that the RDMA port offers.
        default_tos: type of service of connections that ask for none. default_mode: `RoCE v2`, `IB/RoCE v1`.
        traffic_class: what overrides the type of service of every queue pair, None for nothing.
        np_priorities: priorities whose CE marks are answered with CNPs. rp_priorities: that slow down on CNPs.
        dcqcn: (name, value) as the driver names them.
        conflicts: places where two tools disagree; those values are UNKNOWN here.
    """

    netdev: str = ""
    mtu_bytes: Known[int] = UNKNOWN
    dcbx_owner: Known[str] = UNKNOWN
    trust: Known[str] = UNKNOWN
    dscp_to_priority: Known[tuple[tuple[int, int], ...]] = UNKNOWN
    udp_port_to_priority: Known[tuple[tuple[int, int], ...]] = UNKNOWN
    pfc_priorities: Known[tuple[int, ...]] = UNKNOWN
    pfc_capability: Known[int] = UNKNOWN
    pfc_delay: Known[int] = UNKNOWN
    prio_tc: Known[tuple[int, ...]] = UNKNOWN
    tsa: Known[tuple[str, ...]] = UNKNOWN
    ets_percent: Known[tuple[int, ...]] = UNKNOWN
    ets_willing: Known[bool] = UNKNOWN
    prio_buffer: Known[tuple[int, ...]] = UNKNOWN
    buffer_bytes: Known[tuple[int, ...]] = UNKNOWN
    buffer_total_bytes: Known[int] = UNKNOWN
    rate_limit_mbps: Known[tuple[int | None, ...]] = UNKNOWN
    rate_limit_percent: Known[tuple[int, ...]] = UNKNOWN
    cable_m: Known[int] = UNKNOWN
    global_pause_rx: Known[bool] = UNKNOWN
    global_pause_tx: Known[bool] = UNKNOWN
    firmware_lldp: Known[bool] = UNKNOWN
    rdma_device: Known[str | None] = UNKNOWN
    link_up: Known[bool] = UNKNOWN
    addresses: Known[tuple[str, ...]] = UNKNOWN
    parent: Known[str | None] = UNKNOWN
    parent_mtu_bytes: Known[int] = UNKNOWN
    parent_link_up: Known[bool] = UNKNOWN
    rdma_mtu_bytes: Known[int] = UNKNOWN
    default_tos: Known[int] = UNKNOWN
    default_mode: Known[str] = UNKNOWN
    traffic_class: Known[int | None] = UNKNOWN
    np_priorities: Known[tuple[int, ...]] = UNKNOWN
    rp_priorities: Known[tuple[int, ...]] = UNKNOWN
    cnp_dscp: Known[int] = UNKNOWN
    cnp_priority: Known[int] = UNKNOWN
    dcqcn: Known[tuple[tuple[str, int], ...]] = UNKNOWN
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One port of an RDMA device. state: `ACTIVE`, `DOWN`, …; link_layer: `Ethernet`, `InfiniBand`."""

    device: str
    port: int
    netdev: Known[str] = UNKNOWN
    state: Known[str] = UNKNOWN
    link_layer: Known[str] = UNKNOWN
    active_mtu_bytes: Known[int] = UNKNOWN
    max_mtu_bytes: Known[int] = UNKNOWN
    firmware: Known[str] = UNKNOWN

    @property
    def name(self) -> str:
        """Returns `mlx5_0/1`."""
        return f"{self.device}/{self.port}"


@dataclass(frozen=True, slots=True)
class RdmaCounters:
    """Cumulative counters of one RDMA port, by the driver's own names, in its order."""

    device: str
    port: int
    values: tuple[tuple[str, int], ...] = ()

    def value(self, name: str) -> Known[int]:
        """Returns the counter of that name, UNKNOWN when this driver has none."""
        return next((value for key, value in self.values if key == name), UNKNOWN)


@dataclass(frozen=True, slots=True)
class PauseCounters:
    """Pause frames that one netdev sent and received, tuples of eight by priority.

    Attributes:
        link_pause: 802.3x pause of the whole link is on; UNKNOWN when the driver's list does not tell.
    """

    netdev: str
    pfc_rx_xoff: Known[tuple[Known[int], ...]] = UNKNOWN
    pfc_tx_xoff: Known[tuple[Known[int], ...]] = UNKNOWN
    pfc_rx_xon: Known[tuple[Known[int], ...]] = UNKNOWN
    pfc_tx_xon: Known[tuple[Known[int], ...]] = UNKNOWN
    link_pause: Known[bool] = UNKNOWN
    link_rx_pause: Known[int] = UNKNOWN
    link_tx_pause: Known[int] = UNKNOWN
    storm_events: Known[int] = UNKNOWN


@dataclass(frozen=True, slots=True)
class GidEntry:
    """One GID. kind: `v1` or `v2`; ipv4: the address it carries, "" for none."""

    device: str
    port: int
    index: int
    gid: str
    kind: str
    netdev: str
    ipv4: str = ""

    @property
    def is_link_local(self) -> bool:
        """Returns whether packets with this source stay in the subnet (RFC 4291 2.5.6: fe80::/10)."""
        return int(self.gid.split(":", 1)[0], 16) & 0xFFC0 == 0xFE80


@dataclass(frozen=True, slots=True)
class DcbxState:
    """What a neighbour announces by DCBX; UNKNOWN for a TLV that it did not send.

    Attributes:
        app: (priority, selector, protocol); selector 3 is UDP or DCCP, 5 is DSCP.
    """

    pfc_willing: Known[bool] = UNKNOWN
    pfc_mbc: Known[bool] = UNKNOWN
    pfc_capability: Known[int] = UNKNOWN
    pfc_priorities: Known[tuple[int, ...]] = UNKNOWN
    ets_willing: Known[bool] = UNKNOWN
    ets_cbs: Known[bool] = UNKNOWN
    ets_max_tcs: Known[int] = UNKNOWN
    prio_tc: Known[tuple[int, ...]] = UNKNOWN
    ets_percent: Known[tuple[int, ...]] = UNKNOWN
    tsa: Known[tuple[str, ...]] = UNKNOWN
    app: Known[tuple[tuple[int, int, int], ...]] = UNKNOWN


@dataclass(frozen=True, slots=True)
class LldpNeighbour:
    """One LLDP agent behind one netdev; two of them behind one netdev are two entries."""

    netdev: str
    system: Known[str] = UNKNOWN
    system_description: Known[str] = UNKNOWN
    port_id: Known[str] = UNKNOWN
    port_description: Known[str] = UNKNOWN
    dcbx: DcbxState = DcbxState()


@dataclass(frozen=True, slots=True)
class NvmePath:
    """One controller: one way to a subsystem.

    Attributes:
        ana: (path device, ANA state).
        ctrl_loss_tmo_s, fast_io_fail_tmo_s: -1 for never, which the kernel prints as `off`.
        queue_count: with the admin queue, as the kernel counts.
    """

    controller: str
    transport: Known[str] = UNKNOWN
    traddr: Known[str] = UNKNOWN
    trsvcid: Known[int] = UNKNOWN
    host_traddr: Known[str] = UNKNOWN
    src_addr: Known[str] = UNKNOWN
    state: Known[str] = UNKNOWN
    ana: Known[tuple[tuple[str, str], ...]] = UNKNOWN
    ctrl_loss_tmo_s: Known[int] = UNKNOWN
    reconnect_delay_s: Known[int] = UNKNOWN
    fast_io_fail_tmo_s: Known[int] = UNKNOWN
    keep_alive_s: Known[int] = UNKNOWN
    queue_count: Known[int] = UNKNOWN
    queue_size: Known[int] = UNKNOWN


@dataclass(frozen=True, slots=True)
class NvmeSubsystem:
    """One NVM subsystem as the host sees it; paths UNKNOWN where the listing has no such level."""

    nqn: str
    name: Known[str] = UNKNOWN
    iopolicy: Known[str] = UNKNOWN
    paths: Known[tuple[NvmePath, ...]] = UNKNOWN
    namespaces: Known[tuple[str, ...]] = UNKNOWN
    hostnqn: Known[str] = UNKNOWN
    hostid: Known[str] = UNKNOWN

    def path(self, controller: str) -> NvmePath | None:
        """Returns the path through that controller, or None."""
        paths = () if self.paths is UNKNOWN else self.paths
        return next((path for path in paths if path.controller == controller), None)


@dataclass(frozen=True, slots=True)
class NvmetSubsystem:
    """One subsystem of the kernel's target.

    Attributes:
        namespaces: (nsid, device path, enabled).
        serial: what hosts see as the serial number, "" where it was not read. uuids: (nsid, UUID), likewise. Neither is
            compared: they are what they are, and only what is made anew gets one.
    """

    nqn: str
    any_host: Known[bool] = UNKNOWN
    allowed_hosts: tuple[str, ...] = ()
    namespaces: tuple[tuple[int, str, bool], ...] = ()
    serial: str = field(default="", compare=False)
    uuids: tuple[tuple[int, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class NvmetPort:
    """One port of the kernel's target. subsystems: the NQNs that it publishes."""

    number: int
    transport: str
    traddr: str
    trsvcid: str
    subsystems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NvmetState:
    """The whole configuration of the kernel's target."""

    subsystems: tuple[NvmetSubsystem, ...] = ()
    ports: tuple[NvmetPort, ...] = ()


@dataclass(frozen=True, slots=True)
class HostState:
    """One host or target, as far as it was read.

    Attributes:
        unconfirmed: sources whose layout nobody here has seen from a real tool, by name.
    """

    host: str
    nics: tuple[NicState, ...] = ()
    rdma_ports: Known[tuple[RdmaPort, ...]] = UNKNOWN
    gids: Known[tuple[GidEntry, ...]] = UNKNOWN
    neighbours: Known[tuple[LldpNeighbour, ...]] = UNKNOWN
    subsystems: Known[tuple[NvmeSubsystem, ...]] = UNKNOWN
    target: Known[NvmetState] = UNKNOWN
    hostnqn: Known[str] = UNKNOWN
    hostid: Known[str] = UNKNOWN
    unconfirmed: tuple[str, ...] = ()

    def nic(self, netdev: str) -> NicState:
        """Returns what was read of that netdev, all UNKNOWN if nothing was."""
        return next((nic for nic in self.nics if nic.netdev == netdev), NicState(netdev))
