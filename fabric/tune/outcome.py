"""What is asked of whoever measures, what comes back, and what may be deployed. Types and their rules alone.

UNKNOWN is never zero: a trial whose loss could not be counted is as infeasible as one that lost.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from fabric.policy import ShardPolicy
from fabric.qos import UNKNOWN, Known
from fabric.tune.knobs import Knobs

__all__ = ("Chosen", "Goal", "Limits", "Outcome", "Trial", "flaws", "is_feasible", "score")


class Goal(StrEnum):
    """What is made best among all that is feasible."""

    THROUGHPUT = "throughput"
    LAST_BYTE = "last-byte"  # the time until the last of k concurrent cold reads is there
    FAIRNESS = "fairness"  # throughput x Jain's index over the tenants


@dataclass(frozen=True, slots=True)
class Limits:
    """What a trial may do to the fabric. Loss has no limit: it is infeasible.

    Attributes:
        pause_share_max: of the time that a sender may be held by PFC. marks_share_max: of the packets marked CE.
            1 does not judge it, and so lets UNKNOWN pass.
        p99_max_ns: of a request, None for no bound.
    """

    pause_share_max: float = 0.01
    marks_share_max: float = 0.05
    p99_max_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement to make.

    Attributes:
        number: from 0, in order.
        knobs: what the engine obeys meanwhile.
        fidelity: share of the whole measuring time, above 0 to 1; what 1 lasts is the measurer's choice.
        seed: of the load. Trials with equal seeds see equal load and are compared in pairs.
        why: what the trial is for.
    """

    number: int
    knobs: Knobs
    fidelity: float
    seed: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial gave.

    Attributes:
        bytes_per_s: payload received and verified.
        p50_ns: per request. p99_ns: likewise.
        last_byte_ns: from the first request to the last byte of k concurrent cold reads; 0 when not measured.
        fairness: Jain's index over the tenants, 1 when all got the same.
        lost: packets of the lossless class that were lost anywhere; UNKNOWN when a counter is missing.
        pause_share: of the time that senders were held. marks_share: of the packets that were marked.
        errors: requests that failed or brought wrong bytes.
        packets: of the lossless class in the trial, 0 when not counted: the bound on loss needs them.
    """

    bytes_per_s: float
    p50_ns: int
    p99_ns: int
    last_byte_ns: int = 0
    fairness: float = 1.0
    lost: Known[int] = UNKNOWN
    pause_share: Known[float] = UNKNOWN
    marks_share: Known[float] = UNKNOWN
    errors: int = 0
    packets: int = 0


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be deployed.

    Attributes:
        knobs: of a policy that was feasible in each of its trials.
        outcome: mean of its trials at full fidelity; the worst of them for loss, pauses and marks.
        trials: how many those were.
        default: name of the baseline that it is compared with, "" when no default is feasible.
        default_outcome: that baseline's own mean.
        gain_low: lower end of the 95 % interval of the paired gain over that baseline; gain_high: its upper end.
            Both 0 when the baseline itself was chosen or none is feasible.
        why: one sentence.
    """

    knobs: Knobs
    outcome: Outcome
    trials: int
    default: str
    default_outcome: Outcome | None
    gain_low: float
    gain_high: float
    why: str

    def policy(self, base: ShardPolicy | None = None) -> ShardPolicy:
        """Returns the policy to deploy: `base` with these knobs."""
        return self.knobs.policy(base)


def flaws(outcome: Outcome, limits: Limits) -> tuple[str, ...]:
    """Returns why the outcome may not be deployed, empty when it may."""
    found = []
    if outcome.lost is UNKNOWN:
        found.append("loss unknown")
    elif outcome.lost:
        found.append(f"lost {outcome.lost}")
    if outcome.errors:
        found.append(f"{outcome.errors} errors")
    for what, share, most in (
        ("paused", outcome.pause_share, limits.pause_share_max),
        ("marked", outcome.marks_share, limits.marks_share_max),
    ):
        if share is UNKNOWN and most < 1:
            found.append(f"share {what} unknown")
        elif share is not UNKNOWN and share > most:
            found.append(f"{what} {share:.2%}")
    if limits.p99_max_ns is not None and outcome.p99_ns > limits.p99_max_ns:
        found.append(f"p99 {outcome.p99_ns / 1e3:.0f} us")
    return tuple(found)


def is_feasible(outcome: Outcome, limits: Limits) -> bool:
    """Returns whether the outcome may be deployed: nothing lost, nothing unknown, all limits held."""
    return not flaws(outcome, limits)


def score(outcome: Outcome, goal: Goal) -> float:
    """Returns what is to be made large; ratios of two scores are gains."""
    match goal:
        case Goal.THROUGHPUT:
            return outcome.bytes_per_s
        case Goal.LAST_BYTE:
            return 1e9 / outcome.last_byte_ns if outcome.last_byte_ns else 0.0
        case Goal.FAIRNESS:
            return outcome.bytes_per_s * outcome.fairness
        case _:
            assert_never(goal)
