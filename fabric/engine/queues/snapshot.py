"""What waits and what flies, as frozen data: for metrics, and for tests that hold the dealer to its bounds."""

from dataclasses import dataclass
from typing import Literal

from fabric.engine.queues.fleet import Fleet
from fabric.engine.queues.ledger import Ledger
from fabric.engine.queues.load import LiveQueue, Path
from fabric.engine.queues.request import QueueId

__all__ = ("DealerLoad", "QueueLoad", "WindowLoad", "snapshot")


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """One queue.

    Attributes:
        queue: its id.
        target: what it serves.
        path: its ports.
        state: open, draining (removed) or lost.
        commands: in flight.
        limit: commands that may fly.
        bytes: in flight.
    """

    queue: QueueId
    target: str
    path: Path
    state: Literal["open", "draining", "lost"]
    commands: int
    limit: int
    bytes: int


@dataclass(frozen=True, slots=True)
class WindowLoad:
    """One bound.

    Attributes:
        kind: target, host-port (what is read comes in there) or target-port (what is written).
        name: of the target or port.
        used: bytes in flight.
        limit: bytes that may fly.
    """

    kind: str
    name: str
    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class DealerLoad:
    """All of a dealer.

    Attributes:
        requests: that have not ended.
        draining: failed requests of which something still flies.
        waiting: transfers that were not dealt; those of failed requests count until they are dropped.
        queues: each queue.
        windows: each bound.
    """

    requests: int
    draining: int
    waiting: int
    queues: tuple[QueueLoad, ...]
    windows: tuple[WindowLoad, ...]


def snapshot(fleet: Fleet, ledger: Ledger, *, waiting: int) -> DealerLoad:
    """Returns the load of a dealer."""
    windows = tuple(WindowLoad(kind, name, window.used, window.limit) for kind, name, window in fleet.windows())
    queues = tuple(_queue(queue) for queue in fleet.queues())
    return DealerLoad(len(ledger.live), len(ledger.draining), waiting, queues, windows)


def _queue(live: LiveQueue) -> QueueLoad:
    state: Literal["open", "draining", "lost"] = "open"
    if not live.is_open:
        state = "lost" if live.is_lost else "draining"
    queue = live.queue
    return QueueLoad(live.id, queue.target, queue.path, state, len(live.flying), live.limit, live.bytes)
