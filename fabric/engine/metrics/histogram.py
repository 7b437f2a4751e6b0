"""Durations counted in fixed buckets. A sample costs a search and three integers; no float, and nothing is allocated.

Edges are Renard's ten a decade (ISO 3, R10) from 10 µs to 25 s, and 30 s: each at most 1.28 times the one before. So a
percentile read from the counts is at least the true one and less than 1.28 times that, between 10 µs and 30 s.
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

__all__ = ("EDGES_NS", "MOST_RATIO", "Histogram", "Tally")

_TENTHS: Final = (100, 125, 160, 200, 250, 315, 400, 500, 630, 800)  # ISO 3, R10, in hundredths
_FIRST_NS: Final = 10_000

EDGES_NS: Final[tuple[int, ...]] = (
    *(_FIRST_NS * 10**decade * tenth // 100 for decade in range(7) for tenth in _TENTHS if decade < 6 or tenth <= 250),
    30_000_000_000,
)
MOST_RATIO: Final = 1.28  # 1.60 / 1.25, the widest bucket


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of durations, as plain data.

    Attributes:
        counts: `counts[i]` samples were above `EDGES_NS[i - 1]` and at most `EDGES_NS[i]`; the last: above all edges.
        sum_ns: of all samples.
        highest_ns: of all samples, 0 without one.
    """

    counts: tuple[int, ...] = (0,) * (len(EDGES_NS) + 1)
    sum_ns: int = 0
    highest_ns: int = 0

    @property
    def count(self) -> int:
        """How many samples."""
        return sum(self.counts)

    @property
    def mean_ns(self) -> int | None:
        """The exact mean, None without a sample."""
        return self.sum_ns // self.count if self.count else None

    def percentile_ns(self, percent: float) -> int | None:
        """Returns a duration that `percent` of the samples do not exceed, None without a sample.

        It is not below the smallest such duration, and less than `MOST_RATIO` times that if that is 10 µs to 30 s.
        Below 10 µs it is at most 10 µs, above 30 s the highest sample.

        Raises:
            ValueError: `percent` is not above 0 and at most 100.
        """
        if not 0 < percent <= 100:
            raise ValueError(f"a percentile is above 0 and at most 100, not {percent}")
        total = self.count
        for reached, edge in zip(accumulate(self.counts), (*EDGES_NS, self.highest_ns), strict=True):
            if total and reached * 100 >= percent * total:
                return min(edge, self.highest_ns)
        return None

    def __add__(self, other: "Histogram") -> "Histogram":
        """Returns both together."""
        counts = tuple(one + two for one, two in zip(self.counts, other.counts, strict=True))
        return Histogram(counts, self.sum_ns + other.sum_ns, max(self.highest_ns, other.highest_ns))

    def since(self, earlier: "Histogram") -> "Histogram":
        """Returns what was counted after an earlier snapshot of the same; the highest sample may be an older one."""
        counts = tuple(one - two for one, two in zip(self.counts, earlier.counts, strict=True))
        return Histogram(counts, self.sum_ns - earlier.sum_ns, self.highest_ns)


class Tally:
    """A histogram that is being counted."""

    __slots__ = ("_counts", "_highest_ns", "_sum_ns")

    def __init__(self) -> None:
        self._counts = [0] * (len(EDGES_NS) + 1)
        self._sum_ns = 0
        self._highest_ns = 0

    def add(self, duration_ns: int) -> None:
        """Counts one sample."""
        self._counts[bisect_left(EDGES_NS, duration_ns)] += 1
        self._sum_ns += duration_ns
        if duration_ns > self._highest_ns:  # noqa: PLR1730, a call of `max` costs three times that
            self._highest_ns = duration_ns

    def histogram(self) -> Histogram:
        """Returns what was counted until now."""
        return Histogram(tuple(self._counts), self._sum_ns, self._highest_ns)
