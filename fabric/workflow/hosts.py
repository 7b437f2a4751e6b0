"""What a run keeps about hosts: the documents in RUN/hosts, written by whoever works on a host, read by all after it.

`fabricctl` and plain `ansible-playbook` write the same files, and neither tells the other anything else. Nothing here
reaches a host. `run` is the run folder itself, `Path("runs/20261129-171122-provision")`; no document holds a secret.

| file in RUN/hosts | written by | read by |
|---|---|---|
| intents.json | `make_intents`, once, before any host is contacted | `load_intent`, `load_intents` |
| expected.json | `expect`, when a saved plan is applied | `record_change` |
| back.json | `prepare_back`, when a run is taken back | `changes_of` |
| HOST-PART.json | `record_change`, before the change is performed | `load_change`, `changes_of` |
| HOST-PART-result.json | `record_result` | `results_of` |
| HOST-report.json | `record_report` | `reports_of` |

One part of one host, as the playbooks' plug-in does it (with `fabric.host.change`):

    intent = load_intent(run, host)          # None: the host is not of this run: skip it, do not contact it
    change = design_part(part, intent, executor, new_uuid=...)
    check mode:
        record_result(run, part, part_result(change, Outcome.UNCHANGED))     # `changes` and `diff` say what would be
    nothing to do (`change.forward` is empty):
        record_result(run, part, part_result(change, Outcome.UNCHANGED))
    else:
        record_change(run, change, disruptive=...)     # raises when it must not be performed: then
                                                       # record_result(run, part, part_result(change, REFUSED, error))
        apply_part(change, executor, redesign=..., clock=...)
        record_result(run, part, part_result(change, Outcome.COMMITTED))     # or ROLLED_BACK, ROLLBACK_FAILED + error
    a host that could not be read or designed for:
        record_result(run, part, failed_result(host, error))                 # FAILED: never touched
    the way back (`back`, a run made by `prepare_back`):
        change = load_change(run, host, part)          # None: nothing to take back
        revert_part(change, executor)                  # unless others changed the same since: REFUSED + error
        record_result(run, part, back_result(change, Outcome.COMMITTED))     # or UNCHANGED, ROLLBACK_FAILED + error
    each ends with
        return task_result(result)                     # Ansible's: changed, failed, msg, diff

Order of a run: targets' nic, targets' target, hosts' nic, hosts' connect; back in the opposite order.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from fabric.errors import DriftError, FabricError, HostError, Problem
from fabric.host.change import HostIntent, Part, PartChange, change_from_json, change_to_json
from fabric.host.intents import host_intent
from fabric.host.nvme.identity import HOSTID_PATH
from fabric.host.report import HostReport
from fabric.host.units import AGENT_PATH
from fabric.intent import Fabric, Loaded
from fabric.plan.model import FabricPlan, HostPlan
from fabric.state import DeviceResult, Outcome
from fabric.units import natural_key
from fabric.workflow.difftext import inverted
from fabric.workflow.runfolder import read_data, read_document, write_data, write_document

__all__ = (
    "LINUX",
    "TOUCHED",
    "HostIntents",
    "back_result",
    "changes_of",
    "expect",
    "failed_result",
    "hold_previews",
    "hosts_of",
    "intents_of",
    "load_change",
    "load_intent",
    "load_intents",
    "make_intents",
    "managed_plans",
    "notes_of_change",
    "origin_of",
    "part_result",
    "prepare_back",
    "record_change",
    "record_report",
    "record_result",
    "reports_of",
    "results_of",
    "task_result",
    "write_intents",
)

LINUX: Final = "linux"
TOUCHED: Final = frozenset({Outcome.COMMITTED, Outcome.UNCERTAIN, Outcome.ROLLBACK_FAILED})
"""Ends at which something of a change stands on the device, or may stand there."""

_FOLDER: Final = "hosts"
_AGENT: Final = re.compile(rf"(?m)^--- \S+\n\+\+\+ {re.escape(AGENT_PATH)}\n@@ .* @@(\n|\Z)")
_DRAWN: Final = re.compile(rf"(?m)^--- /dev/null\n\+\+\+ {re.escape(HOSTID_PATH)}\n@@ .* @@\n\+([0-9a-f-]{{36}})$")
_WAY_BACK: Final = (("host", Part.CONNECT), ("host", Part.NIC), ("target", Part.TARGET), ("target", Part.NIC))


@dataclass(frozen=True, slots=True)
class HostIntents:
    """What each host of a run shall be; hosts and targets that are not managed, or not in the limit, are absent."""

    intents: tuple[HostIntent, ...]


@dataclass(frozen=True, slots=True)
class _Expected:
    """What was reviewed: host → part → diff."""

    diffs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Back:
    """Marks a run that takes another one back; `of` is the one that made the changes."""

    of: str


def managed_plans(fabric: Fabric, plan: FabricPlan, selected: Sequence[str]) -> tuple[HostPlan, ...]:
    """Returns the plans of the hosts and targets that may be contacted: managed, and left by the limit."""
    foreign = {one.name for one in fabric.hosts if not one.managed}
    foreign |= {one.name for one in fabric.targets if not one.managed}
    chosen = frozenset(selected)
    return tuple(one for one in plan.hosts if one.host in chosen and one.host not in foreign)


def intents_of(loaded: Loaded, plan: FabricPlan) -> tuple[HostIntent, ...]:
    """Returns what each managed, selected host and target shall be.

    Raises:
        PlanError: a host connects to what no target publishes, or cannot reach it.
    """
    return tuple(host_intent(loaded.fabric, one) for one in managed_plans(loaded.fabric, plan, loaded.selected))


def make_intents(run: Path, loaded: Loaded, plan: FabricPlan) -> tuple[str, ...]:
    """Writes what each managed, selected host and target shall be; returns their names.

    Raises:
        PlanError: as `intents_of`.
        EnvironmentMissingError: the folder cannot be written.
    """
    return write_intents(run, intents_of(loaded, plan))


def write_intents(run: Path, intents: Sequence[HostIntent]) -> tuple[str, ...]:
    """Writes what each host of the run shall be; returns their names."""
    write_document(_place(run, "intents"), HostIntents(tuple(intents)))
    return tuple(one.host for one in intents)


def load_intents(run: Path) -> tuple[HostIntent, ...]:
    """Returns what each host of the run shall be, () for a run without hosts."""
    place = _place(run, "intents", make=False)
    return read_document(place, HostIntents).intents if place.exists() else ()


def load_intent(run: Path, host: str) -> HostIntent | None:
    """Returns what `host` shall be, or None: it is not of this run and must not be contacted.

    Raises:
        FabricError: the run has no intents.
    """
    found = read_document(_place(run, "intents", make=False), HostIntents).intents
    return next((one for one in found if one.host == host), None)


def hosts_of(run: Path, role: str = "") -> tuple[str, ...]:
    """Returns the names of the run's hosts, of one role (`host`, `target`) or of both."""
    return tuple(one.host for one in load_intents(run) if role in ("", one.role))


