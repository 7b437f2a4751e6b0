"""Admin commands as a fabrics host sends them. Knows no controller.

Source: NVMe base 1.4 section 5; SPDK nvme_spec.h (enum spdk_nvme_admin_opcode, spdk_nvme_cmd_cdw10, _cdw11).
"""

import enum

from fabric.engine.nvmeof.wire.command import Command
from fabric.errors import LocalProtocolError

__all__ = (
    "ALL_NAMESPACES",
    "IDENTIFY_BYTES",
    "AdminOpcode",
    "Cns",
    "Feature",
    "LogPage",
    "abort",
    "async_event_request",
    "get_log_page",
    "identify",
    "keep_alive",
    "log_page_request",
    "queues_granted",
    "set_async_events",
    "set_keep_alive_timeout",
    "set_number_of_queues",
)

IDENTIFY_BYTES = 4096
ALL_NAMESPACES = 0xFFFFFFFF


class AdminOpcode(enum.IntEnum):
    """enum spdk_nvme_admin_opcode."""

    GET_LOG_PAGE = 0x02
    IDENTIFY = 0x06
    ABORT = 0x08
    SET_FEATURES = 0x09
    GET_FEATURES = 0x0A
    ASYNC_EVENT_REQUEST = 0x0C
    KEEP_ALIVE = 0x18


class Cns(enum.IntEnum):
    """What Identify returns (NVMe base 1.4 figure 244)."""

    NAMESPACE = 0
    CONTROLLER = 1
    ACTIVE_NAMESPACES = 2
    NAMESPACE_DESCRIPTORS = 3


class Feature(enum.IntEnum):
    """Feature identifiers: SPDK_NVME_FEAT_*."""

    NUMBER_OF_QUEUES = 0x07
    ASYNC_EVENT_CONFIGURATION = 0x0B
    KEEP_ALIVE_TIMER = 0x0F


class LogPage(enum.IntEnum):
    """Log page identifiers: SPDK_NVME_LOG_*."""

    CHANGED_NAMESPACES = 0x04
    ANA = 0x0C
    DISCOVERY = 0x70


def identify(cns: int, nsid: int = 0) -> Command:
    """Returns an Identify; its data has IDENTIFY_BYTES."""
    return Command(AdminOpcode.IDENTIFY, nsid, cns)


def set_number_of_queues(count: int) -> Command:
    """Returns a Set Features that asks for `count` I/O queues (submission and completion alike).

    Raises:
        LocalProtocolError: `count` is not in 1 to 65535 (0xFFFF in the field is an error).
    """
    if not 1 <= count <= 0xFFFF:
        raise LocalProtocolError("a wrong number of queues", expected="1 to 65535", found=str(count))
    return Command(AdminOpcode.SET_FEATURES, 0, Feature.NUMBER_OF_QUEUES, (count - 1) << 16 | (count - 1))


def queues_granted(result: int) -> int:
    """Returns how many I/O queues a target allows; nvmet answers its maximum, whatever was asked."""
    return min(result & 0xFFFF, result >> 16 & 0xFFFF) + 1


def set_keep_alive_timeout(kato_ms: int) -> Command:
    """Returns a Set Features of the keep-alive timeout."""
    return Command(AdminOpcode.SET_FEATURES, 0, Feature.KEEP_ALIVE_TIMER, kato_ms)


def set_async_events(mask: int) -> Command:
    """Returns a Set Features that turns notices on: the bits of OAES (`events.Notice`)."""
    return Command(AdminOpcode.SET_FEATURES, 0, Feature.ASYNC_EVENT_CONFIGURATION, mask)


def async_event_request() -> Command:
    """Returns an Asynchronous Event Request; it is answered when something happens."""
    return Command(AdminOpcode.ASYNC_EVENT_REQUEST)


def keep_alive() -> Command:
    """Returns a Keep Alive."""
    return Command(AdminOpcode.KEEP_ALIVE)


def abort(sqid: int, cid: int) -> Command:
    """Returns an Abort of `cid` on queue `sqid`. A courtesy: nvmet accepts it and does nothing."""
    return Command(AdminOpcode.ABORT, 0, sqid | cid << 16)


def get_log_page(
    page: int, length: int, *, offset: int = 0, nsid: int = ALL_NAMESPACES, retain_event: bool = False
) -> Command:
    """Returns a Get Log Page of `length` bytes from `offset`; the SGL must have exactly that length.

    Args:
        page: a LogPage.
        length: bytes, a multiple of 4.
        offset: bytes, a multiple of 4.
        nsid: the namespace that the page is about, or all.
        retain_event: leave the event that announced the page unread.

    Raises:
        LocalProtocolError: `length` or `offset` is no multiple of 4, or `length` is 0.
    """
    if length <= 0 or length % 4 or offset % 4:
        raise LocalProtocolError(
            "a log page is read in words", expected="multiples of 4", found=f"{length} at {offset}"
        )
    words = length // 4 - 1
    cdw10 = page | int(retain_event) << 15 | (words & 0xFFFF) << 16
    return Command(AdminOpcode.GET_LOG_PAGE, nsid, cdw10, words >> 16, offset & 0xFFFFFFFF, offset >> 32)


def log_page_request(command: Command) -> tuple[int, int, int]:
    """Returns page, length in bytes and offset of a Get Log Page."""
    words = (command.cdw10 >> 16 | (command.cdw11 & 0xFFFF) << 16) + 1
    return command.cdw10 & 0xFF, words * 4, command.cdw12 | command.cdw13 << 32
