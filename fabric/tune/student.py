"""Intervals of means of few numbers. Student's t by a table: the standard library has none."""

from collections.abc import Sequence
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Final

__all__ = ("half_width", "paired_gain")

# Quantiles 0.975 and 0.95 of Student's t for 1..10 degrees of freedom (NIST/SEMATECH e-Handbook of Statistical Methods,
# 1.3.6.7.2)
TWO_SIDED: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
ONE_SIDED: Final = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)


def half_width(values: Sequence[float], *, sides: int = 2) -> float:
    """Returns half of the 95 % interval of the mean; infinite for fewer than two numbers.

    Beyond 11 numbers the quantile of 11 is kept, which is a little too wide.
    """
    if len(values) < 2:
        return inf
    table = TWO_SIDED if sides == 2 else ONE_SIDED
    return table[min(len(values) - 2, len(table) - 1)] * stdev(values) / sqrt(len(values))


def paired_gain(ours: dict[int, float], theirs: dict[int, float]) -> tuple[float, float]:
    """Returns the 95 % interval of the mean of ours / theirs - 1 over common seeds; (-inf, inf) below two."""
    gains = [ours[seed] / theirs[seed] - 1 for seed in sorted(ours.keys() & theirs.keys()) if theirs[seed] > 0]
    if len(gains) < 2:
        return -inf, inf
    half = half_width(gains)
    return fmean(gains) - half, fmean(gains) + half
