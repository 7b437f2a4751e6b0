"""`show lldp neighbors detail` of EOS, as text. Source: samples/eos/show/lldp_neighbors_detail.txt."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fabric.qos import UNKNOWN, Known

__all__ = ("LldpNeighbour", "lldp_neighbours")

_INTERFACE: Final = re.compile(r"^Interface (\S+) detected \d+ LLDP neighbors:", re.MULTILINE)
_NEIGHBOUR: Final = re.compile(r"^  Neighbor (\S+), age", re.MULTILINE)
_PORT_ID: Final = re.compile(r'Port ID +: "?([^"\n]*)"?')
_SYSTEM: Final = re.compile(r'System Name: "([^"\n]*)"')
_FRAME: Final = re.compile(r"Maximum Frame Size: ([0-9]{1,9}) bytes")


@dataclass(frozen=True, slots=True)
class LldpNeighbour:
    """Who answers behind a port.

    Attributes:
        port: ours. system, peer_port: theirs, "" when not advertised.
        max_frame_bytes: their IEEE 802.3 maximum frame size; UNKNOWN when not advertised.
        dcbx: whether they advertise DCBX.
    """

    port: str
    system: str
    peer_port: str
    max_frame_bytes: Known[int]
    dcbx: bool


def lldp_neighbours(output: str) -> tuple[LldpNeighbour, ...]:
    """Returns every neighbour in the order of the device; several may stand behind one port."""
    return tuple(
        _neighbour(port, part) for port, block in _split(_INTERFACE, output) for _, part in _split(_NEIGHBOUR, block)
    )


def _split(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    starts = list(pattern.finditer(text))
    ends = [match.start() for match in starts[1:]]
    for match, end in zip(starts, (*ends, len(text)), strict=False):
        yield match[1], text[match.end() : end]


def _neighbour(port: str, text: str) -> LldpNeighbour:
    # the aggregation TLV prints `Port ID : 0` of its own, after the port's
    system, peer, frame = _SYSTEM.search(text), _PORT_ID.search(text), _FRAME.search(text)
    return LldpNeighbour(
        port=port,
        system=system[1] if system is not None else "",
        peer_port=peer[1].strip() if peer is not None else "",
        max_frame_bytes=int(frame[1]) if frame is not None else UNKNOWN,
        dcbx="DCBX" in text,
    )
