"""The host role: one `Controller` a subsystem. `outputs`: what it asks and tells; `requests`: what it may be asked.

| module | holds |
|---|---|
| states, bringup.AFTER, refusals | what can happen, as data |
| slots, queue, ioqueues | commands in flight, one connection, the set of them |
| bringup, scan, watch, keepalive, shutdown, discovery | admin work, each a small machine |
| backoff, recovery, lifecycle | the way back after a loss, and the whole |
"""

from fabric.engine.nvmeof.host.config import HostConfig
from fabric.engine.nvmeof.host.controller import Controller
from fabric.engine.nvmeof.host.outputs import (
    Closed,
    Completed,
    Connect,
    ConnectionId,
    Disconnect,
    DiscoveryLog,
    EventSeen,
    Failed,
    Lost,
    NamespacesChanged,
    Output,
    PostSend,
    QuarantineReleased,
    QueueDown,
    QueueMemory,
    QueueUp,
    Ready,
    Reconnecting,
    Region,
    RequestId,
    SetTimer,
)
from fabric.engine.nvmeof.host.requests import Admin, Deallocate, Flush, IoRequest, Limits, Read, Write, WriteZeroes
from fabric.engine.nvmeof.host.states import ControllerState, QueueState, SlotState, draw

__all__ = (
    "Admin",
    "Closed",
    "Completed",
    "Connect",
    "ConnectionId",
    "Controller",
    "ControllerState",
    "Deallocate",
    "Disconnect",
    "DiscoveryLog",
    "EventSeen",
    "Failed",
    "Flush",
    "HostConfig",
    "IoRequest",
    "Limits",
    "Lost",
    "NamespacesChanged",
    "Output",
    "PostSend",
    "QuarantineReleased",
    "QueueDown",
    "QueueMemory",
    "QueueState",
    "QueueUp",
    "Read",
    "Ready",
    "Reconnecting",
    "Region",
    "RequestId",
    "SetTimer",
    "SlotState",
    "Write",
    "WriteZeroes",
    "draw",
)
