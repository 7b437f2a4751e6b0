"""The way from a granted admin queue to a controller that takes requests, step by step, as data.

| step | command | on its answer |
|---|---|---|
| READ_CAP | Property Get CAP | timeouts, page size, queue entries |
| ENABLE | Property Set CC | |
| AWAIT_READY | Property Get CSTS, again until RDY or CAP.TO is over | fatal status fails |
| IDENTIFY | Identify Controller | id, keyed SGLs, capsule, MDTS |
| SET_QUEUES | Set Features, number of queues | how many there may be |
| SET_EVENTS | Set Features, asynchronous events | then the event requests are sent |
| SCAN | see `scan` | namespaces |
| OPEN_QUEUES | I/O queues connect | done when each is up or was refused |

Source: NVMe-oF 1.1 section 3.5; Linux host/fabrics.c and host/core.c (nvme_enable_ctrl, nvme_init_ctrl_finish).
"""

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType

from fabric.engine.nvmeof.errors import status_error
from fabric.engine.nvmeof.host.requests import Body, Limits
from fabric.engine.nvmeof.host.session import Session
from fabric.engine.nvmeof.host.slots import Pending
from fabric.engine.nvmeof.wire import admin, fabrics
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.events import Notice
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.engine.nvmeof.wire.registers import Cap, Cc, Csts, Register
from fabric.errors import EngineError, RemoteProtocolError, TransportError

__all__ = ("AFTER", "BringUp", "Step")


class Step(enum.StrEnum):
    """Where the bring-up is."""

    READ_CAP = "read-cap"
    ENABLE = "enable"
    AWAIT_READY = "await-ready"
    IDENTIFY = "identify"
    SET_QUEUES = "set-queues"
    SET_EVENTS = "set-events"
    SCAN = "scan"
    OPEN_QUEUES = "open-queues"


# The next step of each, for an I/O controller and for a discovery controller, which has neither queues nor namespaces.
AFTER: Mapping[bool, Mapping[Step, Step]] = MappingProxyType(
    {
        False: MappingProxyType(
            {
                Step.READ_CAP: Step.ENABLE,
                Step.ENABLE: Step.AWAIT_READY,
                Step.AWAIT_READY: Step.IDENTIFY,
                Step.IDENTIFY: Step.SET_QUEUES,
                Step.SET_QUEUES: Step.SET_EVENTS,
                Step.SET_EVENTS: Step.SCAN,
                Step.SCAN: Step.OPEN_QUEUES,
            }
        ),
        True: MappingProxyType(
            {
                Step.READ_CAP: Step.ENABLE,
                Step.ENABLE: Step.AWAIT_READY,
                Step.AWAIT_READY: Step.IDENTIFY,
                Step.IDENTIFY: Step.SET_EVENTS,
                Step.SET_EVENTS: Step.OPEN_QUEUES,
            }
        ),
    }
)

_NOTICES = Notice.NAMESPACE_ATTRIBUTE | Notice.ANA_CHANGE | Notice.DISCOVERY_LOG_CHANGE


