"""Plants drawn from a seed: four families that the tuner's model does not know. Data alone, no event.

| family | what its targets or host do |
|---|---|
| cap | each connection carries so many bytes a second, and a device that is asked for too much at once slows down |
| bimodal | most commands are fast, some are slow; a connection returns them in order, so that a slow one holds the rest |
| neighbour | somebody else sends in bursts to the same receiver, in the same class |
| two-optima | a few queues are cheap, more cross the memory nodes and cost, many use both nodes: two hills in `queues` |
"""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fabric.qos import (
    Aqm,
    AqmKind,
    DeviceQos,
    PfcMode,
    PortPfc,
    PortQos,
    PriorityGroupQos,
    QueueQos,
    Threshold,
    Trust,
    dscp_map,
)
from fabric.tune import Buffer, Limits, PathModel, Space

KIB, MIB, GB = 1 << 10, 1 << 20, 1_000_000_000
US, MS = 1_000, 1_000_000
PRIORITY: Final = 3
DSCP: Final = 26
# Ethernet, IPv4, UDP, BTH, invariant CRC; the switch's transmitter adds 24 B of preamble, gap and FCS
HEADERS: Final = 14 + 20 + 8 + 12 + 4
PACKET_BYTES: Final = 16 * KIB  # one event stands for four packets of 4 KiB, since an event costs Python 20 us


class Family(StrEnum):
    CAP = "cap"
    BIMODAL = "bimodal"
    NEIGHBOUR = "neighbour"
    TWO_OPTIMA = "two-optima"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Somebody else's bursts: rate while on; both times are means of exponential ones."""

    rate_share: float
    on_ns: int
    off_ns: int


@dataclass(frozen=True, slots=True)
class Plant:
    """One world.

    Attributes:
        link_bps: of every port. rtt_ns: without load, command out and first byte back.
        readers: per receiver, each with one chunk at a time. chunk_bytes: striped over all targets.
        fast_ns, slow_ns, slow_share: service of a command, besides its bytes. in_order: per connection.
        channels: commands that a target works on at a time. crowd: slowdown per command beyond them.
        device_bytes_per_s: what the channels of one target share, in order of completion.
        connection_bytes_per_s: cap of one connection, None for none.
        command_ns: of host CPU per command, times a factor of the number of queues: (from that many on, factor).
        shared_bytes: of the switch's buffer. pfc: whether the class is paused rather than dropped.
    """

    seed: int
    family: Family
    targets: int
    receivers: int
    link_bps: int
    rtt_ns: int
    readers: int
    chunk_bytes: int
    fast_ns: int
    slow_ns: int
    slow_share: float
    in_order: bool
    channels: int
    crowd: float
    device_bytes_per_s: float
    connection_bytes_per_s: int | None
    command_ns: int
    queue_factors: tuple[tuple[int, float], ...]
    neighbour: Neighbour | None
    shared_bytes: int
    headroom_bytes: int
    kmin_bytes: int
    kmax_bytes: int
    pfc: bool
    cores: int
    limits: Limits

    def command_cost_ns(self, queues: int) -> float:
        """Returns host CPU time of one command."""
        return self.command_ns * next(factor for least, factor in reversed(self.queue_factors) if queues >= least)


SPACE: Final = Space(
    queues=(1, 2, 3, 4, 6, 8, 12, 16),
    depth=(1, 4, 16, 64),
    transfer_bytes=(32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB),
    dealing=("least-bytes", "round-robin"),
    target_bytes=(256 * KIB, 1 * MIB, 2 * MIB, 8 * MIB),
    receiver_bytes=(512 * KIB, 1 * MIB, 2 * MIB, 4 * MIB, 8 * MIB),
)
MDTS: Final = 256 * KIB


