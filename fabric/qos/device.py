"""`DeviceQos`: all that one device does with a packet. The type in the middle of the house.

Everything is the *effective* value on each physical port, whatever profile, policy, default or device-wide map
it came from, so that two network OSes can be compared. Port channels are resolved to their members.
"""

from dataclasses import dataclass
from enum import StrEnum

from fabric.qos.known import UNKNOWN, Known
from fabric.qos.maps import DscpMap, TcMap
from fabric.qos.queue import PriorityGroupQos, QueueQos

__all__ = (
    "BufferModel",
    "BufferPool",
    "DcbxMode",
    "DeviceQos",
    "DscpRewrite",
    "LinkPause",
    "PfcMode",
    "PortPfc",
    "PortQos",
    "PortWatchdog",
    "Reference",
    "Trust",
    "TunnelQos",
    "WatchdogAction",
)


class Trust(StrEnum):
    """Which field of an arriving packet chooses its traffic class."""

    DSCP = "dscp"
    PCP = "pcp"
    BOTH = "both"  # DSCP for IP, PCP for the rest (NVUE `pcp,dscp`)
    NONE = "none"


class PfcMode(StrEnum):
    """Whether PFC is on, off, or left to DCBX."""

    ON = "on"
    OFF = "off"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class PortPfc:
    """Priority flow control (IEEE 802.1Q-2018 clause 36) on one port.

    Attributes:
        mode: on, off, or dependent on DCBX.
        priorities: the PFC priorities that pause, whatever `mode`; UNKNOWN if it cannot be told.
        rx: pauses are obeyed. tx: pauses are sent.
        asymmetric: SONiC pfc_asym: obey on all priorities, send on `priorities` only.
        send_tlv: the settings are advertised by DCBX.
    """

    mode: Known[PfcMode] = UNKNOWN
    priorities: Known[frozenset[int]] = UNKNOWN
    rx: Known[bool] = UNKNOWN
    tx: Known[bool] = UNKNOWN
    asymmetric: Known[bool] = UNKNOWN
    send_tlv: Known[bool] = UNKNOWN

    @property
    def active(self) -> Known[frozenset[int]]:
        """Returns the priorities that pause for certain: none when off, UNKNOWN when left to DCBX."""
        if self.mode is UNKNOWN or self.mode is PfcMode.AUTO:
            return UNKNOWN
        return frozenset() if self.mode is PfcMode.OFF else self.priorities


@dataclass(frozen=True, slots=True)
class LinkPause:
    """IEEE 802.3x pause of the whole link: must be off where PFC is on."""

    rx: Known[bool] = UNKNOWN
    tx: Known[bool] = UNKNOWN


class WatchdogAction(StrEnum):
    """What the PFC watchdog does with a queue that stays paused."""

    DROP = "drop"
    FORWARD = "forward"
    ALERT = "alert"


@dataclass(frozen=True, slots=True)
class PortWatchdog:
    """The PFC watchdog on one port.

    Attributes:
        priorities: the priorities that are watched.
        detection_ms: a queue paused for longer is a storm.
        restoration_ms: free of pauses for as long, and it is restored.
        polling_ms: how often the state is read; UNKNOWN where the NOS hides it.
        action: drop, forward or alert.
    """

    priorities: Known[frozenset[int]]
    detection_ms: Known[int] = UNKNOWN
    restoration_ms: Known[int] = UNKNOWN
    polling_ms: Known[int] = UNKNOWN
    action: Known[WatchdogAction] = UNKNOWN


class DcbxMode(StrEnum):
    """DCBX on a port."""

    OFF = "off"
    IEEE = "ieee"
    CEE = "cee"


