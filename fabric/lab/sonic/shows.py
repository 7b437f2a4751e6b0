"""What the emulated SONiC shows. Layouts are those of the samples named; counters are zero without a data plane."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fabric.lab.device import Reply
from fabric.lab.sonic.configdb import write_database
from fabric.units import natural_key

if TYPE_CHECKING:
    from fabric.lab.sonic.device import SonicDevice

__all__ = ("show", "version_file")

_PRIORITIES: Final = range(8)
_QUEUES: Final = range(8)


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


def _ports(device: "SonicDevice") -> tuple[str, ...]:
    known = set(device.database.get("PORT", {})) | {
        one for one in device.database.get("PORT_QOS_MAP", {}) if "|" not in one
    }
    names = {name for one in known for name in one.split(",") if name.startswith("Ethernet")}
    return tuple(sorted(names, key=natural_key))


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table as the `tabulate` of SONiC's tools prints it: right-aligned numbers under dashes."""
    columns = zip(*rows, strict=True) if rows else [() for _ in heads]
    widths = [
        max([len(head) + 2, *map(len, column)])  # tabulate pads a head by two
        for head, column in zip(heads, columns, strict=True)
    ]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows)]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, ""])


def _pfc_counters(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/pfc_counters_all_zero.txt."""
    blocks = []
    for head in ("Port Rx", "Port Tx"):
        rows = [[port, *("0" for _ in _PRIORITIES)] for port in _ports(device)]
        blocks.append(_grid([head, *(f"PFC{number}" for number in _PRIORITIES)], rows))
    return "\n".join([*blocks, ""])


def _pfc_priority(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/pfc_priority.txt."""
    table = device.database.get("PORT_QOS_MAP", {})
    rows = [(port, str(table.get(port, {}).get("pfc_enable", "") or "N/A")) for port in _ports(device)]
    lines = [f"{port:<11}  {priorities}" for port, priorities in [("Interface", "Lossless priorities"), *rows]]
    return "\n".join([lines[0], f"{'-' * 11}  {'-' * 21}", *lines[1:], "", ""])


def _pg_drops(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/pg_drop_counters.txt."""
    rows = [[port, *("0" for _ in _PRIORITIES)] for port in _ports(device)]
    return "Ingress PG dropped packets:\n" + _grid(["Port", *(f"PG{number}" for number in _PRIORITIES)], rows)


def _queue_counters(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/queue_counters_port.txt."""
    heads = ["Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"]
    blocks = [_grid(heads, [[port, f"UC{queue}", "0", "0", "0", "0"] for queue in _QUEUES]) for port in _ports(device)]
    return "\n".join([*blocks, ""])


def _wred_counters(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/wred_ecn_counters_port.txt; N/A as long as the counter poll is off, its default."""
    heads = ["Port", "TxQ", "WredDrp/pkts", "WredDrp/bytes", "EcnMarked/pkts", "EcnMarked/bytes"]
    group = device.database.get("FLEX_COUNTER_TABLE", {}).get("WRED_ECN_QUEUE", {})
    value = "0" if group.get("FLEX_COUNTER_STATUS") == "enable" else "N/A"
    blocks = [_grid(heads, [[port, f"UC{queue}", *[value] * 4] for queue in _QUEUES]) for port in _ports(device)]
    return "\n".join([*blocks, ""])


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
    return first + _grid(["PORT", "ACTION", "DETECTION TIME", "RESTORATION TIME", "HISTORY"], rows)


def _pfcwd_stats(device: "SonicDevice") -> str:
    """Source: samples/sonic/show/pfcwd_stats_storm.txt."""
    heads = [
        "QUEUE",
        "STATUS",
        "STORM DETECTED/RESTORED",
        "TX OK/DROP",
        "RX OK/DROP",
        "TX LAST OK/DROP",
        "RX LAST OK/DROP",
    ]
    table = device.database.get("PORT_QOS_MAP", {})
    rows = []
    for port in _ports(device):
        if port in device.database.get("PFC_WD", {}):
            queues = str(table.get(port, {}).get("pfcwd_sw_enable", "")).split(",")
            rows += [[f"{port}:{queue}", "operational", *["0/0"] * 5] for queue in queues if queue]
    return _grid(heads, rows)


def _lldp(_device: "SonicDevice") -> str:
    """Source: samples/sonic/show/lldp_table_two_neighbours.txt, without neighbours."""
    return (
        "Capability codes: (R) Router, (B) Bridge, (O) Other\n"
        "LocalPort    RemoteDevice    RemotePortID    Capability    RemotePortDescr\n"
        "-----------  --------------  --------------  ------------  -----------------\n"
        "--------------------------------------------------\nTotal entries displayed:  0\n"
    )


_SHOWS: Final[Mapping[str, Callable[["SonicDevice"], str]]] = {
    "runningconfiguration all": lambda device: write_database(device.database),
    "version": _version,
    "pfc counters": _pfc_counters,
    "pfc priority": _pfc_priority,
    "priority-group drop counters": _pg_drops,
    "queue counters": _queue_counters,
    "queue wredcounters": _wred_counters,
    "pfcwd config": _pfcwd_config,
    "pfcwd stats": _pfcwd_stats,
    "lldp table": _lldp,
}
