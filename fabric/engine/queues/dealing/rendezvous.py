"""Rendezvous: a key's transfers always go to the same queues, and few move when queues come or go.

Keys fall into shards, and the queue with the highest score owns a shard (Thaler and Ravishankar, A Name-Based Mapping
Scheme for Rendezvous, 1998). When a queue goes, its shards move and no other; when one of n comes, it takes about
1/n of them. A transfer whose owner has no room goes to the emptiest queue instead of waiting.
"""

from collections.abc import Sequence
from typing import Final

from fabric.engine.queues.dealing.base import arguments
from fabric.engine.queues.dealing.least_bytes import LeastBytes
from fabric.engine.queues.load import LivePath, LiveQueue
from fabric.engine.queues.request import QueueId, Transfer
from fabric.policy import Parameter

__all__ = ("Rendezvous", "rendezvous")

MASK: Final = (1 << 64) - 1
# Of n queues the heaviest has about 1 + sqrt(2 n ln n / m) of the mean: 1.15 for n = 16 (simulation study 4.3, step 7)
SHARDS: Final = 4096


def rendezvous(parameters: Sequence[Parameter]) -> "Rendezvous":
    """Returns the policy; parameter `shards`: how finely keys are spread."""
    return Rendezvous(arguments("rendezvous", parameters, {"shards": (SHARDS, 1, 1 << 20)})["shards"])


def score(queue: QueueId, shard: int) -> int:
    """Returns 64 bits that look random: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over both numbers."""
    value = (queue * 0x9E3779B97F4A7C15 + shard * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


class Rendezvous:
    """A table from shard to owner. A transfer costs one look-up; a queue that comes or goes costs O(shards)."""

    def __init__(self, shards: int = SHARDS) -> None:
        self._owners: list[tuple[int, LiveQueue] | None] = [None] * shards
        self._queues: dict[QueueId, LiveQueue] = {}
        self._rest = LeastBytes()

    def owner(self, spread: int) -> QueueId | None:
        """Returns the home of transfers with this `spread`, None without queues."""
        owned = self._owners[spread % len(self._owners)]
        return None if owned is None else owned[1].id

    def added(self, queue: LiveQueue) -> None:
        """Gives the queue the shards that it scores highest for."""
        self._rest.added(queue)
        self._queues[queue.id] = queue
        owners = self._owners
        for shard, owned in enumerate(owners):
            own = score(queue.id, shard)
            if owned is None or own > owned[0]:
                owners[shard] = (own, queue)

    def removed(self, queue: LiveQueue) -> None:
        """Gives the shards of the queue to those that score next."""
        self._rest.removed(queue)
        del self._queues[queue.id]
        for shard, owned in enumerate(self._owners):
            if owned is not None and owned[1] is queue:
                self._owners[shard] = max(
                    ((score(one.id, shard), one) for one in self._queues.values()),
                    key=lambda pair: pair[0],
                    default=None,
                )

    def changed(self, queue: LiveQueue) -> None:
        """Takes the queue's load anew."""
        self._rest.changed(queue)

    def choose(self, transfer: Transfer, paths: Sequence[LivePath]) -> LiveQueue:
        """Returns the owner if it has room, else the emptiest queue."""
        owned = self._owners[transfer.spread % len(self._owners)]
        if owned is not None and owned[1].room and owned[1].path in paths:
            return owned[1]
        return self._rest.choose(transfer, paths)
