"""What stages hand on: findings, results, counters. Producers and consumers meet here and nowhere else."""

from fabric.state.counters import PortCounters, QueueCounters, WatchdogCounters
from fabric.state.finding import Finding, Severity, Status, Where, worst
from fabric.state.result import DeviceResult, Outcome, StepRecord

__all__ = (
    "DeviceResult",
    "Finding",
    "Outcome",
    "PortCounters",
    "QueueCounters",
    "Severity",
    "Status",
    "StepRecord",
    "WatchdogCounters",
    "Where",
    "worst",
)
