"""The submission queue entry. Knows its layout; what the words mean is said in `fabrics`, `admin` and `io`.

Source: NVMe base 1.4 section 4.2, figure 104; SPDK nvme_spec.h (spdk_nvme_cmd). A fabrics command has its type where
others have the low byte of the NSID (NVMe-oF 1.1 section 2.1), so one type holds all.
"""

import enum
import struct
from dataclasses import dataclass

from fabric.engine.nvmeof.wire.fields import need
from fabric.engine.nvmeof.wire.sgl import Sgl

__all__ = ("FABRICS_OPCODE", "SQE_BYTES", "Command", "DataDirection", "Sqe")

SQE_BYTES = 64
FABRICS_OPCODE = 0x7F  # SPDK nvmf_spec.h, SPDK_NVME_OPC_FABRIC
_PSDT_SGL = 0x40  # flags: PSDT 01b, an SGL for data; the only one on fabrics (NVMe-oF 1.1 section 2.1)
_SQE = struct.Struct("<BBHI8xQ16s6I")  # opc, flags, cid, nsid, cdw2-3, mptr, sgl1, cdw10-15


class DataDirection(enum.IntEnum):
    """The two low bits of an opcode, or of a fabrics command type (NVMe base 1.4 figure 105)."""

    NONE = 0
    TO_CONTROLLER = 1
    TO_HOST = 2
    BOTH = 3


@dataclass(frozen=True, slots=True)
class Command:
    """What is asked, without where its data lies and under which id.

    Attributes:
        opcode: the operation; 0x7F for all fabrics commands.
        nsid: namespace, or the fabrics command type when `opcode` is 0x7F.
        cdw10 to cdw15: the command's own words.
    """

    opcode: int
    nsid: int = 0
    cdw10: int = 0
    cdw11: int = 0
    cdw12: int = 0
    cdw13: int = 0
    cdw14: int = 0
    cdw15: int = 0

    @property
    def direction(self) -> DataDirection:
        """Where data goes, from the opcode or the fabrics command type."""
        return DataDirection((self.nsid if self.opcode == FABRICS_OPCODE else self.opcode) & 3)

    def pack(self, cid: int, sgl: Sgl) -> bytes:
        """Returns the 64 bytes of the entry under `cid`, with its data at `sgl`."""
        return _SQE.pack(
            self.opcode,
            _PSDT_SGL,
            cid,
            self.nsid,
            0,
            sgl.pack(),
            self.cdw10,
            self.cdw11,
            self.cdw12,
            self.cdw13,
            self.cdw14,
            self.cdw15,
        )


@dataclass(frozen=True, slots=True)
class Sqe:
    """A received entry.

    Attributes:
        command: what is asked.
        cid: the host's id of it.
        flags: fused and PSDT bits, raw.
        sgl: where its data lies.
    """

    command: Command
    cid: int
    flags: int
    sgl: Sgl

    @property
    def has_sgl(self) -> bool:
        """PSDT is 01b. nvmet refuses all else (target/core.c, nvmet_req_init)."""
        return self.flags & 0xC0 == _PSDT_SGL

    @property
    def fused(self) -> int:
        """The FUSE bits; neither target takes anything but 0."""
        return self.flags & 3

    @classmethod
    def parse(cls, data: bytes) -> "Sqe":
        """Returns the entry at the start of a capsule.

        Raises:
            RemoteProtocolError: fewer than 64 bytes.
        """
        opcode, flags, cid, nsid, _mptr, sgl, *words = _SQE.unpack(need(data, SQE_BYTES, "command capsule"))
        return cls(Command(opcode, nsid, *words), cid, flags, Sgl.parse(sgl))
