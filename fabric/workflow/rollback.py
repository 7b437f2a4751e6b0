"""The verb rollback: a run, taken back on every device where it was committed, or may have been.

Hosts first: connections, then the hosts' NICs, then targets; then the switches, so that no host marks traffic as
lossless that its switch no longer takes so. What hosts are taken back from is written before it is performed: a run
that was killed can be taken back too. What others changed since stays theirs and is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from fabric.errors import FabricError
from fabric.intent import Loaded
from fabric.plan import FabricPlan
from fabric.plan.model import Note
from fabric.push import DeviceJob, SessionFactory, in_flux
from fabric.state import Outcome
from fabric.workflow.concluding import with_hosts
from fabric.workflow.design import DeviceChange
from fabric.workflow.environment import Environment
from fabric.workflow.hosting import no_longer_managed, play_of, take_back
from fabric.workflow.hosts import prepare_back
from fabric.workflow.keeping import notes_on_kept
from fabric.workflow.laterruns import LaterRuns, later_runs
from fabric.workflow.outcomes import PushDocument, preview, roles_of, unread, verdict_of
from fabric.workflow.past import Past, plan_of_run, read_past
from fabric.workflow.planning import load_intent, read_devices
from fabric.workflow.playing import Play
from fabric.workflow.provisioning import job_of, push_in_waves
from fabric.workflow.publishing import publish
from fabric.workflow.request import Request
from fabric.workflow.reversing import reverse, undone
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.sessions import session_factories
from fabric.workflow.settling import settle
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.summary import Summary

__all__ = ("rollback", "sources_of_run")

_DRY: Final = "rehearse-rollback"


@dataclass(frozen=True, slots=True)
class _Way:
    """How the changes of a past run are turned round.

    Attributes:
        run: its name. later: what newer runs did on the same switches.
        strict: refuse what others changed, instead of keeping it.
    """

    run: str
    past: Past
    later: LaterRuns = field(default_factory=dict)
    strict: bool = False

    def back(self, device: str, text: str) -> DeviceChange:
        """Returns the way back of one device, designed from `text`."""
        later = {one.run: one.change for one in self.later.get(device, ()) if not one.change.undoes}
        back = reverse(self.past.change(device), text, newer=later, strict=self.strict)
        return replace(back, undoes=self.run)

    def notes(self, back: DeviceChange) -> tuple[tuple[str, Note], ...]:
        """Returns what is left on a device, and whose it is."""
        return tuple((back.device, one) for one in notes_on_kept(back, self.later.get(back.device, ())))


def sources_of_run(run: Path) -> tuple[Path, ...]:
    """Returns the inventory sources that the run was made from."""
    return tuple(Path(source) for source in plan_of_run(run).sources)


def rollback(run: Path, request: Request, environment: Environment) -> Summary:
    """Returns how every device ended that `run` had committed, or left uncertain; the others are not contacted.

    What others changed since, newer runs too, stays as it is, and a note says so; with `strict` such a device is
    refused. A device that is as before that run already is left alone, so a rollback may be repeated. On switches a
    rollback is a push like any other: under a timer, read again, confirmed; it can itself be rolled back. On hosts it
    is not: they are provisioned again instead. Switches are taken back although a host could not be. A dry run tells
    all of it and applies nothing.

    Raises:
        FabricError: `run` is no run folder of a provisioning, is damaged, or left nothing.
        IntentError: the inventory is wrong.
    """
    watch = Stopwatch(environment.clock)
    past = read_past(run, environment.state_dir, hosts=request.hosts)
    loaded = load_intent(request, environment, watch)
    names = [one.device for one in past.touched]
    later = later_runs(run, past.document, names, dict.fromkeys((run.resolve().parent, request.runs.resolve())))
    way = _Way(run.resolve().name, past, later, strict=request.strict)
    verb = _DRY if request.dry_run else "rollback"
    folder = RunFolder.create(request.runs, verb, environment.clock.unix_s())
    settle(names, environment, watch)
    if past.hosts:
        _take_hosts_back(run, past, loaded, play_of(folder.path, request, environment, check=request.dry_run), watch)
    plan = past.document.plan.only(names)
    texts, errors = read_devices(loaded, plan, request, environment, watch)
    with watch.stage("changes"):
        backs, undesigned = _designed(way, names, texts)
    folder.write("fabric", loaded.fabric)
    now_s = environment.clock.unix_s()
    folder.write("plan", replace(past.document, plan=plan, devices=backs, created_unix_s=now_s, findings=()))
    jobs = _jobs(way, backs, loaded, plan, texts, environment)
    with watch.stage("push"):
        done = push_in_waves(jobs, loaded.fabric, request, environment, run=folder.path.name)
    ended = {one.device: one for one in done}
    results = (*(ended.get(one.device) or preview(one) for one in backs), *unread(plan, {**errors, **undesigned}))
    unwritten = folder.write_late("push", PushDocument(results))  # what was done must be told all the same
    notes = tuple(note for one in backs for note in way.notes(one))
    summary = Summary(
        verb=verb,
        fabric=past.document.fabric,
        verdict=verdict_of(results, (), notes),
        devices=results,
        notes=notes,
        changed=any(one.outcome is Outcome.COMMITTED or (request.dry_run and one.changes) for one in results),
        lossless=plan.lossless,
        roles=roles_of(loaded.fabric),
        run_folder=str(folder.path),
        timings=watch.timings,
        unwritten=unwritten,
    )
    return publish(folder, replace(with_hosts(summary, folder.path), timings=watch.timings), environment)


def _take_hosts_back(run: Path, past: Past, loaded: Loaded, play: Play, watch: Stopwatch) -> None:
    prepare_back(run, play.run)
    take_back(play, watch.stage, left_out=no_longer_managed(loaded.fabric, past.hosts))


def _designed(
    way: _Way, devices: list[str], texts: Mapping[str, str]
) -> tuple[tuple[DeviceChange, ...], dict[str, FabricError]]:
    """Returns the way back of each device that was read, and the error of each that has none."""
    backs: list[DeviceChange] = []
    failed: dict[str, FabricError] = {}
    for device in devices:
        if device not in texts:
            continue
        try:
            backs.append(way.back(device, texts[device]))
        except FabricError as error:
            failed[device] = error
    return tuple(backs), failed


def _jobs(
    way: _Way,
    backs: tuple[DeviceChange, ...],
    loaded: Loaded,
    plan: FabricPlan,
    texts: Mapping[str, str],
    environment: Environment,
) -> list[DeviceJob]:
    factories = session_factories(loaded, plan.switches, environment)
    return [
        _job(way, one, factories[one.device], texts[one.device])
        for one in backs
        # without a change: to learn what became of a run that died here, and to save what it may not have saved
        if one.changes.forward or in_flux(environment.state_dir, one.device)
    ]


def _job(way: _Way, back: DeviceChange, make_session: SessionFactory, text: str) -> DeviceJob:
    return job_of(
        back,
        make_session,
        text,
        redo=lambda found: way.back(back.device, found),
        verify=lambda found: undone(back, found),
    )