def expect(run: Path, reviewed: Mapping[str, Mapping[str, str]]) -> None:
    """Writes the diffs that were reviewed, host → part → diff; from now on `record_change` holds every part to them."""
    write_document(_place(run, "expected"), _Expected(reviewed))


def record_change(run: Path, change: PartChange, *, disruptive: bool) -> None:
    """Writes a change that is about to be performed.

    Args:
        run: the run folder.
        change: what will be done; the way back starts from this file.
        disruptive: changes that interrupt traffic may be performed.

    Raises:
        DriftError: a saved plan is applied, and the host now needs something else than was reviewed.
        HostError: it interrupts traffic and that was not allowed, or this run has changed this part already.
        EnvironmentMissingError: the folder cannot be written: nothing may be performed.
    """
    _hold_to_review(run, change.host, change.part, change.diff)
    if change.disruptive and not disruptive:
        raise HostError(
            f"this interrupts traffic: {'; '.join(change.disruptive)}",
            where=change.host,
            remedy="Allow it with --disruptive (playbooks: -e disruptive=true).",
        )
    place = _place(run, f"{change.host}-{change.part.value}")
    if place.exists() and (load_change(run, change.host, change.part) or change) != change:
        raise HostError(
            "this run has changed this part already, and its way back would be lost",
            where=change.host,
            found=str(place),
            remedy="Start a new run, or take this one back.",
        )
    write_data(place, PartChange.__name__, change_to_json(change))


