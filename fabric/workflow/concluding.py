"""A run's end where hosts are part of it: what they say is judged and put beside what the switches came to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fabric.host.change import HostIntent
from fabric.host.judge import PortEvidence, host_findings, unread_host
from fabric.host.report import HostReport
from fabric.intent import Fabric, Loaded
from fabric.plan.model import FabricPlan, Note
from fabric.state import Finding, Outcome
from fabric.workflow.environment import Environment
from fabric.workflow.evidence import port_evidence, read_counters
from fabric.workflow.hostoutcomes import host_notes, host_results, unread_results, was_contacted
from fabric.workflow.hosts import LINUX, load_intents, reports_of
from fabric.workflow.outcomes import roles_of, verdict_of
from fabric.workflow.planning import PlanDocument, load_intent, read_devices
from fabric.workflow.publishing import publish
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.subjects import parsed
from fabric.workflow.summary import Summary

__all__ = ("conclude", "judge_hosts", "not_managed", "seen_by_switches", "with_hosts")

Evidence = Mapping[str, Mapping[str, PortEvidence]]
"""Host → netdev → what its switch counted."""


def seen_by_switches(
    loaded: Loaded,
    plan: FabricPlan,
    texts: Mapping[str, str],
    request: Request,
    environment: Environment,
    watch: Stopwatch,
) -> Evidence:
    """Returns what the switches counted at each host; `texts` are their running configurations."""
    if not plan.switches:
        return {}
    counted = read_counters(loaded, plan, environment, watch, workers=request.workers)
    return port_evidence(loaded.fabric, plan, parsed(plan, texts)[0], counted)


def judge_hosts(
    intents: Sequence[HostIntent], reports: Mapping[str, HostReport], why: Mapping[str, str], evidence: Evidence
) -> tuple[Finding, ...]:
    """Returns what the rules say of each host; UNKNOWN for one that gave no report, by `why`."""
    found: list[Finding] = []
    for one in intents:
        if one.host in reports:
            found += host_findings(one, reports[one.host], evidence.get(one.host, {}), peer_reports=reports)
        else:
            found.append(unread_host(one.host, why.get(one.host, "it left no report")))
    return tuple(found)


def with_hosts(
    summary: Summary, run: Path, findings: Sequence[Finding] = (), *, unread: Mapping[str, str] | None = None
) -> Summary:
    """Returns the summary with the hosts of `run` beside its switches; may be done again.

    Args:
        summary: of the switches.
        run: the run folder.
        findings: on the hosts.
        unread: why a host could not be read, where reading was the purpose and this is a failure.
    """
    intents = load_intents(run)
    names = {one.host for one in intents}
    hosts = (*host_results(run), *unread_results(unread or {}))
    devices = (*(one for one in summary.devices if one.nos != LINUX), *hosts)
    together = (*(one for one in summary.findings if one.where.device not in names), *findings)
    notes = tuple(dict.fromkeys((*summary.notes, *host_notes(run))))
    return replace(
        summary,
        devices=devices,
        findings=together,
        notes=notes,
        verdict=verdict_of(devices, together, notes),
        changed=summary.changed or any(one.outcome is Outcome.COMMITTED for one in hosts),
        roles={**summary.roles, **{one.host: one.role for one in intents}},
        contacted=tuple(one.host for one in intents if was_contacted(run, one.host)),
    )


def not_managed(fabric: Fabric, selected: Sequence[str]) -> tuple[tuple[str, Note], ...]:
    """Returns the note on hosts that are planned for and not contacted; none when there are none."""
    chosen = frozenset(selected)
    names = [one.name for one in fabric.hosts if not one.managed and one.name in chosen]
    names += [one.name for one in fabric.targets if not one.managed and one.name in chosen]
    if not names:
        return ()
    return (("", Note("not-managed", f"not contacted, since fabric_managed is false there: {', '.join(names)}")),)


def conclude(run: Path, request: Request, environment: Environment) -> Summary:
    """Returns the end of a run that a playbook performed task by task, and writes its reports anew.

    Nothing is changed. The hosts' reports are those in the run folder; the switches are read now.

    Raises:
        FabricError: `run` is no run folder.
        IntentError: the inventory is wrong.
    """
    watch = Stopwatch(environment.clock)
    folder = RunFolder(run)
    summary, document = folder.read("summary", Summary), folder.read("plan", PlanDocument)
    loaded = load_intent(request, environment, watch)
    reports = reports_of(run)
    findings: tuple[Finding, ...] = ()
    if reports:
        texts, _ = read_devices(loaded, document.plan, request, environment, watch, stage="re-read")
        evidence = seen_by_switches(loaded, document.plan, texts, request, environment, watch)
        with watch.stage("check"):
            findings = judge_hosts(load_intents(run), reports, {}, evidence)
    whole = with_hosts(summary, run, findings)
    roles = {**roles_of(loaded.fabric), **whole.roles}
    return publish(folder, replace(whole, roles=roles, timings=(*summary.timings, *watch.timings)), environment)
