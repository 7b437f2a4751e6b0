"""A push of many devices: lock, journal, run, and a result for every one of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from fabric.clock import Clock
from fabric.errors import FabricError
from fabric.observe import Observer, silent
from fabric.push.fanout import Stop, fan_out
from fabric.push.jobs import STOPPED, DeviceJob, PushOptions
from fabric.push.journal import Journal
from fabric.push.lock import DeviceLock, LockRecord, holder
from fabric.push.runner import refused, run_job
from fabric.push.sessions.dryrun import DryRunSession
from fabric.push.words import plain
from fabric.state import DeviceResult, Outcome

__all__ = ("Apply", "push_all", "rehearse_all")

_KNOWN: Final = frozenset({Outcome.UNCHANGED, Outcome.COMMITTED})
"""Ends at which the device is known to be as intended, and to boot so."""

Apply = Callable[[str, str], str]
"""Takes a configuration and a payload; returns the configuration that the payload makes of it (`Nos.apply`)."""


def push_all(
    jobs: Sequence[DeviceJob],
    *,
    options: PushOptions,
    clock: Clock,
    state_dir: Path,
    observer: Observer = silent,
    stop: Stop | None = None,
    told: Callable[[DeviceResult], None] = lambda _result: None,
) -> tuple[DeviceResult, ...]:
    """Returns one result per job, in order; a device that fails stops no other.

    Args:
        jobs: one per device.
        options: of the run.
        clock: monotonic time measures the timers; may be used from several threads.
        state_dir: mode 0700, outside the run folder: locks, journals, configurations before the change.
        observer: hears of every step; called from several threads.
        stop: of the run, when this push is one of several; set by Ctrl-C.
        told: hears of each result as it comes, from several threads; may set `stop`.
    """

    def work(job: DeviceJob, stop: Callable[[], bool]) -> DeviceResult:
        lock = DeviceLock(
            state_dir,
            job.device,
            owner=options.owner,
            run=options.run,
            clock=clock,
            expires_s=options.confirm_s + 2 * options.settle_s,
        )
        with lock:
            journal = Journal(
                state_dir, run=options.run, device=job.device, nos=job.nos, transaction=job.change.transaction
            )
            result = run_job(job, journal, lock, options=options, clock=clock, observer=observer, stop=stop)
            unsettled = lock.inherited is not None and (options.rehearsal or result.outcome not in _KNOWN)
            if lock.inherited is not None:
                result = replace(result, notes=(*result.notes, ("stale-lock", _stale(lock.inherited))))
            if unsettled or (result.outcome is Outcome.UNCERTAIN and not options.rehearsal):
                lock.keep()
            return result

    def guarded(job: DeviceJob, stop: Callable[[], bool]) -> DeviceResult:
        try:
            result = work(job, stop)
        except FabricError as error:  # lock or state directory: the device was not contacted
            words = error.what + (f" ({error.found})" if error.found else "")
            result = refused(job, Outcome.FAILED, words, error.remedy)
        told(result)
        return result

    def crashed(job: DeviceJob, error: Exception) -> DeviceResult:
        return refused(
            job,
            Outcome.UNCERTAIN,
            f"a defect of this program: {type(error).__name__}: {plain(str(error), limit=200)}",
            "If a change was committed, the device's own timer brings it back. The journal says how far the run "
            f"came: {state_dir}",
        )

    def skipped(job: DeviceJob) -> DeviceResult:
        return refused(job, Outcome.REFUSED, f"{STOPPED} before this device's turn")

    return fan_out(jobs, guarded, workers=options.workers, crashed=crashed, skipped=skipped, stop=stop)


def rehearse_all(
    jobs: Sequence[tuple[DeviceJob, Apply]],
    *,
    options: PushOptions,
    clock: Clock,
    state_dir: Path,
    observer: Observer = silent,
    stop: Stop | None = None,
) -> tuple[DeviceResult, ...]:
    """Returns what `push_all` would return, without applying anything: devices are read, and judge the change.

    A device that would have been changed ends UNCHANGED, with its diff.

    Args:
        jobs: each with the function that simulates its device.
        options: of the run.
        clock: as for `push_all`.
        state_dir: as for `push_all`.
        observer: as for `push_all`.
        stop: as for `push_all`.
    """
    dry = [replace(job, make_session=_dry(job, apply)) for job, apply in jobs]
    options = replace(options, rehearsal=True, allow_disruptive=True)  # nothing is applied
    results = push_all(dry, options=options, clock=clock, state_dir=state_dir, observer=observer, stop=stop)
    return tuple(_rehearsed(result) for result in results)


def _rehearsed(result: DeviceResult) -> DeviceResult:
    match result.outcome:
        case Outcome.COMMITTED:
            return replace(result, outcome=Outcome.UNCHANGED, disruptive=False)
        case Outcome.UNCERTAIN | Outcome.ROLLBACK_FAILED:  # whatever was lost: there is nothing to bring back
            return replace(result, outcome=Outcome.FAILED, remedy="Nothing was applied: this was a rehearsal.")
        case _:
            return result


def _stale(record: LockRecord) -> str:
    return f"taken over from {holder(record)}: that run died here, or lost the device"


def _dry(job: DeviceJob, apply: Apply) -> Callable[[], DryRunSession]:
    return lambda: DryRunSession(job.make_session(), apply)
