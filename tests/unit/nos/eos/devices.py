"""Devices of the canonical intent (switches.md 0), for tests."""

from dataclasses import replace

from fabric.nos.eos.defaults import DSCP_TO_TC
from fabric.qos import (
    IDENTITY,
    Aqm,
    AqmKind,
    DcbxMode,
    DeviceQos,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    QueueQos,
    Scheduler,
    SchedulerKind,
    Threshold,
    Trust,
    WatchdogAction,
)

__all__ = ("CLASSES", "CURVE", "device", "port")

CLASSES = tuple(1 if 24 <= dscp < 32 and dscp != 26 else tc for dscp, tc in enumerate(DSCP_TO_TC))
CURVE = Aqm(AqmKind.MARK, Threshold(150_000), Threshold(1_500_000), 10, weight=0, counted=True)
_HALF = Scheduler(SchedulerKind.DWRR, weight=50, percent=True)


def port(name: str, **changes: object) -> PortQos:
    """Returns a 100G port of the canonical intent with some fields changed."""
    canonical = PortQos(
        name=name,
        speed_mbps=100_000,
        mtu_bytes=9214,
        trust=Trust.DSCP,
        dscp_to_tc=CLASSES,
        tc_to_queue=IDENTITY,
        rewrite=None,
        pfc=PortPfc(mode=PfcMode.ON, priorities=frozenset({3})),
        queues=(
            QueueQos(1, scheduler=_HALF),
            QueueQos(3, scheduler=_HALF, aqm=CURVE),
            QueueQos(6, scheduler=Scheduler(SchedulerKind.STRICT)),
        ),
        watchdog=PortWatchdog(frozenset({3}), 200, 400, 100, WatchdogAction.DROP),
        dcbx=DcbxMode.IEEE,
    )
    return replace(canonical, **changes)  # type: ignore[arg-type]


def device(*ports: PortQos, name: str = "leaf2") -> DeviceQos:
    """Returns a device of those ports."""
    return DeviceQos(device=name, nos="eos", ports=ports, global_dscp_to_tc=CLASSES)
