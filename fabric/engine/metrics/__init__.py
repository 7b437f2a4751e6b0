"""What an engine did, as numbers: latency, bytes, failures, by queue and path. Knows no link, no clock, no thread.

| module | holds |
|---|---|
| histogram | counts over fixed buckets, 10 µs to 30 s |
| model | a snapshot, frozen: `Engine.metrics()` returns one |
| meter | what is counted while the engine runs |
| prometheus | the snapshot for prometheus-client, and a server of it that only an explicit call starts |
"""

from fabric.engine.metrics.histogram import EDGES_NS, MOST_RATIO, Histogram
from fabric.engine.metrics.model import EngineMetrics, FlowMetrics, PathMetrics, QueueMetrics

__all__ = ("EDGES_NS", "MOST_RATIO", "EngineMetrics", "FlowMetrics", "Histogram", "PathMetrics", "QueueMetrics")
