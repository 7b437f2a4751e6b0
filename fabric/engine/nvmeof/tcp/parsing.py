"""From a PDU type and its header to the PDU. Knows no stream.

Source: as in `pdu`; the lengths are those of its structures.
"""

from fabric.engine.nvmeof.tcp.pdu import (
    CapsuleCommand,
    CapsuleResponse,
    DataPdu,
    IcRequest,
    IcResponse,
    Pdu,
    PduType,
    ReadyToTransfer,
    Terminate,
)
from fabric.errors import RemoteProtocolError

__all__ = ("header_bytes", "parse_header")

# HLEN: 8 bytes in common, then 120 (ICReq, ICResp), 64 (SQE), 16 (CQE, data, R2T, termination)
_HEADER_BYTES = {
    PduType.IC_REQUEST: 128,
    PduType.IC_RESPONSE: 128,
    PduType.H2C_TERMINATE: 24,
    PduType.C2H_TERMINATE: 24,
    PduType.CAPSULE_COMMAND: 72,
    PduType.CAPSULE_RESPONSE: 24,
    PduType.H2C_DATA: 24,
    PduType.C2H_DATA: 24,
    PduType.READY_TO_TRANSFER: 24,
}


def header_bytes(kind: int) -> int:
    """Returns HLEN of a PDU type: common and own header, without the digest.

    Raises:
        RemoteProtocolError: no such type.
    """
    try:
        return _HEADER_BYTES[PduType(kind)]
    except ValueError as error:
        raise RemoteProtocolError("an unknown NVMe/TCP PDU type", found=f"0x{kind:02x}") from error


def parse_header(kind: int, flags: int, raw: bytes) -> Pdu:
    """Returns the PDU whose header after the common part is `raw`, of the length that its type has.

    Raises:
        RemoteProtocolError: a field cannot be.
    """
    match PduType(kind):
        case PduType.IC_REQUEST:
            return IcRequest.parse(raw)
        case PduType.IC_RESPONSE:
            return IcResponse.parse(raw)
        case PduType.CAPSULE_COMMAND:
            return CapsuleCommand.parse(raw)
        case PduType.CAPSULE_RESPONSE:
            return CapsuleResponse.parse(raw)
        case PduType.READY_TO_TRANSFER:
            return ReadyToTransfer.parse(raw)
        case PduType.H2C_TERMINATE | PduType.C2H_TERMINATE as one:
            return Terminate.parse(raw, to_host=one is PduType.C2H_TERMINATE)
        case PduType.H2C_DATA | PduType.C2H_DATA as one:
            return DataPdu.parse(raw, flags, to_host=one is PduType.C2H_DATA)
