"""Which ports outside the intent feel a device-wide setting. Reads the running configuration only."""

from collections.abc import Collection

from fabric.diff import IntendedConfig, matches
from fabric.nos.sonic.config import Tables, tables
from fabric.nos.sonic.names import PFC_WD, PORT, PORT_QOS_MAP, QUEUE, STOCK_WRED, WRED_PROFILE
from fabric.nos.sonic.rows import by_port, slots
from fabric.tree import Tree
from fabric.units import natural_key

__all__ = ("feels_polling", "feels_wred", "outside_ports")


def outside_ports(running: Tree, intended: IntendedConfig) -> tuple[str, ...]:
    """Returns the ports outside the intent that feel what `intended` changes device-wide, natural order."""
    rows = tables(running)
    every = {*by_port(rows, PORT), *by_port(rows, PORT_QOS_MAP), *slots(rows, QUEUE), *by_port(rows, PFC_WD)}
    ours = {port for port in every if _is_owned(intended, port)}
    changed = {path[:2] for path, value in intended.tree.items() if running.get(path) != value}
    felt: set[str] = set()
    if (PORT_QOS_MAP, "global") in changed:
        bound = {port for port, row in by_port(rows, PORT_QOS_MAP).items() if "dscp_to_tc_map" in row}
        felt |= every - bound
    if (PFC_WD, "GLOBAL") in changed:
        felt |= feels_polling(rows, ours)
    if (WRED_PROFILE, STOCK_WRED) in changed:
        felt |= feels_wred(rows, ours)
    return tuple(sorted(felt - ours, key=natural_key))


def feels_polling(running: Tables, ours: Collection[str]) -> set[str]:
    """Returns the other ports that the watchdog runs on: the polling interval is one for all."""
    return set(by_port(running, PFC_WD)) - set(ours)


def feels_wred(running: Tables, ours: Collection[str]) -> set[str]:
    """Returns the other ports that have a queue on the stock WRED profile."""
    rows = slots(running, QUEUE)
    return {
        port
        for port, queues in rows.items()
        if port not in ours and any(fields.get("wred_profile") == STOCK_WRED for fields in queues.values())
    }


def _is_owned(intended: IntendedConfig, port: str) -> bool:
    return any(matches(pattern, (PORT_QOS_MAP, port, "pfc_enable")) for pattern in intended.owned)
