"""The failure budget of a rollout: how many switches may fail before it stops and takes back what it had done.

Without one, each switch has its own end and the first failure stops nothing else. Counts; contacts nobody.
"""

import re
import threading
from dataclasses import dataclass, replace
from typing import Final

from fabric.errors import FabricError
from fabric.push import Stop
from fabric.state import DeviceResult, Outcome

__all__ = ("Count", "FailureBudget", "parse_budget", "taken_back")

FAILURES: Final = frozenset({Outcome.FAILED, Outcome.ROLLED_BACK, Outcome.ROLLBACK_FAILED, Outcome.UNCERTAIN})
_BACK: Final = frozenset({Outcome.COMMITTED, Outcome.UNCHANGED})
_TEXT: Final = re.compile(r"(\d{1,6})(%?)")
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class FailureBudget:
    """How many failures are borne.

    Attributes:
        amount: switches, or per cent of those that the run would change or could not read.
    """

    amount: int
    is_percent: bool = False

    def of(self, total: int) -> int:
        """Returns the failures that are borne among `total` switches, rounded down."""
        return total * self.amount // 100 if self.is_percent else self.amount

    def __str__(self) -> str:
        return f"{self.amount}{'%' if self.is_percent else ''}"


def parse_budget(text: str) -> FailureBudget | None:
    """Returns the budget of `2` or `10%`, None of "".

    Raises:
        FabricError: it is neither.
    """
    if not text:
        return None
    match = _TEXT.fullmatch(text.strip())
    if match is None or (match[2] and int(match[1]) > 100):
        raise FabricError("no failure budget", found=text, expected="a number of switches, as 2, or a share, as 10%")
    return FailureBudget(int(match[1]), is_percent=bool(match[2]))


class Count:
    """Counts the failures of a run as they come, and stops it when there are more than its budget bears.

    Args:
        budget: None bears all.
        total: switches that the run would change or could not read.
        stop: of the run. Set here, it stops what has not begun and what has not changed anything yet.
    """

    def __init__(self, budget: FailureBudget | None, total: int, stop: Stop) -> None:
        self._budget = budget
        self._limit = total if budget is None else budget.of(total)
        self._stop = stop
        self._failed: list[str] = []
        self._lock = threading.Lock()

    def add(self, result: DeviceResult) -> None:
        """Counts a result; may be called from several threads."""
        if result.outcome in FAILURES and not self._stop.is_set():
            self.fail(result.device)

    def fail(self, device: str) -> None:
        """Counts a failure."""
        with self._lock:
            self._failed.append(device)
            if len(self._failed) > self._limit:
                self._stop.set()

    @property
    def exceeded(self) -> str:
        """Returns what to tell of a budget that is used up, "" of one that is not."""
        if self._budget is None or len(self._failed) <= self._limit:
            return ""
        names = ", ".join(self._failed[:_NAMED]) + (" …" if len(self._failed) > _NAMED else "")
        return f"the failure budget of {self._budget} is exceeded ({len(self._failed)} failed: {names})"


def taken_back(result: DeviceResult, back: DeviceResult | None, why: str) -> DeviceResult:
    """Returns the end of a switch that was committed and then taken back, or could not be.

    Args:
        result: of the change.
        back: of its way back, None when nobody tried.
        why: what is told of the budget.
    """
    if back is not None and back.outcome in _BACK:
        told = f"{why}: its change was confirmed, and taken back"
        steps = (*result.steps, *back.steps)
        return replace(result, outcome=Outcome.ROLLED_BACK, error=told, remedy="It is as before this run.", steps=steps)
    failed = back.error if back is not None else "the run was stopped before its turn"
    error = f"{why}: its change stands, since it could not be taken back: {failed}"
    if back is None or back.outcome not in {Outcome.ROLLBACK_FAILED, Outcome.UNCERTAIN}:
        return replace(result, error=error, remedy="Take it back with `fabricctl rollback` and this run's folder.")
    return replace(result, outcome=back.outcome, error=error, remedy=back.remedy, steps=(*result.steps, *back.steps))
