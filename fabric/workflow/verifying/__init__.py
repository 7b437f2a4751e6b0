"""Prove that a fabric loses nothing under load: `verify`, its negative control `prove`, and `watch`.

| module | holds |
|---|---|
| options | what is asked for |
| setting | what it stands on: fabric, sessions, agents, the load made for them |
| hostcounters, reaching, collecting | counters of hosts, targets and switches as snapshots |
| paths, classes, scratching | the ways, the lossless classes, the namespaces |
| prechecks, loading, phases | the order |
| prove, watch, watchmetrics | the control; the light load that goes on |
| concluding | run folder, findings, report, summary |
"""

from fabric.workflow.verifying.concluding import Proof, Verified
from fabric.workflow.verifying.options import DEFAULT_PROFILE, VerifyOptions
from fabric.workflow.verifying.phases import verify
from fabric.workflow.verifying.prove import prove
from fabric.workflow.verifying.watch import WATCH_PROFILE, Watched, WatchOptions, watch

__all__ = (
    "DEFAULT_PROFILE",
    "WATCH_PROFILE",
    "Proof",
    "Verified",
    "VerifyOptions",
    "WatchOptions",
    "Watched",
    "prove",
    "verify",
    "watch",
)
