"""The main job's middle: jobs from changes, and the push in waves. Everything here is order; the work is below.

Spines go first and leaves after, so that no leaf sends pauses that its spine would not obey. A failed compliance check
stops the run before any device is touched.
"""

import getpass
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from fabric.diff import Change
from fabric.errors import FabricError
from fabric.intent import Fabric, SwitchRole
from fabric.nos import catalog
from fabric.push import DeviceJob, PushOptions, SessionFactory, StagedChange, push_all, rehearse_all
from fabric.state import DeviceResult
from fabric.workflow.design import DeviceChange
from fabric.workflow.difftext import shown, told
from fabric.workflow.environment import Environment
from fabric.workflow.request import Request

__all__ = ("base_drift", "job_of", "push_in_waves")

_WAVES: Final = (SwitchRole.SUPERSPINE, SwitchRole.SPINE, SwitchRole.LEAF)

Redo = Callable[[str], DeviceChange]
Verify = Callable[[str], tuple[Change, ...]]


def push_in_waves(
    jobs: Sequence[DeviceJob], fabric: Fabric, request: Request, environment: Environment, *, run: str
) -> tuple[DeviceResult, ...]:
    """Returns one result per job, by name order of `jobs`; superspines, then spines, then leaves."""
    options = PushOptions(
        run=run,
        owner=getpass.getuser(),
        confirm_s=request.confirm_s,
        workers=request.workers,
        allow_disruptive=request.disruptive,
    )
    role = {switch.name: switch.role for switch in fabric.switches}
    results: dict[str, DeviceResult] = {}
    for wave in _WAVES:
        batch = [job for job in jobs if role.get(job.device, SwitchRole.LEAF) is wave]
        done = _rehearsed(batch, options, environment) if request.dry_run else _pushed(batch, options, environment)
        results.update({one.device: one for one in done})
    return tuple(results[job.device] for job in jobs)


def _pushed(batch: Sequence[DeviceJob], options: PushOptions, environment: Environment) -> tuple[DeviceResult, ...]:
    return push_all(
        batch,
        options=options,
        clock=environment.clock,
        state_dir=environment.state_dir,
        observer=environment.observer,
    )


def _rehearsed(batch: Sequence[DeviceJob], options: PushOptions, environment: Environment) -> tuple[DeviceResult, ...]:
    return rehearse_all(
        [(job, catalog.get(job.nos).apply) for job in batch],
        options=replace(options, allow_disruptive=True),  # nothing is applied
        clock=environment.clock,
        state_dir=environment.state_dir,
        observer=environment.observer,
    )


def job_of(change: DeviceChange, make_session: SessionFactory, text: str, *, redo: Redo, verify: Verify) -> DeviceJob:
    """Returns the job that applies `change`.

    Args:
        change: what to apply.
        make_session: how to reach the device.
        text: the running configuration that `change` was made from.
        redo: makes the change again from a configuration read anew: it must come out the same, or the device drifted.
        verify: what still differs in a configuration read anew after the change.
    """
    nos = catalog.get(change.nos)
    disruptive = bool(change.changes.disruptive)
    check_base = _compared(lambda found: base_drift(change, redo(found)))
    drifted = check_base(text) if disruptive else ""  # then the payload may not fit, and the push refuses anyhow
    staged = StagedChange(
        transaction=uuid.uuid4().hex[:8],
        payload=change.payload,
        rollback=change.rollback,
        disruptive=disruptive,
        full_config=nos.apply(text, change.payload) if disruptive and not drifted else "",
    )
    return DeviceJob(
        device=change.device,
        nos=change.nos,
        make_session=make_session,
        change=staged,
        check_base=check_base,
        verify=_compared(lambda found: told(verify(found))),
        changes=len(change.changes.forward),
        diff=shown(change.changes.forward),
    )


def base_drift(change: DeviceChange, now: DeviceChange) -> str:
    """Returns "" if the change made `now` is exactly the reviewed one, else what is different about it."""
    if now.changes.base_digest == change.changes.base_digest and now.payload == change.payload:
        return ""
    if not now.changes.forward:
        return "the device holds the intent already"
    ours = set(change.changes.forward)
    other = [one for one in now.changes.forward if one not in ours]
    return f"the device has changed since the plan was made: {told(other)}" if other else "other paths have changed"


def _compared(compare: Callable[[str], str]) -> Callable[[str], str]:
    def safe(text: str) -> str:
        try:
            return compare(text)
        except FabricError as error:
            return str(error)

    return safe
