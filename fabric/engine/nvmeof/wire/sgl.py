"""The SGL descriptor of a command: where its data lies. Knows no memory registration.

Source: NVMe base 1.4 section 4.4; SPDK nvme_spec.h (spdk_nvme_sgl_descriptor); Linux host/rdma.c and host/tcp.c for
the kinds that a fabrics host sends.
"""

import enum
import struct
from dataclasses import dataclass

from fabric.engine.nvmeof.wire.fields import need
from fabric.errors import LocalProtocolError

__all__ = ("KEYED_MAX_BYTES", "NULL_KEYED", "NULL_TRANSPORT", "SGL_BYTES", "Sgl", "SglKind")

SGL_BYTES = 16
KEYED_MAX_BYTES = (1 << 24) - 1  # keyed.length has 24 bits

_UNKEYED = struct.Struct("<QI3xB")
_KEYED = struct.Struct("<Q3sIB")


class SglKind(enum.IntEnum):
    """Type and subtype in one byte, at offset 15."""

    IN_CAPSULE = 0x01  # data block, offset into the capsule
    LAST_SEGMENT = 0x31  # last segment, offset; SPDK takes several descriptors, nvmet (MSDBD 1) does not
    KEYED = 0x40  # keyed data block, address; for memory registered with ibv_reg_mr
    KEYED_INVALIDATE = 0x4F  # the target sends with invalidate; never for ibv_reg_mr keys
    TRANSPORT = 0x5A  # transport data block: NVMe/TCP finds the data by the command id


_KEYED_TYPE = 0x4


@dataclass(frozen=True, slots=True)
class Sgl:
    """One descriptor. `kind` is the raw byte: a target must be able to answer one that it does not know."""

    kind: int
    address: int = 0
    length: int = 0
    key: int = 0

    def pack(self) -> bytes:
        """Returns 16 bytes.

        Raises:
            LocalProtocolError: a keyed descriptor longer than 24 bits can say.
        """
        if self.kind >> 4 != _KEYED_TYPE:
            return _UNKEYED.pack(self.address, self.length, self.kind)
        if self.length > KEYED_MAX_BYTES:
            raise LocalProtocolError(
                "a keyed SGL cannot carry that much", expected=f"at most {KEYED_MAX_BYTES}", found=str(self.length)
            )
        return _KEYED.pack(self.address, self.length.to_bytes(3, "little"), self.key, self.kind)

    @classmethod
    def parse(cls, data: bytes) -> "Sgl":
        """Returns the descriptor in `data`, whatever its kind.

        Raises:
            RemoteProtocolError: fewer than 16 bytes.
        """
        raw = need(data, SGL_BYTES, "SGL descriptor")
        if raw[15] >> 4 == _KEYED_TYPE:
            address, length, key, kind = _KEYED.unpack(raw)
            return cls(kind, address, int.from_bytes(length, "little"), key)
        address, length, kind = _UNKEYED.unpack(raw)
        return cls(kind, address, length)


NULL_KEYED = Sgl(SglKind.KEYED)  # a command without data: nvmet refuses type 0 (target/rdma.c, nvmet_rdma_map_sgl)
NULL_TRANSPORT = Sgl(SglKind.TRANSPORT)  # likewise on TCP (Linux host/tcp.c, nvme_tcp_set_sg_null)
