"""One PDU's frame: where its header ends, where its data lies, which digests it carries. Sees eight bytes, no stream.

It refuses what `nvmeof.tcp.PduReader` refuses; a property test holds the two together. That one copies each PDU out of
its buffer; here the frame says how much of what follows may go straight to registered memory.

Source: NVMe/TCP 1.0 sections 3.3 and 3.6.1.
"""

import struct
from typing import NamedTuple

from fabric.engine.nvmeof.tcp import Digests, FatalStatus, PduType
from fabric.engine.nvmeof.tcp.parsing import header_bytes
from fabric.engine.nvmeof.tcp.pdu import COMMON_BYTES, PduFlag
from fabric.engine.nvmeof.tcp.stream import DIGEST_BYTES, MAX_PDU_BYTES
from fabric.errors import RemoteProtocolError

__all__ = ("MAX_TERMINATE_BYTES", "Frame", "StreamError", "read_frame")

MAX_TERMINATE_BYTES = 128  # the header of the offending PDU (NVMe/TCP 1.0 section 3.6.2.5; unconfirmed)
_COMMON = struct.Struct("<BBBBI")  # type, flags, hlen, pdo, plen
_PLAIN = frozenset({PduType.IC_REQUEST, PduType.IC_RESPONSE, PduType.H2C_TERMINATE, PduType.C2H_TERMINATE})
_WITH_DATA = frozenset(
    {
        PduType.CAPSULE_COMMAND,
        PduType.H2C_DATA,
        PduType.C2H_DATA,
        PduType.H2C_TERMINATE,
        PduType.C2H_TERMINATE,
    }
)


class StreamError(RemoteProtocolError):
    """The peer's stream cannot be followed any more.

    Args:
        what: what is wrong.
        status: what to tell the peer in a termination; None for a data digest, which has no code of its own.
        information: FEI: where in the header, or which digest was found.
        found: what was there.
    """

    def __init__(self, what: str, status: FatalStatus | None, *, information: int = 0, found: str = "") -> None:
        self.status = status
        self.information = information
        super().__init__(what, found=found)


class Frame(NamedTuple):
    """What the common header says.

    Attributes:
        kind, flags: PDU type and PduFlag bits.
        hlen: header without digest.
        data_start: where data begins; the end of the header and its digest when there is none.
        data_length: bytes of data.
        header_digest, data_digest: whether these four bytes are there.
    """

    kind: PduType
    flags: int
    hlen: int
    data_start: int
    data_length: int
    header_digest: bool
    data_digest: bool


def read_frame(common: bytes | bytearray | memoryview, digests: Digests) -> Frame:
    """Returns the frame of a PDU whose first eight bytes are `common`.

    Args:
        common: the common header.
        digests: what the connection agreed on.

    Raises:
        StreamError: no such PDU can be.
    """
    raw_kind, flags, hlen, pdo, plen = _COMMON.unpack_from(common)
    try:
        known = header_bytes(raw_kind)
    except RemoteProtocolError as error:
        raise StreamError(error.what, FatalStatus.INVALID_HEADER, found=error.found) from error
    kind = PduType(raw_kind)
    if hlen != known:
        raise StreamError("a PDU header has a wrong length", FatalStatus.INVALID_HEADER, information=2, found=str(hlen))
    plain = kind in _PLAIN
    header_digest, data_digest = bool(flags & PduFlag.HEADER_DIGEST), bool(flags & PduFlag.DATA_DIGEST)
    if header_digest is not (digests.header and not plain) or (data_digest and (plain or not digests.data)):
        found = f"flags 0x{flags:02x}"
        raise StreamError("a PDU disagrees about digests", FatalStatus.INVALID_HEADER, information=1, found=found)
    head = hlen + DIGEST_BYTES * header_digest
    if not head <= plen <= MAX_PDU_BYTES:
        raise StreamError("a PDU has a wrong length", FatalStatus.INVALID_HEADER, information=4, found=str(plen))
    if plen == head:
        return Frame(kind, flags, hlen, head, 0, header_digest, False)
    start, end = pdo or head, plen - DIGEST_BYTES * data_digest
    if kind not in _WITH_DATA or not head <= start <= end or start < COMMON_BYTES:
        raise StreamError("a PDU has data where none can be", FatalStatus.INVALID_HEADER, information=3)
    if digests.data and not plain and not data_digest:
        raise StreamError("a PDU lacks the data digest", FatalStatus.INVALID_HEADER, information=1)
    return Frame(kind, flags, hlen, start, end - start, header_digest, data_digest)
