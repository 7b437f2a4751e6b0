"""A run as a file, one JSON line an event; and the run again from the file, without network, time or memory contents.

    caller ──▶ RecordedEngine ──▶ Engine … Link ──▶ RecordedTransport ──▶ transport        replay: a script in its place
                     └───────── trace file ────────────────┘

| line (`k`) | holds | on replay |
|---|---|---|
| header | version, kind of URL, policy, settings, controller or device | builds the engine |
| call | open, register, submit, cancel, step, close, with the first time that it read | is done again |
| clock | a further time that the call read | is read again |
| poll | what the transport told; `empty` polls before that told nothing | is told again |
| register, connect, post, disconnect | what the host did | must be the same |
| refused | the transport refused what was just done | is refused again |
| end | what the caller was told: requests, ended futures, bytes in quarantine, an error raised | must be the same |
| stopped | the file reached its greatest size | ends the replay |

A step that had nothing to do is not recorded. Data that lands in memory is not recorded either, and no decision hangs
on it. What is: names, addresses, answers, and what Identify and log pages hold. Nothing of it opens a door.

| module | holds |
|---|---|
| coding | values as JSON and back |
| writer | the file: buffered, bounded |
| recording | transport and engine that are recorded |
| script, replaying | the file read again, and what is driven by it |
"""

from fabric.engine.trace.replaying import ReplayReport, replay
from fabric.engine.trace.script import TraceError

__all__ = ("ReplayReport", "TraceError", "replay")
