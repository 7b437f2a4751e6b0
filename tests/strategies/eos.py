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
    Known,
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
# strategies are made once: making them anew in every draw takes longer than drawing
QUEUES = st.integers(0, 6)  # 7 is EOS's own
PRIORITIES = st.frozensets(QUEUES, max_size=2)
_MAYBE = st.booleans()
_THRESHOLDS = st.integers(1, 2_000_000)
_SCALES = st.sampled_from(
    [
        (1, ThresholdUnit.BYTES),
        (1000, ThresholdUnit.BYTES),
        (1, ThresholdUnit.SEGMENTS),
        (1000, ThresholdUnit.NANOSECONDS),
    ]
)
_AQM_KINDS = st.sampled_from([AqmKind.MARK, AqmKind.DROP])
_PERCENT = st.integers(1, 100)
_WEIGHTS: st.SearchStrategy[Known[int]] = st.sampled_from([UNKNOWN, 0, 1, 15])
_COUNTED: st.SearchStrategy[Known[bool]] = st.sampled_from([UNKNOWN, True, False])
_SCHEDULER_KINDS = st.sampled_from([SchedulerKind.STRICT, SchedulerKind.DWRR])
_KBPS = st.none() | st.integers(1, 100_000)
_TIMES = st.one_of(st.integers(10, 60_000), st.just(UNKNOWN))
_POLLING = st.one_of(st.just(UNKNOWN), st.integers(5, 30_000))
_ACTIONS: st.SearchStrategy[Known[WatchdogAction]] = st.sampled_from(
    [WatchdogAction.DROP, WatchdogAction.ALERT, UNKNOWN]
)
_QUEUE_SETS = st.frozensets(QUEUES, max_size=3)
_SPEEDS: st.SearchStrategy[Known[int]] = st.sampled_from([25_000, 100_000, UNKNOWN])
_MTUS = st.sampled_from([1500, 9000, 9214])
_TRUSTS = st.sampled_from([Trust.DSCP, Trust.PCP, Trust.NONE])
_MODES = st.sampled_from([PfcMode.ON, PfcMode.OFF])
_DCBX = st.sampled_from(list(DcbxMode))
_NAMES = st.lists(st.sampled_from(PORTS), min_size=1, max_size=3, unique=True)
_MOVED = st.dictionaries(st.integers(0, 63), st.integers(0, 7), max_size=6)
_QUEUE_MAPS = st.sampled_from([IDENTITY, (0, 1, 2, 3, 4, 5, 5, 7)])
_REWRITES = st.sampled_from([None, DscpRewrite(tc_to_dscp=(None, 10, None, 26, None, None, 48, None))])


def _aqm(draw: st.DrawFn) -> Aqm:
    (low, high), (scale, unit) = sorted([draw(_THRESHOLDS), draw(_THRESHOLDS)]), draw(_SCALES)
    return Aqm(
        kind=draw(_AQM_KINDS),
        kmin=Threshold(low * scale, unit),
        kmax=Threshold(high * scale, unit),
        pmax_percent=draw(_PERCENT),
        weight=draw(_WEIGHTS),
        counted=draw(_COUNTED),
    )


def _scheduler(draw: st.DrawFn) -> Scheduler:
    return Scheduler(
        kind=draw(_SCHEDULER_KINDS),
        weight=draw(_PERCENT) if draw(_MAYBE) else None,
        percent=True,
        guaranteed_kbps=draw(_KBPS),
        shape_kbps=draw(_KBPS),
    )


def _watchdog(draw: st.DrawFn) -> PortWatchdog:
    return PortWatchdog(
        priorities=draw(PRIORITIES),
        detection_ms=draw(_TIMES),
        restoration_ms=draw(_TIMES),
        polling_ms=draw(_POLLING),
        action=draw(_ACTIONS),
    )


def _queue(draw: st.DrawFn, index: int) -> QueueQos:
    scheduler = _scheduler(draw) if draw(_MAYBE) else None
    return QueueQos(index, scheduler=scheduler, aqm=_aqm(draw) if draw(_MAYBE) else None)


