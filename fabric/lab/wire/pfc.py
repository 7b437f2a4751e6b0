"""The PFC frame on the wire. Knows no queue.

Source: IEEE 802.1Q-2018 clause 36 and IEEE 802.3-2018 annex 31D: MAC control, opcode 0x0101.
"""

import struct
from collections.abc import Mapping
from typing import Final

__all__ = ("MAX_QUANTA", "is_mac_control", "pause_ns", "pfc_frame", "read_pfc")

MAX_QUANTA: Final = 0xFFFF
QUANTUM_BITS: Final = 512  # IEEE 802.3 annex 31B.2: one pause quantum
_DESTINATION: Final = bytes.fromhex("0180c2000001")
_MAC_CONTROL: Final = 0x8808
_OPCODE: Final = 0x0101
_BODY: Final = struct.Struct("!HHH8H")
_MIN_FRAME_BYTES: Final = 60  # IEEE 802.3 clause 3.2.7: 64 with the frame check sequence


def pfc_frame(source_mac: bytes, quanta: Mapping[int, int]) -> bytes:
    """Returns a PFC frame.

    Args:
        source_mac: 6 B.
        quanta: PFC priority → pause time in quanta of 512 bit times; 0 resumes.
    """
    vector = sum(1 << priority for priority in quanta)
    times = [quanta.get(priority, 0) for priority in range(8)]
    return (_DESTINATION + source_mac + _BODY.pack(_MAC_CONTROL, _OPCODE, vector, *times)).ljust(
        _MIN_FRAME_BYTES, b"\0"
    )


def is_mac_control(frame: bytes) -> bool:
    """Returns whether the frame is a MAC control frame, which no bridge forwards."""
    return len(frame) >= 14 and int.from_bytes(frame[12:14], "big") == _MAC_CONTROL


def read_pfc(frame: bytes) -> dict[int, int] | None:
    """Returns PFC priority → pause quanta of the enabled priorities, or None when it is no PFC frame."""
    if len(frame) < 12 + _BODY.size or not is_mac_control(frame):
        return None
    _, opcode, vector, *times = _BODY.unpack_from(frame, 12)
    if opcode != _OPCODE:
        return None
    return {priority: times[priority] for priority in range(8) if vector >> priority & 1}


def pause_ns(quanta: int, rate_bps: int) -> int:
    """Returns for how long so many quanta pause a link of that rate, rounded down."""
    return quanta * QUANTUM_BITS * 1_000_000_000 // rate_bps
