"""The plan of the house's policy on SONiC ports: RoCE on DSCP 26 and priority 3, CNPs on DSCP 48, the rest lossy."""

from fabric.qos import (
    IDENTITY,
    Aqm,
    AqmKind,
    BufferModel,
    DcbxMode,
    DeviceQos,
    LinkPause,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    PriorityGroupQos,
    QueueQos,
    Scheduler,
    SchedulerKind,
    Threshold,
    Trust,
    WatchdogAction,
    dscp_map,
    tc_map,
)

__all__ = ("device", "port")


def port(name: str, *, speed_mbps: int = 100_000, cable_m: int = 5, group: PriorityGroupQos | None = None) -> PortQos:
    """Returns one port with a curve scaled to its speed."""
    scale = speed_mbps // 1000
    curve = Aqm(AqmKind.MARK, Threshold(1500 * scale), Threshold(15_000 * scale), 10, weight=0)
    shared = Scheduler(SchedulerKind.DWRR, weight=50, percent=True)
    return PortQos(
        name=name,
        speed_mbps=speed_mbps,
        mtu_bytes=9216,
        cable_m=cable_m,
        trust=Trust.DSCP,
        dscp_to_tc=dscp_map({26: 3, 48: 6}, default=0),
        pcp_to_tc=None,
        tc_to_queue=IDENTITY,
        tc_to_pg=tc_map({3: 3}, default=0),
        pfc_to_queue=IDENTITY,
        pfc_to_pg=tc_map({3: 3}),
        rewrite=None,
        pfc=PortPfc(PfcMode.ON, frozenset({3}), rx=True, tx=True, asymmetric=False, send_tlv=False),
        link_pause=LinkPause(rx=False, tx=False),
        queues=(
            QueueQos(0, shared, None, lossless_buffer=False),
            QueueQos(3, shared, curve, lossless_buffer=True),
            QueueQos(6, Scheduler(SchedulerKind.STRICT), None, lossless_buffer=False),
        ),
        priority_groups=(
            PriorityGroupQos(0, lossless=False),
            group or PriorityGroupQos(3, lossless=True, derived_by_nos=True),
        ),
        watchdog=PortWatchdog(frozenset({3}), 200, 400, 200, WatchdogAction.DROP),
        dcbx=DcbxMode.OFF,
        lldp=True,
    )


def device(*ports: PortQos, polling_ms: int = 200) -> DeviceQos:
    """Returns a switch with those ports."""
    return DeviceQos(
        device="leaf1",
        nos="sonic",
        ports=ports,
        global_dscp_to_tc=None,
        watchdog_polling_ms=polling_ms,
        buffer_model=BufferModel.TRADITIONAL,
    )