def _port(draw: st.DrawFn, name: str) -> PortQos:
    return PortQos(
        name=name,
        speed_mbps=draw(_SPEEDS),
        mtu_bytes=draw(_MTUS),
        trust=draw(_TRUSTS),
        pfc=PortPfc(mode=draw(_MODES), priorities=draw(PRIORITIES)),
        queues=tuple(_queue(draw, index) for index in sorted(draw(_QUEUE_SETS))),
        watchdog=_watchdog(draw) if draw(_MAYBE) else None,
        dcbx=draw(_DCBX),
    )


@st.composite
def device_qos(draw: st.DrawFn) -> DeviceQos:
    """Returns a strategy of devices: one to three ports, one DSCP map."""
    moved = draw(_MOVED)
    classes = tuple(moved.get(dscp, tc) for dscp, tc in enumerate(DSCP_TO_TC))
    queue_map, rewrite = draw(_QUEUE_MAPS), draw(_REWRITES)
    ports = tuple(
        replace(_port(draw, name), dscp_to_tc=classes, tc_to_queue=queue_map, rewrite=rewrite)
        for name in sorted(draw(_NAMES), key=natural_key)
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
    ("qos trust cos", "no qos trust"),
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


_INTERFACE_PICKS, _QUEUE_PICKS, _DEVICE_PICKS = (
    st.lists(st.sampled_from(rows), max_size=most, unique=True)
    for rows, most in ((_INTERFACE_LINES, 6), (_QUEUE_LINES, 3), (_DEVICE_LINES, 6))
)
_WORDS = st.sampled_from(["tx-queue", "uc-tx-queue", "mc-tx-queue"])
_PORT_NAMES = st.lists(st.sampled_from(PORTS), max_size=4, unique=True)
_ASICS = st.sampled_from(["", "trident3", "jericho2"])
_NOT_IN_A_PROFILE = (
    "mtu",
    "l2 mtu",
    "switchport",
    "no switchport",
    "channel-group",
    "comment",
    "do not",
    "EOF",
    "speed",
)


def _some(draw: st.DrawFn, picks: st.SearchStrategy[list[tuple[str, ...]]]) -> list[str]:
    return [row[-1] if len(row) > 1 and draw(_MAYBE) else row[0] for row in draw(picks)]


def _block(draw: st.DrawFn, header: str) -> list[str]:
    rows = [header, *(f"   {line}" for line in _some(draw, _INTERFACE_PICKS))]
    for index in sorted(draw(_QUEUE_SETS)):
        rows += ["   !", f"   {draw(_WORDS)} {index}", *(f"      {line}" for line in _some(draw, _QUEUE_PICKS))]
    return [*rows, "!"]


@st.composite
def bases(draw: st.DrawFn) -> str:
    """Returns a strategy of running configurations with foreign lines in the way of ours."""
    rows = ["! Command: show running-config", "!", "banner motd", "interface Ethernet99", "EOF", "!"]
    if draw(_MAYBE):
        rows += [row for row in _block(draw, "qos profile OTHER") if not row.strip().startswith(_NOT_IN_A_PROFILE)]
    if draw(_MAYBE):
        rows += ["qos profile FABRICCTL-100G", "   qos trust cos", "   !", "   uc-tx-queue 2", "      no priority", "!"]
    if draw(_MAYBE):
        rows += _block(draw, "interface Port-Channel3")
    for name in draw(_PORT_NAMES):
        rows += _block(draw, f"interface {name}")
    return "\n".join([*rows, *_some(draw, _DEVICE_PICKS), "!", "end", ""])


@st.composite
def contexts(draw: st.DrawFn, base: str, *, adopt: bool = True) -> RenderContext:
    """Returns a strategy of contexts over one running configuration."""
    return RenderContext(asic=draw(_ASICS), running=EOS.tree(base), adopt=adopt)
