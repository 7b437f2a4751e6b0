"""A device in memory: for tests, demonstrations and rehearsals. Two functions make it; faults are data.

It does what a device does as far as a transaction can tell: running and startup configuration, a staged change, a
commit timer that reverts, a reboot. It knows no language: `apply` is handed in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from fabric.clock import Clock
from fabric.errors import (
    AuthError,
    CommandRejectedError,
    CommitTimeoutError,
    ConnectError,
    DeviceError,
    FabricError,
    RollbackFailedError,
)
from fabric.push.session import StagedChange

__all__ = ("Fault", "FaultKind", "MemoryDevice", "MemorySession")

Result = TypeVar("Result")

_NEVER_NS: Final = 1 << 62


class FaultKind(StrEnum):
    """What goes wrong."""

    LOST_BEFORE = "lost-before"  # the session is lost and the verb was not done
    LOST_AFTER = "lost-after"  # the verb was done, the session was lost before the answer
    REJECTED = "rejected"  # the device says no; nothing was done
    HALF_DONE = "half-done"  # commit only: part was applied, then the device said no
    DENIED = "denied"  # the login is refused
    ROLLBACK_REFUSED = "rollback-refused"
    SLOW = "slow"  # the verb is done, `seconds` later
    REBOOT = "reboot"  # the device boots its startup configuration, the session is lost, the verb was not done
    TIMER_DEAD = "timer-dead"  # commit only: it is applied and its timer will not run


@dataclass(frozen=True, slots=True)
class Fault:
    """One scripted fault.

    Attributes:
        verb: of the session, `commit`.
        kind: what goes wrong.
        nth: at which call of that verb, from 1; 0 is every call.
        seconds: of SLOW.
    """

    verb: str
    kind: FaultKind
    nth: int = 1
    seconds: float = 0.0


@dataclass(slots=True)
class MemoryDevice:
    """The state of a device.

    Args:
        name: for messages.
        running: configuration text; also what it boots with.
        apply: `Nos.apply`: configuration and payload → configuration; a ValueError or FabricError refuses.
        clock: runs the timer.
        faults: what goes wrong.
    """

    name: str
    running: str
    apply: Callable[[str, str], str]
    clock: Clock
    faults: Sequence[Fault] = ()
    startup: str = field(init=False)
    staged: dict[str, str] = field(init=False, default_factory=dict)
    deadline_ns: int | None = field(init=False, default=None)
    before: dict[str, str] = field(init=False, default_factory=dict)
    calls: dict[str, int] = field(init=False, default_factory=dict)
    timer: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.startup = self.running

    def tick(self) -> None:
        """Lets the timer run if its time has come."""
        if self.deadline_ns is not None and self.clock.now_ns() >= self.deadline_ns:
            self.running = self.before[self.timer]
            self.deadline_ns = None

    def reboot(self) -> None:
        """Boots with the startup configuration; timers and staged changes are gone."""
        self.running = self.startup
        self.staged.clear()
        self.deadline_ns = None

    def fault(self, verb: str) -> Fault | None:
        """Returns the fault of this call of `verb`, which it counts."""
        self.calls[verb] = count = self.calls.get(verb, 0) + 1
        return next((one for one in self.faults if one.verb == verb and one.nth in {0, count}), None)


class MemorySession:
    """A session with a `MemoryDevice`; satisfies `DeviceSession`."""

    def __init__(self, device: MemoryDevice) -> None:
        self._device = device
        self._open = False
        self._may_be_saved = False

    def open(self) -> None:
        """Connects."""
        self._do("open", self._connect)

    def _connect(self) -> None:
        self._open = True

    def fetch(self) -> str:
        """Returns the running configuration."""
        return self._do("fetch", lambda: self._device.running)

    def stage(self, change: StagedChange) -> str:
        """Keeps the change; returns "": this device has no words of its own."""

        def work() -> str:
            device = self._device
            if change.disruptive:
                device.staged[change.transaction] = change.full_config
            else:
                device.staged[change.transaction] = device.apply(device.running, change.payload)
            return ""

        return self._do("stage", work)

    def commit(self, change: StagedChange, *, confirm_s: int) -> None:
        """Applies the staged change under a timer."""

        def work() -> None:
            device = self._device
            device.before[change.transaction] = device.running
            device.timer = change.transaction
            device.running = device.staged.pop(change.transaction)
            device.deadline_ns = device.clock.now_ns() + confirm_s * 10**9

        self._do("commit", work)

    def confirm(self, change: StagedChange) -> None:
        """Stops the timer."""

        def work() -> None:
            if self._device.deadline_ns is None:
                raise CommitTimeoutError("no timer is running", where=self._device.name)
            self._device.deadline_ns = None

        del change
        self._do("confirm", work)

    def save(self, change: StagedChange) -> None:
        """Copies running to startup."""

        def work() -> None:
            self._device.startup = self._device.running

        self._may_be_saved = True
        del change
        self._do("save", work)

    def revert(self, change: StagedChange) -> None:
        """Puts back what was before the commit."""

        def work() -> None:
            self._device.running = self._device.before.get(change.transaction, self._device.running)
            self._device.staged.pop(change.transaction, None)
            self._device.deadline_ns = None
            if self._may_be_saved:
                self._device.startup = self._device.running

        self._do("revert", work)

    def recovery(self, change: StagedChange) -> tuple[str, ...]:
        """Returns one line for a device that has no command line."""
        return (f"revert {change.transaction}",)

    def discard(self, change: StagedChange) -> None:
        """Drops the staged change."""

        def work() -> None:
            self._device.staged.pop(change.transaction, None)

        self._do("discard", work)

    def run(self, command: str) -> str:
        """Returns "": this device has no commands."""
        del command
        return self._do("run", str)

    def close(self) -> None:
        """Ends the session."""
        self._open = False

    def _do(self, verb: str, work: Callable[[], Result]) -> Result:
        device = self._device
        device.tick()
        fault = device.fault(verb)
        if verb != "open" and not self._open:
            raise ConnectError("the session is closed", where=device.name)
        if fault is not None:
            self._before(fault)
        try:
            result = work()
        except (ValueError, FabricError) as error:
            if isinstance(error, DeviceError):
                raise
            raise CommandRejectedError("the device refused the change", where=device.name, found=str(error)) from error
        if fault is not None:
            self._after(fault)
        return result

    def _before(self, fault: Fault) -> None:
        name, what = self._device.name, f"scripted fault at {fault.verb}"
        match fault.kind:
            case FaultKind.LOST_BEFORE:
                self._open = False
                raise ConnectError(what, where=name)
            case FaultKind.REBOOT:
                self._open = False
                self._device.reboot()
                raise ConnectError(what, where=name, found="the device boots")
            case FaultKind.DENIED:
                raise AuthError(what, where=name)
            case FaultKind.REJECTED:
                raise CommandRejectedError(what, where=name, found="% Invalid input")
            case FaultKind.ROLLBACK_REFUSED:
                raise RollbackFailedError(what, where=name, found="Modification of PFC_WD table is illegal")
            case FaultKind.LOST_AFTER | FaultKind.HALF_DONE | FaultKind.SLOW | FaultKind.TIMER_DEAD:
                return

    def _after(self, fault: Fault) -> None:
        name, what = self._device.name, f"scripted fault at {fault.verb}"
        match fault.kind:
            case FaultKind.LOST_AFTER:
                self._open = False
                raise ConnectError(what, where=name)
            case FaultKind.HALF_DONE:
                new, old = self._device.running.split("\n"), self._device.before[self._device.timer].split("\n")
                self._device.running = "\n".join([*new[: len(new) // 2], *old[len(old) // 2 :]])
                raise CommandRejectedError(what, where=name, found="applied in part")
            case FaultKind.SLOW:
                self._device.clock.sleep_s(fault.seconds)
                self._device.tick()
            case FaultKind.TIMER_DEAD:
                self._device.deadline_ns = _NEVER_NS
            case _:
                return
