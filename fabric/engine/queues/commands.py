"""What the dealer tells the engine to do. Data only."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from fabric.engine.queues.request import QueueId, RequestId, Transfer
from fabric.errors import EngineError

__all__ = (
    "Command",
    "Issue",
    "QueueIdle",
    "Reason",
    "RequestDone",
    "RequestFailed",
    "RequestSettled",
    "SetTimer",
)


class Issue(NamedTuple):
    """Post this transfer on this queue."""

    queue: QueueId
    transfer: Transfer


class RequestDone(NamedTuple):
    """Every transfer of the request has completed well."""

    request: RequestId


class Reason(StrEnum):
    """Why a request failed."""

    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    TRANSFER = "transfer"
    QUEUE_LOST = "queue-lost"


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The request will not be done.

    Attributes:
        request: which.
        reason: why, as a word.
        error: why, for people.
        abandoned: its transfers that still fly. The target may write into their pieces: quarantine these until each
            was completed, or its queue released.
    """

    request: RequestId
    reason: Reason
    error: EngineError
    abandoned: tuple[Issue, ...] = ()


class RequestSettled(NamedTuple):
    """Nothing of a failed request flies any more: no transfer that it abandoned can touch memory now."""

    request: RequestId


class QueueIdle(NamedTuple):
    """A removed queue has nothing in flight: disconnect it. The dealer has forgotten it."""

    queue: QueueId


class SetTimer(NamedTuple):
    """Ask for commands again at `at_ns`, in place of the time told before. Asking earlier or later does no harm."""

    at_ns: int


Command: TypeAlias = Issue | RequestDone | RequestFailed | RequestSettled | QueueIdle | SetTimer
