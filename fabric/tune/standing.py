"""What all trials of one setting say together, and which setting leads. Knows neither how trials are chosen nor why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import exp, inf, log, log10, sqrt
from statistics import fmean, median, stdev

from fabric.qos import UNKNOWN, Known, known
from fabric.tune.asking import FULL
from fabric.tune.essence import Essence, Offer, are_beside, essence
from fabric.tune.journal import Told
from fabric.tune.knobs import Knobs
from fabric.tune.loads import Load, loads_of
from fabric.tune.outcome import Goal, Limits, Outcome, flaws, score
from fabric.tune.student import half_width

__all__ = ("WORTH", "Book", "Standing", "are_level", "are_twins", "mean_outcome")

EARLY, LENIENCE = 3, 2  # fewer whole trials than this, one of them within limits: their mean may be so much above
FARTHEST = 1.5  # decades from a limit; beyond it all is equally good or bad
MOST_FULL = 12  # trials at full fidelity; what is not clear by then is not deployed
BEHIND = 1 - 1e-6  # of the worth of a twin that was measured more
WORTH = 0.01  # the least gain that is worth a change: the whole interval has to be above it, simulation study 4.4
TWIN = 0.002  # of their scores: two settings that differ by less under equal load did the same


@dataclass(frozen=True, slots=True)
class Standing:
    """All trials of one setting, in order; at least one."""

    knobs: Knobs
    told: tuple[Told, ...]

    def flaws(self, limits: Limits) -> tuple[str, ...]:
        """Returns what is wrong with any of its trials, and with the upper end of its pauses or marks.

        The ends are those of one-sided 95 % intervals over the trials at full fidelity, once there are as many as there
        may be: a share that held by luck is likely to exceed its limit once deployed.
        """
        found = dict.fromkeys(flaw for one in self._judged() for flaw in flaws(one, limits))
        if not found and len(self.at(FULL)) >= MOST_FULL:
            found |= dict.fromkeys(self._doubts(limits))
        return tuple(found)

    def has_fallen(self, limits: Limits) -> bool:
        """Returns whether the search is done with it: it has flaws, and its mean is of enough trials to say so.

        The mean of fewer whole trials than `EARLY`, one of them within the limits, has to be far above a limit. It may
        not be deployed with that: it is open until more have shown where its mean is.
        """
        judged, whole = limits, [one.outcome for one in self.at(FULL)]
        if len(whole) < EARLY and any(not flaws(one, limits) for one in whole):
            judged = replace(
                limits,
                pause_share_max=LENIENCE * limits.pause_share_max,
                marks_share_max=LENIENCE * limits.marks_share_max,
            )
        is_early = judged is not limits and not any(flaws(one, judged) for one in self._judged())
        return bool(self.flaws(limits)) and not is_early

    def _judged(self) -> Iterator[Outcome]:
        """Yields the outcome of each trial with the shares of all: a share is a mean over time, however it is cut."""
        weights = [one.trial.fidelity for one in self.told]

        def mean(shares: list[Known[float]]) -> Known[float]:
            known_ones = [one for one in shares if one is not UNKNOWN]
            if len(known_ones) < len(shares):
                return UNKNOWN
            return sum(one * weight for one, weight in zip(known_ones, weights, strict=True)) / sum(weights)

        paused = mean([one.outcome.pause_share for one in self.told])
        marked = mean([one.outcome.marks_share for one in self.told])
        for one in self.told:
            yield replace(one.outcome, pause_share=paused, marks_share=marked)

    def is_open(self, limits: Limits) -> bool:
        """Returns whether more trials have to show that its pauses and marks hold their limits."""
        few = len(self.at(FULL)) < MOST_FULL and self.is_near(limits)
        return few and any(self._doubts(limits))

    def _doubts(self, limits: Limits) -> Iterator[str]:
        full = [one.outcome for one in self.at(FULL)]
        for what, shares, most in (
            ("paused", [known(one.pause_share, 1.0) for one in full], limits.pause_share_max),
            ("marked", [known(one.marks_share, 1.0) for one in full], limits.marks_share_max),
        ):
            upper = fmean(shares) + half_width(shares, sides=1) if shares else inf
            if upper > most and most < 1:
                yield f"may be {what} {upper:.2%}"

    def excess(self, limits: Limits) -> float:
        """Returns how far it is from what may be deployed, in decades: above 0 when it may not, below when it may."""
        worst = max(_excess(one, limits) for one in self._judged())
        return max(worst, 0.1) if self.has_fallen(limits) else min(worst, -0.01)

    def may_recover(self, limits: Limits) -> bool:
        """Returns whether only short trials speak against it, and one whole without pauses or marks would clear it."""
        last = self.told[-1]
        clean = replace(last.outcome, pause_share=0.0, marks_share=0.0)
        whole = Told(replace(last.trial, fidelity=FULL), clean)
        return (
            not self.at(FULL)
            and self.has_fallen(limits)
            and not Standing(self.knobs, (*self.told, whole)).has_fallen(limits)
        )

    @property
    def has_lost(self) -> bool:
        """Returns whether it is known to have lost; UNKNOWN says nothing of other settings."""
        return any(known(one.outcome.lost, 0) for one in self.told)

    @property
    def was_lucky(self) -> bool:
        """Returns whether it lost in some of its trials and not in others."""
        return len({known(one.outcome.lost, 0) > 0 for one in self.told}) == 2

    def is_near(self, limits: Limits) -> bool:
        """Returns whether a trial came to half of what pauses or marks may be."""
        return any(
            known(one.outcome.pause_share, 1.0) > limits.pause_share_max / 2
            or known(one.outcome.marks_share, 1.0) > limits.marks_share_max / 2
            for one in self.told
        )

    def score(self, goal: Goal, loads: Mapping[Load, float]) -> float:
        """Returns the mean over its trials, each as heavy as its fidelity, with what each load does taken off."""
        found = [(score(one.outcome, goal), one.trial) for one in self.told]
        weights = sum(trial.fidelity for _, trial in found)
        rates = (value * exp(-loads.get((trial.fidelity, trial.seed), 0.0)) * trial.fidelity for value, trial in found)
        return sum(rates) / weights

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
        offer: what the load asks for at a time.
        raised_at: number of trials told when the leading score last rose by more than 1 % and two standard errors, or
            the leader fell: then the search begins anew from a lower one.
    """

    limits: Limits
    goal: Goal
    offer: Offer = field(default_factory=Offer)
    told: list[Told] = field(default_factory=list)
    raised_at: int = 0
    _lead: float = 0.0
    _lost: set[Knobs] = field(default_factory=set)
    _lucky: dict[Knobs, Essence] = field(default_factory=dict)
    _by_knobs: dict[Knobs, Standing] = field(default_factory=dict)
    _known_loads: dict[Load, float] | None = None

    def add(self, told: Told) -> None:
        """Takes one trial."""
        self.told.append(told)
        self._known_loads = None
        knobs = told.trial.knobs
        before = self._by_knobs.get(knobs)
        self._by_knobs[knobs] = Standing(knobs, (*(before.told if before else ()), told))
        if self._by_knobs[knobs].has_lost:
            self._lost.add(knobs)
            if self._by_knobs[knobs].was_lucky:
                self._lucky[knobs] = essence(knobs, self.offer)
        leader = self.leader()
        lead = self.worth(leader) if leader else 0.0
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
        """Returns the feasible settings, best first.

        Those are left out that did the same as one that fell at full fidelity, and those that loss forbids. But what
        was clean at full fidelity is judged by that, though it be above one that lost: loss need not grow with a knob.
        """
        feasible, fallen = [], []
        for one in self.standings():
            if not one.has_fallen(self.limits):
                feasible.append(one)
            elif one.at(FULL):
                fallen.append(one)
        able = [
            one
            for one in feasible
            if not any(are_twins(one, other) for other in fallen)
            and not self._is_beside_luck(one.knobs)
            and (one.at(FULL) or not self._is_above_loss(one.knobs))
        ]
        worth = {one.knobs: self.worth(one) for one in able}
        for one in able:  # what did the same as another one and was measured less would lead by luck
            twins = (other for other in able if len(other.at(FULL)) > len(one.at(FULL)) and are_twins(one, other))
            worth[one.knobs] = min((worth[one.knobs], *(BEHIND * self.worth(other) for other in twins)))
        return sorted(able, key=lambda one: -worth[one.knobs])

    def worth(self, standing: Standing) -> float:
        """Returns the score of a setting over its trials, each as heavy as its fidelity.

        A load is lighter or harder by its length and its seed. How much it is follows from the settings that were
        measured under several, and is taken off: else what was measured under a light load alone would lead.
        """
        return standing.score(self.goal, self._loads())

    def _loads(self) -> dict[Load, float]:
        """Returns load → logarithm of how much higher all score under it than at full fidelity."""
        if self._known_loads is None:
            trials = [
                (one.knobs, (told.trial.fidelity, told.trial.seed), log(value), told.trial.fidelity)
                for one in self.standings()
                for told in one.told
                if (value := score(told.outcome, self.goal)) > 0
            ]
            self._known_loads = loads_of(trials)
        return self._known_loads

    def is_forbidden(self, knobs: Knobs) -> bool:
        """Returns whether the setting is above one that lost, or beside one that lost by chance: it may be as lucky."""
        return self._is_above_loss(knobs) or self._is_beside_luck(knobs)

    def _is_above_loss(self, knobs: Knobs) -> bool:
        return any(knobs.covers(bad) for bad in self._lost)

    def _is_beside_luck(self, knobs: Knobs) -> bool:
        place = essence(knobs, self.offer) if self._lucky else None
        return place is not None and any(are_beside(place, there) for there in self._lucky.values())

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


