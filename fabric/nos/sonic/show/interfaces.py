"""`show interfaces counters`: what came and left at each port. Text in, frames out.

Layout: sonic-utilities tests/portstat_test.py (read). RX_OK and TX_OK are unicast and other frames together
(utilities_common/portstat.py); whether an ASIC counts PFC frames among them is unconfirmed.
"""

from dataclasses import dataclass

from fabric.nos.sonic.show.table import count, tables
from fabric.qos import UNKNOWN, Known

__all__ = ("PortTotals", "totals")


@dataclass(frozen=True, slots=True)
class PortTotals:
    """Frames of every class at one port."""

    rx_packets: Known[int] = UNKNOWN
    tx_packets: Known[int] = UNKNOWN
    rx_errors: Known[int] = UNKNOWN
    tx_errors: Known[int] = UNKNOWN
    rx_discards: Known[int] = UNKNOWN
    tx_discards: Known[int] = UNKNOWN


def totals(text: str) -> dict[str, PortTotals]:
    """Returns port → frames; columns are found by their names, since releases differ in which there are."""
    out: dict[str, PortTotals] = {}
    for table in tables(text):
        if table.columns[:1] != ("IFACE",) or "RX_OK" not in table.columns:
            continue
        for row in table.rows:
            cells = dict(zip(table.columns, map(count, row), strict=True))
            names = ("RX_OK", "TX_OK", "RX_ERR", "TX_ERR", "RX_DRP", "TX_DRP")
            out[row[0]] = PortTotals(*(cells.get(name, UNKNOWN) for name in names))
    return out
