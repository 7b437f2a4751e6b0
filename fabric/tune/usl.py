"""The universal scalability law over queues: what one more queue brings, and when it takes away.

X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)), by relative least squares on n / X(n), which is linear in
1/lambda, sigma/lambda, kappa/lambda. Source: N. Gunther, Guerrilla Capacity Planning, 2007, chapter 5.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, sqrt

from fabric.tune.nnls import nnls

__all__ = ("LEAST_POINTS", "ScalingLaw", "fit_law", "smallest_near_best")

LEAST_POINTS = 3  # three coefficients; the study asks for 5 and more over 1..cores
NEAR_BEST = 0.97  # of the maximum: simulation study 4.3, step 4


@dataclass(frozen=True, slots=True)
class ScalingLaw:
    """A fitted law.

    Attributes:
        rate: lambda, what one queue alone gives in bytes a second.
        contention: sigma. crosstalk: kappa.
        error: root mean square of (fit / measured - 1), 0.05 is 5 %.
    """

    rate: float
    contention: float
    crosstalk: float
    error: float

    def at(self, queues: float) -> float:
        """Returns X(n)."""
        slower = 1 + self.contention * (queues - 1) + self.crosstalk * queues * (queues - 1)
        return self.rate * queues / slower

    def peak(self) -> int | None:
        """Returns n* = floor(sqrt((1 - sigma) / kappa)), at least 1; None where more queues never take away."""
        if self.crosstalk <= 0:
            return None
        return max(1, floor(sqrt(max(0.0, 1 - self.contention) / self.crosstalk)))


def fit_law(points: Iterable[tuple[int, float]]) -> ScalingLaw | None:
    """Returns the law of (queues, bytes a second) points; None when fewer than three counts of queues brought bytes."""
    good = [(queues, rate) for queues, rate in points if rate > 0]
    if len({queues for queues, _ in good}) < LEAST_POINTS:
        return None
    rows = [[rate / n, rate / n * (n - 1), rate * (n - 1)] for n, rate in good]
    top = max(rate for _, rate in good)  # so that all columns are near 1
    (inverse, sigma, kappa), _ = nnls([[one / top for one in row] for row in rows], [1.0] * len(rows))
    if inverse <= 0:
        return None
    law = ScalingLaw(top / inverse, sigma / inverse, kappa / inverse, 0.0)
    error = sqrt(sum((law.at(n) / rate - 1) ** 2 for n, rate in good) / len(good))
    return ScalingLaw(law.rate, law.contention, law.crosstalk, error)


def smallest_near_best(law: ScalingLaw, counts: Sequence[int], *, ceiling: float | None = None) -> int:
    """Returns the smallest of the counts with X(n) ≥ 0.97 of the best: fewer queues are fewer rate limiters.

    Args:
        law: the fit.
        counts: of queues that may be chosen, any order, at least one.
        ceiling: what the path allows, None for no such bound; X(n) above it counts as it.
    """
    rates = {count: law.at(count) if ceiling is None else min(law.at(count), ceiling) for count in counts}
    best = max(rates.values())
    return min(count for count, rate in rates.items() if rate >= NEAR_BEST * best)
