"""What a fragment of a SONiC configuration lacks to be a device: ports, metadata, buffers, and what it refers to.

The board is the one that the fragment's entry in SOURCES.md names; what the fragment says itself always wins.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fabric.lab.stock import StockPort, sonic_tables
from fabric.units import natural_key
from tests.brownfield.samples import Sample, Tables

__all__ = ("Board", "as_booted", "board_of", "completed")


@dataclass(frozen=True, slots=True)
class Board:
    """A switch model: its HwSKU, "" to take the configuration's, and the ASIC that an inventory would name."""

    hwsku: str
    asic: str
    platform: str = ""


_BOARDS: Final = (
    (r"7050CX3", Board("Arista-7050CX3-32S-C32", "trident3", "x86_64-arista_7050cx3_32s")),
    (r"Arista 7050 ", Board("Arista-7050CX3-32S-C32", "trident3", "x86_64-arista_7050cx3_32s")),
    (r"SN4600C", Board("Mellanox-SN4600C-C64", "spectrum3", "x86_64-mlnx_msn4600c-r0")),
    (r"SN4280", Board("Mellanox-SN4280-O28", "spectrum3", "x86_64-nvidia_sn4280-r0")),
    (r"MSN2700", Board("ACS-MSN2700", "spectrum1")),
    (r"ES6428A", Board("ES6428A-X48Q2H4", "", "x86_64-ew_es6220_x48q2h4-r0")),
    (r"D7032", Board("INVENTEC-D7032Q28B-C32", "tomahawk", "x86_64-inventec_d7032q28b-r0")),
    (r"Z9264f", Board("DellEMC-Z9264f-C64", "tomahawk2")),
    (r"Z9664F", Board("DellEMC-Z9664f-O64", "tomahawk4")),
    (r"Seastone", Board("Seastone-DX010-25-50", "tomahawk")),
    (r"VOQ chassis", Board("Nokia-IXR7250E-36x400G", "jericho2c+", "x86_64-nokia_ixr7250e_36x400g-r0")),
    (r"7388X5", Board("DCS-7388X5", "tomahawk4")),
    (r"EOS", Board("DCS-7050CX3-32S", "trident3")),
)
_BUFFERS: Final = ("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE")
_PORT_KEYED: Final = (
    "PORT_QOS_MAP",
    "QUEUE",
    *_BUFFERS[2:],
    "BUFFER_PORT_INGRESS_PROFILE_LIST",
    "BUFFER_PORT_EGRESS_PROFILE_LIST",
)
_MAPS: Final = {
    "dscp_to_tc_map": "DSCP_TO_TC_MAP",
    "tc_to_queue_map": "TC_TO_QUEUE_MAP",
    "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
    "pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE",
}
_NOT_TAKEN: Final = (
    (r"priority-flow-control pause watchdog action no-drop", "watchdog action no-drop does not exist on a device"),
)
"""Line, and what SOURCES.md says of it: a generator's line that a switch refuses when it starts."""
_HEADROOM_BYTES: Final = "400000"  # enough at 100G on every board here
_DEFAULT_PORTS: Final = tuple(f"Ethernet{number}" for number in range(0, 32, 4))


def board_of(sample: Sample) -> Board:
    """Returns the board that the entry of the sample names.

    Raises:
        LookupError: it names none that is known here.
    """
    for pattern, board in _BOARDS:
        if re.search(pattern, sample.said["System"]):
            return board
    raise LookupError(f"{sample.name}: no board known in {sample.said['System']!r}")


def as_booted(sample: Sample) -> tuple[str, tuple[str, ...]]:
    """Returns the text that a switch holds after it was started with the sample, and the lines that it did not take."""
    wrong = [line for line, sentence in _NOT_TAKEN if sentence in sample.entry]
    left_out = tuple(row for row in sample.text.splitlines() if any(re.fullmatch(line, row.strip()) for line in wrong))
    return "".join(f"{row}\n" for row in sample.text.splitlines() if row not in left_out), left_out


def completed(fragment: Tables, board: Board) -> Tables:
    """Returns a whole configuration of `board` in which the references of the fragment hold."""
    ports = _ports(fragment)
    dynamic = fragment.get("BUFFER_PG") is not None and _is_dynamic(fragment)
    base: Tables = {
        table: {key: dict(row) for key, row in rows.items()}
        for table, rows in sonic_tables(
            [StockPort(name) for name in ports], dynamic=dynamic, stock_qos=False, watchdog=False
        ).items()
    }
    for name, profile in base["BUFFER_PROFILE"].items():
        if name.startswith("pg_lossless_"):
            profile["xoff"] = _HEADROOM_BYTES
    about = base["DEVICE_METADATA"]["localhost"]
    about |= {"hwsku": board.hwsku, "platform": board.platform} | _chassis(fragment)
    if "BUFFER_PG" in fragment:  # a fragment that speaks of buffers speaks of all of them
        for table in _BUFFERS:
            base.pop(table)
    for table, rows in fragment.items():
        base.setdefault(table, {}).update({key: dict(row) for key, row in rows.items()})
    for table, name, row in _missing(fragment):
        base.setdefault(table, {}).setdefault(name, dict(row))
    return {table: rows for table, rows in base.items() if rows}


def _ports(fragment: Tables) -> tuple[str, ...]:
    keys = (key for table in _PORT_KEYED for key in fragment.get(table, {}))
    names = {name for key in keys for part in key.split("|") for name in part.split(",")}
    found = sorted((name for name in names if re.fullmatch(r"Ethernet\d+", name)), key=natural_key)
    return tuple(found) or _DEFAULT_PORTS


def _is_dynamic(fragment: Tables) -> bool:
    return any(row.get("profile") == "NULL" for row in fragment["BUFFER_PG"].values())


def _chassis(fragment: Tables) -> dict[str, str]:
    """Returns what makes a line card of a chassis: its own name is that of the last system port that it lists."""
    system = [key.split("|") for key in fragment.get("QUEUE", {}) if key.count("|") == 3]
    if not system:
        return {}
    host, asic = system[-1][:2]
    return {"switch_type": "voq", "hostname": host, "asic_name": asic}


def _missing(fragment: Tables) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    identity = {str(number): str(number) for number in range(8)}
    for row in fragment.get("PORT_QOS_MAP", {}).values():
        for field, table in _MAPS.items():
            if field in row:
                dscps = {str(dscp): "1" for dscp in range(64)} | {"3": "3", "4": "4"}  # as the stock map: 26 is lossy
                yield table, str(row[field]), dscps if field == "dscp_to_tc_map" else identity
    for row in fragment.get("QUEUE", {}).values():
        if "scheduler" in row:
            yield "SCHEDULER", str(row["scheduler"]), {"type": "DWRR", "weight": "14"}
        if "wred_profile" in row:
            curve = {"green_min_threshold": "1048576", "green_max_threshold": "2097152", "green_drop_probability": "5"}
            yield "WRED_PROFILE", str(row["wred_profile"]), {"ecn": "ecn_all", "wred_green_enable": "true", **curve}
