"""The verb rollback: a finished run, taken back on every device where it was committed, or may have been.

Hosts first: connections, then the hosts' NICs, then targets; then the switches, so that no host marks traffic as
lossless that its switch no longer takes so. What hosts are taken back from is written before it is performed: a run
that was killed can be taken back too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fabric.errors import FabricError
from fabric.intent import Loaded
from fabric.push import DeviceJob, SessionFactory, in_flux
from fabric.state import Outcome
from fabric.workflow.concluding import with_hosts
from fabric.workflow.design import DeviceChange
from fabric.workflow.environment import Environment
from fabric.workflow.hosting import no_longer_managed, play_of, take_back
from fabric.workflow.hosts import TOUCHED, changes_of, prepare_back
from fabric.workflow.outcomes import PushDocument, preview, roles_of, unread, verdict_of
from fabric.workflow.planning import PlanDocument, load_intent, read_devices
from fabric.workflow.playing import Play
from fabric.workflow.provisioning import job_of, push_in_waves
from fabric.workflow.publishing import publish
from fabric.workflow.request import Request
from fabric.workflow.reversing import reverse, undone
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.sessions import session_factories
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.summary import Summary

__all__ = ("rollback", "sources_of_run")


@dataclass(frozen=True, slots=True)
class _Past:
    """A finished run: the plan it applied, and the changes that stand on a device or may stand there.

    Attributes:
        hosts: those with a part that stands, or may stand.
    """

    document: PlanDocument
    touched: tuple[DeviceChange, ...]
    hosts: tuple[str, ...] = ()


def sources_of_run(run: Path) -> tuple[Path, ...]:
    """Returns the inventory sources that the run was made from."""
    return tuple(Path(source) for source in RunFolder(run).read("plan", PlanDocument).sources)


def rollback(run: Path, request: Request, environment: Environment) -> Summary:
    """Returns how every device ended that `run` had committed, or left uncertain; the others are not contacted.

    A device that is as before that run already is left alone, so a rollback may be repeated. On switches a rollback is
    a push like any other: under a timer, read again, confirmed; it can itself be rolled back. On hosts it is not: they
    are provisioned again instead. Switches are taken back although a host could not be.

    Raises:
        FabricError: `run` is no run folder of a provisioning.
        IntentError: the inventory is wrong.
    """
    watch = Stopwatch(environment.clock)
    past = _read(run, hosts=request.hosts)
    loaded = load_intent(request, environment, watch)
    folder = RunFolder.create(request.runs, "rollback", environment.clock.unix_s())
    if past.hosts:
        _take_hosts_back(run, past, loaded, play_of(folder.path, request, environment), watch)
    plan = past.document.plan.only(one.device for one in past.touched)
    texts, errors = read_devices(loaded, plan, request, environment, watch)
    with watch.stage("changes"):
        backs, drifted = _reversed(past, texts)
    folder.write("fabric", loaded.fabric)
    now_s = environment.clock.unix_s()
    folder.write("plan", replace(past.document, plan=plan, devices=backs, created_unix_s=now_s, findings=()))
    factories = session_factories(loaded, plan.switches, environment)
    jobs = [_job(past, one, factories[one.device], texts[one.device]) for one in backs if _concerned(one, environment)]
    with watch.stage("push"):
        done = push_in_waves(jobs, loaded.fabric, request, environment, run=folder.path.name)
    ended = {one.device: one for one in done}
    results = (*(ended.get(one.device) or preview(one) for one in backs), *unread(plan, {**errors, **drifted}))
    folder.write("push", PushDocument(results))
    summary = Summary(
        verb="rollback",
        fabric=past.document.fabric,
        verdict=verdict_of(results, (), ()),
        devices=results,
        changed=any(one.outcome is Outcome.COMMITTED for one in results),
        lossless=plan.lossless,
        roles=roles_of(loaded.fabric),
        run_folder=str(folder.path),
        timings=watch.timings,
    )
    return publish(folder, replace(with_hosts(summary, folder.path), timings=watch.timings), environment)


def _take_hosts_back(run: Path, past: _Past, loaded: Loaded, play: Play, watch: Stopwatch) -> None:
    prepare_back(run, play.run)
    take_back(play, watch.stage, left_out=no_longer_managed(loaded.fabric, past.hosts))


def _reversed(past: _Past, texts: Mapping[str, str]) -> tuple[tuple[DeviceChange, ...], dict[str, FabricError]]:
    backs: list[DeviceChange] = []
    drifted: dict[str, FabricError] = {}
    for change in past.touched:
        if change.device not in texts:
            continue
        try:
            backs.append(reverse(change, texts[change.device], strict=True))
        except FabricError as error:
            drifted[change.device] = error
    return tuple(backs), drifted


def _concerned(back: DeviceChange, environment: Environment) -> bool:
    return bool(back.changes.forward) or in_flux(environment.state_dir, back.device)


def _job(past: _Past, back: DeviceChange, make_session: SessionFactory, text: str) -> DeviceJob:
    return job_of(
        back,
        make_session,
        text,
        redo=lambda found: _reverse_of(past, back.device, found),
        verify=lambda found: undone(back, found),
    )


def _reverse_of(past: _Past, device: str, text: str) -> DeviceChange:
    """Returns the way back of one device, designed anew from `text`."""
    change = next(one for one in past.touched if one.device == device)
    return reverse(change, text, strict=True)


def _read(run: Path, *, hosts: bool) -> _Past:
    folder = RunFolder(run)
    document = folder.read("plan", PlanDocument)
    standing = tuple(dict.fromkeys(one.host for one in changes_of(run))) if hosts else ()
    has_pushed = (folder.path / "push.json").exists()
    if not has_pushed and not standing:
        raise FabricError(
            f"the run {run.name} pushed nothing, or was killed while it did",
            remedy="A device that was left unconfirmed goes back by itself. Provision again to learn how they stand.",
        )
    results = folder.read("push", PushDocument).results if has_pushed else ()
    touched = {one.device for one in results if one.outcome in TOUCHED}
    if not touched and not standing:
        raise FabricError(f"the run {run.name} committed nothing", remedy="There is nothing to roll back.")
    return _Past(document, tuple(one for one in document.devices if one.device in touched), standing)
