"""What a SONiC device says of itself and of its neighbours: DEVICE_METADATA, port aliases, LLDP in two forms."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fabric.errors import FabricError
from fabric.nos.base import Identity, LldpSeen
from fabric.nos.sonic.config import tables
from fabric.nos.sonic.names import DEVICE_METADATA, PORT
from fabric.nos.sonic.show.buffers import lldp_neighbours
from fabric.tree import Tree

__all__ = ("LLDP_COMMAND", "identity", "lldp")

LLDP_COMMAND: Final = "show lldp table"


def identity(running: Tree) -> Identity:
    """Returns host name, HwSKU and port aliases; the version of the software is not in CONFIG_DB.

    Source of the aliases: SONiC's lldpmgrd advertises the alias of a port as its port id
    (sonic-buildimage dockers/docker-lldp/lldpmgrd: `lldpcli configure ports Ethernet0 lldp portidsubtype local ALIAS`).
    """
    found = tables(running)
    about = found.get(DEVICE_METADATA, {}).get("localhost", {})
    aliases = {
        alias: port for port, row in found.get(PORT, {}).items() if isinstance(alias := row.get("alias"), str) and alias
    }
    return Identity(hostname=_text(about, "hostname"), hwsku=_text(about, "hwsku"), aliases=aliases)


def lldp(output: str) -> tuple[LldpSeen, ...]:
    """Returns the neighbours of `show lldp table`, or of `lldpctl -f json` when the text is JSON.

    Raises:
        FabricError: the text is neither.
    """
    if output.lstrip().startswith("{"):
        return tuple(_of_lldpctl(output))
    if "LocalPort" not in output:
        raise FabricError(
            "this is no output of LLDP", expected="`show lldp table` or `lldpctl -f json`", found=output[:40].strip()
        )
    return tuple(
        LldpSeen(port, one.system, one.port_id, one.description)
        for port, seen in lldp_neighbours(output).items()
        for one in seen
    )


def _of_lldpctl(output: str) -> Iterator[LldpSeen]:
    """Yields the neighbours of lldpd's JSON, whose lists of one are objects (lldpd src/client/json_writer.c)."""
    try:
        interfaces = json.loads(output)["lldp"].get("interface", [])
        for one in interfaces if isinstance(interfaces, list) else [interfaces]:
            for port, row in one.items():
                system = next(iter(row.get("chassis", {})), "")
                far = row.get("port", {})
                described = far.get("descr", "")
                identifier = far.get("id", {})
                if isinstance(identifier, list):
                    identifier = identifier[0]
                yield LldpSeen(port, "" if system == "id" else system, str(identifier.get("value", "")), str(described))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise FabricError("this is no JSON of lldpctl", found=str(error), expected="`lldpctl -f json`") from error


def _text(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    return value if isinstance(value, str) else ""
