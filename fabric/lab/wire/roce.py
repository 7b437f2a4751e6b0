"""RoCEv2 frames made and read here, so that the data plane can be fed without VMs. Knows no switch.

Layout: InfiniBand Architecture Specification volume 1, annex A17 (RoCEv2) and section 9.2 (base transport header).
"""

import struct
import zlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fabric.lab.wire.frame import checksum, parse

__all__ = (
    "ROCE_PORT",
    "Bth",
    "PacketKind",
    "RoceFlow",
    "invariant_crc",
    "payload_span",
    "read_bth",
    "with_new_icrc",
)

ROCE_PORT: Final = 4791  # IANA service name roce
_UDP: Final = 17
_UDP_BYTES: Final = 8
_BTH: Final = struct.Struct("!BBHII")
_ICRC_BYTES: Final = 4
_WRITE_MIDDLE: Final = 0x07  # IBA table 38: RC RDMA WRITE Middle, no extended header

_RETH: Final = 16
_AETH: Final = 4
_IMMEDIATE: Final = 4
_DETH: Final = 8
_EXTENDED_BYTES: Final = {  # IBA table 38, reliable connection and datagram: what stands between BTH and payload
    0x03: _IMMEDIATE,
    0x05: _IMMEDIATE,
    0x06: _RETH,
    0x09: _IMMEDIATE,
    0x0A: _RETH,
    0x0B: _RETH + _IMMEDIATE,
    0x0C: _RETH,
    0x0D: _AETH,
    0x0F: _AETH,
    0x10: _AETH,
    0x11: _AETH,
    0x16: _IMMEDIATE,  # the key that is invalidated
    0x17: _IMMEDIATE,
    0x64: _DETH,
    0x65: _DETH + _IMMEDIATE,
}


_CM_QUEUE_PAIR: Final = 1  # IBA section 12.6: the general services interface
_SENDS: Final = frozenset((*range(0x06), 0x16, 0x17))  # IBA table 38: RC SEND, the last two with invalidate
_WRITES: Final = frozenset(range(0x06, 0x0C))  # RC RDMA WRITE
_READ_RESPONSES: Final = frozenset(range(0x0D, 0x11))
_OPCODES: Final = {
    "send": _SENDS,
    "write": _WRITES,
    "read-request": frozenset({0x0C}),
    "read-response": _READ_RESPONSES,
    "ack": frozenset({0x11}),
    "cnp": frozenset({0x81}),  # IBA annex A17.9.3
}


class PacketKind(StrEnum):
    """Which frames are meant."""

    ANY = "any"  # every frame, RoCEv2 or not
    ROCE = "roce"
    DATA = "data"  # RoCEv2 with a payload
    CM = "cm"  # connection management
    SEND = "send"
    WRITE = "write"
    READ_REQUEST = "read-request"
    READ_RESPONSE = "read-response"
    ACK = "ack"  # negative ones too
    CNP = "cnp"

    def matches(self, frame: bytes) -> bool:
        """Returns whether the frame is of this kind."""
        if self is PacketKind.ANY:
            return True
        if self is PacketKind.DATA:
            return payload_span(frame) is not None
        bth = read_bth(frame)
        if bth is None:
            return False
        if self is PacketKind.CM:
            return bth.queue_pair == _CM_QUEUE_PAIR
        return self is PacketKind.ROCE or bth.opcode in _OPCODES[self.value]


@dataclass(frozen=True, slots=True)
class Bth:
    """The base transport header.

    Attributes:
        at: its offset in the frame.
        pad: bytes of padding behind the payload.
    """

    opcode: int
    pad: int
    queue_pair: int
    psn: int
    at: int


