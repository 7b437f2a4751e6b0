"""What two settings that do the same share: a bound that nothing reaches changes nothing. Pure arithmetic.

Queues beyond the commands that may fly stay empty, a queue with room for twice its even share of them is as good as one
of any depth, of two windows the tighter hides the other, and no window holds more than the load asks for at a time. A
search that knows this measures nothing twice, and sees that few deep queues and a narrow window are near to each other,
though each of their knobs differs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import ceil, inf, log2, prod
from random import Random

from fabric.tune.knobs import NUMBERS, Knobs, Space

__all__ = ("Essence", "Offer", "are_beside", "essence", "essences")

EVEN = 2  # times an even share of the commands: what a queue may have to hold when dealing is uneven
BESIDE = 2  # the distance within which what lost by chance is likely to lose too
MOST = 50_000  # settings that are looked at; a larger space is sampled


@dataclass(frozen=True, slots=True)
class Offer:
    """What a load asks for at a time.

    Attributes:
        fan_in: targets that send to one receiver.
        requests: that one receiver has open at a time, None where that is not known. chunk_bytes: of one.
    """

    fan_in: int = 1
    requests: int | None = None
    chunk_bytes: int = 0

    def most_bytes(self, transfer_bytes: int) -> tuple[float, float]:
        """Returns the most that is ever wanted: of one target, and of all of them by one receiver."""
        if self.requests is None:
            return inf, inf
        pieces = ceil(self.chunk_bytes / transfer_bytes)
        each = self.requests * transfer_bytes
        return each * ceil(pieces / self.fan_in), each * pieces


@dataclass(frozen=True, slots=True)
class Essence:
    """What of a setting can matter; each field as in `Knobs`, lowered to what can be reached.

    Attributes:
        dealing: "" where there is one queue to deal to.
    """

    queues: int
    depth: int
    transfer_bytes: int
    dealing: str
    target_bytes: int
    receiver_bytes: int

    def place(self, dealings: tuple[str, ...]) -> tuple[float, ...]:
        """Returns coordinates in which equal ratios are equally far: 1 is a factor of 2, or another dealing policy."""
        numbers = (self.queues, self.depth, self.transfer_bytes, self.target_bytes, self.receiver_bytes)
        return (*map(log2, numbers), float(dealings.index(self.dealing)) if self.dealing in dealings else 0.0)


def are_beside(one: Essence, other: Essence) -> bool:
    """Returns whether no number of the two differs by more than a factor of two."""
    return all(
        getattr(one, name) <= BESIDE * getattr(other, name) and getattr(other, name) <= BESIDE * getattr(one, name)
        for name in NUMBERS
    )


def essence(knobs: Knobs, offer: Offer) -> Essence:
    """Returns what matters of a setting under such a load."""
    of_one, of_all = offer.most_bytes(knobs.transfer_bytes)
    receiver = int(min(knobs.receiver_bytes, of_all))
    target = int(min(knobs.target_bytes, receiver, of_one, knobs.queues * knobs.depth * knobs.transfer_bytes))
    commands = ceil(target / knobs.transfer_bytes)
    queues = min(knobs.queues, commands)
    target = min(target, EVEN * ceil(receiver / offer.fan_in))
    return Essence(
        queues=queues,
        depth=min(knobs.depth, EVEN * ceil(commands / queues)),
        transfer_bytes=knobs.transfer_bytes,
        dealing=knobs.dealing if queues > 1 else "",
        target_bytes=target,
        receiver_bytes=min(receiver, offer.fan_in * target),
    )


def essences(space: Space, offer: Offer, seed: int) -> dict[Essence, Knobs]:
    """Returns each essence of the space with the lowest setting that has it."""
    sizes = space.sizes()
    dice = Random(seed)  # noqa: S311, repeatable on purpose
    places: Iterable[tuple[int, ...]] = product(*map(range, sizes))
    if prod(sizes) > MOST:
        places = sorted({tuple(map(dice.randrange, sizes)) for _ in range(MOST)})
    found: dict[Essence, Knobs] = {}
    for steps in places:
        knobs = space.at(steps)
        found.setdefault(essence(knobs, offer), knobs)
    return found
