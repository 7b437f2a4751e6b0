"""What a switch does where its `DeviceQos` says nothing, and the two together as plain numbers per port.

The lab may not see `fabric.nos`: what an OS or ASIC does by itself comes in as a `Platform`. What neither answers
is listed in `SwitchPlan.unresolved` and then left out (no curve, no watchdog), never guessed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.lab.wire.aqm import Curve
from fabric.lab.wire.buffer import GroupPlan
from fabric.lab.wire.transmitter import QUEUES, QueuePlan
from fabric.lab.wire.watchdog import WatchdogPlan
from fabric.qos import (
    DSCP_COUNT,
    IDENTITY,
    PRIORITY_COUNT,
    UNKNOWN,
    DeviceQos,
    Known,
    PfcMode,
    PortQos,
    QueueQos,
    Scheduler,
    SchedulerKind,
    Threshold,
    ThresholdUnit,
    Trust,
    WatchdogAction,
    known,
)

__all__ = ("Platform", "PortPlan", "SwitchPlan", "plan_switch")

_MS: Final = 1_000_000
_ALL: Final = frozenset(range(PRIORITY_COUNT))
_EQUAL_SHARE: Final = Scheduler(SchedulerKind.DWRR, weight=1)
_ETHERNET_BYTES: Final = 14  # IEEE 802.3: two addresses and the type


@dataclass(frozen=True, slots=True)
class Platform:
    """The board: sizes, rates, and what holds where nothing is configured.

    Attributes:
        shared_bytes: P of the shared buffer; None for the largest ingress pool of the configuration.
        rate_bps: rate of every port; None for each its configured speed.
        headroom_bytes: of a lossless group whose headroom the OS computes or hides.
        lossless_by_pfc: a priority that PFC pauses is lossless even where no buffer profile says so (EOS).
        alpha_log2: of a lossless group without one. lossy_alpha_log2: of a lossy group without one.
        queue_alpha_log2: threshold of a queue for lossy frames, alpha x free of the shared buffer.
        xon_offset_bytes: resume this far below XOFF where neither XON nor an offset is configured.
        auto_pfc: whether PFC left to DCBX is on.
        quantum_bytes: what the heaviest queue may send in one round; no less than a frame.
        segment_bytes, queue_buffer_bytes: denominators of thresholds in segments and per cent, None if not known.
        marks_all_above_kmax, mtu_overhead_bytes: as in `Capabilities`.
    """

    shared_bytes: int | None = None
    rate_bps: int | None = None
    headroom_bytes: int = 0
    lossless_by_pfc: bool = False
    alpha_log2: int = 0
    lossy_alpha_log2: int = 3
    queue_alpha_log2: int = 0
    xon_offset_bytes: int = 0
    auto_pfc: bool = False
    quantum_bytes: int = 10_240
    segment_bytes: int | None = None
    queue_buffer_bytes: int | None = None
    marks_all_above_kmax: bool = True
    mtu_overhead_bytes: int = 22
    trust: Trust = Trust.DSCP
    dscp_to_tc: tuple[int | None, ...] = (0,) * DSCP_COUNT
    pcp_to_tc: tuple[int | None, ...] = IDENTITY
    tc_to_queue: tuple[int | None, ...] = IDENTITY
    tc_to_pg: tuple[int | None, ...] = IDENTITY
    scheduler: Scheduler = _EQUAL_SHARE


@dataclass(frozen=True, slots=True)
class PortPlan:
    """One port as numbers; tuples of eight are by traffic class, PFC priority or queue as the name says.

    Attributes:
        pfc_rx: priorities on which a pause is obeyed.
        tail_drops: per queue: True drops when full, False never, None as the frame's group is lossy or not.
        l3_max_bytes: largest packet behind an untagged Ethernet header; l3_max_tagged_bytes: behind a tagged one.
        rewrite: traffic class → DSCP or None for as it came.
    """

    name: str
    rate_bps: int
    trust: Trust
    dscp_to_tc: tuple[int, ...]
    pcp_to_tc: tuple[int, ...]
    tc_to_queue: tuple[int, ...]
    tc_to_pg: tuple[int, ...]
    pfc_to_queue: tuple[int, ...]
    pfc_rx: frozenset[int]
    groups: tuple[GroupPlan, ...]
    queues: tuple[QueuePlan, ...]
    curves: tuple[Curve | None, ...]
    tail_drops: tuple[bool | None, ...]
    watchdogs: tuple[tuple[int, WatchdogPlan], ...]
    l3_max_bytes: int | None
    l3_max_tagged_bytes: int | None
    rewrite: tuple[int | None, ...]
    queue_alpha_log2: int


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """One switch as numbers.

    Attributes:
        unresolved: what was configured and cannot be obeyed, as sentences.
    """

    shared_bytes: int
    headroom_pool_bytes: int | None
    ports: tuple[PortPlan, ...]
    unresolved: tuple[str, ...]


def plan_switch(qos: DeviceQos, platform: Platform, ports: Sequence[str] = ()) -> SwitchPlan:
    """Returns what the data plane does.

    Args:
        qos: the configuration.
        platform: the board.
        ports: the ports that exist; () for those of `qos`.

    Raises:
        ValueError: nobody says how large the shared buffer is, or how fast a port.
    """
    shared = platform.shared_bytes
    if shared is None:
        sizes = [pool.size_bytes for pool in qos.pools if pool.direction != "egress"]
        shared = max((size for size in sizes if size is not UNKNOWN), default=None)
    if shared is None:
        raise ValueError(f"{qos.device}: no ingress pool has a size; give Platform.shared_bytes")
    notes: list[str] = []
    names = tuple(ports) or tuple(port.name for port in qos.ports)
    planned = tuple(_Planner(qos, platform, qos.port(name) or PortQos(name), notes).plan() for name in names)
    return SwitchPlan(shared, known(qos.headroom_pool_bytes, None), planned, tuple(notes))


class _Planner:
    def __init__(self, qos: DeviceQos, platform: Platform, port: PortQos, notes: list[str]) -> None:
        self.qos = qos
        self.platform = platform
        self.port = port
        self.notes = notes
        self.rate_bps = self._rate()

    def plan(self) -> PortPlan:
        port, platform = self.port, self.platform
        pfc = self._pfc()
        pfc_to_queue = _filled(port.pfc_to_queue)
        mtu = port.mtu_bytes
        rewrite = known(port.rewrite, None)
        return PortPlan(
            name=port.name,
            rate_bps=self.rate_bps,
            trust=known(port.trust, platform.trust),
            dscp_to_tc=_filled(
                port.dscp_to_tc, self.qos.global_dscp_to_tc, platform.dscp_to_tc, size=DSCP_COUNT, same=False
            ),
            pcp_to_tc=_filled(port.pcp_to_tc, platform.pcp_to_tc),
            tc_to_queue=_filled(port.tc_to_queue, platform.tc_to_queue),
            tc_to_pg=_filled(port.tc_to_pg, platform.tc_to_pg),
            pfc_to_queue=pfc_to_queue,
            pfc_rx=self._obeyed(pfc),
            groups=self._groups(frozenset() if port.pfc.tx is False else pfc),
            queues=self._queues(),
            curves=tuple(self._curve(port.queue(index)) for index in range(QUEUES)),
            tail_drops=tuple(self._tail_drop(port.queue(index)) for index in range(QUEUES)),
            watchdogs=self._watchdogs(pfc_to_queue),
            l3_max_bytes=self._l3_max(mtu, 0),
            l3_max_tagged_bytes=self._l3_max(mtu, 4),
            rewrite=(None,) * PRIORITY_COUNT if rewrite is None else rewrite.tc_to_dscp,
            queue_alpha_log2=platform.queue_alpha_log2,
        )

    def _rate(self) -> int:
        if self.platform.rate_bps is not None:
            return self.platform.rate_bps
        if self.port.speed_mbps is UNKNOWN:
            raise ValueError(f"{self.qos.device}: {self.port.name} has no speed; give Platform.rate_bps")
        return self.port.speed_mbps * 1_000_000

    def _l3_max(self, mtu: Known[int], tag_bytes: int) -> int | None:
        """As plan.mtu: header bytes that the OS's MTU leaves out cost nothing. Source: switches.md 4.3 row 9."""
        if mtu is UNKNOWN:
            return None
        return mtu - max(0, _ETHERNET_BYTES + tag_bytes - self.platform.mtu_overhead_bytes)

    def _pfc(self) -> frozenset[int]:
        pfc = self.port.pfc
        if self.qos.pfc_disabled_globally is True or pfc.mode is PfcMode.OFF:
            return frozenset()
        if pfc.mode is UNKNOWN or pfc.priorities is UNKNOWN:
            return frozenset()
        return pfc.priorities if pfc.mode is PfcMode.ON or self.platform.auto_pfc else frozenset()

    def _obeyed(self, pfc: frozenset[int]) -> frozenset[int]:
        if self.port.pfc.rx is False:
            return frozenset()
        return _ALL if pfc and self.port.pfc.asymmetric is True else pfc

    def _groups(self, pauses: frozenset[int]) -> tuple[GroupPlan, ...]:
        pfc_to_pg = _filled(self.port.pfc_to_pg)
        return tuple(
            self._group(index, tuple(sorted(one for one in pauses if pfc_to_pg[one] == index)))
            for index in range(PRIORITY_COUNT)
        )

    def _group(self, index: int, pauses: tuple[int, ...]) -> GroupPlan:
        platform, group = self.platform, self.port.priority_group(index)
        by_pfc = platform.lossless_by_pfc and bool(pauses)
        if group is None:
            lossless = by_pfc
            alpha = platform.alpha_log2 if lossless else platform.lossy_alpha_log2
            return GroupPlan(
                headroom_bytes=platform.headroom_bytes if lossless else 0,
                xon_offset_bytes=platform.xon_offset_bytes,
                alpha_log2=alpha,
                pauses=pauses,
                lossless=lossless,
            )
        lossless = known(group.lossless, by_pfc)
        headroom = known(group.xoff_bytes, platform.headroom_bytes) if lossless else 0
        size = known(group.size_bytes, 0)
        offset = known(group.xon_offset_bytes, None)
        xon = known(group.xon_bytes, 0)
        default_alpha = platform.alpha_log2 if lossless else platform.lossy_alpha_log2
        alpha_or_none = known(group.alpha_log2, None)
        return GroupPlan(
            headroom_bytes=headroom,
            # The profiles of Spectrum count the headroom in their size (65536 = 18432 + 47104), others do not.
            reserved_bytes=size - headroom if size >= headroom else size,
            xon_bytes=xon,
            xon_offset_bytes=offset if offset is not None else (platform.xon_offset_bytes if not xon else 1 << 62),
            alpha_log2=default_alpha if alpha_or_none is None else alpha_or_none,
            static_bytes=known(group.static_threshold_bytes, None),
            pauses=pauses,
            lossless=lossless,
        )

    def _queues(self) -> tuple[QueuePlan, ...]:
        chosen = [self._scheduler(self.port.queue(index)) for index in range(QUEUES)]
        weights = [one.weight or 1 for one in chosen if one.kind is not SchedulerKind.STRICT]
        heaviest = max(weights, default=1)
        return tuple(
            QueuePlan(
                strict=one.kind is SchedulerKind.STRICT,
                quantum_bytes=max(1, (one.weight or 1) * self.platform.quantum_bytes // heaviest),
                shape_bps=None if one.shape_kbps is None else one.shape_kbps * 1000,
            )
            for one in chosen
        )

    def _scheduler(self, queue: QueueQos | None) -> Scheduler:
        scheduler = None if queue is None else known(queue.scheduler, None)
        if scheduler is not None and queue is not None and scheduler.guaranteed_kbps is not None:
            self._note(queue.index, "a guaranteed rate is not emulated; the queue keeps its weight")
        return scheduler or self.platform.scheduler

    def _curve(self, queue: QueueQos | None) -> Curve | None:
        if queue is None or queue.aqm is None:
            return None
        aqm = queue.aqm
        if aqm is UNKNOWN or aqm.pmax_percent is UNKNOWN:
            self._note(queue.index, "its curve cannot be told; it neither marks nor drops early")
            return None
        kmin, kmax = self._depth(aqm.kmin), self._depth(aqm.kmax)
        if kmin is UNKNOWN or kmax is UNKNOWN:
            self._note(queue.index, f"thresholds {aqm.kmin} and {aqm.kmax} are no bytes here; it does not mark")
            return None
        return Curve(aqm.kind, kmin, max(kmin, kmax), aqm.pmax_percent, self.platform.marks_all_above_kmax)

    def _depth(self, threshold: Known[Threshold]) -> Known[int]:
        if threshold is UNKNOWN:
            return UNKNOWN
        match threshold.unit:
            case ThresholdUnit.BYTES:
                return threshold.value
            case ThresholdUnit.NANOSECONDS:
                return threshold.value * self.rate_bps // 8_000_000_000
            case ThresholdUnit.SEGMENTS:
                unit = self.platform.segment_bytes
                return UNKNOWN if unit is None else threshold.value * unit
            case ThresholdUnit.PERCENT:
                unit = self.platform.queue_buffer_bytes
                return UNKNOWN if unit is None else threshold.value * unit // 100

    @staticmethod
    def _tail_drop(queue: QueueQos | None) -> bool | None:
        if queue is None or queue.lossless_buffer is UNKNOWN:
            return None
        return not queue.lossless_buffer

    def _watchdogs(self, pfc_to_queue: tuple[int, ...]) -> tuple[tuple[int, WatchdogPlan], ...]:
        dog = known(self.port.watchdog, None)
        if dog is None or dog.priorities is UNKNOWN:
            return ()
        if dog.detection_ms is UNKNOWN or dog.restoration_ms is UNKNOWN:
            self.notes.append(f"{self.port.name}: the watchdog has no detection or restoration time; it does not run")
            return ()
        polling = known(dog.polling_ms, known(self.qos.watchdog_polling_ms, None) or 0)
        return tuple(
            (
                priority,
                WatchdogPlan(
                    queue=pfc_to_queue[priority],
                    detection_ns=dog.detection_ms * _MS,
                    restoration_ns=dog.restoration_ms * _MS,
                    polling_ns=polling * _MS,
                    action=known(
                        dog.action, WatchdogAction.DROP
                    ),  # SONiC's `pfcwd start` drops unless told (unconfirmed)
                ),
            )
            for priority in sorted(dog.priorities)
        )

    def _note(self, queue: int, what: str) -> None:
        self.notes.append(f"{self.port.name}: queue {queue}: {what}")


def _filled(
    *maps: Known[tuple[int | None, ...] | None], size: int = PRIORITY_COUNT, same: bool = True
) -> tuple[int, ...]:
    """Returns for each index the first number that one of the maps has, else the index itself, or 0 if not `same`."""
    told = [one for one in maps if one is not UNKNOWN and one is not None]
    return tuple(_first((one[index] for one in told), index if same else 0) for index in range(size))


def _first(found: Iterable[int | None], default: int) -> int:
    return next((one for one in found if one is not None), default)
