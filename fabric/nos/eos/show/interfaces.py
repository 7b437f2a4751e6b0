"""`show interfaces counters` and `… errors` of EOS: what came and left at each port.

Keys: tcollector's eos collector and the tests of ANTA (both read). That every release shows discards in the first of
the two is unconfirmed; whether PFC frames are counted among the packets, too.
"""

from collections.abc import Mapping
from typing import Final

from fabric.nos.eos.show.fields import count, read_object, within
from fabric.qos import UNKNOWN, Known
from fabric.state import PortCounters

__all__ = ("port_errors", "port_totals")

_COUNTERS: Final = "show interfaces counters"
_ERRORS: Final = "show interfaces counters errors"
_CASTS: Final = ("UcastPkts", "MulticastPkts", "BroadcastPkts")


def port_totals(output: str) -> dict[str, PortCounters]:
    """Returns Ethernet port → frames of every class that came, left and were discarded; nothing else.

    Raises:
        FabricError: it is not the JSON that the command prints.
    """
    rows = _ethernets(within(read_object(output, command=_COUNTERS), "interfaces"))
    return {
        port: PortCounters(
            port,
            rx_packets=_packets(row, "in"),
            tx_packets=_packets(row, "out"),
            rx_discards=count(row.get("inDiscards")),
            tx_discards=count(row.get("outDiscards")),
        )
        for port, row in rows.items()
    }


def port_errors(output: str) -> dict[str, tuple[Known[int], Known[int]]]:
    """Returns Ethernet port → (frames that came damaged, that left damaged).

    Raises:
        FabricError: it is not the JSON that the command prints.
    """
    rows = _ethernets(within(read_object(output, command=_ERRORS), "interfaceErrorCounters"))
    return {port: (count(row.get("inErrors")), count(row.get("outErrors"))) for port, row in rows.items()}


def _ethernets(data: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Without the management port and port channels, whose members count the same frames."""
    return {port: within(data, port) for port in data if port.startswith("Ethernet")}


def _packets(row: Mapping[str, object], way: str) -> Known[int]:
    """The three kinds of addresses together; UNKNOWN where one is not shown."""
    total = 0
    for cast in _CASTS:
        one = count(row.get(way + cast))
        if one is UNKNOWN:
            return UNKNOWN
        total += one
    return total
