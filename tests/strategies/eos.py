"""`DeviceQos` that EOS can do, and running configurations that it may meet, over one small pool of port names."""

from dataclasses import replace

from hypothesis import strategies as st

from fabric.nos.base import RenderContext
from fabric.nos.eos import EOS
from fabric.nos.eos.defaults import DSCP_TO_TC
from fabric.qos import (
    IDENTITY,
    UNKNOWN,
    Aqm,
    AqmKind,
    DcbxMode,
    DeviceQos,
    DscpRewrite,
    PfcMode,
    PortPfc,
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
from fabric.units import natural_key

__all__ = ("bases", "contexts", "device_qos")

PORTS = ("Ethernet1", "Ethernet2", "Ethernet3/1", "Ethernet3/2", "Ethernet10")
QUEUES = st.integers(0, 6)  # 7 is EOS's own
PRIORITIES = st.frozensets(QUEUES, max_size=2)


def _thresholds() -> st.SearchStrategy[tuple[Threshold, Threshold]]:
    pairs = st.tuples(st.integers(1, 2_000_000), st.integers(1, 2_000_000)).map(sorted)
    scale = st.sampled_from(
        [
            (1, ThresholdUnit.BYTES),
            (1000, ThresholdUnit.BYTES),
            (1, ThresholdUnit.SEGMENTS),
            (1000, ThresholdUnit.NANOSECONDS),
        ]
    )
    return st.tuples(pairs, scale).map(
        lambda drawn: (
            Threshold(drawn[0][0] * drawn[1][0], drawn[1][1]),
            Threshold(drawn[0][1] * drawn[1][0], drawn[1][1]),
        )
    )


@st.composite
def _aqms(draw: st.DrawFn) -> Aqm:
    kmin, kmax = draw(_thresholds())
    return Aqm(
        kind=draw(st.sampled_from([AqmKind.MARK, AqmKind.DROP])),
        kmin=kmin,
        kmax=kmax,
        pmax_percent=draw(st.integers(1, 100)),
        weight=draw(st.one_of(st.just(UNKNOWN), st.integers(0, 15))),
        counted=draw(st.sampled_from([UNKNOWN, True, False])),
    )


def _schedulers() -> st.SearchStrategy[Scheduler]:
    return st.builds(
        Scheduler,
        kind=st.sampled_from([SchedulerKind.STRICT, SchedulerKind.DWRR]),
        weight=st.none() | st.integers(1, 100),
        percent=st.just(True),
        guaranteed_kbps=st.none() | st.integers(1, 10_000),
        shape_kbps=st.none() | st.integers(1, 100_000),
    )


@st.composite
def _watchdogs(draw: st.DrawFn) -> PortWatchdog:
    detection, restoration = draw(st.integers(10, 60_000)), draw(st.integers(10, 60_000))
    return PortWatchdog(
        priorities=draw(PRIORITIES),
        detection_ms=detection,
        restoration_ms=restoration,
        polling_ms=draw(st.one_of(st.just(UNKNOWN), st.integers(5, 30_000))),
        action=draw(st.sampled_from([WatchdogAction.DROP, WatchdogAction.ALERT])),
    )


@st.composite
def _ports(draw: st.DrawFn, name: str) -> PortQos:
    indices = draw(st.frozensets(QUEUES, max_size=4))
    return PortQos(
        name=name,
        speed_mbps=draw(st.sampled_from([25_000, 100_000, UNKNOWN])),
        mtu_bytes=draw(st.sampled_from([1500, 9000, 9214])),
        trust=draw(st.sampled_from([Trust.DSCP, Trust.PCP, Trust.NONE])),
        pfc=PortPfc(mode=draw(st.sampled_from([PfcMode.ON, PfcMode.OFF])), priorities=draw(PRIORITIES)),
        queues=tuple(
            QueueQos(index, scheduler=draw(st.none() | _schedulers()), aqm=draw(st.none() | _aqms()))
            for index in sorted(indices)
        ),
        watchdog=draw(st.none() | _watchdogs()),
        dcbx=draw(st.sampled_from(list(DcbxMode))),
    )


@st.composite
def device_qos(draw: st.DrawFn) -> DeviceQos:
    """Returns a strategy of devices: one to four ports, one DSCP map."""
    names = draw(st.lists(st.sampled_from(PORTS), min_size=1, max_size=4, unique=True))
    moved = draw(st.dictionaries(st.integers(0, 63), st.integers(0, 7), max_size=6))
    classes = tuple(moved.get(dscp, tc) for dscp, tc in enumerate(DSCP_TO_TC))
    queue_map = draw(st.sampled_from([IDENTITY, (0, 1, 2, 3, 4, 5, 5, 7)]))
    rewrite = draw(st.sampled_from([None, DscpRewrite(tc_to_dscp=(None, 10, None, 26, None, None, 48, None))]))
    ports = tuple(
        replace(draw(_ports(name)), dscp_to_tc=classes, tc_to_queue=queue_map, rewrite=rewrite)
        for name in sorted(names, key=natural_key)
    )
    return DeviceQos(device="leaf1", nos="eos", ports=ports, global_dscp_to_tc=classes)


# one line of each row at most, as a device keeps one of each kind
_INTERFACE_LINES = (
    ("mtu 1500", "mtu 8000"),
    ("l2 mtu 8000",),
    ("no switchport", "switchport"),
    ("ip address 192.0.2.1/31",),
    ("description a ! b",),
    ("speed 100g-4", "speed forced 25gfull"),
    ("error-correction encoding reed-solomon", "no error-correction encoding"),
    ("service-profile OTHER", "service-profile MISSING"),
    ("service-policy type qos input PM",),
    ("qos trust cos", "qos trust dscp", "no qos trust"),
    ("qos cos 5",),
    ("priority-flow-control on", "no priority-flow-control"),
    ("priority-flow-control priority 5 no-drop", "priority-flow-control priority 5 drop"),
    ("priority-flow-control priority 3 drop",),
    ("priority-flow-control pause watchdog", "no priority-flow-control pause watchdog"),
    ("priority-flow-control pause watchdog port timer timeout 0.05 polling-interval auto recovery-time 1.11 forced",),
    ("priority-flow-control pause watchdog port action drop",),
    ("flowcontrol receive on",),
    ("flowcontrol send off",),
    ("dcbx mode cee",),
    ("no lldp transmit",),
    ("channel-group 3 mode active",),
    ("comment\n   do not touch\n   EOF",),
)
_QUEUE_LINES = (
    ("no priority", "priority strict"),
    ("bandwidth percent 30",),
    ("bandwidth guaranteed percent 10",),
    ("shape rate 40 percent",),
    ("random-detect ecn count",),
    ("random-detect ecn minimum-threshold 320 segments maximum-threshold 320 segments weight 10",),
    (
        "random-detect drop drop-precedence 2 minimum-threshold 2 kbytes maximum-threshold 200 kbytes drop-probability 50",
    ),
)
_DEVICE_LINES = (
    ("priority-flow-control all off",),
    ("qos rewrite dscp",),
    ("qos map dscp 8 9 26 to traffic-class 1",),
    ("qos map dscp 27 to traffic-class 4 drop-precedence 2",),
    ("qos map cos 1 2 3 4 to traffic-class 2",),
    ("qos map traffic-class 1 to dscp 56",),
    ("qos map traffic-class 2 4 5 to cos 7",),
    ("qos map traffic-class 6 to tx-queue 2",),
    ("priority-flow-control pause watchdog default timeout 0.05",),
    ("priority-flow-control pause watchdog default polling-interval 10.001",),
    ("priority-flow-control pause watchdog action drop",),
    ("hardware counter feature ecn out",),
    ("no lldp run",),
    ("hostname leaf1",),
)


@st.composite
def _some(draw: st.DrawFn, rows: tuple[tuple[str, ...], ...], *, most: int) -> list[str]:
    picked = draw(st.lists(st.sampled_from(rows), max_size=most, unique=True))
    return [draw(st.sampled_from(row)) for row in picked]


@st.composite
def _queue_block(draw: st.DrawFn) -> list[str]:
    word, index = draw(st.sampled_from(["tx-queue", "uc-tx-queue", "mc-tx-queue"])), draw(QUEUES)
    lines = draw(_some(_QUEUE_LINES, most=3))
    return ["   !", f"   {word} {index}", *(f"      {line}" for line in lines)]


@st.composite
def _interface_block(draw: st.DrawFn, header: str) -> list[str]:
    lines = draw(_some(_INTERFACE_LINES, most=6))
    queues = draw(st.lists(_queue_block(), max_size=2, unique_by=lambda rows: rows[1].split()[-1]))
    return [header, *(f"   {line}" for line in lines), *(row for block in queues for row in block), "!"]


@st.composite
def bases(draw: st.DrawFn) -> str:
    """Returns a strategy of running configurations with foreign lines in the way of ours."""
    names = draw(st.lists(st.sampled_from(PORTS), max_size=5, unique=True))
    rows = ["! Command: show running-config", "!", "banner motd", "interface Ethernet99", "EOF", "!"]
    if draw(st.booleans()):
        profile = draw(_interface_block("qos profile OTHER"))
        rows += [
            row for row in profile if not row.strip().startswith(("mtu", "switchport", "channel-group", "comment"))
        ]
    if draw(st.booleans()):
        rows += ["qos profile FABRICCTL-100G", "   qos trust cos", "   !", "   uc-tx-queue 2", "      no priority", "!"]
    if draw(st.booleans()):
        rows += draw(_interface_block("interface Port-Channel3"))
    for name in names:
        rows += draw(_interface_block(f"interface {name}"))
    rows += draw(_some(_DEVICE_LINES, most=6))
    return "\n".join([*rows, "!", "end", ""])


@st.composite
def contexts(draw: st.DrawFn, base: str, *, adopt: bool = True) -> RenderContext:
    """Returns a strategy of contexts over one running configuration."""
    return RenderContext(asic=draw(st.sampled_from(["", "trident3", "jericho2"])), running=EOS.tree(base), adopt=adopt)
