"""What a load's length and seed do to every score: an additive model of logarithms. Pure arithmetic.

A trial's score is its setting's worth times what its load makes of it. Both follow from settings that were measured
under several loads: two means in turn, each with the other taken off (a two-way layout without interaction), until
nothing moves. What few have told of a load is drawn towards no effect.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Final

__all__ = ("Load", "loads_of")

Load = tuple[float, int]
"""(fidelity, seed) of trials that see equal load."""

FULL: Final = 1.0
TURNS: Final = 12
DOUBT: Final = 0.5  # of a setting at full fidelity, as evidence that a load does nothing


def loads_of(trials: Iterable[tuple[Hashable, Load, float, float]]) -> dict[Load, float]:
    """Returns load → what it adds to the logarithm of a score, 0 in the mean of those at full fidelity.

    Args:
        trials: (setting, load, logarithm of the score, weight) of each.
    """
    by_setting: dict[Hashable, list[tuple[Load, float, float]]] = defaultdict(list)
    for setting, load, value, weight in trials:
        by_setting[setting].append((load, value, weight))
    several = [rows for rows in by_setting.values() if len({load for load, _, _ in rows}) > 1]
    found = {load: 0.0 for rows in several for load, _, _ in rows}
    for _ in range(TURNS):
        sums: dict[Load, float] = defaultdict(float)
        weights: dict[Load, float] = defaultdict(lambda: DOUBT)
        for rows in several:
            mean = sum((value - found[load]) * weight for load, value, weight in rows) / sum(w for _, _, w in rows)
            for load, value, weight in rows:
                sums[load] += (value - mean) * weight
                weights[load] += weight
        found = {load: sums[load] / weights[load] for load in found}
        full = [load for load in found if load[0] >= FULL]
        middle = sum(found[load] for load in full) / len(full) if full else 0.0
        found = {load: effect - middle for load, effect in found.items()}
    return found
