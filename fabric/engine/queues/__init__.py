"""Requests over many queues: cut, order, bound, deal. Sans-I/O.

The engine hands in requests, queues and responses, and does what `Dealer.commands` says. Names no socket, no clock and
no buffer's address; what turns is in `fabric.policy`.
"""

from fabric.engine.queues.commands import (
    Command,
    Issue,
    QueueIdle,
    Reason,
    RequestDone,
    RequestFailed,
    RequestSettled,
    SetTimer,
)
from fabric.engine.queues.dealer import Dealer
from fabric.engine.queues.load import Path, Queue
from fabric.engine.queues.request import (
    Extent,
    Namespace,
    Op,
    QueueId,
    Request,
    RequestId,
    Transfer,
    TransferId,
    Urgency,
    View,
)
from fabric.engine.queues.snapshot import DealerLoad, QueueLoad, WindowLoad
from fabric.engine.queues.split import split

__all__ = (
    "Command",
    "Dealer",
    "DealerLoad",
    "Extent",
    "Issue",
    "Namespace",
    "Op",
    "Path",
    "Queue",
    "QueueId",
    "QueueIdle",
    "QueueLoad",
    "Reason",
    "Request",
    "RequestDone",
    "RequestFailed",
    "RequestId",
    "RequestSettled",
    "SetTimer",
    "Transfer",
    "TransferId",
    "Urgency",
    "View",
    "WindowLoad",
    "split",
)
