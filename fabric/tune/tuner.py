"""The tuner: says what to measure next, takes what was measured, names the best setting that may be deployed.

Sans-I/O but for its journal: whoever holds it measures, deploys and waits. All it knows follows from its arguments and
the outcomes in order, so that a journal is replayed after a crash and the next trial is the one that was due.
"""

from collections.abc import Iterator
from pathlib import Path

from fabric.errors import FabricError
from fabric.serial import to_json
from fabric.tune.asking import CONNECT, DEFAULT, FULL, Ask, baselines
from fabric.tune.confirming import WORTH
from fabric.tune.journal import Journal, JournalError, Told
from fabric.tune.knobs import Space
from fabric.tune.outcome import Chosen, Goal, Limits, Outcome, Trial
from fabric.tune.path import PathModel
from fabric.tune.report import TuneReport, make_report
from fabric.tune.search import Search
from fabric.tune.standing import Book, Standing, mean_outcome
from fabric.tune.student import paired_gain

__all__ = ("BUDGET", "Tuner")

BUDGET = 60
LEAST_FULL = 2  # trials at full fidelity before a setting may be named


class Tuner:
    """One study.

    Args:
        space: what may be turned.
        limits: what a trial may do to the fabric.
        goal: what is made best.
        model: what is known of the path.
        seed: of the search; equal seeds and outcomes give equal trials.
        journal: where outcomes are kept, None for memory alone; one that is there is resumed.
        budget: trials in all, 12 or more.

    Raises:
        JournalError: the journal is of another study, or was written by another version of the search.
    """

    def __init__(
        self,
        space: Space,
        limits: Limits,
        goal: Goal,
        model: PathModel,
        *,
        seed: int = 0,
        journal: Path | None = None,
        budget: int = BUDGET,
    ) -> None:
        if budget < 12:
            raise FabricError("the budget is too small to compare anything", expected="12 or more", found=str(budget))
        self._book = Book(limits, goal, model.offer)
        self._search = Search(space, model, self._book, seed, budget)
        self._asks: Iterator[Ask] = self._search.asks()
        self._due: Trial | None = None
        self._ended = False
        self._journal: Journal | None = None
        if journal is not None:
            study = to_json(
                {"space": space, "limits": limits, "goal": goal, "model": model, "seed": seed, "budget": budget}
            )
            self._journal = Journal(journal, study)
            for told in self._journal.told:
                if self.ask() != told.trial:
                    raise JournalError(
                        f"trial {told.trial.number} is not the one that this version would have asked for",
                        where=str(journal),
                        remedy="Begin a new study",
                    )
                self._take(told)

    def ask(self) -> Trial | None:
        """Returns the trial to measure now, the same until it is told; None when the study has ended."""
        if self._due is None and not self._ended:
            one = next(self._asks, None) if len(self._book.told) < self._search.budget else None
            if one is None:
                self._ended = True
            else:
                self._due = Trial(len(self._book.told), one.knobs, one.fidelity, one.seed, one.why)
        return self._due

    def tell(self, trial: Trial, outcome: Outcome) -> None:
        """Takes the outcome of the trial that was asked for; it is on the disk when this returns.

        Raises:
            FabricError: another trial is due.
        """
        if trial != self._due:
            due = "none" if self._due is None else f"trial {self._due.number}"
            raise FabricError("this trial is not due", expected=due, found=f"trial {trial.number}")
        told = Told(trial, outcome)
        if self._journal is not None:
            self._journal.append(told)
        self._take(told)

    def _take(self, told: Told) -> None:
        self._book.add(told)
        self._due = None

    @property
    def stopped(self) -> str:
        """Returns why the search ended, "" while it goes on."""
        return self._search.stopped

    def best(self) -> Chosen | None:
        """Returns what to deploy: the best setting that was feasible in every trial, None when there is none.

        A setting stands in for the best default only where the 95 % interval of their paired difference is above 1 %.
        """
        goal, limits = self._book.goal, self._book.limits
        measured, able = self._measured(), self._able()
        if not able:
            return None
        names = {knobs: name for name, knobs in baselines(self._search.space, self._search.model).items()}
        defaults = [one for one in measured if names.get(one.knobs) in {CONNECT, DEFAULT}]
        default = next((one for one in able if one in defaults), next(iter(defaults), None))
        for one in able:
            if default is None or one is default:
                break
            low, high = paired_gain(one.by_seed(goal), default.by_seed(goal))
            if low > WORTH:
                return _chosen(one, default, names[default.knobs], (low, high), "better than the default for certain")
        if default is not None and default not in able:
            gain = paired_gain(able[0].by_seed(goal), default.by_seed(goal))
            return _chosen(
                able[0], default, names[default.knobs], gain, "the default was measured too little to deploy it"
            )
        if default is not None:
            return _chosen(default, default, names[default.knobs], (0.0, 0.0), "nothing was better for certain")
        why = "no default is feasible: " + "; ".join(
            f"{name}: {', '.join(self._book[knobs].flaws(limits)) or 'not confirmed'}"
            for knobs, name in names.items()
            if name in {CONNECT, DEFAULT} and knobs in self._book
        )
        return _chosen(able[0], None, "", (0.0, 0.0), why)

    def _able(self) -> list[Standing]:
        """Returns what may be deployed, best first: what was confirmed, else what was confirmed most."""
        ranked = self._measured()
        settled = [one for one in ranked if self._search.confirmation.is_settled(one)]
        return settled or sorted(ranked, key=lambda one: -len(one.at(FULL)))

    def _measured(self) -> list[Standing]:
        """Returns what was feasible so far at full fidelity, best first."""
        limits = self._book.limits
        return [one for one in self._book.ranked() if len(one.at(FULL)) >= LEAST_FULL and not one.is_open(limits)]

    def report(self) -> TuneReport:
        """Returns all of it as data."""
        return make_report(self._search, self._book, self.best())


def _chosen(standing: Standing, default: Standing | None, name: str, gain: tuple[float, float], why: str) -> Chosen:
    full = standing.at(FULL)
    return Chosen(
        knobs=standing.knobs,
        outcome=mean_outcome(full),
        trials=len(standing.told),
        default=name,
        default_outcome=None if default is None else mean_outcome(default.at(FULL)),
        gain_low=gain[0],
        gain_high=gain[1],
        why=why,
    )
