"""What an EOS device says of itself and of its neighbours: the head of its configuration, LLDP as JSON or text."""

import json
import re
from collections.abc import Iterator
from typing import Final

from fabric.errors import FabricError
from fabric.nos.base import Identity, LldpSeen
from fabric.nos.eos.show.lldp import lldp_neighbours
from fabric.tree import Tree

__all__ = ("LLDP_COMMAND", "identity", "lldp")

LLDP_COMMAND: Final = "show lldp neighbors detail | json"
# the second line of `show running-config`: remembered, in no sample (unconfirmed)
_HEAD: Final = re.compile(r"^! device: \S+ \(([^,()\n]+), EOS-([^,()\n]+)\)", re.MULTILINE)


def identity(running: Tree, text: str) -> Identity:
    """Returns host name, model and version as far as the configuration has them."""
    hostname = running.get(("hostname",))
    head = _HEAD.search(text)
    return Identity(
        hostname=hostname if isinstance(hostname, str) else "",
        hwsku=head[1].strip() if head is not None else "",
        version=head[2].strip() if head is not None else "",
    )


def lldp(output: str) -> tuple[LldpSeen, ...]:
    """Returns the neighbours of `show lldp neighbors detail`, as JSON or as text.

    Raises:
        FabricError: the text is neither.
    """
    if output.lstrip().startswith("{"):
        return tuple(_of_json(output))
    if " LLDP neighbors" not in output:
        raise FabricError(
            "this is no output of LLDP",
            expected="`show lldp neighbors detail`, with or without `| json`",
            found=output[:40].strip(),
        )
    return tuple(LldpSeen(one.port, one.system, one.peer_port) for one in lldp_neighbours(output))


def _of_json(output: str) -> Iterator[LldpSeen]:
    """Yields the neighbours; keys as NAPALM's EOS driver reads them (unconfirmed on a device)."""
    try:
        for port, row in json.loads(output)["lldpNeighbors"].items():
            for one in row["lldpNeighborInfo"]:
                far = one.get("neighborInterfaceInfo", {})
                identifier = str(far.get("interfaceId", "")).strip('"')
                described = str(far.get("interfaceDescription", ""))
                yield LldpSeen(port, str(one.get("systemName", "")), identifier, described)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FabricError(
            "this is no JSON of EOS's LLDP", found=str(error), expected="`show lldp neighbors detail | json`"
        ) from error
