"""What the connection manager, the adapter and the kernel say, in words and by who must act. Pure."""

import errno
import os
from types import MappingProxyType
from typing import Final

from fabric.engine.transport.rdma.layouts import CmEventKind, WcStatus
from fabric.engine.transport.rdma.ports import CmEvent
from fabric.errors import EngineError, RemoteProtocolError, TransportError

__all__ = ("cm_error", "completion_error", "refused_by_kernel")

_INVALID_SERVICE: Final = 8  # IB_CM_REJ_INVALID_SERVICE_ID of Linux include/rdma/ib_cm.h
_PATH: Final = "check the path: cable, VLAN, MTU, and that the priority is lossless"
_EVENTS: Final = MappingProxyType(
    {
        CmEventKind.ADDR_ERROR: ("the target's address was not resolved", "there is no route, or no neighbour answers"),
        CmEventKind.ROUTE_ERROR: ("there is no RDMA path to the target", "check address and adapter of both ends"),
        CmEventKind.CONNECT_ERROR: ("the connection was not made", _PATH),
        CmEventKind.UNREACHABLE: ("the target does not answer", "check that it listens there, and the path"),
        CmEventKind.DISCONNECTED: ("the target disconnected", ""),
        CmEventKind.ADDR_CHANGE: ("the address moved to another adapter", "connect again"),
        CmEventKind.REJECTED: ("the target rejected the connection", ""),
    }
)
_COMPLETIONS: Final = MappingProxyType(
    {
        WcStatus.RETRY_EXC_ERR: ("the target acknowledges nothing any more", _PATH),
        WcStatus.RNR_RETRY_EXC_ERR: ("the target has no receive posted", "the target is overloaded"),
        WcStatus.WR_FLUSH_ERR: ("the queue pair went to error", "look at the target's log and at the adapter's"),
        WcStatus.REM_ACCESS_ERR: ("the target refused access to its memory", ""),
        WcStatus.REM_INV_REQ_ERR: ("the target found a request invalid", ""),
        WcStatus.REM_OP_ERR: ("the target could not carry out a request", ""),
        WcStatus.LOC_LEN_ERR: ("a response is longer than a completion", ""),
        WcStatus.LOC_PROT_ERR: ("a buffer of ours is not registered", ""),
        WcStatus.FATAL_ERR: ("the adapter failed", "look at the kernel's log"),
    }
)
_PEER: Final = frozenset({WcStatus.LOC_LEN_ERR})


def cm_error(event: CmEvent, where: str) -> EngineError:
    """Returns what an event of the connection manager means that ends a connection."""
    what, remedy = _EVENTS[CmEventKind(event.kind)]
    if event.status == -errno.ETIMEDOUT:
        found = "nothing came back in time"
    elif event.status < 0:
        found = os.strerror(-event.status)
    else:
        found = f"reason {event.status}" if event.status else ""
    if event.kind == CmEventKind.REJECTED and event.status == _INVALID_SERVICE:
        found, remedy = "nothing listens there", "check address and service of the target"
    return TransportError(what, where=where, found=found, remedy=remedy)


def completion_error(status: int, where: str) -> EngineError:
    """Returns what the status of a completion means."""
    names = {one.value: one for one in WcStatus}
    known = names.get(status)
    found = f"status {status}" if known is None else known.name
    what, remedy = _COMPLETIONS.get(known, ("the queue pair failed", "")) if known is not None else ("", "")
    kind = RemoteProtocolError if known in _PEER else TransportError
    return kind(what or "the queue pair failed", where=where, found=found, remedy=remedy)


def refused_by_kernel(error: OSError, where: str) -> TransportError:
    """Returns what a refused call of the connection manager means."""
    known = errno.errorcode.get(error.errno or 0, "")
    text = f"{known}: {error.strerror}" if known else str(error.strerror)
    failed = TransportError("the connection cannot be made", where=where, found=text)
    failed.__cause__ = error
    return failed
