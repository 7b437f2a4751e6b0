"""What a user of the engine holds. Open it with `fabric.engine.open`.

| module | holds |
|---|---|
| address, settings | where to, and how patiently, as data |
| work, checking, orders | buffers, work, futures; whether a batch can be right; what moves no data |
| engine | batches in, futures out; steps when told |
| link, controllerlink, blocklink | the way to a namespace: a controller over a transport, or a device |
| keptlink, measuredlink | a way that a thread steps too; one that is counted |
| quarantine, descriptor | memory that may still be written to; what to wait on |
| opening, discovery | from a URL to an engine, to what a target offers |
| copying, serving | runs of blocks in and out; a soft target to try things on |
| bench, latencies | how fast it is, for a person |

Makes no thread that was not asked for (`keptlink` makes one; `block` has the transport's). Reads the time from one
clock, which a caller may replace.
"""

from fabric.engine.client.address import AddressError
from fabric.engine.client.bench import BenchRow, BenchSpec, QueueRow, bench
from fabric.engine.client.copying import Description, describe, pull, push
from fabric.engine.client.discovery import discover
from fabric.engine.client.engine import Engine
from fabric.engine.client.opening import open_engine
from fabric.engine.client.serving import SoftTarget, TargetSpec, soft_target
from fabric.engine.client.settings import Settings
from fabric.engine.client.work import (
    BlockRange,
    Buffer,
    Deallocate,
    Flush,
    Future,
    QuarantinedError,
    QuarantineFullError,
    Read,
    Write,
    WriteZeroes,
)

__all__ = (
    "AddressError",
    "BenchRow",
    "BenchSpec",
    "BlockRange",
    "Buffer",
    "Deallocate",
    "Description",
    "Engine",
    "Flush",
    "Future",
    "QuarantineFullError",
    "QuarantinedError",
    "QueueRow",
    "Read",
    "Settings",
    "SoftTarget",
    "TargetSpec",
    "Write",
    "WriteZeroes",
    "bench",
    "describe",
    "discover",
    "open_engine",
    "pull",
    "push",
    "soft_target",
)
