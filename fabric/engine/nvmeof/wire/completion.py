"""The completion queue entry. Knows its layout; `status` says what a status means.

Source: NVMe base 1.4 section 4.6; SPDK nvme_spec.h (spdk_nvme_cpl). On fabrics it arrives as a message of 16 bytes.
"""

import struct
from typing import Final, NamedTuple

from fabric.engine.nvmeof.wire.fields import need

__all__ = ("CQE_BYTES", "SQHD_DISABLED", "Cqe")

CQE_BYTES = 16
SQHD_DISABLED = 0xFFFF  # SQ flow control is off (Connect CATTR bit 2)
_new: Final = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much
_CQE = struct.Struct("<QHHHH")  # result, sqhd, sqid, cid, status


class Cqe(NamedTuple):
    """An answer.

    Attributes:
        cid: the command that it answers.
        status: status type and code in Linux's numbering, SCT << 8 | SC, with CRD 0x1800, MORE 0x2000, DNR 0x4000.
        result: the command's own value.
        sqhd: the target's head of the submission queue; telemetry only, nvmet moves it at completion.
        sqid: the queue; 0 from most targets.
    """

    cid: int
    status: int = 0
    result: int = 0
    sqhd: int = 0
    sqid: int = 0

    def pack(self) -> bytes:
        """Returns 16 bytes; the phase bit is 0 on fabrics."""
        return _CQE.pack(self.result, self.sqhd, self.sqid, self.cid, self.status << 1)

    @classmethod
    def parse(cls, data: bytes) -> "Cqe":
        """Returns the entry at the start of `data`.

        Raises:
            RemoteProtocolError: fewer than 16 bytes.
        """
        if len(data) != CQE_BYTES:
            data = need(data, CQE_BYTES, "response capsule")
        result, sqhd, sqid, cid, status = _CQE.unpack(data)
        return _new(cls, (cid, status >> 1, result, sqhd, sqid))
