"""What of a port stays as the device has it, whatever the plan says. Knows no network OS.

A switch that was set up by others is taken over a part at a time: the parts that nobody described yet are kept. A plan
carries the names of the parts; what stands there is known only when the device has been read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from fabric.qos.device import DeviceQos, PortPfc, PortQos, PortWatchdog
from fabric.qos.known import UNKNOWN, Known
from fabric.qos.queue import QueueQos

__all__ = ("ALL_ASPECTS", "Aspect", "Kept", "by_port", "kept_by_all", "merged")


class Aspect(StrEnum):
    """A part of what a port does with packets."""

    MTU = "mtu"
    CABLE = "cable"  # the length that the device has been told
    MAPS = "maps"  # trust, and the maps of DSCP, class, priority, queue and priority group
    PFC = "pfc"  # which priorities pause
    SCHEDULERS = "schedulers"
    ECN = "ecn"
    BUFFERS = "buffers"  # priority groups and egress buffers
    WATCHDOG = "watchdog"
    DCBX = "dcbx"
    OTHERS = "others"  # in all of the above, whatever is neither RoCE data nor CNPs


ALL_ASPECTS = frozenset(Aspect)


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays on some ports.

    Attributes:
        ports: their names.
        aspects: what stays.
        data, cnp: traffic classes of RoCE data and of CNPs: all others are `Aspect.OTHERS`.
    """

    ports: tuple[str, ...]
    aspects: frozenset[Aspect]
    data: int
    cnp: int


def by_port(kept: Iterable[Kept]) -> dict[str, frozenset[Aspect]]:
    """Returns port → what stays there; a port of which nothing stays is not in it."""
    return {port: one.aspects for one in kept for port in one.ports}


def kept_by_all(qos: DeviceQos, kept: Iterable[Kept], aspect: Aspect) -> bool:
    """Returns whether every port of `qos` keeps it, so that what is device-wide about it stays too."""
    aspects = by_port(kept)
    return bool(aspects) and all(aspect in aspects.get(port.name, frozenset()) for port in qos.ports)


def merged(qos: DeviceQos, kept: Iterable[Kept], seen: DeviceQos) -> DeviceQos:
    """Returns the plan with what `Aspect.OTHERS` leaves to the device taken from there.

    Args:
        qos: the plan.
        kept: what stays.
        seen: what the device does now.
    """
    rules = {port: one for one in kept for port in one.ports if Aspect.OTHERS in one.aspects}
    if not rules:
        return qos
    now = {port.name: port for port in seen.ports}
    ports = tuple(
        _others(port, now[port.name], rules[port.name]) if port.name in rules and port.name in now else port
        for port in qos.ports
    )
    maps = {port.dscp_to_tc for port in ports if isinstance(port.dscp_to_tc, tuple)}
    wide = next(iter(maps)) if len(maps) == 1 else qos.global_dscp_to_tc
    return replace(qos, ports=ports, global_dscp_to_tc=wide)


def _others(port: PortQos, seen: PortQos, rule: Kept) -> PortQos:
    mine = {rule.data, rule.cnp}
    return replace(
        port,
        dscp_to_tc=_dscps(port.dscp_to_tc, seen.dscp_to_tc, mine),
        pcp_to_tc=seen.pcp_to_tc,
        rewrite=seen.rewrite,
        tc_to_queue=_entries(port.tc_to_queue, seen.tc_to_queue, mine),
        tc_to_pg=_entries(port.tc_to_pg, seen.tc_to_pg, mine),
        pfc_to_queue=_entries(port.pfc_to_queue, seen.pfc_to_queue, mine),
        pfc_to_pg=_entries(port.pfc_to_pg, seen.pfc_to_pg, mine),
        pfc=_pfc(port.pfc, seen.pfc, rule.data),
        queues=_queues(port.queues, seen.queues, mine),
        priority_groups=tuple(one for one in port.priority_groups if one.index == rule.data),  # likewise
        watchdog=_watchdog(port.watchdog, seen.watchdog, rule.data),
    )


def _dscps(
    wanted: Known[tuple[int | None, ...] | None], seen: Known[tuple[int | None, ...] | None], mine: set[int]
) -> Known[tuple[int | None, ...] | None]:
    """Returns the map with the DSCPs of our classes as planned; one that has left a class of ours goes where it is."""
    if not isinstance(wanted, tuple) or not isinstance(seen, tuple):
        return wanted
    return tuple(tc if tc in mine or now in mine else now for tc, now in zip(wanted, seen, strict=True))


def _entries(
    wanted: Known[tuple[int | None, ...] | None], seen: Known[tuple[int | None, ...] | None], mine: set[int]
) -> Known[tuple[int | None, ...] | None]:
    if not isinstance(wanted, tuple) or not isinstance(seen, tuple):
        return wanted
    return tuple(entry if index in mine else now for index, (entry, now) in enumerate(zip(wanted, seen, strict=True)))


def _pfc(wanted: PortPfc, seen: PortPfc, data: int) -> PortPfc:
    now = seen.active
    if now is UNKNOWN or wanted.priorities is UNKNOWN:
        return wanted
    return replace(wanted, priorities=wanted.priorities | (now - {data}))


def _watchdog(
    wanted: Known[PortWatchdog | None], seen: Known[PortWatchdog | None], data: int
) -> Known[PortWatchdog | None]:
    if not isinstance(wanted, PortWatchdog) or not isinstance(seen, PortWatchdog):
        return wanted
    if wanted.priorities is UNKNOWN or seen.priorities is UNKNOWN:
        return wanted
    return replace(wanted, priorities=wanted.priorities | (seen.priorities - {data}))


def _queues(wanted: tuple[QueueQos, ...], seen: tuple[QueueQos, ...], mine: set[int]) -> tuple[QueueQos, ...]:
    # a buffer that is not asked for is left alone by every renderer
    named = {queue.index: replace(queue, lossless_buffer=False) for queue in seen if queue.index not in mine}
    named |= {queue.index: queue for queue in wanted if queue.index in mine}
    return tuple(named[index] for index in sorted(named))
