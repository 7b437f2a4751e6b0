"""Where the fields of an Ethernet frame stand, and how the switch rewrites two of them. Knows no queue and no port.

Frames are `bytes` without preamble and frame check sequence, as a virtual NIC hands them over.
"""

from typing import Final, NamedTuple

__all__ = ("CE", "ECT0", "ECT1", "NOT_ECT", "Headers", "checksum", "parse", "with_dscp", "with_mark")

NOT_ECT: Final = 0  # RFC 3168 section 5: the ECN field
ECT1: Final = 1
ECT0: Final = 2
CE: Final = 3

_VLAN_TYPES: Final = (0x8100, 0x88A8)  # IEEE 802.1Q-2018 table 9-1: C-tag, S-tag
_IPV4: Final = 0x0800
_IPV6: Final = 0x86DD
_ETHERNET_BYTES: Final = 14
_TAG_BYTES: Final = 4
_IPV4_BYTES: Final = 20
_IPV6_BYTES: Final = 40


class Headers(NamedTuple):
    """What the switch reads of one frame: two are made of each, and a frozen dataclass takes longer to make.

    Attributes:
        destination: 6 B. source: 6 B.
        pcp: priority of the outer VLAN tag, None when untagged.
        ethertype: the one behind the tags.
        l3_at: offset of what follows the Ethernet header.
        ip_version: 4, 6, or 0 when it is no IP.
        traffic_class: DSCP and ECN as one octet; 0 when it is no IP.
    """

    destination: bytes
    source: bytes
    pcp: int | None
    ethertype: int
    l3_at: int
    ip_version: int
    traffic_class: int

    @property
    def dscp(self) -> int | None:
        """Returns the DSCP, None when the frame carries no IP."""
        return self.traffic_class >> 2 if self.ip_version else None

    @property
    def ecn(self) -> int:
        """Returns the ECN field; NOT_ECT when the frame carries no IP."""
        return self.traffic_class & 3

    @property
    def is_group(self) -> bool:
        """Returns whether it is sent to a multicast or broadcast address."""
        return bool(self.destination[0] & 1)


def parse(frame: bytes) -> Headers | None:
    """Returns the fields of a frame, or None when it is shorter than an Ethernet header."""
    size = len(frame)
    if size < _ETHERNET_BYTES:
        return None
    at, pcp = 12, None
    kind = frame[at] << 8 | frame[at + 1]
    while kind in _VLAN_TYPES and size >= at + 2 + _TAG_BYTES:
        pcp = frame[at + 2] >> 5 if pcp is None else pcp
        at += _TAG_BYTES
        kind = frame[at] << 8 | frame[at + 1]
    at += 2
    version = octet = 0
    if kind == _IPV4 and size >= at + _IPV4_BYTES and frame[at] >> 4 == 4:
        version, octet = 4, frame[at + 1]
    elif kind == _IPV6 and size >= at + _IPV6_BYTES and frame[at] >> 4 == 6:
        version, octet = 6, (frame[at] << 4 | frame[at + 1] >> 4) & 0xFF
    return Headers(frame[:6], frame[6:12], pcp, kind, at, version, octet)


def with_mark(frame: bytes, headers: Headers) -> bytes | None:
    """Returns the frame with CE set, or None when its transport does not understand ECN (RFC 3168 section 5)."""
    if headers.ip_version == 0 or headers.ecn == NOT_ECT:
        return None
    return _with_octet(frame, headers, headers.traffic_class | CE)


def with_dscp(frame: bytes, headers: Headers, dscp: int) -> bytes:
    """Returns the frame with another DSCP; unchanged when it carries no IP."""
    if headers.ip_version == 0:
        return frame
    return _with_octet(frame, headers, dscp << 2 | headers.ecn)


def _with_octet(frame: bytes, headers: Headers, octet: int) -> bytes:
    if octet == headers.traffic_class:
        return frame
    at = headers.l3_at
    changed = bytearray(frame)
    if headers.ip_version == 6:
        changed[at] = 0x60 | octet >> 4
        changed[at + 1] = (octet & 0xF) << 4 | changed[at + 1] & 0xF
        return bytes(changed)
    old_word = changed[at] << 8 | changed[at + 1]
    changed[at + 1] = octet
    old_sum = changed[at + 10] << 8 | changed[at + 11]
    new_sum = _updated(old_sum, old_word=old_word, new_word=old_word & 0xFF00 | octet)
    changed[at + 10 : at + 12] = new_sum.to_bytes(2, "big")
    return bytes(changed)


def _updated(old_sum: int, *, old_word: int, new_word: int) -> int:
    """Returns HC' = ~(~HC + ~m + m'). Source: RFC 1624 section 3, equation 3."""
    total = (~old_sum & 0xFFFF) + (~old_word & 0xFFFF) + new_word
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def checksum(data: bytes) -> int:
    """Returns the Internet checksum of `data`, the whole sum. Source: RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(data[0::2]) * 256 + sum(data[1::2])
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
