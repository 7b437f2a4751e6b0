"""What was counted, as frozen data that can be added up. Knows nothing that counts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final, Literal, TypeAlias

from fabric.engine.metrics.histogram import Histogram
from fabric.engine.queues import Path, QueueId

__all__ = ("EngineMetrics", "FlowMetrics", "PathMetrics", "QueueMetrics")

Named: TypeAlias = tuple[tuple[str, int], ...]  # counts by name, names in order

_NONE: Final = Histogram()


def _together(one: Named, two: Named) -> Named:
    return tuple(sorted((Counter(dict(one)) + Counter(dict(two))).items()))


@dataclass(frozen=True, slots=True)
class FlowMetrics:
    """One kind of transfer on one queue, or on several added up.

    Attributes:
        queueing: from `submit` until the transfer was given to the link, first dealing only.
        service: from there until it landed: what link, network and target took. Failed ones are not in it.
        transfers: that landed well.
        bytes: of those.
        retries: transfers that were dealt to this queue again after they had failed or their queue was lost.
        failures: transfers that landed with an error, by its class. Some were dealt again. What went down with
            its queue is not here: it shows as a retry, or as a request that failed.
    """

    queueing: Histogram = _NONE
    service: Histogram = _NONE
    transfers: int = 0
    bytes: int = 0
    retries: int = 0
    failures: Named = ()

    def __add__(self, other: "FlowMetrics") -> "FlowMetrics":
        """Returns both together."""
        return FlowMetrics(
            self.queueing + other.queueing,
            self.service + other.service,
            self.transfers + other.transfers,
            self.bytes + other.bytes,
            self.retries + other.retries,
            _together(self.failures, other.failures),
        )


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """One queue since the engine was opened, through every time that it was lost and came back.

    Attributes:
        queue: its id.
        target: what it serves.
        path: its ports.
        state: as it is now; lost: gone, though what flew on it may still land; gone: nothing of it can.
        in_flight: transfers on it that have not landed; those of a lost queue until it is released.
        reconnects: times it came back.
        flows: by operation (`read`, `write`, …), in the order of their first transfer.
    """

    queue: QueueId
    target: str
    path: Path
    state: Literal["open", "lost", "gone"]
    in_flight: int
    reconnects: int
    flows: tuple[tuple[str, FlowMetrics], ...]

    def flow(self, op: str) -> FlowMetrics:
        """Returns one operation; all zero where there was none."""
        return dict(self.flows).get(op, FlowMetrics())


@dataclass(frozen=True, slots=True)
class PathMetrics:
    """The queues of one path to one target, added up."""

    target: str
    path: Path
    queues: int
    in_flight: int
    reconnects: int
    flows: tuple[tuple[str, FlowMetrics], ...]


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """All of an engine.

    Attributes:
        queues: each queue that ever was.
        requests: that have not ended.
        waiting: transfers that were not dealt yet.
        request_failures: requests that failed, by class of the error.
        quarantined_bytes: of abandoned transfers that may still land.
        quarantine_releases: requests whose memory came out of quarantine.
    """

    queues: tuple[QueueMetrics, ...] = ()
    requests: int = 0
    waiting: int = 0
    request_failures: Named = ()
    quarantined_bytes: int = 0
    quarantine_releases: int = 0

    def flow(self, op: str) -> FlowMetrics:
        """Returns one operation over all queues."""
        return reduce(add, (queue.flow(op) for queue in self.queues), FlowMetrics())

    def paths(self) -> tuple[PathMetrics, ...]:
        """Returns the queues added up by target and path, in the order of their first queue."""
        groups: dict[tuple[str, Path], list[QueueMetrics]] = {}
        for queue in self.queues:
            groups.setdefault((queue.target, queue.path), []).append(queue)
        return tuple(
            PathMetrics(
                target,
                path,
                len(queues),
                sum(queue.in_flight for queue in queues),
                sum(queue.reconnects for queue in queues),
                _flows(queues),
            )
            for (target, path), queues in groups.items()
        )


def _flows(queues: Iterable[QueueMetrics]) -> tuple[tuple[str, FlowMetrics], ...]:
    flows: dict[str, FlowMetrics] = {}
    for queue in queues:
        for op, flow in queue.flows:
            flows[op] = flows[op] + flow if op in flows else flow
    return tuple(flows.items())
