"""`show pfcwd …`. Text in, settings and counts out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fabric.nos.sonic.show.table import count, padded, tables
from fabric.qos import UNKNOWN, Known
from fabric.state import WatchdogCounters

__all__ = ("PortSetting", "QueueStorm", "Setting", "setting", "storms")

_POLLING: Final = re.compile(r"Changed polling interval to ([0-9]{1,9})\s*ms(?: on (\S+))?")
_BIG_RED_SWITCH: Final = re.compile(r"BIG_RED_SWITCH status is (\S+?)(?: on (\S+))?")
_QUEUE: Final = re.compile(r"(.+):([0-9]{1,4})")
_STORM_CELLS: Final = 7


@dataclass(frozen=True, slots=True)
class PortSetting:
    """The watchdog of one port, as it runs."""

    action: str
    detection_ms: Known[int]
    restoration_ms: Known[int]
    history: Known[bool]


@dataclass(frozen=True, slots=True)
class Setting:
    """What `show pfcwd config` says.

    Attributes:
        polling_ms: namespace ("" where there is one) → polling interval.
        big_red_switch: likewise: the watchdog drops all lossless queues, storm or not.
        ports: port → setting.
    """

    polling_ms: Mapping[str, int]
    big_red_switch: Mapping[str, bool]
    ports: Mapping[str, PortSetting]


@dataclass(frozen=True, slots=True)
class QueueStorm:
    """One queue: totals, and what was lost in the last storm."""

    total: WatchdogCounters
    last_tx_ok: Known[int]
    last_tx_dropped: Known[int]
    last_rx_ok: Known[int]
    last_rx_dropped: Known[int]


def setting(text: str) -> Setting:
    """Returns the watchdog's settings, of `show pfcwd config`."""
    lines = text.splitlines()
    polling = [match for line in lines if (match := _POLLING.fullmatch(line.strip()))]
    switch = [match for line in lines if (match := _BIG_RED_SWITCH.fullmatch(line.strip()))]
    ports = {}
    for table in tables(text):
        if table.columns[:2] == ("PORT", "ACTION"):
            for row in table.rows:
                cells = dict(zip(table.columns, row, strict=True))
                ports[row[0]] = PortSetting(
                    action=row[1],
                    detection_ms=count(cells.get("DETECTION TIME", "")),
                    restoration_ms=count(cells.get("RESTORATION TIME", "")),
                    history=cells["HISTORY"] == "enable" if "HISTORY" in cells else UNKNOWN,
                )
    return Setting(
        polling_ms={match[2] or "": int(match[1]) for match in polling},
        big_red_switch={match[2] or "": match[1] == "enable" for match in switch},
        ports=ports,
    )


def storms(text: str) -> dict[str, dict[int, QueueStorm]]:
    """Returns port → queue → counts, of `show pfcwd stats`.

    The status N/A is kept as printed: it is not "operational". Restored may exceed detected: counters were cleared
    in between.
    """
    out: dict[str, dict[int, QueueStorm]] = {}
    for table in tables(text):
        if table.columns[:2] != ("QUEUE", "STATUS"):
            continue
        for row in (padded(one, _STORM_CELLS) for one in table.rows):
            match = _QUEUE.fullmatch(row[0])
            if match is not None:
                out.setdefault(match[1], {})[int(match[2])] = _storm(int(match[2]), row)
    return out


def _storm(queue: int, row: tuple[str, ...]) -> QueueStorm:
    (detected, restored), (tx_ok, tx_drop), (rx_ok, rx_drop), last_tx, last_rx = (_pair(cell) for cell in row[2:7])
    total = WatchdogCounters(
        queue=queue,
        status=row[1],
        storms_detected=detected,
        storms_restored=restored,
        tx_ok=tx_ok,
        tx_dropped=tx_drop,
        rx_ok=rx_ok,
        rx_dropped=rx_drop,
    )
    return QueueStorm(total, *last_tx, *last_rx)


def _pair(cell: str) -> tuple[Known[int], Known[int]]:
    left, _, right = cell.partition("/")
    return count(left), count(right)
