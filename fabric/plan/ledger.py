"""What comes up while one device is being planned: notes for the reader, and problems that no plan can have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fabric.errors import PlanError, Problem
from fabric.plan.model import Note

__all__ = ("Ledger", "raise_problems")


@dataclass(slots=True)
class Ledger:
    """Notes and problems of one device, in the order in which they came up."""

    device: str
    notes: list[Note] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def note(self, code: str, text: str, *, ports: Sequence[str] = (), blocks_lossless: bool = False) -> None:
        """Adds a note."""
        self.notes.append(Note(code, text, tuple(ports), blocks_lossless))

    def problem(self, what: str, *, at: str, found: object = "", expected: str = "", remedy: str = "") -> None:
        """Adds a problem with the policy field `at`."""
        self.problems.append(
            Problem(what, device=self.device, field=at, found=str(found), expected=expected, remedy=remedy)
        )


def raise_problems(ledgers: Iterable[Ledger]) -> None:
    """Does nothing when no ledger has a problem.

    Raises:
        PlanError: with every problem of every device.
    """
    problems = [problem for ledger in ledgers for problem in ledger.problems]
    if problems:
        raise PlanError("the intent cannot be met", problems=problems)