def draw(seed: int) -> Plant:
    """Returns one plant; families take turns, all else comes from the seed."""
    dice = random.Random(seed)  # noqa: S311  (no secret)
    family = tuple(Family)[seed % len(Family)]
    link = dice.choice((25, 40)) * GB
    targets = dice.choice((1, 2, 4, 8))
    rate = link / 8
    cores = dice.choice((8, 12, 16))
    fast = dice.randrange(40, 120) * US
    receivers = dice.choice((1, 1, 2)) if targets > 1 else 1
    chunks = dice.choice((4, 8, 16))  # 8 MiB or less a round, so that the shortest evaluation sees two rounds
    device = rate / targets * dice.uniform(0.8, 2.0)
    crowd = dice.uniform(0.005, 0.03)
    cap: int | None = None
    slow_share, slow, in_order, neighbour = 0.02, 3 * fast, False, None
    factors: tuple[tuple[int, float], ...] = tuple((n, 1 + dice.uniform(0.02, 0.06) * n) for n in (0, 1, 2, 4, 8, 16))
    match family:
        case Family.CAP:
            cap = int(rate / targets / dice.uniform(2.5, 9))
        case Family.BIMODAL:
            slow_share, slow, in_order = dice.uniform(0.03, 0.12), dice.randrange(600, 1500) * US, True
        case Family.NEIGHBOUR:
            neighbour = Neighbour(dice.uniform(0.2, 0.5), dice.randrange(150, 400) * US, dice.randrange(150, 400) * US)
            cap = int(rate / targets / dice.uniform(1.5, 4))
        case Family.TWO_OPTIMA:
            cross, both = dice.choice((3, 4)), dice.choice((8, 12))
            factors = ((0, 1.0), (cross, dice.uniform(2.0, 3.5)), (both, dice.uniform(0.7, 1.5)))
            cap = int(rate / targets / dice.uniform(2.5, 8))
            receivers = dice.choice((1, 1, 2)) if targets > 1 else 1
    chunks = dice.choice((4, 8, 16))  # 8 MiB or less a round, so that the shortest evaluation sees two rounds
    device = rate / targets * 2
    return Plant(
        seed=seed,
        family=family,
        targets=targets,
        receivers=receivers,
        link_bps=link,
        rtt_ns=dice.randrange(8, 25) * US,
        readers=chunks // receivers,
        chunk_bytes=8 * MIB // max(chunks, 8),
        fast_ns=fast,
        slow_ns=slow,
        slow_share=slow_share,
        in_order=in_order,
        channels=dice.choice((8, 16, 32)),
        crowd=crowd,
        device_bytes_per_s=device,
        connection_bytes_per_s=cap,
        command_ns=int(dice.uniform(0.1, 1.0) * 64 * KIB / rate * 1e9),
        queue_factors=factors,
        neighbour=neighbour,
        shared_bytes=dice.choice((512, 1024, 2048)) * KIB,
        headroom_bytes=8 * PACKET_BYTES,
        kmin_bytes=dice.choice((128, 256, 512)) * KIB,
        kmax_bytes=MIB,
        pfc=dice.random() < 0.6,
        cores=cores,
        limits=Limits(pause_share_max=0.01, marks_share_max=0.2),
    )


def switch_qos(plant: Plant, ports: tuple[str, ...]) -> DeviceQos:
    """Returns the switch's configuration: one class for all data, paused or not."""
    group = PriorityGroupQos(
        PRIORITY, lossless=plant.pfc, xoff_bytes=plant.headroom_bytes if plant.pfc else 0, size_bytes=0, alpha_log2=0
    )
    curve = Aqm(AqmKind.MARK, Threshold(plant.kmin_bytes), Threshold(plant.kmax_bytes), 20)
    port = {
        "speed_mbps": plant.link_bps // 1_000_000,
        "trust": Trust.DSCP,
        "dscp_to_tc": dscp_map({DSCP: PRIORITY}, default=0),
        "pfc": PortPfc(PfcMode.ON if plant.pfc else PfcMode.OFF, frozenset({PRIORITY})),
        "priority_groups": (group,),
        "queues": tuple(QueueQos(queue, aqm=curve if queue == PRIORITY else None) for queue in range(8)),
    }
    return DeviceQos(device="leaf1", nos="sonic", ports=tuple(PortQos(name=name, **port) for name in ports))  # type: ignore[arg-type]


def path_model(plant: Plant, service_p50_ns: int, service_p99_ns: int) -> PathModel:
    """Returns what an operator knows of the plant: its links, its switch, and what an idle target answers in."""
    return PathModel(
        link_bytes_per_s=plant.link_bps / 8,
        efficiency=((4096, PACKET_BYTES / (PACKET_BYTES + HEADERS + 24)),),
        mtu_bytes=4096,
        base_rtt_ns=plant.rtt_ns,
        service_p50_ns=service_p50_ns,
        service_p99_ns=service_p99_ns,
        cores=plant.cores,
        command_cpu_ns=plant.command_ns,
        fan_in=plant.targets,
        chunk_bytes=plant.chunk_bytes,
        requests=plant.readers,
        receivers=plant.receivers,
        buffer=Buffer(
            total_bytes=plant.shared_bytes,
            headroom_sum_bytes=0,
            reserved_sum_bytes=0,
            threshold_shift=0,
            kmin_bytes=plant.kmin_bytes,
            pfc=plant.pfc,
        ),
    )
