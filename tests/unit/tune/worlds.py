"""Worlds of plain arithmetic for the tuner's tests: what a setting gives, with noise from the trial's seed."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fabric.tune import Buffer, Goal, Knobs, Limits, Outcome, PathModel, Space, Tuner

KIB, MIB = 1 << 10, 1 << 20
World = Callable[[Knobs], Outcome]
SPACE = Space.between(queues=16, depth=64, mdts_bytes=512 * KIB, window_bytes=16 * MIB)
LIMITS = Limits(pause_share_max=0.01, marks_share_max=0.05)
MODEL = PathModel(
    12.5e9, 10_000, 90_000, 200_000, cores=16, fan_in=4, buffer=Buffer(32 * MIB, threshold_shift=0, kmin_bytes=2 * MIB)
)


def outcome(rate: float, *, p99_ns: int = 500_000, lost: int = 0, paused: float = 0.0) -> Outcome:
    return Outcome(
        bytes_per_s=rate,
        p50_ns=p99_ns // 2,
        p99_ns=p99_ns,
        last_byte_ns=round(1e18 / rate),
        lost=lost,
        pause_share=paused,
        marks_share=0.0,
        packets=10_000,
    )


def hill(knobs: Knobs) -> Outcome:
    """Best at 6 queues, 128 KiB and 4 MiB in flight; above 8 MiB it pauses, above 16 MiB it loses."""
    flying = knobs.flying_bytes(MODEL.fan_in)
    fit = 1.0
    for value, best in ((knobs.queues, 6), (knobs.transfer_bytes, 128 * KIB), (min(flying, 8 * MIB), 4 * MIB)):
        ratio = value / best
        fit *= 2 / (ratio + 1 / ratio)
    return outcome(1e10 * fit, lost=5 * (flying > 16 * MIB), paused=0.2 * (flying > 8 * MIB))


def flat(_: Knobs) -> Outcome:
    return outcome(5e9)


def noisy(world: World, share: float) -> Callable[[Knobs, int, float], Outcome]:
    """Returns the world under noise that all settings share but for a tenth of it."""

    def measure(knobs: Knobs, seed: int, fidelity: float) -> Outcome:
        common = random.Random(seed).gauss(0, share)  # noqa: S311  (no secret)
        own = random.Random(f"{seed} {fidelity} {knobs}").gauss(0, share / 10)  # noqa: S311  (no secret)
        exact = world(knobs)
        return replace(exact, bytes_per_s=exact.bytes_per_s * (1 + common + own))

    return measure


def tuner(
    *,
    limits: Limits = LIMITS,
    goal: Goal = Goal.THROUGHPUT,
    seed: int = 1,
    journal: Path | None = None,
    budget: int = 60,
    space: Space = SPACE,
) -> Tuner:
    return Tuner(space, limits, goal, MODEL, seed=seed, journal=journal, budget=budget)


def run(one: Tuner, world: World, *, noise: float = 0.0, most: int = 1000) -> Tuner:
    """Returns the tuner after it has ended, or after so many trials."""
    measure = noisy(world, noise)
    for _ in range(most):
        trial = one.ask()
        if trial is None:
            break
        one.tell(trial, measure(trial.knobs, trial.seed, trial.fidelity))
    return one
