"""`show queue …`. Text or JSON in, numbers out."""

from dataclasses import dataclass

from fabric.errors import FabricError
from fabric.nos.sonic.show.table import count, padded, tables
from fabric.qos import UNKNOWN, Known
from fabric.serial import SerialError, parse_json

__all__ = ("QueueCount", "VoqCount", "WredCount", "counters", "voq_counters", "watermarks", "wred", "wred_total")


@dataclass(frozen=True, slots=True)
class QueueCount:
    """Packets and bytes through one queue, and those lost at its tail."""

    packets: Known[int]
    bytes: Known[int]
    dropped_packets: Known[int]
    dropped_bytes: Known[int]


@dataclass(frozen=True, slots=True)
class WredCount:
    """Packets and bytes that WRED dropped, and those marked CE."""

    dropped_packets: Known[int]
    dropped_bytes: Known[int]
    marked_packets: Known[int]
    marked_bytes: Known[int]


@dataclass(frozen=True, slots=True)
class VoqCount:
    """One virtual output queue, counted where packets come in.

    Attributes:
        credit_watchdog_packets: deleted because no credit came from the far end: also loss.
    """

    packets: Known[int]
    bytes: Known[int]
    dropped_packets: Known[int]
    dropped_bytes: Known[int]
    credit_watchdog_packets: Known[int]


def counters(text: str) -> dict[str, dict[str, QueueCount]]:
    """Returns port → queue label (`UC3`) → counts, of `show queue counters`."""
    rows = _rows(text, "Counter/pkts")
    out: dict[str, dict[str, QueueCount]] = {}
    for port, label, *cells in rows:
        packets, size, dropped, dropped_size = (count(cell) for cell in padded(cells, 4))
        out.setdefault(port, {})[label] = QueueCount(packets, size, dropped, dropped_size)
    return out


def wred(text: str) -> dict[str, dict[str, WredCount]]:
    """Returns port → queue label → counts, of `show queue wredcounters`; UNKNOWN while counterpoll is off."""
    out: dict[str, dict[str, WredCount]] = {}
    for port, label, *cells in _rows(text, "WredDrp/pkts"):
        out.setdefault(port, {})[label] = _wred(cells)
    return out


def wred_total(text: str) -> dict[str, WredCount]:
    """Returns queue label → sum over all ports, of the summary.

    A row that no port can measure is printed as 0: it is no evidence. A row of zeros only is therefore UNKNOWN.
    """
    out: dict[str, WredCount] = {}
    for table in tables(text):
        if table.columns[:2] == ("TxQ", "WredDrp/pkts"):
            for label, *cells in table.rows:
                found = _wred(cells)
                out[label] = WredCount(*[UNKNOWN] * 4) if found == WredCount(0, 0, 0, 0) else found
    return out


def voq_counters(text: str) -> dict[str, dict[str, VoqCount]]:
    """Returns `host|port` or `host|asic|port` → VOQ label → counts, of `show queue counters --voq --json`.

    Raises:
        FabricError: the output is no such JSON.
    """
    try:
        data = parse_json(text)
    except SerialError as error:
        raise FabricError("VOQ counters are not JSON", found=str(error)) from error
    if not isinstance(data, dict):
        raise FabricError("VOQ counters are no object of ports", found=type(data).__name__)
    out: dict[str, dict[str, VoqCount]] = {}
    for port, queues in data.items():
        for label, fields in queues.items() if isinstance(queues, dict) else ():
            if isinstance(fields, dict):  # beside the queues stands the time of the reading
                cells = ("totalpacket", "totalbytes", "droppacket", "dropbytes", "creditWDPkts")
                out.setdefault(port, {})[label] = VoqCount(*(count(str(fields.get(cell, ""))) for cell in cells))
    return out


def watermarks(text: str) -> dict[str, dict[str, Known[int]]]:
    """Returns port → queue label → largest bytes queued, of `show queue watermark unicast`."""
    out: dict[str, dict[str, Known[int]]] = {}
    for table in tables(text):
        if table.columns[0] == "Port":
            for port, *cells in table.rows:
                out.setdefault(port, {}).update(zip(table.columns[1:], map(count, cells), strict=True))
    return out


def _rows(text: str, third_column: str) -> list[tuple[str, ...]]:
    return [row for table in tables(text) if table.columns[:3] == ("Port", "TxQ", third_column) for row in table.rows]


def _wred(cells: list[str]) -> WredCount:
    dropped, dropped_size, marked, marked_size = (count(cell) for cell in padded(cells, 4))
    return WredCount(dropped, dropped_size, marked, marked_size)
