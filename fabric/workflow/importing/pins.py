"""What a device does as a RoCE policy: the variables that make the plan come out as it stands. Pure.

Each value is that of most ports; what does not fit it is found by planning, not here.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from fabric.intent.model import EcnOverride, EtsShare, RocePolicy
from fabric.qos import (
    UNKNOWN,
    Aqm,
    AqmKind,
    Capabilities,
    DeviceQos,
    PortQos,
    PortWatchdog,
    Scheduler,
    SchedulerKind,
    Threshold,
    ThresholdUnit,
    dscps_of,
)

__all__ = ("is_lossless", "pinned_mtu", "policy_of")

T = TypeVar("T", bound=Hashable)

_MTUS: Final = range(1280, 9601)  # what `fabric_mtu` takes
_TIMES_MS: Final = range(1, 600_001)
_REFERENCE_MBPS: Final = 100_000  # the speed that ecn_kmin and ecn_kmax are said at


def is_lossless(port: PortQos) -> bool:
    """Returns whether the port pauses some priority."""
    active = port.pfc.active
    return active is not UNKNOWN and bool(active)


def pinned_mtu(port: PortQos) -> int | None:
    """Returns the MTU of a port as the inventory can say it, None where it cannot."""
    return port.mtu_bytes if isinstance(port.mtu_bytes, int) and port.mtu_bytes in _MTUS else None


def policy_of(qos: DeviceQos, speeds: dict[str, int], capabilities: Capabilities) -> RocePolicy:
    """Returns the policy of the ports that are lossless; the defaults, with the MTU that stands, where none is.

    Args:
        qos: what the device does.
        speeds: port → Mb/s, of the ports that are imported.
        capabilities: of its network OS.
    """
    ports = [port for port in qos.ports if port.name in speeds]
    found: dict[str, Any] = {}
    if mtus := [mtu for port in ports if (mtu := pinned_mtu(port)) is not None]:
        found["mtu_bytes"] = max(mtus)
    lossless = [port for port in ports if is_lossless(port)]
    if not lossless:
        return RocePolicy(**found)
    data = _data_priority(lossless)
    found |= _classes(lossless, data, capabilities)
    found |= _curves(lossless, speeds, data)
    found |= _watchdog(lossless, qos, capabilities)
    found["ets"] = _shares(lossless, data, found.get("cnp_priority") or capabilities.cnp_queue.value, capabilities)
    modes = [port.dcbx.value for port in lossless if port.dcbx is not UNKNOWN]
    if modes and _common(modes) in capabilities.dcbx_modes.value and capabilities.dcbx_modes.value != ("off",):
        found["dcbx"] = _common(modes)
    return RocePolicy(**found)


def _common(values: Iterable[T]) -> T:
    """Returns the value that stands most often, of equals the first."""
    return Counter(values).most_common(1)[0][0]


def _data_priority(ports: Sequence[PortQos]) -> int:
    """Returns the priority that most ports pause, of equals that of RoCE by custom, else the lowest."""
    counts = Counter(one for port in ports if port.pfc.active is not UNKNOWN for one in port.pfc.active)
    usual = RocePolicy().data_priority
    return min(counts, key=lambda one: (-counts[one], one != usual, one))


def _classes(ports: Sequence[PortQos], data: int, capabilities: Capabilities) -> dict[str, Any]:
    found: dict[str, Any] = {"data_priority": data}
    maps = [port.dscp_to_tc for port in ports if isinstance(port.dscp_to_tc, tuple)]
    if not maps:
        return found | _usual_cnp(data, capabilities)
    mapping = _common(maps)
    usual = RocePolicy()
    data_dscps = dscps_of(mapping, data)
    if data_dscps:
        first = [dscp for dscp in usual.data_dscps if dscp in data_dscps]  # hosts mark the first
        found["data_dscps"] = (*first, *(dscp for dscp in data_dscps if dscp not in first))
    strict = _strict_classes(ports, data)
    chosen = [tc for tc in (mapping[usual.cnp_dscp], *strict) if tc is not None and tc != data and tc in strict]
    cnp = chosen[0] if chosen else mapping[usual.cnp_dscp]
    if cnp is None or cnp == data:
        return found | _usual_cnp(data, capabilities)
    dscps = dscps_of(mapping, cnp)
    found["cnp_dscp"] = usual.cnp_dscp if usual.cnp_dscp in dscps else dscps[0]
    if cnp != capabilities.cnp_queue.value:
        found["cnp_priority"] = cnp
    return _apart(found, usual)


def _apart(found: dict[str, Any], usual: RocePolicy) -> dict[str, Any]:
    """Returns the classes without a DSCP that would be data and CNP: a policy may not say that."""
    data = found.get("data_dscps", usual.data_dscps)
    if found.get("cnp_dscp", usual.cnp_dscp) in data:
        rest = tuple(dscp for dscp in data if dscp != found.get("cnp_dscp", usual.cnp_dscp))
        found["data_dscps"] = rest or usual.data_dscps
    return found


def _usual_cnp(data: int, capabilities: Capabilities) -> dict[str, Any]:
    """Returns another class of CNPs where the usual one is that of data."""
    usual = capabilities.cnp_queue.value
    if usual != data:
        return {}
    taken = {data, *capabilities.reserved_queues.value}
    return {"cnp_priority": next(tc for tc in (6, 5, 4) if tc not in taken)}


def _strict_classes(ports: Sequence[PortQos], data: int) -> list[int]:
    port = ports[0]
    return [
        queue.index
        for queue in sorted(port.queues, key=lambda queue: -queue.index)
        if queue.index != data
        and isinstance(queue.scheduler, Scheduler)
        and queue.scheduler.kind is SchedulerKind.STRICT
    ]


def _curves(ports: Sequence[PortQos], speeds: dict[str, int], data: int) -> dict[str, Any]:
    by_speed: dict[int, list[tuple[int, int, int] | None]] = {}
    for port in ports:
        by_speed.setdefault(speeds[port.name], []).append(_curve(port, data))
    common = {speed: curve for speed, curves in by_speed.items() if (curve := _common(curves)) is not None}
    if not common:
        return {"ecn_enabled": False}
    said = _at_reference(common)
    if said is not None:
        return dict(zip(("ecn_kmin_bytes", "ecn_kmax_bytes", "ecn_pmax_percent"), said, strict=True))
    return {"ecn_overrides": tuple(EcnOverride(*curve, speed_mbps=speed) for speed, curve in sorted(common.items()))}


def _at_reference(curves: dict[int, tuple[int, int, int]]) -> tuple[int, int, int] | None:
    """Returns the one curve at 100G that gives all of them by the plan's rule of speed / 100G, None if none does."""
    found = set()
    for speed, (kmin, kmax, pmax) in curves.items():
        scaled = [divmod(value * _REFERENCE_MBPS, speed) for value in (kmin, kmax)]
        if any(rest for _, rest in scaled):
            return None
        found.add((scaled[0][0], scaled[1][0], pmax))
    return found.pop() if len(found) == 1 else None


