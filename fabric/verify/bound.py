"""How much may be lost although none, or k, were seen: upper bounds on a rate, one-sided. Pure arithmetic.

Losses cluster, so the bound per packet is stated beside the bound per burst. Source: Clopper and Pearson, Biometrika
26 (1934) 404; the incomplete beta function by Lentz's continued fraction, DLMF 8.17.22.
"""

import math
from typing import Final

__all__ = ("exact_zero", "needed_for", "rule_of_three", "upper_bound")

_TINY: Final = 1e-300
_STEPS: Final = 200  # halvings: far below one unit in the last place of a float


def rule_of_three(trials: int) -> float:
    """Returns 3/n, close to the exact bound at 95 % for n above 30; 1 for n below 3."""
    return min(1.0, 3 / trials) if trials > 0 else 1.0


def exact_zero(trials: int, *, confidence: float = 0.95) -> float:
    """Returns 1 - a^(1/n), a = 1 - confidence: the largest rate at which n trials without an event have chance a."""
    return -math.expm1(math.log(1 - confidence) / trials) if trials > 0 else 1.0


def needed_for(rate: float, *, confidence: float = 0.95) -> int:
    """Returns the trials without an event that bound the rate by `rate`."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-rate))


def upper_bound(events: int, trials: int, *, confidence: float = 0.95) -> float:
    """Returns Clopper and Pearson's one-sided upper bound on the rate; 1 when every trial had an event.

    Args:
        events: how many of the trials had one.
        trials: n.
        confidence: 0.95 for 95 %.

    Raises:
        ValueError: fewer trials than events, or a confidence that is none.
    """
    if not 0 <= events <= trials or not 0 < confidence < 1:
        raise ValueError(f"{events} events in {trials} trials at {confidence} is no measurement")
    if events == 0:
        return exact_zero(trials, confidence=confidence)
    if events == trials:
        return 1.0
    alpha = 1 - confidence
    low, high = events / trials, 1.0
    for _ in range(_STEPS):
        middle = math.sqrt(low * high) if high > 4 * low else (low + high) / 2
        if middle in {low, high}:
            break
        if _at_most(events, trials, middle) > alpha:
            low = middle
        else:
            high = middle
    return high


def _at_most(events: int, trials: int, rate: float) -> float:
    """Returns the chance of at most that many events: 1 - I_rate(k + 1, n - k)."""
    return _incomplete_beta(trials - events, events + 1, 1 - rate)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return float(x >= 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    front = math.exp(log_front)
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for step in range(1, 100_000):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        d, c = 1 / _away(1 + even * d), _away(1 + even / c)
        value *= d * c
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        d, c = 1 / _away(1 + odd * d), _away(1 + odd / c)
        value *= d * c
        if abs(d * c - 1) < 1e-14:
            return value
    return value


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
