"""The states of a controller, a queue and a slot, as data; `draw` makes the docs' diagrams from the same tables.

A pair of state and input that a table lacks cannot happen: firing it is our own fault, and an error.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from fabric.errors import LocalProtocolError

__all__ = (
    "CONTROLLER",
    "QUEUE",
    "SLOT",
    "ControllerInput",
    "ControllerState",
    "Machine",
    "QueueInput",
    "QueueState",
    "SlotInput",
    "SlotState",
    "draw",
)


class ControllerState(enum.StrEnum):
    """Where a controller is."""

    NEW = "new"
    CONNECTING = "connecting"  # the admin queue
    CONFIGURING = "configuring"  # properties, features, namespaces, I/O queues
    LIVE = "live"
    RESETTING = "resetting"  # every connection is being taken down
    WAITING = "waiting"  # for the next attempt
    STOPPING = "stopping"  # an orderly shutdown
    CLOSED = "closed"
    LOST = "lost"


class ControllerInput(enum.StrEnum):
    """What moves a controller."""

    START = "start"
    ADMIN_UP = "admin up"
    READY = "ready"
    FAIL = "fail"
    ALL_DOWN = "all down"
    RETRY = "retry"
    STOP = "stop"
    GIVE_UP = "give up"


class QueueState(enum.StrEnum):
    """Where a queue is."""

    DOWN = "down"
    CONNECTING = "connecting"  # the transport
    GREETING = "greeting"  # the Connect command is on its way
    LIVE = "live"
    CLOSING = "closing"  # until the transport says that nothing can write to our memory any more


class QueueInput(enum.StrEnum):
    """What moves a queue."""

    OPEN = "open"
    CONNECTED = "connected"
    REJECTED = "rejected"
    GRANTED = "granted"
    CLOSE = "close"
    GONE = "gone"


class SlotState(enum.IntEnum):
    """Where a slot is: it is free again when both the answer and the send completion have been seen."""

    FREE = 0
    POSTED = 1
    SENT = 2  # send completion seen
    ANSWERED = 3  # answer seen
    QUARANTINED = 4  # timed out; not used again before its queue is gone


class SlotInput(enum.IntEnum):
    """What moves a slot."""

    SUBMIT = 0
    SEND_DONE = 1
    ANSWER = 2
    TIMEOUT = 3
    TEAR_DOWN = 4


S = TypeVar("S", bound=enum.Enum)
I = TypeVar("I", bound=enum.Enum)  # noqa: E741, state and input
Table = Mapping[tuple[S, I], S]

_C, _CI = ControllerState, ControllerInput
_UP = (_C.CONNECTING, _C.CONFIGURING, _C.LIVE)
CONTROLLER: Table[ControllerState, ControllerInput] = MappingProxyType(
    {
        (_C.NEW, _CI.START): _C.CONNECTING,
        (_C.CONNECTING, _CI.ADMIN_UP): _C.CONFIGURING,
        (_C.CONFIGURING, _CI.READY): _C.LIVE,
        **{(state, _CI.FAIL): _C.RESETTING for state in (*_UP, _C.RESETTING)},
        (_C.STOPPING, _CI.FAIL): _C.STOPPING,
        (_C.RESETTING, _CI.ALL_DOWN): _C.WAITING,
        (_C.WAITING, _CI.RETRY): _C.CONNECTING,
        **{(state, _CI.STOP): _C.STOPPING for state in (_C.NEW, *_UP, _C.RESETTING, _C.WAITING)},
        (_C.STOPPING, _CI.ALL_DOWN): _C.CLOSED,
        **{(state, _CI.GIVE_UP): _C.LOST for state in (*_UP, _C.RESETTING, _C.WAITING, _C.STOPPING)},
        (_C.LOST, _CI.ALL_DOWN): _C.LOST,
    }
)

_Q, _QI = QueueState, QueueInput
QUEUE: Table[QueueState, QueueInput] = MappingProxyType(
    {
        (_Q.DOWN, _QI.OPEN): _Q.CONNECTING,
        (_Q.CONNECTING, _QI.CONNECTED): _Q.GREETING,
        (_Q.CONNECTING, _QI.REJECTED): _Q.DOWN,
        (_Q.GREETING, _QI.GRANTED): _Q.LIVE,
        **{(state, _QI.CLOSE): _Q.CLOSING for state in (_Q.CONNECTING, _Q.GREETING, _Q.LIVE)},
        (_Q.CLOSING, _QI.CONNECTED): _Q.CLOSING,
        (_Q.CLOSING, _QI.REJECTED): _Q.DOWN,
        **{(state, _QI.GONE): _Q.DOWN for state in (_Q.CONNECTING, _Q.GREETING, _Q.LIVE, _Q.CLOSING)},
    }
)

_S, _SI = SlotState, SlotInput
SLOT: Table[SlotState, SlotInput] = MappingProxyType(
    {
        (_S.FREE, _SI.SUBMIT): _S.POSTED,
        (_S.POSTED, _SI.SEND_DONE): _S.SENT,
        (_S.POSTED, _SI.ANSWER): _S.ANSWERED,
        (_S.SENT, _SI.ANSWER): _S.FREE,
        (_S.ANSWERED, _SI.SEND_DONE): _S.FREE,
        **{(state, _SI.TIMEOUT): _S.QUARANTINED for state in (_S.POSTED, _S.SENT, _S.ANSWERED)},
        (_S.QUARANTINED, _SI.SEND_DONE): _S.QUARANTINED,
        (_S.QUARANTINED, _SI.ANSWER): _S.QUARANTINED,
        **{(state, _SI.TEAR_DOWN): _S.FREE for state in _S},
    }
)


class Machine(Generic[S, I]):
    """A state and the table that moves it.

    Args:
        table: from (state, input) to state.
        start: the first state.
        what: what the state is of, for messages.
    """

    def __init__(self, table: Table[S, I], start: S, what: str) -> None:
        self._table = table
        self.state = start
        self._what = what

    def can(self, one: I) -> bool:
        """Returns whether `one` moves the state that it has."""
        return (self.state, one) in self._table

    def fire(self, one: I) -> S:
        """Returns the next state, after moving to it.

        Raises:
            LocalProtocolError: the table has no such move.
        """
        try:
            self.state = self._table[self.state, one]
        except KeyError as error:
            raise LocalProtocolError(f"{self._what} cannot take '{one}' while {self.state}") from error
        return self.state


def draw(table: Table[S, I]) -> str:
    """Returns the table as a Mermaid state diagram."""
    named = sorted((_name(old), _name(new), _name(one)) for (old, one), new in table.items())
    return "\n".join(["stateDiagram-v2", *(f"    {old} --> {new}: {one}" for old, new, one in named)]) + "\n"


def _name(member: enum.Enum) -> str:
    return member.name.lower()
