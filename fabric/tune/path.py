"""What is known of one path before anything is tuned: links, target, host, switch. Data alone."""

from dataclasses import dataclass

from fabric.errors import IntentError, Problem
from fabric.tune.essence import Offer

__all__ = ("Buffer", "PathModel")

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Buffer:
    """The shared buffer of the switch at the tightest egress.

    Attributes:
        total_bytes: B. headroom_sum_bytes: of all ports' lossless groups. reserved_sum_bytes: of all groups.
        reserved_bytes: r, of one source's group.
        threshold_shift: s; the threshold is 2^-s of what is free, so alpha 1/8 is 3.
        kmin_bytes: where marking begins, None where nothing is marked.
        pfc: whether senders of the class are paused; without it what finds no room is lost.
    """

    total_bytes: int
    headroom_sum_bytes: int = 0
    reserved_sum_bytes: int = 0
    reserved_bytes: int = 0
    threshold_shift: int = 3
    kmin_bytes: int | None = None
    pfc: bool = True


@dataclass(frozen=True, slots=True)
class PathModel:
    """One receiver's path to its targets.

    Attributes:
        link_bytes_per_s: C, of the tightest egress.
        efficiency: (MTU, payload share of the wire), ascending; `mtu_bytes` picks one.
        base_rtt_ns: t0, without load. service_p50_ns, service_p99_ns: t_s of one command on an idle target.
        device_bytes_per_s: D, what all targets give together, None where unknown.
        command_cpu_ns: c_io, of one core for one command; 0 where unknown. cores: K.
        fan_in: f, targets that send to one receiver at a time. receivers: hosts that read at a time.
        chunk_bytes: of one read. requests: that one receiver has open at a time, None where unknown.
        sqsize: commands that one queue may hold.
        queues_max: what the target or the NIC's vectors grant, None where cores alone bound it.
        buffer: None where no switch is known; the fan-in is then not bounded.
    """

    link_bytes_per_s: float
    base_rtt_ns: int
    service_p50_ns: int
    service_p99_ns: int
    efficiency: tuple[tuple[int, float], ...] = ((1024, 0.93), (4096, 0.98))
    mtu_bytes: int = 4096
    device_bytes_per_s: float | None = None
    command_cpu_ns: int = 0
    cores: int = 8
    fan_in: int = 1
    receivers: int = 1
    chunk_bytes: int = MIB
    requests: int | None = None
    sqsize: int = 127
    queues_max: int | None = None
    buffer: Buffer | None = None

    def __post_init__(self) -> None:
        found = [
            Problem("has to be above 0", field=name, found=f"{getattr(self, name)}")
            for name in ("link_bytes_per_s", "base_rtt_ns", "service_p50_ns", "cores", "fan_in", "chunk_bytes")
            if not getattr(self, name) > 0
        ]
        if not self.efficiency:
            found.append(Problem("has to name an MTU", field="efficiency"))
        if found:
            raise IntentError(found)

    @property
    def wire_efficiency(self) -> float:
        """Returns eta: of the highest MTU listed that is not above `mtu_bytes`, else of the lowest."""
        fitting = [share for mtu, share in self.efficiency if mtu <= self.mtu_bytes]
        return fitting[-1] if fitting else self.efficiency[0][1]

    @property
    def payload_bytes_per_s(self) -> float:
        """Returns the most that one receiver can get: min(C x eta, D)."""
        link = self.link_bytes_per_s * self.wire_efficiency
        return link if self.device_bytes_per_s is None else min(link, self.device_bytes_per_s)

    @property
    def offer(self) -> Offer:
        """Returns what the load asks for at a time."""
        return Offer(self.fan_in, self.requests, self.chunk_bytes)

    @property
    def bdp_bytes(self) -> float:
        """Returns what the wire itself holds: C x t0."""
        return self.link_bytes_per_s * self.base_rtt_ns / 1e9
