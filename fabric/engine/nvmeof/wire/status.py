"""Status codes, and what a host does on each, as data. Knows no command.

Source: NVMe base 1.4 section 4.6.1 (figures 125 to 130); NVMe-oF 1.1 section 2.2; SPDK nvme_spec.h
(spdk_nvme_generic_command_status_code and siblings). Numbering is Linux's: SCT << 8 | SC, DNR 0x4000, MORE 0x2000,
CRD 0x1800. The dispositions follow Linux host/core.c (nvme_decide_disposition) and host/multipath.c.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ("CODE_MASK", "DISPOSITIONS", "DNR", "Disposition", "Status", "disposition", "retry_delay_index", "text")

CODE_MASK = 0x7FF
DNR = 0x4000
_CRD_SHIFT = 11
_PATH_TYPE = 0x3  # SCT 3: path related


class Status(enum.IntEnum):
    """The codes that the two roles know by name."""

    SUCCESS = 0x000
    INVALID_OPCODE = 0x001
    INVALID_FIELD = 0x002
    COMMAND_ID_CONFLICT = 0x003
    DATA_TRANSFER_ERROR = 0x004
    INTERNAL_ERROR = 0x006
    ABORTED_BY_REQUEST = 0x007
    ABORTED_QUEUE_DELETION = 0x008
    INVALID_NAMESPACE = 0x00B
    COMMAND_SEQUENCE_ERROR = 0x00C
    SGL_LENGTH_INVALID = 0x00F
    SGL_TYPE_INVALID = 0x011
    SGL_OFFSET_INVALID = 0x016
    KEEP_ALIVE_EXPIRED = 0x019
    KEEP_ALIVE_INVALID = 0x01A
    NAMESPACE_WRITE_PROTECTED = 0x020
    COMMAND_INTERRUPTED = 0x021
    TRANSIENT_TRANSPORT_ERROR = 0x022
    LBA_OUT_OF_RANGE = 0x080
    CAPACITY_EXCEEDED = 0x081
    NAMESPACE_NOT_READY = 0x082
    INVALID_QUEUE_IDENTIFIER = 0x101
    ASYNC_EVENT_LIMIT = 0x105
    INVALID_LOG_PAGE = 0x109
    CONNECT_FORMAT = 0x180
    CONNECT_BUSY = 0x181
    CONNECT_INVALID_PARAMETER = 0x182
    CONNECT_RESTART_DISCOVERY = 0x183
    CONNECT_INVALID_HOST = 0x184
    DISCOVERY_RESTART = 0x190
    AUTH_REQUIRED = 0x191
    WRITE_FAULT = 0x280
    UNRECOVERED_READ_ERROR = 0x281
    GUARD_CHECK = 0x282
    APPLICATION_TAG_CHECK = 0x283
    REFERENCE_TAG_CHECK = 0x284
    COMPARE_FAILURE = 0x285
    ACCESS_DENIED = 0x286
    UNWRITTEN_BLOCK = 0x287
    INTERNAL_PATH_ERROR = 0x300
    ANA_PERSISTENT_LOSS = 0x301
    ANA_INACCESSIBLE = 0x302
    ANA_TRANSITION = 0x303
    HOST_PATH_ERROR = 0x370
    HOST_ABORTED = 0x371


class Disposition(enum.StrEnum):
    """What a host does with a command that a target refused."""

    RETRY_ELSEWHERE = "retry-elsewhere"  # another path may do it
    RETRY_LATER = "retry-later"  # the same path, after the delay that CRD names
    FATAL = "fatal"  # the request is wrong; the caller must act
    INTEGRITY = "integrity"  # the medium lost the data; a miss, never a hit
    CAPACITY = "capacity"  # the namespace is full
    AUTH = "auth"  # the host must authenticate


def _dispositions() -> Mapping[int, Disposition]:
    groups = {
        # 0x00C: the target reset the controller behind our back (nvmet_check_ctrl_status); a new one will do it
        Disposition.RETRY_ELSEWHERE: (0x00C, 0x300, 0x301, 0x302, 0x303, 0x370, 0x371),
        Disposition.RETRY_LATER: (0x021, 0x022, 0x082, 0x181),
        Disposition.INTEGRITY: (0x281, 0x282, 0x283, 0x284, 0x285, 0x287),
        Disposition.CAPACITY: (0x081,),
        Disposition.AUTH: (0x191,),
        Disposition.FATAL: (0x001, 0x002, 0x00B, 0x00F, 0x011, 0x016, 0x020, 0x080),
    }
    return MappingProxyType({code: kind for kind, codes in groups.items() for code in codes})


_NAMES = {int(one): one.name.lower().replace("_", " ") for one in Status}
DISPOSITIONS: Mapping[int, Disposition] = _dispositions()


def disposition(status: int) -> Disposition:
    """Returns what to do on `status`, a failure.

    The code's own row decides, except that DNR turns a retry on the same path into a failure: "the same command will
    fail again on this controller" says nothing of another path. A code without a row is fatal with DNR; without it the
    command is tried again later, elsewhere for the path-related type.
    """
    code = status & CODE_MASK
    known = DISPOSITIONS.get(code)
    if known is Disposition.RETRY_LATER and status & DNR:
        return Disposition.FATAL
    if known is not None:
        return known
    if code >> 8 == _PATH_TYPE:
        return Disposition.RETRY_ELSEWHERE
    return Disposition.FATAL if status & DNR else Disposition.RETRY_LATER


def retry_delay_index(status: int) -> int:
    """Returns which of CRDT1 to CRDT3 the target asks for: 1 to 3, or 0 for none."""
    return status >> _CRD_SHIFT & 3


def text(status: int) -> str:
    """Returns `status` for a message: its name, number and whether a retry is forbidden."""
    code = status & CODE_MASK
    name = _NAMES.get(code, "unknown status")
    return f"{name} (0x{code:03x}{', do not retry' if status & DNR else ''})"
