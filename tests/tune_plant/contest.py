"""The tuner against an exhaustive search on drawn plants. `python -m tests.tune_plant.contest --draws 20 --jobs 2`

How the optimum is estimated, so that the share of it is honest:

1. every point of the grid is measured once, at 1/9 fidelity;
2. those that lost nothing and paused and marked no more than twice the limits are ranked; the best 24 are measured at 1/3
   with two other seeds, and ranked again by that mean alone, so that luck in step 1 does not count;
3. from the fastest down they are measured at fidelity 1 over eight seeds that neither search saw, the truth, until three
   are feasible (if none of the 24 is, the next 24 follow). The optimum is the best of the three.

The tuner's choice and the baselines get the same eight seeds. Taking the best of three true values errs upwards, against
the tuner. A truth is feasible when nothing was lost in any of its runs and the means of pauses and marks are in limits.
"""

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from fabric.qos import known
from fabric.tune import Goal, Knobs, Limits, Outcome, Tuner, connect_defaults, is_feasible, serial
from tests.tune_plant.plants import MDTS, SPACE, Plant, draw, path_model
from tests.tune_plant.rig import evaluate

TRUE_SEEDS = range(9001, 9009)
BUDGET = 60
BATCH, ENOUGH = 24, 3


@dataclass(frozen=True, slots=True)
class Truth:
    """What a setting gives over the seeds that no search saw."""

    knobs: Knobs
    bytes_per_s: float
    lost: int
    pause_share: float
    marks_share: float

    def is_feasible(self, limits: Limits) -> bool:
        return (
            self.lost == 0 and self.pause_share <= limits.pause_share_max and self.marks_share <= limits.marks_share_max
        )


@dataclass(frozen=True, slots=True)
class Result:
    """One draw."""

    seed: int
    family: str
    what: str
    points: int
    optimum: Truth | None
    chosen: Truth | None
    connect: Truth
    one_serial: Truth
    limits: Limits
    trials: int
    infeasible_trials: int
    why: str
    stopped: str
    seconds: tuple[float, float]

    @property
    def ratio(self) -> float:
        """Returns chosen / optimum; 1 when neither exists."""
        if self.optimum is None:
            return 1.0
        return 0.0 if self.chosen is None else self.chosen.bytes_per_s / self.optimum.bytes_per_s

    def failures(self) -> Iterator[str]:
        """Yields what the bar does not allow."""
        if self.points < 512:
            yield f"only {self.points} points"
        if self.ratio < 0.95:
            yield f"{self.ratio:.3f} of the optimum"
        yield from self.broken_promises()

    def broken_promises(self) -> Iterator[str]:
        """Yields what must never be, wherever the optimum is."""
        if self.trials > BUDGET:
            yield f"{self.trials} trials"
        if self.chosen is None:
            return
        if not self.chosen.is_feasible(self.limits):
            yield f"infeasible deployed: {self.chosen}"
        if self.one_serial.is_feasible(self.limits) and self.chosen.bytes_per_s <= self.one_serial.bytes_per_s:
            yield "not above one queue, serial"
        if self.connect.is_feasible(self.limits) and self.chosen.bytes_per_s < self.connect.bytes_per_s * BELOW:
            yield "below the defaults"


BELOW = 0.99  # of the defaults: eight runs of each differ by luck; what was chosen is no worse than that


def grid() -> list[Knobs]:
    """Returns the points of the exhaustive search: the windows of single targets stay open."""
    ways = product(SPACE.queues, SPACE.depth, SPACE.transfer_bytes, SPACE.receiver_bytes)
    window = SPACE.target_bytes[-1]
    return [Knobs(queues, depth, size, "least-bytes", window, receiver) for queues, depth, size, receiver in ways]


def truth(plant: Plant, knobs: Knobs, *, hopeless: bool = True) -> Truth | None:
    """Returns the truth of a setting; with `hopeless` off None as soon as it cannot be feasible any more."""
    runs: list[Outcome] = []
    most = plant.limits.pause_share_max * len(TRUE_SEEDS)
    for seed in TRUE_SEEDS:
        runs.append(evaluate(plant, knobs, 1.0, seed))
        if not hopeless and (runs[-1].lost or sum(known(one.pause_share, 1.0) for one in runs) > most):
            return None
    return Truth(
        knobs,
        fmean(one.bytes_per_s for one in runs),
        sum(known(one.lost, 1) for one in runs),
        fmean(known(one.pause_share, 1.0) for one in runs),
        fmean(known(one.marks_share, 1.0) for one in runs),
    )


def whole_truth(plant: Plant, knobs: Knobs) -> Truth:
    found = truth(plant, knobs)
    if found is None:
        raise AssertionError("a truth that is wanted in any case was cut short")
    return found


def exhaustive(plant: Plant) -> tuple[int, Truth | None]:
    """Returns how many points were measured, and the best that is feasible."""
    limits = plant.limits
    loose = Limits(2 * limits.pause_share_max, 2 * limits.marks_share_max)
    points = grid()
    coarse = {knobs: evaluate(plant, knobs, 1 / 9, 1) for knobs in points}
    able = [knobs for knobs, outcome in coarse.items() if is_feasible(outcome, loose)]
    able.sort(key=lambda knobs: -coarse[knobs].bytes_per_s)
    found: list[Truth] = []
    for first in range(0, len(able), BATCH):
        found += _walk(plant, able[first : first + BATCH], loose)
        if found:
            break
    return len(points), max(found, key=lambda one: one.bytes_per_s, default=None)


