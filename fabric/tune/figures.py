"""Two figures of a study as SVG text: throughput over queues with its fit, throughput against p99. No library."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from fabric.tune.asking import FULL
from fabric.tune.report import TuneReport

__all__ = ("pareto_svg", "scaling_svg")

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 80, 40, 20, 60
TICKS = 5
FONT = 'font-family="sans-serif" font-size="12"'
GOOD, BAD, FIT = "#1b7f4d", "#b3261e", "#555"


@dataclass(frozen=True, slots=True)
class _Axes:
    """Linear from 0 to the most of each."""

    most_x: float
    most_y: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + across * x / self.most_x, TOP + down * (1 - y / self.most_y)


def scaling_svg(report: TuneReport) -> str:
    """Returns throughput over the number of queues: measured points, and the fitted law as a line."""
    points = [(float(one.queues), one.bytes_per_s / 1e9) for one in report.curve]
    law = report.law
    most = max((x for x, _ in points), default=1.0)
    line = [] if law is None else [(n / 4, law.at(n / 4) / 1e9) for n in range(4, round(4 * most) + 1)]
    axes = _Axes(most, 1.1 * max((y for _, y in (*points, *line)), default=1.0) or 1.0)
    drawn = [_circle(axes, x, y, GOOD) for x, y in points]
    if line:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (axes.at(*one) for one in line))
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{FIT}" stroke-width="2"/>')
    return _figure("Throughput over I/O queues, with the fitted law", "I/O queues", "GB/s", axes, drawn)


def pareto_svg(report: TuneReport) -> str:
    """Returns throughput against p99 of every trial: feasible ones green, others red, the chosen one in a ring."""
    points = [
        (row.outcome.p99_ns / 1e3, row.outcome.bytes_per_s / 1e9, GOOD if not row.flaws else BAD, row.trial)
        for row in report.rows
    ]
    most_x = 1.05 * max((x for x, *_ in points), default=1.0)
    axes = _Axes(most_x or 1.0, 1.1 * max((y for _, y, *_ in points), default=1.0) or 1.0)
    drawn = [_circle(axes, x, y, color, faint=trial.fidelity < FULL) for x, y, color, trial in points]
    if report.chosen is not None:
        x, y = axes.at(report.chosen.outcome.p99_ns / 1e3, report.chosen.outcome.bytes_per_s / 1e9)
        drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" stroke="#000" stroke-width="2"/>')
    return _figure("Throughput against p99 of every trial", "p99 of a request, us", "GB/s", axes, drawn)


def _circle(axes: _Axes, x: float, y: float, color: str, *, faint: bool = False) -> str:
    cx, cy = axes.at(x, y)
    return f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="4" fill="{color}" opacity="{0.4 if faint else 1}"/>'


def _figure(title: str, across: str, up: str, axes: _Axes, drawn: Sequence[str]) -> str:
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _words(WIDTH / 2, 22, title, "middle"),
        _words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, across, "middle"),
        _words(8, TOP - 12, up, "start"),
    ]
    for tick in range(TICKS + 1):
        x, _ = axes.at(axes.most_x * tick / TICKS, 0)
        _, y = axes.at(0, axes.most_y * tick / TICKS)
        out += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
            _words(LEFT - 8, y + 4, f"{axes.most_y * tick / TICKS:.3g}", "end"),
            _words(x, HEIGHT - BOTTOM + 18, f"{axes.most_x * tick / TICKS:.4g}", "middle"),
        ]
    return "\n".join([*out, *drawn, "</svg>"]) + "\n"


def _words(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
