"""Hosts and targets: an RDMA device with its NIC, and what its driver and `ethtool -S` would show."""

from collections import Counter
from dataclasses import dataclass, field

from fabric.lab.wire import NicModel, NicPlan
from fabric.state import Counter as Shown
from fabric.state import CounterSet, Source, SourceKind
from tests.verify_plant.frames import dscp_of
from tests.verify_plant.queuepair import QueuePair

RXE = {
    "out_of_seq_request": ("gap",),
    "rcvd_seq_err": ("nak",),
    "completer_retry_err": ("nak", "timeout", "read-gap"),
    "duplicate_request": ("duplicate",),
    "retry_exceeded_err": ("dead",),
    "rcvd_rnr_err": (),
    "send_rnr_err": (),
    "send_err": (),
    "link_downed": ("link-down",),
    "sent_pkts": ("sent",),
    "rcvd_pkts": ("received",),
}
MLX5 = {
    "out_of_sequence": ("gap",),
    "packet_seq_err": ("nak",),
    "local_ack_timeout_err": ("timeout",),
    "implied_nak_seq_err": ("read-gap",),
    "duplicate_request": ("duplicate",),
    "req_cqe_error": ("dead",),
    "rnr_nak_retry_err": (),
    "out_of_buffer": (),
    "np_ecn_marked_roce_packets": ("ce",),
    "np_cnp_sent": ("cnp-sent",),
    "rp_cnp_handled": ("cnp-handled",),
    "rp_cnp_ignored": (),
}
RTT_CACHE_NS = 10_000_000  # hw_counters are cached for 10 ms unless told
_PORTS = {"rxe": "rxe0/1", "mlx5": "mlx5_0/1"}


@dataclass(slots=True)
class Machine:
    """One host or target.

    Attributes:
        events: of the device; those of its queue pairs are theirs.
        priority: (`rx` or `tx`, priority) → packets on the wire.
    """

    name: str
    number: int
    kind: SourceKind
    family: str
    rate_bps: int
    switch: str = ""
    port: str = ""
    queue_pairs: dict[int, QueuePair] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    priority: Counter[tuple[str, int]] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    paused_since_ns: int | None = None
    epoch: str = "boot-1"
    up: bool = True
    deaf: bool = False  # PFC is off at its NIC
    slow_until_ns: int = 0  # until then its software takes nothing up
    forgotten: Counter[str] = field(default_factory=Counter)
    nic: NicModel = field(init=False)
    offset: int = 1_000

    def __post_init__(self) -> None:
        self.nic = NicModel(NicPlan(rate_bps=self.rate_bps))

    @property
    def rdma(self) -> str:
        return _PORTS[self.family]

    def count_wire(self, way: str, frame: bytes) -> None:
        self.priority[way, dscp_of(frame) >> 3] += 1
        self.frames[way] += 1

    def paused(self, *, on: bool, now_ns: int) -> None:
        if on and self.paused_since_ns is None:
            self.paused_since_ns = now_ns
            self.events["pause-frames"] += 1
        elif not on and self.paused_since_ns is not None:
            self.events["paused-us"] += (now_ns - self.paused_since_ns) // 1000
            self.paused_since_ns = None

    def reset_counters(self, epoch: str) -> None:
        """The driver's counters begin anew; epoch: whether it says so."""
        self.forgotten = self.totals()
        self.epoch = epoch
        self.offset = 0

    def totals(self) -> Counter[str]:
        total = Counter(self.events)
        for one in self.queue_pairs.values():
            total.update(one.events)
        return total

    def sets(self, at_ns: int) -> tuple[CounterSet, ...]:
        """Returns what `rdma statistic` and `ethtool -S` show."""
        names = RXE if self.family == "rxe" else MLX5
        total = self.totals()
        total.subtract(self.forgotten)
        bits = 32 if self.family == "mlx5" else 64
        shown = tuple(Shown(name, self.offset + sum(total[one] for one in of), bits) for name, of in names.items())
        source = Source(self.name, self.rdma, self.kind, self.family)
        rdma = CounterSet(source, self.epoch, at_ns, 1000, RTT_CACHE_NS, shown)
        values = self._soft_values() if self.family == "rxe" else self._hard_values(total)
        source = Source(self.name, "data0", self.kind, "netdev")
        shown = tuple(Shown(name, self.offset + value) for name, value in values.items())
        return (rdma, CounterSet(source, self.epoch, at_ns, 1000, 0, shown))

    def _soft_values(self) -> dict[str, int]:
        return {f"statistics.{way}_packets": self.frames[way] for way in ("rx", "tx")}

    def _hard_values(self, total: Counter[str]) -> dict[str, int]:
        values = {f"{way}_packets_phy": self.frames[way] for way in ("rx", "tx")}
        for way in ("rx", "tx"):
            values |= {f"{way}_prio{number}_packets": self.priority[way, number] for number in range(8)}
        values |= {f"rx_prio{number}_discards": 0 for number in range(8)}
        values |= {
            "rx_crc_errors_phy": 0,
            "link_down_events_phy": total["link-down"],
            "tx_pause_storm_error_events": 0,
            "rx_vport_rdma_unicast_packets": total["received"],
            "tx_vport_rdma_unicast_packets": total["sent"],
        }
        if not self.deaf:  # these exist only while PFC is on
            values |= {"rx_prio3_pause": total["pause-frames"], "rx_prio3_pause_duration": total["paused-us"]}
            values["tx_prio3_pause"] = 0
        return values
