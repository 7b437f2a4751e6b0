"""Counters as a device showed them. UNKNOWN where it printed N/A, `-`, or nothing: never zero."""

from dataclasses import dataclass

from fabric.qos import UNKNOWN, Known

__all__ = ("PortCounters", "QueueCounters", "WatchdogCounters")


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """One egress queue.

    Attributes:
        queue: number, or label where the NOS names multicast or VOQs apart: `UC3`, `MC4`, `VOQ3`.
        dropped_packets: tail drops. wred_dropped_packets: early drops. marked_packets: CE set.
    """

    queue: str
    packets: Known[int] = UNKNOWN
    bytes: Known[int] = UNKNOWN
    dropped_packets: Known[int] = UNKNOWN
    dropped_bytes: Known[int] = UNKNOWN
    wred_dropped_packets: Known[int] = UNKNOWN
    marked_packets: Known[int] = UNKNOWN


@dataclass(frozen=True, slots=True)
class WatchdogCounters:
    """The PFC watchdog on one queue; packets are those sent or lost while it was tripped."""

    queue: int
    status: str
    storms_detected: Known[int] = UNKNOWN
    storms_restored: Known[int] = UNKNOWN
    tx_ok: Known[int] = UNKNOWN
    tx_dropped: Known[int] = UNKNOWN
    rx_ok: Known[int] = UNKNOWN
    rx_dropped: Known[int] = UNKNOWN


@dataclass(frozen=True, slots=True)
class PortCounters:
    """One port; the tuples of eight are by PFC priority.

    Attributes:
        pfc_rx_frames: pause frames received per priority; UNKNOWN where only a total is shown.
        pfc_rx_total: sum where the NOS shows only that.
        pg_dropped_packets: ingress drops per priority group: headroom overflow.
        rx_packets, tx_packets: good frames of every class. rx_errors: frames that came damaged.
        rx_discards, tx_discards: good frames of every class that the switch dropped at ingress and at egress.
    """

    port: str
    pfc_rx_frames: Known[tuple[Known[int], ...]] = UNKNOWN
    pfc_tx_frames: Known[tuple[Known[int], ...]] = UNKNOWN
    pfc_rx_total: Known[int] = UNKNOWN
    pfc_tx_total: Known[int] = UNKNOWN
    pg_dropped_packets: Known[tuple[Known[int], ...]] = UNKNOWN
    queues: tuple[QueueCounters, ...] = ()
    watchdog: tuple[WatchdogCounters, ...] = ()
    rx_packets: Known[int] = UNKNOWN
    tx_packets: Known[int] = UNKNOWN
    rx_errors: Known[int] = UNKNOWN
    tx_errors: Known[int] = UNKNOWN
    rx_discards: Known[int] = UNKNOWN
    tx_discards: Known[int] = UNKNOWN
