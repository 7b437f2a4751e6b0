"""Ratios of interleaved pairs, with their interval."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

__all__ = ("Ratio", "ratio")

_DRAWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of paired ratios, and where 95 % of the medians of resampled pairs lie (percentile bootstrap)."""

    median: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.median:.2f}x ({self.low:.2f} to {self.high:.2f}, {self.pairs} pairs)"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Returns ours over theirs; both in the order of their rounds."""
    pairs = [one / other for one, other in zip(ours, theirs, strict=True)]
    chance = random.Random(1)
    medians = sorted(median(chance.choices(pairs, k=len(pairs))) for _ in range(_DRAWS))
    return Ratio(median(pairs), medians[int(0.025 * _DRAWS)], medians[int(0.975 * _DRAWS)], len(pairs))