def _walk(plant: Plant, batch: list[Knobs], loose: Limits) -> list[Truth]:
    """Returns the first truths that are feasible, from the fastest down."""
    runs = {knobs: [evaluate(plant, knobs, 1 / 3, seed) for seed in (2, 3)] for knobs in batch}
    found: list[Truth] = []
    for knobs in sorted(batch, key=lambda knobs: -fmean(one.bytes_per_s for one in runs[knobs])):
        pauses = fmean(known(one.pause_share, 1.0) for one in runs[knobs])
        if any(one.lost for one in runs[knobs]) or pauses > loose.pause_share_max:
            continue
        one = truth(plant, knobs, hopeless=False)
        if one is not None and one.is_feasible(plant.limits):
            found.append(one)
        if len(found) == ENOUGH:
            break
    return found


def idle(plant: Plant) -> Sequence[Outcome]:
    """Returns what an idle target answers in: one command at a time, which is how an operator would measure it."""
    return [evaluate(plant, serial(SPACE.transfer_bytes[0]), 1 / 9, 7)]


def tuner_of(plant: Plant, seed: int) -> Tuner:
    pieces = plant.chunk_bytes / SPACE.transfer_bytes[0]
    (seen,) = idle(plant)
    p50, p99 = (max(1, round(one / pieces) - plant.rtt_ns) for one in (seen.p50_ns, seen.p99_ns))
    return Tuner(SPACE, plant.limits, Goal.THROUGHPUT, path_model(plant, p50, p99), seed=seed, budget=BUDGET)


def tune(plant: Plant, seed: int) -> Tuner:
    tuner = tuner_of(plant, seed)
    while (trial := tuner.ask()) is not None:
        tuner.tell(trial, evaluate(plant, trial.knobs, trial.fidelity, trial.seed))
    return tuner


def contest(seed: int, *, has_search: bool = True) -> Result:
    """Returns one draw; without the exhaustive search the optimum stays unknown."""
    plant = draw(seed)
    start = time.process_time()
    points, optimum = exhaustive(plant) if has_search else (0, None)
    middle = time.process_time()
    tuner = tune(plant, seed)
    chosen = tuner.best()
    told = tuner._book.told
    end = time.process_time()
    return Result(
        seed=seed,
        family=plant.family,
        what=f"{plant.family} {plant.targets}->{plant.receivers} {'pfc' if plant.pfc else 'lossy'}",
        points=points,
        optimum=optimum,
        chosen=None if chosen is None else whole_truth(plant, chosen.knobs),
        connect=whole_truth(plant, connect_defaults(plant.cores, MDTS)),
        one_serial=whole_truth(plant, serial(MDTS)),
        limits=plant.limits,
        trials=len(told),
        infeasible_trials=sum(not is_feasible(one.outcome, plant.limits) for one in told),
        why="" if chosen is None else chosen.why,
        stopped=tuner.stopped,
        seconds=(middle - start, end - middle),
    )


def line(one: Result) -> str:
    def rate(truth: Truth | None) -> str:
        if truth is None:
            return "      -"
        return f"{truth.bytes_per_s / 1e9:6.3f}{' ' if truth.is_feasible(one.limits) else '!'}"

    return (
        f"{one.seed:6} {one.what:22} {rate(one.optimum)} {rate(one.chosen)} {one.ratio:6.3f} {rate(one.connect)}"
        f" {rate(one.one_serial)} {one.trials:3} {one.infeasible_trials:3}  {one.seconds[0]:4.0f} {one.seconds[1]:4.0f}  "
        f"{'; '.join(one.failures()) or 'ok'} [{one.stopped}]"
    )


FRESH = 1_000_000  # first seeds are drawn below it
HEAD = "  seed family, fan-in         optimum  chosen  ratio connect  serial  n  inf  exh s tune s (GB/s; ! infeasible)"


def summary(results: Sequence[Result], first: int, seconds: float) -> dict[str, object]:
    """Returns the figures of the bar; `failed` is empty where it holds."""
    families = {one.family for one in results}
    return {
        "bar": "5.3 model: tuner against an exhaustive search",
        "draws": len(results),
        "first_seed": first,
        "points": min(one.points for one in results),
        "worst_ratio": round(min(one.ratio for one in results), 4),
        "worst_ratio_of": {
            family: round(min(one.ratio for one in results if one.family == family), 4) for family in sorted(families)
        },
        "most_trials": max(one.trials for one in results),
        "infeasible_deployed": sum(
            one.chosen is not None and not one.chosen.is_feasible(one.limits) for one in results
        ),
        "failed": [one.seed for one in results if any(one.failures())],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(sum(one.seconds) for one in results), 1),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=None, help="seed of the first draw; none: drawn")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    first = secrets.randbelow(FRESH) if given.first is None else given.first
    start = time.monotonic()
    print(f"first seed {first}; the same draws again: --first {first}")
    print(HEAD)
    results = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for one in pool.map(contest, range(first, first + given.draws)):
            results.append(one)
            print(line(one), flush=True)
    figures = summary(results, first, time.monotonic() - start)
    print(json.dumps(figures))
    return int(bool(figures["failed"]))


if __name__ == "__main__":
    sys.exit(main())
