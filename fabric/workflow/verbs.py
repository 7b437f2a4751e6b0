"""The verbs: check, plan, provision. The command line, the playbooks and CI call these and nothing below.

Each writes its stages into a run folder and returns a `Summary`. Errors of the inventory and of the plan are raised
before any device is contacted; errors of devices and hosts are collected, one result each. Hosts and targets come
after the switches, and only when the request asks for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from fabric.errors import FabricError
from fabric.host.judge import PortEvidence
from fabric.intent import Loaded
from fabric.plan import FabricPlan
from fabric.plan.model import Note, SwitchPlan
from fabric.push import DeviceJob, SessionFactory, in_flux, private_folder
from fabric.state import DeviceResult, Finding, Outcome, Status, worst
from fabric.workflow.concluding import judge_hosts, not_managed, seen_by_switches, with_hosts
from fabric.workflow.design import ASKED, DeviceChange, design, differences
from fabric.workflow.environment import Environment
from fabric.workflow.evidence import port_evidence, read_counters, switch_counter_findings
from fabric.workflow.hosting import bring_about, play_of, read_hosts
from fabric.workflow.hostoutcomes import previews, why_not_hosts
from fabric.workflow.hosts import expect, hold_previews, intents_of, load_intents, write_intents
from fabric.workflow.outcomes import PushDocument, gate_refusal, notes_of, preview, roles_of, unread, verdict_of
from fabric.workflow.planning import (
    PlanDocument,
    Planned,
    load_intent,
    make,
    plan_of,
    read_devices,
    resume,
    switch_plan,
)
from fabric.workflow.playing import Play
from fabric.workflow.provisioning import job_of, push_in_waves
from fabric.workflow.publishing import publish
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder, check_room
from fabric.workflow.sessions import session_factories
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.subjects import findings_on, parsed, planned_subjects, running_findings
from fabric.workflow.summary import Summary
from fabric.workflow.takingback import way_back_of

__all__ = ("check", "plan", "provision")

_ROOM_BYTES: Final = 1 << 20  # of a report, whatever the plan is; with it grow four files
_JOURNAL_BYTES: Final = 1 << 16  # a transaction has some twenty lines


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: what was asked for, with what, and where its documents go."""

    request: Request
    environment: Environment
    watch: Stopwatch
    folder: RunFolder

    def play(self, *, check: bool = False) -> Play:
        return play_of(self.folder.path, self.request, self.environment, check=check)


def check(request: Request, environment: Environment, *, live: bool = False) -> Summary:
    """Returns the findings on the plan, or with `live` on what the devices do now. Changes nothing.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: the inventory or the plan is wrong.
    """
    watch = Stopwatch(environment.clock)
    loaded = load_intent(request, environment, watch)
    with watch.stage("plan"):
        numbers = plan_of(loaded, request)
        intents = intents_of(loaded, numbers) if request.hosts else ()
    folder = RunFolder.create(request.runs, "check", environment.clock.unix_s())
    folder.write("fabric", loaded.fabric)
    summary = Summary(
        verb="check",
        fabric=loaded.fabric.name,
        verdict=verdict_of((), (), ()),
        notes=notes_of(numbers),
        lossless=numbers.lossless,
        roles=roles_of(loaded.fabric),
        run_folder=str(folder.path),
    )
    if live:
        write_intents(folder.path, intents)
        summary = _looked(summary, loaded, numbers, _Run(request, environment, watch, folder))
    else:
        with watch.stage("check"):
            findings = findings_on(loaded.fabric, planned_subjects(loaded.fabric, numbers))
        summary = replace(summary, findings=findings)
    verdict = verdict_of(summary.devices, summary.findings, summary.notes)
    return publish(folder, replace(summary, verdict=verdict, timings=watch.timings), environment)


