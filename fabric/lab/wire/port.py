"""One port of the switch while it runs: its queues, who pauses it, its watchdogs, and what it has counted."""

from typing import Final

from fabric.lab.wire.buffer import Charge
from fabric.lab.wire.frame import Headers
from fabric.lab.wire.platform import PortPlan
from fabric.lab.wire.transmitter import QUEUES, Transmitter
from fabric.lab.wire.watchdog import Watchdog
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT
from fabric.state import PortCounters, QueueCounters, WatchdogCounters

__all__ = ("FOREVER_NS", "Packet", "PortState")

FOREVER_NS: Final = 1 << 62


class Packet:
    """One copy of a frame in a queue."""

    __slots__ = ("charge", "frame", "headers", "size_bytes", "traffic_class")

    def __init__(self, frame: bytes, headers: Headers, traffic_class: int, charge: Charge) -> None:
        self.frame = frame
        self.headers = headers
        self.traffic_class = traffic_class
        self.charge = charge
        self.size_bytes = len(frame)


class PortState:
    """Queues, pauses and counters of one port."""

    def __init__(self, index: int, plan: PortPlan) -> None:
        self.index = index
        self.plan = plan
        self.enabled = True
        self.transmitter: Transmitter[Packet] = Transmitter(plan.queues, plan.rate_bps)
        self.paused_until_ns = [0] * PRIORITY_COUNT
        self.storm_until_ns = [0] * PRIORITY_COUNT
        self.watchdogs = {priority: Watchdog(one) for priority, one in plan.watchdogs}
        self.dog_of_queue = {dog.plan.queue: dog for dog in self.watchdogs.values()}
        self.refresh_ns = [0] * PRIORITY_COUNT
        self.control: list[bytes] = []
        self.wake_ns: int | None = None
        self.pfc_rx = [0] * PRIORITY_COUNT
        self.pfc_tx = [0] * PRIORITY_COUNT
        self.group_dropped = [0] * PRIORITY_COUNT
        self.sent_packets = [0] * QUEUES
        self.sent_bytes = [0] * QUEUES
        self.dropped_packets = [0] * QUEUES
        self.dropped_bytes = [0] * QUEUES
        self.early_dropped = [0] * QUEUES
        self.early_dropped_bytes = [0] * QUEUES
        self.marked = [0] * QUEUES
        self.marked_bytes = [0] * QUEUES
        self.dscp_rx = [0] * DSCP_COUNT
        self.rx_packets = self.tx_packets = 0
        self.rx_discards = self.tx_discards = 0

    def configure(self, plan: PortPlan) -> None:
        """Replaces the plan; queues, pauses and counters stay, and so do watchdogs whose plan is the same."""
        self.plan = plan
        self.transmitter.configure(plan.queues, plan.rate_bps)
        kept = self.watchdogs
        self.watchdogs = {
            priority: kept[priority] if priority in kept and kept[priority].plan == one else Watchdog(one)
            for priority, one in plan.watchdogs
        }
        self.dog_of_queue = {dog.plan.queue: dog for dog in self.watchdogs.values()}

    def is_paused(self, priority: int, now_ns: int) -> bool:
        """Returns whether the peer, or a storm, holds that priority."""
        obeyed = priority in self.plan.pfc_rx and self.paused_until_ns[priority] > now_ns
        return obeyed or self.storm_until_ns[priority] > now_ns

    def hold(self, now_ns: int) -> None:
        """Makes the queues held or free as pauses and watchdogs have it now, and tells the watchdogs."""
        held = [False] * QUEUES
        for priority, queue in enumerate(self.plan.pfc_to_queue):
            if self.is_paused(priority, now_ns):
                held[queue] = True
        for queue, dog in self.dog_of_queue.items():
            dog.observe(now_ns, paused=held[queue], waiting=bool(self.transmitter.queues[queue]))
            held[queue] = held[queue] and not dog.forwards
        self.transmitter.held[:] = held

    def count_sent(self, queue: int, size_bytes: int) -> None:
        """Counts a frame that left."""
        self.sent_packets[queue] += 1
        self.sent_bytes[queue] += size_bytes
        dog = self.dog_of_queue.get(queue)
        if dog is not None and dog.forwards:
            dog.tx_ok += 1

    def count_dropped(self, queue: int, size_bytes: int) -> None:
        """Counts a tail drop."""
        self.dropped_packets[queue] += 1
        self.dropped_bytes[queue] += size_bytes

    def count_early(self, queue: int, size_bytes: int) -> None:
        """Counts an early drop."""
        self.early_dropped[queue] += 1
        self.early_dropped_bytes[queue] += size_bytes

    def count_mark(self, queue: int, size_bytes: int) -> None:
        """Counts a frame that left with CE set here."""
        self.marked[queue] += 1
        self.marked_bytes[queue] += size_bytes

    def storms(self) -> tuple[WatchdogCounters, ...]:
        """Returns what each watchdog counted since its last storm began."""
        return tuple(dog.last_storm() for _, dog in sorted(self.watchdogs.items()))

    def counters(self) -> PortCounters:
        """Returns the counters as of now; queues are named by their numbers."""
        return PortCounters(
            port=self.plan.name,
            pfc_rx_frames=tuple(self.pfc_rx),
            pfc_tx_frames=tuple(self.pfc_tx),
            pfc_rx_total=sum(self.pfc_rx),
            pfc_tx_total=sum(self.pfc_tx),
            pg_dropped_packets=tuple(self.group_dropped),
            queues=tuple(
                QueueCounters(
                    queue=str(queue),
                    packets=self.sent_packets[queue],
                    bytes=self.sent_bytes[queue],
                    dropped_packets=self.dropped_packets[queue],
                    dropped_bytes=self.dropped_bytes[queue],
                    wred_dropped_packets=self.early_dropped[queue],
                    marked_packets=self.marked[queue],
                )
                for queue in range(QUEUES)
            ),
            watchdog=tuple(dog.counters() for _, dog in sorted(self.watchdogs.items())),
            rx_packets=self.rx_packets,
            tx_packets=self.tx_packets,
            rx_errors=0,  # no fault of ours leaves a checksum wrong
            tx_errors=0,
            rx_discards=self.rx_discards,
            tx_discards=self.tx_discards,
        )