def _curve(port: PortQos, data: int) -> tuple[int, int, int] | None:
    queue = port.queue(data)
    aqm = None if queue is None else queue.aqm
    if not isinstance(aqm, Aqm) or aqm.kind is not AqmKind.MARK or not isinstance(aqm.pmax_percent, int):
        return None
    low, high = aqm.kmin, aqm.kmax
    if not (isinstance(low, Threshold) and isinstance(high, Threshold)):
        return None
    if {low.unit, high.unit} != {ThresholdUnit.BYTES} or not low.value < high.value:
        return None
    return low.value, high.value, aqm.pmax_percent


def _watchdog(ports: Sequence[PortQos], qos: DeviceQos, capabilities: Capabilities) -> dict[str, Any]:
    found = [port.watchdog for port in ports if port.watchdog is not UNKNOWN]
    common = _common(found) if found else UNKNOWN
    if common is UNKNOWN:
        return {}
    if not isinstance(common, PortWatchdog):
        return {"watchdog_enabled": False}
    polling = qos.watchdog_polling_ms if isinstance(qos.watchdog_polling_ms, int) else common.polling_ms
    times = {
        "watchdog_detection_ms": common.detection_ms,
        "watchdog_restoration_ms": common.restoration_ms,
        "watchdog_polling_ms": polling if capabilities.watchdog_polling_range_ms.value is not None else None,
    }
    pinned: dict[str, Any] = {
        name: value for name, value in times.items() if isinstance(value, int) and value in _TIMES_MS
    }
    if common.action is not UNKNOWN:
        pinned["watchdog_action"] = common.action.value
    return pinned


def _shares(ports: Sequence[PortQos], data: int, cnp: int, capabilities: Capabilities) -> tuple[EtsShare, ...]:
    """Returns shares that sum to 100: those that stand if they do, else that of data and the rest to class 0."""
    weights = _common([_weights(port) for port in ports])
    others = {queue: weight for queue, weight in weights if queue != cnp}
    if sum(others.values()) == 100:
        return _as_policy(others, data, capabilities, cnp)
    own = others.get(data)
    if own is None or not 0 < own <= 100:
        return (
            RocePolicy().ets if data == RocePolicy().data_priority else _as_policy({data: 100}, data, capabilities, cnp)
        )
    rest = {} if own == 100 else {_default_class(capabilities, data, cnp): 100 - own}
    return _as_policy({data: own, **rest}, data, capabilities, cnp)


def _weights(port: PortQos) -> tuple[tuple[int, int], ...]:
    return tuple(
        (queue.index, queue.scheduler.weight)
        for queue in port.queues
        if isinstance(queue.scheduler, Scheduler)
        and queue.scheduler.kind is SchedulerKind.DWRR
        and queue.scheduler.weight is not None
    )


def _default_class(capabilities: Capabilities, data: int, cnp: int) -> int:
    stock = capabilities.dscp_default_to_tc.value
    natural = 0 if stock is None or stock[0] is None else stock[0]
    candidates: tuple[int, ...] = (natural, *range(8))
    return next(tc for tc in candidates if tc not in (data, cnp))


def _as_policy(shares: dict[int, int], data: int, capabilities: Capabilities, cnp: int) -> tuple[EtsShare, ...]:
    """Returns queue → percent as the policy says it: its class 0 is what nobody listed (`plan.mapping.Classes`)."""
    default = _default_class(capabilities, data, cnp)
    swapped = {0: default, default: 0}
    named = {queue if queue == data else swapped.get(queue, queue): percent for queue, percent in shares.items()}
    return tuple(EtsShare(traffic_class, percent) for traffic_class, percent in sorted(named.items()) if percent)
