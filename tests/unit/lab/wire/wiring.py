"""A switch of plain numbers for the tests of the data plane."""

import random
from collections.abc import Sequence

from fabric.lab.wire import Platform, RoceFlow, SwitchCore, WireFaults
from fabric.qos import (
    UNKNOWN,
    Aqm,
    DeviceQos,
    Known,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    PriorityGroupQos,
    QueueQos,
    Scheduler,
    Trust,
    dscp_map,
)

LOSSLESS = 3
GIGABIT = 1_000_000_000


def mac(port: int) -> bytes:
    return bytes((2, 0, 0, 0, 1, port))


def flow(source: int, destination: int, *, dscp: int = 26, ecn: int = 2, queue_pair: int | None = None) -> RoceFlow:
    number = source if queue_pair is None else queue_pair
    return RoceFlow(mac(source), mac(destination), dscp=dscp, ecn=ecn, queue_pair=number, source_port=49152 + source)


def device(
    ports: int = 4,
    *,
    pfc: bool = True,
    headroom_bytes: int = 40_000,
    alpha_log2: int = 0,
    curve: Aqm | None = None,
    schedulers: dict[int, Scheduler] | None = None,
    watchdog: Known[PortWatchdog | None] = UNKNOWN,
    mtu_bytes: int = 9100,
    trust: Trust = Trust.DSCP,
    lossy_curve: Aqm | None = None,
) -> DeviceQos:
    chosen = schedulers or {}
    curves = {LOSSLESS: curve, 0: lossy_curve}
    groups = (
        PriorityGroupQos(0, lossless=False, alpha_log2=3),
        PriorityGroupQos(LOSSLESS, lossless=True, xoff_bytes=headroom_bytes, size_bytes=0, alpha_log2=alpha_log2),
    )
    return DeviceQos(
        device="leaf1",
        nos="sonic",
        ports=tuple(
            PortQos(
                name=f"p{number}",
                speed_mbps=1000,
                mtu_bytes=mtu_bytes,
                trust=trust,
                dscp_to_tc=dscp_map({26: LOSSLESS, 48: 6, 10: 1}, default=0),
                pfc=PortPfc(PfcMode.ON if pfc else PfcMode.OFF, frozenset({LOSSLESS})),
                priority_groups=groups,
                queues=tuple(QueueQos(queue, scheduler=chosen.get(queue), aqm=curves.get(queue)) for queue in range(8)),
                watchdog=watchdog,
            )
            for number in range(ports)
        ),
    )


def switch(
    qos: DeviceQos | None = None,
    *,
    shared_bytes: int = 400_000,
    seed: int = 1,
    pfc_frames: bool = False,
    faults: WireFaults | None = None,
    xon_offset_bytes: int = 5_000,
    marks_all_above_kmax: bool = True,
    known_ports: Sequence[int] = range(16),
) -> SwitchCore:
    core = SwitchCore(
        qos or device(),
        Platform(
            shared_bytes=shared_bytes, xon_offset_bytes=xon_offset_bytes, marks_all_above_kmax=marks_all_above_kmax
        ),
        draw=random.Random(seed),  # noqa: S311  (which packets are marked is no secret)
        pfc_frames=pfc_frames,
        faults=faults,
    )
    for number in known_ports:
        if f"p{number}" in core.ports:
            core.learn(mac(number), f"p{number}")
    return core
