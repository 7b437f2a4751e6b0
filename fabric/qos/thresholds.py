"""Closed forms for thresholds: when PFC fires, whether ECN marks before it, and the DCQCN paper's bounds.

Exact rational arithmetic, so that a comparison at the edge is not a matter of rounding. Knows no network OS.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

__all__ = (
    "DynamicPool",
    "EcnBeforePfc",
    "dcqcn_dynamic_ecn_bound_bytes",
    "dcqcn_static_pfc_bound_bytes",
    "dynamic_threshold_bytes",
    "ecn_before_pfc",
    "pool_of",
    "scaled_threshold_bytes",
)

REFERENCE_SPEED_MBPS: Final = 100_000  # switches.md 5.5: thresholds are given at 100G and grow with the line rate


@dataclass(frozen=True, slots=True)
class DynamicPool:
    """A shared buffer whose users have dynamic thresholds.

    Attributes:
        size_bytes: P, the shared pool.
        alpha_log2: the platform's own n of alpha = 2^n for a lossless priority group.
        source: board and document.
    """

    size_bytes: int
    alpha_log2: int
    source: str


_BUILDIMAGE: Final = "sonic-net/sonic-buildimage@086b03bd buffers_defaults_t0.j2 of"
_POOLS: Final = {  # ingress_lossless_pool, and the threshold column of the same board's pg_profile_lookup.ini
    "spectrum1": DynamicPool(4_580_864, 0, f"{_BUILDIMAGE} ACS-MSN2700"),
    "spectrum2": DynamicPool(14_542_848, 0, f"{_BUILDIMAGE} ACS-MSN3700"),
    "spectrum3": DynamicPool(26_451_968, 0, f"{_BUILDIMAGE} ACS-MSN4700"),
    "spectrum4": DynamicPool(67_737_959, 0, f"{_BUILDIMAGE} ACS-SN5600"),
    "tomahawk3": DynamicPool(66_394_076, -2, f"{_BUILDIMAGE} DellEMC-Z9332f-O32"),
    "tomahawk4": DynamicPool(113_620_296, 0, f"{_BUILDIMAGE} DellEMC-Z9664f-O64"),
    "tomahawk5": DynamicPool(162_539_680, 0, f"{_BUILDIMAGE} Dell-Z9864f-O64"),
    "trident3": DynamicPool(32_732_160, 0, f"{_BUILDIMAGE} Arista-7050CX3-32S-C32"),
    "trident4": DynamicPool(82_138_128, 0, f"{_BUILDIMAGE} DellEMC-S5448f-C48O8"),
}
_BOARD_POOLS: Final = {
    "dellemc-s5232f-c32": DynamicPool(26_284_032, -3, f"{_BUILDIMAGE} DellEMC-S5232f-C32"),
}


def pool_of(asic: str, *, hwsku: str = "") -> DynamicPool | None:
    """Returns the shared pool of that board, else of a known board with that ASIC (canonical name), else None."""
    return _BOARD_POOLS.get(hwsku.lower()) or _POOLS.get(asic)


def dynamic_threshold_bytes(*, pool_bytes: int, alpha_log2: int, congested: int) -> Fraction:
    """Returns T(n) = alpha·P / (1 + n·alpha), the XOFF threshold of each of n congested priority groups, in bytes.

    Args:
        pool_bytes: P, the shared pool.
        alpha_log2: alpha = 2^alpha_log2 (SONiC dynamic_th, -8..7).
        congested: n, at least 1.

    Source: switches.md 5.4; Choudhury and Hahne, "Dynamic queue length thresholds", 1998.
    """
    alpha = _alpha(alpha_log2)
    return alpha * pool_bytes / (1 + congested * alpha)


@dataclass(frozen=True, slots=True)
class EcnBeforePfc:
    """Whether a marking curve lies below the XOFF threshold.

    Attributes:
        kmin_crossed_at: smallest number of congested priority groups at which T(n) <= Kmin, so that PFC fires
            before a single mark.
        kmax_crossed_at: likewise for Kmax: from there on the curve never reaches its end.
        lossless_groups: n_max, the lossless priority groups of the switch.
        threshold_bytes: T(n_max), rounded down.
    """

    kmin_crossed_at: int
    kmax_crossed_at: int
    lossless_groups: int
    threshold_bytes: int

    @property
    def kmin_is_safe(self) -> bool:
        """Returns whether marking starts before PFC even when every lossless group is congested."""
        return self.kmin_crossed_at > self.lossless_groups

    @property
    def kmax_is_safe(self) -> bool:
        """Returns whether the whole curve lies before PFC even then."""
        return self.kmax_crossed_at > self.lossless_groups


def ecn_before_pfc(
    *, pool_bytes: int, alpha_log2: int, kmin_bytes: int, kmax_bytes: int, lossless_groups: int
) -> EcnBeforePfc:
    """Returns at which number of congested priority groups PFC comes before ECN.

    Source: switches.md 5.4, checks (A) and (B).
    """
    floor = dynamic_threshold_bytes(pool_bytes=pool_bytes, alpha_log2=alpha_log2, congested=max(lossless_groups, 1))
    return EcnBeforePfc(
        kmin_crossed_at=_crossed_at(pool_bytes, alpha_log2, kmin_bytes),
        kmax_crossed_at=_crossed_at(pool_bytes, alpha_log2, kmax_bytes),
        lossless_groups=lossless_groups,
        threshold_bytes=int(floor),
    )


def _crossed_at(pool_bytes: int, alpha_log2: int, threshold_bytes: int) -> int:
    """Returns the smallest n >= 1 with T(n) <= threshold: n >= P/K - 1/alpha."""
    return max(1, ceil(Fraction(pool_bytes, threshold_bytes) - 1 / _alpha(alpha_log2)))


def _alpha(alpha_log2: int) -> Fraction:
    return Fraction(2) ** alpha_log2


def dcqcn_static_pfc_bound_bytes(
    *, buffer_bytes: int, ports: int, flight_bytes: int, reserved_bytes: int = 0
) -> Fraction:
    """Returns the largest static XOFF threshold that cannot overflow the buffer: (B - 8·n·t_flight - s) / 8n.

    Args:
        buffer_bytes: B, the switch's buffer.
        ports: n, each with eight priorities.
        flight_bytes: t_flight, the headroom of one priority of one port.
        reserved_bytes: s, buffer that is not shared.

    Source: DCQCN (SIGCOMM 2015) section 4; switches.md 5.4.
    """
    return Fraction(buffer_bytes - 8 * ports * flight_bytes - reserved_bytes, 8 * ports)


def dcqcn_dynamic_ecn_bound_bytes(
    *, buffer_bytes: int, ports: int, flight_bytes: int, beta: int, reserved_bytes: int = 0
) -> Fraction:
    """Returns the bound that t_ECN must stay below with dynamic PFC thresholds: beta·(B - 8·n·t_flight - s) / 8n(beta + 1).

    Source: DCQCN (SIGCOMM 2015) section 4; switches.md 5.4.
    """  # noqa: E501  (the formula is one line)
    free = buffer_bytes - 8 * ports * flight_bytes - reserved_bytes
    return Fraction(beta * free, 8 * ports * (beta + 1))


def scaled_threshold_bytes(at_100g_bytes: int, speed_mbps: int) -> Fraction:
    """Returns a threshold given for 100G at another line rate, not rounded.

    Source: switches.md 5.5: thresholds in proportion to the line rate.
    """
    return Fraction(at_100g_bytes * speed_mbps, REFERENCE_SPEED_MBPS)
