"""What is left of a plan once EOS has done its part: the defaults it fills in, what it hides, what is foreign. Pure.

`parse` of the rendered configuration gives exactly this. Dropped: headroom, alpha and pools (fixed by the ASIC and
hidden), the cable length (EOS is not told), speed, FEC and LLDP (not ours: as the running configuration has them).
"""

from dataclasses import replace
from typing import Final

from fabric.nos.base import RenderContext
from fabric.nos.eos.defaults import QUEUE_COUNT, TC_TO_DSCP
from fabric.nos.eos.parse import cos_to_tc, port_qos, priority_groups
from fabric.nos.eos.parse_watchdog import device_watchdog, effective_polling_ms
from fabric.nos.eos.sections import sections
from fabric.nos.eos.views import device_timer, dscp_to_tc, guaranteed_kbps
from fabric.qos import (
    IDENTITY,
    UNKNOWN,
    Aqm,
    AqmKind,
    DcbxMode,
    DeviceQos,
    DscpMap,
    DscpRewrite,
    Known,
    LinkPause,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    QueueQos,
    Scheduler,
    SchedulerKind,
    TcMap,
    Trust,
    known,
)

__all__ = ("observed",)

_STRICT: Final = Scheduler(SchedulerKind.STRICT)


def observed(qos: DeviceQos, context: RenderContext, seen: DeviceQos) -> DeviceQos:
    """Returns `qos` as `parse` will see it on a device that does `seen` now."""
    running = sections(context.running)
    timer = device_timer(qos, context)
    polling = next((port.watchdog.polling_ms for port in qos.ports if isinstance(port.watchdog, PortWatchdog)), None)
    standing = device_watchdog(running.device) if timer is None else None
    maps = (dscp_to_tc(qos), cos_to_tc(running))
    now = {port.name: port for port in seen.ports}
    ports = tuple(
        _port(port, now.get(port.name) or port_qos(running, port.name), maps, standing=standing) for port in qos.ports
    )
    return replace(
        seen,
        ports=ports,
        global_dscp_to_tc=maps[0],
        watchdog_polling_ms=seen.watchdog_polling_ms if timer is None else polling,
        pfc_disabled_globally=False,
    )


def _port(port: PortQos, seen: PortQos, maps: tuple[DscpMap, TcMap], *, standing: PortWatchdog | None) -> PortQos:
    trust = seen.trust if port.trust is UNKNOWN else port.trust
    dcbx = known(port.dcbx, DcbxMode.OFF)
    pfc = _pfc(port, dcbx)
    return replace(
        seen,
        mtu_bytes=seen.mtu_bytes if port.mtu_bytes is UNKNOWN else port.mtu_bytes,
        trust=trust,
        dscp_to_tc=maps[0] if trust is Trust.DSCP else None,
        pcp_to_tc=maps[1] if trust is Trust.PCP else None,
        tc_to_queue=_full(port.tc_to_queue),
        rewrite=seen.rewrite if port.rewrite is UNKNOWN else _rewrite(port.rewrite),
        pfc=pfc,
        link_pause=LinkPause(rx=False, tx=False),
        queues=_queues(port),
        priority_groups=priority_groups(pfc),
        watchdog=_watchdog(port, pfc, standing=standing),
        dcbx=dcbx,
    )


def _full(mapping: Known[TcMap | None]) -> TcMap:
    if mapping is UNKNOWN or mapping is None:
        return IDENTITY
    return tuple(index if queue is None else queue for index, queue in enumerate(mapping))


def _rewrite(rewrite: DscpRewrite | None) -> DscpRewrite | None:
    if rewrite is None:
        return None
    pairs = zip(rewrite.tc_to_dscp, TC_TO_DSCP, strict=True)
    return DscpRewrite(tc_to_dscp=tuple(default if dscp is None else dscp for dscp, default in pairs))


def _pfc(port: PortQos, dcbx: DcbxMode) -> PortPfc:
    on = port.pfc.mode is PfcMode.ON
    return PortPfc(
        mode=PfcMode.ON if on else PfcMode.OFF,
        priorities=known(port.pfc.priorities, frozenset()) if on else frozenset(),
        rx=on,
        tx=on,
        asymmetric=False,
        send_tlv=dcbx is not DcbxMode.OFF,
    )


def _queues(port: PortQos) -> tuple[QueueQos, ...]:
    guaranteed = guaranteed_kbps(port)
    wanted = (port.queue(index) or QueueQos(index) for index in range(QUEUE_COUNT))
    return tuple(
        QueueQos(
            index=queue.index,
            scheduler=_scheduler(queue.scheduler, guaranteed.get(queue.index)),
            aqm=_aqm(queue.aqm),
        )
        for queue in wanted
    )


def _scheduler(scheduler: Known[Scheduler | None], guaranteed_kbps: int | None) -> Scheduler:
    told = scheduler if isinstance(scheduler, Scheduler) else _STRICT
    return Scheduler(
        kind=SchedulerKind.STRICT if told.kind is SchedulerKind.STRICT else SchedulerKind.DWRR,
        weight=told.weight,
        percent=told.weight is not None,
        guaranteed_kbps=guaranteed_kbps,
        shape_kbps=told.shape_kbps,
    )


def _aqm(aqm: Known[Aqm | None]) -> Aqm | None:
    if aqm is UNKNOWN or aqm is None:
        return None
    counted: Known[bool] = known(aqm.counted, True) if aqm.kind is AqmKind.MARK else UNKNOWN
    return replace(aqm, weight=known(aqm.weight, 0), counted=counted)


def _watchdog(port: PortQos, pfc: PortPfc, *, standing: PortWatchdog | None) -> Known[PortWatchdog | None]:
    watchdog = port.watchdog
    if watchdog is UNKNOWN:
        return UNKNOWN if standing is not None and standing.detection_ms is not UNKNOWN else None
    if watchdog is None:
        return None
    guaranteed, queue_of = guaranteed_kbps(port), _full(port.tc_to_queue)
    paused = known(pfc.priorities, frozenset())
    told = watchdog if standing is None else _over(watchdog, standing)
    return replace(
        told,
        priorities=frozenset(one for one in paused if queue_of[one] in guaranteed),
        polling_ms=effective_polling_ms(told),
    )


def _over(watchdog: PortWatchdog, standing: PortWatchdog) -> PortWatchdog:
    """Returns the port's watchdog, the device's times where it lacks one of its own, likewise the action."""
    lacks_times = UNKNOWN in {watchdog.detection_ms, watchdog.restoration_ms}
    times = standing if lacks_times else watchdog
    return replace(times, action=standing.action if watchdog.action is UNKNOWN else watchdog.action)
