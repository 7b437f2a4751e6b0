"""The verbs on hosts and targets alone: plan, apply, status, connect, disconnect. No switch is contacted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fabric._version import __version__
from fabric.errors import PlanError
from fabric.host.report import HostReport
from fabric.intent import Fabric
from fabric.state import Finding
from fabric.workflow.concluding import judge_hosts, not_managed, with_hosts
from fabric.workflow.environment import Environment
from fabric.workflow.hosting import bring_about, play_of, read_hosts
from fabric.workflow.hostoutcomes import previews
from fabric.workflow.hosts import intents_of, load_intents, write_intents
from fabric.workflow.outcomes import PushDocument
from fabric.workflow.planning import PlanDocument, load_intent, plan_of
from fabric.workflow.playing import CONNECT, DISCONNECT, FORWARD, Stage
from fabric.workflow.publishing import publish
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.summary import Summary, Verdict

__all__ = ("HostsStatus", "apply_hosts", "connect_hosts", "disconnect_hosts", "hosts_status", "plan_hosts")


@dataclass(frozen=True, slots=True)
class HostsStatus:
    """What each host and target says of itself, and what the rules say of that."""

    summary: Summary
    reports: tuple[HostReport, ...]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A run on hosts whose intents lie in its folder."""

    verb: str
    request: Request
    environment: Environment
    watch: Stopwatch
    folder: RunFolder
    fabric: Fabric
    selected: tuple[str, ...]

    def summary(self) -> Summary:
        return Summary(
            verb=self.verb,
            fabric=self.fabric.name,
            verdict=Verdict.OK,
            notes=not_managed(self.fabric, self.selected),
            run_folder=str(self.folder.path),
        )


def plan_hosts(request: Request, environment: Environment) -> Summary:
    """Returns what `apply_hosts` would change, from a check mode of the playbooks.

    Raises:
        IntentError, PlanError: the inventory or the plan is wrong; nobody was contacted.
    """
    begun = _begin("hosts plan", request, environment)
    bring_about(play_of(begun.folder.path, request, environment, check=True), begun.watch.stage)
    summary = with_hosts(begun.summary(), begun.folder.path)
    changed = any(one.changes for one in previews(begun.folder.path))
    return _published(begun, replace(summary, changed=changed))


def apply_hosts(request: Request, environment: Environment) -> Summary:
    """Returns how targets and hosts ended: NICs, target, connections; then they are read again and judged.

    Raises:
        IntentError, PlanError: the inventory or the plan is wrong; nobody was contacted.
    """
    return _performed(_begin("hosts apply", request, environment), FORWARD)


def connect_hosts(request: Request, environment: Environment) -> Summary:
    """Returns how hosts ended that were told to connect, now and at boot; then they are read again and judged.

    Raises:
        IntentError, PlanError: the inventory or the plan is wrong; nobody was contacted.
    """
    return _performed(_begin("hosts connect", request, environment, role=CONNECT.role), (CONNECT,))


def disconnect_hosts(request: Request, environment: Environment) -> Summary:
    """Returns how hosts ended that were told to disconnect from what the intent names, now and at boot.

    Raises:
        IntentError, PlanError: the inventory or the plan is wrong; nobody was contacted.
    """
    begun = _begin("hosts disconnect", request, environment, role=DISCONNECT.role)
    bring_about(play_of(begun.folder.path, request, environment), begun.watch.stage, stages=(DISCONNECT,))
    return _published(begun, with_hosts(begun.summary(), begun.folder.path))


def hosts_status(request: Request, environment: Environment) -> HostsStatus:
    """Returns what hosts and targets say of themselves. Changes nothing.

    Raises:
        IntentError, PlanError: the inventory or the plan is wrong; nobody was contacted.
    """
    begun = _begin("hosts status", request, environment)
    path = begun.folder.path
    reports, why = read_hosts(play_of(path, request, environment), begun.watch.stage)
    with begun.watch.stage("check"):
        findings = judge_hosts(load_intents(path), reports, why, {})
    summary = _published(begun, with_hosts(begun.summary(), path, findings, unread=why))
    return HostsStatus(summary, tuple(reports.values()))


def _begin(verb: str, request: Request, environment: Environment, *, role: str = "") -> _Begun:
    """Returns a new run on hosts; raises where none of that role is left."""
    watch = Stopwatch(environment.clock)
    loaded = load_intent(request, environment, watch)
    with watch.stage("plan"):
        plan = plan_of(loaded, replace(request, hosts=True))
        intents = intents_of(loaded, plan)
    if not any(role in {"", one.role} for one in intents):
        what = f"no managed {role or 'host or target'} is left"
        raise PlanError(what, remedy="Check fabric_managed and --limit.")
    now_s = environment.clock.unix_s()
    folder = RunFolder.create(request.runs, verb.replace(" ", "-"), now_s)
    folder.write("fabric", loaded.fabric)
    sources = tuple(str(source) for source in request.sources)
    folder.write("plan", PlanDocument(__version__, loaded.fabric.name, now_s, sources, plan.only(())))
    folder.write("push", PushDocument(()))
    write_intents(folder.path, intents)
    return _Begun(verb, request, environment, watch, folder, loaded.fabric, loaded.selected)


def _performed(begun: _Begun, stages: Sequence[Stage]) -> Summary:
    path, request = begun.folder.path, begun.request
    bring_about(play_of(path, request, begun.environment, check=request.dry_run), begun.watch.stage, stages=stages)
    findings: tuple[Finding, ...] = ()
    if not request.dry_run:
        reports, why = read_hosts(play_of(path, request, begun.environment), begun.watch.stage)
        with begun.watch.stage("check"):
            findings = judge_hosts(load_intents(path), reports, why, {})
    return _published(begun, with_hosts(begun.summary(), path, findings))


def _published(begun: _Begun, summary: Summary) -> Summary:
    return publish(begun.folder, replace(summary, timings=begun.watch.timings), begun.environment)
