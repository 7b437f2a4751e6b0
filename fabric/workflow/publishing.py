"""A run's reports: the JSON document, and what is made from it. The JSON is the truth."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fabric._version import __version__
from fabric.compliance import LinkRule, Rule, link_rules, rules
from fabric.errors import EnvironmentMissingError
from fabric.observe import Event
from fabric.report import DeviceReport, RuleInfo, RunDocument, build
from fabric.state import DeviceResult, Finding, Outcome, Status, worst
from fabric.workflow.environment import Environment
from fabric.workflow.hosts import LINUX
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.summary import LOOKING, Summary, Verdict, how_it_ended

__all__ = ("document_of", "limits_of", "publish", "sentence")

_HOST_ROLES: Final = frozenset({"host", "target"})


def publish(folder: RunFolder, summary: Summary, environment: Environment) -> Summary:
    """Writes `summary.json` and every report (JSON, HTML, JUnit, SARIF); returns the summary.

    It comes back even where nothing can be written: what was done must be told.
    """
    document = document_of(summary, ended_unix_s=environment.clock.unix_s(), run=folder.path.name)
    try:
        folder.write("summary", summary)
        for name, text in build(document).items():
            folder.write_text(name, text)
    except EnvironmentMissingError as error:
        summary = replace(summary, unwritten=(*summary.unwritten, str(error)))
    environment.observer(Event(f"{summary.verb}.done", message=f"verdict {summary.verdict.value}: {folder.path}"))
    return summary


def limits_of(summary: Summary) -> tuple[str, ...]:
    """Returns what the run is no evidence for, one sentence each."""
    if summary.limits:
        return summary.limits
    read = (
        "by what they have counted, since they were started or cleared; no traffic was sent."
        if summary.counted
        else "; no traffic was sent and no counter was judged."
    )
    joint = " and " if summary.counted else ""
    switches = f"Switches were judged by their configuration{joint}{read}"
    if not summary.contacted:
        return (switches, "Host plans are computed and compared; hosts and targets were not contacted.")
    hosts = "Hosts and targets were judged by what they say of themselves"
    left = [name for name, role in summary.roles.items() if role in _HOST_ROLES and name not in summary.contacted]
    return (switches, f"{hosts}{'; not contacted: ' + ', '.join(left) if left else ''}.")


def document_of(summary: Summary, *, ended_unix_s: float, run: str) -> RunDocument:
    """Returns the whole run as the reports have it."""
    took_s = sum(timing.seconds for timing in summary.timings)
    return RunDocument(
        tool_version=__version__,
        run=run,
        command=f"fabricctl {summary.verb}",
        fabric=summary.fabric,
        started_unix_s=ended_unix_s - took_s,
        ended_unix_s=ended_unix_s,
        verdict=_status(summary),
        summary=sentence(summary),
        limits=limits_of(summary),
        notes=tuple(note for device, note in summary.notes if not device),
        devices=_devices(summary),
        findings=summary.findings,
        rules=_rules(summary.findings),
        timings=summary.timings,
        sections=summary.sections,
    )


def sentence(summary: Summary) -> str:
    """Returns what happened, one sentence."""
    if summary.said:
        return summary.said
    ends: dict[str, int] = {}
    for one in summary.devices:
        name = how_it_ended(summary, one)
        ends[name] = ends.get(name, 0) + 1
    told = ", ".join(f"{count} {name}" for name, count in ends.items()) or "no device concerned"
    failed = sum(one.status is Status.FAIL for one in summary.findings)
    unknown = sum(one.status is Status.UNKNOWN for one in summary.findings)
    return f"{summary.verb} of {summary.fabric}: {told}; {failed} findings failed, {unknown} could not be judged"


def _status(summary: Summary) -> Status:
    if summary.verdict is Verdict.OK:
        return Status.PASS
    if summary.verdict is Verdict.FAILED or worst(summary.findings) is Status.FAIL:
        return Status.FAIL
    return Status.UNKNOWN if worst(summary.findings) is Status.UNKNOWN else Status.FAIL


def _devices(summary: Summary) -> tuple[DeviceReport, ...]:
    named = dict.fromkeys(device for device, _ in summary.notes if device)
    named |= dict.fromkeys(one.where.device for one in summary.findings if one.where.device)
    results = {one.device: one for one in summary.devices}
    names = [*results, *(name for name in named if name not in results)]
    return tuple(
        DeviceReport(
            device=name,
            nos=results[name].nos if name in results else LINUX if summary.roles.get(name) in _HOST_ROLES else "",
            role=summary.roles.get(name, ""),
            notes=tuple(note for device, note in summary.notes if device == name),
            diff=results[name].diff if name in results else "",
            result=_result(summary, results.get(name)),
        )
        for name in names
    )


def _result(summary: Summary, found: DeviceResult | None) -> DeviceResult | None:
    """Returns the result unless it only says that nobody pushed: a device that failed a mere look stays in sight."""
    looked = found is not None and found.outcome is Outcome.UNCHANGED and summary.verb in LOOKING | {"check"}
    return None if looked else found


def _rules(findings: Sequence[Finding]) -> tuple[RuleInfo, ...]:
    """Returns the rules that were asked: those on configurations all or none, the others as far as they answered."""
    registered: list[Rule | LinkRule] = [rules.get(name) for name in rules.names()]
    registered += [link_rules.get(name) for name in link_rules.names()]
    known = {one.id for one in registered}
    answered = {one.rule: one.severity for one in findings}
    asked = [RuleInfo(one.id, one.title, one.severity) for one in registered if known & set(answered)]
    asked += [RuleInfo(name, _words(name), answered[name]) for name in sorted(set(answered) - known)]
    return tuple(asked)


def _words(rule: str) -> str:
    """Returns the id of a rule that has no title, as words."""
    return f"{rule.replace('-', ' ').capitalize()}."
