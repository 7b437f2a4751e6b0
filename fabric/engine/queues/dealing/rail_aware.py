"""Rail aware: the port nearest to the memory, then paths that stay on one rail, then the port with fewest bytes coming.

Preferences only: when the preferred ports have no room, the transfer goes over another one rather than wait.
"""

from collections.abc import Sequence

from fabric.engine.queues.dealing.base import arguments
from fabric.engine.queues.dealing.least_bytes import LeastBytes
from fabric.engine.queues.load import LivePath, LiveQueue
from fabric.engine.queues.request import Transfer
from fabric.policy import Parameter

__all__ = ("RailAware", "rail_aware")


def rail_aware(parameters: Sequence[Parameter]) -> "RailAware":
    """Returns the policy; it has no parameters."""
    arguments("rail-aware", parameters, {})
    return RailAware()


class RailAware:
    """Deals by path first, and on the path to the queue with the fewest bytes in flight. O(paths of the target)."""

    def __init__(self) -> None:
        self._loads = LeastBytes()

    def added(self, queue: LiveQueue) -> None:
        """Takes the queue in."""
        self._loads.added(queue)

    def removed(self, queue: LiveQueue) -> None:
        """Drops the queue."""
        self._loads.removed(queue)

    def changed(self, queue: LiveQueue) -> None:
        """Takes the queue's load anew."""
        self._loads.changed(queue)

    def choose(self, transfer: Transfer, paths: Sequence[LivePath]) -> LiveQueue:
        """Returns the emptiest queue of the best path."""
        ranked = []
        for live in paths:
            strange = bool(transfer.port) and live.path.host_port != transfer.port
            coming = live.window(transfer.op).used
            ranked.append((strange, not live.path.local, coming, *self._loads.top(live)))
        return min(ranked)[-1]
