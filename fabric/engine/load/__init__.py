"""Load through the engine, with a payload that says what it is: what a host runs while a fabric is proven or tuned.

Standard library and the engine only, as all of `fabric.engine`: it runs on hosts where nothing is installed.

| module | holds |
|---|---|
| model | jobs and results, JSON both ways |
| payload | self-describing sectors, poison and guards; what is wrong with one |
| regions | which version stands where, and who is at a place |
| runner, worker, blocks, bulk, ledger | a job at work: the loop, its streams, what they come to |
| kv | how long the reads of a KV cache are, by model |
| agent | JSON lines in and out: `python3 -m fabric.engine.load` |
"""

from fabric.engine.load.kv import MODELS, KvModel, kv_model, read_bytes
from fabric.engine.load.model import (
    SECTOR_BYTES,
    Flaw,
    FlawKind,
    Job,
    JobResult,
    Region,
    Stream,
    StreamResult,
    checked_job,
)
from fabric.engine.load.regions import Grounds
from fabric.engine.load.runner import OPEN_S, Outside, Progress, StreamProgress, describe, prepare, run_job

__all__ = (
    "MODELS",
    "OPEN_S",
    "SECTOR_BYTES",
    "Flaw",
    "FlawKind",
    "Grounds",
    "Job",
    "JobResult",
    "KvModel",
    "Outside",
    "Progress",
    "Region",
    "Stream",
    "StreamProgress",
    "StreamResult",
    "checked_job",
    "describe",
    "kv_model",
    "prepare",
    "read_bytes",
    "run_job",
)
