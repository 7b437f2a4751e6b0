"""The PDUs of NVMe/TCP: headers only; data and digests are the stream's. Knows no connection state.

Source: NVMe/TCP 1.0 section 3.6; Linux include/linux/nvme-tcp.h; SPDK nvmf_spec.h (spdk_nvme_tcp_ic_req and siblings).
"""

import enum
import struct
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from fabric.errors import RemoteProtocolError

__all__ = (
    "COMMON_BYTES",
    "CapsuleCommand",
    "CapsuleResponse",
    "DataPdu",
    "Digests",
    "FatalStatus",
    "IcRequest",
    "IcResponse",
    "Pdu",
    "PduFlag",
    "PduType",
    "ReadyToTransfer",
    "Terminate",
)

COMMON_BYTES = 8
_FORMAT_1_0 = 0  # NVME_TCP_PFV_1_0
_MAX_ALIGNMENT = 31  # SPDK_NVME_TCP_HPDA_MAX, in dwords counted from 0
_IC = struct.Struct("<HBBI112x")  # pfv, alignment, digests, maxr2t or maxh2cdata
_TERM = struct.Struct("<HI10x")  # fes, fei
_DATA = struct.Struct("<HHII4x")  # cccid, ttag, offset, length


class PduType(enum.IntEnum):
    """enum nvme_tcp_pdu_type."""

    IC_REQUEST = 0x00
    IC_RESPONSE = 0x01
    H2C_TERMINATE = 0x02
    C2H_TERMINATE = 0x03
    CAPSULE_COMMAND = 0x04
    CAPSULE_RESPONSE = 0x05
    H2C_DATA = 0x06
    C2H_DATA = 0x07
    READY_TO_TRANSFER = 0x09


class PduFlag(enum.IntFlag):
    """enum nvme_tcp_pdu_flags."""

    HEADER_DIGEST = 1
    DATA_DIGEST = 1 << 1
    LAST = 1 << 2
    SUCCESS = 1 << 3


class FatalStatus(enum.IntEnum):
    """Why a connection is terminated: enum nvme_tcp_fatal_error_status."""

    INVALID_HEADER = 1
    SEQUENCE_ERROR = 2
    HEADER_DIGEST = 3
    OUT_OF_RANGE = 4
    LIMIT_EXCEEDED = 5
    UNSUPPORTED_PARAMETER = 6


@dataclass(frozen=True, slots=True)
class Digests:
    """Which digests a connection carries."""

    header: bool = False
    data: bool = False

    @property
    def bits(self) -> int:
        """DGST of ICReq and ICResp: bit 0 header, bit 1 data."""
        return int(self.header) | int(self.data) << 1

    @classmethod
    def of(cls, bits: int) -> "Digests":
        """Returns the digests that DGST names."""
        return cls(bool(bits & 1), bool(bits & 2))


@dataclass(frozen=True, slots=True)
class IcRequest:
    """Initialize connection, from the host.

    Attributes:
        max_r2t: Ready To Transfer PDUs outstanding for one command, counted from 1 (0 on the wire).
        digests: what the host wants.
        alignment: HPDA, dwords counted from 0, of data sent to the host.
    """

    max_r2t: int = 1
    digests: Digests = Digests()
    alignment: int = 0
    pdu_type: ClassVar[PduType] = PduType.IC_REQUEST

    def pack(self) -> bytes:
        """Returns the header after the common part, 120 bytes."""
        return _IC.pack(_FORMAT_1_0, self.alignment, self.digests.bits, self.max_r2t - 1)

    @classmethod
    def parse(cls, raw: bytes) -> "IcRequest":
        """Returns what 120 bytes say."""
        alignment, digests, maximum = _parse_ic(raw)
        return cls(maximum + 1, digests, alignment)


@dataclass(frozen=True, slots=True)
class IcResponse:
    """Initialize connection, from the target.

    Attributes:
        max_h2c_bytes: most data of one H2CData PDU; at least 4096, a multiple of 4 (NVMe/TCP 1.0 section 3.6.2.3).
        digests: what both will use.
        alignment: CPDA, dwords counted from 0, of data sent to the target.
    """

    max_h2c_bytes: int
    digests: Digests = Digests()
    alignment: int = 0
    pdu_type: ClassVar[PduType] = PduType.IC_RESPONSE

    def pack(self) -> bytes:
        """Returns the header after the common part, 120 bytes."""
        return _IC.pack(_FORMAT_1_0, self.alignment, self.digests.bits, self.max_h2c_bytes)

    @classmethod
    def parse(cls, raw: bytes) -> "IcResponse":
        """Returns what 120 bytes say.

        Raises:
            RemoteProtocolError: MAXH2CDATA is below 4096 or no multiple of 4.
        """
        alignment, digests, maximum = _parse_ic(raw)
        if maximum < 4096 or maximum % 4:
            raise RemoteProtocolError("MAXH2CDATA is not usable", expected="4096 or more, by 4", found=str(maximum))
        return cls(maximum, digests, alignment)


