"""What can go wrong with a command or a controller, by who must act. Knows no machine.

| error | who acts |
|---|---|
| CommandRefusedError | the caller: the request is wrong |
| CapacityError | the caller: evict, or use another namespace |
| MediumError | the caller: the data is lost, treat it as absent |
| AuthenticationRequiredError, ConnectRefusedError | the operator: names, allowed hosts, keys |
| PathError, CommandTimeoutError, QueueLostError | nobody at once: try again, elsewhere or later |
| ControllerLostError | the operator: the target did not come back |
| QueueFullError, NotReadyError | the caller: wait for a completion, or for the queue |
"""

from fabric.engine.nvmeof.wire.status import Disposition, disposition, text
from fabric.errors import EngineError, IntegrityError, LocalProtocolError, TransportError

__all__ = (
    "AuthenticationRequiredError",
    "CapacityError",
    "CommandRefusedError",
    "CommandTimeoutError",
    "ConnectRefusedError",
    "ControllerLostError",
    "MediumError",
    "NotReadyError",
    "NvmeStatusError",
    "PathError",
    "QueueFullError",
    "QueueLostError",
    "status_error",
)


class NvmeStatusError(EngineError):
    """The target answered a command with a failure.

    Args:
        status: as in `Cqe.status`.
        where: queue and command, for the message.
    """

    def __init__(self, status: int, *, where: str = "") -> None:
        self.status = status
        self.disposition = disposition(status)
        super().__init__(f"the target refused a command: {text(status)}", where=where)


class CommandRefusedError(NvmeStatusError):
    """The request is wrong, and would fail again."""


class CapacityError(NvmeStatusError):
    """The namespace has no room."""


class MediumError(NvmeStatusError, IntegrityError):
    """The medium cannot give back what was written."""


class AuthenticationRequiredError(NvmeStatusError):
    """The target wants the host to authenticate, which this engine does not do yet."""


class PathError(NvmeStatusError, TransportError):
    """This path cannot do it now; another, or the same later, may."""


class ConnectRefusedError(EngineError):
    """The target does not take this host, this subsystem or these sizes; trying again would not help."""


class CommandTimeoutError(TransportError):
    """No answer came before the deadline; the command's memory is held until its queue is gone."""


class QueueLostError(TransportError):
    """The queue went away under the command; its memory is held until the queue is gone."""


class ControllerLostError(TransportError):
    """The controller did not come back within its loss timeout, or its device is gone."""


class QueueFullError(LocalProtocolError):
    """No slot is free; submit again after a completion."""


class NotReadyError(LocalProtocolError):
    """The queue is not connected, or the controller is stopping."""


_CLASSES: dict[Disposition, type[NvmeStatusError]] = {
    Disposition.RETRY_ELSEWHERE: PathError,
    Disposition.RETRY_LATER: PathError,
    Disposition.FATAL: CommandRefusedError,
    Disposition.INTEGRITY: MediumError,
    Disposition.CAPACITY: CapacityError,
    Disposition.AUTH: AuthenticationRequiredError,
}


def status_error(status: int, *, where: str = "") -> NvmeStatusError:
    """Returns the error that `status`, a failure, stands for."""
    return _CLASSES[disposition(status)](status, where=where)
