"""A session that reads and stages for real and applies nothing: what follows the commit is simulated."""

from collections.abc import Callable

from fabric.push.session import DeviceSession, StagedChange

__all__ = ("DryRunSession",)


class DryRunSession:
    """Wraps a real session; satisfies `DeviceSession`.

    Args:
        inner: the device, whose own dry run judges the change.
        apply: `Nos.apply`: configuration and payload → configuration.
    """

    def __init__(self, inner: DeviceSession, apply: Callable[[str, str], str]) -> None:
        self._inner = inner
        self._apply = apply
        self._simulated: str | None = None

    def open(self) -> None:
        """Connects."""
        self._inner.open()

    def fetch(self) -> str:
        """Returns the running configuration, with the change once it was "committed"."""
        return self._inner.fetch() if self._simulated is None else self._simulated

    def stage(self, change: StagedChange) -> str:
        """Lets the device judge the change; returns its diff. Nothing stays staged."""
        words = self._inner.stage(change)
        self._inner.discard(change)
        return words

    def commit(self, change: StagedChange, *, confirm_s: int) -> None:
        """Simulates the change."""
        del confirm_s
        before = self._inner.fetch()
        self._simulated = change.full_config if change.disruptive else self._apply(before, change.payload)

    def confirm(self, change: StagedChange) -> None:
        """Does nothing: no timer runs."""

    def save(self, change: StagedChange) -> None:
        """Does nothing: nothing has changed."""

    def revert(self, change: StagedChange) -> None:
        """Forgets the simulated change."""
        del change
        self._simulated = None

    def recovery(self, change: StagedChange) -> tuple[str, ...]:
        """Returns nothing: the device was not changed."""
        del change
        return ()

    def discard(self, change: StagedChange) -> None:
        """Drops what the device may still hold of the change."""
        self._inner.discard(change)

    def run(self, command: str) -> str:
        """Returns the output of a read-only command."""
        return self._inner.run(command)

    def close(self) -> None:
        """Ends the session."""
        self._inner.close()
