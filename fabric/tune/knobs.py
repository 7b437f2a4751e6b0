"""What may be turned, and within what: the knobs of a queue policy, and the ladders of values that a search walks.

A ladder has few values on purpose: throughput is flat between neighbours, so that a finer one would spend trials on
noise. Knows no measurement and no search.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import log
from typing import Final

from fabric.errors import IntentError, Problem
from fabric.policy import ShardPolicy, checked, problems

__all__ = ("NAMES", "NUMBERS", "Knobs", "Space", "connect_defaults", "ladder", "serial")

KIB, MIB = 1 << 10, 1 << 20
NAMES: Final = ("queues", "depth", "transfer_bytes", "dealing", "target_bytes", "receiver_bytes")
NUMBERS: Final = tuple(name for name in NAMES if name != "dealing")
CONNECT_DEPTH: Final = 128  # Linux, include/linux/nvme-rdma.h: NVME_RDMA_DEFAULT_QUEUE_SIZE


@dataclass(frozen=True, slots=True)
class Knobs:
    """One setting; each field means what it means in `ShardPolicy`."""

    queues: int
    depth: int
    transfer_bytes: int
    dealing: str = "least-bytes"
    target_bytes: int = 32 * MIB
    receiver_bytes: int = 32 * MIB

    @classmethod
    def of(cls, policy: ShardPolicy) -> "Knobs":
        """Returns the knobs of a policy."""
        return cls(**{name: getattr(policy, name) for name in NAMES})

    def policy(self, base: ShardPolicy | None = None) -> ShardPolicy:
        """Returns `base`, or the default policy, with these knobs.

        Raises:
            IntentError: that is no policy that may be used.
        """
        turned = {name: getattr(self, name) for name in NAMES}
        if base is not None and base.dealing != self.dealing:
            turned["parameters"] = ()  # they are arguments of the other dealing policy
        return checked(replace(base or ShardPolicy(), **turned))

    def flying_bytes(self, targets: int = 1) -> int:
        """Returns the most bytes that may fly towards one receiver from so many targets."""
        each = min(self.queues * self.depth * self.transfer_bytes, max(self.target_bytes, self.transfer_bytes))
        return min(targets * each, max(self.receiver_bytes, self.transfer_bytes))

    def covers(self, other: "Knobs") -> bool:
        """Returns whether no number of `other` is above the one here: what lost there may lose here too."""
        return all(getattr(self, name) >= getattr(other, name) for name in NUMBERS)


def ladder(low: int, high: int, *, between: bool = False) -> tuple[int, ...]:
    """Returns low, its doubles, and high; with `between` also 3/2 of each."""
    steps = {low, high}
    step = low
    while step < high:
        steps |= {step, step * 3 // 2 if between else step}
        step *= 2
    return tuple(sorted(one for one in steps if low <= one <= high))


@dataclass(frozen=True, slots=True)
class Space:
    """The values that each knob may take, ascending; one value fixes a knob.

    Raises:
        IntentError: a ladder is empty or not ascending, no transfer fits a window, or an end of one is no policy.
    """

    queues: tuple[int, ...]
    depth: tuple[int, ...]
    transfer_bytes: tuple[int, ...]
    dealing: tuple[str, ...] = ("least-bytes",)
    target_bytes: tuple[int, ...] = (32 * MIB,)
    receiver_bytes: tuple[int, ...] = (32 * MIB,)

    def __post_init__(self) -> None:
        found = [
            Problem("a ladder has to ascend, from 1 or more", field=name, found=str(steps))
            for name in NUMBERS
            if not (steps := self.steps(name)) or list(steps) != sorted({*steps}) or int(steps[0]) < 1
        ]
        if not self.dealing:
            found.append(Problem("no dealing policy is named", field="dealing"))
        if not found and min(self.target_bytes[-1], self.receiver_bytes[-1]) < self.transfer_bytes[0]:
            found.append(Problem("no transfer fits the windows", field="transfer_bytes"))
        if not found:
            found += [one for end in (0, -1) for one in problems(self._end(end))]
        if found:
            raise IntentError(found)

    @classmethod
    def between(cls, *, queues: int, depth: int, mdts_bytes: int, window_bytes: int = 64 * MIB) -> "Space":
        """Returns the space below what a controller grants: queues, commands in each, bytes of a command."""
        smallest = min(64 * KIB, mdts_bytes)  # the least that simulation study 4.3, step 2 considers
        return cls(
            queues=ladder(1, queues, between=True),
            depth=ladder(1, depth),
            transfer_bytes=ladder(smallest, mdts_bytes),
            dealing=("least-bytes", "round-robin"),
            target_bytes=ladder(mdts_bytes, max(window_bytes, mdts_bytes)),
            receiver_bytes=ladder(mdts_bytes, max(window_bytes, mdts_bytes)),
        )

    def steps(self, name: str) -> tuple[int, ...] | tuple[str, ...]:
        """Returns the ladder of one knob."""
        found: tuple[int, ...] | tuple[str, ...] = getattr(self, name)
        return found

    def sizes(self) -> tuple[int, ...]:
        """Returns how many steps each ladder has, in the order of NAMES."""
        return tuple(len(self.steps(name)) for name in NAMES)

    def at(self, steps: Sequence[int]) -> Knobs:
        """Returns the knobs at those steps of the ladders; windows are raised to hold one transfer."""
        chosen = {name: self.steps(name)[step] for name, step in zip(NAMES, steps, strict=True)}
        return self._sound(Knobs(**chosen))  # type: ignore[arg-type]  # each ladder has its knob's type

    def place(self, knobs: Knobs) -> tuple[int, ...]:
        """Returns the steps that are nearest to the knobs, by ratio."""
        return tuple(self._nearest(name, getattr(knobs, name)) for name in NAMES)

    def nearest(self, knobs: Knobs) -> Knobs:
        """Returns the knobs of the space that are nearest."""
        return self.at(self.place(knobs))

    def floor(self, name: str, value: int) -> int:
        """Returns the highest step of a ladder that is not above the value, else its lowest."""
        numbers = [int(one) for one in self.steps(name)]
        return max((one for one in numbers if one <= value), default=numbers[0])

    def neighbours(self, knobs: Knobs, differs: Callable[[Knobs], bool] | None = None) -> tuple[Knobs, ...]:
        """Returns the knobs up and down of one knob, or of both windows: the tighter hides the other.

        Args:
            knobs: where to begin.
            differs: whether a setting is another one at all; those that are not are stepped over. None: each is.
        """
        here, sizes = self.place(knobs), self.sizes()
        moves = [(index,) for index in range(len(sizes))] + [
            (NAMES.index("target_bytes"), NAMES.index("receiver_bytes"))
        ]
        found = []
        for move, way in product(moves, (1, -1)):
            there = list(here)
            while True:
                there = [step + way * (index in move) for index, step in enumerate(there)]
                if not all(0 <= step < size for step, size in zip(there, sizes, strict=True)):
                    break
                one = self.at(there)
                if one != knobs and (differs is None or differs(one)):
                    found.append(one)
                    break
        return tuple(dict.fromkeys(found))

    def _end(self, index: int) -> ShardPolicy:
        knobs = self._sound(Knobs(**{name: self.steps(name)[index] for name in NAMES}))  # type: ignore[arg-type]
        return replace(ShardPolicy(), **{name: getattr(knobs, name) for name in NAMES})

    def _nearest(self, name: str, value: int | str) -> int:
        steps = self.steps(name)
        if isinstance(value, str):
            return steps.index(value) if value in steps else 0
        return min(range(len(steps)), key=lambda index: abs(log(int(steps[index]) / value)))

    def _sound(self, knobs: Knobs) -> Knobs:
        least = knobs.transfer_bytes
        return replace(
            knobs, target_bytes=max(knobs.target_bytes, least), receiver_bytes=max(knobs.receiver_bytes, least)
        )


def connect_defaults(cores: int, mdts_bytes: int, *, depth: int = CONNECT_DEPTH) -> Knobs:
    """Returns what `nvme connect` gives when told nothing: a queue per core, 128 deep, and no window at all."""
    window = cores * depth * mdts_bytes
    return Knobs(cores, depth, mdts_bytes, "round-robin", window, window)


def serial(mdts_bytes: int) -> Knobs:
    """Returns one queue with one command in flight."""
    return Knobs(1, 1, mdts_bytes, "least-bytes", mdts_bytes, mdts_bytes)
