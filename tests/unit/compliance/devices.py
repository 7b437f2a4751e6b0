"""A device that every rule passes, to be spoiled one value at a time."""

from dataclasses import replace

from fabric.compliance import Expected, HostMtu, Subject
from fabric.plan.model import SwitchPlan
from fabric.qos import (
    IDENTITY,
    UNKNOWN,
    Aqm,
    AqmKind,
    BufferModel,
    Capabilities,
    CommitConfirm,
    DeviceQos,
    DscpMap,
    Fact,
    HeadroomOwner,
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

SPOILED = "Ethernet4"
PORTS = ("Ethernet0", SPOILED, "Ethernet12")
MAP: DscpMap = dscp_map({26: 3, 48: 6}, default=0)
CURVE = Aqm(AqmKind.MARK, Threshold(150_000), Threshold(1_500_000), 10)


def port(name: str) -> PortQos:
    """Returns a port that every rule passes."""
    dwrr = Scheduler(SchedulerKind.DWRR, weight=50)
    return PortQos(
        name=name,
        speed_mbps=100_000,
        mtu_bytes=9216,
        cable_m=40,
        trust=Trust.DSCP,
        dscp_to_tc=MAP,
        tc_to_queue=IDENTITY,
        tc_to_pg=tc_map({3: 3}, default=0),
        pfc_to_queue=IDENTITY,
        pfc_to_pg=None,
        rewrite=None,
        pfc=PortPfc(PfcMode.ON, frozenset({3}), rx=True, tx=True, asymmetric=False),
        link_pause=LinkPause(rx=False, tx=False),
        queues=(
            QueueQos(0, dwrr),
            QueueQos(3, dwrr, CURVE),
            QueueQos(6, Scheduler(SchedulerKind.STRICT)),
        ),
        priority_groups=(PriorityGroupQos(0, lossless=False), PriorityGroupQos(3, lossless=True, xoff_bytes=50_000)),
        watchdog=PortWatchdog(frozenset({3}), 200, 400, 200, WatchdogAction.DROP),
    )


def device(*, nos: str = "sonic", names: tuple[str, ...] = PORTS) -> DeviceQos:
    """Returns a device of such ports."""
    return DeviceQos(
        "leaf1",
        nos,
        tuple(port(name) for name in names),
        global_dscp_to_tc=None,
        watchdog_polling_ms=200,
        pfc_disabled_globally=False,
        buffer_model=BufferModel.TRADITIONAL,
    )


def capabilities(*, owner: HeadroomOwner = HeadroomOwner.CONFIG, mtu_overhead_bytes: int = 14) -> Capabilities:
    """Returns what a plain OS can do."""
    source = "test"
    return Capabilities(
        nos="sonic",
        mtu_max_bytes=Fact(9216, source),
        mtu_overhead_bytes=Fact(mtu_overhead_bytes, source),
        lossless_priorities_max=Fact(2, source),
        threshold_quantum_bytes=Fact(1, source),
        watchdog_timer_range_ms=Fact((100, 5000), source),
        watchdog_polling_range_ms=Fact((100, 1000), source),
        cnp_queue=Fact(6, source),
        reserved_queues=Fact((), source),
        marks_all_above_kmax=Fact(value=True, source=source),
        dscp_map_is_device_wide=Fact(value=False, source=source),
        dscp_default_to_tc=Fact(None, source),
        commit_confirm=Fact(CommitConfirm.DEADMAN, source),
        headroom_owner=Fact(owner, source),
        cable_lengths_m=Fact((), source),
    )


EXPECTED = Expected(
    ecn_kmin_bytes=150_000,
    ecn_kmax_bytes=1_500_000,
    mtu_bytes=9216,
    host_mtus=(HostMtu(9000),),
    watchdog_action="drop",
)


def subject(qos: DeviceQos | None = None, *, expected: Expected = EXPECTED) -> Subject:
    """Returns `qos` with the plan of the right device."""
    right = device()
    return Subject(
        device() if qos is None else qos,
        expected,
        capabilities=capabilities(),
        plan=SwitchPlan("leaf1", "sonic", right),
    )


def spoil(qos: DeviceQos, bad: PortQos) -> DeviceQos:
    """Returns `qos` with the port of that name exchanged for `bad`."""
    return replace(qos, ports=tuple(bad if one.name == bad.name else one for one in qos.ports))


def with_queue(one: PortQos, queue: QueueQos) -> PortQos:
    """Returns `one` with that queue in place of the one of its number."""
    rest = [other for other in one.queues if other.index != queue.index]
    return replace(one, queues=tuple(sorted([*rest, queue], key=lambda q: q.index)))


def with_group(one: PortQos, group: PriorityGroupQos | None) -> PortQos:
    """Returns `one` with `group` in place of priority group 3, or without it."""
    rest = [other for other in one.priority_groups if other.index != 3]
    return replace(one, priority_groups=tuple(rest if group is None else [*rest, group]))


def blank(name: str) -> PortQos:
    """Returns a port that nothing is bound to."""
    return PortQos(
        name=name,
        speed_mbps=100_000,
        mtu_bytes=9216,
        trust=Trust.NONE,
        dscp_to_tc=None,
        tc_to_queue=None,
        tc_to_pg=None,
        pfc_to_queue=None,
        pfc_to_pg=None,
        rewrite=None,
        pfc=PortPfc(PfcMode.OFF, frozenset(), rx=False, tx=False, asymmetric=False),
        watchdog=None,
        cable_m=UNKNOWN,
    )
