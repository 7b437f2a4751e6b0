"""The verbs: check, plan, provision. The command line, the playbooks and CI call these and nothing below.

Each writes its stages into a run folder and returns a `Summary`. Errors of the inventory and of the plan are raised
before any device is contacted; errors of devices are collected, one result a device.
"""

from collections.abc import Mapping

from fabric.errors import FabricError
from fabric.plan.model import SwitchPlan
from fabric.push import DeviceJob, SessionFactory, in_flux
from fabric.state import DeviceResult, Finding, Outcome, Status, worst
from fabric.workflow.design import ASKED, DeviceChange, design, differences
from fabric.workflow.environment import Environment
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
from fabric.workflow.provisioning import job_of, push_in_waves
from fabric.workflow.publishing import publish
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.sessions import session_factories
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.subjects import findings_on, planned_subjects, running_findings
from fabric.workflow.summary import Summary

__all__ = ("check", "plan", "provision")


def check(request: Request, environment: Environment, *, live: bool = False) -> Summary:
    """Returns the findings on the plan, or with `live` on what the devices do now. Changes nothing.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: the inventory or the plan is wrong.
    """
    watch = Stopwatch(environment.clock)
    loaded = load_intent(request, environment, watch)
    with watch.stage("plan"):
        numbers = plan_of(loaded, request)
    errors: Mapping[str, FabricError] = {}
    texts: Mapping[str, str] = {}
    if live:
        texts, errors = read_devices(loaded, numbers, request, environment, watch)
    with watch.stage("check"):
        if live:
            findings = running_findings(loaded.fabric, numbers, texts, errors)
        else:
            findings = findings_on(loaded.fabric, planned_subjects(loaded.fabric, numbers))
    folder = RunFolder.create(request.runs, "check", environment.clock.unix_s())
    folder.write("fabric", loaded.fabric)
    results, notes = unread(numbers, errors), notes_of(numbers)
    return publish(
        folder,
        Summary(
            verb="check",
            fabric=loaded.fabric.name,
            verdict=verdict_of(results, findings, notes),
            devices=results,
            findings=findings,
            notes=notes,
            lossless=numbers.lossless,
            roles=roles_of(loaded.fabric),
            run_folder=str(folder.path),
            timings=watch.timings,
        ),
        environment,
    )


def plan(request: Request, environment: Environment) -> tuple[Summary, PlanDocument]:
    """Returns what provisioning would change, and the plan to review or save. Reads the devices, changes nothing.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: the inventory or the plan is wrong.
    """
    watch = Stopwatch(environment.clock)
    planned = make(request, environment, watch)
    document = planned.document
    folder = RunFolder.create(request.runs, "plan", environment.clock.unix_s())
    folder.write("fabric", planned.loaded.fabric)
    folder.write("plan", document)
    results = (*map(preview, document.devices), *unread(document.plan, planned.errors))
    notes = notes_of(document.plan, document.devices)
    summary = Summary(
        verb="plan",
        fabric=document.fabric,
        verdict=verdict_of(results, document.findings, notes),
        devices=results,
        findings=document.findings,
        notes=notes,
        changed=any(one.changes.forward for one in document.devices),
        lossless=document.plan.lossless,
        roles=roles_of(planned.loaded.fabric),
        run_folder=str(folder.path),
        timings=watch.timings,
    )
    return publish(folder, summary, environment), document


def provision(request: Request, environment: Environment, *, saved: PlanDocument | None = None) -> Summary:
    """Returns how every device ended. With `saved`, applies exactly that plan or refuses, device by device.

    A dry run is the same up to the last moment: the devices judge the change, and nothing is applied.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: the inventory or the plan is wrong; nothing was contacted.
    """
    watch = Stopwatch(environment.clock)
    planned = make(request, environment, watch) if saved is None else resume(saved, request, environment, watch)
    document = planned.document
    verb = "rehearse" if request.dry_run else "provision"
    folder = RunFolder.create(request.runs, verb, environment.clock.unix_s())
    folder.write("fabric", planned.loaded.fabric)
    folder.write("plan", document)
    findings = document.findings
    touched = request.force or worst(findings) is not Status.FAIL
    if not touched:
        pushed = tuple(gate_refusal(one, findings) for one in document.devices)
    else:
        with watch.stage("push"):
            pushed = _push(planned, request, environment, run=folder.path.name)
    results = (*pushed, *unread(document.plan, planned.errors))
    folder.write("push", PushDocument(results))  # before anything else can go wrong: a rollback starts from it
    if touched and not request.dry_run:
        findings = _reread(planned, request, environment, watch)
    notes = notes_of(document.plan, document.devices)
    summary = Summary(
        verb=verb,
        fabric=document.fabric,
        verdict=verdict_of(results, findings, notes),
        devices=results,
        findings=findings,
        notes=notes,
        changed=any(one.outcome is Outcome.COMMITTED for one in results),
        lossless=document.plan.lossless,
        roles=roles_of(planned.loaded.fabric),
        run_folder=str(folder.path),
        timings=watch.timings,
    )
    return publish(folder, summary, environment)


def _push(planned: Planned, request: Request, environment: Environment, *, run: str) -> tuple[DeviceResult, ...]:
    document = planned.document
    factories = session_factories(planned.loaded, document.plan.switches, environment)
    jobs = [
        _job(one, switch_plan(document.plan, one.device), factories[one.device], planned.texts[one.device])
        for one in document.devices
        # without a change: to learn what became of a run that died here, and to save what it may not have saved
        if one.changes.forward or in_flux(environment.state_dir, one.device)
    ]
    done = {one.device: one for one in push_in_waves(jobs, planned.loaded.fabric, request, environment, run=run)}
    return tuple(done.get(one.device) or preview(one) for one in document.devices)


def _job(change: DeviceChange, planned: SwitchPlan, make_session: SessionFactory, text: str) -> DeviceJob:
    return job_of(
        change,
        make_session,
        text,
        redo=lambda found: design(planned, found, install=ASKED in change.changes.disruptive),
        verify=lambda found: differences(change, planned, found),
    )


def _reread(planned: Planned, request: Request, environment: Environment, watch: Stopwatch) -> tuple[Finding, ...]:
    """Returns the findings on the devices as they are after the push; UNKNOWN where one was not read again."""
    plan_now = planned.document.plan
    texts: Mapping[str, str] = {}
    errors: Mapping[str, FabricError]
    try:
        texts, errors = read_devices(planned.loaded, plan_now, request, environment, watch, stage="re-read")
    except KeyboardInterrupt:  # what was pushed must be told all the same
        errors = {one.device: FabricError("the run was stopped before it was read again") for one in plan_now.switches}
    with watch.stage("check"):
        return running_findings(planned.loaded.fabric, plan_now, texts, errors)
