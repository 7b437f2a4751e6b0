"""What the parts of a controller may use of one another. Types only."""

from typing import Protocol

from fabric.engine.nvmeof.host.config import HostConfig
from fabric.engine.nvmeof.host.outputs import ConnectionId, Output
from fabric.engine.nvmeof.host.queue import Queue
from fabric.engine.nvmeof.host.requests import Body
from fabric.engine.nvmeof.host.slots import Owner
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.errors import EngineError

__all__ = ("Session",)


class Session(Protocol):
    """The controller, as its parts see it."""

    config: HostConfig
    identity: IdentifyController | None

    @property
    def cntlid(self) -> int | None:
        """The id that the target gave."""
        ...

    def emit(self, output: Output) -> None:
        """Hands out a command or an event."""
        ...

    def next_connection(self, queue: Queue) -> ConnectionId:
        """Returns a connection id that was never used, and remembers that it is of `queue`."""
        ...

    def admin(self, body: Body, owner: Owner, now_ns: int, *, timeout_ns: int | None) -> None:
        """Sends an admin command of the machine's own."""
        ...

    def fail(self, error: EngineError, now_ns: int) -> None:
        """Takes the whole controller down and tries again."""
        ...

    def wants_queues(self) -> bool:
        """Whether a queue that went down should be opened again."""
        ...

    def connection_gone(self, now_ns: int) -> None:
        """One connection less."""
        ...
