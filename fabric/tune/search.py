"""The order of trials: what is measured next, given all that was measured. A generator that is fed by a `Book`.

    baselines → scaling over queues → Latin hypercube → halving → refinement → confirmation

| phase | fidelity | why |
|---|---|---|
| baselines | 1/3 | `nvme connect`, the default policy, one queue serial, and where the model would begin |
| scaling | 1/9 | five counts of queues for the scaling law; the model proposes again with it |
| hypercube | 1/9 | hills that no model knows |
| halving | 1/3 | the best quarter of what was seen at 1/9 |
| refinement | 1/3 | steps from the leader; in between from the best of other sizes, far places, the estimator |
| confirmation | 1 | the leaders and the best default, interleaved, over equal seeds |

A new leader is measured at 1 at once: what fails there must not lead the search. Refinement ends when nothing rose for
20 trials, the path's own bound is within 3 %, or the rest of the budget is needed for confirmation (simulation study
4.4). A setting that lost, or paused far too much, is not only out: none above it in every number is tried (4.4: shrink
the box).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil

from fabric.policy import ShardPolicy
from fabric.qos import UNKNOWN, known
from fabric.tune.knobs import NAMES, Knobs, Space, connect_defaults, serial
from fabric.tune.model import Advice, advise
from fabric.tune.outcome import Goal, Limits, Outcome, flaws
from fabric.tune.path import PathModel
from fabric.tune.sampling import Seen, estimate, latin_hypercube
from fabric.tune.standing import FULL, Book, Standing
from fabric.tune.student import paired_gain
from fabric.tune.usl import ScalingLaw, fit_law

__all__ = ("BASELINES", "CONNECT", "DEFAULT", "SERIAL", "WORTH", "Ask", "Search", "baselines")

CONNECT, DEFAULT, SERIAL = "nvme connect", "default policy", "one queue, serial"
BASELINES = (CONNECT, DEFAULT, SERIAL)
COARSE, MIDDLE = 1 / 9, 1 / 3  # eta 3: simulation study 4.4
COARSE_SEED, MIDDLE_SEED, FIRST_SEED = 101, 201, 301  # equal within a fidelity, so that settings see equal load
PATIENCE = 20  # trials without a rise
NEAR_BOUND = 0.97
HALVED = 4  # about a quarter of the 17 that were measured at 1/9
COVER = 12  # points of the hypercube; the study's 20, less the 8 that went before it
FINALISTS, PAIRS, MOST_PAIRS = 2, 3, 5
EVEN = 2  # times an even share of the commands: what a queue may have to hold when dealing is uneven
FAR = 32  # places drawn until one is worth a trial
FLAT = 3  # settings of one transfer size that are as good as its best: something else bounds them all
HURT = 3  # times the limit of pauses; a little above it may be the luck of a short trial
WORTH = 0.01  # the whole interval of a gain has to be above it: simulation study 4.4
WINDOWS = ["target_bytes", "receiver_bytes"]
ORDER = ("+".join(WINDOWS), "receiver_bytes", "queues", "transfer_bytes", "target_bytes", "depth", "dealing")
ATTEMPTS = 8  # of the estimator, to name a place that was not tried


@dataclass(frozen=True, slots=True)
class Ask:
    """One measurement wanted."""

    knobs: Knobs
    fidelity: float
    seed: int
    why: str


def baselines(space: Space, model: PathModel) -> dict[str, Knobs]:
    """Returns name → knobs of what is compared with."""
    mdts = space.transfer_bytes[-1]
    policy = Knobs.of(ShardPolicy(transfer_bytes=min(mdts, ShardPolicy().transfer_bytes)))
    return {
        CONNECT: connect_defaults(min(model.cores, model.queues_max or model.cores), mdts),
        DEFAULT: policy,
        SERIAL: serial(mdts),
    }


@dataclass(slots=True)
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
    _tried: set[tuple[object, ...]] = field(default_factory=set)
    _way: tuple[str, bool] | None = None
    _from: tuple[Knobs, tuple[str, bool] | None] | None = None
    _idle: Counter[str] = field(default_factory=Counter)
    _flat: Counter[int] = field(default_factory=Counter)
    _mature: int | None = None

    def asks(self) -> Iterator[Ask]:
        """Yields each measurement; the outcome of one has to be in the book before the next is drawn."""
        for phase in (self._baselines, self._scaling, self._cover, self._halve, self._refine):
            if not self.stopped:
                yield from self._within(phase())
        yield from self._confirm()

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
            yield from self._once(knobs, MIDDLE, name)
        yield from self._once(self.advice().knobs, MIDDLE, "model")
        yield from self._prove()

    def _scaling(self) -> Iterator[Ask]:
        first = self._open(self.advice().knobs)
        counts = [one for one in self.space.queues if one <= self.model.cores] or [self.space.queues[0]]
        chosen = dict.fromkeys(counts[round(part * (len(counts) - 1) / 4)] for part in range(5))
        for queues in chosen:
            knobs = self.space.nearest(replace(first, queues=queues))
            yield Ask(knobs, COARSE, COARSE_SEED, "scaling")
            self._tried.add(self._sense(knobs))
        yield from self._once(replace(first, queues=self.advice().knobs.queues), MIDDLE, "model, fitted")

    def _cover(self) -> Iterator[Ask]:
        for steps in latin_hypercube(self.space, COVER, self.seed):
            yield from self._once(self.space.at(steps), COARSE, "hypercube")

    def _halve(self) -> Iterator[Ask]:
        coarse = [one for one in self.book.ranked() if not one.at(MIDDLE)]
        for one in coarse[:HALVED]:
            if not self._is_doomed(one.knobs):
                yield Ask(one.knobs, MIDDLE, MIDDLE_SEED, "halving")

    def _refine(self) -> Iterator[Ask]:
        turn = 0
        self._mature = len(self.book.told)
        yield from self._prove()
        while True:
            turn += 1
            match turn % 4:
                case 0:
                    found = self._estimated(turn)
                case 2:
                    found = self._far(turn) if turn % 8 == 2 else self._step(turn // 8 + 1)
                case _:
                    found = self._step()
            found = found or next(filter(None, map(self._step, range(len(self.space.transfer_bytes)))), None)
            found = found or self._far(turn) or self._estimated(turn)
            if found is None:
                self.stopped = "every setting near the leader was tried"
                return
            size = found[0].transfer_bytes
            tops = {one.knobs.transfer_bytes: one.score(self.book.goal) for one in reversed(self.book.ranked())}
            yield from self._once(found[0], MIDDLE, found[1])
            self._learn(found[0])
            if found[0] in self.book and size in tops:
                here = self.book[found[0]].score(self.book.goal)
                self._flat[size] += abs(here - tops[size]) < 0.01 * tops[size]
            yield from self._prove()

    def _prove(self) -> Iterator[Ask]:
        """Measures whoever leads at full fidelity: once, or as often as a confirmation where it is near a limit."""
        while (leader := self.book.leader()) is not None:
            if self._is_proven(leader):
                return
            yield Ask(leader.knobs, FULL, FIRST_SEED + len(leader.at(FULL)), "leader")

    def _is_proven(self, leader: Standing) -> bool:
        return len(leader.at(FULL)) >= (PAIRS if _is_near(leader, self.book.limits) else 1)

    def _confirm(self) -> Iterator[Ask]:
        """Measures the finalists in pairs with the best default until one is ahead for certain, or all have failed."""
        for pair in range(MOST_PAIRS):
            while True:
                finalists = self._finalists(pair)
                late = [one for one in finalists if FIRST_SEED + pair not in one.by_seed(self.book.goal)]
                if not late or len(self.book.told) >= self.budget:
                    break
                seed = next(
                    s for s in range(FIRST_SEED, FIRST_SEED + pair + 1) if s not in late[0].by_seed(self.book.goal)
                )
                yield Ask(late[0].knobs, FULL, seed, "confirmation")
            if pair + 1 >= PAIRS and self._is_certain():
                return

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
            return "the rest of the budget confirms"
        bound = self.model.payload_bytes_per_s * self.model.receivers
        compared = leader and self._is_proven(leader) and told > len(BASELINES) and self.book.goal is Goal.THROUGHPUT
        if leader and compared and leader.score(self.book.goal) >= NEAR_BOUND * bound:
            return f"within 3 % of what the path can carry, {bound / 1e9:.2f} GB/s"
        if self._mature is not None and told - max(self.book.raised_at, self._mature) >= PATIENCE and leader:
            return f"no rise above noise in {PATIENCE} trials"
        return ""

    def _open(self, knobs: Knobs) -> Knobs:
        """Returns the knobs with depth and windows as wide as the fan-in bound allows: queues alone then bound it."""
        space, bound = self.space, self.advice().bounds.unpaused_bytes
        return space.nearest(
            replace(
                knobs,
                depth=space.depth[-1],
                target_bytes=space.floor("target_bytes", int(bound or space.target_bytes[-1])),
                receiver_bytes=space.floor("receiver_bytes", int(bound or space.receiver_bytes[-1])),
            )
        )

    def _reserve(self) -> int:
        return min((FINALISTS + 1) * PAIRS, self.budget // 3)

    def _once(self, knobs: Knobs, fidelity: float, why: str) -> Iterator[Ask]:
        """Yields the setting unless one that does the same was tried, or it is above one that lost or paused."""
        if why not in BASELINES and (self._sense(knobs) in self._tried or self._is_doomed(knobs)):
            return
        self._tried.add(self._sense(knobs))
        before = self.book.leader()
        yield Ask(knobs, fidelity, COARSE_SEED if fidelity == COARSE else MIDDLE_SEED, why)
        after = self.book.leader()
        if before and after and after.knobs == knobs:
            self._way = _way(before.knobs, knobs)

    def _sense(self, knobs: Knobs) -> tuple[object, ...]:
        """Returns what two settings that do nearly the same share: a bound that nothing reaches changes nothing.

        Queues beyond the commands that may fly stay empty, and a queue with room for twice its even share of them is as
        good as one of any depth.
        """
        target = min(knobs.target_bytes, knobs.receiver_bytes, knobs.queues * knobs.depth * knobs.transfer_bytes)
        commands = ceil(target / knobs.transfer_bytes)
        queues = min(knobs.queues, commands)
        depth = min(knobs.depth, EVEN * ceil(commands / queues))
        target = min(target, EVEN * ceil(knobs.receiver_bytes / self.model.fan_in))
        receiver = min(knobs.receiver_bytes, self.model.fan_in * target)
        return queues, depth, knobs.transfer_bytes, knobs.dealing if queues > 1 else "", target, receiver

    def _is_doomed(self, knobs: Knobs) -> bool:
        return any(knobs.covers(one.knobs) for one in self.book.standings() if self._hurt(one))

    def _hurt(self, standing: Standing) -> bool:
        """Returns whether it lost or paused far too much: more in flight will not mend that."""
        most = HURT * self.book.limits.pause_share_max
        return any(
            (one.outcome.lost is not UNKNOWN and one.outcome.lost > 0)
            or (one.outcome.pause_share is not UNKNOWN and one.outcome.pause_share > most)
            for one in standing.told
        )

    def _step(self, turn: int = 0) -> tuple[Knobs, str] | None:
        """Returns a setting one step from a base that was not tried; the way that helped last goes first.

        Args:
            turn: 0 for the leader as base, else which of the best settings with other transfer sizes: they are the
                other hills.
        """
        bases = self._bases()
        if not bases:
            return None
        base = bases[0] if turn == 0 or len(bases) == 1 else bases[1 + (turn - 1) % (len(bases) - 1)]
        here = self.space.nearest(base.knobs)
        around = self.space.neighbours(here)
        for one in (here, *sorted(around, key=lambda knobs: self._late(here, knobs))):
            if self._sense(one) not in self._tried and not self._is_doomed(one):
                self._from = base.knobs, _way(here, one)
                return one, "step"
        return None

    def _far(self, turn: int) -> tuple[Knobs, str] | None:
        """Returns a setting drawn from all that was neither tried nor is doomed nor on a flat top."""
        self._from = None
        for steps in latin_hypercube(self.space, FAR, self.seed * 10_007 + turn):
            knobs = self.space.at(steps)
            fresh = self._flat[knobs.transfer_bytes] < FLAT and self._sense(knobs) not in self._tried
            if fresh and not self._is_doomed(knobs):
                return knobs, "far"
        return None

    def _bases(self) -> list[Standing]:
        """Returns the best feasible setting of each transfer size, best first; without those whose top is flat."""
        best: dict[int, Standing] = {}
        for one in self.book.ranked():
            best.setdefault(one.knobs.transfer_bytes, one)
        alive = [one for size, one in best.items() if self._flat[size] < FLAT]
        return alive or list(best.values())

    def _late(self, here: Knobs, there: Knobs) -> tuple[bool, int, int]:
        """Returns how late this step is tried: after those whose knob has changed something so far."""
        way = _way(here, there)
        return way != self._way, self._idle[way[0]] if way else 0, _rank(here, there)

    def _learn(self, knobs: Knobs) -> None:
        """Takes note of a knob that was stepped and changed nothing."""
        base, way = self._from or (None, None)
        if base is not None and way is not None and knobs in self.book:
            goal = self.book.goal
            before, after = self.book[base].score(goal), self.book[knobs].score(goal)
            self._idle[way[0]] += abs(after - before) < 0.01 * before
        self._from = None

    def _estimated(self, turn: int) -> tuple[Knobs, str] | None:
        seen = [
            Seen(self.space.place(one.knobs), one.score(self.book.goal), self._violation(one))
            for one in self.book.standings()
        ]
        leader = self.book.leader()
        dealing = leader.knobs.dealing if leader else self.space.dealing[0]
        self._from = None
        places = estimate(self.space, seen, self.seed * 10_007 + turn)
        for steps in islice(places, ATTEMPTS):
            knobs = replace(self.space.at(steps), dealing=dealing)
            if self._flat[knobs.transfer_bytes] >= FLAT:
                continue
            if self._sense(knobs) not in self._tried and not self._is_doomed(knobs):
                return knobs, "estimator"
        return None

    def _violation(self, standing: Standing) -> float:
        return max(_violation(one.outcome, self.book) for one in standing.told)

    def _finalists(self, pair: int) -> list[Standing]:
        """Returns who is measured in this round: the leaders, fewer of them later, and the best default."""
        ranked = self.book.ranked()
        named = baselines(self.space, self.model)
        default = next((one for one in ranked if one.knobs in (named[CONNECT], named[DEFAULT])), None)
        begun = [one for one in ranked if one.at(FULL) and one is not default]
        chosen = begun[:FINALISTS] if pair < PAIRS else begun[:1]
        for fresh in (True, False):
            for one in ranked:
                kin = any(_are_kin(one.knobs, other.knobs) for other in chosen)
                if len(chosen) < FINALISTS and pair < PAIRS and one not in (*chosen, default) and kin is not fresh:
                    chosen.append(one)
        return chosen if default is None else [*chosen, default]

    def _is_certain(self) -> bool:
        last = self._finalists(PAIRS)
        if len(last) < 2:
            return bool(last)
        low, high = paired_gain(last[0].by_seed(self.book.goal), last[-1].by_seed(self.book.goal))
        return low > WORTH or high < WORTH


def _violation(outcome: Outcome, book: Book) -> float:
    """Returns 0 or less when feasible, else how far it is off, about 1 for a little."""
    found = flaws(outcome, book.limits)
    if not found:
        return 0.0
    share = outcome.pause_share
    over = 0.0 if share is UNKNOWN else min(5.0, share / max(book.limits.pause_share_max, 1e-6) / 10)
    return len(found) + over


def _is_near(standing: Standing, limits: Limits) -> bool:
    """Returns whether a trial came to half of what pauses or marks may be."""
    return any(
        known(one.outcome.pause_share, 1.0) > limits.pause_share_max / 2
        or known(one.outcome.marks_share, 1.0) > limits.marks_share_max / 2
        for one in standing.told
    )


def _rank(before: Knobs, after: Knobs) -> int:
    """Returns how late this step is tried: what bounds the bytes in flight goes first, dealing last."""
    way = _way(before, after)
    return ORDER.index(way[0]) if way else len(ORDER)


def _are_kin(one: Knobs, other: Knobs) -> bool:
    """Returns whether the two differ in queues, depth and dealing alone."""
    return all(
        getattr(one, name) == getattr(other, name) for name in ("transfer_bytes", "target_bytes", "receiver_bytes")
    )


def _way(before: Knobs, after: Knobs) -> tuple[str, bool] | None:
    """Returns (knobs, whether they rose) where exactly one knob differs, or both windows do."""
    moved = [name for name in NAMES if getattr(before, name) != getattr(after, name)]
    if len(moved) != 1 and moved != WINDOWS:
        return None
    return "+".join(moved), getattr(after, moved[0]) > getattr(before, moved[0])
