"""What must be right before a load proves anything: what `check --live` asks, over sessions that are open already.

A load on a fabric that is known to be wrong proves what is known. Or the findings of an earlier run stand for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import FabricError
from fabric.host.change import HostIntent
from fabric.host.report import HostReport, read_host
from fabric.intent import Loaded
from fabric.plan import FabricPlan
from fabric.state import Finding, Severity, Status, Where
from fabric.workflow.concluding import judge_hosts
from fabric.workflow.environment import Environment
from fabric.workflow.evidence import port_evidence, read_counters, switch_counter_findings
from fabric.workflow.hosts import intents_of
from fabric.workflow.planning import read_devices
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.subjects import parsed, running_findings
from fabric.workflow.summary import Summary
from fabric.workflow.verifying.hostcounters import Machine
from fabric.workflow.verifying.reaching import Way, Ways

__all__ = ("agent_findings", "earlier_findings", "is_refused", "live_findings")


@dataclass(frozen=True, slots=True)
class _Read:
    """One host's report, or why there is none."""

    host: str
    report: HostReport | None = None
    why: str = ""


def live_findings(
    loaded: Loaded,
    plan: FabricPlan,
    ways: Ways,
    machines: Sequence[Machine],
    request: Request,
    environment: Environment,
) -> tuple[Finding, ...]:
    """Returns what the rules say of switches, their counters, hosts and targets as they are now."""
    watch = Stopwatch(environment.clock)
    texts, errors = read_devices(loaded, plan, request, environment, watch)
    counted = read_counters(loaded, plan, environment, watch, workers=request.workers)
    intents = {one.host: one for one in intents_of(loaded, plan)}
    asked = [one for one in machines if one.name in intents]
    reads = ways.each(
        asked,
        lambda machine, way: _report(intents[machine.name], way),
        failed=lambda machine, why: _Read(machine.name, why=why),
    )
    observed, _ = parsed(plan, texts)
    evidence = port_evidence(loaded.fabric, plan, observed, counted)
    reports = {one.host: one.report for one in reads if one.report is not None}
    why = {one.host: one.why for one in reads if one.report is None}
    return (
        *running_findings(loaded.fabric, plan, texts, errors),
        *switch_counter_findings(loaded.fabric, plan, observed, counted),
        *judge_hosts(tuple(intents.values()), reports, why, evidence),
    )


def _report(intent: HostIntent, way: Way) -> _Read:
    return _Read(intent.host, read_host(intent, way.executor))


def earlier_findings(run: Path, fabric: str) -> tuple[Finding, ...]:
    """Returns the findings of an earlier run.

    Raises:
        FabricError: it is no run folder, of another fabric, or of a run that did not judge what devices do.
    """
    summary = RunFolder(run).read("summary", Summary)
    if summary.fabric != fabric:
        raise FabricError("that run is of another fabric", where=str(run), found=summary.fabric, expected=fabric)
    if summary.verb != "provision" and not summary.counted:
        raise FabricError(
            "that run did not judge what devices do now",
            where=str(run),
            found=summary.verb,
            expected="a provisioning, or check --live",
        )
    return summary.findings


def agent_findings(wanted: Sequence[str], errors: dict[str, FabricError]) -> tuple[Finding, ...]:
    """Returns a finding for each machine that has no agent, and so cannot take part in the load."""
    return tuple(
        Finding(
            rule="load-agent-runs",
            status=Status.FAIL,
            severity=Severity.ERROR,
            where=Where(name),
            evidence=errors[name].what + (f" ({errors[name].found})" if errors[name].found else ""),
            expected="a session, and Python 3.11 or newer",
            remedy=errors[name].remedy,
        )
        for name in wanted
        if name in errors
    )


def is_refused(findings: Sequence[Finding]) -> bool:
    """Returns whether an error failed, so that no load is sent unless told."""
    return any(one.status is Status.FAIL and one.severity is Severity.ERROR for one in findings)
