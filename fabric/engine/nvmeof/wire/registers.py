"""The controller properties that a fabrics host reads and writes. Knows no command.

Source: NVMe base 1.4 section 3.1; SPDK nvme_spec.h (spdk_nvme_cap_register, _cc_register, _csts_register).
"""

from dataclasses import dataclass

__all__ = ("Cap", "Cc", "Csts", "Register")

_NS_PER_TIMEOUT_UNIT = 500_000_000  # CAP.TO counts 500 ms


class Register:
    """Offsets of properties."""

    CAP = 0x00
    VS = 0x08
    CC = 0x14
    CSTS = 0x1C
    EIGHT_BYTES = frozenset({CAP})


@dataclass(frozen=True, slots=True)
class Cap:
    """Controller capabilities, raw."""

    raw: int

    @property
    def max_queue_entries(self) -> int:
        """MQES, counted from 1."""
        return (self.raw & 0xFFFF) + 1

    @property
    def ready_timeout_ns(self) -> int:
        """How long CSTS.RDY may take: (TO + 1) times 500 ms, as Linux waits (host/core.c, nvme_wait_ready)."""
        return ((self.raw >> 24 & 0xFF) + 1) * _NS_PER_TIMEOUT_UNIT

    @property
    def min_page_shift(self) -> int:
        """log2 of the smallest memory page: 12 + MPSMIN."""
        return 12 + (self.raw >> 48 & 0xF)

    @property
    def has_all_command_sets(self) -> bool:
        """CSS bit 6 (of CAP bits 44:37): CC.CSS may be 110b."""
        return bool(self.raw >> 43 & 1)

    @classmethod
    def make(cls, *, max_queue_entries: int, timeout_units: int, command_sets: int = 1) -> "Cap":
        """Returns capabilities: `timeout_units` of 500 ms, `command_sets` as the CSS bits."""
        contiguous = 1 << 16  # CQR: queues are contiguous
        return cls(max_queue_entries - 1 | contiguous | timeout_units << 24 | command_sets << 37)


class Cc:
    """Controller configuration: bits, and the one value that nvmet takes (IOSQES 6, IOCQES 4, MPS 0, AMS 0)."""

    ENABLE = 1
    SHUTDOWN_NORMAL = 1 << 14
    SHUTDOWN_MASK = 3 << 14
    SIZES = 6 << 16 | 4 << 20
    SIZES_MASK = 0xFF << 16
    ENABLED = SIZES | ENABLE  # 0x00460001
    MPS_MASK = 0xF << 7
    AMS_MASK = 7 << 11
    CSS_MASK = 7 << 4


class Csts:
    """Controller status bits."""

    READY = 1
    FATAL = 1 << 1
    SHUTDOWN_MASK = 3 << 2
    SHUTDOWN_COMPLETE = 2 << 2
