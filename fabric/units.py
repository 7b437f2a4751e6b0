"""Quantities with their units: reading them from text, and printing them. No arithmetic policy.

House rule: integers for bytes, ns, Mb/s and metres; floats only for ratios.
"""

import re
from typing import Final, NewType

__all__ = ("Bytes", "Mbps", "Metres", "format_speed", "natural_key", "parse_cable", "parse_speed")

Bytes = NewType("Bytes", int)
Mbps = NewType("Mbps", int)
Metres = NewType("Metres", int)

_SPEED: Final = re.compile(r"([0-9]+)\s*(g|m|gbps|mbps|gb/s|mb/s)?", re.IGNORECASE | re.ASCII)
_CABLE: Final = re.compile(r"([0-9]+)\s*m?", re.IGNORECASE | re.ASCII)
_DIGITS: Final = re.compile(r"([0-9]+)")
_NUMBER: Final = re.compile(r"[0-9]{1,1000}")  # Python makes no number of more than 4300 digits


def parse_speed(text: str | int) -> Mbps:
    """Returns Mb/s for `100G`, `25g`, `100000` (a bare number is Mb/s).

    Raises:
        ValueError: the text is no speed.
    """
    match = _SPEED.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"no speed: {text!r}; write 100G, or Mb/s as a number")
    number, unit = int(match[1]), (match[2] or "m").lower()
    return Mbps(number * 1000 if unit.startswith("g") else number)


def parse_cable(text: str | int) -> Metres:
    """Returns metres for `40m`, `40`.

    Raises:
        ValueError: the text is no length.
    """
    match = _CABLE.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"no cable length: {text!r}; write 40m")
    return Metres(int(match[1]))


def format_speed(speed_mbps: int) -> str:
    """Returns `100G` for 100000 Mb/s."""
    return f"{speed_mbps // 1000}G" if speed_mbps % 1000 == 0 else f"{speed_mbps}M"


def natural_key(text: str) -> tuple[tuple[int, int | str], ...]:
    """Returns a sort key that puts Ethernet4 before Ethernet12."""
    return tuple((0, int(part)) if _NUMBER.fullmatch(part) else (1, part) for part in _DIGITS.split(text) if part)
