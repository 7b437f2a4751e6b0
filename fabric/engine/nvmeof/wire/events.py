"""Asynchronous events: what the result of an Asynchronous Event Request says. Knows no controller.

Source: NVMe base 1.4 section 5.2; SPDK nvme_spec.h (spdk_nvme_async_event_completion); NVMe-oF 1.1 section 5.
"""

import enum
from dataclasses import dataclass

from fabric.engine.nvmeof.wire.admin import LogPage

__all__ = ("AsyncEvent", "EventKind", "Notice")


class Notice(enum.IntFlag):
    """Bits of OAES and of Set Features, Asynchronous Event Configuration."""

    NAMESPACE_ATTRIBUTE = 1 << 8
    FIRMWARE_ACTIVATION = 1 << 9
    ANA_CHANGE = 1 << 11
    DISCOVERY_LOG_CHANGE = 1 << 31


class EventKind(enum.Enum):
    """What happened; the value is (type, information)."""

    NAMESPACE_CHANGED = (2, 0x00)
    ANA_CHANGED = (2, 0x03)
    DISCOVERY_CHANGED = (2, 0xF0)
    OTHER = (-1, -1)


_PAGES = {
    EventKind.NAMESPACE_CHANGED: LogPage.CHANGED_NAMESPACES,
    EventKind.ANA_CHANGED: LogPage.ANA,
    EventKind.DISCOVERY_CHANGED: LogPage.DISCOVERY,
}


@dataclass(frozen=True, slots=True)
class AsyncEvent:
    """One event.

    Attributes:
        kind: what happened.
        event_type: bits 2:0 of the result: 0 error, 1 SMART, 2 notice.
        information: bits 15:8.
        log_page: bits 23:16; reading it re-arms the event.
    """

    kind: EventKind
    event_type: int
    information: int
    log_page: int

    @classmethod
    def of(cls, result: int) -> "AsyncEvent":
        """Returns the event in DW0."""
        event_type, information = result & 7, result >> 8 & 0xFF
        kind = EventKind.OTHER
        for one in EventKind:
            if one.value == (event_type, information):
                kind = one
        return cls(kind, event_type, information, result >> 16 & 0xFF)

    @classmethod
    def notice(cls, kind: EventKind) -> "AsyncEvent":
        """Returns the event that announces `kind`, with its log page."""
        event_type, information = kind.value
        return cls(kind, event_type, information, _PAGES[kind])

    @property
    def result(self) -> int:
        """DW0 of the answer."""
        return self.event_type | self.information << 8 | self.log_page << 16
