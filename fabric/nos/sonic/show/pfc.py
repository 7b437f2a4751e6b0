"""`show pfc …`. Text in, numbers out."""

import datetime as dt
import re
from dataclasses import dataclass
from typing import Final

from fabric.nos.sonic.show.table import count, padded, tables
from fabric.qos import Known

__all__ = ("PauseHistory", "asymmetric", "counters", "history", "priorities")

_TIME: Final = "%m/%d/%Y, %H:%M:%S"  # sonic-utilities scripts/pfcstat
_PRIORITY: Final = re.compile(r"PFC([0-9])")

_ONE: Final = re.compile(r"[0-7]")

PerPriority = tuple[Known[int], ...]


@dataclass(frozen=True, slots=True)
class PauseHistory:
    """Pauses received on one priority of one port.

    Attributes:
        recent_at: end of the last pause, in the device's own time zone; None when it never paused.
    """

    rx_pause_transitions: Known[int]
    total_rx_pause_us: Known[int]
    recent_rx_pause_us: Known[int]
    recent_at: dt.datetime | None


def counters(text: str) -> tuple[dict[str, PerPriority], dict[str, PerPriority]]:
    """Returns frames received and sent: port → by priority, of `show pfc counters`."""
    received: dict[str, PerPriority] = {}
    sent: dict[str, PerPriority] = {}
    for table in tables(text):
        target = {"Port Rx": received, "Port Tx": sent}.get(table.columns[0])
        if target is not None:
            target.update({row[0]: tuple(count(cell) for cell in row[1:]) for row in table.rows})
    return received, sent


def history(text: str) -> dict[str, dict[int, PauseHistory]]:
    """Returns port → priority → pauses, of `show pfc counters --history`."""
    out: dict[str, dict[int, PauseHistory]] = {}
    rows = [
        row for table in tables(_one_table(text)) if table.columns[:2] == ("Port", "Priority") for row in table.rows
    ]
    for port, priority, transitions, total, recent, at in (padded(one, 6) for one in rows):
        match = _PRIORITY.fullmatch(priority)
        if match is not None:
            out.setdefault(port, {})[int(match[1])] = PauseHistory(
                count(transitions), count(total), count(recent), _time(at)
            )
    return out


def priorities(text: str) -> dict[str, tuple[int, ...]]:
    """Returns port → lossless priorities, of `show pfc priority`; a port without any is not listed."""
    rows = [row for table in tables(text) if table.columns[-1] == "Lossless priorities" for row in table.rows]
    return {
        port: tuple(int(one) for one in listed.split(",") if _ONE.fullmatch(one)) for port, listed in map(_two, rows)
    }


def asymmetric(text: str) -> dict[str, bool]:
    """Returns port → asymmetric PFC, of `show pfc asymmetric`."""
    rows = [row for table in tables(text) if table.columns[-1] == "Asymmetric" for row in table.rows]
    return {port: state == "on" for port, state in map(_two, rows)}


def _two(row: tuple[str, ...]) -> tuple[str, str]:
    port, value = padded(row, 2)
    return port, value


def _one_table(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip())  # ports are set apart by blank lines


def _time(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.strptime(text, _TIME)  # noqa: DTZ007  (the device prints no zone)
    except ValueError:
        return None
