"""The verbs of a transaction on one device. One protocol; four implementations under `push/sessions`.

Order: open → fetch → stage → commit → close, open → fetch → confirm → save, or revert. `commit` arms the device's own
timer, or our deadman, before anything changes: from then on, doing nothing brings the device back. One session object
serves one transaction: it is closed and opened again when the connection was lost, and remembers what it has done.
"""

from dataclasses import dataclass
from typing import Protocol

__all__ = ("DeviceSession", "StagedChange")


@dataclass(frozen=True, slots=True)
class StagedChange:
    """What is handed to a device.

    Attributes:
        transaction: short id, `[a-z0-9-]+`: names the session, checkpoint or unit on the device.
        payload: lines or JSON patch, from `Nos.payload`.
        rollback: the way back in the same language, for recovery commands.
        disruptive: the payload may be applied by load and reload (SONiC first install).
        full_config: the whole intended configuration, for a disruptive install; "" otherwise.
    """

    transaction: str
    payload: str
    rollback: str
    disruptive: bool = False
    full_config: str = ""


class DeviceSession(Protocol):
    """One device under a transaction. Every verb raises a `DeviceError` of the right kind."""

    def open(self) -> None:
        """Connects and logs in; checks the host key. May be called again after `close`."""
        ...

    def fetch(self) -> str:
        """Returns the running configuration."""
        ...

    def stage(self, change: StagedChange) -> str:
        """Hands the change over without applying it; returns the device's own diff, "" where it has none.

        Raises:
            CommandRejectedError: the device refused it; nothing has changed.
        """
        ...

    def commit(self, change: StagedChange, *, confirm_s: int) -> None:
        """Applies the staged change under a timer of `confirm_s` seconds that undoes it.

        A disruptive commit may cut the session; that alone is no error.
        """
        ...

    def confirm(self, change: StagedChange) -> None:
        """Stops the timer: the change stays until the next boot.

        Raises:
            CommitTimeoutError: the timer was gone already.
        """
        ...

    def save(self, change: StagedChange) -> None:
        """Makes the running configuration the one that the device boots with. May be repeated."""
        ...

    def revert(self, change: StagedChange) -> None:
        """Brings the device back to before `commit`, now, whether or not the timer was stopped. May be repeated.

        Raises:
            RollbackFailedError: the device refused and would refuse again.
        """
        ...

    def recovery(self, change: StagedChange) -> tuple[str, ...]:
        """Returns the commands that a person types on the device to bring it back; needs no connection."""
        ...

    def discard(self, change: StagedChange) -> None:
        """Drops what was staged and never committed."""
        ...

    def run(self, command: str) -> str:
        """Returns the output of a read-only command."""
        ...

    def close(self) -> None:
        """Ends the session; never raises."""
        ...
