"""NVMe/TCP: PDUs and the stream that carries them. Sans-I/O: it sees bytes, no socket.

`pdu` is the codec, `stream` cuts a byte stream into PDUs and checks the digests, `crc32c` is the digest.
"""

from fabric.engine.nvmeof.tcp.crc32c import crc32c
from fabric.engine.nvmeof.tcp.pdu import (
    CapsuleCommand,
    CapsuleResponse,
    DataPdu,
    Digests,
    FatalStatus,
    IcRequest,
    IcResponse,
    Pdu,
    PduType,
    ReadyToTransfer,
    Terminate,
)
from fabric.engine.nvmeof.tcp.stream import PduReader, PduWriter

__all__ = (
    "CapsuleCommand",
    "CapsuleResponse",
    "DataPdu",
    "Digests",
    "FatalStatus",
    "IcRequest",
    "IcResponse",
    "Pdu",
    "PduReader",
    "PduType",
    "PduWriter",
    "ReadyToTransfer",
    "Terminate",
    "crc32c",
)
