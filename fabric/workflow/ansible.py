"""The verbs as the playbooks' action plug-in calls them: plain dictionaries in and out, no Ansible import."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from fabric._version import __version__
from fabric.errors import FabricError, PlanError
from fabric.intent import Loaded, VaultOptions
from fabric.plan.model import FabricPlan
from fabric.registry import nearest
from fabric.remote.ansible import PlaybookRun
from fabric.serial import Json, to_json
from fabric.workflow.budget import parse_budget
from fabric.workflow.concluding import conclude
from fabric.workflow.environment import Environment
from fabric.workflow.hosting import no_longer_managed
from fabric.workflow.hostoutcomes import why_not_hosts
from fabric.workflow.hosts import (
    TOUCHED,
    changes_of,
    load_intents,
    make_intents,
    prepare_back,
    record_report,
    reports_of,
)
from fabric.workflow.past import ends_of, plan_of_run
from fabric.workflow.planning import PlanDocument, load_intent, plan_of
from fabric.workflow.publishing import sentence
from fabric.workflow.request import DEFAULT_CONFIRM_S, Request
from fabric.workflow.rollback import rollback
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.summary import Summary, Verdict
from fabric.workflow.verbs import check, plan, provision

__all__ = ("ansible_entry",)

_Options = Mapping[str, object]
_OPTIONS: Final = (
    "adopt",
    "confirm_s",
    "disruptive",
    "extra_vars",
    "failure_budget",
    "force",
    "install",
    "limit",
    "live",
    "run",
    "runs",
    "strict",
    "vault_secrets",
    "workers",
)


def ansible_entry(
    verb: str, sources: Sequence[str], *, check_mode: bool, options: Mapping[str, object]
) -> dict[str, object]:
    """Returns Ansible's result of a verb: `changed`, `failed`, `msg`, `diff`, the whole `summary`, and the run folder.

    Args:
        verb: one of the verbs of `playbooks/library/fabricctl.py`. Check mode makes `provision` a `plan`.
        sources: inventory sources of the play.
        check_mode: nothing may change.
        options: the task's arguments, and `limit`, `vault_secrets`, `extra_vars` of the play.
    """
    try:
        _known(verb, options)
        return _VERBS[verb](_request(sources, options), Environment(), options, check_mode)
    except FabricError as error:
        return {"changed": False, "failed": True, "msg": str(error)}


def _check(request: Request, environment: Environment, options: _Options, check_mode: bool) -> dict[str, object]:
    del check_mode  # checking changes nothing anyhow
    if not options.get("live", False):
        return _result(check(request, environment))
    if not options.get("run"):
        return _result(check(request, environment, live=True))
    reading = replace(environment, runner=_AlreadyRead(_run(options, "check")))
    return _result(check(replace(request, hosts=True), reading, live=True))


@dataclass(frozen=True, slots=True)
class _AlreadyRead:
    """Stands for the playbook that reads hosts: the plays before this task did it, into `run`."""

    run: Path

    def __call__(
        self, playbook: Path, *, extra_vars: Mapping[str, Json] | None = None, **others: object
    ) -> PlaybookRun:
        del playbook, others
        for report in reports_of(self.run).values():
            record_report(Path(str((extra_vars or {})["run"])), report)
        return PlaybookRun("successful", 0, (), is_changed=False)


def _provision(request: Request, environment: Environment, options: _Options, check_mode: bool) -> dict[str, object]:
    del options
    try:
        summary = plan(request, environment)[0] if check_mode else provision(request, environment)
    except PlanError:
        if folder := _without_switches(request, environment):
            return _made(folder, "no switch is in the limit")
        raise
    answer = _result(summary)
    stopped = why_not_hosts(summary.devices)
    # findings alone do not stop the hosts: they are judged when all is done
    answer["failed"] = bool(stopped or summary.unwritten)
    if stopped:
        answer["msg"] = f"{answer['msg']}; no host and no target is touched"
    return answer


def _without_switches(request: Request, environment: Environment) -> Path | None:
    """Returns the run folder of a run on hosts alone, None where switches are wanted or no host is managed."""
    wanted = replace(request, hosts=True)
    watch = Stopwatch(environment.clock)
    loaded = load_intent(wanted, environment, watch)
    plan = plan_of(loaded, wanted)
    return None if plan.switches else _host_run(loaded, plan, request, environment)


def _rollback(request: Request, environment: Environment, options: _Options, check_mode: bool) -> dict[str, object]:
    run = _run(options, "rollback")
    if load_intents(run) and not _touched_switches(run, environment):
        return _made(run, "the run changed no switch")
    return _result(rollback(run, replace(request, dry_run=check_mode), environment))


def _touched_switches(run: Path, environment: Environment) -> bool:
    ends = ends_of(run, plan_of_run(run), environment.state_dir)
    return any(end in TOUCHED for end in ends.values())


def _intents(request: Request, environment: Environment, options: _Options, check_mode: bool) -> dict[str, object]:
    del check_mode  # a run folder is made in check mode too: what would be changed is told there
    run = Path(str(options["run"])) if options.get("run") else None
    if run is not None and (run / "hosts" / "intents.json").is_file():
        return _made(run, "")
    if run is not None and not run.is_dir():
        raise FabricError(f"there is no run folder {run}", remedy="Leave -e run=… away to make a new one.")
    wanted = replace(request, hosts=True)
    watch = Stopwatch(environment.clock)
    loaded = load_intent(wanted, environment, watch)
    plan = plan_of(loaded, wanted)
    if run is None:
        return _made(_host_run(loaded, plan, request, environment), "")
    make_intents(run, loaded, plan)
    return _made(run, "")


def _host_run(loaded: Loaded, plan: FabricPlan, request: Request, environment: Environment) -> Path:
    """Returns a new run folder as a run on the switches leaves it, only that it concerned no switch."""
    folder = RunFolder.create(request.runs, "hosts", environment.clock.unix_s())
    fabric, sources = loaded.fabric, tuple(str(source) for source in request.sources)
    folder.write("fabric", fabric)
    alone = plan.only(())
    folder.write("plan", PlanDocument(__version__, fabric.name, environment.clock.unix_s(), sources, alone))
    folder.write("summary", Summary("hosts", fabric.name, Verdict.OK, run_folder=str(folder.path)))
    make_intents(folder.path, loaded, plan)
    return folder.path


def _conclude(request: Request, environment: Environment, options: _Options, check_mode: bool) -> dict[str, object]:
    del check_mode  # it changes nothing anyhow
    answer = _result(conclude(_run(options, "conclude"), request, environment))
    return {**answer, "changed": False, "diff": ""}  # the tasks before told theirs


def _back(request: Request, environment: Environment, options: _Options, check_mode: bool) -> dict[str, object]:
    del check_mode
    past = _run(options, "back")
    loaded = load_intent(request, environment, Stopwatch(environment.clock))
    left_out = no_longer_managed(loaded.fabric, dict.fromkeys(one.host for one in changes_of(past)))
    folder = RunFolder.create(request.runs, "back", environment.clock.unix_s())
    names = prepare_back(past, folder.path, left_out=left_out)
    said = f"to take back on {', '.join(names)}" if names else "no host or target to take back"
    return {
        **_made(folder.path, said),
        "warnings": [f"{host} is left as it is: {why}" for host, why in left_out.items()],
    }


def _run(options: _Options, verb: str) -> Path:
    run = str(options.get("run") or "")
    if not run:
        raise FabricError(f"{verb} needs the run folder", remedy="Name it: -e run=runs/20261129-171122-provision")
    return Path(run)


def _made(run: Path, msg: str) -> dict[str, object]:
    return {"changed": False, "failed": False, "msg": msg or f"run folder {run}", "run": str(run.absolute())}


_VERBS: Final[Mapping[str, Callable[[Request, Environment, _Options, bool], dict[str, object]]]] = {
    "back": _back,
    "check": _check,
    "conclude": _conclude,
    "intents": _intents,
    "provision": _provision,
    "rollback": _rollback,
}


def _known(verb: str, options: _Options) -> None:
    if verb not in _VERBS:
        raise FabricError(f"no such verb: {verb!r}", expected=", ".join(_VERBS))
    for name in options:
        if name not in _OPTIONS:
            close = nearest(name, _OPTIONS)
            raise FabricError(
                f"the action has no option {name!r}",
                expected=", ".join(_OPTIONS),
                remedy=f"Did you mean {close!r}?" if close else "",
            )


def _request(sources: Sequence[str], options: _Options) -> Request:
    secrets = cast("Sequence[tuple[str, bytes]]", options.get("vault_secrets") or ())
    return Request(
        sources=tuple(Path(source) for source in sources),
        limit=str(options.get("limit") or ""),
        vault=VaultOptions(secrets=tuple(secrets)) if secrets else None,
        runs=Path(str(options.get("runs") or "runs")),
        extra_vars=cast("Mapping[str, Json]", options.get("extra_vars") or {}),
        adopt=bool(options.get("adopt", False)),
        disruptive=bool(options.get("disruptive", False)),
        install=bool(options.get("install", False)),
        force=bool(options.get("force", False)),
        strict=bool(options.get("strict", False)),
        confirm_s=_number(options, "confirm_s", DEFAULT_CONFIRM_S, range(10, 86400)),
        workers=_number(options, "workers", 8, range(1, 257)),
        failure_budget=parse_budget(str(options.get("failure_budget") or "")),
    )


def _number(options: _Options, name: str, default: int, allowed: range) -> int:
    text = str(options.get(name, default))
    if not text.isdecimal() or int(text) not in allowed:
        raise FabricError(
            f"the option {name} is out of range", found=text, expected=f"{allowed.start} … {allowed.stop - 1}"
        )
    return int(text)


def _result(summary: Summary) -> dict[str, object]:
    return {
        "changed": summary.changed,
        "failed": summary.verdict is not Verdict.OK or bool(summary.unwritten),
        "msg": "; ".join((sentence(summary), *summary.unwritten, f"report: {summary.run_folder}/report.html")),
        "diff": "\n".join(f"{one.device}\n{one.diff}" for one in summary.devices if one.diff),
        "summary": to_json(summary),
        "run": str(Path(summary.run_folder).absolute()),
    }
