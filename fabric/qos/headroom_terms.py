"""What a headroom question and its answer are, and how ASICs are called. No formula, no network OS."""

import re
from dataclasses import dataclass
from typing import Final

from fabric.qos.known import UNKNOWN, Known
from fabric.registry import nearest

__all__ = ("PAUSE_QUANTA", "Headroom", "HeadroomQuery", "canonical_asic", "misspelt_asic")

PAUSE_QUANTA: Final = {  # IEEE 802.3 31B.3.7: longest reaction to a pause, in quanta of 512 bit, by Mb/s
    10_000: 67,
    25_000: 80,
    40_000: 118,
    50_000: 147,
    100_000: 394,
    200_000: 453,
    400_000: 905,
    800_000: 905,
}

_SHORT_NAMES: Final = {
    "spc": "spectrum",
    "th": "tomahawk",
    "td": "trident",
    "j": "jericho",
    "jr": "jericho",
    "q": "qumran",
}
_FIRST_OF_ITS_LINE: Final = {"spectrum": "spectrum1", "tomahawk1": "tomahawk", "jericho1": "jericho"}
_LINES: Final = frozenset(_SHORT_NAMES.values())
_NAME: Final = re.compile(r"([a-z]+)(\d*)([a-z+]*)")


def canonical_asic(name: str) -> str:
    """Returns `spectrum3` for `Spectrum-3` and `spc3`, `tomahawk4` for `TH4`, `jericho2c+` for `J2C+`; "" for "".

    A name that has no such form comes back in small letters.
    """
    plain = re.sub(r"[\s_-]", "", name).lower().removeprefix("mellanox").removeprefix("nvidia")
    plain = plain.removeprefix("broadcom")
    match = _NAME.fullmatch(plain)
    if match is None:
        return plain
    line = _SHORT_NAMES.get(match[1], match[1])
    whole = f"{line}{match[2]}{match[3]}"
    return _FIRST_OF_ITS_LINE.get(whole, whole)


def misspelt_asic(name: str) -> str:
    """Returns what a name of no known line was probably to be: `spectrum3` for `spectrm3`; "" for a name of its own."""
    match = _NAME.fullmatch(canonical_asic(name))
    if match is None or match[1] in _LINES:
        return ""
    close = nearest(match[1], _LINES)
    return f"{close}{match[2]}{match[3]}" if close else ""


@dataclass(frozen=True, slots=True)
class HeadroomQuery:
    """One lossless priority group of one port.

    Attributes:
        asic: any spelling that `canonical_asic` takes; "" when nobody said.
        hwsku: SONiC HwSKU or EOS model, "" when nobody said.
        speed_mbps: line rate.
        cable_m: cable length, None when nobody said.
        mtu_bytes: port MTU.
        lanes: serdes lanes, None for the fewest that the ASIC's serdes allow.
        small_packet_percent: share of 64 B packets assumed, 0..100.
        shared_pool: the headroom is taken from a pool shared by all ports, so that nothing is reserved per port.
    """

    asic: str
    speed_mbps: int
    cable_m: int | None
    mtu_bytes: int
    hwsku: str = ""
    lanes: int | None = None
    small_packet_percent: int = 100
    shared_pool: bool = False


@dataclass(frozen=True, slots=True)
class Headroom:
    """The answer: always with the formula and what went into it.

    Attributes:
        xoff_bytes: room above the XOFF threshold; UNKNOWN where neither a model nor a table answers, then
            `notes` says why.
        xon_bytes: threshold below which the peer is resumed; UNKNOWN where the formula does not give it.
        size_bytes: reserved size of the priority group; likewise.
        formula: name of the model or table.
        inputs: (name, value) pairs.
        source: document of the formula, or file of the table.
        alpha_log2: n of alpha = 2^n that comes with a table's row, or None.
        xon_offset_bytes: XON below XOFF by this much, or None.
        notes: what was taken instead of the exact case, and what is missing.
        unconfirmed: a number rests on something that nobody checked on this board.
    """

    xoff_bytes: Known[int]
    formula: str
    source: str
    xon_bytes: Known[int] = UNKNOWN
    size_bytes: Known[int] = UNKNOWN
    inputs: tuple[tuple[str, int | float | str], ...] = ()
    alpha_log2: int | None = None
    xon_offset_bytes: int | None = None
    notes: tuple[str, ...] = ()
    unconfirmed: bool = False
