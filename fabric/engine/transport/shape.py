"""How slow a target is, as data: service time a queue, latency from a seed, one link for all. Knows no command.

What is measured on a shaped target is a model's result, and has to be titled so.
"""

import math
import random
from dataclasses import dataclass
from typing import Literal

from fabric.engine.transport.faults import Fault

__all__ = ("UNSHAPED", "Latency", "Shape", "Shaper")

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of extra time per command; commands do not wait for each other.

    Attributes:
        kind: `fixed`, `uniform` (from 0 to twice the median), `exponential` or `lognormal`.
        median_ns: half of the commands take no longer.
        spread: sigma of the logarithm, for lognormal: 0.5 puts p99 at 3.2 times the median.
    """

    kind: Literal["fixed", "uniform", "exponential", "lognormal"] = "fixed"
    median_ns: int = 0
    spread: float = 0.0

    def draw(self, source: random.Random) -> int:
        """Returns nanoseconds."""
        match self.kind:
            case "fixed":
                return self.median_ns
            case "uniform":
                return round(source.uniform(0, 2 * self.median_ns))
            case "exponential":
                return round(source.expovariate(math.log(2) / self.median_ns)) if self.median_ns else 0
            case "lognormal":
                return round(self.median_ns * source.lognormvariate(0.0, self.spread))


@dataclass(frozen=True, slots=True)
class Shape:
    """The whole model of a target.

    Attributes:
        service_ns: a queue carries out one command at a time, each for so long.
        queue_bytes_per_s: and so many bytes a second; None: as many as come.
        latency: added to each command, in parallel.
        link_bytes_per_s: cap of all that the target sends, data first come first served; None: no cap.
        faults: what goes wrong.
        seed: of latency and faults.
    """

    service_ns: int = 0
    queue_bytes_per_s: int | None = None
    latency: Latency = Latency()
    link_bytes_per_s: int | None = None
    faults: tuple[Fault, ...] = ()
    seed: int = 0


UNSHAPED = Shape()


class Shaper:
    """The clock hands of one shape: when each queue and the link are free again."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._random = random.Random(shape.seed)  # noqa: S311, repeatable on purpose
        self._queue_free_ns: dict[int, int] = {}
        self._link_free_ns = 0

    def storage_done_ns(self, peer: int, length: int, now_ns: int) -> int:
        """Returns when a command of `length` bytes that came now is carried out."""
        shape = self.shape
        busy_ns = shape.service_ns
        if shape.queue_bytes_per_s:
            busy_ns += length * _SECOND // shape.queue_bytes_per_s
        if busy_ns:
            now_ns = max(now_ns, self._queue_free_ns.get(peer, 0)) + busy_ns
            self._queue_free_ns[peer] = now_ns
        return now_ns + shape.latency.draw(self._random)

    def link_done_ns(self, length: int, now_ns: int) -> int:
        """Returns when `length` bytes that are sent now have left."""
        rate = self.shape.link_bytes_per_s
        if rate is None:
            return now_ns
        self._link_free_ns = max(now_ns, self._link_free_ns) + length * _SECOND // rate
        return self._link_free_ns

    def forget(self, peer: int) -> None:
        """Drops the state of a queue that is gone."""
        self._queue_free_ns.pop(peer, None)
