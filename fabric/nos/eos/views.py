"""`DeviceQos` as what the EOS templates print: words and numbers ready to stand on a line. Pure.

Here are the units (kbytes, seconds), what EOS hides, and which queue needs guaranteed bandwidth; the templates decide
nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from fabric.errors import UnsupportedFeatureError
from fabric.nos.base import RenderContext
from fabric.nos.eos.defaults import DSCP_TO_TC, GUARANTEED_KBPS, KBYTE
from fabric.qos import (
    IDENTITY,
    UNKNOWN,
    Aqm,
    AqmKind,
    Aspect,
    DcbxMode,
    DeviceQos,
    DscpRewrite,
    Known,
    PfcMode,
    PortQos,
    PortWatchdog,
    QueueQos,
    Scheduler,
    SchedulerKind,
    Threshold,
    ThresholdUnit,
    Trust,
    WatchdogAction,
)

__all__ = (
    "GuaranteeView",
    "InterfaceView",
    "MapEntry",
    "MapsView",
    "ProfileView",
    "QueueView",
    "TimerView",
    "device_timer",
    "dscp_to_tc",
    "guaranteed_kbps",
    "interface_view",
    "maps_view",
    "profile_view",
    "timer_view",
)

K = TypeVar("K")

_TRUST: Final = {Trust.DSCP: "qos trust dscp", Trust.PCP: "qos trust cos", Trust.NONE: "no qos trust"}
_ACTIONS: Final = {WatchdogAction.DROP: "drop", WatchdogAction.ALERT: "notify-only"}
_NANOSECONDS: Final = (("milliseconds", 1_000_000), ("microseconds", 1_000))
_PERCENT_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class MapEntry:
    """Members that go to one value: `24 25 27`, `1`."""

    members: str
    value: int


@dataclass(frozen=True, slots=True)
class MapsView:
    """The device-wide maps where they differ from EOS's own."""

    dscp: tuple[MapEntry, ...]
    queue_of_tc: tuple[MapEntry, ...]
    dscp_of_tc: tuple[MapEntry, ...]
    rewrite: bool


