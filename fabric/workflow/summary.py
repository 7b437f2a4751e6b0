"""What a run came to. The same for the command line, Ansible and CI."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fabric.plan.model import Note
from fabric.report import Section, Timing
from fabric.state import DeviceResult, Finding

__all__ = ("Summary", "Verdict")


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
