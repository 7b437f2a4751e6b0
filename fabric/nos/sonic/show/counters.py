"""The outputs of one reading of all counter commands → `PortCounters`. A command that is missing leaves UNKNOWN."""

from collections.abc import Mapping

from fabric.nos.sonic.show import interfaces, pfc, priority_group, queue, watchdog
from fabric.qos import PRIORITY_COUNT, UNKNOWN, Known
from fabric.state import PortCounters, QueueCounters
from fabric.units import natural_key

__all__ = ("counters",)


def counters(outputs: Mapping[str, str]) -> tuple[PortCounters, ...]:
    """Returns one entry a port that any output names, natural order.

    Args:
        outputs: by the names of `SESSION.fetch_counters`; any may be absent.
    """
    frames = interfaces.totals(outputs.get("interfaces", ""))
    received, sent = pfc.counters(outputs.get("pfc", ""))
    dropped = priority_group.drops(outputs.get("pg_drop", ""))
    through = queue.counters(outputs.get("queue", ""))
    early = queue.wred(outputs.get("wred", ""))
    storms = watchdog.storms(outputs.get("watchdog", ""))
    ports = sorted({*frames, *received, *sent, *dropped, *through, *early, *storms}, key=natural_key)
    return tuple(
        PortCounters(
            port=port,
            pfc_rx_frames=received.get(port, UNKNOWN),
            pfc_tx_frames=sent.get(port, UNKNOWN),
            pfc_rx_total=_total(received.get(port)),
            pfc_tx_total=_total(sent.get(port)),
            pg_dropped_packets=dropped.get(port, UNKNOWN),
            queues=_queues(through.get(port, {}), early.get(port, {})),
            watchdog=tuple(storms[port][index].total for index in sorted(storms.get(port, {}))),
            rx_packets=one.rx_packets,
            tx_packets=one.tx_packets,
            rx_errors=one.rx_errors,
            tx_errors=one.tx_errors,
            rx_discards=one.rx_discards,
            tx_discards=one.tx_discards,
        )
        for port in ports
        for one in [frames.get(port, interfaces.PortTotals())]
    )


def _total(frames: tuple[Known[int], ...] | None) -> Known[int]:
    if frames is None or len(frames) < PRIORITY_COUNT:
        return UNKNOWN
    total = 0
    for one in frames:
        if one is UNKNOWN:
            return UNKNOWN
        total += one
    return total


def _queues(through: Mapping[str, queue.QueueCount], early: Mapping[str, queue.WredCount]) -> tuple[QueueCounters, ...]:
    out = []
    for label in sorted({*through, *early}, key=natural_key):
        passed, wred = through.get(label), early.get(label)
        out.append(
            QueueCounters(
                queue=label,
                packets=passed.packets if passed else UNKNOWN,
                bytes=passed.bytes if passed else UNKNOWN,
                dropped_packets=passed.dropped_packets if passed else UNKNOWN,
                dropped_bytes=passed.dropped_bytes if passed else UNKNOWN,
                wred_dropped_packets=wred.dropped_packets if wred else UNKNOWN,
                marked_packets=wred.marked_packets if wred else UNKNOWN,
            )
        )
    return tuple(out)
