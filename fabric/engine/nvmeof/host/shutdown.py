"""The orderly end: I/O queues first, then CC.SHN, then CSTS.SHST until complete, then the admin queue.

Source: NVMe base 1.4 section 7.6.2; Linux host/core.c (nvme_disable_ctrl with shutdown).
"""

from collections.abc import Callable

from fabric.engine.nvmeof.host.requests import Body
from fabric.engine.nvmeof.host.session import Session
from fabric.engine.nvmeof.host.slots import Pending
from fabric.engine.nvmeof.wire import fabrics
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.registers import Cc, Csts, Register
from fabric.errors import EngineError

__all__ = ("Shutdown",)


class Shutdown:
    """Tells the target, and waits for it at most `shutdown_timeout_ns`.

    Args:
        session: the controller.
        done: called once: the admin queue may go.
    """

    def __init__(self, session: Session, done: Callable[[int], None]) -> None:
        self._session = session
        self._done = done
        self._give_up_ns: int | None = None
        self._poll_ns: int | None = None

    def start(self, now_ns: int) -> None:
        """Sets CC.SHN; I/O queues are gone."""
        self._give_up_ns = now_ns + self._session.config.shutdown_timeout_ns
        self._ask(Body(fabrics.property_set(Register.CC, Cc.ENABLED | Cc.SHUTDOWN_NORMAL)), now_ns)

    @property
    def is_running(self) -> bool:
        """It was begun and is not done."""
        return self._give_up_ns is not None

    def next_timer_ns(self) -> int | None:
        """Returns when `tick` has something to do."""
        due = [at for at in (self._give_up_ns, self._poll_ns) if at is not None]
        return min(due) if due else None

    def tick(self, now_ns: int) -> None:
        """Reads CSTS again, or gives up."""
        if self._give_up_ns is not None and self._give_up_ns <= now_ns:
            self._finish(now_ns)
        elif self._poll_ns is not None and self._poll_ns <= now_ns:
            self._poll_ns = None
            self._ask(Body(fabrics.property_get(Register.CSTS)), now_ns)

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes the answer to the Property Set, then to each Property Get."""
        del pending, payload
        if not self.is_running:
            return
        if cqe.status or cqe.result & Csts.SHUTDOWN_MASK == Csts.SHUTDOWN_COMPLETE:
            self._finish(now_ns)
        else:
            self._poll_ns = now_ns + self._session.config.ready_poll_ns

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss; the admin queue is already going down."""
        del pending, error
        self._finish(now_ns)

    def _ask(self, body: Body, now_ns: int) -> None:
        self._session.admin(body, self, now_ns, timeout_ns=self._session.config.admin_timeout_ns)

    def _finish(self, now_ns: int) -> None:
        if self.is_running:
            self._give_up_ns = self._poll_ns = None
            self._done(now_ns)
