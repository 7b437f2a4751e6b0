"""A descriptor that is readable while something waits to be polled. An eventfd, written at most once between polls."""

import contextlib
import os

__all__ = ("Signal",)


class Signal:
    """Set from any thread, cleared by the poller *before* it looks: so nothing that is set later is missed."""

    __slots__ = ("_fd", "_is_set")

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_set = False

    def fileno(self) -> int:
        """Returns the descriptor."""
        return self._fd

    def set(self) -> None:
        """Makes it readable."""
        if not self._is_set:
            self._is_set = True
            os.eventfd_write(self._fd, 1)

    def clear(self) -> None:
        """Makes it unreadable.

        It reads even when the flag is down: another thread may have written after an earlier `clear` took its flag.
        It reads before it takes the flag: a `set` in between would be read away, and leave a flag that nobody clears.
        """
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._fd)
        self._is_set = False

    def lower(self) -> None:
        """Takes note that whoever sets it read the descriptor too; for one thread alone."""
        self._is_set = False

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self._fd)
