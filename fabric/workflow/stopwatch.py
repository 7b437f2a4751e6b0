"""How long each stage took, by the clock that was handed in."""

from collections.abc import Iterator
from contextlib import contextmanager

from fabric.clock import Clock
from fabric.report import Timing

__all__ = ("Stopwatch",)


class Stopwatch:
    """Collects one `Timing` a stage, in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timings: list[Timing] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times the block as `name`, also when it raises."""
        start_ns = self._clock.now_ns()
        try:
            yield
        finally:
            self._timings.append(Timing(name, (self._clock.now_ns() - start_ns) / 1e9))

    @property
    def timings(self) -> tuple[Timing, ...]:
        """Returns the stages so far."""
        return tuple(self._timings)
