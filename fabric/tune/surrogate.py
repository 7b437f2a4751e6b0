"""What was not measured, foreseen: one Gaussian process for the score, one for how near a setting is to its limits.

What is worth a trial is its expected improvement times the probability that it is feasible (Gardner et al., Bayesian
Optimization with Inequality Constraints, ICML 2014). The best that is feasible often lies beside what is not, and there
the two pull in opposite directions. The process is that of Rasmussen and Williams, Gaussian Processes for Machine
Learning, 2006, algorithm 2.1, with a Matérn 5/2 kernel; its lengths maximise the likelihood (5.8) times a prior.

numpy is imported inside: it comes with optuna, and nothing else of the toolkit wants it. Products go through `einsum`,
not BLAS: its threads wait for each other, long on a loaded host, and their number changes last bits. Knows no knobs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, exp, pi, sqrt
from typing import TYPE_CHECKING, Final

from fabric.errors import EnvironmentMissingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ("Measured", "promises")

LENGTH: Final = 2.0  # a factor of four in a knob, before anything is known of it
FACTORS: Final = (0.5, 2.0)  # what a length is multiplied with in one step of its fit
ROUNDS: Final = 3
PRIOR: Final = 1.0  # standard deviation of the logarithm of a length


@dataclass(frozen=True, slots=True)
class Measured:
    """One setting as the surrogate sees it.

    Attributes:
        place: coordinates in which one unit is about as far in each direction.
        value: to be made large; a difference of 0.01 is 1 %. noise: standard error of it.
        excess: above 0 when it is infeasible, below when it is feasible; about 1 for far.
    """

    place: tuple[float, ...]
    value: float
    noise: float
    excess: float


@dataclass(frozen=True, slots=True)
class _Process:
    """A fitted process; `lengths` has one per direction, then the noise's factor."""

    places: "Array"
    lengths: "Array"
    mean: float
    scale: float
    inverse: "Array"
    weights: "Array"

    def at(self, places: "Array") -> tuple["Array", "Array"]:
        """Returns means and standard deviations."""
        import numpy as np

        kernel = _kernel(places, self.places, self.lengths)
        means = self.mean + self.scale * np.einsum("ij,j->i", kernel, self.weights)
        known = np.einsum("ij,ij->i", np.einsum("ij,jk->ik", kernel, self.inverse), kernel)
        return means, self.scale * np.sqrt(np.maximum(1.0 - known, 1e-9))


def promises(
    seen: Sequence[Measured], places: Sequence[tuple[float, ...]], best: float | None
) -> tuple[list[float], list[float]]:
    """Returns what each place promises, and the probability that it is feasible.

    Args:
        seen: what was measured, two settings or more.
        places: what may be measured.
        best: value of the best that is feasible, None where nothing is: then feasibility alone counts.

    Raises:
        EnvironmentMissingError: numpy is not installed.
    """
    try:
        import numpy as np  # heavy: see above
    except ImportError as error:
        remedy = "pip install 'fabricctl[tune]'"
        raise EnvironmentMissingError("tuning needs numpy", remedy=remedy) from error
    at, wanted = np.array([one.place for one in seen]), np.array(places)
    noise = np.array([one.noise for one in seen])
    limit = _fit(at, np.array([one.excess for one in seen]), np.full(len(seen), 0.1))
    over, over_spread = limit.at(wanted)
    able = [_below(float(z)) for z in -over / over_spread]
    if best is None:
        return able, able
    process = _fit(at, np.array([one.value for one in seen]), noise)
    means, spreads = process.at(wanted)
    gains = [_improvement(float(mean) - best, float(spread)) for mean, spread in zip(means, spreads, strict=True)]
    # rounded: what differs in its last bits from one machine to another would undo a resumed study
    return [round(gain * chance, 9) for gain, chance in zip(gains, able, strict=True)], able


def _fit(places: "Array", values: "Array", noise: "Array") -> _Process:
    """Returns the process whose lengths are likeliest, by steps along one of them at a time."""
    import numpy as np

    count = places.shape[1]
    start = np.full(count + 1, LENGTH)
    start[-1] = 1.0
    mean, scale = float(values.mean()), max(float(values.std()), 1e-3)
    standard, noise = (values - mean) / scale, noise / scale
    best, top = start, _likelihood(places, standard, noise, start)
    for _ in range(ROUNDS):
        before = top
        for index in range(count + 1):
            for factor in FACTORS:
                lengths = best.copy()
                lengths[index] *= factor
                found = _likelihood(places, standard, noise, lengths) - _unlikely(lengths, start)
                if found > top + 1e-9:
                    best, top = lengths, found
        if top == before:
            break
    inverse = np.asarray(np.linalg.inv(_covariance(places, noise, best)), dtype=np.float64)
    return _Process(places, best[:-1], mean, scale, inverse, inverse @ standard)


def _unlikely(lengths: "Array", start: "Array") -> float:
    import numpy as np

    return float(np.sum((np.log(lengths / start) / PRIOR) ** 2) / 2)


def _likelihood(places: "Array", values: "Array", noise: "Array", lengths: "Array") -> float:
    import numpy as np

    lower = np.linalg.cholesky(_covariance(places, noise, lengths))
    half = np.linalg.solve(lower, values)
    return float(-(half @ half) / 2 - np.log(np.diag(lower)).sum())


def _covariance(places: "Array", noise: "Array", lengths: "Array") -> "Array":
    import numpy as np

    return _kernel(places, places, lengths[:-1]) + np.diag((noise * lengths[-1]) ** 2 + 1e-6)


def _kernel(one: "Array", other: "Array", lengths: "Array") -> "Array":
    """Returns Matérn 5/2 of all pairs."""
    import numpy as np

    square = np.zeros((len(one), len(other)))
    for left, right in zip((one / lengths).T, (other / lengths).T, strict=True):
        square += (left[:, None] - right[None, :]) ** 2
    far = np.sqrt(5 * square)
    found: Array = (1 + far + far**2 / 3) * np.exp(-far)
    return found


def _below(z: float) -> float:
    """Returns the share of a normal distribution below z."""
    return (1 + erf(z / sqrt(2))) / 2


def _improvement(gain: float, spread: float) -> float:
    """Returns the mean of what is above 0 of a normal distribution."""
    z = gain / spread
    return gain * _below(z) + spread * exp(-z * z / 2) / sqrt(2 * pi)
