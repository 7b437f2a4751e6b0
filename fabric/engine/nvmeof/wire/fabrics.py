"""Fabrics commands: Connect with its data, Property Get and Set. Knows no controller.

Source: NVMe-oF 1.1 section 3; SPDK nvmf_spec.h (spdk_nvmf_fabric_connect_cmd, _connect_data, _prop_get_cmd,
_prop_set_cmd). Offsets in the comments count from the start of the entry; CDW10 begins at 40.
"""

import enum
import struct
from dataclasses import dataclass

from fabric.engine.nvmeof.wire.command import FABRICS_OPCODE, Command
from fabric.engine.nvmeof.wire.fields import NQN_FIELD_BYTES, NQN_MAX_CHARS, need, pack_text, parse_text
from fabric.engine.nvmeof.wire.registers import Register
from fabric.errors import LocalProtocolError

__all__ = (
    "CONNECT_DATA_BYTES",
    "DISCOVERY_NQN",
    "DYNAMIC_CNTLID",
    "Connect",
    "ConnectData",
    "ConnectField",
    "ConnectGrant",
    "FabricsType",
    "property_get",
    "property_set",
    "refused_field",
)

CONNECT_DATA_BYTES = 1024
DYNAMIC_CNTLID = 0xFFFF  # any controller: the admin queue of a dynamic subsystem
DISCOVERY_NQN = "nqn.2014-08.org.nvmexpress.discovery"  # NVMe-oF 1.1 section 5; SPDK_NVMF_DISCOVERY_NQN
_CONNECT_DATA = struct.Struct("<16sH238x256s256s256x")  # hostid, cntlid, subnqn, hostnqn
_DISABLE_SQ_FLOW = 1 << 2  # CATTR bit 2: dissqfc


class FabricsType(enum.IntEnum):
    """FCTYPE, byte 4 of the entry."""

    PROPERTY_SET = 0x00
    CONNECT = 0x01
    PROPERTY_GET = 0x04
    AUTH_SEND = 0x05
    AUTH_RECEIVE = 0x06
    DISCONNECT = 0x08


@dataclass(frozen=True, slots=True)
class Connect:
    """The Connect command.

    Attributes:
        qid: 0 is the admin queue.
        sqsize: entries of the submission queue, counted from 0.
        kato_ms: keep-alive timeout; on the admin queue only, 0 is none.
        disable_sq_flow: SQHD is not reported.
        recfmt: record format; 0 is the only one.
    """

    qid: int
    sqsize: int
    kato_ms: int = 0
    disable_sq_flow: bool = False
    recfmt: int = 0

    def command(self) -> Command:
        """Returns the entry: 40 RECFMT, 42 QID, 44 SQSIZE, 46 CATTR, 48 KATO."""
        cattr = _DISABLE_SQ_FLOW if self.disable_sq_flow else 0
        return Command(
            FABRICS_OPCODE,
            FabricsType.CONNECT,
            self.recfmt | self.qid << 16,
            self.sqsize | cattr << 16,
            self.kato_ms,
        )

    @classmethod
    def of(cls, command: Command) -> "Connect":
        """Returns what a Connect entry says."""
        cattr = command.cdw11 >> 16 & 0xFF
        return cls(
            qid=command.cdw10 >> 16,
            sqsize=command.cdw11 & 0xFFFF,
            kato_ms=command.cdw12,
            disable_sq_flow=bool(cattr & _DISABLE_SQ_FLOW),
            recfmt=command.cdw10 & 0xFFFF,
        )


@dataclass(frozen=True, slots=True)
class ConnectData:
    """Who connects to what; the same host NQN and id on every queue of a controller.

    Attributes:
        hostid: 16 bytes, a UUID in text order.
        subnqn: the subsystem.
        hostnqn: the host.
        cntlid: DYNAMIC_CNTLID on the admin queue, then what the target gave.
    """

    hostid: bytes
    subnqn: str
    hostnqn: str
    cntlid: int = DYNAMIC_CNTLID

    def pack(self) -> bytes:
        """Returns 1024 bytes.

        Raises:
            LocalProtocolError: an NQN is longer than 223 bytes, or the host id has not 16 bytes.
        """
        if len(self.hostid) != 16:
            raise LocalProtocolError("the host id has a wrong length", expected="16 bytes", found=str(len(self.hostid)))
        for nqn in (self.subnqn, self.hostnqn):
            if len(nqn.encode()) > NQN_MAX_CHARS:
                raise LocalProtocolError("an NQN is too long", expected=f"at most {NQN_MAX_CHARS} bytes", found=nqn)
        subnqn, hostnqn = (pack_text(nqn, NQN_FIELD_BYTES) for nqn in (self.subnqn, self.hostnqn))
        return _CONNECT_DATA.pack(self.hostid, self.cntlid, subnqn, hostnqn)

    @classmethod
    def parse(cls, data: bytes) -> "ConnectData":
        """Returns what the first 1024 bytes of `data` say.

        Raises:
            RemoteProtocolError: too short, or an NQN is not UTF-8.
        """
        hostid, cntlid, subnqn, hostnqn = _CONNECT_DATA.unpack(need(data, CONNECT_DATA_BYTES, "Connect data"))
        return cls(hostid, parse_text(subnqn, "SUBNQN"), parse_text(hostnqn, "HOSTNQN"), cntlid)


@dataclass(frozen=True, slots=True)
class ConnectGrant:
    """The result of a Connect that succeeded (spdk_nvmf_fabric_connect_rsp.success)."""

    cntlid: int
    auth_required: bool = False
    secure_channel_required: bool = False

    @classmethod
    def of(cls, result: int) -> "ConnectGrant":
        """Returns what DW0 says: CNTLID, AUTHREQ.ATR in bit 17, AUTHREQ.ASCR in bit 18."""
        return cls(result & 0xFFFF, bool(result >> 17 & 1), bool(result >> 18 & 1))


class ConnectField(enum.Enum):
    """A field that a target may name when it refuses a Connect: (in the data, byte offset)."""

    RECFMT = (False, 40)
    QID = (False, 42)
    SQSIZE = (False, 44)
    HOSTID = (True, 0)
    CNTLID = (True, 16)
    SUBNQN = (True, 256)
    HOSTNQN = (True, 512)

    @property
    def result(self) -> int:
        """DW0 of the refusal: IPO, and IATTR in bit 16 (Linux nvmet.h, IPO_IATTR_CONNECT_DATA)."""
        in_data, offset = self.value
        return in_data << 16 | offset


def refused_field(result: int) -> ConnectField | None:
    """Returns the field that DW0 of a refused Connect names, or None."""
    for field in ConnectField:
        if field.result == result & 0x1FFFF:
            return field
    return None


def property_get(offset: int) -> Command:
    """Returns a Property Get (40 ATTRIB, 44 OFST); the value comes in the result.

    The size is the property's own: nvmet takes CAP with 8 bytes only, the others with 4 (target/fabrics-cmd.c).
    """
    return Command(FABRICS_OPCODE, FabricsType.PROPERTY_GET, int(offset in Register.EIGHT_BYTES), offset)


def property_set(offset: int, value: int) -> Command:
    """Returns a Property Set of 4 bytes (40 ATTRIB, 44 OFST, 48 VALUE); nvmet takes CC only."""
    return Command(FABRICS_OPCODE, FabricsType.PROPERTY_SET, 0, offset, value & 0xFFFFFFFF, value >> 32)
