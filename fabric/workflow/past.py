"""A run of the past, as its folder and the journals tell: what it may have left on devices. Contacts nobody.

A run that was killed has no `push.json`: then each switch's journal says how far it came. Whatever is missing or does
not fit together is an error here, before anybody is contacted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric.errors import FabricError
from fabric.push import Entry, journal_of
from fabric.state import Outcome
from fabric.workflow.design import DeviceChange
from fabric.workflow.hosts import TOUCHED, changes_of
from fabric.workflow.outcomes import PushDocument
from fabric.workflow.planning import PlanDocument
from fabric.workflow.runfolder import RunFolder

__all__ = ("Past", "ends_of", "plan_of_run", "read_past")

_CHANGES: Final = "commit"  # the step of the transaction before which nothing has changed


@dataclass(frozen=True, slots=True)
class Past:
    """A run: the plan that it applied, and the changes that stand on a device or may stand there.

    Attributes:
        touched: of the switches.
        hosts: those with a part that stands, or may stand.
    """

    document: PlanDocument
    touched: tuple[DeviceChange, ...]
    hosts: tuple[str, ...] = ()

    def change(self, device: str) -> DeviceChange:
        """Returns what the run did to a switch that it touched."""
        return next(one for one in self.touched if one.device == device)


def read_past(run: Path, state_dir: Path, *, hosts: bool) -> Past:
    """Returns what `run` left, or may have left.

    Args:
        run: its folder.
        state_dir: where the journals lie.
        hosts: hosts and targets too.

    Raises:
        FabricError: `run` is no run folder of a provisioning, is damaged, or left nothing.
    """
    document = plan_of_run(run)
    standing = tuple(dict.fromkeys(one.host for one in changes_of(run))) if hosts else ()
    ends = ends_of(run, document, state_dir)
    names = [device for device, end in ends.items() if end in TOUCHED]
    known = {one.device: one for one in document.devices}
    lost = [name for name in names if name not in known]
    if lost:
        raise FabricError(
            f"the run folder {run} is damaged: plan.json has no change for {', '.join(lost)}, which the run changed",
            remedy=f"The configuration before the run lies in {state_dir / run.resolve().name}.",
        )
    if not names and not standing:
        raise _nothing(run, state_dir, ends)
    return Past(document, tuple(known[name] for name in names), standing)


def plan_of_run(run: Path) -> PlanDocument:
    """Returns the plan that `run` applied.

    Raises:
        FabricError: it has none that can be read.
    """
    if run.is_dir() and not (run / "plan.json").exists():
        raise FabricError(
            f"the run folder {run} has no plan.json: of another verb, killed before it planned, or damaged",
            remedy="A run that left no plan changed nothing. If the file was lost: the configuration of each switch "
            "before the run lies in the state directory, RUN/DEVICE.before.",
        )
    return RunFolder(run).read("plan", PlanDocument)


def ends_of(run: Path, document: PlanDocument, state_dir: Path) -> Mapping[str, Outcome]:
    """Returns how each switch of a run ended, by `push.json`, else by its journal; those without either are left out.

    Raises:
        FabricError: one of them cannot be read.
    """
    if (run / "push.json").exists():
        results = RunFolder(run).read("push", PushDocument).results
        switches = {one.device for one in document.plan.switches}
        return {one.device: one.outcome for one in results if one.device in switches}
    journals = {one.device: journal_of(state_dir, run.resolve().name, one.device) for one in document.devices}
    return {device: _end_of(entries) for device, entries in journals.items() if entries}


def _end_of(entries: tuple[Entry, ...]) -> Outcome:
    """Returns how a transaction ended; UNCERTAIN for one that was killed after it began to change the device."""
    last = entries[-1]
    if last.step == "end" and last.phase in set(Outcome):
        return Outcome(last.phase)
    return Outcome.UNCERTAIN if any(one.step == _CHANGES for one in entries) else Outcome.FAILED


def _nothing(run: Path, state_dir: Path, ends: Mapping[str, Outcome]) -> FabricError:
    if (run / "push.json").exists():
        return FabricError(f"the run {run.name} committed nothing", remedy="There is nothing to roll back.")
    if ends:
        return FabricError(
            f"the run {run.name} was killed before it changed a switch", remedy="There is nothing to roll back."
        )
    return FabricError(
        f"the run {run.name} pushed nothing, or was killed elsewhere: {state_dir} has no journal of it",
        remedy="If it ran with another state directory, name that one: export FABRICCTL_STATE=DIR.",
    )
