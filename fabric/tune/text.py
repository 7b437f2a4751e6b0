"""A study as lines of text: what was chosen, before and after, loss, every trial. Knows no terminal and no file."""

from collections.abc import Iterator

from fabric.qos import UNKNOWN, Known
from fabric.tune.holding import Holding, Limit
from fabric.tune.knobs import Knobs
from fabric.tune.outcome import Outcome
from fabric.tune.report import TuneReport

__all__ = ("describe", "to_text")

KIB = 1 << 10


def to_text(report: TuneReport) -> str:
    """Returns the report, one newline at its end."""
    return "\n".join(_lines(report)) + "\n"


def describe(knobs: Knobs) -> str:
    """Returns the knobs in one line: queues x depth x size, dealing, the two windows."""
    windows = f"target {_size(knobs.target_bytes)}, receiver {_size(knobs.receiver_bytes)}"
    return f"{knobs.queues} x {knobs.depth} x {_size(knobs.transfer_bytes)}, {knobs.dealing}, {windows}"


def _lines(report: TuneReport) -> Iterator[str]:
    yield f"goal {report.goal}; {len(report.rows)} of {report.budget} trials"
    if report.stopped:
        yield f"ended: {report.stopped}"
    yield from _choice(report)
    yield from _model(report)
    yield from map(_held_back, report.held_back)
    yield ""
    yield f"{'trial':>5} {'fidelity':>8} {'seed':>5} {'GB/s':>8} {'p99 us':>8}  {'setting':<58} why; what is wrong"
    for row in report.rows:
        trial, outcome = row.trial, row.outcome
        wrong = "; " + ", ".join(row.flaws) if row.flaws else ""
        yield (
            f"{trial.number:>5} {trial.fidelity:>8.2f} {trial.seed:>5} {outcome.bytes_per_s / 1e9:>8.3f}"
            f" {outcome.p99_ns / 1e3:>8.0f}  {describe(trial.knobs):<58} {trial.why}{wrong}"
        )
    yield ""
    yield "throughput against p99, the settings that none beats in both:"
    for point in report.pareto:
        yield f"{point.bytes_per_s / 1e9:>8.3f} GB/s {point.p99_ns / 1e3:>8.0f} us  {describe(point.knobs)}"


def _choice(report: TuneReport) -> Iterator[str]:
    chosen, loss = report.chosen, report.loss
    if chosen is None:
        yield "nothing may be deployed: no setting was feasible in two trials at full fidelity"
    else:
        yield f"chosen: {describe(chosen.knobs)}"
        yield f"why: {chosen.why}"
    for one in report.baselines:
        state = f"infeasible: {', '.join(one.flaws)}" if one.flaws else "feasible"
        yield f"before, {one.name}: {_rates(one.outcome)}; {state}"
    if chosen is None or loss is None:
        return
    yield f"after: {_rates(chosen.outcome)}"
    if chosen.gain_low or chosen.gain_high:
        yield f"gain over {chosen.default}, 95 % interval: {chosen.gain_low:+.1%} to {chosen.gain_high:+.1%}"
    yield f"loss: {_known(loss.lost)} of {loss.packets} packets in {loss.trials} trials{_bound(loss.bound_95)}"


def _model(report: TuneReport) -> Iterator[str]:
    advice, law = report.advice, report.law
    yield f"model: {describe(advice.knobs)}; {advice.needed_bytes:.0f} B have to fly"
    yield from (f"model: {note}" for note in advice.notes)
    if law is None:
        return
    peak = law.peak()
    yield (
        f"queues: {law.rate / 1e9:.3f} GB/s for one, contention {law.contention:.3f}, crosstalk {law.crosstalk:.5f}"
        f", peak at {'none' if peak is None else peak}, fit within {law.error:.1%}"
    )
    for point in report.curve:
        fitted = "" if point.fitted is None else f", fit {point.fitted / 1e9:.3f}"
        yield f"  {point.queues:>3} queues: {point.bytes_per_s / 1e9:.3f} GB/s{fitted}"


def _held_back(one: Holding) -> str:
    gain = f" {one.gain:+.0%}," if one.gain else ""
    begin = (
        "" if one.kmin_bytes is None or one.limit is not Limit.MARKS else f", marking begins at {_size(one.kmin_bytes)}"
    )
    queued = f"up to {_size(one.queued_bytes)} wait at the receiver's port{begin}"
    return f"held back by {one.limit} alone:{gain} {describe(one.knobs)}; {queued}; to look at: {one.turn}"


def _rates(outcome: Outcome) -> str:
    pauses = "unknown" if outcome.pause_share is UNKNOWN else f"{outcome.pause_share:.2%}"
    return f"{outcome.bytes_per_s / 1e9:.3f} GB/s, p99 {outcome.p99_ns / 1e3:.0f} us, paused {pauses}"


def _known(value: Known[int]) -> str:
    return "unknown" if value is UNKNOWN else str(value)


def _bound(bound: Known[float]) -> str:
    return "" if bound is UNKNOWN else f"; at 95 % fewer than {bound:.1e} of all"


def _size(value: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size and value % (size // 4) == 0:
            return f"{value / size:g} {unit}"
    return f"{value} B"
