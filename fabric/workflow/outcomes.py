"""From results, findings and notes to a verdict. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.errors import DriftError, FabricError, Problem
from fabric.intent import Fabric
from fabric.plan.model import FabricPlan, Note
from fabric.state import DeviceResult, Finding, Outcome, Severity, Status, worst
from fabric.workflow.design import DeviceChange
from fabric.workflow.difftext import shown
from fabric.workflow.summary import Verdict, is_kept

__all__ = ("PushDocument", "gate_refusal", "notes_of", "preview", "roles_of", "unread", "verdict_of")

_BAD: Final = frozenset({Outcome.FAILED, Outcome.ROLLED_BACK, Outcome.ROLLBACK_FAILED, Outcome.UNCERTAIN})


@dataclass(frozen=True, slots=True)
class PushDocument:
    """How every device of a push ended, as the run folder has it."""

    results: tuple[DeviceResult, ...]


def verdict_of(
    results: Sequence[DeviceResult], findings: Sequence[Finding], notes: Sequence[tuple[str, Note]]
) -> Verdict:
    """Returns FAILED if a device failed, else FINDINGS if a rule, a refusal or a note stands against the run.

    What a rollback left is such a note: the run is not wholly taken back.
    """
    outcomes = {one.outcome for one in results}
    if outcomes & _BAD:
        return Verdict.FAILED
    blocked = any(note.blocks_lossless or is_kept(note) for _, note in notes)
    if Outcome.REFUSED in outcomes or blocked or worst(tuple(findings)) is not Status.PASS:
        return Verdict.FINDINGS
    return Verdict.OK


def notes_of(plan: FabricPlan, devices: Sequence[DeviceChange] = ()) -> tuple[tuple[str, Note], ...]:
    """Returns the notes of the plan, and those on changes that are held back or interrupt traffic."""
    notes = [("", note) for note in plan.notes]
    notes += [(one.device, note) for one in plan.switches for note in one.notes]
    notes += [(one.host, note) for one in plan.hosts for note in one.notes]
    notes += [(one.device, _held_back(one)) for one in devices if one.changes.held_back]
    notes += [(one.device, _disruptive(one)) for one in devices if one.changes.disruptive]
    return tuple(notes)


def preview(change: DeviceChange) -> DeviceResult:
    """Returns what a device's result would be if its change were applied now: UNCHANGED with the diff."""
    return DeviceResult(
        device=change.device,
        nos=change.nos,
        outcome=Outcome.UNCHANGED,
        changes=len(change.changes.forward),
        diff=shown(change.changes.forward),
        disruptive=bool(change.changes.disruptive),
    )


def roles_of(fabric: Fabric) -> dict[str, str]:
    """Returns the role of each switch."""
    return {switch.name: switch.role.value for switch in fabric.switches}


def unread(plan: FabricPlan, errors: Mapping[str, FabricError]) -> tuple[DeviceResult, ...]:
    """Returns one result for each device without a change: FAILED, REFUSED where it drifted; none was touched."""
    nos = {one.device: one.nos for one in plan.switches}
    return tuple(
        DeviceResult(
            device,
            nos.get(device, ""),
            Outcome.REFUSED if isinstance(error, DriftError) else Outcome.FAILED,
            error=_said(error),
            remedy=error.remedy,
        )
        for device, error in errors.items()
    )


def gate_refusal(change: DeviceChange, findings: Sequence[Finding]) -> DeviceResult:
    """Returns the result of a device that was not touched because the compliance check failed."""
    failed = {one.rule for one in findings if one.status is Status.FAIL and one.severity is Severity.ERROR}
    return DeviceResult(
        device=change.device,
        nos=change.nos,
        outcome=Outcome.REFUSED,
        changes=len(change.changes.forward),
        diff=shown(change.changes.forward),
        error=f"the compliance check failed ({', '.join(sorted(failed))}); no device was touched",
        remedy="Mend the findings and run again, or push all the same with --force.",
    )


def _disruptive(change: DeviceChange) -> Note:
    text = f"applying this interrupts traffic, and needs --disruptive: {'; '.join(change.changes.disruptive)}"
    return Note(code="interrupts-traffic", text=text)


def _held_back(change: DeviceChange) -> Note:
    count = len(change.changes.held_back)
    others = ", ".join(change.changes.outside_ports) or "no port outside the intent"
    text = (
        f"{count} device-wide change{'' if count == 1 else 's'} held back; {others} would feel "
        f"{'it' if count == 1 else 'them'}. Adopt them with --adopt, or fabric_adopt: true for this device.\n"
        f"{shown(change.changes.held_back)}"
    )
    return Note(code="device-wide-held-back", text=text, ports=change.changes.outside_ports, blocks_lossless=True)


def _said(error: FabricError) -> str:
    return str(Problem(what=error.what, found=error.found, expected=error.expected))
