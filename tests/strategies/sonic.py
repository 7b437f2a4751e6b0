"""Generated SONiC bases, and `DeviceQos` that SONiC can be told, for properties and for the YANG oracle."""

import json
import random
from dataclasses import dataclass

from hypothesis import strategies as st

from fabric.nos.base import RenderContext
from fabric.nos.sonic import SONIC
from fabric.qos import (
    UNKNOWN,
    Aqm,
    AqmKind,
    BufferModel,
    DcbxMode,
    DeviceQos,
    DscpRewrite,
    Known,
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
)
from fabric.qos.maps import TcMap
from tests.oracle.sonic_base import BasePort, base_text

__all__ = ("Case", "cases")

_SPEEDS = (10_000, 25_000, 50_000, 100_000, 200_000, 400_000)


@dataclass(frozen=True, slots=True)
class Case:
    """A base and what some of its ports shall do."""

    base: str
    qos: DeviceQos
    context: RenderContext


@st.composite
def cases(draw: st.DrawFn, *, for_yang: bool = False) -> Case:
    """Returns a base of 2 or 3 ports and a plan for at least one of them.

    Args:
        draw: hypothesis.
        for_yang: without comma-joined keys, which old devices have and the YANG refuses, and without rewriting, whose
            table (TC_TO_DSCP_MAP) the oracle does not read.
    """
    count = draw(st.integers(2, 3))
    ports = [
        BasePort(f"Ethernet{index * 4}", draw(st.sampled_from(_SPEEDS)), draw(st.sampled_from((5, 40, 300))))
        for index in range(count)
    ]
    dynamic = draw(st.booleans())
    base = base_text(
        ports,
        hwsku=draw(st.sampled_from(("ACS-MSN4700", "DellEMC-S5232f-C32"))),
        dynamic=dynamic,
        stock_qos=draw(st.booleans()),
        watchdog=draw(st.booleans()),
        cables_with_profile=draw(st.sampled_from(((5, 40, 300), (40,), ()))),
    )
    if not for_yang and draw(st.booleans()):
        base = _join(base, ports)
    chosen = ports[: draw(st.integers(1, min(count, 2)))]
    polling = draw(st.integers(100, 200))  # at most the watchdog times of the base's other ports
    qos = DeviceQos(
        device="leaf1",
        nos="sonic",
        ports=tuple(draw(_ports(port, polling, rewrite=not for_yang)) for port in chosen),
        global_dscp_to_tc=draw(st.one_of(st.none(), _DSCP_MAPS)),
        watchdog_polling_ms=polling,
        pfc_disabled_globally=False,
        buffer_model=BufferModel.DYNAMIC if dynamic else BufferModel.TRADITIONAL,
    )
    context = RenderContext(
        version=draw(st.sampled_from(("", "SONiC.20240531.08", "SONiC.20260615.01"))),
        running=SONIC.tree(base),
        adopt=draw(st.booleans()),
        install=draw(st.booleans()),
    )
    return Case(base, qos, context)


@st.composite
def _ports(draw: st.DrawFn, base: BasePort, polling_ms: int, *, rewrite: bool) -> PortQos:
    priorities = draw(st.frozensets(st.integers(0, 7), max_size=2))
    on = bool(priorities)
    watched = frozenset(draw(st.sets(st.sampled_from(sorted(priorities)), min_size=1))) if on else frozenset[int]()
    trust = draw(st.sampled_from((Trust.DSCP, Trust.PCP, Trust.BOTH)))
    return PortQos(
        name=base.name,
        speed_mbps=base.speed_mbps,
        mtu_bytes=draw(st.integers(1500, 9216)),
        cable_m=draw(st.one_of(st.none(), st.sampled_from((1, 5, 40, 300)))),
        trust=trust,
        dscp_to_tc=draw(_DSCP_MAPS) if trust is not Trust.PCP else None,
        pcp_to_tc=draw(_TC_MAPS) if trust is not Trust.DSCP else None,
        tc_to_queue=draw(_TC_MAPS),
        tc_to_pg=draw(_TC_MAPS),
        pfc_to_queue=draw(_TC_MAPS),
        pfc_to_pg=draw(st.one_of(st.none(), _TC_MAPS)),
        rewrite=draw(_REWRITES) if rewrite else None,
        pfc=PortPfc(
            mode=PfcMode.ON if on else PfcMode.OFF,
            priorities=priorities,
            rx=on,
            tx=on,
            asymmetric=draw(st.booleans()),
            send_tlv=False,
        ),
        link_pause=LinkPause(rx=False, tx=False),
        queues=draw(_QUEUES),
        priority_groups=tuple(draw(_groups(index, lossless=index in priorities)) for index in sorted({0, *priorities})),
        watchdog=draw(_watchdogs(watched, polling_ms)) if draw(st.booleans()) and watched else None,
        dcbx=DcbxMode.OFF,
        lldp=True,
    )


