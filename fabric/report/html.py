"""A run as one HTML file that needs nothing else: no script, no font, no picture from elsewhere. Printable.

Everything is escaped by the template engine: device output is not ours. The words for people are chosen here, the
templates in templates/report hold structure and no policy.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fabric.report.model import DeviceReport, RunDocument
from fabric.report.text import printable
from fabric.resources import data_path
from fabric.state import Finding, Outcome, Severity, Status, Where
from fabric.units import natural_key

__all__ = ("to_html",)

_VERDICTS = {
    Status.PASS: ("pass", "Passed"),
    Status.FAIL: ("fail", "Failed"),
    Status.UNKNOWN: ("unknown", "Cannot be told"),
}
_OUTCOMES = {
    Outcome.UNCHANGED: ("pass", "nothing to do"),
    Outcome.COMMITTED: ("pass", "committed"),
    Outcome.ROLLED_BACK: ("warn", "rolled back"),
    Outcome.REFUSED: ("warn", "refused, untouched"),
    Outcome.FAILED: ("fail", "failed, untouched"),
    Outcome.ROLLBACK_FAILED: ("fail", "rollback failed"),
    Outcome.UNCERTAIN: ("unknown", "uncertain"),
}


@dataclass(frozen=True, slots=True)
class _Badge:
    """A word with its colour class; the word alone carries the meaning."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Place:
    text: str
    ports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    badge: _Badge
    place: _Place
    finding: Finding


@dataclass(frozen=True, slots=True)
class _RuleGroup:
    id: str
    title: str
    badge: _Badge
    lines: tuple[_Line, ...]


@dataclass(frozen=True, slots=True)
class _DeviceRow:
    device: DeviceReport
    anchor: str
    check: _Badge
    push: _Badge | None
    counts: str


@dataclass(frozen=True, slots=True)
class _DiffLine:
    kind: str
    text: str


def to_html(run: RunDocument) -> str:
    """Returns the run as one self-contained HTML page."""
    import jinja2  # 40 ms that a run without a report need not pay

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_path("templates", "report")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    environment.filters["diff_lines"] = _diff_lines
    kind, word = _VERDICTS[run.verdict]
    return environment.get_template("report.html.j2").render(
        run=run,
        verdict=_Badge(kind, word),
        started=_instant(run.started_unix_s),
        took=f"{max(run.ended_unix_s - run.started_unix_s, 0.0):.1f}",
        counts=_counts(run),
        rows=_rows(run),
        open_groups=_groups(run, {Status.FAIL, Status.UNKNOWN}),
        passed_groups=_groups(run, {Status.PASS}),
        timings=tuple((one.stage, f"{one.seconds:.2f}") for one in run.timings),
    )


def _shown(value: object) -> object:
    # Escaping keeps markup out; the characters that HTML itself forbids are left to us. Markup is a str of the engine's
    # own making and must stay one.
    return printable(value) if type(value) is str else value


def _instant(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _counts(run: RunDocument) -> tuple[tuple[str, int, str], ...]:
    failed = [one for one in run.findings if one.status is Status.FAIL]
    errors = sum(one.severity is Severity.ERROR for one in failed)
    return (
        ("Devices", len(run.devices), ""),
        ("Errors", errors, "fail" if errors else ""),
        ("Warnings", len(failed) - errors, "warn" if len(failed) > errors else ""),
        ("Unknown", sum(one.status is Status.UNKNOWN for one in run.findings), ""),
        ("Passed", sum(one.status is Status.PASS for one in run.findings), ""),
    )


def _badge(finding: Finding) -> _Badge:
    if finding.status is Status.FAIL:
        warning = finding.severity is Severity.WARNING
        return _Badge("warn", "warning") if warning else _Badge("fail", "error")
    return _Badge(finding.status.value, finding.status.value)


def _worst(findings: Iterable[Finding]) -> _Badge:
    order = ("fail", "warn", "unknown", "pass")
    badges = {badge.kind: badge for badge in map(_badge, findings)}
    return next((badges[kind] for kind in order if kind in badges), _Badge("none", "not checked"))


def _place(where: Where) -> _Place:
    words = [where.device]
    words += [] if where.priority is None else [f"priority {where.priority}"]
    words += [f"{name.replace('_', ' ')} {value}" for name, value in where.details]
    return _Place(" · ".join(words), where.ports)


def _groups(run: RunDocument, statuses: set[Status]) -> tuple[_RuleGroup, ...]:
    titles = {rule.id: rule.title for rule in run.rules}
    chosen = [one for one in run.findings if one.status in statuses]
    groups = []
    for rule in dict.fromkeys(one.rule for one in chosen):
        members = sorted((one for one in chosen if one.rule == rule), key=_order)
        lines = tuple(_Line(_badge(one), _place(one.where), one) for one in members)
        groups.append(_RuleGroup(rule, titles.get(rule, ""), _worst(members), lines))
    rank = {"fail": 0, "warn": 1, "unknown": 2, "pass": 3}
    return tuple(sorted(groups, key=lambda one: (rank[one.badge.kind], one.id)))


def _order(finding: Finding) -> tuple[int, tuple[tuple[int, int | str], ...]]:
    return (finding.status is not Status.FAIL, natural_key(finding.where.device))


def _rows(run: RunDocument) -> tuple[_DeviceRow, ...]:
    rows = []
    for number, device in enumerate(run.devices):
        findings = [one for one in run.findings if one.where.device == device.device]
        outcome = None if device.result is None else _Badge(*_OUTCOMES[device.result.outcome])
        rows.append(_DeviceRow(device, f"device-{number}", _worst(findings), outcome, _tally(findings)))
    return tuple(rows)


def _tally(findings: Sequence[Finding]) -> str:
    words = [_badge(one).text for one in findings]
    names = (("error", "errors"), ("warning", "warnings"), ("unknown", "unknown"), ("pass", "passed"))
    parts = [f"{words.count(one)} {one if words.count(one) == 1 and one != 'pass' else many}" for one, many in names]
    return ", ".join(part for part in parts if not part.startswith("0 "))


def _diff_lines(text: str) -> tuple[_DiffLine, ...]:
    kinds = {"+": "added", "-": "removed"}
    return tuple(_DiffLine(kinds.get(line[:1], ""), line) for line in text.splitlines())
