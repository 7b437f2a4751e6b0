"""Counts what happens to transfers. Told by whoever sees them pass; reads no clock: every time is an argument.

Only the thread that steps the engine counts. Another may take a snapshot at any moment: each number in it is right, but
two of them may be one transfer apart.
"""

from collections.abc import Iterable
from typing import Literal

from fabric.engine.metrics.histogram import Tally
from fabric.engine.metrics.model import EngineMetrics, FlowMetrics, QueueMetrics
from fabric.engine.queues import Issue, Op, Queue, QueueId, RequestId, Transfer, TransferId
from fabric.errors import EngineError

__all__ = ("Meter",)


class _Flow:
    __slots__ = ("bytes", "failures", "queueing", "retries", "service")

    def __init__(self) -> None:
        self.queueing = Tally()
        self.service = Tally()
        self.bytes = 0
        self.retries = 0
        self.failures: dict[str, int] = {}

    def metrics(self) -> FlowMetrics:
        service = self.service.histogram()
        failures = tuple(sorted(list(self.failures.items())))  # noqa: C414, a list is copied in one go, see the module
        return FlowMetrics(self.queueing.histogram(), service, service.count, self.bytes, self.retries, failures)


class _Line:
    __slots__ = ("flows", "flying", "queue", "read", "reconnects", "state")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.state: Literal["open", "lost", "gone"] = "open"
        self.reconnects = 0
        self.flying: dict[TransferId, int] = {}  # when it was issued
        self.read = _Flow()
        self.flows: dict[str, _Flow] = {}

    def flow(self, op: Op) -> _Flow:
        # an enum's hash is a Python function: the common case does without
        if op is Op.READ:
            return self.read
        known = self.flows.get(op)
        if known is None:
            known = self.flows[op] = _Flow()
        return known

    def metrics(self) -> QueueMetrics:
        one, flows = self.queue, [("read", self.read), *list(self.flows.items())]
        told = tuple((str(op), flow.metrics()) for op, flow in flows)
        return QueueMetrics(one.id, one.target, one.path, self.state, len(self.flying), self.reconnects, told)


class Meter:
    """One engine's counts.

    Attributes:
        submitted: when each request that has not ended was submitted.
    """

    def __init__(self) -> None:
        self.submitted: dict[RequestId, int] = {}
        self._lines: dict[QueueId, _Line] = {}
        self._request_failures: dict[str, int] = {}

    def opened(self, queue: Queue) -> None:
        """A queue is there, or is there again."""
        line = self._lines.get(queue.id)
        if line is None:
            self._lines[queue.id] = _Line(queue)
            return
        line.queue = queue
        line.state = "open"
        line.reconnects += 1

    def lost(self, queue: QueueId) -> None:
        """A queue is gone; what flew on it may still land."""
        self._lines[queue].state = "lost"

    def released(self, queue: QueueId) -> None:
        """Nothing of a lost queue can land any more."""
        line = self._lines[queue]
        line.state = "gone"
        line.flying.clear()

    def issued(self, batch: Iterable[Issue], now_ns: int) -> None:
        """Transfers are given to their queues."""
        lines, submitted, read = self._lines, self.submitted, Op.READ
        for queue, transfer in batch:
            line = lines[queue]
            line.flying[transfer.id] = now_ns
            flow = line.read if transfer.op is read else line.flow(transfer.op)
            if transfer.attempt:
                flow.retries += 1
            elif (since_ns := submitted.get(transfer.request)) is not None:
                flow.queueing.add(now_ns - since_ns)

    def landed(self, queue: QueueId, transfer: Transfer, error: EngineError | None, now_ns: int) -> None:
        """A transfer ended."""
        line = self._lines[queue]
        since_ns = line.flying.pop(transfer.id, now_ns)
        flow = line.read if transfer.op is Op.READ else line.flow(transfer.op)
        if error is None:
            flow.service.add(now_ns - since_ns)
            flow.bytes += transfer.length
        else:
            _count(flow.failures, error)

    def ended(self, request: RequestId, error: EngineError | None) -> None:
        """A request ended."""
        self.submitted.pop(request, None)
        if error is not None:
            _count(self._request_failures, error)

    def metrics(
        self, *, requests: int, waiting: int, quarantined_bytes: int, quarantine_releases: int
    ) -> EngineMetrics:
        """Returns a snapshot, with what others count."""
        return EngineMetrics(
            tuple(line.metrics() for line in list(self._lines.values())),
            requests,
            waiting,
            tuple(sorted(list(self._request_failures.items()))),  # noqa: C414, as above
            quarantined_bytes,
            quarantine_releases,
        )


def _count(by_class: dict[str, int], error: EngineError) -> None:
    name = type(error).__name__
    by_class[name] = by_class.get(name, 0) + 1
