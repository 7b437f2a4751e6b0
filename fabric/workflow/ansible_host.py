"""One part of one host as the playbooks' action plug-in does it: read, design, write the way back, perform, tell.

The plug-in brings the executor and knows nothing else; this knows the run folder and Ansible's words, and no Ansible.
"""

import getpass
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from fabric.clock import Clock
from fabric.errors import DriftError, FabricError, HostError, RollbackFailedError
from fabric.host.actions import PutFile, Run
from fabric.host.apply import apply_part, changed_since, design_part, is_taken_back, revert_part
from fabric.host.change import HostIntent, Part, PartChange
from fabric.host.executor import Executor, SshExecutor, perform
from fabric.host.hold import Held, Holder, Mark, Marks, holder_of, read_marks, release, take
from fabric.host.nvme.identity import HOSTID_PATH
from fabric.host.report import HostReport, read_host
from fabric.qos import Unknown
from fabric.registry import nearest
from fabric.remote.ansible import HOLDER_VARIABLE
from fabric.serial import to_json
from fabric.state import DeviceResult, Outcome
from fabric.workflow.ansible_shell import AnsibleClient, Execute
from fabric.workflow.environment import SystemClock
from fabric.workflow.hosts import (
    LINUX,
    back_result,
    failed_result,
    load_change,
    load_intent,
    load_intents,
    origin_of,
    part_result,
    record_change,
    record_report,
    record_result,
    results_of,
    task_result,
)

__all__ = ("HostTask", "host_entry", "host_part")

_TRUE: Final = frozenset({"true", "yes", "on", "1"})  # as Ansible takes them from -e
_SHOWN: Final = 4
_BAD: Final = frozenset(Outcome) - {Outcome.UNCHANGED, Outcome.COMMITTED}


@dataclass(frozen=True, slots=True)
class HostTask:
    """What one task asks for.

    Attributes:
        part: `nic`, `target`, `connect`, `disconnect`, `read`, `back`, `release`.
        of: for `back`: which part is taken back.
        run: the run folder.
        disruptive: what interrupts traffic may be done.
        check_mode: nothing may change on the host.
        hold: the host's lock is kept, when the part ends well: another part of this run follows.
    """

    part: str
    host: str
    run: Path
    of: str = ""
    disruptive: bool = False
    check_mode: bool = False
    hold: bool = False


def host_entry(host: str, args: Mapping[str, object], execute: Execute, *, check_mode: bool) -> dict[str, object]:
    """Returns Ansible's result: changed, failed or unreachable, msg, diff, and of a host that was read its report.

    Args:
        host: its name in the inventory.
        args: of the task: `part`, `run`, and perhaps `of`, `disruptive` and `hold`.
        execute: has a shell line executed on the host.
        check_mode: nothing may change there.
    """
    run = Path(str(args.get("run") or ""))
    if run == Path() or not run.is_dir():
        error = FabricError(
            "the action needs the run folder",
            found=str(args.get("run") or "nothing"),
            remedy="Put the role fabricctl_run before it, or name a run: -e run=RUN",
        )
        return {"changed": False, "failed": True, "msg": str(error)}
    task = HostTask(
        part=str(args.get("part") or ""),
        host=host,
        run=run,
        of=str(args.get("of") or ""),
        disruptive=str(args.get("disruptive", False)).lower() in _TRUE,
        check_mode=check_mode,
        hold=str(args.get("hold", False)).lower() in _TRUE,
    )
    client = AnsibleClient(execute, host)
    return host_part(task, SshExecutor(client, host), lambda: client.lost, holder=_holder(run))


def _holder(run: Path) -> Holder:
    """Returns who works on the host: this worker, for `fabricctl`, which names itself, or for ansible-playbook."""
    lasting = os.environ.get(HOLDER_VARIABLE, "")
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no such user here: in a container, say
        user = str(os.getuid())
    who = f"{user}@{os.uname().nodename}"
    return holder_of(
        run.absolute().name, who, lasting=int(lasting) if lasting.isdecimal() else os.getppid(), worker=os.getpid()
    )


def host_part(
    task: HostTask,
    executor: Executor,
    lost: Callable[[], str],
    clock: Clock | None = None,
    *,
    holder: Holder | None = None,
) -> dict[str, object]:
    """Returns what `host_entry` does, over any executor. A host that is not of the run is skipped and not contacted.

    Args:
        task: what is asked for.
        executor: the host.
        lost: says why the host cannot be reached any more, "" while it can.
        clock: times how long a connection may take to come up; None for this machine's.
        holder: who takes the host's lock; None takes none, for a host that nobody else reaches.
    """
    try:
        work = _work(task)
        intent = load_intent(task.run, task.host)
        if intent is None:
            return {"changed": False, "skipped": True, "msg": "not managed by fabricctl, or outside the run's limit"}
        answer = work(task, intent, _Reach(executor, lost, clock or SystemClock(), holder))
    except FabricError as error:
        answer = {"changed": False, "failed": True, "msg": str(error)}
    if lost():
        answer["unreachable"] = True
        answer.pop("failed", None)  # Ansible would count it as a failed task
    return answer


