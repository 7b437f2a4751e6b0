"""What of a `DeviceQos` a SONiC configuration can show: `parse(render(q))` equals it on the ports of `q`.

Data, in short: fields that the plan states and CONFIG_DB holds come back as stated (normalised below); speed, FEC,
LAG membership, LLDP, counters and whatever headroom the NOS or buffermgrd derives come from the device. Listed in
docs/reference.
"""

from dataclasses import replace
from typing import Final

from fabric.diff import IntendedConfig, matcher
from fabric.nos.base import RenderContext
from fabric.nos.sonic import standing
from fabric.nos.sonic.names import PORT_QOS_MAP
from fabric.nos.sonic.parse import parse_tree
from fabric.nos.sonic.render import render
from fabric.qos import (
    UNKNOWN,
    Aqm,
    Aspect,
    DeviceQos,
    DscpMap,
    DscpRewrite,
    Known,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    QueueQos,
    Scheduler,
    SchedulerKind,
    Trust,
)
from fabric.qos.keeping import by_port
from fabric.qos.maps import TcMap
from fabric.tree import Tree

__all__ = ("observable",)

_MAPS: Final = (
    "trust",
    "dscp_to_tc",
    "pcp_to_tc",
    "tc_to_queue",
    "tc_to_pg",
    "pfc_to_queue",
    "pfc_to_pg",
    "rewrite",
)


def observable(qos: DeviceQos, context: RenderContext) -> DeviceQos:
    """Returns `qos` as its ports will be read back, everything device-wide included."""
    intended = render(qos, context)
    seen = parse_tree(_after(context.running, intended), device=qos.device)
    with_pg_map = any(path[0] == PORT_QOS_MAP and path[-1] == "pfc_to_pg_map" for path in intended.tree)
    aspects, described = by_port(context.kept), standing.described(qos, context)
    ports = tuple(
        found if wanted is None else _standing(_port(wanted, found, seen, with_pg_map=with_pg_map), found, kept)
        for name in (port.name for port in qos.ports)
        for wanted, found, kept in [(described.port(name), seen.port(name), aspects.get(name, frozenset()))]
        if found is not None
    )
    return replace(seen, ports=ports)


def _after(running: Tree, intended: IntendedConfig) -> Tree:
    is_owned = matcher(intended.owned)
    gone = [path for path in running if path not in intended.tree and is_owned(path)]
    return running.with_changes(intended.tree, drop=gone)


def _standing(port: PortQos, found: PortQos, kept: frozenset[Aspect]) -> PortQos:
    """Returns `port` with what stays taken from what was found."""
    if Aspect.MTU in kept:
        port = replace(port, mtu_bytes=found.mtu_bytes)
    if Aspect.CABLE in kept:
        port = replace(port, cable_m=found.cable_m)
    if Aspect.MAPS in kept:
        port = replace(port, **{name: getattr(found, name) for name in _MAPS})
    if Aspect.PFC in kept:
        port = replace(port, pfc=found.pfc)
    if Aspect.WATCHDOG in kept:
        port = replace(port, watchdog=found.watchdog)
    if kept & {Aspect.SCHEDULERS, Aspect.ECN, Aspect.OTHERS}:
        port = replace(port, queues=found.queues)
    return port


def _port(wanted: PortQos, found: PortQos, seen: DeviceQos, *, with_pg_map: bool) -> PortQos:
    """Returns `found` with all that `wanted` states and CONFIG_DB holds."""
    dscp = _dscp(wanted, seen)
    pcp = None if wanted.trust in {Trust.DSCP, Trust.NONE} else _map(wanted.pcp_to_tc)
    rewrite = _map(wanted.rewrite.tc_to_dscp) if isinstance(wanted.rewrite, DscpRewrite) else None
    return replace(
        found,
        mtu_bytes=found.mtu_bytes if wanted.mtu_bytes is UNKNOWN else wanted.mtu_bytes,
        cable_m=wanted.cable_m if isinstance(wanted.cable_m, int) else found.cable_m,
        trust=_trust(dscp, pcp),
        dscp_to_tc=dscp,
        pcp_to_tc=pcp,
        tc_to_queue=_map(wanted.tc_to_queue),
        tc_to_pg=_map(wanted.tc_to_pg),
        pfc_to_queue=_map(wanted.pfc_to_queue),
        pfc_to_pg=_map(wanted.pfc_to_pg) if with_pg_map else None,
        rewrite=None if rewrite is None else DscpRewrite(rewrite),
        pfc=_pfc(wanted.pfc, found.pfc),
        queues=tuple(_queue(wanted.queue(queue.index), queue) for queue in found.queues),
        watchdog=_watchdog(wanted.watchdog, seen),
    )


def _map(entries: Known[TcMap | None]) -> TcMap | None:
    return entries if isinstance(entries, tuple) and any(one is not None for one in entries) else None


def _dscp(wanted: PortQos, seen: DeviceQos) -> Known[DscpMap | None]:
    own = None if wanted.trust in {Trust.PCP, Trust.NONE} else _map(wanted.dscp_to_tc)
    return seen.global_dscp_to_tc if own is None else own


def _trust(dscp: Known[DscpMap | None], pcp: TcMap | None) -> Trust:
    if dscp is None:
        return Trust.NONE if pcp is None else Trust.PCP
    return Trust.DSCP if pcp is None else Trust.BOTH


def _pfc(wanted: PortPfc, found: PortPfc) -> PortPfc:
    paused = wanted.priorities if wanted.mode is PfcMode.ON and wanted.priorities is not UNKNOWN else frozenset[int]()
    return PortPfc(
        mode=PfcMode.ON if paused else PfcMode.OFF,
        priorities=paused,
        rx=bool(paused),
        tx=bool(paused),
        asymmetric=found.asymmetric if wanted.asymmetric is UNKNOWN else wanted.asymmetric,
        send_tlv=False,
    )


def _queue(wanted: QueueQos | None, found: QueueQos) -> QueueQos:
    if wanted is None:
        return replace(found, scheduler=None, aqm=None)
    return replace(found, scheduler=_scheduler(wanted.scheduler), aqm=_aqm(wanted.aqm, found.aqm))


def _scheduler(wanted: Known[Scheduler | None]) -> Scheduler | None:
    if not isinstance(wanted, Scheduler):
        return None
    weight = None if wanted.kind is SchedulerKind.STRICT else wanted.weight or 1  # sonic-scheduler.yang: default 1
    return Scheduler(
        kind=wanted.kind,
        weight=weight,
        guaranteed_kbps=wanted.guaranteed_kbps or None,
        shape_kbps=wanted.shape_kbps or None,
    )


def _aqm(wanted: Known[Aqm | None], found: Known[Aqm | None]) -> Aqm | None:
    if not isinstance(wanted, Aqm):
        return None
    pmax = 100 if wanted.pmax_percent is UNKNOWN else wanted.pmax_percent  # sonic-wred-profile.yang: default 100
    counted = found.counted if isinstance(found, Aqm) else UNKNOWN
    return replace(wanted, pmax_percent=pmax, weight=0, counted=counted)


def _watchdog(wanted: Known[PortWatchdog | None], seen: DeviceQos) -> PortWatchdog | None:
    if not isinstance(wanted, PortWatchdog) or wanted.priorities is UNKNOWN or not wanted.priorities:
        return None
    polling = seen.watchdog_polling_ms
    return replace(wanted, polling_ms=UNKNOWN if polling is None else polling)
