"""A summary and a plan in words. Returns lines; prints nothing."""

from collections.abc import Iterator, Sequence
from typing import Final

from fabric.state import DeviceResult, Finding, Outcome, Severity, Status
from fabric.workflow import Summary, Verdict
from fabric.workflow.summary import LOOKING, how_it_ended, is_kept

__all__ = ("Line", "finding_lines", "summary_lines")

Line = tuple[str, str]
"""Text and style."""

_STYLES: Final = {
    Outcome.COMMITTED: "green",
    Outcome.UNCHANGED: "dim",
    Outcome.ROLLED_BACK: "yellow",
    Outcome.REFUSED: "yellow",
    Outcome.FAILED: "red",
    Outcome.ROLLBACK_FAILED: "bold red",
    Outcome.UNCERTAIN: "bold red",
}
_VERDICTS: Final = {Verdict.OK: "bold green", Verdict.FINDINGS: "bold yellow", Verdict.FAILED: "bold red"}
_DIFF_STYLES: Final = {"+": "green", "-": "red", "~": "yellow"}
_DIFF_LINES: Final = 12


def summary_lines(summary: Summary, *, full: bool = False) -> Iterator[Line]:
    """Yields the run: devices with their diffs, findings, notes, timings, verdict.

    Args:
        summary: of the run.
        full: whole diffs; else the first lines of each.
    """
    for one in summary.devices:
        yield from _device_lines(one, _word(summary, one), full=full, planned=summary.verb in LOOKING)
    if summary.findings:
        yield "", ""
        yield from finding_lines(summary.findings)
    yield from _note_lines(summary, every=summary.verb in LOOKING)
    yield "", ""
    told = " · ".join(f"{timing.stage} {timing.seconds:.2f} s" for timing in summary.timings)
    yield told, "dim"
    yield f"{summary.verb} {summary.fabric}: {_said(summary)}", _VERDICTS[summary.verdict]
    if summary.run_folder:
        yield f"report: {summary.run_folder}/report.html", ""


def finding_lines(findings: Sequence[Finding]) -> Iterator[Line]:
    """Yields what failed or could not be judged, and a count of what passed."""
    passed = sum(one.status is Status.PASS for one in findings)
    for one in findings:
        if one.status is Status.PASS:
            continue
        where = one.where
        ports = f" {_few(where.ports)}" if where.ports else ""
        mark = "UNKNOWN" if one.status is Status.UNKNOWN else "FAIL" if one.severity is Severity.ERROR else "WARN"
        style = "red" if mark == "FAIL" else "yellow"
        yield f"{mark:8}{where.device}{ports}: {one.rule}", style
        yield f"        {one.evidence}", ""
        if one.remedy:
            yield f"        → {one.remedy}", ""
    yield f"{passed} checks passed", "green"


def _word(summary: Summary, one: DeviceResult) -> str:
    """Returns how the device ended, "" where the number of its changes says it."""
    planned = summary.verb in LOOKING and one.outcome is Outcome.UNCHANGED
    word = how_it_ended(summary, one)
    return "" if planned and word == "to change" else "nothing to do" if planned and word == "unchanged" else word


def _device_lines(one: DeviceResult, word: str, *, full: bool, planned: bool) -> Iterator[Line]:
    told = ", ".join(part for part in (word, _counted(one.changes) if one.changes else "") if part)
    style = "cyan" if planned and one.outcome is Outcome.UNCHANGED and one.changes else _STYLES[one.outcome]
    yield f"{one.device:12} {one.nos:6} {told}{' (interrupts traffic)' if one.disruptive else ''}", style
    if one.error:
        yield f"    {one.error}", "dim" if one.outcome is Outcome.COMMITTED else "red"
    if one.remedy:
        yield f"    → {one.remedy}", ""
    lines = one.diff.splitlines() if planned or one.error else []
    shown = lines if full else lines[:_DIFF_LINES]
    for line in shown:
        yield f"    {line}", _DIFF_STYLES.get(line[:1], "")
    if len(shown) < len(lines):
        yield f"    … {len(lines) - len(shown)} more; --full shows all", "dim"


def _note_lines(summary: Summary, *, every: bool) -> Iterator[Line]:
    grouped: dict[tuple[str, str], list[str]] = {}
    blocking: set[tuple[str, str]] = set()
    for device, note in summary.notes:
        if not (every or note.blocks_lossless or is_kept(note)):
            continue
        key = (note.code, note.text)
        grouped.setdefault(key, []).append(device or "fabric")
        if note.blocks_lossless:
            blocking.add(key)
    if grouped:
        yield "", ""
    for (code, text), devices in grouped.items():
        head = "blocks lossless" if (code, text) in blocking else "note"
        yield f"{head}: {_few(tuple(devices))}: {code}", "yellow" if head != "note" else "dim"
        for line in text.splitlines():
            yield f"        {line}", "" if head != "note" else "dim"


def _said(summary: Summary) -> str:
    counts: dict[str, int] = {}
    for one in summary.devices:
        name = how_it_ended(summary, one)
        counts[name] = counts.get(name, 0) + 1
    parts = [f"{count} {name}" for name, count in counts.items()]
    if summary.verb in LOOKING | {"check"}:
        parts.append("lossless by plan" if summary.lossless else "not lossless by plan")
    return f"{summary.verdict.value.upper()} — {', '.join(parts)}"


def _counted(changes: int) -> str:
    return f"{changes} change{'' if changes == 1 else 's'}"


def _few(names: Sequence[str], limit: int = 6) -> str:
    head = ", ".join(names[:limit])
    return f"{head} and {len(names) - limit} more" if len(names) > limit else head
