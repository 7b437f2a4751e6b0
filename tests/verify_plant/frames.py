"""RoCEv2 frames of the end points: every field that switches and faults read is there, the invariant CRC is zero.

Layout as in fabric.lab.wire.roce (IBA volume 1, 9.2 and annex A17).
"""

import struct
from dataclasses import dataclass

from fabric.lab.wire.frame import checksum

SEND, WRITE, READ_REQUEST, READ_RESPONSE, ACK, CM, CNP = 0x04, 0x07, 0x0C, 0x0E, 0x11, 0x64, 0x81
DATA_DSCP, CNP_DSCP = 26, 48
PAYLOAD_BYTES = 512

_EXTRA = {READ_REQUEST: 16, ACK: 4, CM: 8}
_BTH_AT = 42  # behind Ethernet 14, IPv4 20, UDP 8
_BTH = struct.Struct("!BBHII")


@dataclass(frozen=True, slots=True)
class Packet:
    """What a receiver reads of a frame.

    Attributes:
        wants_ack: the sender asks for one.
        word: of ACK, 0 or the NAK code; of READ_REQUEST, how many responses; of CM, the step.
    """

    opcode: int
    queue_pair: int
    psn: int
    wants_ack: bool
    word: int
    payload: bytes
    is_marked: bool
    dscp: int


class Framer:
    """Makes the frames of one direction of one connection."""

    def __init__(self, source: int, destination: int) -> None:
        self._link = mac(destination) + mac(source) + b"\x08\x00"
        self._addresses = bytes((10, 0, 0, source + 1, 10, 0, 0, destination + 1))
        self._heads: dict[tuple[int, int], bytes] = {}

    def frame(self, opcode: int, queue_pair: int, psn: int, *, wants_ack: bool, word: int, payload: bytes) -> bytes:
        extra = struct.pack("!I", word) + bytes(_EXTRA[opcode] - 4) if opcode in _EXTRA else b""
        dscp = CNP_DSCP if opcode == CNP else DATA_DSCP
        body = 12 + len(extra) + len(payload) + 4
        head = self._heads.get((dscp, body))
        if head is None:
            head = self._heads[dscp, body] = self._head(dscp, body)
        number = 1 if opcode == CM else queue_pair
        bth = _BTH.pack(opcode, 0, 0xFFFF, number, psn | (wants_ack << 31))
        return head + bth + extra + payload + bytes(4)

    def _head(self, dscp: int, body: int) -> bytes:
        ecn = 0 if dscp == CNP_DSCP else 2
        ip = struct.pack("!BBHHHBBH", 0x45, dscp << 2 | ecn, 28 + body, 0, 0x4000, 64, 17, 0) + self._addresses
        ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
        return self._link + ip + struct.pack("!HHHH", 49152, 4791, 8 + body, 0)


def read(frame: bytes) -> Packet | None:
    """Returns what a NIC reads, None when it is no RoCEv2."""
    if len(frame) < _BTH_AT + 16 or frame[36:38] != b"\x12\xb7":
        return None
    opcode, _, _, queue_pair, last = _BTH.unpack_from(frame, _BTH_AT)
    at = _BTH_AT + 12
    extra = _EXTRA.get(opcode, 0)
    word = int.from_bytes(frame[at : at + 4], "big") if extra else 0
    octet = frame[15]
    payload = frame[at + extra : -4]
    return Packet(opcode, queue_pair, last & 0xFFFFFF, bool(last >> 31), word, payload, octet & 3 == 3, octet >> 2)


def lossy(source: int, destination: int, size_bytes: int) -> bytes:
    """Returns a frame of other traffic: UDP that is no RoCEv2, best effort."""
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 28 + size_bytes, 0, 0x4000, 64, 17, 0)
    ip += bytes((10, 0, 0, source + 1, 10, 0, 0, destination + 1))
    ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
    return (
        mac(destination)
        + mac(source)
        + b"\x08\x00"
        + ip
        + struct.pack("!HHHH", 5000, 5000, 8 + size_bytes, 0)
        + bytes(size_bytes)
    )


def mac(number: int) -> bytes:
    return bytes((2, 0, 0, 0, 1, number))


def dscp_of(frame: bytes) -> int:
    return frame[15] >> 2


def source_of(frame: bytes) -> int:
    return frame[11]