def load_change(run: Path, host: str, part: Part) -> PartChange | None:
    """Returns the change of one part as it was written before it was performed, None when there is none."""
    place = _place(run, f"{host}-{part.value}", make=False)
    return change_from_json(read_data(place, PartChange.__name__)) if place.exists() else None


def changes_of(run: Path) -> tuple[PartChange, ...]:
    """Returns what stands on hosts of the run, or may stand there, in the order of the way back.

    A change without a result counts: the run was killed while it was performed.
    """
    return tuple(_standing(run))


def prepare_back(past: Path, run: Path, *, left_out: Collection[str] = ()) -> tuple[str, ...]:
    """Copies what `past` left on hosts, and their intents, into the folder of a run that takes it back.

    Args:
        past: the run folder.
        run: of the new run.
        left_out: hosts that must not be contacted.

    Returns:
        The hosts concerned; () when there is nothing to take back.
    """
    changes = tuple(one for one in changes_of(past) if one.host not in left_out)
    names = dict.fromkeys(one.host for one in changes)
    intents = tuple(one for one in load_intents(past) if one.host in names)
    write_document(_place(run, "intents"), HostIntents(intents))
    write_document(_place(run, "back"), _Back(origin_of(past)))
    for one in changes:
        write_data(_place(run, f"{one.host}-{one.part.value}"), PartChange.__name__, change_to_json(one))
    return tuple(one.host for one in intents)


def origin_of(run: Path) -> str:
    """Returns the name of the run that made the changes of this one: of one that takes another back, that other."""
    return read_document(_place(run, "back", make=False), _Back).of if _is_back(run) else run.absolute().name


def record_result(run: Path, part: Part, result: DeviceResult) -> None:
    """Writes how one part of `result.device` ended.

    A part that this run has changed, or was killed while it did, and that now needs nothing stays one that it changed.
    A run that takes another one back begins with the change, so that there it says nothing.
    """
    place = _place(run, f"{result.device}-{part.value}-result")
    if result.outcome is Outcome.UNCHANGED and not _is_back(run):
        change = load_change(run, result.device, part)
        before = read_document(place, DeviceResult) if place.exists() else None
        if before is not None and before.outcome in TOUCHED:
            return
        if before is None and change is not None and change.forward:
            result = part_result(change, Outcome.COMMITTED)
    write_document(place, result)


def record_report(run: Path, report: HostReport) -> None:
    """Writes what a host showed after the run."""
    write_document(_place(run, f"{report.host}-report"), report)


def results_of(run: Path) -> dict[tuple[str, Part], DeviceResult]:
    """Returns how each part ended, by host and part, in the order of the intents."""
    found: dict[tuple[str, Part], DeviceResult] = {}
    for host in hosts_of(run):
        for part in Part:
            place = _place(run, f"{host}-{part.value}-result", make=False)
            if place.exists():
                found[host, part] = read_document(place, DeviceResult)
    return found


def reports_of(run: Path) -> dict[str, HostReport]:
    """Returns what each host showed, by host; a host that was not read is absent."""
    places = {host: _place(run, f"{host}-report", make=False) for host in hosts_of(run)}
    return {host: read_document(place, HostReport) for host, place in places.items() if place.exists()}


def part_result(change: PartChange, outcome: Outcome, error: FabricError | None = None) -> DeviceResult:
    """Returns the result of one part."""
    return DeviceResult(
        device=change.host,
        nos=LINUX,
        outcome=outcome,
        changes=len(change.forward),
        diff=change.diff,
        error=_said(error) if error else "",
        remedy=error.remedy if error else "",
        disruptive=bool(change.disruptive),
        notes=notes_of_change(change),
    )


def back_result(change: PartChange, outcome: Outcome, error: FabricError | None = None) -> DeviceResult:
    """Returns the result of taking one part back; its diff is that of the way back."""
    result = part_result(change, outcome, error)
    return replace(result, changes=len(change.backward), diff=inverted(change.diff))