@dataclass(frozen=True, slots=True)
class RoceFlow:
    """One direction of one connection.

    Attributes:
        source_mac: 6 B. destination_mac: 6 B.
        source_ip: 4 B or 16 B. destination_ip: likewise.
        dscp: 0..63. ecn: ECN field that the sender sets.
        vlan: (priority, VLAN id), or None for untagged.
        queue_pair: destination queue pair. source_port: UDP source port, the flow's entropy.
    """

    source_mac: bytes
    destination_mac: bytes
    source_ip: bytes = bytes((10, 0, 0, 1))
    destination_ip: bytes = bytes((10, 0, 0, 2))
    dscp: int = 26
    ecn: int = 2
    vlan: tuple[int, int] | None = None
    queue_pair: int = 0x12
    source_port: int = 49152

    def frame(self, psn: int, payload: bytes) -> bytes:
        """Returns an RDMA WRITE middle packet with a right IP checksum and invariant CRC."""
        pad = -len(payload) % 4
        header = _BTH.pack(_WRITE_MIDDLE, pad << 4, 0xFFFF, self.queue_pair, psn & 0xFFFFFF)
        body = header + payload + bytes(pad + _ICRC_BYTES)
        udp = struct.pack("!HHHH", self.source_port, ROCE_PORT, _UDP_BYTES + len(body), 0) + body
        return with_new_icrc(self._link_header() + self._ip(len(udp)) + udp)

    def _link_header(self) -> bytes:
        kind = struct.pack("!H", 0x0800 if len(self.source_ip) == 4 else 0x86DD)
        tag = b"" if self.vlan is None else struct.pack("!HH", 0x8100, self.vlan[0] << 13 | self.vlan[1])
        return self.destination_mac + self.source_mac + tag + kind

    def _ip(self, payload_bytes: int) -> bytes:
        octet = self.dscp << 2 | self.ecn
        if len(self.source_ip) == 16:
            first = 6 << 28 | octet << 20
            return struct.pack("!IHBB", first, payload_bytes, _UDP, 64) + self.source_ip + self.destination_ip
        head = struct.pack("!BBHHHBBH", 0x45, octet, 20 + payload_bytes, 0, 0x4000, 64, _UDP, 0)
        head += self.source_ip + self.destination_ip
        return head[:10] + checksum(head).to_bytes(2, "big") + head[12:]

    def reversed(self) -> "RoceFlow":
        """Returns the other direction."""
        return replace(
            self,
            source_mac=self.destination_mac,
            destination_mac=self.source_mac,
            source_ip=self.destination_ip,
            destination_ip=self.source_ip,
        )


def read_bth(frame: bytes) -> Bth | None:
    """Returns the base transport header, or None when the frame is no whole RoCEv2 packet."""
    udp_at = _udp_at(frame)
    if udp_at is None:
        return None
    at = udp_at + _UDP_BYTES
    opcode, flags, _, queue_pair, psn = _BTH.unpack_from(frame, at)
    return Bth(opcode, flags >> 4 & 3, queue_pair & 0xFFFFFF, psn & 0xFFFFFF, at)


def _udp_at(frame: bytes) -> int | None:
    headers = parse(frame)
    if headers is None or headers.ip_version == 0:
        return None
    at = headers.l3_at
    protocol = frame[at + 9] if headers.ip_version == 4 else frame[at + 6]
    at += (frame[at] & 0xF) * 4 if headers.ip_version == 4 else 40
    if protocol != _UDP or len(frame) < at + _UDP_BYTES + _BTH.size + _ICRC_BYTES:
        return None
    is_whole = _end(frame, at) >= at + _UDP_BYTES + _BTH.size + _ICRC_BYTES  # by the length that UDP says, too
    return at if is_whole and int.from_bytes(frame[at + 2 : at + 4], "big") == ROCE_PORT else None


def _end(frame: bytes, udp_at: int) -> int:
    """Returns where the UDP datagram ends: behind it may stand Ethernet padding."""
    return min(len(frame), udp_at + int.from_bytes(frame[udp_at + 4 : udp_at + 6], "big"))


def payload_span(frame: bytes) -> tuple[int, int] | None:
    """Returns (start, end) of the payload of a RoCEv2 packet, or None when it has none."""
    bth = read_bth(frame)
    if bth is None:
        return None
    start = bth.at + _BTH.size + _EXTENDED_BYTES.get(bth.opcode, 0)
    end = _end(frame, bth.at - _UDP_BYTES) - _ICRC_BYTES - bth.pad
    return (start, end) if end > start else None


def invariant_crc(frame: bytes) -> bytes | None:
    """Returns the 4 B invariant CRC that the frame should end with, or None when it is no RoCEv2 packet.

    Source: InfiniBand Architecture Specification volume 1, annex A17.3.3; Linux drivers/infiniband/sw/rxe/rxe_icrc.c.
    """
    udp_at = _udp_at(frame)
    if udp_at is None:
        return None
    l3_at = 0 if (headers := parse(frame)) is None else headers.l3_at
    masked = bytearray(frame[l3_at : _end(frame, udp_at) - _ICRC_BYTES])
    if masked[0] >> 4 == 4:
        masked[1] = masked[8] = masked[10] = masked[11] = 0xFF  # type of service, time to live, checksum
    else:
        masked[0] |= 0x0F  # traffic class and flow label
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF  # hop limit
    udp = udp_at - l3_at
    masked[udp + 6 : udp + 8] = b"\xff\xff"  # UDP checksum
    masked[udp + _UDP_BYTES + 4] = 0xFF  # the byte with FECN and BECN
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def with_new_icrc(frame: bytes) -> bytes:
    """Returns the frame with its invariant CRC made right; unchanged when it is no RoCEv2 packet."""
    crc = invariant_crc(frame)
    udp_at = _udp_at(frame)
    if crc is None or udp_at is None:
        return frame
    end = _end(frame, udp_at)
    return frame[: end - _ICRC_BYTES] + crc + frame[end:]
