"""Drives one device through its transaction: performs actions, feeds the answers back, journals before each step.

What an error means is decided in one place, `_event`. What must hold whatever happens: no step towards the change is
done without its line in the journal; the way back is never blocked by a journal that cannot be written.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from fabric.clock import Clock
from fabric.errors import AuthError, CommandRejectedError, ConnectError, FabricError, RollbackFailedError
from fabric.observe import Event as Progress
from fabric.observe import Observer
from fabric.push.jobs import STOPPED, DeviceJob, PushOptions, never
from fabric.push.journal import Journal
from fabric.push.lock import DeviceLock
from fabric.push.session import DeviceSession
from fabric.push.transaction import Action, Event, Kind, State, Transaction
from fabric.push.words import plain, safe
from fabric.state import DeviceResult, Outcome, StepRecord

__all__ = ("refused", "run_job")

_OK: Final = Event(Kind.OK)
_TRIES: Final = 3  # of what may be repeated: reading, a late saving, a late way back
_GRACE_S: Final = 5.0  # after the deadline, before the first look: the device needs a moment to go back

_TOWARDS: Final = frozenset(
    {Action.OPEN, Action.READ, Action.CHECK, Action.STAGE, Action.DECIDE, Action.COMMIT, Action.VERIFY, Action.CONFIRM}
)
"""Actions that are not done without a journal line. SAVE is not among them: the change is confirmed already."""

_MANUAL: Final = frozenset({State.ROLLBACK_FAILED, State.UNREACHABLE})
"""Ends at which a person needs the recovery commands."""


def refused(job: DeviceJob, outcome: Outcome, error: str, remedy: str = "") -> DeviceResult:
    """Returns the result of a device that was not contacted."""
    return DeviceResult(job.device, job.nos, outcome, changes=job.changes, error=error, remedy=remedy)


def run_job(
    job: DeviceJob,
    journal: Journal,
    lock: DeviceLock,
    *,
    options: PushOptions,
    clock: Clock,
    observer: Observer,
    stop: Callable[[], bool] = never,
) -> DeviceResult:
    """Returns how the device ended.

    Args:
        job: the device and the change.
        journal: of this device and run.
        lock: held by the caller.
        options: of the run.
        clock: measures the device's timer.
        observer: hears of every step.
        stop: asked once, before anything changes: True leaves the device as it is.
    """
    if job.change.disruptive and not options.allow_disruptive:
        return refused(
            job,
            Outcome.REFUSED,
            "the change interrupts traffic",
            "Allow it with --disruptive, in a maintenance window.",
        )
    return _Run(job, journal, lock, options, clock, observer, stop).run()


def _event(error: FabricError) -> Event:
    message, remedy = safe(_said(error)), error.remedy
    if isinstance(error, RollbackFailedError):
        return Event(Kind.REFUSED, message, remedy)
    if isinstance(error, (ConnectError, AuthError)):  # no session either way
        return Event(Kind.LOST, message, remedy)
    return Event(Kind.FAILED, message, remedy)


def _said(error: FabricError) -> str:
    text = str(error)
    return text.removesuffix(f" {error.remedy}").removesuffix(".") if error.remedy else text


class _Run:
    def __init__(
        self,
        job: DeviceJob,
        journal: Journal,
        lock: DeviceLock,
        options: PushOptions,
        clock: Clock,
        observer: Observer,
        stop: Callable[[], bool],
    ) -> None:
        self._job = job
        self._journal = journal
        self._lock = lock
        self._options = options
        self._clock = clock
        self._observer = observer
        self._stop = stop
        self._session: DeviceSession = job.make_session()
        self._diff = job.diff
        self._steps: list[StepRecord] = []
        self._local: list[str] = []  # what went wrong on our own side, on the way back
        self._deadline_ns = 0  # the device's timer has not run before this
        self._settled_ns = 0  # until then a look that is not "as before" is repeated
        self._committed = False
        self._state = State.OPENING
        self._actions: Mapping[Action, Callable[[], Event]] = {
            Action.OPEN: self._open,
            Action.READ: self._read,
            Action.CHECK: self._check,
            Action.STAGE: self._stage,
            Action.DECIDE: self._decide,
            Action.COMMIT: self._commit,
            Action.REOPEN: self._reopen,
            Action.VERIFY: self._verify,
            Action.CONFIRM: self._confirm,
            Action.SAVE: self._save,
            Action.WAIT: self._wait,
            Action.LOOK: self._look,
            Action.REVERT: self._revert,
            Action.DISCARD: self._discard,
        }
        self._before = ""

    def run(self) -> DeviceResult:
        transaction = Transaction()
        try:
            while (action := transaction.action) is not None:
                transaction = transaction.after(self._step(transaction.state, action))
            return self._result(transaction)
        finally:
            self._session.close()

    def _step(self, state: State, action: Action) -> Event:
        started_s = self._clock.unix_s()
        self._state = state
        self._emit(action, "started")
        try:
            self._journal.write(state=state.value, step=action.value, phase="begin", unix_s=started_s)
        except FabricError as error:
            if action in _TOWARDS:
                return self._ended(action, started_s, _event(error))
            self._note(error)
        try:
            event = self._actions[action]()
        except FabricError as error:
            event = _event(error)
        try:
            self._journal.write(
                state=state.value,
                step=action.value,
                phase=event.kind.value,
                unix_s=self._clock.unix_s(),
                message=event.message,
            )
        except FabricError as error:
            self._note(error)  # the step is done; the next one towards the change will stop
        return self._ended(action, started_s, event)

    def _ended(self, action: Action, started_s: float, event: Event) -> Event:
        good = event.kind in {Kind.OK, Kind.INTENDED}
        self._steps.append(StepRecord(action.value, started_s, self._clock.unix_s(), ok=good, message=event.message))
        self._emit(action, "done" if good else "failed", event.message)
        return event

    def _emit(self, action: Action, phase: str, message: str = "") -> None:
        self._observer(
            Progress(
                f"push.{action.value}.{phase}",
                device=self._job.device,
                message=message,
                data={"transaction": self._job.change.transaction, "state": self._state.value},
            )
        )

    def _note(self, error: FabricError) -> None:
        if str(error) not in self._local:
            self._local.append(str(error))

    # actions

    def _open(self) -> Event:
        inherited = self._lock.inherited
        if inherited is not None and (left_s := inherited.settles_unix_s - self._clock.unix_s()) > 0:
            # a run died under a timer that is still running on the device: what we read now would not last
            self._emit(Action.WAIT, "started", f"run {inherited.run} died here; its timer runs for {left_s:.0f} s yet")
            self._clock.sleep_s(left_s)
        self._session.open()
        return _OK

    def _read(self) -> Event:
        self._before = self._session.fetch()
        self._journal.keep_before(self._before)
        return _OK

    def _check(self) -> Event:
        change = self._job.change
        wrong = self._job.verify(self._before)
        if not wrong:
            if self._lock.inherited is not None:
                self._session.save(change)  # the run that died may have confirmed without saving
            return Event(Kind.INTENDED)
        drift = self._job.check_base(self._before)
        if drift:
            return Event(Kind.FAILED, f"the device has changed since the plan was made: {plain(drift)}")
        if not change.payload and not change.full_config:
            return Event(Kind.FAILED, f"nothing is to be sent, yet the device differs: {plain(wrong)}")
        return _OK

    def _stage(self) -> Event:
        words = self._session.stage(self._job.change)
        self._diff = safe(words, limit=200_000) or self._diff
        return _OK

    def _decide(self) -> Event:
        if self._stop():
            return Event(Kind.FAILED, f"{STOPPED} before anything changed")
        if not self._options.rehearsal:
            self._lock.arm(self._clock.unix_s() + self._options.confirm_s + self._options.settle_s)
        return _OK

    def _commit(self) -> Event:
        self._committed = True
        # From before the command is sent: the device starts its timer later, so ours never runs out after it.
        self._deadline_ns = self._clock.now_ns() + self._options.confirm_s * 10**9
        self._session.commit(self._job.change, confirm_s=self._options.confirm_s)
        return self._in_time(_OK)

    def _verify(self) -> Event:
        wrong = self._job.verify(self._fetch())
        if wrong:
            return Event(Kind.FAILED, f"the device is not as intended after the commit: {plain(wrong)}")
        return self._in_time(_OK, self._options.margin_s)

    def _confirm(self) -> Event:
        self._session.confirm(self._job.change)
        late = self._in_time(_OK)  # answered before the deadline: the timer cannot have been first
        if late is _OK:
            self._settled_ns = self._clock.now_ns()
        return late

    def _save(self) -> Event:
        if self._state is State.SAVING:  # a loss is looked into first: the device may have booted
            self._session.save(self._job.change)
            return _OK
        return self._repeated(lambda: self._session.save(self._job.change), may_repeat=self._still_intended)

    def _still_intended(self) -> bool:
        return not self._job.verify(self._session.fetch())

    def _revert(self) -> Event:
        if self._state is State.REVERTING:  # the device's timer will do it where we cannot
            self._session.revert(self._job.change)
        else:
            event = self._repeated(lambda: self._session.revert(self._job.change), may_repeat=self._is_not_back)
            if event is not _OK:
                return event
        self._settled_ns = self._clock.now_ns()
        return _OK

    def _is_not_back(self) -> bool:
        return bool((self._job.is_back or self._job.check_base)(self._session.fetch()))

    def _repeated(self, act: Callable[[], None], *, may_repeat: Callable[[], bool]) -> Event:
        """Does what may be done again, on a fresh session where one was lost: no timer waits for the device now."""
        for _ in range(_TRIES - 1):
            try:
                act()
            except ConnectError as error:
                self._reopen()
                if not may_repeat():
                    return _event(error)
            else:
                return _OK
        act()
        return _OK

    def _discard(self) -> Event:
        self._session.discard(self._job.change)
        return _OK

    def _wait(self) -> Event:
        self._session.close()
        left_s = (self._deadline_ns - self._clock.now_ns()) / 1e9
        self._clock.sleep_s(max(0.0, left_s) + min(_GRACE_S, self._options.settle_s))
        self._settled_ns = self._clock.now_ns() + round(self._options.settle_s * 1e9)
        return _OK

    def _reopen(self) -> Event:
        margin_ns = round(self._options.margin_s * 1e9)
        settle_ns = self._clock.now_ns() + round(self._options.settle_s * 1e9)
        under_timer = self._deadline_ns - margin_ns > self._clock.now_ns()
        until_ns = min(self._deadline_ns - margin_ns, settle_ns) if under_timer else settle_ns
        if self._job.change.disruptive:
            self._clock.sleep_s(self._options.retry_s)  # a reload answers first and cuts connections a moment later
        while True:
            self._session.close()
            try:
                self._session.open()
            except (ConnectError, AuthError, CommandRejectedError):  # it, or its AAA servers, may not be ready yet
                if self._clock.now_ns() >= until_ns:
                    raise
                self._clock.sleep_s(self._options.retry_s)
            else:
                return _OK

    def _look(self) -> Event:
        while True:
            try:
                text = self._fetch()
            except CommandRejectedError as error:  # the device is there and shows nothing: nobody knows
                return replace(_event(error), kind=Kind.LOST)
            drift = (self._job.is_back or self._job.check_base)(text)
            if not drift:
                return _OK
            if self._clock.now_ns() >= self._settled_ns:
                break
            self._clock.sleep_s(self._options.retry_s)
        if not self._job.verify(text):
            return Event(Kind.INTENDED)
        return Event(Kind.FAILED, f"the device is not as before: {plain(drift)}")

    # parts of actions

    def _fetch(self) -> str:
        for _ in range(_TRIES - 1):
            try:
                return self._session.fetch()
            except CommandRejectedError:
                self._clock.sleep_s(self._options.retry_s)
            except ConnectError:  # it may be booting
                self._clock.sleep_s(self._options.retry_s)
                self._reopen()
        return self._session.fetch()

    def _in_time(self, event: Event, margin_s: float = 0.0) -> Event:
        left_s = (self._deadline_ns - self._clock.now_ns()) / 1e9
        if left_s > margin_s:
            return event
        return Event(Kind.TIMEOUT, f"too little is left of the timer of {self._options.confirm_s} s to confirm")

    # the end

    def _result(self, transaction: Transaction) -> DeviceResult:
        end = transaction.end
        if end is None:
            raise ValueError(f"the transaction has not ended: {transaction.state.value}")
        error = "; then ".join(part for part in (transaction.error, *transaction.later) if part)
        if self._local:
            error = "; ".join(part for part in (error, *self._local) if part)
        if transaction.state is State.ROLLED_BACK:
            with suppress(FabricError):  # leftovers under the transaction's name have no effect
                self._session.discard(self._job.change)
        self._close_journal(transaction.state, end.outcome, error)
        return DeviceResult(
            device=self._job.device,
            nos=self._job.nos,
            outcome=end.outcome,
            changes=self._job.changes,
            diff=self._diff,
            error=error,
            remedy=self._remedy(transaction, end.remedy),
            disruptive=self._job.change.disruptive and self._committed,
            steps=tuple(self._steps),
        )

    def _remedy(self, transaction: Transaction, advice: str) -> str:
        parts = [part for part in (transaction.remedy, advice) if part]
        if transaction.state not in _MANUAL:
            return " ".join(parts)
        commands = self._session.recovery(self._job.change)
        saved = f"The configuration before the change is saved here: {self._journal.before_path}"
        return "\n".join([" ".join(parts), *(f"  {command}" for command in commands), saved])

    def _close_journal(self, state: State, outcome: Outcome, error: str) -> None:
        try:
            self._journal.write(
                state=state.value, step="end", phase=outcome.value, unix_s=self._clock.unix_s(), message=error
            )
        except FabricError as failure:
            self._note(failure)
