"""NVMe/TCP: the digest, the PDUs byte for byte, and what a reader refuses.

The expected bytes are written from the offsets of Linux include/linux/nvme-tcp.h.
"""

import struct

import pytest

from fabric.engine.nvmeof.tcp import (
    CapsuleCommand,
    CapsuleResponse,
    DataPdu,
    Digests,
    FatalStatus,
    IcRequest,
    IcResponse,
    Pdu,
    PduReader,
    PduWriter,
    ReadyToTransfer,
    Terminate,
    crc32c,
)
from fabric.errors import RemoteProtocolError


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
    ],
)
def test_the_digest_has_the_values_of_rfc_3720(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@pytest.mark.parametrize(
    ("pdu", "data", "expected"),
    [
        (
            IcRequest(max_r2t=4, digests=Digests(True, True), alignment=2),
            b"",
            struct.pack("<BBBBIHBBI112x", 0, 0, 128, 0, 128, 0, 2, 3, 3),
        ),
        (
            IcResponse(0x20000, Digests(True, False), 1),
            b"",
            struct.pack("<BBBBIHBBI112x", 1, 0, 128, 0, 128, 0, 1, 1, 0x20000),
        ),
        (CapsuleCommand(b"c" * 64), b"", struct.pack("<BBBBI64s", 4, 0, 72, 0, 72, b"c" * 64)),
        (
            CapsuleCommand(b"c" * 64),
            b"in-capsule..",
            struct.pack("<BBBBI64s12s", 4, 0, 72, 72, 84, b"c" * 64, b"in-capsule.."),
        ),
        (CapsuleResponse(b"r" * 16), b"", struct.pack("<BBBBI16s", 5, 0, 24, 0, 24, b"r" * 16)),
        (
            DataPdu(False, 0x1234, 0x5678, 4096, 8),
            b"h2c-data",
            struct.pack("<BBBBIHHII4x8s", 6, 4, 24, 24, 32, 0x1234, 0x5678, 4096, 8, b"h2c-data"),
        ),
        (
            DataPdu(True, 0x1234, 0, 0, 8, True, True),
            b"c2h-data",
            struct.pack("<BBBBIHHII4x8s", 7, 12, 24, 24, 32, 0x1234, 0, 0, 8, b"c2h-data"),
        ),
        (
            ReadyToTransfer(1, 2, 3, 4),
            b"",
            struct.pack("<BBBBIHHII4x", 9, 0, 24, 0, 24, 1, 2, 3, 4),
        ),
        (
            Terminate(False, FatalStatus.SEQUENCE_ERROR, 0x01020304),
            b"",
            struct.pack("<BBBBIHI10x", 2, 0, 24, 0, 24, 2, 0x01020304),
        ),
        (Terminate(True, 1, 4), b"head", struct.pack("<BBBBIHI10x4s", 3, 0, 24, 24, 28, 1, 4, b"head")),
    ],
)
def test_a_pdu_has_the_bytes_of_the_header(pdu: Pdu, data: bytes, expected: bytes) -> None:
    assert PduWriter().pack(pdu, data) == expected
    assert list(PduReader().feed(expected)) == [(pdu, data)]


def test_digests_and_padding() -> None:
    raw = PduWriter(Digests(True, True), alignment=31).pack(DataPdu(True, 1, 0, 0, 4), b"data")

    assert (raw[1], raw[3], len(raw)) == (1 | 2 | 4, 128, 128 + 4 + 4)
    assert raw[24:28] == crc32c(raw[:24]).to_bytes(4, "little")
    assert raw[132:] == crc32c(b"data").to_bytes(4, "little")


BOTH = Digests(True, True)
GOOD = PduWriter(BOTH).pack(DataPdu(True, 1, 0, 0, 4), b"data")


@pytest.mark.parametrize(
    ("raw", "digests", "message"),
    [
        (b"\x08" + bytes(7), Digests(), "unknown NVMe/TCP PDU type"),
        (struct.pack("<BBBBI", 4, 0, 71, 0, 72), Digests(), "header has a wrong length"),
        (struct.pack("<BBBBI", 4, 0, 72, 0, 71), Digests(), "PDU has a wrong length"),
        (struct.pack("<BBBBI", 4, 0, 72, 0, 1 << 30), Digests(), "PDU has a wrong length"),
        (struct.pack("<BBBBI64x", 4, 1, 72, 0, 76), Digests(), "disagrees about the header digest"),
        (struct.pack("<BBBBI64x", 4, 0, 72, 0, 72), BOTH, "disagrees about the header digest"),
        (struct.pack("<BBBBI64x", 4, 2, 72, 0, 76), Digests(), "disagrees about the data digest"),
        (GOOD[:8] + b"\xff" + GOOD[9:], BOTH, "header digest is wrong"),
        (GOOD[:-5] + b"?" + GOOD[-4:], BOTH, "data digest is wrong"),
        (struct.pack("<BBBBI16x4x", 5, 0, 24, 0, 28), Digests(), "data where none can be"),
        (struct.pack("<BBBBI16x4x", 7, 0, 24, 40, 28), Digests(), "data where none can be"),
        (struct.pack("<BBBBIHHII4x4x", 7, 0, 24, 24, 28, 1, 0, 0, 5), Digests(), "data PDU has another length"),
        (struct.pack("<BBBBIH118x", 0, 0, 128, 0, 128, 1), Digests(), "another version"),
        (struct.pack("<BBBBIHB117x", 0, 0, 128, 0, 128, 0, 32), Digests(), "alignment that cannot be"),
        (struct.pack("<BBBBIHBBI112x", 1, 0, 128, 0, 128, 0, 0, 0, 4095), Digests(), "MAXH2CDATA is not usable"),
    ],
)
def test_a_stream_that_cannot_be_followed_is_refused(raw: bytes, digests: Digests, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=message):
        list(PduReader(digests).feed(raw))


def test_a_data_pdu_without_the_agreed_digest_is_refused() -> None:
    raw = PduWriter(Digests(header=True)).pack(DataPdu(True, 1, 0, 0, 4), b"data")

    with pytest.raises(RemoteProtocolError, match="lacks the agreed data digest"):
        list(PduReader(BOTH).feed(raw))
