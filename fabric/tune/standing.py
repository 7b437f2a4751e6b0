"""What all trials of one setting say together, and which setting leads. Knows neither how trials are chosen nor why."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, median, stdev

from fabric.qos import Known, known
from fabric.tune.journal import Told
from fabric.tune.knobs import Knobs
from fabric.tune.outcome import Goal, Limits, Outcome, flaws, score
from fabric.tune.student import half_width

__all__ = ("FULL", "Book", "Standing", "mean_outcome")

FULL = 1.0


@dataclass(frozen=True, slots=True)
class Standing:
    """All trials of one setting, in order; at least one."""

    knobs: Knobs
    told: tuple[Told, ...]

    def flaws(self, limits: Limits) -> tuple[str, ...]:
        """Returns what is wrong with any of its trials, and with the upper end of its pauses or marks.

        The ends are those of one-sided 95 % intervals over the trials at full fidelity: a share that held by luck is
        likely to exceed its limit once deployed.
        """
        found = dict.fromkeys(flaw for one in self.told for flaw in flaws(one.outcome, limits))
        full = [one.outcome for one in self.at(FULL)]
        if not found and len(full) > 1:
            for what, shares, most in (
                ("paused", [known(one.pause_share, 1.0) for one in full], limits.pause_share_max),
                ("marked", [known(one.marks_share, 1.0) for one in full], limits.marks_share_max),
            ):
                upper = fmean(shares) + half_width(shares, sides=1)
                if upper > most:
                    found[f"may be {what} {upper:.2%}"] = None
        return tuple(found)

    def score(self, goal: Goal) -> float:
        """Returns the mean over its trials, each as heavy as its fidelity."""
        weights = sum(one.trial.fidelity for one in self.told)
        return sum(score(one.outcome, goal) * one.trial.fidelity for one in self.told) / weights

    def at(self, fidelity: float) -> tuple[Told, ...]:
        """Returns its trials of that fidelity or more."""
        return tuple(one for one in self.told if one.trial.fidelity >= fidelity)

    def by_seed(self, goal: Goal) -> dict[int, float]:
        """Returns seed → score of its trials at full fidelity."""
        return {one.trial.seed: score(one.outcome, goal) for one in self.at(FULL)}


@dataclass(slots=True)
class Book:
    """All trials of a study.

    Attributes:
        raised_at: number of trials told when the leading score last rose by more than 1 % and two standard errors, or
            the leader fell: then the search begins anew from a lower one.
    """

    limits: Limits
    goal: Goal
    told: list[Told] = field(default_factory=list)
    raised_at: int = 0
    _lead: float = 0.0
    _by_knobs: dict[Knobs, Standing] = field(default_factory=dict)

    def add(self, told: Told) -> None:
        """Takes one trial."""
        self.told.append(told)
        knobs = told.trial.knobs
        before = self._by_knobs.get(knobs)
        self._by_knobs[knobs] = Standing(knobs, (*(before.told if before else ()), told))
        leader = self.leader()
        lead = leader.score(self.goal) if leader else 0.0
        sure = max(0.01, 2 * self.noise())
        if lead > self._lead * (1 + sure) or lead < self._lead * (1 - sure):
            self._lead, self.raised_at = lead, len(self.told)

    def __contains__(self, knobs: Knobs) -> bool:
        return knobs in self._by_knobs

    def __getitem__(self, knobs: Knobs) -> Standing:
        return self._by_knobs[knobs]

    def standings(self) -> Iterator[Standing]:
        """Yields each setting once, in the order in which they were first tried."""
        yield from self._by_knobs.values()

    def ranked(self) -> list[Standing]:
        """Returns the feasible settings, best first."""
        feasible = [one for one in self.standings() if not one.flaws(self.limits)]
        return sorted(feasible, key=lambda one: -one.score(self.goal))

    def leader(self) -> Standing | None:
        """Returns the best feasible setting."""
        return next(iter(self.ranked()), None)

    def noise(self) -> float:
        """Returns the relative standard error of one setting's mean: the median over settings tried more than once."""
        found = []
        for one in self.standings():
            scores = [score(told.outcome, self.goal) for told in one.told]
            if len(scores) > 1 and fmean(scores) > 0:
                found.append(stdev(scores) / fmean(scores) / sqrt(len(scores)))
        return median(found) if found else 0.0


def mean_outcome(told: tuple[Told, ...]) -> Outcome:
    """Returns the mean of what varies, the sum of what was lost, the worst of pauses, marks and fairness."""
    outcomes = [one.outcome for one in told]

    def worst(values: list[Known[float]]) -> Known[float]:
        return max(values, key=lambda one: known(one, 2.0))  # UNKNOWN is worse than any share

    losses = [one.lost for one in outcomes]
    unknown = [one for one in losses if not isinstance(one, int)]
    return Outcome(
        bytes_per_s=fmean(one.bytes_per_s for one in outcomes),
        p50_ns=round(fmean(one.p50_ns for one in outcomes)),
        p99_ns=round(fmean(one.p99_ns for one in outcomes)),
        last_byte_ns=round(fmean(one.last_byte_ns for one in outcomes)),
        fairness=min(one.fairness for one in outcomes),
        lost=unknown[0] if unknown else sum(one for one in losses if isinstance(one, int)),
        pause_share=worst([one.pause_share for one in outcomes]),
        marks_share=worst([one.marks_share for one in outcomes]),
        errors=sum(one.errors for one in outcomes),
        packets=sum(one.packets for one in outcomes),
    )
