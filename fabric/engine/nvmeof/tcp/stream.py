"""A byte stream to PDUs and back, with header and data digests. Sans-I/O; knows no command.

| input | output |
|---|---|
| `PduReader.feed(bytes)` | `(pdu, data)` for each PDU that is complete |
| `PduWriter.pack(pdu, data)` | the bytes of one PDU |
| `PduWriter.parts(pdu, data)` | what goes around its data |

Source: NVMe/TCP 1.0 sections 3.3 and 3.6; Linux host/tcp.c and target/tcp.c.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fabric.engine.nvmeof.tcp.crc32c import crc32c
from fabric.engine.nvmeof.tcp.parsing import header_bytes, parse_header
from fabric.engine.nvmeof.tcp.pdu import (
    COMMON_BYTES,
    DataPdu,
    Digests,
    Pdu,
    PduFlag,
    PduType,
)
from fabric.errors import RemoteProtocolError

__all__ = ("DIGEST_BYTES", "MAX_PDU_BYTES", "Checksum", "PduReader", "PduWriter")

DIGEST_BYTES = 4  # NVME_TCP_DIGEST_LENGTH
MAX_PDU_BYTES = 16 << 20  # ours: no PDU that either role sends is longer, and a forged length must not fill memory
Checksum = Callable[[bytes | memoryview], int]
_NO_DIGESTS = Digests()
_COMMON = struct.Struct("<BBBBI")  # type, flags, hlen, pdo, plen
_WITH_DATA = frozenset(
    {
        PduType.CAPSULE_COMMAND,
        PduType.H2C_DATA,
        PduType.C2H_DATA,
        PduType.H2C_TERMINATE,
        PduType.C2H_TERMINATE,
    }
)
# ICReq and ICResp come before digests are agreed; a termination must be readable by whoever is confused
_WITHOUT_DIGEST = frozenset({PduType.IC_REQUEST, PduType.IC_RESPONSE, PduType.H2C_TERMINATE, PduType.C2H_TERMINATE})


@dataclass(slots=True)
class PduWriter:
    """Makes PDUs for one connection.

    Attributes:
        digests: what ICReq and ICResp agreed on; change it after the exchange.
        alignment: HPDA or CPDA of the other side, dwords counted from 0: where data may begin.
        checksum: CRC-32C.
    """

    digests: Digests = _NO_DIGESTS
    alignment: int = 0
    checksum: Checksum = crc32c

    def pack(self, pdu: Pdu, data: bytes = b"") -> bytes:
        """Returns the bytes of `pdu`, with `data` and the digests of this connection."""
        head, tail = self.parts(pdu, data)
        return head + data + tail

    def parts(self, pdu: Pdu, data: bytes | memoryview = b"") -> tuple[bytes, bytes]:
        """Returns what goes before and behind `data`, for a sender that gathers instead of copying."""
        plain = pdu.pdu_type in _WITHOUT_DIGEST
        header_digest, data_digest = self.digests.header and not plain, self.digests.data and not plain and bool(data)
        own = pdu.pack()
        hlen = COMMON_BYTES + len(own)
        head = hlen + DIGEST_BYTES * header_digest
        unit = (self.alignment + 1) * 4
        offset = -(-head // unit) * unit if data else 0
        plen = (offset + len(data) + DIGEST_BYTES * data_digest) if data else head
        flags = (PduFlag.HEADER_DIGEST if header_digest else 0) | (PduFlag.DATA_DIGEST if data_digest else 0)
        if isinstance(pdu, DataPdu):
            flags |= pdu.flags
        header = _COMMON.pack(pdu.pdu_type, flags, hlen, offset, plen) + own
        if header_digest:
            header += self.checksum(header).to_bytes(DIGEST_BYTES, "little")
        tail = self.checksum(data).to_bytes(DIGEST_BYTES, "little") if data_digest else b""
        return header.ljust(offset, b"\0"), tail


@dataclass(slots=True)
class _Frame:
    kind: int
    flags: int
    hlen: int
    offset: int
    plen: int

    @property
    def header_digest(self) -> int:
        return DIGEST_BYTES if self.flags & PduFlag.HEADER_DIGEST else 0

    @property
    def data_digest(self) -> int:
        return DIGEST_BYTES if self.flags & PduFlag.DATA_DIGEST else 0


class PduReader:
    """Cuts one direction of a connection into PDUs.

    Args:
        digests: what ICReq and ICResp agreed on; a PDU that says otherwise is refused.
        checksum: CRC-32C.
    """

    def __init__(self, digests: Digests | None = None, checksum: Checksum = crc32c) -> None:
        self.digests = digests or Digests()
        self._checksum = checksum
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Pdu, bytes]]:
        """Yields every PDU that `data` completes, with its data.

        Raises:
            RemoteProtocolError: the stream cannot be followed, or a digest is wrong; the connection is lost.
        """
        self._pending += data
        while len(self._pending) >= COMMON_BYTES:
            frame = self._frame()
            if len(self._pending) < frame.plen:
                return
            raw = bytes(self._pending[: frame.plen])
            del self._pending[: frame.plen]
            yield self._open(frame, raw)

    def _frame(self) -> _Frame:
        frame = _Frame(*_COMMON.unpack_from(self._pending))
        if frame.hlen != header_bytes(frame.kind):
            raise RemoteProtocolError("a PDU header has a wrong length", found=str(frame.hlen))
        least = frame.hlen + frame.header_digest
        if not least <= frame.plen <= MAX_PDU_BYTES:
            raise RemoteProtocolError(
                "a PDU has a wrong length", expected=f"{least} to {MAX_PDU_BYTES}", found=str(frame.plen)
            )
        self._check_digest_flags(frame)
        return frame

    def _check_digest_flags(self, frame: _Frame) -> None:
        plain = frame.kind in _WITHOUT_DIGEST
        if bool(frame.header_digest) is not (self.digests.header and not plain):
            raise RemoteProtocolError("a PDU disagrees about the header digest", found=f"flags 0x{frame.flags:02x}")
        if frame.data_digest and (plain or not self.digests.data):
            raise RemoteProtocolError("a PDU disagrees about the data digest", found=f"flags 0x{frame.flags:02x}")

    def _open(self, frame: _Frame, raw: bytes) -> tuple[Pdu, bytes]:
        if frame.header_digest:
            self._check(raw[: frame.hlen], raw[frame.hlen : frame.hlen + DIGEST_BYTES], "header")
        data = self._data(frame, raw)
        pdu = parse_header(frame.kind, frame.flags, raw[COMMON_BYTES : frame.hlen])
        if isinstance(pdu, DataPdu) and pdu.length != len(data):
            raise RemoteProtocolError("a data PDU has another length", expected=str(pdu.length), found=str(len(data)))
        return pdu, data

    def _data(self, frame: _Frame, raw: bytes) -> bytes:
        head = frame.hlen + frame.header_digest
        if frame.plen == head:
            return b""
        start, end = frame.offset or head, frame.plen - frame.data_digest
        if frame.kind not in _WITH_DATA or not head <= start <= end:
            raise RemoteProtocolError("a PDU has data where none can be", found=f"type 0x{frame.kind:02x}")
        if self.digests.data and frame.kind not in _WITHOUT_DIGEST and not frame.data_digest:
            raise RemoteProtocolError("a PDU lacks the agreed data digest", found=f"flags 0x{frame.flags:02x}")
        data = raw[start:end]
        if frame.data_digest:
            self._check(data, raw[end:], "data")
        return data

    def _check(self, data: bytes, digest: bytes, what: str) -> None:
        found, expected = int.from_bytes(digest, "little"), self._checksum(data)
        if found != expected:
            raise RemoteProtocolError(f"a {what} digest is wrong", expected=f"0x{expected:08x}", found=f"0x{found:08x}")
