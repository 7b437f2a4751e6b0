"""The private data that the RDMA connection manager carries for NVMe. Knows no queue and no transport.

Source: Linux include/linux/nvme-rdma.h (nvme_rdma_cm_req, _rep, _rej); SPDK include/spdk/nvmf_spec.h
(spdk_nvmf_rdma_request_private_data and its siblings). All little-endian.
"""

import enum
import struct
from dataclasses import dataclass

from fabric.engine.nvmeof.wire.fields import need
from fabric.errors import RemoteProtocolError

__all__ = ("CmAccept", "CmReject", "CmRequest", "CmStatus")

_REQUEST = struct.Struct("<HHHHH22x")  # recfmt, qid, hrqsize, hsqsize, cntlid: 32 bytes
_ACCEPT = struct.Struct("<HH28x")  # recfmt, crqsize: 32 bytes
_REJECT = struct.Struct("<HH")  # recfmt, sts: 4 bytes
_RECORD_FORMAT = 0  # NVME_RDMA_CM_FMT_1_0


class CmStatus(enum.IntEnum):
    """Why a target rejects a connection: enum nvme_rdma_cm_status of Linux nvme-rdma.h."""

    NONE = 0  # no private data: the transport rejected, not NVMe
    INVALID_LENGTH = 1
    INVALID_RECORD_FORMAT = 2
    INVALID_QID = 3
    INVALID_HOST_SQ_SIZE = 4
    INVALID_HOST_RQ_SIZE = 5
    NO_RESOURCES = 6
    INVALID_IRD = 7
    INVALID_ORD = 8


@dataclass(frozen=True, slots=True)
class CmRequest:
    """What a host asks for when it connects a queue.

    Attributes:
        qid: 0 is the admin queue.
        hrqsize: receives that the host posts, counted from 1.
        hsqsize: size of the host's send queue, counted from 0 (it equals SQSIZE).
        cntlid: the controller's id on I/O queues; Linux 6.1 leaves it reserved.
    """

    qid: int
    hrqsize: int
    hsqsize: int
    cntlid: int = 0

    def pack(self) -> bytes:
        """Returns 32 bytes."""
        return _REQUEST.pack(_RECORD_FORMAT, self.qid, self.hrqsize, self.hsqsize, self.cntlid)

    @classmethod
    def parse(cls, data: bytes) -> "CmRequest":
        """Returns the request in `data`, an area of 32 bytes or more.

        Raises:
            RemoteProtocolError: too short, or another record format.
        """
        recfmt, qid, hrqsize, hsqsize, cntlid = _REQUEST.unpack(need(data, _REQUEST.size, "CM request"))
        _check_format(recfmt, "CM request")
        return cls(qid, hrqsize, hsqsize, cntlid)


@dataclass(frozen=True, slots=True)
class CmAccept:
    """What a target grants: `crqsize` receives, counted from 1."""

    crqsize: int

    def pack(self) -> bytes:
        """Returns 32 bytes."""
        return _ACCEPT.pack(_RECORD_FORMAT, self.crqsize)

    @classmethod
    def parse(cls, data: bytes) -> "CmAccept":
        """Returns the reply in `data`, an area of 32 bytes or more.

        Raises:
            RemoteProtocolError: too short, or another record format.
        """
        recfmt, crqsize = _ACCEPT.unpack(need(data, _ACCEPT.size, "CM reply"))
        _check_format(recfmt, "CM reply")
        return cls(crqsize)


@dataclass(frozen=True, slots=True)
class CmReject:
    """Why a target refused; `status` NONE when it sent no private data."""

    status: CmStatus

    def pack(self) -> bytes:
        """Returns 4 bytes."""
        return _REJECT.pack(_RECORD_FORMAT, self.status)

    @classmethod
    def parse(cls, data: bytes) -> "CmReject":
        """Returns the refusal in `data`; an empty or zeroed area is one of the transport.

        Raises:
            RemoteProtocolError: another record format, or a status that no source defines.
        """
        if not any(data):
            return cls(CmStatus.NONE)
        recfmt, status = _REJECT.unpack(need(data, _REJECT.size, "CM reject"))
        _check_format(recfmt, "CM reject")
        try:
            return cls(CmStatus(status))
        except ValueError as error:
            raise RemoteProtocolError(
                "CM reject has an unknown status", expected="1 to 8", found=str(status)
            ) from error


def _check_format(recfmt: int, what: str) -> None:
    if recfmt != _RECORD_FORMAT:
        raise RemoteProtocolError(f"{what} has another record format", expected="0", found=str(recfmt))
