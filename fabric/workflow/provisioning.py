"""The main job's middle: jobs from changes, and the push in waves. Everything here is order; the work is below.

Spines go first and leaves after, so that no leaf sends pauses that its spine would not obey. A failed compliance check
stops the run before any device is touched.
"""

import getpass
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from fabric.diff import Change, owned_part
from fabric.errors import FabricError
from fabric.intent import Fabric, SwitchRole
from fabric.nos import catalog
from fabric.push import (
    STOPPED,
    DeviceJob,
    PushOptions,
    SessionFactory,
    StagedChange,
    Stop,
    private_folder,
    push_all,
    rehearse_all,
)
from fabric.state import DeviceResult, Outcome
from fabric.workflow.budget import Count, taken_back
from fabric.workflow.design import DeviceChange
from fabric.workflow.difftext import shown, told
from fabric.workflow.environment import Environment
from fabric.workflow.request import Request

__all__ = ("base_drift", "job_of", "not_back", "push_in_waves")

_NAMED: Final = 3  # paths that one line names
_WAVES: Final = (SwitchRole.SUPERSPINE, SwitchRole.SPINE, SwitchRole.LEAF)

WayBack = Callable[[Sequence[str]], Sequence[DeviceJob]]
"""Takes devices that a run has committed; returns the jobs that take them back. One that cannot be read has none."""

Redo = Callable[[str], DeviceChange]
Verify = Callable[[str], tuple[Change, ...]]


def push_in_waves(
    jobs: Sequence[DeviceJob],
    fabric: Fabric,
    request: Request,
    environment: Environment,
    *,
    run: str,
    way_back: WayBack | None = None,
    unread: Sequence[str] = (),
) -> tuple[DeviceResult, ...]:
    """Returns one result per job, by name order of `jobs`; superspines, then spines, then leaves.

    Args:
        jobs: one a switch.
        fabric: knows the role of each.
        request: of the run.
        environment: of the run.
        run: names the journals.
        way_back: makes the jobs that take a change of this run back, for a failure budget that is exceeded. None: there
            is no budget.
        unread: switches that could not be read: they count as failed.

    Raises:
        EnvironmentMissingError: the state directory cannot be used; no device was touched.
    """
    private_folder(environment.state_dir)
    stop = Stop()  # one for all waves: after Ctrl-C no further wave begins
    options = PushOptions(
        run=run,
        owner=_user(),
        confirm_s=request.confirm_s,
        workers=request.workers,
        allow_disruptive=request.disruptive,
    )
    budget = None if way_back is None or request.dry_run else request.failure_budget
    count = Count(budget, len(jobs) + len(unread), stop)
    for device in unread:
        count.fail(device)
    push = _rehearsed if request.dry_run else _pushed
    results: dict[str, DeviceResult] = {}
    for batch in _waves(jobs, fabric):
        done = push(batch, options, environment, stop, count)
        results.update({one.device: one for one in done})
    if way_back is not None and (why := count.exceeded):
        committed = [name for name, one in results.items() if one.outcome is Outcome.COMMITTED]
        back = _take_back(way_back(committed), fabric, options, environment)
        results.update({name: taken_back(results[name], back.get(name), why) for name in committed})
        results = {name: _said(one, why) for name, one in results.items()}
    return tuple(results[job.device] for job in jobs)


def _waves(jobs: Sequence[DeviceJob], fabric: Fabric) -> list[list[DeviceJob]]:
    role = {switch.name: switch.role for switch in fabric.switches}
    return [[job for job in jobs if role.get(job.device, SwitchRole.LEAF) is wave] for wave in _WAVES]


def _take_back(
    jobs: Sequence[DeviceJob], fabric: Fabric, options: PushOptions, environment: Environment
) -> dict[str, DeviceResult]:
    """Returns how the ways back ended, by device; leaves first, the other way round than a change."""
    stop = Stop()  # that of the run is set, and would let nothing begin
    options = replace(options, run=f"{options.run}-taken-back")  # journals and configurations of its own
    results: dict[str, DeviceResult] = {}
    for batch in reversed(_waves(jobs, fabric)):
        done = _pushed(batch, options, environment, stop, Count(None, len(batch), stop))
        results.update({one.device: one for one in done})
    return results


def _said(result: DeviceResult, why: str) -> DeviceResult:
    return replace(result, error=f"{result.error}: {why}") if STOPPED in result.error else result


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not be in its passwd file
        return f"uid {os.getuid()}"


def _pushed(
    batch: Sequence[DeviceJob], options: PushOptions, environment: Environment, stop: Stop, count: Count
) -> tuple[DeviceResult, ...]:
    return push_all(
        batch,
        options=options,
        clock=environment.clock,
        state_dir=environment.state_dir,
        observer=environment.observer,
        stop=stop,
        told=count.add,
    )


def _rehearsed(
    batch: Sequence[DeviceJob], options: PushOptions, environment: Environment, stop: Stop, count: Count
) -> tuple[DeviceResult, ...]:
    del count  # nothing is applied: there is nothing to take back
    return rehearse_all(
        [(job, catalog.get(job.nos).apply) for job in batch],
        options=options,
        clock=environment.clock,
        state_dir=environment.state_dir,
        observer=environment.observer,
        stop=stop,
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
        is_back=_compared(lambda found: not_back(change, found)),
    )


def not_back(change: DeviceChange, text: str) -> str:
    """Returns "" if what the change owns stands as before it; what others did elsewhere meanwhile does not count."""
    running = catalog.get(change.nos).tree(text)
    found = owned_part(running, change.intended)
    if found == change.owned_now:
        return ""
    before, after = dict(change.owned_now), dict(found)
    paths = [path for path in {**before, **after} if before.get(path, ...) != after.get(path, ...)]
    shown_paths = ", ".join(" / ".join(path) for path in paths[:_NAMED])
    return f"not as before: {len(paths)} of the paths that this run owns, {shown_paths}"


def base_drift(change: DeviceChange, now: DeviceChange) -> str:
    """Returns "" if the change made `now` is exactly the reviewed one, way back included, else what differs."""
    if now == change:
        return ""
    if not now.changes.forward:
        return "the device holds the intent already"
    ours = set(change.changes.forward)
    other = [one for one in now.changes.forward if one not in ours]
    if other:
        return f"the device now needs other changes: {told(other)}"
    if now.changes.outside_ports != change.changes.outside_ports:
        return f"other ports outside the intent feel the change, {', '.join(now.changes.outside_ports) or 'none'}"
    return "made anew, the change or its way back comes out otherwise than in the plan"


def _compared(compare: Callable[[str], str]) -> Callable[[str], str]:
    def safe(text: str) -> str:
        try:
            return compare(text)
        except FabricError as error:
            return str(error)

    return safe