@dataclass(frozen=True, slots=True)
class _Reach:
    executor: Executor
    lost: Callable[[], str]
    clock: Clock
    holder: Holder | None = None


_Work: TypeAlias = Callable[[HostTask, HostIntent, _Reach], dict[str, object]]


def _work(task: HostTask) -> _Work:
    found = _WORKS.get(task.part)
    if found is None:
        close = nearest(task.part, _WORKS)
        raise FabricError(
            f"no such part: {task.part!r}",
            expected=", ".join(_WORKS),
            remedy=f"Did you mean {close!r}?" if close else "",
        )
    if task.part == "back" and task.of not in {part.value for part in Part}:
        raise FabricError(
            "back takes one part back", found=task.of, expected=", ".join(Part), remedy="Name it in `of`."
        )
    return found


def _read(task: HostTask, intent: HostIntent, reach: _Reach) -> dict[str, object]:
    report = read_host(intent, reach.executor)
    record_report(task.run, report)
    _release(task, intent, reach)  # a run that was stopped between two parts of this host kept it
    lines = _told(report)
    return {"changed": False, "failed": False, "msg": "; ".join(lines), "lines": lines, "report": to_json(report)}


def _change(task: HostTask, intent: HostIntent, reach: _Reach) -> dict[str, object]:
    return _provided(task, Part(task.part), intent, reach)


def _connect(task: HostTask, intent: HostIntent, reach: _Reach) -> dict[str, object]:
    if failed := _failed_targets(task.run, intent):
        error = HostError(
            f"not connected: {', '.join(failed)} could not be provisioned",
            remedy="Mend the target, then run again.",
        )
        refused = replace(failed_result(task.host, error), outcome=Outcome.REFUSED)
        return _ended(task, Part.CONNECT, refused)
    return _change(task, intent, reach)


def _disconnect(task: HostTask, intent: HostIntent, reach: _Reach) -> dict[str, object]:
    return _provided(task, Part.CONNECT, replace(intent, connections=()), reach)


def _provided(task: HostTask, part: Part, intent: HostIntent, reach: _Reach) -> dict[str, object]:
    def failed(error: FabricError) -> DeviceResult:
        return failed_result(task.host, error)

    return _ended(task, part, _alone(task, reach, lambda held: _designed(task, part, intent, reach, held), failed))


def _release(task: HostTask, intent: HostIntent, reach: _Reach) -> dict[str, object]:
    worked = any(host == intent.host for host, _ in results_of(task.run))
    if worked and reach.holder and not task.check_mode:
        release(reach.executor, reach.holder)
    return {"changed": False, "failed": False, "msg": "released" if worked else "nothing"}


def _alone(
    task: HostTask,
    reach: _Reach,
    work: Callable[[Held | None], DeviceResult],
    failed: Callable[[FabricError], DeviceResult],
) -> DeviceResult:
    """Returns the result of the work, done under the host's lock; what `failed` says where it cannot be had."""
    if task.check_mode or reach.holder is None:
        return work(None)
    try:
        held = take(reach.executor, reach.holder)
    except FabricError as error:
        return failed(error)
    result = work(held)
    if held.broken:
        note = f"run {held.broken} was cut off at this host; its lock was broken"
        result = replace(result, notes=(*result.notes, ("lock-broken", note)))
    if not task.hold or result.outcome in _BAD:
        with suppress(HostError):  # a host that is gone keeps the lock until it expires
            release(reach.executor, reach.holder)
    return result


def _back(task: HostTask, intent: HostIntent, reach: _Reach) -> dict[str, object]:
    part = Part(task.of)
    change = load_change(task.run, task.host, part)
    if change is None:
        return {"changed": False, "failed": False, "msg": f"{part.value}: nothing"}
    new_uuid = _drawn(change)

    def design() -> PartChange:
        return design_part(part, intent, reach.executor, new_uuid=new_uuid)

    if task.check_mode:
        return _ended(task, part, _would_go_back(task, change, reach, design))

    def failed(error: FabricError) -> DeviceResult:
        return back_result(change, Outcome.FAILED, error)

    return _ended(task, part, _alone(task, reach, lambda held: _taken_back(task, change, reach, design, held), failed))


def _would_go_back(task: HostTask, change: PartChange, reach: _Reach, design: Callable[[], PartChange]) -> DeviceResult:
    try:
        if is_taken_back(change, reach.executor, design):
            return DeviceResult(task.host, LINUX, Outcome.UNCHANGED)
        refused = _refused(task, change, design, read_marks(reach.executor, change.part) if reach.holder else None)
    except FabricError as error:
        return back_result(change, Outcome.FAILED, error)
    return refused or back_result(change, Outcome.UNCHANGED)


