"""What the emulated SONiC shows. Layouts are those of the samples named."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fabric.lab.device import Reply
from fabric.lab.sonic import counters
from fabric.lab.sonic.configdb import write_database
from fabric.lab.sonic.tables import grid
from fabric.units import natural_key

if TYPE_CHECKING:
    from fabric.lab.sonic.device import SonicDevice

__all__ = ("show", "version_file")


def version_file(device: "SonicDevice") -> str:
    """Returns /etc/sonic/sonic_version.yml."""
    return (
        f"build_version: '{device.build_version}'\ndebian_version: '12.5'\nkernel_version: '6.1.0-22-2-sonic-amd64'\n"
        f"asic_type: {device.asic_type}\ncommit_id: '086b03bd'\n"
    )


def show(device: "SonicDevice", words: Sequence[str]) -> Reply:
    """Returns the answer to `show …`."""
    command = " ".join(words)
    action = _SHOWS.get(command)
    if action is None and command.startswith("runningconfiguration "):
        return _table(device, words[1:])
    if action is None:
        last = words[-1] if words else ""
        error = (
            f'Usage: show [OPTIONS] COMMAND [ARGS]...\nTry "show -h" for help.\n\nError: No such command "{last}".\n'
        )
        return Reply(error=error, exit_status=2)
    return Reply(action(device))


def _table(device: "SonicDevice", words: Sequence[str]) -> Reply:
    name = words[0].upper() if words else ""
    rows = device.database.get(name)
    if rows is None:
        return Reply(error=f'Error: No such command "{" ".join(words)}".\n', exit_status=2)
    return Reply(json.dumps({name: rows}, indent=4) + "\n")


def _version(device: "SonicDevice") -> str:
    """Layout: sonic-utilities tests, `show version` (unconfirmed in parts)."""
    platform = device.metadata.get("platform", "x86_64-lab-r0")
    return (
        f"\nSONiC Software Version: SONiC.{device.build_version}\nSONiC OS Version: 12\nDistribution: Debian 12.5\n"
        "Kernel: 6.1.0-22-2-sonic-amd64\nBuild commit: 086b03bd\nBuild date: Mon Jun  1 00:00:00 UTC 2026\n"
        f"Built by: lab@lab\n\nPlatform: {platform}\nHwSKU: {device.hwsku}\nASIC: {device.asic_type}\nASIC Count: 1\n"
        f"Serial Number: LAB{device.spec.name.upper()}\n\n"
    )


def _pfc_priority(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/pfc_priority.txt."""
    table = device.database.get("PORT_QOS_MAP", {})
    rows = [(port, str(table.get(port, {}).get("pfc_enable", "") or "N/A")) for port in counters.port_names(device)]
    lines = [f"{port:<11}  {priorities}" for port, priorities in [("Interface", "Lossless priorities"), *rows]]
    return "\n".join([lines[0], f"{'-' * 11}  {'-' * 21}", *lines[1:], "", ""])


def _pfcwd_config(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/pfcwd_config.txt."""
    table = device.database.get("PFC_WD", {})
    rows = []
    for port in sorted((one for one in table if one != "GLOBAL"), key=natural_key):
        row = table[port]
        names = ("action", "detection_time", "restoration_time")
        rows.append([port, *(str(row.get(name, "N/A")) for name in names), str(row.get("pfc_stat_history", "disable"))])
    polling = table.get("GLOBAL", {}).get("POLL_INTERVAL")
    first = f"Changed polling interval to {polling}ms\n" if polling is not None else ""
    return first + grid(["PORT", "ACTION", "DETECTION TIME", "RESTORATION TIME", "HISTORY"], rows)


def _lldp(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/lldp_table_two_neighbours.txt."""
    heads = ("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr")
    found = {} if device.plane is None else device.plane.neighbours()
    rows = [
        (port, one.system, one.port, "BR" if one.is_switch else "O", one.description)
        for port, one in sorted(found.items(), key=lambda pair: natural_key(pair[0]))
    ]
    return (
        f"Capability codes: (R) Router, (B) Bridge, (O) Other\n{grid(heads, rows, left=True)}"
        f"{'-' * 50}\nTotal entries displayed:  {len(rows)}\n"
    )


_SHOWS: Final[Mapping[str, Callable[["SonicDevice"], str]]] = {
    "runningconfiguration all": lambda device: write_database(device.database),
    "version": _version,
    "interfaces counters": counters.interfaces,
    "pfc counters": counters.pfc,
    "pfc priority": _pfc_priority,
    "priority-group drop counters": counters.pg_drops,
    "queue counters": counters.queues,
    "queue wredcounters": counters.wred,
    "pfcwd config": _pfcwd_config,
    "pfcwd stats": counters.watchdog,
    "lldp table": _lldp,
}
