"""What a run came to. The same for the command line, Ansible and CI."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fabric.plan.model import Note
from fabric.report import Section, Timing
from fabric.state import DeviceResult, Finding, Outcome

__all__ = ("KEPT_NEEDED", "KEPT_THEIRS", "LOOKING", "Summary", "Verdict", "how_it_ended", "is_kept")

KEPT_THEIRS: Final = "kept-theirs"
"""Code of a note: what a run changed there was changed by others since, and stays theirs."""

KEPT_NEEDED: Final = "kept-needed"
"""Code of a note: it is as the run left it, and stays, since what others put there needs it."""

LOOKING: Final = frozenset({"plan", "rehearse", "rehearse-rollback", "hosts plan"})
"""Verbs that change nothing and show what would."""

_BACK: Final = frozenset({"rollback", "rehearse-rollback"})


class Verdict(StrEnum):
    """How a run ended."""

    OK = "ok"
    FINDINGS = "findings"  # a rule failed or could not be judged, or something was held back
    FAILED = "failed"  # a device did not do what was asked


@dataclass(frozen=True, slots=True)
class Summary:
    """One run.

    Attributes:
        verb: `check`, `plan`, `provision`, `rollback`, `hosts apply`, ….
        devices: one result a switch or host that was, or would be, changed.
        findings: what the rules said, PASS included.
        notes: what a reader must know, by device ("" for the fabric).
        changed: whether any device differs, or differed, from the intent.
        roles: device → leaf, spine, …; host or target for the hosts of the run.
        contacted: hosts and targets that the run tried to reach.
        counted: counters of switches were read and judged.
        run_folder: where the JSON of every stage lies, "" when none was written.
        said: what happened, one sentence; "" where it follows from the rest.
        limits: what it is no evidence for; () likewise.
        sections: what the verb shows itself in a report.
        unwritten: files of the run folder that could not be written after devices may have changed, and why.
    """

    verb: str
    fabric: str
    verdict: Verdict
    devices: tuple[DeviceResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[tuple[str, Note], ...] = ()
    changed: bool = False
    lossless: bool = True
    roles: Mapping[str, str] = field(default_factory=dict)
    run_folder: str = ""
    contacted: tuple[str, ...] = ()
    counted: bool = False
    timings: tuple[Timing, ...] = ()
    said: str = ""
    limits: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    unwritten: tuple[str, ...] = ()


def is_kept(note: Note) -> bool:
    """Returns whether the note says that a rollback left something."""
    return note.code in {KEPT_THEIRS, KEPT_NEEDED}


def how_it_ended(summary: Summary, one: DeviceResult) -> str:
    """Returns how a device or host of the run ended, in a word or two."""
    would_change = summary.verb in LOOKING and one.outcome is Outcome.UNCHANGED and one.changes > 0
    if summary.verb not in _BACK or one.outcome not in {Outcome.UNCHANGED, Outcome.COMMITTED}:
        return "to change" if would_change else one.outcome.value
    keeps = any(device == one.device and is_kept(note) for device, note in summary.notes)
    if would_change:
        return "to restore in part" if keeps else "to restore"
    if one.outcome is Outcome.COMMITTED:
        return "partly restored" if keeps else "restored"
    return "kept" if keeps else "nothing to do"