@dataclass(frozen=True, slots=True)
class DscpRewrite:
    """Egress rewrite: traffic class → DSCP, 8 elements, None where left as it came."""

    tc_to_dscp: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class PortQos:
    """One physical port.

    Maps: `dscp_to_tc` has 64 elements, the others 8; an element is None where the platform's default holds
    and is not known. A whole map is None when none is bound, UNKNOWN when it is named but not in the text.

    Attributes:
        name: the NOS's own port name.
        queues: egress queues, ascending index, those that the text or plan says anything about.
        priority_groups: likewise, ingress.
        mtu_bytes: as the NOS counts it (see its capabilities).
        cable_m: the length that the device has been told.
        lag: the port channel that this port belongs to, or None.
    """

    name: str
    speed_mbps: Known[int] = UNKNOWN
    mtu_bytes: Known[int] = UNKNOWN
    fec: Known[str | None] = UNKNOWN
    cable_m: Known[int | None] = UNKNOWN
    lag: str | None = None
    trust: Known[Trust] = UNKNOWN
    dscp_to_tc: Known[DscpMap | None] = UNKNOWN
    pcp_to_tc: Known[TcMap | None] = UNKNOWN
    tc_to_queue: Known[TcMap | None] = UNKNOWN
    tc_to_pg: Known[TcMap | None] = UNKNOWN
    pfc_to_queue: Known[TcMap | None] = UNKNOWN
    pfc_to_pg: Known[TcMap | None] = UNKNOWN
    rewrite: Known[DscpRewrite | None] = UNKNOWN
    pfc: PortPfc = PortPfc()
    link_pause: LinkPause = LinkPause()
    queues: tuple[QueueQos, ...] = ()
    priority_groups: tuple[PriorityGroupQos, ...] = ()
    watchdog: Known[PortWatchdog | None] = UNKNOWN
    dcbx: Known[DcbxMode] = UNKNOWN
    lldp: Known[bool] = UNKNOWN

    def queue(self, index: int) -> QueueQos | None:
        """Returns the queue of that number, or None if nothing was said of it."""
        return next((queue for queue in self.queues if queue.index == index), None)

    def priority_group(self, index: int) -> PriorityGroupQos | None:
        """Returns the priority group of that number, or None if nothing was said of it."""
        return next((group for group in self.priority_groups if group.index == index), None)


class BufferModel(StrEnum):
    """Who sizes the buffers (SONiC DEVICE_METADATA buffer_model)."""

    TRADITIONAL = "traditional"
    DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True)
class BufferPool:
    """One shared buffer.

    Attributes:
        direction: ingress, egress or both.
        size_bytes: UNKNOWN where the platform computes it or the text gives a percentage.
        percent: share of the platform's buffer (Junos, NVUE), or None.
        xoff_bytes: shared headroom pool inside it; 0 when there is none.
        alpha: whether its users have dynamic thresholds.
    """

    name: str
    direction: str
    size_bytes: Known[int] = UNKNOWN
    percent: int | None = None
    xoff_bytes: Known[int] = 0
    alpha: Known[bool] = UNKNOWN


@dataclass(frozen=True, slots=True)
class TunnelQos:
    """What VXLAN encapsulation does to the outer header."""

    dscp_copied_in: Known[bool] = UNKNOWN
    dscp_copied_out: Known[bool] = UNKNOWN
    ecn_copied: Known[bool] = UNKNOWN


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that the text uses and never defines, or a key that it defines twice.

    Attributes:
        kind: `profile`, `map`, `scheduler`, `duplicate`, ….
        name: the name.
        where: the port or section that uses it.
    """

    kind: str
    name: str
    where: str


@dataclass(frozen=True, slots=True)
class DeviceQos:
    """One device, vendor-neutral and complete.

    Attributes:
        device: host name.
        nos: `sonic`, `eos`, `nxos`, `cumulus`, `junos`, `os10`, `dell_sonic`, `vrp`.
        ports: natural order of names.
        global_dscp_to_tc: the device-wide map where the NOS has one (EOS; SONiC `global`).
        watchdog_polling_ms: device-wide polling interval.
        pfc_disabled_globally: one line that overrides every port (EOS `priority-flow-control all off`).
        headroom_pool_bytes: headroom shared by all ports (VRP, SONiC shared headroom pool), None if none.
        aqm_counters: whether ECN and WRED counters are switched on (SONiC flex counters, EOS feature).
        undefined: names used and never defined.
        duplicates: keys given twice; the last one won.
    """

    device: str
    nos: str
    ports: tuple[PortQos, ...] = ()
    global_dscp_to_tc: Known[DscpMap | None] = UNKNOWN
    watchdog_polling_ms: Known[int | None] = UNKNOWN
    pfc_disabled_globally: Known[bool] = UNKNOWN
    buffer_model: Known[BufferModel] = UNKNOWN
    pools: tuple[BufferPool, ...] = ()
    headroom_pool_bytes: Known[int | None] = UNKNOWN
    tunnel: Known[TunnelQos | None] = UNKNOWN
    aqm_counters: Known[bool] = UNKNOWN
    undefined: tuple[Reference, ...] = ()
    duplicates: tuple[Reference, ...] = ()

    def port(self, name: str) -> PortQos | None:
        """Returns the port of that name, or None."""
        return next((port for port in self.ports if port.name == name), None)
