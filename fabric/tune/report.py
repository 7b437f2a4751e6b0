"""What a study found, as data: every trial, the scaling curve with its fit, the Pareto front, before and after.

`fabric.tune.text` and `fabric.tune.figures` show it. Knows no file.
"""

from dataclasses import dataclass

from fabric.qos import UNKNOWN, Known
from fabric.tune.asking import FULL, baselines
from fabric.tune.holding import Holding, holdings
from fabric.tune.knobs import Knobs
from fabric.tune.model import Advice
from fabric.tune.outcome import Chosen, Goal, Limits, Outcome, Trial, flaws
from fabric.tune.search import Search
from fabric.tune.standing import Book, mean_outcome
from fabric.tune.usl import ScalingLaw

__all__ = ("Baseline", "CurvePoint", "LossEvidence", "ParetoPoint", "Row", "TuneReport", "make_report")

BOUND_95 = 3.0  # no event in n trials bounds its rate by 3 / n at 95 %


@dataclass(frozen=True, slots=True)
class Row:
    """One trial with what is wrong with it; empty flaws: feasible."""

    trial: Trial
    outcome: Outcome
    flaws: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Throughput at one count of queues; `fitted` is the law's value there, None without a law."""

    queues: int
    bytes_per_s: float
    fitted: float | None


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A feasible setting that no other beats in both throughput and p99."""

    knobs: Knobs
    bytes_per_s: float
    p99_ns: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is compared with; flaws empty where it may be deployed."""

    name: str
    knobs: Knobs
    outcome: Outcome
    flaws: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LossEvidence:
    """Loss over the trials of the chosen setting.

    Attributes:
        trials: how many. packets: in them, 0 when not counted. lost: of them.
        bound_95: upper end of the loss rate at 95 %, 3 / n; UNKNOWN when packets were not counted or some were lost.
    """

    trials: int
    packets: int
    lost: Known[int]
    bound_95: Known[float]


@dataclass(frozen=True, slots=True)
class TuneReport:
    """One study.

    Attributes:
        advice: what the model proposed in the end. law: the scaling fit, None where it could not be made.
        stopped: why the search ended, "" while it goes on.
        baselines: as far as they were measured. chosen: None when nothing may be deployed.
        held_back: the faster settings that one limit alone forbids, most gained first.
    """

    goal: Goal
    limits: Limits
    budget: int
    advice: Advice
    law: ScalingLaw | None
    curve: tuple[CurvePoint, ...]
    rows: tuple[Row, ...]
    pareto: tuple[ParetoPoint, ...]
    baselines: tuple[Baseline, ...]
    chosen: Chosen | None
    loss: LossEvidence | None
    stopped: str
    held_back: tuple[Holding, ...] = ()


def make_report(search: Search, book: Book, chosen: Chosen | None) -> TuneReport:
    """Returns the report of what is in the book."""
    law = search.law()
    return TuneReport(
        goal=book.goal,
        limits=book.limits,
        budget=search.budget,
        advice=search.advice(),
        law=law,
        curve=_curve(book, law),
        rows=tuple(Row(one.trial, one.outcome, flaws(one.outcome, book.limits)) for one in book.told),
        pareto=_pareto(book),
        baselines=_baselines(search, book),
        chosen=chosen,
        loss=None if chosen is None else _loss(book, chosen),
        stopped=search.stopped,
        held_back=holdings(book, search.model, None if chosen is None else chosen.knobs),
    )


def _curve(book: Book, law: ScalingLaw | None) -> tuple[CurvePoint, ...]:
    points = [(one.trial.knobs.queues, one.outcome.bytes_per_s) for one in book.told if one.trial.why == "scaling"]
    return tuple(CurvePoint(queues, rate, law.at(queues) if law else None) for queues, rate in sorted(points))


def _pareto(book: Book) -> tuple[ParetoPoint, ...]:
    """Returns the front, fastest first: each further point has a lower p99."""
    means = [(one.knobs, mean_outcome(one.told)) for one in book.standings() if not one.flaws(book.limits)]
    found: list[ParetoPoint] = []
    for knobs, mean in sorted(means, key=lambda one: (-one[1].bytes_per_s, one[1].p99_ns)):
        if not found or mean.p99_ns < found[-1].p99_ns:
            found.append(ParetoPoint(knobs, mean.bytes_per_s, mean.p99_ns))
    return tuple(found)


def _baselines(search: Search, book: Book) -> tuple[Baseline, ...]:
    found = []
    for name, knobs in baselines(search.space, search.model).items():
        if knobs in book:
            standing = book[knobs]
            told = standing.at(FULL) or standing.told
            found.append(Baseline(name, knobs, mean_outcome(told), standing.flaws(book.limits)))
    return tuple(found)


def _loss(book: Book, chosen: Chosen) -> LossEvidence:
    told = book[chosen.knobs].told
    whole = mean_outcome(told)
    counted = whole.lost is not UNKNOWN and whole.lost == 0 and all(one.outcome.packets for one in told)
    return LossEvidence(len(told), whole.packets, whole.lost, BOUND_95 / whole.packets if counted else UNKNOWN)
