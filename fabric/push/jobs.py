"""What a caller hands to a push: one job per device, and the options of the run. Holds no secret."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from fabric.push.session import DeviceSession, StagedChange

__all__ = ("STOPPED", "TRANSACTION", "Compare", "DeviceJob", "PushOptions", "SessionFactory", "never")

SessionFactory: TypeAlias = Callable[[], DeviceSession]
"""Makes a session that is not open yet; called once per job, in the worker that runs it."""

Compare: TypeAlias = Callable[[str], str]
"""Takes a running configuration; returns "" if it is as it should be, else what differs, in one line."""

STOPPED: Final = "the run was stopped"
"""How the error of a device begins that was left alone because its run was stopped."""

TRANSACTION: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def never() -> bool:
    """Returns False: nobody asks to stop."""
    return False


@dataclass(frozen=True, slots=True)
class DeviceJob:
    """One device and what shall happen to it.

    Attributes:
        make_session: how to reach it.
        change: what to apply. An empty payload without `full_config` means that nothing is to be done.
        check_base: is the device still what the change was made from?
        verify: is the device as intended?
        is_back: is the device as it was before the change? Asked after a revert; None asks `check_base`.
        changes: number of paths that the change touches.
        diff: our own words for the change, shown where the device has none.
    """

    device: str
    nos: str
    make_session: SessionFactory
    change: StagedChange
    check_base: Compare
    verify: Compare
    changes: int = 0
    diff: str = ""
    is_back: Compare | None = None

    def __post_init__(self) -> None:
        if not TRANSACTION.fullmatch(self.change.transaction):
            raise ValueError(
                f"{self.device}: the transaction id {self.change.transaction!r} must match {TRANSACTION.pattern}: "
                "it becomes a name on the device"
            )


@dataclass(frozen=True, slots=True)
class PushOptions:
    """How a push is done.

    Attributes:
        run: id of the run; names its folder in the state directory.
        owner: who pushes, for the lock: a user name.
        confirm_s: seconds until the device goes back by itself; 1 … 86399.
        workers: devices at a time.
        allow_disruptive: a change that interrupts traffic may be applied.
        settle_s: seconds that a device gets, after its timer, to be back and reachable.
        retry_s: seconds between two attempts to reach or read it.
        margin_s: seconds that must be left on the timer for a confirmation to be sent.
        rehearsal: nothing is applied: the sessions are dry.
    """

    run: str
    owner: str = ""
    confirm_s: int = 300
    workers: int = 8
    allow_disruptive: bool = False
    settle_s: float = 120.0
    retry_s: float = 2.0
    margin_s: float = 5.0
    rehearsal: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.confirm_s <= 86399:  # EOS `commit timer` takes 00:00:01 … 23:59:59 (unconfirmed)
            raise ValueError(f"confirm_s is {self.confirm_s}, expected 1 … 86399 seconds")
        if self.workers < 1:
            raise ValueError(f"workers is {self.workers}, expected at least 1")
        if self.margin_s >= self.confirm_s:
            raise ValueError(f"margin_s is {self.margin_s:g}, expected less than confirm_s ({self.confirm_s})")