@dataclass(frozen=True, slots=True)
class CapsuleCommand:
    """A submission queue entry; in-capsule data follows as the PDU's data."""

    sqe: bytes
    pdu_type: ClassVar[PduType] = PduType.CAPSULE_COMMAND

    def pack(self) -> bytes:
        """Returns 64 bytes."""
        return self.sqe

    @classmethod
    def parse(cls, raw: bytes) -> "CapsuleCommand":
        """Returns the entry."""
        return cls(raw)


@dataclass(frozen=True, slots=True)
class CapsuleResponse:
    """A completion queue entry."""

    cqe: bytes
    pdu_type: ClassVar[PduType] = PduType.CAPSULE_RESPONSE

    def pack(self) -> bytes:
        """Returns 16 bytes."""
        return self.cqe

    @classmethod
    def parse(cls, raw: bytes) -> "CapsuleResponse":
        """Returns the entry."""
        return cls(raw)


@dataclass(frozen=True, slots=True)
class DataPdu:
    """Data of a command, in either direction.

    Attributes:
        to_host: C2HData, else H2CData.
        cid: the command.
        tag: TTAG of the Ready To Transfer that asked for it; 0 towards the host.
        offset: bytes from the start of the command's data.
        length: bytes of data in this PDU.
        last: no more for this command, or for this Ready To Transfer.
        success: towards the host, with `last`: no response capsule will follow.
    """

    to_host: bool
    cid: int
    tag: int
    offset: int
    length: int
    last: bool = True
    success: bool = False

    @classmethod
    def parse(cls, raw: bytes, flags: int, *, to_host: bool) -> "DataPdu":
        """Returns what 16 bytes and the flags of the common header say."""
        cid, tag, offset, length = _DATA.unpack(raw)
        success = bool(flags & PduFlag.SUCCESS) and to_host
        return cls(to_host, cid, tag, offset, length, bool(flags & PduFlag.LAST), success)

    @property
    def pdu_type(self) -> PduType:
        """H2C_DATA or C2H_DATA."""
        return PduType.C2H_DATA if self.to_host else PduType.H2C_DATA

    @property
    def flags(self) -> int:
        """LAST and SUCCESS, as PduFlag bits."""
        return (PduFlag.LAST if self.last else 0) | (PduFlag.SUCCESS if self.success else 0)

    def pack(self) -> bytes:
        """Returns 16 bytes."""
        return _DATA.pack(self.cid, self.tag, self.offset, self.length)


@dataclass(frozen=True, slots=True)
class ReadyToTransfer:
    """The target asks for `length` bytes of a command's data from `offset`, under `tag`."""

    cid: int
    tag: int
    offset: int
    length: int
    pdu_type: ClassVar[PduType] = PduType.READY_TO_TRANSFER

    def pack(self) -> bytes:
        """Returns 16 bytes."""
        return _DATA.pack(self.cid, self.tag, self.offset, self.length)

    @classmethod
    def parse(cls, raw: bytes) -> "ReadyToTransfer":
        """Returns what 16 bytes say."""
        return cls(*_DATA.unpack(raw))


@dataclass(frozen=True, slots=True)
class Terminate:
    """One side gives up; the head of the offending PDU follows as data.

    Attributes:
        to_host: C2HTermReq, else H2CTermReq.
        status: a FatalStatus, raw.
        information: FEI: offset of a bad header field, or the digest that was found.
    """

    to_host: bool
    status: int
    information: int = 0

    @classmethod
    def parse(cls, raw: bytes, *, to_host: bool) -> "Terminate":
        """Returns what 16 bytes say."""
        return cls(to_host, *_TERM.unpack(raw))

    @property
    def pdu_type(self) -> PduType:
        """H2C_TERMINATE or C2H_TERMINATE."""
        return PduType.C2H_TERMINATE if self.to_host else PduType.H2C_TERMINATE

    def pack(self) -> bytes:
        """Returns 16 bytes."""
        return _TERM.pack(self.status, self.information)


Pdu: TypeAlias = IcRequest | IcResponse | CapsuleCommand | CapsuleResponse | DataPdu | ReadyToTransfer | Terminate


def _parse_ic(raw: bytes) -> tuple[int, Digests, int]:
    version, alignment, digests, maximum = _IC.unpack(raw)
    if version != _FORMAT_1_0:
        raise RemoteProtocolError("another version of NVMe/TCP", expected="0", found=str(version))
    if alignment > _MAX_ALIGNMENT:
        raise RemoteProtocolError("a data alignment that cannot be", expected="0 to 31", found=str(alignment))
    return alignment, Digests.of(digests), maximum