class BringUp:
    """One bring-up after another of the same controller.

    Args:
        session: the controller.
        arm: sends so many event requests.
        scan: looks for namespaces, and calls `scanned`.
        open_queues: opens so many I/O queues of so many entries.
    """

    def __init__(
        self,
        session: Session,
        *,
        arm: Callable[[int, int], None],
        scan: Callable[[int], None],
        open_queues: Callable[[int, int, int], None],
    ) -> None:
        self._session = session
        self._arm, self._scan, self._open_queues = arm, scan, open_queues
        self.step = Step.READ_CAP
        self.cap = Cap(0)
        self.limits = Limits()
        self.allowed_queues = 0
        self._ready_by_ns = 0
        self._poll_at_ns: int | None = None
        self._is_running = False

    def start(self, now_ns: int) -> None:
        """Begins; the admin queue is granted."""
        self._is_running = True
        self._enter(Step.READ_CAP, now_ns)

    def stop(self) -> None:
        """Goes no further, whatever is still answered."""
        self._is_running, self._poll_at_ns = False, None

    def next_timer_ns(self) -> int | None:
        """Returns when CSTS is to be read again."""
        return self._poll_at_ns

    def tick(self, now_ns: int) -> None:
        """Reads CSTS again if it is time."""
        if self._poll_at_ns is not None and self._poll_at_ns <= now_ns:
            self._poll_at_ns = None
            self._ask(Body(fabrics.property_get(Register.CSTS)), now_ns)

    def scanned(self, now_ns: int) -> None:
        """Takes the end of the scan."""
        if self._is_running and self.step is Step.SCAN:
            self._next(now_ns)

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes the answer of the step's command."""
        del pending
        if not self._is_running:
            return
        # a target without any optional event refuses the feature; the controller is good without
        if cqe.status and self.step is not Step.SET_EVENTS:
            self._session.fail(status_error(cqe.status, where=f"bring-up, {self.step}"), now_ns)
            return
        try:
            self._take(cqe, payload, now_ns)
        except EngineError as error:
            self._session.fail(error, now_ns)

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss; the admin queue is already going down."""

    def _take(self, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        match self.step:
            case Step.READ_CAP:
                self.cap = Cap(cqe.result)
                self._ready_by_ns = now_ns + self.cap.ready_timeout_ns
            case Step.AWAIT_READY if not self._is_ready(cqe.result, now_ns):
                return
            case Step.IDENTIFY:
                self._identified(IdentifyController.parse(payload))
            case Step.SET_QUEUES:
                self.allowed_queues = admin.queues_granted(cqe.result)
            case Step.SET_EVENTS:
                self._arm(min(self._identity().aerl + 1, self._session.config.async_events), now_ns)
            case _:
                pass
        self._next(now_ns)

    def _is_ready(self, csts: int, now_ns: int) -> bool:
        if csts & Csts.FATAL:
            raise RemoteProtocolError("the controller reports a fatal status", found=f"CSTS 0x{csts:x}")
        if csts & Csts.READY:
            return True
        if now_ns >= self._ready_by_ns:
            limit_ms = self.cap.ready_timeout_ns // 1_000_000
            raise TransportError("the controller did not become ready", expected=f"within {limit_ms} ms")
        self._poll_at_ns = min(now_ns + self._session.config.ready_poll_ns, self._ready_by_ns)
        return False

    def _identified(self, identity: IdentifyController) -> None:
        config = self._session.config
        if identity.cntlid != self._session.cntlid:
            expected, found = str(self._session.cntlid), str(identity.cntlid)
            raise RemoteProtocolError("the controller names another id", expected=expected, found=found)
        if config.transport == "rdma" and not identity.has_keyed_sgl:
            raise RemoteProtocolError("the controller takes no keyed SGLs", found=f"SGLS 0x{identity.sgls:x}")
        self._session.identity = identity
        self.limits = Limits(identity.max_transfer_bytes(self.cap.min_page_shift), identity.in_capsule_bytes)

    def _next(self, now_ns: int) -> None:
        self._enter(AFTER[self._session.config.is_discovery][self.step], now_ns)

    def _enter(self, step: Step, now_ns: int) -> None:
        self.step = step
        match step:
            case Step.READ_CAP:
                self._ask(Body(fabrics.property_get(Register.CAP)), now_ns)
            case Step.ENABLE:
                self._ask(Body(fabrics.property_set(Register.CC, Cc.ENABLED)), now_ns)
            case Step.AWAIT_READY:
                self._ask(Body(fabrics.property_get(Register.CSTS)), now_ns)
            case Step.IDENTIFY:
                self._ask(Body(admin.identify(admin.Cns.CONTROLLER), incoming_bytes=admin.IDENTIFY_BYTES), now_ns)
            case Step.SET_QUEUES:
                self._ask(Body(admin.set_number_of_queues(max(1, self._session.config.io_queues))), now_ns)
            case Step.SET_EVENTS:
                self._ask(Body(admin.set_async_events(self._identity().oaes & _NOTICES)), now_ns)
            case Step.SCAN:
                self._scan(now_ns)
            case Step.OPEN_QUEUES:
                count = min(self.allowed_queues, self._session.config.io_queues)
                self._open_queues(count, self._depth(), now_ns)

    def _depth(self) -> int:
        commands = self._identity().max_commands  # 0: not said
        depth = min(self._session.config.io_depth, self.cap.max_queue_entries)
        return max(2, min(depth, commands + 1) if commands else depth)

    def _identity(self) -> IdentifyController:
        if self._session.identity is None:
            raise TransportError("the controller was not identified yet")
        return self._session.identity

    def _ask(self, body: Body, now_ns: int) -> None:
        self._session.admin(body, self, now_ns, timeout_ns=self._session.config.admin_timeout_ns)