def notes_of_change(change: PartChange) -> tuple[tuple[str, str], ...]:
    """Returns (code, text) of what a reader must know: what interrupts, has no way back, or nobody has seen work."""
    said = (
        ("interrupts-traffic", change.disruptive),
        ("cannot-be-restored", change.cannot_restore),
        ("unconfirmed-fact", change.unconfirmed),
    )
    return tuple((code, f"{change.part.value}: {'; '.join(texts)}") for code, texts in said if texts)


def failed_result(host: str, error: FabricError) -> DeviceResult:
    """Returns the result of a part of a host that could not be read or designed for: it was not touched."""
    return DeviceResult(host, LINUX, Outcome.FAILED, error=_said(error), remedy=error.remedy)


def task_result(result: DeviceResult) -> dict[str, object]:
    """Returns Ansible's result of a task: `changed` also for what a check mode found to do."""
    good = result.outcome in {Outcome.COMMITTED, Outcome.UNCHANGED}
    said = " ".join(part for part in (result.error and f"{result.error}.", result.remedy) if part)
    return {
        "changed": good and result.changes > 0,
        "failed": not good,
        "msg": said or (f"{result.outcome.value}, {result.changes} changes"),
        "diff": result.diff,
    }


def hold_previews(run: Path) -> None:
    """Makes what a check mode found REFUSED where a saved plan is applied and has another change: a dry run tells."""
    for (host, part), result in results_of(run).items():
        try:
            _hold_to_review(run, host, part, result.diff)
        except DriftError as error:
            if result.outcome is Outcome.UNCHANGED and result.changes:
                told = replace(result, outcome=Outcome.REFUSED, error=_said(error), remedy=error.remedy)
                record_result(run, part, told)


def _hold_to_review(run: Path, host: str, part: Part, diff: str) -> None:
    place = _place(run, "expected", make=False)
    if not place.exists():
        return
    reviewed = read_document(place, _Expected).diffs.get(host, {}).get(part.value)
    if reviewed is None:
        what = f"the saved plan has no change for the {part.value} part: it could not be made then"
        raise DriftError(what, where=host, remedy="Make a new plan.")
    now, then = _comparable(diff), _comparable(reviewed)
    if now != then:
        raise DriftError(
            f"the {part.value} part of the host now needs other changes than the saved plan has",
            where=host,
            found=_first_other(now, then),
            remedy="Make a new plan.",
        )


def _comparable(diff: str) -> str:
    """Returns a diff without what comes out otherwise by itself.

    The first part brings the agent for all, and an identity is drawn anew for each design until the host has one.
    """
    drawn = _DRAWN.search(diff)
    return _AGENT.sub("", diff.replace(drawn[1], "(drawn)") if drawn else diff).rstrip("\n")


def _first_other(now: str, reviewed: str) -> str:
    """Returns the first line of either that the other lacks."""
    ours, theirs = now.splitlines(), reviewed.splitlines()
    other = [one for one in ours if one not in theirs] + [one for one in theirs if one not in ours]
    return other[0] if other else "the same lines in another order"


def _standing(run: Path) -> Iterator[PartChange]:
    results = results_of(run)
    roles = {one.host: one.role for one in load_intents(run)}
    # what was not taken back stands still, for whatever reason
    touched = frozenset(Outcome) - {Outcome.COMMITTED, Outcome.UNCHANGED} if _is_back(run) else TOUCHED
    for role, part in _WAY_BACK:
        for host in sorted((one for one in roles if roles[one] == role), key=natural_key):
            change = load_change(run, host, part)
            result = results.get((host, part))
            if change is not None and change.forward and (result is None or result.outcome in touched):
                yield change


def _is_back(run: Path) -> bool:
    """Whether this run takes another one back."""
    return _place(run, "back", make=False).exists()


def _place(run: Path, stem: str, *, make: bool = True) -> Path:
    folder = run / _FOLDER
    if make:
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{stem}.json"


def _said(error: FabricError) -> str:
    return str(Problem(what=error.what, found=error.found, expected=error.expected))
