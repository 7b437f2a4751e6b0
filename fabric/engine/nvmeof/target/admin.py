"""Admin commands of a connected controller: what each answers, and with which data. Knows no transport.

Source: Linux target/admin-cmd.c and discovery.c; SPDK lib/nvmf/ctrlr.c and ctrlr_discovery.c.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fabric.engine.nvmeof.target.association import Association, Task
from fabric.engine.nvmeof.target.profile import Refusal
from fabric.engine.nvmeof.wire import admin, logs
from fabric.engine.nvmeof.wire.events import EventKind
from fabric.engine.nvmeof.wire.identify import pack_active_namespaces
from fabric.engine.nvmeof.wire.status import DNR, Status

__all__ = ("Answer", "execute_admin")

_INVALID_FIELD = Refusal(Status.INVALID_FIELD | DNR)
_NO_ABORT = 1  # DW0 bit 0: the command was not aborted; nvmet never aborts (nvmet_execute_abort: "result 1")


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: the result, and data for the host. `later`: no answer is sent now."""

    result: int = 0
    data: bytes = b""
    later: bool = False


def execute_admin(
    task: Task, association: Association, discovery_log: Callable[[str], bytes], now_ns: int
) -> Answer | Refusal:
    """Carries out an admin command.

    Args:
        task: the command.
        association: its controller, which is ready.
        discovery_log: the log that a host of this name may see.
        now_ns: for the keep-alive timer.
    """
    match task.command.opcode:
        case admin.AdminOpcode.IDENTIFY:
            return _identify(task, association)
        case admin.AdminOpcode.GET_LOG_PAGE:
            return _log_page(task, association, discovery_log)
        case admin.AdminOpcode.SET_FEATURES:
            return _set_features(task, association)
        case admin.AdminOpcode.KEEP_ALIVE:
            return _keep_alive(association, now_ns)
        case admin.AdminOpcode.ASYNC_EVENT_REQUEST:
            return _event_request(task, association)
        case admin.AdminOpcode.ABORT:
            return Answer(_NO_ABORT)
    return Refusal(Status.INVALID_OPCODE | DNR)


def _keep_alive(association: Association, now_ns: int) -> Answer | Refusal:
    if not association.kato_ms and association.profile.keep_alive_off:
        return association.profile.keep_alive_off
    association.touch(now_ns)
    return Answer()


def _event_request(task: Task, association: Association) -> Answer | Refusal:
    if len(association.events) >= association.profile.event_requests:
        return Refusal(Status.ASYNC_EVENT_LIMIT | DNR)
    association.events.append((task.peer, task.cid))
    return Answer(later=True)


def _identify(task: Task, association: Association) -> Answer | Refusal:
    namespaces = association.subsystem.namespaces if association.subsystem else {}
    nsid = task.command.nsid
    match task.command.cdw10 & 0xFF:
        case admin.Cns.CONTROLLER:
            return Answer(data=association.identify().pack())
        case admin.Cns.NAMESPACE:
            if nsid in (0, admin.ALL_NAMESPACES):
                return Refusal(Status.INVALID_NAMESPACE | DNR)
            found = namespaces.get(nsid)
            return Answer(data=found.pack() if found else bytes(admin.IDENTIFY_BYTES))
        case admin.Cns.ACTIVE_NAMESPACES:
            return Answer(data=pack_active_namespaces(tuple(namespaces), nsid))
        case admin.Cns.NAMESPACE_DESCRIPTORS:
            described = namespaces.get(nsid)
            if described is None:
                return Refusal(Status.INVALID_NAMESPACE | DNR)
            ids = b"\x02\x10\0\0" + described.nguid if any(described.nguid) else b""
            return Answer(data=ids.ljust(admin.IDENTIFY_BYTES, b"\0"))
    return _INVALID_FIELD


def _log_page(task: Task, association: Association, discovery_log: Callable[[str], bytes]) -> Answer | Refusal:
    page, length, offset = admin.log_page_request(task.command)
    retain = bool(task.command.cdw10 >> 15 & 1)
    if page == admin.LogPage.DISCOVERY and association.subsystem is None:
        log = discovery_log(association.hostnqn)
        kind = EventKind.DISCOVERY_CHANGED
    elif page == admin.LogPage.CHANGED_NAMESPACES and association.subsystem is not None:
        log = logs.pack_changed_namespaces(association.changed)
        kind = EventKind.NAMESPACE_CHANGED
        if not retain:
            association.changed.clear()
    else:
        return _INVALID_FIELD
    if not retain:
        association.read_log(kind)
    return Answer(data=log[offset : offset + length].ljust(length, b"\0"))


def _set_features(task: Task, association: Association) -> Answer | Refusal:
    value = task.command.cdw11
    match task.command.cdw10 & 0xFF:
        case admin.Feature.NUMBER_OF_QUEUES:
            if 0xFFFF in (value & 0xFFFF, value >> 16):
                return _INVALID_FIELD
            granted = association.profile.max_queues - 1
            return Answer(granted << 16 | granted)
        case admin.Feature.KEEP_ALIVE_TIMER:
            association.set_kato(value)
            return Answer(association.kato_ms)
        case admin.Feature.ASYNC_EVENT_CONFIGURATION:
            if value & ~association.identify().oaes:
                return _INVALID_FIELD  # nvmet_set_feat_async_event: a bit that it does not offer
            association.notices = value
            return Answer()
    return _INVALID_FIELD
