"""What a watch has seen, as numbers for Prometheus. Nothing listens unless asked, and then on that address alone.

prometheus-client is the extra `metrics` of this package; it is imported when a server is asked for.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from fabric.errors import EnvironmentMissingError
from fabric.qos import UNKNOWN
from fabric.verify import Verdict
from fabric.verify.bound import upper_bound
from fabric.workflow.verifying.loading import RoundResult

__all__ = ("METRICS", "Totals", "WatchMetrics", "served")

METRICS: Final = (
    ("windows", "counter", ("verdict",), "Windows that have been judged, by verdict."),
    ("packets", "counter", (), "Packets of the lossless classes that hosts and targets sent in judged windows."),
    ("lost_packets", "counter", (), "Of them, packets that are proven lost."),
    ("loss_bound", "gauge", (), "Upper bound on the loss rate over all windows, at 95 %."),
    ("read_seconds", "gauge", ("host", "target", "quantile"), "Latency of reads in the last window."),
    ("reads", "counter", ("host", "target"), "Reads that ended well."),
    ("read_errors", "counter", ("host", "target", "error"), "Reads that failed, by class of the error."),
    ("pause_share", "gauge", ("device", "place", "priority", "way"), "Largest share of time paused, last window."),
    ("last_window_timestamp_seconds", "gauge", (), "When the last window was judged, seconds since 1970."),
)
_PREFIX: Final = "fabricctl_watch_"


@dataclass(slots=True)
class Totals:
    """Over all windows.

    Attributes:
        windows: by verdict. packets, lost: of windows that proved something.
    """

    windows: dict[str, int] = field(default_factory=dict)
    packets: int = 0
    lost: int = 0

    def add(self, verdict: Verdict) -> None:
        """Counts one window."""
        name = verdict.status.value
        self.windows[name] = self.windows.get(name, 0) + 1
        if name != "invalid":
            self.packets += 0 if verdict.packets is UNKNOWN else verdict.packets
            self.lost += 0 if verdict.lost is UNKNOWN else verdict.lost

    @property
    def bound_95(self) -> float | None:
        """Returns the upper bound on the loss rate, None without a packet."""
        return upper_bound(self.lost, self.packets) if self.packets >= max(1, self.lost) else None


class WatchMetrics:
    """The metrics in a registry of their own.

    Raises:
        EnvironmentMissingError: prometheus-client is not installed.
    """

    def __init__(self) -> None:
        client = _client()
        self.registry = client.CollectorRegistry()
        kinds = {"counter": client.Counter, "gauge": client.Gauge}
        self._by_name: dict[str, Any] = {
            name: kinds[kind](_PREFIX + name, text, labels, registry=self.registry)
            for name, kind, labels, text in METRICS
        }

    def observe(self, verdict: Verdict, rounds: Sequence[RoundResult], totals: Totals, *, unix_s: float) -> None:
        """Takes one window over."""
        metrics = self._by_name
        metrics["windows"].labels(verdict.status.value).inc()
        if verdict.status.value != "invalid":
            metrics["packets"].inc(0 if verdict.packets is UNKNOWN else verdict.packets)
            metrics["lost_packets"].inc(0 if verdict.lost is UNKNOWN else verdict.lost)
        if totals.bound_95 is not None:
            metrics["loss_bound"].set(totals.bound_95)
        for one in verdict.pause_share:
            if one.share is not UNKNOWN:
                metrics["pause_share"].labels(one.device, one.place, str(one.priority), one.way).set(one.share)
        for host, result in (row for one in rounds for row in one.results):
            for stream in result.streams:
                pair = (host, stream.name.partition("/")[0])
                metrics["reads"].labels(*pair).inc(stream.reads)
                for quantile, value_ns in (("0.5", stream.p50_ns), ("0.99", stream.p99_ns)):
                    if value_ns is not None:
                        metrics["read_seconds"].labels(*pair, quantile).set(value_ns / 1e9)
                for error, count in stream.errors:
                    metrics["read_errors"].labels(*pair, error).inc(count)
        metrics["last_window_timestamp_seconds"].set(unix_s)


@contextmanager
def served(listen: tuple[str, int] | None) -> Iterator[WatchMetrics | None]:
    """Yields metrics that are served over HTTP on that address and port, None where nobody asked.

    Raises:
        EnvironmentMissingError: prometheus-client is not installed, or nothing may listen there.
    """
    if listen is None:
        yield None
        return
    metrics = WatchMetrics()
    address, port = listen
    try:
        server, thread = _client().start_http_server(port, addr=address, registry=metrics.registry)
    except OSError as error:
        raise EnvironmentMissingError(
            "the metrics cannot be served",
            where=f"{address}:{port}",
            found=error.strerror or "",
            remedy="Choose another address or port.",
        ) from error
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _client() -> Any:
    try:
        import prometheus_client  # lazy: only who serves metrics needs it
    except ImportError as error:
        remedy = "Install it: pip install 'fabricctl[metrics]'."
        raise EnvironmentMissingError("prometheus-client is not installed", remedy=remedy) from error
    return prometheus_client
