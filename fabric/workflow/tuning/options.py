"""What `tune` is asked for, beside where the inventory is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric.tune import BUDGET, Goal, Limits
from fabric.workflow.verifying.options import DEFAULT_PROFILE, VerifyOptions

__all__ = ("QUIESCE_S", "SECONDS", "TuneOptions", "load_options")

SECONDS: Final = 10.0
# a load ends when its last read has come, retransmissions included; what a trial leaves behind counts for the next one,
# since the snapshot after a trial is the one before the next
QUIESCE_S: Final = 1.0
_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """How far one study goes.

    Attributes:
        goal: what is made best.
        p99_ms: the most that the p99 of a request may be; None: no bound.
        pause_share, marks_share: the most that is feasible, see `Limits`.
        trials: in all, 12 or more. seconds: a trial at full fidelity lasts so long.
        profile: name of a load profile, or the path of one.
        scratch: what may be overwritten, as of `verify`. (): reads alone, payload is not compared.
        gentle: little enough to go on beside production.
        go_on: tune although a check failed.
        checked: run folder whose findings stand for the checks.
        seed: of the search; None: drawn.
        idle_s, quiesce_s: as of `verify`.
    """

    goal: Goal = Goal.THROUGHPUT
    p99_ms: float | None = None
    pause_share: float = Limits().pause_share_max
    marks_share: float = Limits().marks_share_max
    trials: int = BUDGET
    seconds: float = SECONDS
    profile: str = DEFAULT_PROFILE
    scratch: tuple[str, ...] = ()
    gentle: bool = False
    go_on: bool = False
    checked: Path | None = None
    seed: int | None = None
    idle_s: float = 10.0
    quiesce_s: float = QUIESCE_S

    @property
    def limits(self) -> Limits:
        """Returns what a trial may do to the fabric."""
        p99_ns = None if self.p99_ms is None else round(self.p99_ms * _MS)
        return Limits(self.pause_share, self.marks_share, p99_ns)


def load_options(options: TuneOptions) -> VerifyOptions:
    """Returns the same for the parts that `tune` shares with `verify`."""
    return VerifyOptions(
        profile=options.profile,
        scratch=options.scratch,
        gentle=options.gentle,
        go_on=options.go_on,
        checked=options.checked,
        idle_s=options.idle_s,
        quiesce_s=options.quiesce_s,
    )