def _looked(summary: Summary, loaded: Loaded, numbers: FabricPlan, run: _Run) -> Summary:
    """Returns the summary with what the devices, their counters and the hosts of the run folder show now."""
    request, environment = run.request, run.environment
    texts, errors = read_devices(loaded, numbers, request, environment, run.watch)
    counted = read_counters(loaded, numbers, environment, run.watch, workers=request.workers)
    reports, why = read_hosts(run.play(), run.watch.stage)
    with run.watch.stage("check"):
        observed, _ = parsed(numbers, texts)
        findings = running_findings(loaded.fabric, numbers, texts, errors)
        findings += switch_counter_findings(loaded.fabric, numbers, observed, counted)
        evidence = port_evidence(loaded.fabric, numbers, observed, counted)
        hosts = judge_hosts(load_intents(run.folder.path), reports, why, evidence)
    notes = (*summary.notes, *(not_managed(loaded.fabric, loaded.selected) if request.hosts else ()))
    looked = replace(
        summary, devices=unread(numbers, errors), findings=findings, notes=notes, counted=bool(counted.by_device)
    )
    return with_hosts(looked, run.folder.path, hosts, unread=why)


def plan(request: Request, environment: Environment) -> tuple[Summary, PlanDocument]:
    """Returns what provisioning would change, and the plan to review or save. Reads the devices, changes nothing.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: the inventory or the plan is wrong.
    """
    watch = Stopwatch(environment.clock)
    planned = make(request, environment, watch)
    folder = RunFolder.create(request.runs, "plan", environment.clock.unix_s())
    folder.write("fabric", planned.loaded.fabric)
    document = planned.document
    run = _Run(request, environment, watch, folder)
    if request.hosts:
        write_intents(folder.path, planned.intents)
        bring_about(run.play(check=True), watch.stage)
        document = replace(document, hosts=previews(folder.path))
    folder.write("plan", document)
    results = (*map(preview, document.devices), *unread(document.plan, planned.errors))
    summary = _summary("plan", run, planned, results, document.findings)
    changed = any(one.changes.forward for one in document.devices) or any(one.changes for one in document.hosts or ())
    return publish(folder, replace(summary, changed=changed), environment), document


def provision(request: Request, environment: Environment, *, saved: PlanDocument | None = None) -> Summary:
    """Returns how every device ended. With `saved`, applies exactly that plan or refuses, device by device.

    Hosts and targets follow when every switch ended well. A dry run is the same up to the last moment: the devices
    judge the change, hosts tell what they would need, and nothing is applied.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: the inventory or the plan is wrong; nothing was contacted.
    """
    watch = Stopwatch(environment.clock)
    if saved is None:
        planned = make(request, environment, watch, settled=True)
    else:
        planned = resume(saved, request, environment, watch)
    document = planned.document
    verb = "rehearse" if request.dry_run else "provision"
    folder = RunFolder.create(request.runs, verb, environment.clock.unix_s())
    folder.write("fabric", planned.loaded.fabric)
    folder.write("plan", document)
    write_intents(folder.path, planned.intents)
    if saved is not None and saved.hosts is not None:
        _hold_hosts_to(saved, folder)
    findings = document.findings
    touched = request.force or worst(findings) is not Status.FAIL
    if not touched:
        pushed = tuple(gate_refusal(one, findings) for one in document.devices)
    else:
        _check_room(planned, environment)
        with folder.room(_ROOM_BYTES + 4 * (folder.path / "plan.json").stat().st_size), watch.stage("push"):
            pushed = _push(planned, request, environment, run=folder.path.name)
    results = (*pushed, *unread(document.plan, planned.errors))
    unwritten = folder.write_late("push", PushDocument(results))  # first of all: a rollback starts from it
    why_not = why_not_hosts(results) if touched else "not touched, since the compliance check of the switches failed"
    run = _Run(request, environment, watch, folder)
    bring_about(run.play(check=request.dry_run), watch.stage, why_not=why_not)
    on_hosts: tuple[Finding, ...] = ()
    if request.dry_run:
        hold_previews(folder.path)
    elif touched:
        texts, findings = _reread(planned, run)
        on_hosts = () if why_not else _reread_hosts(planned, texts, run)
    summary = replace(_summary(verb, run, planned, results, findings, on_hosts), unwritten=unwritten)
    return publish(folder, summary, environment)


def _check_room(planned: Planned, environment: Environment) -> None:
    """Sees to it that no device is touched whose configuration and journal would not fit into the state directory."""
    kept = sum(len(text.encode()) for text in planned.texts.values())
    room = kept + _JOURNAL_BYTES * len(planned.texts)
    check_room(private_folder(environment.state_dir), room)


