"""The order of trials: what is measured next, given all that was measured. A generator that is fed by a `Book`.

    baselines → scaling over queues → Latin hypercube → halving → refinement ⇄ confirmation

| phase | fidelity | why |
|---|---|---|
| baselines | 1/3 | `nvme connect`, the default policy, one queue serial, and where the model would begin |
| scaling | 1/3 | up to five counts of queues for the scaling law; the model proposes again with it |
| hypercube | 1/3 | hills that no model knows |
| halving | 1 | the best of what was seen at 1/3, and a default that pauses or marks alone speak against |
| refinement | 1/3 | what the surrogate promises most of, near the leader; in between anywhere, steps, the estimator |
| confirmation | 1 | the leaders and the best default, interleaved, over equal seeds |

What a trial costs is its wait for counters, less its load: so none is shorter than 1/3, where the beginning weighs too
much. A new leader is measured at 1 at once: what fails there must not lead the search. Refinement ends when nothing
rose for 20 trials, the path's own bound is within 3 %, or the rest of the budget is needed for confirmation (simulation
study 4.4); it goes on when a finalist falls and trials are left. A setting that lost, or paused far too much, is not
only out: none above it in every number is tried (4.4: shrink the box). What lost in some of its trials alone is taken
for a warning: none within a factor of two of it is tried or deployed either.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from math import inf, log

from fabric.qos import known
from fabric.tune.asking import BASELINES, FIRST_SEED, FULL, Ask, baselines, defaults
from fabric.tune.confirming import PAIRS, Confirmation
from fabric.tune.essence import Essence, essence, essences
from fabric.tune.knobs import Knobs, Space
from fabric.tune.model import Advice, advise
from fabric.tune.outcome import Goal
from fabric.tune.path import PathModel
from fabric.tune.sampling import Seen, estimate, latin_hypercube
from fabric.tune.standing import Book, Standing
from fabric.tune.stepping import Steps
from fabric.tune.surrogate import Measured, promises
from fabric.tune.usl import ScalingLaw, fit_law

__all__ = ("Search",)

PATIENCE = 20  # trials without a rise; 30 left too few to confirm beside a limit
NEAR_BOUND = 0.97
EXHAUSTED = "every setting near the leader was tried"
SPENT = "the rest of the budget confirms"
HALVED = 2  # more would be spent on what the refinement leaves behind
COVER = 12  # points of the hypercube; the study's 20, less the 8 that went before it
HURT = 3  # times the limit of pauses; a little above it may be the luck of a short trial
ATTEMPTS = 8  # of the estimator, to name a place that was not tried
NOISE = 0.015  # of a trial at full fidelity before anything is known of it; the surrogate fits a factor of it
REACH = 2.0  # a factor of four in each knob


@dataclass
class Search:
    """One search.

    Args:
        budget: trials in all. seed: of the search itself.
        book: filled by whoever runs the generator, before it is resumed.
    """

    space: Space
    model: PathModel
    book: Book
    seed: int
    budget: int
    stopped: str = ""
    _tried: set[Essence] = field(default_factory=set)
    _mature: int | None = None
    _has_confirmed: bool = False
    _turn: int = 0

    def __post_init__(self) -> None:
        self._steps = Steps(self.space, self.book, self._is_fresh, self._essence)
        self.confirmation = Confirmation(self.space, self.model, self.book, self.budget)

    def asks(self) -> Iterator[Ask]:
        """Yields each measurement; the outcome of one has to be in the book before the next is drawn."""
        for phase in (self._baselines, self._scaling, self._cover, self._halve):
            if not self.stopped:
                yield from self._within(phase())
        while True:
            told = len(self.book.told)
            if not self.stopped:
                yield from self._within(self._refine())
            yield from self.confirmation.asks()
            self._has_confirmed = True
            if not self._goes_on() or len(self.book.told) == told:
                return
            self.stopped = ""

    def _goes_on(self) -> bool:
        """Returns whether a finalist fell while trials are left, or the search had to end early and some are left."""
        leader = self.book.leader()
        is_done = leader is not None and self.confirmation.is_settled(leader) and self.stopped != SPENT
        return self.confirmation.may_search and not is_done

    def law(self) -> ScalingLaw | None:
        """Returns the scaling law of what was measured for it so far."""
        return fit_law(
            (one.trial.knobs.queues, one.outcome.bytes_per_s) for one in self.book.told if one.trial.why == "scaling"
        )

    def advice(self) -> Advice:
        """Returns what the model proposes, with the law as far as it is known."""
        marks = self.book.limits.marks_share_max > 0
        return advise(self.model, self.space, self.law(), marks=marks)

    # The phases.

    def _baselines(self) -> Iterator[Ask]:
        for name, knobs in baselines(self.space, self.model).items():
            yield from self._once(knobs, name)
        yield from self._once(self.advice().knobs, "model")
        yield from self._prove_end()

    def _scaling(self) -> Iterator[Ask]:
        first = self._open(self.advice().knobs)
        counts = [one for one in self.space.queues if one <= self.model.cores] or [self.space.queues[0]]
        chosen = dict.fromkeys(counts[round(part * (len(counts) - 1) / 4)] for part in range(5))
        for queues in chosen:
            knobs = self.space.nearest(replace(first, queues=queues))
            yield from self._once(knobs, "scaling")
        yield from self._once(replace(first, queues=self.advice().knobs.queues), "model, fitted")
        yield from self._prove_end()

    def _cover(self) -> Iterator[Ask]:
        for steps in latin_hypercube(self.space, COVER, self.seed):
            yield from self._once(self.space.at(steps), "hypercube")

    def _halve(self) -> Iterator[Ask]:
        for one in [one for one in self.book.ranked() if not one.at(FULL)][:HALVED]:
            if not self._is_doomed(one.knobs):
                yield Ask(one.knobs, FULL, FIRST_SEED, "halving")
        leader = self.book.leader()
        for knobs in defaults(self.space, self.model):  # a short trial by itself is too little to write them off
            one = self.book[knobs]
            if one.may_recover(self.book.limits) and (not leader or self.book.worth(one) > self.book.worth(leader)):
                yield Ask(knobs, FULL, FIRST_SEED, "halving")

    def _refine(self) -> Iterator[Ask]:
        self._mature = len(self.book.told)
        yield from self._prove()
        while True:
            found = self._next()
            if found is None:
                self.stopped = EXHAUSTED
                return
            tops, before = self._steps.tops(), self.book.leader()
            yield from self._once(found[0], found[1])
            self._steps.learn(found[0], tops, before)
            yield from self._prove()

    def _next(self) -> tuple[Knobs, str] | None:
        """Returns what to measure next and why: whose turn it is, else whoever has something left."""
        self._turn += 1
        turn, steps = self._turn, self._steps
        match turn % 8:
            case 4:
                found = self._estimated(turn)
            case 0:
                found = steps.far(self.seed * 10_007 + turn)
            case 2:
                found = steps.step(turn // 8)
            case 6:
                found = self._promised()
            case _:
                found = self._promised(REACH)
        return (
            found
            or self._promised()
            or steps.any_step()
            or steps.far(self.seed * 10_007 + turn)
            or self._estimated(turn)
        )

    def _prove(self) -> Iterator[Ask]:
        """Measures whoever leads at full fidelity: once, or as often as a confirmation where it is near a limit."""
        while (leader := self.book.leader()) is not None:
            if self._is_proven(leader):
                return
            yield Ask(leader.knobs, FULL, FIRST_SEED + len(leader.at(FULL)), "leader")

    def _prove_end(self) -> Iterator[Ask]:
        """Measures whoever leads at full fidelity where that would end the search; an early leader seldom stays one."""
        leader = self.book.leader()
        if leader is not None and self.book.goal is Goal.THROUGHPUT and self._share_of_bound(leader) >= NEAR_BOUND:
            yield from self._prove()

    def _share_of_bound(self, leader: Standing) -> float:
        return self.book.worth(leader) / (self.model.payload_bytes_per_s * self.model.receivers)

    def _is_proven(self, leader: Standing) -> bool:
        return len(leader.at(FULL)) >= (PAIRS if leader.is_near(self.book.limits) else 1)

    # What they need.

    def _within(self, asks: Iterable[Ask]) -> Iterator[Ask]:
        """Yields until a stopping rule holds."""
        for one in asks:
            if self.stopped:
                return
            yield one
            self.stopped = self._stop()
            if self.stopped:
                return

    def _stop(self) -> str:
        told, leader = len(self.book.told), self.book.leader()
        if told >= self.budget - self._reserve():
            return SPENT
        compared = leader and self._is_proven(leader) and told > len(BASELINES) and self.book.goal is Goal.THROUGHPUT
        if leader and compared and self._share_of_bound(leader) >= NEAR_BOUND:
            bound = self.model.payload_bytes_per_s * self.model.receivers
            return f"within 3 % of what the path can carry, {bound / 1e9:.2f} GB/s"
        if self._mature is not None and told - max(self.book.raised_at, self._mature) >= PATIENCE and leader:
            return f"no rise above noise in {PATIENCE} trials"
        return ""

    def _reserve(self) -> int:
        spare = self.confirmation.spare(is_first=not self._has_confirmed)
        return min(self.confirmation.needed() + spare, max(2 * PAIRS, self.budget // 3))

    def _open(self, knobs: Knobs) -> Knobs:
        """Returns the knobs with depth and windows as wide as the fan-in bound safely allows: queues then bound it."""
        space, bound = self.space, self.advice().bounds.safe_bytes
        return space.nearest(
            replace(
                knobs,
                depth=space.depth[-1],
                target_bytes=space.floor("target_bytes", int(bound or space.target_bytes[-1])),
                receiver_bytes=space.floor("receiver_bytes", int(bound or space.receiver_bytes[-1])),
            )
        )

    def _once(self, knobs: Knobs, why: str) -> Iterator[Ask]:
        """Yields the setting unless one that does the same was tried, or it is above one that lost or paused."""
        if why not in BASELINES and not self._is_fresh(knobs):
            return
        self._tried.add(self._essence(knobs))
        yield Ask.once(knobs, why)

    def _essence(self, knobs: Knobs) -> Essence:
        return essence(knobs, self.model.offer)

    def _is_fresh(self, knobs: Knobs) -> bool:
        return self._essence(knobs) not in self._tried and not self._is_doomed(knobs)

    def _is_doomed(self, knobs: Knobs) -> bool:
        return self.book.is_forbidden(knobs) or any(knobs.covers(one) for one in self._overpaused())

    def _overpaused(self) -> list[Knobs]:
        """Returns what paused far too much: more in flight will not mend that."""
        most = HURT * self.book.limits.pause_share_max
        return [
            one.knobs
            for one in self.book.standings()
            if any(known(told.outcome.pause_share, 0.0) > most for told in one.told)
        ]

    @cached_property
    def _all(self) -> dict[Essence, Knobs]:
        return essences(self.space, self.model.offer, self.seed)

    def _promised(self, reach: float = inf) -> tuple[Knobs, str] | None:
        """Returns the setting that the surrogate promises most of, among those within reach of the leader."""
        paused = self._overpaused()
        wanted = [
            (one, knobs)
            for one, knobs in self._all.items()
            if one not in self._tried
            and not any(knobs.covers(bad) for bad in paused)
            and not self.book.is_forbidden(knobs)
        ]
        leader = self.book.leader()
        if leader is not None and reach < inf:
            here = self._essence(leader.knobs).place(self.space.dealing)
            wanted = [
                (one, knobs)
                for one, knobs in wanted
                if all(abs(a - b) <= reach for a, b in zip(here, one.place(self.space.dealing), strict=True))
            ]
        seen = [self._measured(one) for one in self.book.standings() if self.book.worth(one) > 0]
        self._steps.forget()
        if not wanted or len(seen) < 2:
            return None
        best = None if leader is None else log(self.book.worth(leader))
        hopes, _ = promises(seen, [one.place(self.space.dealing) for one, _ in wanted], best)
        at = max(range(len(wanted)), key=hopes.__getitem__)
        return wanted[at][1], "surrogate"

    def _measured(self, standing: Standing) -> Measured:
        weight = sum(one.trial.fidelity for one in standing.told)
        return Measured(
            place=self._essence(standing.knobs).place(self.space.dealing),
            value=log(self.book.worth(standing)),
            noise=NOISE / weight**0.5,
            excess=standing.excess(self.book.limits),
        )

    def _estimated(self, turn: int) -> tuple[Knobs, str] | None:
        limits = self.book.limits
        seen = [
            Seen(
                self.space.place(one.knobs), self.book.worth(one), one.excess(limits) if one.has_fallen(limits) else 0.0
            )
            for one in self.book.standings()
        ]
        leader = self.book.leader()
        dealing = leader.knobs.dealing if leader else self.space.dealing[0]
        self._steps.forget()
        for steps in islice(estimate(self.space, seen, self.seed * 10_007 + turn), ATTEMPTS):
            knobs = replace(self.space.at(steps), dealing=dealing)
            if not self._steps.is_flat(knobs) and self._is_fresh(knobs):
                return knobs, "estimator"
        return None
