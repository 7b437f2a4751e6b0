"""Thresholds: the table and the bounds of switches.md 5.4, exact."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.qos.thresholds import (
    dcqcn_dynamic_ecn_bound_bytes,
    dcqcn_static_pfc_bound_bytes,
    dynamic_threshold_bytes,
    ecn_before_pfc,
    pool_of,
    scaled_threshold_bytes,
)

SN4700, CX3 = 26_451_968, 32_732_160
CONGESTED = (1, 2, 8, 16, 32, 64)


@pytest.mark.parametrize(
    ("pool", "alpha_log2", "kib"),
    [
        (SN4700, 0, (12916, 8611, 2870, 1520, 783, 397)),
        (CX3, 0, (15982, 10655, 3552, 1880, 969, 492)),
        (CX3, -3, (3552, 3196, 1998, 1332, 799, 444)),
    ],
)
def test_dynamic_thresholds_are_those_of_the_reference_table(pool: int, alpha_log2: int, kib: tuple[int, ...]) -> None:
    found = [dynamic_threshold_bytes(pool_bytes=pool, alpha_log2=alpha_log2, congested=n) for n in CONGESTED]
    assert tuple(round(threshold / 1024) for threshold in found) == kib


def test_dcqcn_bounds_are_those_of_the_paper() -> None:
    static = dcqcn_static_pfc_bound_bytes(buffer_bytes=12_000_000, ports=32, flight_bytes=22_400)
    dynamic = dcqcn_dynamic_ecn_bound_bytes(buffer_bytes=12_000_000, ports=32, flight_bytes=22_400, beta=8)
    assert static == Fraction(24_475)
    assert f"{float(dynamic):.1f}" == "21755.6"


def test_reserved_buffer_lowers_both_bounds() -> None:
    static = dcqcn_static_pfc_bound_bytes(buffer_bytes=12_000_000, ports=32, flight_bytes=22_400, reserved_bytes=256)
    dynamic = dcqcn_dynamic_ecn_bound_bytes(
        buffer_bytes=12_000_000, ports=32, flight_bytes=22_400, beta=8, reserved_bytes=2304
    )
    assert static == 24_474
    assert dynamic == Fraction(8 * (6_265_600 - 2304), 2304)


@pytest.mark.parametrize(("threshold", "last_safe"), [(1_500_000, 16), (1_048_576, 24), (150_000, 175)])
def test_crossing_is_the_first_number_of_groups_whose_threshold_is_no_higher(threshold: int, last_safe: int) -> None:
    order = ecn_before_pfc(
        pool_bytes=SN4700, alpha_log2=0, kmin_bytes=threshold, kmax_bytes=threshold, lossless_groups=1
    )
    assert order.kmin_crossed_at == last_safe + 1


def test_curve_is_safe_up_to_the_group_before_the_crossing() -> None:
    curve = {"pool_bytes": SN4700, "alpha_log2": 0, "kmin_bytes": 150_000, "kmax_bytes": 1_500_000}
    assert ecn_before_pfc(**curve, lossless_groups=16).kmax_is_safe
    late = ecn_before_pfc(**curve, lossless_groups=17)
    assert (late.kmin_is_safe, late.kmax_is_safe) == (True, False)
    assert not ecn_before_pfc(**curve, lossless_groups=176).kmin_is_safe


def test_threshold_of_all_groups_is_reported_in_whole_bytes() -> None:
    order = ecn_before_pfc(pool_bytes=SN4700, alpha_log2=0, kmin_bytes=1, kmax_bytes=1, lossless_groups=64)
    assert order.threshold_bytes == 406_953


@given(
    pool=st.integers(1_000, 10**9),
    alpha_log2=st.integers(-8, 7),
    threshold=st.integers(1, 10**7),
)
def test_crossing_agrees_with_the_thresholds_on_both_sides(pool: int, alpha_log2: int, threshold: int) -> None:
    n = ecn_before_pfc(
        pool_bytes=pool, alpha_log2=alpha_log2, kmin_bytes=threshold, kmax_bytes=threshold, lossless_groups=1
    ).kmin_crossed_at
    assert dynamic_threshold_bytes(pool_bytes=pool, alpha_log2=alpha_log2, congested=n) <= threshold
    if n > 1:
        assert dynamic_threshold_bytes(pool_bytes=pool, alpha_log2=alpha_log2, congested=n - 1) > threshold


def test_thresholds_grow_with_the_line_rate_and_are_not_rounded() -> None:
    assert scaled_threshold_bytes(150_000, 400_000) == 600_000
    assert scaled_threshold_bytes(150_001, 25_000) == Fraction(150_001, 4)


def test_board_has_a_pool_of_its_own_before_that_of_its_asic() -> None:
    own, other = pool_of("trident3", hwsku="DellEMC-S5232f-C32"), pool_of("trident3", hwsku="DCS-7050CX3-32S")
    assert own is not None
    assert other is not None
    assert (own.size_bytes, own.alpha_log2) == (26_284_032, -3)
    assert other.size_bytes == CX3
    assert pool_of("teralynx") is None
