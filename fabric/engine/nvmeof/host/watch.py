"""Holds Asynchronous Event Requests open, and sends each again when it was answered. Knows what to do on an event."""

from collections.abc import Callable

from fabric.engine.nvmeof.host.outputs import EventSeen
from fabric.engine.nvmeof.host.requests import Body
from fabric.engine.nvmeof.host.session import Session
from fabric.engine.nvmeof.host.slots import Pending
from fabric.engine.nvmeof.wire import admin
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.events import AsyncEvent, EventKind
from fabric.errors import EngineError

__all__ = ("EventWatch",)


class EventWatch:
    """The event requests of one controller.

    Args:
        session: the controller.
        rescan: called when namespaces changed.
    """

    def __init__(self, session: Session, rescan: Callable[[int], None]) -> None:
        self._session = session
        self._rescan = rescan

    def arm(self, count: int, now_ns: int) -> None:
        """Sends `count` requests; they have no deadline."""
        for _ in range(count):
            self._session.admin(Body(admin.async_event_request()), self, now_ns, timeout_ns=None)

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes an event. A refused request (0x105: too many) is not sent again."""
        del pending, payload
        if cqe.status:
            return
        self.arm(1, now_ns)
        event = AsyncEvent.of(cqe.result)
        if event.kind is EventKind.NAMESPACE_CHANGED:
            self._rescan(now_ns)
        else:
            self._session.emit(EventSeen(event))

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss: the bring-up arms anew."""
