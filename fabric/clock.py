"""What time is, as an argument: the protocol only. The system clock is made in `workflow`."""

from typing import Protocol

__all__ = ("Clock", "FakeClock")


class Clock(Protocol):
    """A source of time that a caller hands in."""

    def now_ns(self) -> int:
        """Returns monotonic nanoseconds."""
        ...

    def unix_s(self) -> float:
        """Returns seconds since 1970-01-01 UTC."""
        ...

    def sleep_s(self, seconds: float) -> None:
        """Returns after `seconds`."""
        ...


class FakeClock:
    """A clock that stands still until told; sleeping moves it."""

    def __init__(self, start_unix_s: float = 0.0) -> None:
        self._start_unix_s = start_unix_s
        self._elapsed_ns = 0

    def now_ns(self) -> int:
        """Returns nanoseconds since the clock was made."""
        return self._elapsed_ns

    def unix_s(self) -> float:
        """Returns the start plus what has passed."""
        return self._start_unix_s + self._elapsed_ns / 1e9

    def sleep_s(self, seconds: float) -> None:
        """Moves the clock by `seconds`."""
        self._elapsed_ns += round(seconds * 1e9)
