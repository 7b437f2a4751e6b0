"""What stages hand on: findings, results, counters. Producers and consumers meet here and nowhere else."""

from fabric.state.counters import PortCounters, QueueCounters, WatchdogCounters
from fabric.state.finding import Finding, Severity, Status, Where, worst
from fabric.state.result import DeviceResult, Outcome, StepRecord
from fabric.state.snapshot import Counter, CounterSet, Missing, Snapshot, Source, SourceKind

__all__ = (
    "Counter",
    "CounterSet",
    "DeviceResult",
    "Finding",
    "Missing",
    "Outcome",
    "PortCounters",
    "QueueCounters",
    "Severity",
    "Snapshot",
    "Source",
    "SourceKind",
    "Status",
    "StepRecord",
    "WatchdogCounters",
    "Where",
    "worst",
)
