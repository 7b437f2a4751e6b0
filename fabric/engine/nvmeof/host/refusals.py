"""Why a target does not take a connection, as data, and whose matter it is. Knows no queue."""

from collections.abc import Mapping
from types import MappingProxyType

from fabric.engine.nvmeof.errors import AuthenticationRequiredError, ConnectRefusedError, PathError
from fabric.engine.nvmeof.wire.cm import CmStatus
from fabric.engine.nvmeof.wire.fabrics import ConnectField, refused_field
from fabric.engine.nvmeof.wire.status import CODE_MASK, Status, text
from fabric.errors import EngineError, TransportError

__all__ = ("refused_connect", "rejection")

# Text and remedy of each reject; without a remedy it is worth another try. Who sends which: Linux target/rdma.c
# (nvmet_rdma_parse_cm_connect_req), SPDK lib/nvmf/rdma.c (nvmf_rdma_connect).
_REJECTIONS: Mapping[CmStatus, tuple[str, str]] = MappingProxyType(
    {
        CmStatus.NONE: ("nothing listens there, or the transport refused", ""),
        CmStatus.INVALID_LENGTH: ("the target found no private data", "use a transport that carries it"),
        CmStatus.INVALID_RECORD_FORMAT: ("the target does not know the record format", "update the target"),
        CmStatus.INVALID_QID: ("the target refuses the queue id", "ask for fewer I/O queues"),
        CmStatus.INVALID_HOST_SQ_SIZE: ("the target refuses the send queue size", "lower admin_depth to 32"),
        CmStatus.INVALID_HOST_RQ_SIZE: ("the target refuses the receive queue size", "lower the queue depth"),
        CmStatus.NO_RESOURCES: ("the target has no resources left", ""),
        CmStatus.INVALID_IRD: ("the target wants to read from the host", "set responder_resources above 0"),
        CmStatus.INVALID_ORD: ("the target refuses the initiator depth", "leave the initiator depth at 0"),
    }
)

# What an operator does about the field that a refused Connect names.
_FIELDS: Mapping[ConnectField, str] = MappingProxyType(
    {
        ConnectField.SUBNQN: "check the subsystem NQN",
        ConnectField.HOSTNQN: "allow this host NQN on the subsystem",
        ConnectField.HOSTID: "give each host its own host id",
        ConnectField.CNTLID: "the controller is gone; connect again",
        ConnectField.QID: "ask for fewer I/O queues",
        ConnectField.SQSIZE: "lower the queue depth",
        ConnectField.RECFMT: "update the target",
    }
)

# Refusals of an admin Connect that no second try mends. On an I/O queue they say that the controller behind it is no
# longer there (SPDK names QID for "inactive admin qpair"), so the controller is connected anew.
_OPERATOR = frozenset(
    {
        Status.CONNECT_FORMAT,
        Status.CONNECT_INVALID_PARAMETER,
        Status.CONNECT_INVALID_HOST,
        Status.CONNECT_RESTART_DISCOVERY,
    }
)


def rejection(status: CmStatus, where: str) -> EngineError:
    """Returns the error for a rejected connection: TransportError when another try may help."""
    what, remedy = _REJECTIONS[status]
    if remedy:
        return ConnectRefusedError(what, where=where, found=f"reject {status.value}", remedy=remedy)
    return TransportError(what, where=where, found=f"reject {status.value}")


def refused_connect(status: int, result: int, *, admin: bool, where: str) -> EngineError:
    """Returns the error for a refused Connect command.

    Args:
        status: of the answer.
        result: its DW0: the field that the target dislikes.
        admin: on the admin queue, whose refusals are final; on others the controller is connected anew.
        where: for the message.
    """
    code = status & CODE_MASK
    if code == Status.AUTH_REQUIRED:
        return AuthenticationRequiredError(status, where=where)
    if not admin or code not in _OPERATOR:
        return PathError(status, where=where)
    field = refused_field(result) if code == Status.CONNECT_INVALID_PARAMETER else None
    remedy = _FIELDS[field] if field else "check the host NQN and the subsystem's allowed hosts"
    found = f"{text(status)}{f', field {field.name}' if field else ''}"
    return ConnectRefusedError("the target refused to connect", where=where, found=found, remedy=remedy)