def _summary(
    verb: str,
    run: _Run,
    planned: Planned,
    results: tuple[DeviceResult, ...],
    findings: tuple[Finding, ...],
    on_hosts: tuple[Finding, ...] = (),
) -> Summary:
    document, loaded = planned.document, planned.loaded
    notes = notes_of(document.plan, document.devices)
    notes += tuple((one.device, Note(code, text)) for one in results for code, text in one.notes)
    notes += not_managed(loaded.fabric, loaded.selected) if run.request.hosts else ()
    summary = Summary(
        verb=verb,
        fabric=document.fabric,
        verdict=verdict_of(results, findings, notes),
        devices=results,
        findings=findings,
        notes=notes,
        changed=any(one.outcome is Outcome.COMMITTED for one in results),
        lossless=document.plan.lossless,
        roles=roles_of(loaded.fabric),
        run_folder=str(run.folder.path),
    )
    return replace(with_hosts(summary, run.folder.path, on_hosts), timings=run.watch.timings)


def _hold_hosts_to(saved: PlanDocument, folder: RunFolder) -> None:
    reviewed: dict[str, dict[str, str]] = {}
    for one in saved.hosts or ():
        reviewed.setdefault(one.host, {})[one.part.value] = one.diff
    expect(folder.path, reviewed)


def _push(planned: Planned, request: Request, environment: Environment, *, run: str) -> tuple[DeviceResult, ...]:
    document = planned.document
    factories = session_factories(planned.loaded, document.plan.switches, environment)
    jobs = [
        _job(one, switch_plan(document.plan, one.device), factories[one.device], planned.texts[one.device])
        for one in document.devices
        # without a change: to learn what became of a run that died here, and to save what it may not have saved
        if one.changes.forward or in_flux(environment.state_dir, one.device)
    ]
    way_back = way_back_of(document.devices, factories, request, environment)
    results = push_in_waves(
        jobs,
        planned.loaded.fabric,
        request,
        environment,
        run=run,
        way_back=way_back,
        unread=tuple(planned.errors),
    )
    done = {one.device: one for one in results}
    return tuple(done.get(one.device) or preview(one) for one in document.devices)


def _job(change: DeviceChange, planned: SwitchPlan, make_session: SessionFactory, text: str) -> DeviceJob:
    return job_of(
        change,
        make_session,
        text,
        redo=lambda found: design(planned, found, install=ASKED in change.changes.disruptive),
        verify=lambda found: differences(change, planned, found),
    )


def _reread(planned: Planned, run: _Run) -> tuple[Mapping[str, str], tuple[Finding, ...]]:
    """Returns the configurations after the push, and the findings on them; UNKNOWN where one was not read again."""
    plan_now = planned.document.plan
    texts: Mapping[str, str] = {}
    errors: Mapping[str, FabricError]
    try:
        texts, errors = read_devices(planned.loaded, plan_now, run.request, run.environment, run.watch, stage="re-read")
    except KeyboardInterrupt:  # what was pushed must be told all the same
        errors = {one.device: FabricError("the run was stopped before it was read again") for one in plan_now.switches}
    with run.watch.stage("check"):
        return texts, running_findings(planned.loaded.fabric, plan_now, texts, errors)


def _reread_hosts(planned: Planned, texts: Mapping[str, str], run: _Run) -> tuple[Finding, ...]:
    """Returns the findings on the hosts as they are after the run; UNKNOWN where one was not read."""
    if not planned.intents:
        return ()
    reports, why = read_hosts(run.play(), run.watch.stage)
    evidence: Mapping[str, Mapping[str, PortEvidence]] = {}
    try:
        evidence = seen_by_switches(
            planned.loaded, planned.document.plan, texts, run.request, run.environment, run.watch
        )
    except KeyboardInterrupt:  # as above
        why = {**why, **{one.host: "the run was stopped before it was judged" for one in planned.intents}}
    with run.watch.stage("check hosts"):
        return judge_hosts(planned.intents, reports, why, evidence)
