"""What is measured: rows, and one result of one contender. Knows nobody who reads."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

__all__ = ("KIB", "MARK", "MIB", "Result", "Row", "mark", "places")

KIB, MIB = 1 << 10, 1 << 20
MARK = 64 * KIB  # each run of so many bytes of a file starts with its own number


@dataclass(frozen=True, slots=True)
class Row:
    """Random reads of one size.

    Attributes:
        place: "tmpfs" or "disk".
        bytes: of a read.
        depth: reads in flight at most.
        ranges: that a request of ours reads.
        least: the bar: the lower end of the interval of ours to fio; None: its upper end must reach 1.
    """

    place: str
    bytes: int
    depth: int
    ranges: int
    least: float | None

    @property
    def name(self) -> str:
        """As it is printed."""
        size = f"{self.bytes // MIB} MiB" if self.bytes >= MIB else f"{self.bytes // KIB} KiB"
        return f"{self.place}, {size} x {self.depth}"


class Result(NamedTuple):
    """One round of one contender: MiB/s, and seconds of CPU for each GiB."""

    mib_s: float
    cpu_s_gib: float


def places(count: int, each: int) -> Iterator[tuple[int, ...]]:
    """Yields batches of places for ever: each place of a file once, in an order of this process alone, then again.

    So no contender reads what another has just read into a cache of the host's, and none reads a part of the file only.
    """
    order = random.sample(range(count), count)
    return cycle([tuple(order[at : at + each]) for at in range(0, count - each + 1, each)])


def mark(offset: int) -> bytes:
    """Returns what stands at the start of the run at `offset`."""
    return (offset // MARK).to_bytes(8, "little")
