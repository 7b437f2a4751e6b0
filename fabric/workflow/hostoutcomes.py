"""From the documents of RUN/hosts to what the report says of each host: one result, notes, and why one was not read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fabric.host.change import Part
from fabric.plan.model import Note
from fabric.state import DeviceResult, Outcome
from fabric.workflow.hosts import LINUX, load_change, load_intents, notes_of_change, reports_of, results_of

__all__ = (
    "PartPreview",
    "failed_ends",
    "host_notes",
    "host_results",
    "previews",
    "unread_results",
    "was_contacted",
    "why_not_hosts",
)

_WORST_FIRST: Final = (
    Outcome.ROLLBACK_FAILED,
    Outcome.UNCERTAIN,
    Outcome.FAILED,
    Outcome.ROLLED_BACK,
    Outcome.REFUSED,
    Outcome.COMMITTED,
    Outcome.UNCHANGED,
)
_WELL: Final = frozenset({Outcome.UNCHANGED, Outcome.COMMITTED})


@dataclass(frozen=True, slots=True)
class PartPreview:
    """What a check mode said of one part of one host."""

    host: str
    part: Part
    changes: int
    diff: str


def host_results(run: Path) -> tuple[DeviceResult, ...]:
    """Returns one result a host, made of those of its parts: the worst end, and what each part says."""
    found: dict[str, dict[Part, DeviceResult]] = {}
    for (host, part), result in results_of(run).items():
        found.setdefault(host, {})[part] = result
    return tuple(_merged(host, parts) for host, parts in found.items())


def failed_ends(run: Path, parts: Iterable[Part] = Part) -> frozenset[str]:
    """Returns the hosts with a part, of these, that did not end well."""
    wanted = frozenset(parts)
    results = results_of(run).items()
    return frozenset(host for (host, part), one in results if part in wanted and one.outcome not in _WELL)


def previews(run: Path) -> tuple[PartPreview, ...]:
    """Returns what a check mode found, part by part; a part that failed has none."""
    results = results_of(run).items()
    return tuple(
        PartPreview(host, part, one.changes, one.diff)
        for (host, part), one in results
        if one.outcome is Outcome.UNCHANGED
    )


def host_notes(run: Path) -> tuple[tuple[str, Note], ...]:
    """Returns what a reader must know of the changes, those that a check mode found too."""
    notes: list[tuple[str, Note]] = []
    results = results_of(run)
    for intent in load_intents(run):
        for part in Part:
            change, result = load_change(run, intent.host, part), results.get((intent.host, part))
            said = notes_of_change(change) if change is not None else result.notes if result is not None else ()
            notes += [(intent.host, Note(code, text)) for code, text in said]
    return tuple(notes)


def why_not_hosts(switches: Sequence[DeviceResult]) -> str:
    """Returns why no host may be touched, "" when every switch ended well."""
    bad = [f"{one.device} {one.outcome.value}" for one in switches if one.outcome not in _WELL]
    return f"not touched, since switches did not end well: {', '.join(bad)}" if bad else ""


def unread_results(why: Mapping[str, str]) -> tuple[DeviceResult, ...]:
    """Returns FAILED for each host that could not be read."""
    return tuple(DeviceResult(host, LINUX, Outcome.FAILED, error=text) for host, text in why.items())


def was_contacted(run: Path, host: str) -> bool:
    """Returns whether anybody tried to reach the host in this run."""
    ends = [one.outcome for (name, _), one in results_of(run).items() if name == host]
    return host in reports_of(run) or any(end is not Outcome.REFUSED for end in ends)


def _merged(host: str, parts: Mapping[Part, DeviceResult]) -> DeviceResult:
    outcome = next(one for one in _WORST_FIRST if one in {part.outcome for part in parts.values()})
    errors: dict[str, list[str]] = {}
    for part, one in parts.items():
        if one.error:
            errors.setdefault(one.error, []).append(part.value)
    said = [text if len(names) == len(parts) else f"{', '.join(names)}: {text}" for text, names in errors.items()]
    stands = [part.value for part, one in parts.items() if one.outcome is Outcome.COMMITTED]
    if stands and outcome is not Outcome.COMMITTED:
        said.append(f"committed, and stays: {', '.join(stands)}")
    return replace(
        DeviceResult(host, LINUX, outcome),
        changes=sum(one.changes for one in parts.values()),
        diff="\n".join(f"@@ {part.value} @@\n{one.diff.rstrip()}" for part, one in parts.items() if one.diff),
        error="; ".join(said),
        remedy="; ".join(dict.fromkeys(one.remedy.rstrip(".") for one in parts.values() if one.remedy)),
        disruptive=any(one.disruptive for one in parts.values()),
        steps=tuple(step for one in parts.values() for step in one.steps),
    )
