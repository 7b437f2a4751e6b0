"""The marking or early-drop curve of one queue: exact integers, randomness as an argument. Knows no frame."""

from dataclasses import dataclass
from typing import Protocol

from fabric.qos import AqmKind

__all__ = ("Curve", "Draw")


class Draw(Protocol):
    """A source of random integers, `random.Random` for one."""

    def randrange(self, stop: int, /) -> int:
        """Returns one of 0..stop-1, each as likely."""
        ...


@dataclass(frozen=True, slots=True)
class Curve:
    """Nothing up to Kmin, a ramp to Pmax at Kmax, then everything or still Pmax.

    Attributes:
        kind: mark or drop.
        all_above_kmax: beyond Kmax every packet is selected; else it stays at Pmax (Capabilities.marks_all_above_kmax).
    """

    kind: AqmKind
    kmin_bytes: int
    kmax_bytes: int
    pmax_percent: int
    all_above_kmax: bool = True

    def selects(self, depth_bytes: int, draw: Draw) -> bool:
        """Returns whether the packet that sees this queue depth is selected."""
        if depth_bytes <= self.kmin_bytes:
            return False
        if depth_bytes > self.kmax_bytes:
            return self.all_above_kmax or draw.randrange(100) < self.pmax_percent
        ramp = self.kmax_bytes - self.kmin_bytes
        return draw.randrange(100 * ramp) < self.pmax_percent * (depth_bytes - self.kmin_bytes)
