"""The counters that the emulated SONiC shows: those of its data plane, zeros for ports that have no cable.

Layouts are those of the samples named. Where the data plane did not answer, N/A stands, as for what an ASIC does not
count.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from fabric.lab.device import PortReading
from fabric.lab.sonic.tables import grid
from fabric.qos import PRIORITY_COUNT, UNKNOWN, Known
from fabric.state import PortCounters, QueueCounters, WatchdogCounters
from fabric.units import natural_key

if TYPE_CHECKING:
    from fabric.lab.sonic.device import SonicDevice

__all__ = ("interfaces", "pfc", "pg_drops", "port_names", "queues", "watchdog", "wred")

_NONE: Final = "N/A"
_QUEUES: Final = range(8)
_ZEROS: Final = (0,) * PRIORITY_COUNT
_Eight = Known[tuple[Known[int], ...]]


def port_names(device: "SonicDevice") -> tuple[str, ...]:
    """Returns the front-panel ports, natural order."""
    known = set(device.database.get("PORT", {})) | {
        one for one in device.database.get("PORT_QOS_MAP", {}) if "|" not in one
    }
    names = {name for one in known for name in one.split(",") if name.startswith("Ethernet")}
    return tuple(sorted(names, key=natural_key))


def interfaces(device: "SonicDevice") -> str:
    """Returns `show interfaces counters`: frames as the data plane counted them, no rates.

    Source: sonic-utilities tests/portstat_test.py (read).
    """
    sides = ("OK", "BPS", "UTIL", "ERR", "DRP", "OVR")
    rows = []
    for port, found in _readings(device):
        one = found.counters
        received = (one.rx_packets, one.rx_errors, one.rx_discards)
        sent = (one.tx_packets, one.tx_errors, one.tx_discards)
        cells = [cell for side in (received, sent) for cell in _side(*map(_with_commas, side))]
        rows.append([port, "U" if found.is_up else "D", *cells])
    heads = ["IFACE", "STATE", *(f"{way}_{side}" for way in ("RX", "TX") for side in sides)]
    return grid(heads, rows)


def _side(ok: str, errors: str, drops: str) -> tuple[str, ...]:
    return ok, _NONE, _NONE, errors, drops, _NONE


def pfc(device: "SonicDevice") -> str:
    """Returns `show pfc counters`. Source: samples/sonic/show/pfc_counters_multi_asic.txt, which has the commas."""
    readings = _readings(device)
    blocks = []
    sides: tuple[tuple[str, Callable[[PortCounters], _Eight]], ...] = (
        ("Port Rx", lambda one: one.pfc_rx_frames),
        ("Port Tx", lambda one: one.pfc_tx_frames),
    )
    for head, side in sides:
        rows = [[port, *(_with_commas(one) for one in _eight(side(found.counters)))] for port, found in readings]
        blocks.append(grid([head, *(f"PFC{number}" for number in range(PRIORITY_COUNT))], rows))
    return "\n".join([*blocks, ""])


def pg_drops(device: "SonicDevice") -> str:
    """Returns `show priority-group drop counters`. Source: samples/sonic/show/pg_drop_counters.txt."""
    rows = [
        [port, *(_text(one) for one in _eight(found.counters.pg_dropped_packets))] for port, found in _readings(device)
    ]
    heads = ["Port", *(f"PG{number}" for number in range(PRIORITY_COUNT))]
    return "Ingress PG dropped packets:\n" + grid(heads, rows)


def queues(device: "SonicDevice") -> str:
    """Returns `show queue counters`. Source: samples/sonic/show/queue_counters_port.txt."""
    heads = ["Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"]
    blocks = []
    for port, found in _readings(device):
        rows = [
            [port, f"UC{queue}", *map(_text, (one.packets, one.bytes, one.dropped_packets, one.dropped_bytes))]
            for queue in _QUEUES
            for one in [_queue(found.counters, queue)]
        ]
        blocks.append("For namespace :\n" + grid(heads, rows))
    return "\n".join([*blocks, ""])


def wred(device: "SonicDevice") -> str:
    """Returns `show queue wredcounters`: N/A as long as the counter poll is off, its default.

    Source: samples/sonic/show/wred_ecn_counters_port.txt.
    """
    heads = ["Port", "TxQ", "WredDrp/pkts", "WredDrp/bytes", "EcnMarked/pkts", "EcnMarked/bytes"]
    group = device.database.get("FLEX_COUNTER_TABLE", {}).get("WRED_ECN_QUEUE", {})
    is_counted = group.get("FLEX_COUNTER_STATUS") == "enable"
    blocks = []
    for port, found in _readings(device):
        rows = []
        for queue in _QUEUES:
            one = _queue(found.counters, queue)
            sizes = found.early_bytes[queue] if found.early_bytes else (UNKNOWN, UNKNOWN)
            counts = (one.wred_dropped_packets, sizes[0], one.marked_packets, sizes[1])
            rows.append([port, f"UC{queue}", *(_text(count) if is_counted else _NONE for count in counts)])
        blocks.append(grid(heads, rows))
    return "\n".join([*blocks, ""])


def watchdog(device: "SonicDevice") -> str:
    """Returns `show pfcwd stats`. Source: samples/sonic/show/pfcwd_stats_storm.txt."""
    table = device.database.get("PORT_QOS_MAP", {})
    rows = []
    for port, found in _readings(device):
        if port in device.database.get("PFC_WD", {}):
            listed = str(table.get(port, {}).get("pfcwd_sw_enable", "")).split(",")
            rows += [_storm_row(port, found, int(queue)) for queue in listed if queue.isdigit()]
    heads = ("QUEUE", "STATUS", "STORM DETECTED/RESTORED", "TX OK/DROP", "RX OK/DROP")
    return grid([*heads, "TX LAST OK/DROP", "RX LAST OK/DROP"], rows)


def _storm_row(port: str, found: PortReading, queue: int) -> list[str]:
    total = _watched(found.counters.watchdog, queue)
    last = _watched(found.storms, queue)
    pairs = (
        (total.storms_detected, total.storms_restored),
        (total.tx_ok, total.tx_dropped),
        (total.rx_ok, total.rx_dropped),
        (last.tx_ok, last.tx_dropped),
        (last.rx_ok, last.rx_dropped),
    )
    return [f"{port}:{queue}", total.status, *(f"{_text(one)}/{_text(other)}" for one, other in pairs)]


def _watched(counters: Sequence[WatchdogCounters], queue: int) -> WatchdogCounters:
    idle = WatchdogCounters(queue, "operational", 0, 0, 0, 0, 0, 0)
    return next((one for one in counters if one.queue == queue), idle)


def _readings(device: "SonicDevice") -> list[tuple[str, PortReading]]:
    """Returns the ports with what is known of them."""
    found = {} if device.plane is None else device.plane.readings()
    ports = sorted({*port_names(device), *found}, key=natural_key)
    return [(port, found.get(port) or _unplugged(port)) for port in ports]


def _unplugged(port: str) -> PortReading:
    zeros = tuple(QueueCounters(str(queue), 0, 0, 0, 0, 0, 0) for queue in _QUEUES)
    counters = PortCounters(port, _ZEROS, _ZEROS, 0, 0, _ZEROS, zeros, (), 0, 0, 0, 0, 0, 0)
    return PortReading(counters, early_bytes=((0, 0),) * len(_QUEUES), is_up=False)


def _queue(counters: PortCounters, queue: int) -> QueueCounters:
    return next((one for one in counters.queues if one.queue == str(queue)), QueueCounters(str(queue)))


def _eight(values: _Eight) -> tuple[Known[int], ...]:
    return (UNKNOWN,) * PRIORITY_COUNT if values is UNKNOWN else values


def _text(value: Known[int]) -> str:
    return _NONE if value is UNKNOWN else str(value)


def _with_commas(value: Known[int]) -> str:
    return _NONE if value is UNKNOWN else f"{value:,}"
