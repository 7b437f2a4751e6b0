"""An inventory that wants RoCE on one switch: its ports with their speeds, hosts on some, one port left to others."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

from fabric.units import natural_key
from tests.brownfield.bases import Board
from tests.brownfield.samples import Sample, Tables

__all__ = ("Wanted", "eos_ports", "inventory_of", "sonic_ports", "wanted_ports")

_HOSTED: Final = 2
_UNTOLD_MBPS: Final = 100_000  # of an EOS port that names no speed
_SPEED: Final = re.compile(r"(?m)^ +speed (?:forced )?(\d+)g")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which ports shall carry RoCE, with their speeds in Mbit/s; `foreign` are the others of the switch."""

    ports: Mapping[str, int]
    foreign: tuple[str, ...]

    @property
    def hosted(self) -> tuple[str, ...]:
        """Returns the ports that a host of the inventory is cabled to."""
        return tuple(self.ports)[:_HOSTED]


def sonic_ports(tables: Tables) -> dict[str, int]:
    """Returns port → speed in Mbit/s."""
    rows = tables["PORT"]
    return {name: int(str(rows[name]["speed"])) for name in sorted(rows, key=natural_key)}


def eos_ports(text: str) -> dict[str, int]:
    """Returns port → speed in Mbit/s, 100G where none is told."""
    found = {}
    for block in re.split(r"(?m)^(?=\S)", text):
        head = re.match(r"interface (Ethernet\S+)", block)
        if head is not None:
            speed = _SPEED.search(block)
            found[head[1]] = int(speed[1]) * 1000 if speed else _UNTOLD_MBPS
    return {name: found[name] for name in sorted(found, key=natural_key)}


def wanted_ports(ports: Mapping[str, int], groups: Sequence[Sequence[str]] = ()) -> Wanted:
    """Returns the first two thirds of the ports, the rest foreign; members of one group are on one side.

    Args:
        ports: all of them, with their speeds.
        groups: ports that must do the same, the members of a port channel.
    """
    names = list(ports)
    cut = max(1, len(names) * 2 // 3) if len(names) > 1 else 1
    chosen = names[:cut]
    for group in groups:
        if set(group) & set(chosen) and not set(group) <= set(chosen):
            chosen = [name for name in chosen if name not in group]
    return Wanted({name: ports[name] for name in chosen}, tuple(name for name in names if name not in chosen))


def inventory_of(sample: Sample, wanted: Wanted, board: Board, *, device: str) -> str:
    """Returns the inventory as YAML."""
    hosts = {f"gpu{number}": port for number, port in enumerate(wanted.hosted, start=1)}
    by_speed: dict[int, list[str]] = {}
    for port, mbps in wanted.ports.items():
        by_speed.setdefault(mbps, []).append(port)
    speed_of = {name: f"{wanted.ports[port] // 1000}G" for name, port in hosts.items()}
    switch = {
        "fabric_nos": sample.nos,
        "fabric_asic": board.asic,
        "fabric_hwsku": board.hwsku,
        "fabric_ports": [
            {"ports": port, "role": "host", "speed": f"{mbps // 1000}G", "cable": "5m"}
            for mbps, ports in by_speed.items()
            for port in ports
        ],
    }
    data = {
        "switches": {
            "vars": {
                "fabric_name": "brownfield",
                "fabric_role": "leaf",
                "fabric_links": [
                    {"a": f"{device}:{port}", "b": f"{name}:ens1", "cable": "5m"} for name, port in hosts.items()
                ],
            },
            "hosts": {device: {key: value for key, value in switch.items() if value}},
        },
        "hosts": {
            "vars": {"fabric_managed": False},
            "hosts": {
                name: {"fabric_nics": [{"netdev": "ens1", "family": "mlx5", "speed": speed_of[name]}]} for name in hosts
            },
        },
    }
    return yaml.safe_dump(data, sort_keys=False)