def _map_of(seed: int, count: int, *, full: bool = False, top: int = 7) -> TcMap:
    # from one drawn number: drawing 64 elements one by one takes longer than all that is tested
    source = random.Random(seed)  # noqa: S311  (test data, no secret)
    default = source.randint(0, top)
    if full:
        exceptions = {source.randrange(count): source.randint(0, top) for _ in range(source.randint(0, 6))}
        return tuple(exceptions.get(index, default) for index in range(count))
    named = {source.randrange(count) for _ in range(source.randint(1, count))}
    return tuple(source.randint(0, top) if index in named else None for index in range(count))


_SEEDS = st.integers(0, 2**16)
_DSCP_MAPS = _SEEDS.map(lambda seed: _map_of(seed, 64, full=True))
_TC_MAPS = _SEEDS.map(lambda seed: _map_of(seed, 8))
_REWRITES = st.one_of(st.none(), _SEEDS.map(lambda seed: DscpRewrite(_map_of(seed, 8, top=63))))
_SCHEDULERS = st.one_of(
    st.none(),
    st.builds(Scheduler, kind=st.just(SchedulerKind.STRICT), shape_kbps=st.sampled_from((None, 1000, 8_000_000))),
    st.builds(
        Scheduler,
        kind=st.sampled_from((SchedulerKind.DWRR, SchedulerKind.WRR)),
        weight=st.one_of(st.none(), st.integers(1, 100)),
        percent=st.booleans(),
        guaranteed_kbps=st.sampled_from((None, 1000)),
        shape_kbps=st.sampled_from((None, 2000)),
    ),
)
_CURVES = st.one_of(
    st.none(),
    st.builds(
        lambda kind, kmin, ramp, pmax: Aqm(kind, Threshold(kmin), Threshold(kmin + ramp), pmax, weight=0),
        st.sampled_from((AqmKind.MARK, AqmKind.DROP)),
        st.integers(0, 20_000_000),
        st.integers(0, 50_000_000),
        st.integers(0, 100),
    ),
)
_LOSSLESS: st.SearchStrategy[Known[bool]] = st.sampled_from((UNKNOWN, True, False))
_QUEUES = st.dictionaries(st.integers(0, 7), st.tuples(_SCHEDULERS, _CURVES, _LOSSLESS), max_size=3).map(
    lambda rows: tuple(QueueQos(index, *rows[index]) for index in sorted(rows))
)


@st.composite
def _groups(draw: st.DrawFn, index: int, *, lossless: bool) -> PriorityGroupQos:
    if not lossless:
        return PriorityGroupQos(index=index, lossless=False)
    if draw(st.booleans()):
        return PriorityGroupQos(index=index, lossless=True, derived_by_nos=True)
    return PriorityGroupQos(
        index=index,
        lossless=True,
        xoff_bytes=draw(st.integers(1, 500_000)),
        xon_bytes=19_456,
        xon_offset_bytes=draw(st.sampled_from((None, 2288))),
        size_bytes=draw(st.sampled_from((1248, 19_456))),
        alpha_log2=draw(st.integers(-8, 7)),
        static_threshold_bytes=None,
    )


def _watchdogs(priorities: frozenset[int], polling_ms: int) -> st.SearchStrategy[PortWatchdog]:
    return st.builds(
        PortWatchdog,
        priorities=st.just(priorities),
        detection_ms=st.integers(polling_ms, 5000),
        restoration_ms=st.integers(polling_ms, 60_000),
        polling_ms=st.just(polling_ms),
        action=st.sampled_from(WatchdogAction),
    )


def _join(base: str, ports: list[BasePort]) -> str:
    """Returns the base with the first two ports' PORT_QOS_MAP and QUEUE rows under comma-joined keys."""
    first, second = (port.name for port in ports[:2])
    tree = SONIC.tree(base)
    put = {}
    drop = []
    for path, value in tree.items():
        port, bar, number = path[1].partition("|")
        if path[0] in {"PORT_QOS_MAP", "QUEUE"} and port in {first, second}:
            drop.append(path)
            if port == first:
                put[path[0], f"{first},{second}{bar}{number}", *path[2:]] = value
    return json.dumps(tree.with_changes(put, drop).to_nested(), indent=4)
