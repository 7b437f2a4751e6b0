"""The counts of an engine for prometheus-client: a collector, and a server of it. Nothing listens by itself.

prometheus-client is the extra `metrics` of this package; it is imported when one of these is called.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

from fabric.engine.metrics.histogram import EDGES_NS, Histogram
from fabric.engine.metrics.model import EngineMetrics, FlowMetrics, QueueMetrics
from fabric.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from prometheus_client.core import Metric

__all__ = ("METRICS", "EngineCollector", "Measured", "MetricsServer", "Shown", "serve_metrics")

_SECOND: Final = 1e9
_STEPS: Final = (1, 2, 5)  # of the ten edges a decade these are shown: a scrape has 20 buckets, not 65
_FLOW: Final = ("target", "queue", "path", "op")
_QUEUE: Final = ("target", "queue", "path")


class Measured(Protocol):
    """What has counts: an engine."""

    def metrics(self) -> EngineMetrics:
        """Returns them; may be called from any thread."""
        ...


@dataclass(frozen=True, slots=True)
class Shown:
    """One metric as Prometheus knows it.

    Attributes:
        name: without the suffix that its kind appends.
        kind: what it is.
        labels: in order.
        text: what it counts.
        values: yields label values and a number or histogram.
    """

    name: str
    kind: Literal["histogram", "counter", "gauge"]
    labels: tuple[str, ...]
    text: str
    values: Callable[[EngineMetrics], Iterable[tuple[tuple[str, ...], Histogram | int]]]


def _path(queue: QueueMetrics) -> tuple[str, str, str]:
    return queue.target, str(queue.queue), f"{queue.path.host_port}>{queue.path.target_port}"


def _flows(
    take: Callable[[FlowMetrics], Histogram | int],
) -> Callable[[EngineMetrics], Iterator[tuple[tuple[str, ...], Histogram | int]]]:
    def values(metrics: EngineMetrics) -> Iterator[tuple[tuple[str, ...], Histogram | int]]:
        for queue in metrics.queues:
            for op, flow in queue.flows:
                yield (*_path(queue), op), take(flow)

    return values


def _failures(metrics: EngineMetrics) -> Iterator[tuple[tuple[str, ...], int]]:
    for queue in metrics.queues:
        for op, flow in queue.flows:
            for error, count in flow.failures:
                yield (*_path(queue), op, error), count


def _states(metrics: EngineMetrics) -> Iterator[tuple[tuple[str, ...], int]]:
    states = [queue.state for queue in metrics.queues]
    yield from (((one,), states.count(one)) for one in ("open", "lost", "gone"))


METRICS: Final = (
    Shown(
        "fabricctl_engine_transfer_seconds",
        "histogram",
        _FLOW,
        "From a transfer's handing to its queue until it landed well: link, network and target.",
        _flows(lambda flow: flow.service),
    ),
    Shown(
        "fabricctl_engine_queueing_seconds",
        "histogram",
        _FLOW,
        "From a request's submission until a transfer of it was handed to a queue for the first time.",
        _flows(lambda flow: flow.queueing),
    ),
    Shown(
        "fabricctl_engine_transfer_bytes",
        "counter",
        _FLOW,
        "Bytes of transfers that landed well.",
        _flows(lambda flow: flow.bytes),
    ),
    Shown(
        "fabricctl_engine_transfer_retries",
        "counter",
        _FLOW,
        "Transfers that were dealt to this queue again.",
        _flows(lambda flow: flow.retries),
    ),
    Shown(
        "fabricctl_engine_transfer_failures",
        "counter",
        (*_FLOW, "error"),
        "Transfers that landed with an error, by its class; some were dealt again.",
        _failures,
    ),
    Shown(
        "fabricctl_engine_queue_reconnects",
        "counter",
        _QUEUE,
        "Times a queue came back after it was lost.",
        lambda metrics: ((_path(one), one.reconnects) for one in metrics.queues),
    ),
    Shown(
        "fabricctl_engine_in_flight_transfers",
        "gauge",
        _QUEUE,
        "Transfers on a queue that have not landed.",
        lambda metrics: ((_path(one), one.in_flight) for one in metrics.queues),
    ),
    Shown("fabricctl_engine_queues", "gauge", ("state",), "Queues, by state: open, lost, gone.", _states),
    Shown(
        "fabricctl_engine_open_requests",
        "gauge",
        (),
        "Requests that have not ended.",
        lambda metrics: (((), metrics.requests),),
    ),
    Shown(
        "fabricctl_engine_waiting_transfers",
        "gauge",
        (),
        "Transfers that were not handed to a queue yet.",
        lambda metrics: (((), metrics.waiting),),
    ),
    Shown(
        "fabricctl_engine_request_failures",
        "counter",
        ("error",),
        "Requests that failed, by class of the error.",
        lambda metrics: (((error,), count) for error, count in metrics.request_failures),
    ),
    Shown(
        "fabricctl_engine_quarantined_bytes",
        "gauge",
        (),
        "Memory of abandoned transfers that may still be written to.",
        lambda metrics: (((), metrics.quarantined_bytes),),
    ),
    Shown(
        "fabricctl_engine_quarantine_releases",
        "counter",
        (),
        "Requests whose memory came out of quarantine.",
        lambda metrics: (((), metrics.quarantine_releases),),
    ),
)


class EngineCollector:
    """A collector for a `prometheus_client.CollectorRegistry`.

    Args:
        engine: has the counts.

    Raises:
        EnvironmentMissingError: prometheus-client is not installed.
    """

    def __init__(self, engine: Measured) -> None:
        self._engine = engine
        self._core = _client("prometheus_client.core")

    def describe(self) -> "Iterator[Metric]":
        """Yields every metric without values: so that registering asks nothing of the engine."""
        return (self._family(one) for one in METRICS)

    def collect(self) -> "Iterator[Metric]":
        """Yields every metric as it is now."""
        metrics = self._engine.metrics()
        for one in METRICS:
            family = self._family(one)
            for labels, value in one.values(metrics):
                if isinstance(value, Histogram):
                    family.add_metric(labels, _buckets(value), value.sum_ns / _SECOND)
                else:
                    family.add_metric(labels, value)
            yield family

    def _family(self, one: Shown) -> Any:
        kinds = {
            "histogram": self._core.HistogramMetricFamily,
            "counter": self._core.CounterMetricFamily,
            "gauge": self._core.GaugeMetricFamily,
        }
        return kinds[one.kind](one.name, one.text, labels=one.labels)


def _buckets(histogram: Histogram) -> list[tuple[str, int]]:
    buckets: list[tuple[str, int]] = []
    reached = 0
    for edge, count in zip(EDGES_NS, histogram.counts, strict=False):
        reached += count
        if edge == EDGES_NS[-1] or int(str(edge).rstrip("0")) in _STEPS:
            buckets.append((str(edge / _SECOND), reached))
    return [*buckets, ("+Inf", reached + histogram.counts[-1])]


class _Joined(Protocol):
    def join(self) -> None: ...


class MetricsServer:
    """A running server of metrics; a context manager that stops it.

    Attributes:
        address, port: where it listens.
    """

    def __init__(self, server: "WSGIServer", thread: _Joined) -> None:
        self.address, self.port = str(server.server_address[0]), server.server_port
        self._server = server
        self._thread = thread

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stops listening, and ends the thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve_metrics(engine: Measured, address: str = "127.0.0.1", port: int = 0) -> MetricsServer:
    """Serves an engine's metrics over HTTP, in a thread of prometheus-client, until it is closed.

    Args:
        engine: stays with its own thread; this one only takes snapshots.
        address: to listen on. Whoever reaches it reads names of targets and what the engine does.
        port: 0 takes a free one.

    Raises:
        EnvironmentMissingError: prometheus-client is not installed, or nothing may listen there.
    """
    client = _client("prometheus_client")
    registry = client.CollectorRegistry()
    registry.register(EngineCollector(engine))
    try:
        server, thread = client.start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        where, remedy = f"{address}:{port}", "Choose another address or port."
        raise EnvironmentMissingError(
            "the metrics cannot be served", where=where, found=error.strerror or "", remedy=remedy
        ) from error
    return MetricsServer(server, thread)


def _client(name: str) -> Any:
    import importlib  # lazy: an engine without Prometheus needs no third package

    try:
        return importlib.import_module(name)
    except ImportError as error:
        remedy = "Install it: pip install 'fabricctl[metrics]'."
        raise EnvironmentMissingError("prometheus-client is not installed", remedy=remedy) from error
