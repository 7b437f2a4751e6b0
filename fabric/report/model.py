"""What a run did, whole: the document that every report is made from. Knows no format.

The JSON form of `RunDocument` is the truth; HTML, JUnit and SARIF hold nothing that it does not. It carries diffs of
owned sections, never a full configuration and never a secret.
"""

from dataclasses import dataclass

from fabric.plan.model import Note
from fabric.state import DeviceResult, Finding, Severity, Status

__all__ = ("SCHEMA_VERSION", "DeviceReport", "RuleInfo", "RunDocument", "Section", "Timing")

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """One rule that was asked: what it demands."""

    id: str
    title: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one stage took: `plan`, `push`."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report that a verb writes itself: a title and lines, shown as they are."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """One device of the run.

    Attributes:
        role: leaf, spine, host, target, or "".
        notes: what the plan says about it.
        diff: what changes, or would change, as unified text; "" when nothing does.
        held_back: device-wide changes that nobody adopted, one a line.
        result: how the push ended; None when nothing was pushed.
    """

    device: str
    nos: str
    role: str = ""
    notes: tuple[Note, ...] = ()
    diff: str = ""
    held_back: tuple[str, ...] = ()
    result: DeviceResult | None = None


@dataclass(frozen=True, slots=True)
class RunDocument:
    """One run.

    Attributes:
        tool_version: of this package. run: name of the run folder.
        command: what was typed, secrets left out. fabric: name of the intent.
        verdict: FAIL if an error failed or a device did not end well, UNKNOWN if it cannot be told.
        summary: what happened, one sentence.
        limits: what this run is no evidence for, one sentence each.
        notes: what the plan says about the fabric as a whole.
        rules: the rules that were asked, so that a reader knows what was not.
        sections: what the verb says itself, before everything else.
    """

    tool_version: str
    run: str
    command: str
    fabric: str
    started_unix_s: float
    ended_unix_s: float
    verdict: Status
    summary: str = ""
    limits: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    devices: tuple[DeviceReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    rules: tuple[RuleInfo, ...] = ()
    timings: tuple[Timing, ...] = ()
    sections: tuple[Section, ...] = ()
    schema: int = SCHEMA_VERSION