def are_twins(one: Standing, other: Standing) -> bool:
    """Returns whether two settings did the same wherever both were measured under equal load."""
    pairs = _under_equal_load(one, other)
    return bool(pairs) and all(
        abs(ours - others) <= TWIN * max(ours, others)
        for mine, twin in pairs
        for ours, others in ((mine.bytes_per_s, twin.bytes_per_s), (mine.p50_ns, twin.p50_ns))
    )


def are_level(one: Standing, other: Standing, goal: Goal) -> bool:
    """Returns whether neither setting is better than the other by what is worth it, wherever load was equal."""
    pairs = [(score(mine, goal), score(twin, goal)) for mine, twin in _under_equal_load(one, other)]
    return bool(pairs) and all(abs(ours - others) <= WORTH * max(ours, others) for ours, others in pairs)


def _under_equal_load(one: Standing, other: Standing) -> list[tuple[Outcome, Outcome]]:
    theirs = {(told.trial.fidelity, told.trial.seed): told.outcome for told in other.told}
    return [
        (told.outcome, theirs[told.trial.fidelity, told.trial.seed])
        for told in one.told
        if (told.trial.fidelity, told.trial.seed) in theirs
    ]


def _excess(outcome: Outcome, limits: Limits) -> float:
    found = [-FARTHEST]
    if outcome.lost is UNKNOWN or outcome.errors:
        found.append(1.0)
    elif outcome.lost:
        found.append(0.5 + log10(outcome.lost) / 3)
    shares = ((outcome.pause_share, limits.pause_share_max), (outcome.marks_share, limits.marks_share_max))
    for share, most in (*shares, (outcome.p99_ns, limits.p99_max_ns)):
        if most and share is UNKNOWN and most < 1:
            found.append(1.0)
        elif most and share is not UNKNOWN and share > 0:
            found.append(log10(share / most))
    return min(FARTHEST, max(found))


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
