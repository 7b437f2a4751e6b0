"""Keep Alive: sends one when nothing else has proved for half the timeout that this host lives.

Source: NVMe base 1.4 section 5.21.1.15; Linux host/core.c (nvme_keep_alive_work). What proves it is a command that the
target answered, from the moment it was sent: with TBKAS any command, else Keep Alive alone.
"""

from fabric.engine.nvmeof.errors import status_error
from fabric.engine.nvmeof.host.config import MS
from fabric.engine.nvmeof.host.requests import Body
from fabric.engine.nvmeof.host.session import Session
from fabric.engine.nvmeof.host.slots import Pending
from fabric.engine.nvmeof.wire import admin
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.errors import EngineError

__all__ = ("KeepAlive",)


class KeepAlive:
    """The timer of one controller.

    Args:
        session: the controller.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kato_ns = session.config.kato_ms * MS
        self._proof_ns: int | None = None
        self._traffic_ns = 0  # when the last answered command of any kind was sent
        self._waiting = False

    def start(self, now_ns: int) -> None:
        """Begins with the admin queue's Connect, which starts the target's timer."""
        self._proof_ns = self._traffic_ns = now_ns
        self._waiting = False

    def stop(self) -> None:
        """Ends; nothing is due any more."""
        self._proof_ns = None

    def note(self, submitted_ns: int) -> None:
        """Takes the sending time of a command that was answered; once a command."""
        if submitted_ns > self._traffic_ns:  # noqa: PLR1730, max() costs twice as much
            self._traffic_ns = submitted_ns

    def next_timer_ns(self) -> int | None:
        """Returns when a Keep Alive is due; none before Identify: a target that is not ready refuses it (0x00C)."""
        identity = self._session.identity
        if self._proof_ns is None or not self._kato_ns or self._waiting or identity is None:
            return None
        traffic_ns = self._traffic_ns if identity.traffic_keeps_alive else 0
        return max(self._proof_ns, traffic_ns) + self._kato_ns // 2

    def tick(self, now_ns: int) -> None:
        """Sends a Keep Alive if one is due."""
        due = self.next_timer_ns()
        if due is None or due > now_ns:
            return
        self._waiting = True
        self._session.admin(Body(admin.keep_alive()), self, now_ns, timeout_ns=self._kato_ns)

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes the answer to a Keep Alive."""
        del payload
        self._waiting = False
        if cqe.status:
            self._session.fail(status_error(cqe.status, where="keep alive"), now_ns)
        elif self._proof_ns is not None:
            self._proof_ns = max(self._proof_ns, pending.submitted_ns)

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss; the admin queue is already going down."""
        del pending, error, now_ns
        self._waiting = False
