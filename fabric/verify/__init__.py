"""From counters to a verdict: did this fabric lose a packet of the lossless class, where, and why? Pure.

Evidence comes in, a verdict goes out. Knows no device, engine, file or time; counters that nobody could read are
UNKNOWN and never zero.
"""

from fabric.verify.judge import judge
from fabric.verify.model import (
    ClassResult,
    DeviceVerdict,
    End,
    Evidence,
    FlawSummary,
    Grade,
    Hop,
    JobSummary,
    LinkPath,
    LinkResult,
    LossFinding,
    Moved,
    PauseShare,
    StreamSummary,
    SwitchQueue,
    TrafficClass,
    Verdict,
    VerdictStatus,
)
from fabric.verify.settled import Volumes, is_volume, volume_cache_ns, volumes_of, with_volumes
from fabric.verify.text import verdict_text

__all__ = (
    "ClassResult",
    "DeviceVerdict",
    "End",
    "Evidence",
    "FlawSummary",
    "Grade",
    "Hop",
    "JobSummary",
    "LinkPath",
    "LinkResult",
    "LossFinding",
    "Moved",
    "PauseShare",
    "StreamSummary",
    "SwitchQueue",
    "TrafficClass",
    "Verdict",
    "VerdictStatus",
    "Volumes",
    "is_volume",
    "judge",
    "verdict_text",
    "volume_cache_ns",
    "volumes_of",
    "with_volumes",
)
