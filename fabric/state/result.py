"""What happened to one device in a push, and the verdict on a whole run."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ("DeviceResult", "Outcome", "StepRecord")


class Outcome(StrEnum):
    """How a device ended."""

    UNCHANGED = "unchanged"  # nothing to do
    COMMITTED = "committed"  # fully as intended
    ROLLED_BACK = "rolled-back"  # exactly as before
    REFUSED = "refused"  # never touched, by our own decision
    FAILED = "failed"  # never touched: no session, lock held, dry run refused
    ROLLBACK_FAILED = "rollback-failed"  # the device refused its rollback: recovery commands in `remedy`
    UNCERTAIN = "uncertain"  # session lost; the device's timer decides, see `remedy`


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of the transaction as the journal has it.

    Attributes:
        step: name of the step.
        started_unix_s: when.
        ended_unix_s: when, or None if it never ended.
        ok: None while running.
    """

    step: str
    started_unix_s: float
    ended_unix_s: float | None = None
    ok: bool | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class DeviceResult:
    """One device of a push.

    Attributes:
        changes: number of paths that the change set touches.
        diff: the device's own words of what changed, or ours where it has none. Never a secret.
        error: what went wrong, "" if nothing.
        remedy: what to do now, "" if nothing.
        disruptive: traffic was interrupted.
        notes: (code, text) of what a reader must know of the change before it is made.
    """

    device: str
    nos: str
    outcome: Outcome
    changes: int = 0
    diff: str = ""
    error: str = ""
    remedy: str = ""
    disruptive: bool = False
    steps: tuple[StepRecord, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