def _refused(
    task: HostTask, change: PartChange, design: Callable[[], PartChange], marks: Marks | None
) -> DeviceResult | None:
    """Returns REFUSED where others have changed what the run owns, None where it may be taken back."""
    run = origin_of(task.run)
    if marks and marks.is_amid(run):
        return None  # what is neither as before nor as intended is the run's own
    others = changed_since(change, design)
    if not others:
        return None
    return back_result(change, Outcome.REFUSED, _drift(change, others, marks.later(run) if marks else ()))


def _taken_back(
    task: HostTask, change: PartChange, reach: _Reach, design: Callable[[], PartChange], held: Held | None
) -> DeviceResult:
    marks = held.of(change.part) if held else None
    if refused := _refused(task, change, design, marks):
        return refused
    mark = marks.of(origin_of(task.run)) if marks else None
    try:
        is_changed = revert_part(change, reach.executor, redesign=design, mark=mark)
    except RollbackFailedError as error:
        return back_result(change, Outcome.UNCERTAIN if reach.lost() else Outcome.ROLLBACK_FAILED, error)
    except FabricError as error:
        return back_result(change, Outcome.FAILED, error)
    if not is_changed:
        return DeviceResult(task.host, LINUX, Outcome.UNCHANGED)
    return back_result(change, Outcome.COMMITTED)


def _drift(change: PartChange, others: Sequence[str], later: Sequence[str]) -> DriftError:
    more = f"; and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    again = "Provision again instead, or bring these back by hand first."
    first = f"Take back first what came later: {', '.join(reversed(later))}. Or provision again instead."
    return DriftError(
        "the host has changed since that run, in what the run owns",
        where=change.host,
        found="; ".join(others[:_SHOWN]) + more,
        remedy=first if later else again,
    )


def _drawn(change: PartChange) -> str:
    """Returns the identity that was drawn for the change, so that it comes out the same when it is designed anew."""
    drawn = (one.text.strip() for one in change.forward if isinstance(one, PutFile) and one.path == HOSTID_PATH)
    return next(drawn, "") or str(uuid.uuid4())


_WORKS: Final[Mapping[str, _Work]] = {
    "nic": _change,
    "target": _change,
    "connect": _connect,
    "disconnect": _disconnect,
    "read": _read,
    "back": _back,
    "release": _release,
}


def _ended(task: HostTask, part: Part, result: DeviceResult) -> dict[str, object]:
    record_result(task.run, part, result)
    return task_result(result)


def _designed(task: HostTask, part: Part, intent: HostIntent, reach: _Reach, held: Held | None) -> DeviceResult:
    new_uuid = str(uuid.uuid4())  # one for both designs: the second must find what the first made

    def design() -> PartChange:
        return design_part(part, intent, reach.executor, new_uuid=new_uuid)

    try:
        if held and held.left:  # of a run that was killed
            perform(reach.executor, Run(("rm", "-f", "--", *held.left)), host=task.host)
        change = design()
    except FabricError as error:
        return failed_result(task.host, error)
    if task.check_mode or not change.forward:
        return part_result(change, Outcome.UNCHANGED)
    try:
        record_change(task.run, change, disruptive=task.disruptive)
    except FabricError as error:
        return part_result(change, Outcome.REFUSED, error)
    return _performed(change, reach, design, held.of(part).of(origin_of(task.run)) if held else None)


def _performed(change: PartChange, reach: _Reach, design: Callable[[], PartChange], mark: Mark | None) -> DeviceResult:
    try:
        apply_part(change, reach.executor, redesign=design, clock=reach.clock, mark=mark)
    except RollbackFailedError as error:
        outcome = Outcome.UNCERTAIN if reach.lost() else Outcome.ROLLBACK_FAILED
        return part_result(change, outcome, error)
    except FabricError as error:
        return part_result(change, Outcome.ROLLED_BACK, error)
    return part_result(change, Outcome.COMMITTED)


def _failed_targets(run: Path, intent: HostIntent) -> list[str]:
    """Returns the targets of this run that failed and that the host connects to; the others do not stop it."""
    wanted = {one.nqn for one in intent.connections}
    failed = {host for (host, _), result in results_of(run).items() if result.outcome in _BAD}
    return [
        one.host
        for one in load_intents(run)
        if one.host in failed and one.target is not None and wanted & {sub.nqn for sub in one.target.subsystems}
    ]


def _told(report: HostReport) -> list[str]:
    """Returns one line a NIC and one a controller."""
    state = report.reading.state
    lines = [f"{nic.netdev}: MTU {_shown(nic.mtu_bytes)}, RDMA {_shown(nic.rdma_device)}" for nic in state.nics]
    systems = state.subsystems
    if isinstance(systems, Unknown):
        return [*lines, "NVMe: not read"]
    for system in systems:
        paths = system.paths
        found = () if isinstance(paths, Unknown) else paths
        lines += [f"{path.controller}: {_shown(path.state)}, {system.nqn} at {_shown(path.traddr)}" for path in found]
    return lines


def _shown(value: object) -> str:
    return "not read" if isinstance(value, Unknown) else "none" if value is None else str(value)
