"""The main job's middle: jobs from changes, and the push in waves. Everything here is order; the work is below.

Spines go first and leaves after, so that no leaf sends pauses that its spine would not obey. A failed compliance check
stops the run before any device is touched.
"""

import getpass
import os
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from fabric.diff import Change, owned_part
from fabric.errors import FabricError
from fabric.intent import Fabric, SwitchRole
from fabric.nos import catalog
from fabric.push import (
    DeviceJob,
    PushOptions,
    SessionFactory,
    StagedChange,
    Stop,
    private_folder,
    push_all,
    rehearse_all,
)
from fabric.state import DeviceResult
from fabric.workflow.design import DeviceChange
from fabric.workflow.difftext import shown, told
from fabric.workflow.environment import Environment
from fabric.workflow.request import Request

__all__ = ("base_drift", "job_of", "not_back", "push_in_waves")

_NAMED: Final = 3  # paths that one line names
_WAVES: Final = (SwitchRole.SUPERSPINE, SwitchRole.SPINE, SwitchRole.LEAF)

Redo = Callable[[str], DeviceChange]
Verify = Callable[[str], tuple[Change, ...]]


def push_in_waves(
    jobs: Sequence[DeviceJob], fabric: Fabric, request: Request, environment: Environment, *, run: str
) -> tuple[DeviceResult, ...]:
    """Returns one result per job, by name order of `jobs`; superspines, then spines, then leaves.

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
    role = {switch.name: switch.role for switch in fabric.switches}
    results: dict[str, DeviceResult] = {}
    for wave in _WAVES:
        batch = [job for job in jobs if role.get(job.device, SwitchRole.LEAF) is wave]
        push = _rehearsed if request.dry_run else _pushed
        done = push(batch, options, environment, stop)
        results.update({one.device: one for one in done})
    return tuple(results[job.device] for job in jobs)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not be in its passwd file
        return f"uid {os.getuid()}"


def _pushed(
    batch: Sequence[DeviceJob], options: PushOptions, environment: Environment, stop: Stop
) -> tuple[DeviceResult, ...]:
    return push_all(
        batch,
        options=options,
        clock=environment.clock,
        state_dir=environment.state_dir,
        observer=environment.observer,
        stop=stop,
    )


def _rehearsed(
    batch: Sequence[DeviceJob], options: PushOptions, environment: Environment, stop: Stop
) -> tuple[DeviceResult, ...]:
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
