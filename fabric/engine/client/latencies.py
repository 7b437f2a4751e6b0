"""Durations counted so that a percentile is off by less than 1 %, in bounded memory: 64 buckets for each doubling.

Finer than `metrics.Histogram`, whose fixed edges suit a time series; a person who compares two runs wants more digits.
"""

from collections import Counter

__all__ = ("Latencies",)

_BITS = 6  # of the mantissa: 64 buckets a doubling, so that a bucket is at most 1/64 wide and its middle off by half


class Latencies:
    """Counts of nanoseconds.

    Attributes:
        count: how many.
        highest_ns: of all; 0 without one.
    """

    def __init__(self) -> None:
        self.count = 0
        self.highest_ns = 0
        self._counts: Counter[int] = Counter()

    def add(self, duration_ns: int) -> None:
        """Counts one, 0 or more."""
        shift = max(duration_ns.bit_length() - _BITS - 1, 0)
        self._counts[(duration_ns >> shift) + (shift << _BITS)] += 1
        self.count += 1
        if duration_ns > self.highest_ns:  # noqa: PLR1730, a call of `max` costs three times that
            self.highest_ns = duration_ns

    def percentile_ns(self, percent: float) -> int | None:
        """Returns the duration that `percent` of the samples do not exceed, within 1 %; None without a sample.

        Raises:
            ValueError: `percent` is not above 0 and at most 100.
        """
        if not 0 < percent <= 100:
            raise ValueError(f"a percentile is above 0 and at most 100, not {percent}")
        seen = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen * 100 >= percent * self.count:
                return min(_middle(bucket), self.highest_ns)
        return None


def _middle(bucket: int) -> int:
    # below 128 each number is its own bucket; above, the mantissa is 64 to 127
    if bucket < 2 << _BITS:
        return bucket
    shift = (bucket >> _BITS) - 1
    mantissa = bucket - (shift << _BITS)
    return (mantissa << shift) + (1 << shift >> 1)
