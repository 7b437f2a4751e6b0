"""Finds the namespaces: at first, and again when the target says that they changed.

| step | command | next |
|---|---|---|
| CLEAR | Get Log Page, changed namespaces (re-arms the event) | LIST |
| LIST | Identify, active namespaces above the last seen | LIST while pages are full, then DESCRIBE |
| DESCRIBE | Identify, one namespace | DESCRIBE for each, then done |
"""

import enum
from collections.abc import Callable

from fabric.engine.nvmeof.errors import status_error
from fabric.engine.nvmeof.host.outputs import NamespacesChanged
from fabric.engine.nvmeof.host.requests import Body
from fabric.engine.nvmeof.host.session import Session
from fabric.engine.nvmeof.host.slots import Pending
from fabric.engine.nvmeof.wire import admin, identify, logs
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.errors import EngineError, RemoteProtocolError

__all__ = ("NamespaceScan",)

_FULL_PAGE = 1024


class _Step(enum.Enum):
    IDLE = enum.auto()
    CLEAR = enum.auto()
    LIST = enum.auto()
    DESCRIBE = enum.auto()


class NamespaceScan:
    """The namespaces of one controller, as last seen.

    Args:
        session: the controller.
        done: called after each scan, with what changed.
    """

    def __init__(self, session: Session, done: Callable[[NamespacesChanged, int], None]) -> None:
        self.namespaces: dict[int, identify.IdentifyNamespace] = {}
        self._session = session
        self._done = done
        self._step = _Step.IDLE
        self._again = False
        self._listed: list[int] = []
        self._found: dict[int, identify.IdentifyNamespace] = {}

    def start(self, now_ns: int, *, clear_event: bool) -> None:
        """Begins a scan; during one, remembers that another is wanted."""
        if self._step is not _Step.IDLE:
            self._again = True
            return
        self._listed, self._found, self._again = [], {}, False
        if clear_event:
            self._step = _Step.CLEAR
            page = admin.get_log_page(admin.LogPage.CHANGED_NAMESPACES, logs.CHANGED_LIST_BYTES)
            self._ask(page, now_ns)
        else:
            self._list(now_ns)

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes the answer of the step's command."""
        del pending
        if cqe.status:
            self._step = _Step.IDLE
            self._session.fail(status_error(cqe.status, where="namespace scan"), now_ns)
            return
        try:
            self._take(payload, now_ns)
        except RemoteProtocolError as error:
            self._step = _Step.IDLE
            self._session.fail(error, now_ns)

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss; the admin queue is already going down."""
        del pending, error, now_ns
        self._step, self._again = _Step.IDLE, False

    def _take(self, payload: bytes, now_ns: int) -> None:
        match self._step:
            case _Step.CLEAR:
                logs.parse_changed_namespaces(payload)
                self._list(now_ns)
            case _Step.LIST:
                page = identify.parse_active_namespaces(payload)
                if self._listed and page and page[0] <= self._listed[-1]:
                    raise RemoteProtocolError("the active namespace list goes back", found=str(page[0]))
                self._listed += page
                if len(page) == _FULL_PAGE:
                    self._list(now_ns)
                else:
                    self._describe(now_ns)
            case _:
                found = identify.IdentifyNamespace.parse(payload)
                # metadata would travel with each block, which no reader here expects: such a namespace is left out
                if found is not None and not found.metadata_bytes:
                    self._found[self._listed[0]] = found
                del self._listed[0]
                self._describe(now_ns)

    def _list(self, now_ns: int) -> None:
        self._step = _Step.LIST
        self._ask(admin.identify(admin.Cns.ACTIVE_NAMESPACES, self._listed[-1] if self._listed else 0), now_ns)

    def _describe(self, now_ns: int) -> None:
        if self._listed:
            self._step = _Step.DESCRIBE
            self._ask(admin.identify(admin.Cns.NAMESPACE, self._listed[0]), now_ns)
            return
        self._step = _Step.IDLE
        old, self.namespaces = self.namespaces, self._found
        change = NamespacesChanged(
            added=tuple(sorted(self.namespaces.keys() - old.keys())),
            removed=tuple(sorted(old.keys() - self.namespaces.keys())),
            changed=tuple(sorted(n for n in old.keys() & self.namespaces.keys() if old[n] != self.namespaces[n])),
        )
        self._done(change, now_ns)
        if self._again and self._step is _Step.IDLE:
            self.start(now_ns, clear_event=True)

    def _ask(self, command: Command, now_ns: int) -> None:
        body = Body(command, incoming_bytes=admin.IDENTIFY_BYTES)
        self._session.admin(body, self, now_ns, timeout_ns=self._session.config.admin_timeout_ns)
