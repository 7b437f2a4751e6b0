"""What a network OS on an ASIC can do: a type here, data in each `nos` package, an argument to `plan`.

Each fact carries its source. A fact that nobody confirmed on a device or in a vendor's document is marked, and
a plan that leans on it says so.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

__all__ = ("Capabilities", "CommitConfirm", "Fact", "HeadroomOwner")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value with where it is from.

    Attributes:
        source: document and section, or file of a public repository.
        unconfirmed: remembered, or read only in an example: not checked on a device.
    """

    value: T
    source: str
    unconfirmed: bool = False


class CommitConfirm(StrEnum):
    """How an unconfirmed change goes back by itself."""

    NATIVE = "native"
    DEADMAN = "deadman"


class HeadroomOwner(StrEnum):
    """Who turns speed, cable length and MTU into headroom bytes."""

    NOS = "nos"  # the device computes it: SONiC buffermgrd, NVUE
    CONFIG = "config"  # the configuration carries bytes
    PLATFORM = "platform"  # fixed by the ASIC and hidden (EOS)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One network OS.

    Attributes:
        mtu_max_bytes: largest port MTU as this NOS counts it.
        mtu_overhead_bytes: Ethernet bytes that this NOS's MTU leaves out (0 or 14/18/22).
        lossless_priorities_max: how many priorities may pause.
        threshold_quantum_bytes: ECN thresholds are multiples of this.
        watchdog_timer_range_ms: smallest and largest detection time.
        watchdog_polling_range_ms: smallest and largest polling interval; None if not settable.
        cnp_queue: default queue of the strict CNP class.
        reserved_queues: queues that users may not configure.
        marks_all_above_kmax: beyond kmax every packet is marked; else it stays at pmax.
        dscp_map_is_device_wide: one DSCP map for all ports.
        dscp_default_to_tc: 64 elements, what the NOS does with `trust dscp` and no map; None if nothing.
        commit_confirm: native timer or our deadman.
        headroom_owner: who sizes the headroom.
        cable_lengths_m: the only lengths it takes, or () for any.
        watchdog_polls_per_timer: polling interval times this is at most the shorter of detection and
            restoration (2 on EOS, 1 on SONiC).
        watchdog_restoration_range_ms: smallest and largest restoration time.
        watchdog_actions: of `drop`, `forward`, `alert`, those it has.
        dcbx_modes: of `off`, `ieee`, `cee`, those it has.
        port_names: regular expression of the names that its physical ports have, and such a name.
    """

    nos: str
    mtu_max_bytes: Fact[int]
    mtu_overhead_bytes: Fact[int]
    lossless_priorities_max: Fact[int]
    threshold_quantum_bytes: Fact[int]
    watchdog_timer_range_ms: Fact[tuple[int, int]]
    watchdog_polling_range_ms: Fact[tuple[int, int] | None]
    cnp_queue: Fact[int]
    reserved_queues: Fact[tuple[int, ...]]
    marks_all_above_kmax: Fact[bool]
    dscp_map_is_device_wide: Fact[bool]
    dscp_default_to_tc: Fact[tuple[int | None, ...] | None]
    commit_confirm: Fact[CommitConfirm]
    headroom_owner: Fact[HeadroomOwner]
    cable_lengths_m: Fact[tuple[int, ...]]
    watchdog_polls_per_timer: Fact[int] = Fact(2, "the strictest rule, EOS's", unconfirmed=True)
    watchdog_restoration_range_ms: Fact[tuple[int, int]] = Fact(
        (100, 60_000), "SONiC's, the narrowest", unconfirmed=True
    )
    watchdog_actions: Fact[tuple[str, ...]] = Fact(("drop", "forward", "alert"), "not stated", unconfirmed=True)
    dcbx_modes: Fact[tuple[str, ...]] = Fact(("off",), "not stated", unconfirmed=True)
    port_names: Fact[tuple[str, str]] = Fact((r".+", "any"), "not stated", unconfirmed=True)
