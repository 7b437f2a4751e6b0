"""Where to try next: a Latin hypercube at first, then the tree-structured Parzen estimator of optuna.

Both give steps of the ladders. optuna is imported inside the function that needs it: it brings numpy and a database
toolkit, and nothing else of the toolkit wants them.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabric.errors import EnvironmentMissingError
from fabric.tune.knobs import NAMES, Space

__all__ = ("Seen", "estimate", "latin_hypercube")

SEEDS = 1 << 32  # numpy takes seeds below it


@dataclass(frozen=True, slots=True)
class Seen:
    """One setting as the estimator sees it.

    Attributes:
        steps: its place in the space. value: to be made large.
        violation: above 0 when it is infeasible; the more, the worse.
    """

    steps: tuple[int, ...]
    value: float
    violation: float


def latin_hypercube(space: Space, count: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Returns so many places: each ladder is cut into `count` equal parts, each used once."""
    dice = random.Random(seed)  # noqa: S311, repeatable on purpose
    columns = []
    for size in space.sizes():
        parts = list(range(count))
        dice.shuffle(parts)
        columns.append([int((part + dice.random()) / count * size) for part in parts])
    return tuple(zip(*columns, strict=True))


def estimate(space: Space, seen: Sequence[Seen], seed: int) -> Iterator[tuple[int, ...]]:
    """Yields places that the estimator would try next, for ever; the same for the same arguments.

    Each takes those before it for tried, so that they differ.

    Raises:
        EnvironmentMissingError: optuna is not installed.
    """
    try:
        import optuna  # heavy: see above
    except ImportError as error:
        remedy = "pip install 'fabricctl[tune]'"
        raise EnvironmentMissingError("tuning needs optuna", remedy=remedy) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ways = {
        name: optuna.distributions.IntDistribution(0, size - 1)
        for name, size in zip(NAMES, space.sizes(), strict=True)
        if size > 1
    }
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(n_startup_trials=1, multivariate=True, seed=seed % SEEDS),
    )
    study.add_trials(
        [
            optuna.trial.create_trial(
                value=one.value,
                params={name: step for name, step in zip(NAMES, one.steps, strict=True) if name in ways},
                distributions=dict(ways),
                constraints={"feasible": one.violation},
            )
            for one in seen
        ]
    )
    while True:
        asked = study.ask(fixed_distributions=dict(ways)).params
        yield tuple(int(asked.get(name, 0)) for name in NAMES)
