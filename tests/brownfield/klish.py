"""The command line of Enterprise SONiC as the CONFIG_DB beneath it. Knows the lines of the samples, no more.

On such a switch the management framework translates the command line into CONFIG_DB, which is what the product reads
and writes. The flattened example is translated here by hand, so that the device below it can be taken over. Names of
tables are community SONiC's; that Enterprise SONiC keeps the same ones is unconfirmed. Lines without a known table
stand word for word in UNTRANSLATED: they must come out of a takeover as they went in.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from tests.brownfield.samples import Tables

__all__ = ("UNTRANSLATED", "database_of")

UNTRANSLATED: Final = "UNTRANSLATED"
_KBYTE: Final = 1000  # "KBytes" of `show qos wred-policy`; which thousand is unconfirmed
_LANES: Final = 8  # of a 400G port
_MAPS: Final = {
    "dscp-tc": ("DSCP_TO_TC_MAP", "dscp_to_tc_map"),
    "dot1p-tc": ("DOT1P_TO_TC_MAP", "dot1p_to_tc_map"),
    "tc-queue": ("TC_TO_QUEUE_MAP", "tc_to_queue_map"),
    "tc-pg": ("TC_TO_PRIORITY_GROUP_MAP", "tc_to_pg_map"),
    "pfc-priority-queue": ("MAP_PFC_PRIORITY_TO_QUEUE", "pfc_to_queue_map"),
    "pfc-priority-pg": ("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "pfc_to_pg_map"),
}
_ENTRY: Final = re.compile(
    r"(?:dscp|dot1p|traffic-class|pfc-priority) (\S+) (?:traffic-class|queue|priority-group|pg) (\d+)"
)
_OPENS: Final = re.compile(r"interface (\S.*)|qos wred-policy (\S+)|qos scheduler-policy (\S+)|qos map (\S+) (\S+)")
_IGNORED: Final = frozenset({"!", ""})


class _Reader:
    """Where the last opening line has led; nested blocks are told by their keywords, since indentation is lost."""

    def __init__(self) -> None:
        self.tables: Tables = {}
        self.context = ("top", "")
        self.queue = ""
        self.paused: list[str] = []

    def put(self, table: str, key: str, **fields: object) -> None:
        """Puts fields into a row."""
        self.tables.setdefault(table, {}).setdefault(key, {}).update(fields)

    def keep(self, line: str) -> None:
        """Keeps a line that has no table here."""
        where = " ".join(part for part in self.context if part)
        rows = self.tables.setdefault(UNTRANSLATED, {}).setdefault(where, {})
        rows[f"line {len(rows)}"] = line


def database_of(text: str) -> Tables:
    """Returns the tables that the command line stands for."""
    reader = _Reader()
    reader.put(
        "DEVICE_METADATA",
        "localhost",
        hostname="sonic",
        hwsku="DellEMC-Z9664f-O64",
        platform="x86_64-dellemc_z9664f_c3758-r0",
        mac="02:00:5e:00:00:02",
        type="LeafRouter",
        buffer_model="traditional",
    )
    for line in (row.strip() for row in text.splitlines()):
        if line in _IGNORED:
            continue
        opened = _OPENS.fullmatch(line)
        if opened is not None:
            _open(reader, opened)
        elif not _READERS[reader.context[0]](reader, line):
            reader.context = reader.context if reader.context[0] == "port" else ("top", "")
            reader.keep(line)
    return reader.tables


def _open(reader: _Reader, opened: re.Match[str]) -> None:
    interface, wred, scheduler, kind, name = opened.groups()
    reader.queue, reader.paused = "", []
    if wred:
        reader.context = ("wred", wred)
    elif scheduler:
        reader.context = ("scheduler", scheduler)
    elif kind:
        reader.context = (kind, name)
    elif (number := re.fullmatch(r"Eth1/(\d+)", interface)) is not None:
        index = int(number[1])
        first = (index - 1) * _LANES
        lanes = ",".join(str(lane) for lane in range(first + 1, first + _LANES + 1))
        reader.context = ("port", f"Ethernet{first}")
        reader.put("PORT", f"Ethernet{first}", alias=interface, index=str(index), lanes=lanes)
    else:
        reader.context = ("loopback", interface.replace(" ", ""))
        reader.put("LOOPBACK_INTERFACE", reader.context[1])


def _read_wred(reader: _Reader, line: str) -> bool:
    name = reader.context[1]
    curve = re.fullmatch(r"green minimum-threshold (\d+) maximum-threshold (\d+) drop-probability (\d+)", line)
    if curve is not None:
        low, high = (str(int(number) * _KBYTE) for number in curve.groups()[:2])
        reader.put(
            "WRED_PROFILE",
            name,
            wred_green_enable="true",
            green_min_threshold=low,
            green_max_threshold=high,
            green_drop_probability=curve[3],
        )
        return True
    if line == "ecn green":
        reader.put("WRED_PROFILE", name, ecn="ecn_green")
        return True
    return False


def _read_scheduler(reader: _Reader, line: str) -> bool:
    word, _, value = line.partition(" ")
    if word == "queue":
        reader.queue = value
        return True
    if word not in {"type", "weight"} or not reader.queue:
        return False
    reader.put("SCHEDULER", f"{reader.context[1]}.{reader.queue}", **{word: value.upper()})
    return True


def _read_map(reader: _Reader, line: str) -> bool:
    kind, name = reader.context
    entry = _ENTRY.fullmatch(line)
    if entry is None:
        return False
    for member in _members(entry[1]):
        reader.put(_MAPS[kind][0], name, **{str(member): entry[2]})
    return True


def _read_port(reader: _Reader, line: str) -> bool:
    port = reader.context[1]
    word, _, value = line.partition(" ")
    if word in {"description", "mtu", "speed"}:
        reader.put("PORT", port, **{word: value})
    elif line == "no shutdown":
        reader.put("PORT", port, admin_status="up")
    elif line == "fec RS":
        reader.put("PORT", port, fec="rs")
    elif line == "ipv6 enable":
        reader.put("INTERFACE", port, ipv6_use_link_local_only="enable")
    elif (bound := re.fullmatch(r"qos-map (\S+) (\S+)", line)) is not None:
        reader.put("PORT_QOS_MAP", port, **{_MAPS[bound[1]][1]: bound[2]})
    elif (curve := re.fullmatch(r"queue (\d) wred-policy (\S+)", line)) is not None:
        reader.put("QUEUE", f"{port}|{curve[1]}", wred_profile=curve[2])
    elif word == "scheduler-policy":
        for name in [one for one in reader.tables.get("SCHEDULER", {}) if one.startswith(f"{value}.")]:
            reader.put("QUEUE", f"{port}|{name.rpartition('.')[2]}", scheduler=name)
    else:
        return _read_pauses(reader, port, line)
    return True


def _read_pauses(reader: _Reader, port: str, line: str) -> bool:
    watched = re.fullmatch(r"priority-flow-control watchdog (?:on )?(action|detect-time|restore-time) (\S+)", line)
    if watched is not None:
        field = {"detect-time": "detection_time", "restore-time": "restoration_time"}.get(watched[1], "action")
        reader.put("PFC_WD", "GLOBAL", POLL_INTERVAL="200")
        reader.put("PFC_WD", port, **{field: watched[2]})
        reader.put("PORT_QOS_MAP", port, pfcwd_sw_enable=",".join(reader.paused))
        return True
    paused = re.fullmatch(r"priority-flow-control priority (\d)", line)
    if paused is None:
        return False
    reader.paused.append(paused[1])
    reader.put("PORT_QOS_MAP", port, pfc_enable=",".join(reader.paused))
    return True


def _read_loopback(reader: _Reader, line: str) -> bool:
    address = re.fullmatch(r"ip address (\S+)", line)
    if address is not None:
        reader.put("LOOPBACK_INTERFACE", f"{reader.context[1]}|{address[1]}")
    return address is not None


def _members(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _read_nothing(reader: _Reader, line: str) -> bool:
    return False


_READERS: Final[dict[str, Callable[[_Reader, str], bool]]] = {
    "top": _read_nothing,
    "wred": _read_wred,
    "scheduler": _read_scheduler,
    "port": _read_port,
    "loopback": _read_loopback,
    **dict.fromkeys(_MAPS, _read_map),
}