@dataclass(frozen=True, slots=True)
class TimerView:
    """Watchdog times in seconds, `auto` for a polling interval that EOS chooses; action "" for none."""

    timeout: str
    recovery: str
    polling: str
    action: str


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue of a profile; "" for a line that is not there."""

    word: str
    index: int
    priority: str
    percent: str
    shape: str
    curve: str
    count: bool


@dataclass(frozen=True, slots=True)
class ProfileView:
    """One profile. `no_drop` is None where PFC is off; `watchdog` is "on", "off" or ""; `action` is "" for none."""

    name: str
    trust: str
    no_drop: tuple[int, ...] | None
    watchdog: str
    timer: TimerView | None
    action: str
    queues: tuple[QueueView, ...]


@dataclass(frozen=True, slots=True)
class GuaranteeView:
    """Guaranteed bandwidth of one queue of a port."""

    index: int
    kbps: int


@dataclass(frozen=True, slots=True)
class InterfaceView:
    """One interface; `mtu` and `dcbx` are "" where no line is wanted."""

    name: str
    mtu: str
    dcbx: str
    profile: str
    guaranteed: tuple[GuaranteeView, ...] = ()


def dscp_to_tc(qos: DeviceQos) -> tuple[int, ...]:
    """Returns the device's DSCP map, EOS's own where the plan leaves it.

    Raises:
        UnsupportedFeatureError: two ports want different maps; EOS has one.
    """
    wanted = [qos.global_dscp_to_tc, *(port.dscp_to_tc for port in qos.ports)]
    named = {mapping for mapping in wanted if mapping is not UNKNOWN and mapping is not None}
    full = {tuple(default if tc is None else tc for tc, default in zip(one, DSCP_TO_TC, strict=True)) for one in named}
    if len(full) > 1:
        raise UnsupportedFeatureError(
            "EOS has one DSCP map for the whole device",
            where=qos.device,
            found=f"{len(full)} different maps",
            remedy="Give all ports of this switch the same data DSCPs and priorities.",
        )
    return full.pop() if full else DSCP_TO_TC


def maps_view(qos: DeviceQos) -> MapsView:
    """Returns the entries of the device-wide maps that EOS would not have by itself."""
    wanted = dscp_to_tc(qos)
    queues = {mapping for port in qos.ports if (mapping := port.tc_to_queue) is not UNKNOWN and mapping is not None}
    if len(queues) > 1:
        raise UnsupportedFeatureError("EOS has one traffic class to queue map for the whole device", where=qos.device)
    queue_map = queues.pop() if queues else IDENTITY
    rewrite = next((port.rewrite for port in qos.ports if isinstance(port.rewrite, DscpRewrite)), None)
    dscps = {tc: dscp for tc, dscp in enumerate(rewrite.tc_to_dscp) if dscp is not None} if rewrite else {}
    return MapsView(
        dscp=_grouped({dscp: tc for dscp, tc in enumerate(wanted) if tc != DSCP_TO_TC[dscp]}),
        queue_of_tc=_grouped({tc: q for tc, q in enumerate(queue_map) if q is not None and q != tc}),
        dscp_of_tc=_grouped(dscps),
        rewrite=rewrite is not None,
    )


def _grouped(entries: Mapping[int, int]) -> tuple[MapEntry, ...]:
    groups: dict[int, list[str]] = {}
    for member, value in sorted(entries.items()):
        groups.setdefault(value, []).append(str(member))
    return tuple(MapEntry(members=" ".join(members), value=value) for value, members in sorted(groups.items()))


def timer_view(watchdog: PortWatchdog, *, port: str) -> TimerView | None:
    """Returns the times of a watchdog, None where the plan leaves them to the device."""
    if watchdog.detection_ms is UNKNOWN or watchdog.restoration_ms is UNKNOWN:
        return None
    polling = watchdog.polling_ms
    return TimerView(
        timeout=_seconds(watchdog.detection_ms),
        recovery=_seconds(watchdog.restoration_ms),
        polling="auto" if polling is UNKNOWN else _seconds(polling),
        action=_action(watchdog.action, port=port),
    )


def device_timer(qos: DeviceQos, context: RenderContext) -> TimerView | None:
    """Returns the watchdog's times that stand device-wide, None where each profile says its own.

    They do when device-wide settings were adopted, all watched ports agree, and none keeps what it has.
    """
    if any(Aspect.WATCHDOG in one.aspects for one in context.kept):
        return None
    watchdogs = [port.watchdog for port in qos.ports if isinstance(port.watchdog, PortWatchdog)]
    views = {timer_view(watchdog, port=qos.device) for watchdog in watchdogs}
    if not context.adopt or len(views) != 1 or any(watchdog.polling_ms is UNKNOWN for watchdog in watchdogs):
        return None
    return views.pop()


def profile_view(port: PortQos, *, name: str, word: str, device_watchdog: bool, watchdog_stands: bool) -> ProfileView:
    """Returns the profile of a port.

    Args:
        port: what it shall do.
        name: of the profile.
        word: `tx-queue` or `uc-tx-queue`.
        device_watchdog: the times stand device-wide, so that the profile need not say them.
        watchdog_stands: the device has a watchdog of its own, which an unwatched port must refuse.
    """
    watchdog = port.watchdog
    own = watchdog if isinstance(watchdog, PortWatchdog) and not device_watchdog else None
    queues = (_queue_view(queue, word=word, port=port.name) for queue in port.queues)
    return ProfileView(
        name=name,
        trust="" if port.trust is UNKNOWN else _word(_TRUST, port.trust, port=port.name, what="trust"),
        no_drop=_no_drop(port),
        watchdog="on" if own is not None else ("off" if watchdog is None and watchdog_stands else ""),
        timer=timer_view(own, port=port.name) if own is not None else None,
        action=_action(own.action, port=port.name) if own is not None else "",
        queues=tuple(view for view in queues if view is not None),
    )


def interface_view(port: PortQos, *, profile: str, mtu: str) -> InterfaceView:
    """Returns the lines of the port itself; what the watchdog needs stands here (switches.md 1.4)."""
    on = port.dcbx is not UNKNOWN and port.dcbx is not DcbxMode.OFF
    return InterfaceView(
        name=port.name,
        mtu=mtu,
        dcbx=str(port.dcbx) if on else "",
        profile=profile,
        guaranteed=tuple(GuaranteeView(index, kbps) for index, kbps in sorted(guaranteed_kbps(port).items())),
    )


def guaranteed_kbps(port: PortQos) -> dict[int, int]:
    """Returns queue → guaranteed kb/s: what the plan says, and what the watchdog needs to watch its queue."""
    told = {
        queue.index: queue.scheduler.guaranteed_kbps
        for queue in port.queues
        if isinstance(queue.scheduler, Scheduler) and queue.scheduler.guaranteed_kbps is not None
    }
    watchdog = port.watchdog
    if isinstance(watchdog, PortWatchdog) and watchdog.priorities is not UNKNOWN:
        queue_of = IDENTITY if port.tc_to_queue is UNKNOWN or port.tc_to_queue is None else port.tc_to_queue
        watched = {queue_of[one] for one in watchdog.priorities}
        told |= {one: GUARANTEED_KBPS for one in watched if one is not None and one not in told}
    return told


def _no_drop(port: PortQos) -> tuple[int, ...] | None:
    mode, priorities = port.pfc.mode, port.pfc.priorities
    if mode is PfcMode.AUTO:
        raise UnsupportedFeatureError("EOS has no PFC that waits for DCBX", where=port.name, found="pfc mode auto")
    if mode is not PfcMode.ON:
        return None
    return () if priorities is UNKNOWN else tuple(sorted(priorities))


def _queue_view(queue: QueueQos, *, word: str, port: str) -> QueueView | None:
    scheduler = queue.scheduler if isinstance(queue.scheduler, Scheduler) else None
    aqm = queue.aqm if isinstance(queue.aqm, Aqm) else None
    if scheduler is None and aqm is None:
        return None
    return QueueView(
        word=word,
        index=queue.index,
        priority=_priority(scheduler),
        percent=_percent(scheduler, port=port),
        shape=str(scheduler.shape_kbps) if scheduler is not None and scheduler.shape_kbps is not None else "",
        curve=_curve(aqm, port=port) if aqm is not None else "",
        count=aqm is not None and aqm.kind is AqmKind.MARK and (aqm.counted is UNKNOWN or aqm.counted),
    )


def _priority(scheduler: Scheduler | None) -> str:
    if scheduler is None:
        return ""
    return "priority strict" if scheduler.kind is SchedulerKind.STRICT else "no priority"


def _percent(scheduler: Scheduler | None, *, port: str) -> str:
    if scheduler is None or scheduler.weight is None:
        return ""
    if not 0 < scheduler.weight <= _PERCENT_MAX:
        raise UnsupportedFeatureError(
            "EOS takes a queue's share in percent", where=port, found=str(scheduler.weight), expected="1..100"
        )
    return str(scheduler.weight)


def _curve(aqm: Aqm, *, port: str) -> str:
    kmin, kmax, pmax = aqm.kmin, aqm.kmax, aqm.pmax_percent
    if aqm.kind is AqmKind.DYNAMIC_MARK or kmin is UNKNOWN or kmax is UNKNOWN or pmax is UNKNOWN:
        raise UnsupportedFeatureError(
            "EOS needs an ECN curve in numbers", where=port, found=f"a curve of kind {aqm.kind}"
        )
    unit, low, high = _in_unit(kmin, kmax, port=port)
    weight = 0 if aqm.weight is UNKNOWN else aqm.weight
    word, chance = ("ecn", "max-mark-probability") if aqm.kind is AqmKind.MARK else ("drop", "drop-probability")
    return f"{word} minimum-threshold {low} {unit} maximum-threshold {high} {unit} {chance} {pmax} weight {weight}"


def _in_unit(kmin: Threshold, kmax: Threshold, *, port: str) -> tuple[str, int, int]:
    """Returns the largest unit in which both thresholds are whole numbers, and the two numbers."""
    units = {
        ThresholdUnit.BYTES: (("kbytes", KBYTE), ("bytes", 1)),
        ThresholdUnit.SEGMENTS: (("segments", 1),),
        ThresholdUnit.NANOSECONDS: _NANOSECONDS,
    }.get(kmin.unit, ())
    for word, size in units if kmin.unit is kmax.unit else ():
        if kmin.value % size == 0 and kmax.value % size == 0:
            return word, kmin.value // size, kmax.value // size
    raise UnsupportedFeatureError(
        "EOS has no unit for these thresholds",
        where=port,
        found=f"{kmin} and {kmax}",
        expected="both in bytes, segments or whole microseconds",
    )


def _action(action: Known[WatchdogAction], *, port: str) -> str:
    return "" if action is UNKNOWN else _word(_ACTIONS, action, port=port, what="watchdog action")


def _word(words: Mapping[K, str], key: K, *, port: str, what: str) -> str:
    if key not in words:
        raise UnsupportedFeatureError(
            f"EOS has no such {what}", where=port, found=str(key), expected=", ".join(sorted(map(str, words)))
        )
    return words[key]


def _seconds(milliseconds: int) -> str:
    whole, rest = divmod(milliseconds, 1000)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".") if rest else str(whole)
