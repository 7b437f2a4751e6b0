"""The verbs as the playbooks' action plug-in calls them: plain dictionaries in and out, no Ansible import."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from fabric.errors import FabricError
from fabric.intent import VaultOptions
from fabric.registry import nearest
from fabric.serial import Json, to_json
from fabric.workflow.environment import Environment
from fabric.workflow.publishing import sentence
from fabric.workflow.request import DEFAULT_CONFIRM_S, Request
from fabric.workflow.rollback import rollback
from fabric.workflow.summary import Summary, Verdict
from fabric.workflow.verbs import check, plan, provision

__all__ = ("ansible_entry",)

_Options = Mapping[str, object]
_OPTIONS: Final = (
    "adopt",
    "confirm_s",
    "disruptive",
    "extra_vars",
    "force",
    "limit",
    "live",
    "run",
    "runs",
    "vault_secrets",
    "workers",
)


def ansible_entry(
    verb: str, sources: Sequence[str], *, check_mode: bool, options: Mapping[str, object]
) -> dict[str, object]:
    """Returns Ansible's result of a verb: `changed`, `failed`, `msg`, `diff` and the whole `summary`.

    Args:
        verb: `check`, `provision` or `rollback`. Check mode makes `provision` a `plan`.
        sources: inventory sources of the play.
        check_mode: nothing may change.
        options: the task's arguments, and `limit`, `vault_secrets`, `extra_vars` of the play.
    """
    try:
        _known(verb, options)
        return _result(_VERBS[verb](_request(sources, options), Environment(), options, check_mode))
    except FabricError as error:
        return {"changed": False, "failed": True, "msg": str(error)}


def _check(request: Request, environment: Environment, options: _Options, check_mode: bool) -> Summary:
    del check_mode  # checking changes nothing anyhow
    return check(request, environment, live=bool(options.get("live", False)))


def _provision(request: Request, environment: Environment, options: _Options, check_mode: bool) -> Summary:
    del options
    return plan(request, environment)[0] if check_mode else provision(request, environment)


def _rollback(request: Request, environment: Environment, options: _Options, check_mode: bool) -> Summary:
    run = str(options.get("run") or "")
    if not run:
        raise FabricError("rollback needs the run folder", remedy="Name it: -e run=runs/20261129-171122-provision")
    if check_mode:
        raise FabricError("rollback has no check mode", remedy="Look at the run's report instead.")
    return rollback(Path(run), request, environment)


_VERBS: Final[Mapping[str, Callable[[Request, Environment, _Options, bool], Summary]]] = {
    "check": _check,
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
        force=bool(options.get("force", False)),
        confirm_s=_number(options, "confirm_s", DEFAULT_CONFIRM_S, range(10, 86400)),
        workers=_number(options, "workers", 8, range(1, 257)),
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
        "failed": summary.verdict is not Verdict.OK,
        "msg": f"{sentence(summary)}; report: {summary.run_folder}/report.html",
        "diff": "\n".join(f"{one.device}\n{one.diff}" for one in summary.devices if one.diff),
        "summary": to_json(summary),
    }
