"""Steps of one knob from the best settings, and places far from them. Remembers which knobs changed nothing."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from fabric.tune.essence import Essence
from fabric.tune.knobs import NAMES, Knobs, Space
from fabric.tune.sampling import latin_hypercube
from fabric.tune.standing import Book, Standing

__all__ = ("Steps",)

FAR = 32  # places drawn until one is worth a trial
FLAT = 3  # settings of one transfer size that are as good as its best: something else bounds them all
SAME = 0.01  # what differs by less has changed nothing
WINDOWS = ["target_bytes", "receiver_bytes"]
ORDER = ("+".join(WINDOWS), "receiver_bytes", "queues", "transfer_bytes", "target_bytes", "depth", "dealing")


@dataclass(slots=True)
class Steps:
    """The local part of a search.

    Args:
        is_fresh: whether a setting may be tried: nothing that does the same was, and nothing forbids it.
        essence_of: what of a setting matters; a step leads to the next one that differs in it.
    """

    space: Space
    book: Book
    is_fresh: Callable[[Knobs], bool]
    essence_of: Callable[[Knobs], Essence]
    _way: tuple[str, bool] | None = None
    _from: tuple[Knobs, tuple[str, bool] | None] | None = None
    _idle: Counter[str] = field(default_factory=Counter)
    _flat: Counter[int] = field(default_factory=Counter)

    def step(self, turn: int = 0) -> tuple[Knobs, str] | None:
        """Returns a setting one step from a base that was not tried; the way that helped last goes first.

        Args:
            turn: 0 for the leader as base, else which of the best settings with other transfer sizes: they are the
                other hills.
        """
        bases = self._bases()
        if not bases:
            return None
        base = bases[0] if turn == 0 or len(bases) == 1 else bases[1 + (turn - 1) % (len(bases) - 1)]
        here = self.space.nearest(base.knobs)
        own = self.essence_of(here)
        around = self.space.neighbours(here, lambda knobs: self.essence_of(knobs) != own)
        for one in (here, *sorted(around, key=lambda knobs: self._late(here, knobs))):
            if self.is_fresh(one):
                self._from = base.knobs, _way(here, one)
                return one, "step"
        return None

    def any_step(self) -> tuple[Knobs, str] | None:
        """Returns a step from whichever of the bases has one left."""
        return next(filter(None, map(self.step, range(len(self.space.transfer_bytes)))), None)

    def far(self, seed: int) -> tuple[Knobs, str] | None:
        """Returns a setting drawn from all that is fresh and not on a flat top."""
        self._from = None
        for steps in latin_hypercube(self.space, FAR, seed):
            knobs = self.space.at(steps)
            if not self.is_flat(knobs) and self.is_fresh(knobs):
                return knobs, "far"
        return None

    def is_flat(self, knobs: Knobs) -> bool:
        """Returns whether all settings of this transfer size are as good as its best."""
        return self._flat[knobs.transfer_bytes] >= FLAT

    def tops(self) -> dict[int, float]:
        """Returns transfer size → score of its best feasible setting."""
        return {one.knobs.transfer_bytes: self.book.worth(one) for one in reversed(self.book.ranked())}

    def learn(self, knobs: Knobs, tops: dict[int, float], before: Standing | None) -> None:
        """Takes note of what a trial showed.

        Args:
            knobs: what was measured.
            tops: as of `tops` before it.
            before: leader before it.
        """
        base, way = self._from or (None, None)
        self._from = None
        if knobs not in self.book:
            return
        here = self.book.worth(self.book[knobs])
        if base is not None and way is not None:
            there = self.book.worth(self.book[base])
            self._idle[way[0]] += abs(here - there) < SAME * there
        top = tops.get(knobs.transfer_bytes)
        if top is not None:
            self._flat[knobs.transfer_bytes] += abs(here - top) < SAME * top
        after = self.book.leader()
        if before and after and after.knobs == knobs:
            self._way = _way(before.knobs, knobs)

    def forget(self) -> None:
        """Says that the next setting is no step."""
        self._from = None

    def _bases(self) -> list[Standing]:
        """Returns the best feasible setting of each transfer size, best first; without those whose top is flat."""
        best: dict[int, Standing] = {}
        for one in self.book.ranked():
            best.setdefault(one.knobs.transfer_bytes, one)
        return [one for one in best.values() if not self.is_flat(one.knobs)] or list(best.values())

    def _late(self, here: Knobs, there: Knobs) -> tuple[bool, int, int]:
        """Returns how late this step is tried: after those whose knob has changed something so far."""
        way = _way(here, there)
        return way != self._way, self._idle[way[0]] if way else 0, ORDER.index(way[0]) if way else len(ORDER)


def _way(before: Knobs, after: Knobs) -> tuple[str, bool] | None:
    """Returns (knobs, whether they rose) where exactly one knob differs, or both windows do."""
    moved = [name for name in NAMES if getattr(before, name) != getattr(after, name)]
    if len(moved) != 1 and moved != WINDOWS:
        return None
    return "+".join(moved), getattr(after, moved[0]) > getattr(before, moved[0])
