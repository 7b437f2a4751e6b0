"""CRC-32C, the digest of NVMe/TCP, in plain Python: the reference; a transport may hand a faster one to the stream.

Source: RFC 3720 appendix B.4 (test vectors); NVMe/TCP 1.0 section 3.3.1.1 names the same polynomial.
"""

__all__ = ("crc32c",)

_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed (RFC 3720 section 12.1)


def _table() -> tuple[int, ...]:
    entries = []
    for byte in range(256):
        value = byte
        for _bit in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        entries.append(value)
    return tuple(entries)


_TABLE = _table()


def crc32c(data: bytes | memoryview) -> int:
    """Returns the CRC-32C of `data`."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF
