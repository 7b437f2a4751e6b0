"""What a controller lives through: up, live, reset, back, gone. Composes the parts; carries no request of the caller.

The moves are the table `states.CONTROLLER`; this module does what each move needs. A reset takes every connection
down and waits for the last one to be gone before it tries again: until then the target may still write to memory.
"""

import itertools
from collections.abc import Iterator

from fabric.engine.nvmeof.errors import (
    AuthenticationRequiredError,
    ConnectRefusedError,
    ControllerLostError,
    NotReadyError,
)
from fabric.engine.nvmeof.host import outputs as out
from fabric.engine.nvmeof.host.bringup import BringUp
from fabric.engine.nvmeof.host.config import HostConfig
from fabric.engine.nvmeof.host.ioqueues import IoQueues
from fabric.engine.nvmeof.host.keepalive import KeepAlive
from fabric.engine.nvmeof.host.queue import Queue
from fabric.engine.nvmeof.host.recovery import Recovery
from fabric.engine.nvmeof.host.requests import Body
from fabric.engine.nvmeof.host.scan import NamespaceScan
from fabric.engine.nvmeof.host.shutdown import Shutdown
from fabric.engine.nvmeof.host.slots import Owner, Pending
from fabric.engine.nvmeof.host.states import CONTROLLER, ControllerInput, ControllerState, Machine, QueueState
from fabric.engine.nvmeof.host.watch import EventWatch
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.errors import EngineError, TransportError

__all__ = ("Lifecycle",)

_FINAL = (ConnectRefusedError, AuthenticationRequiredError, ControllerLostError)  # another try would not help


class Lifecycle:
    """The machine of one controller: a `session.Session` to its parts, a `queue.QueueHooks` to its admin queue.

    Args:
        config: names, sizes, patience.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        self.identity: IdentifyController | None = None
        self.outputs: list[out.Output] = []
        self.by_connection: dict[out.ConnectionId, Queue] = {}
        self.machine = Machine(CONTROLLER, ControllerState.NEW, "the controller")
        self._connections = itertools.count(1)
        self._error: EngineError = ControllerLostError("the controller was never reached", where=config.subnqn)
        self._was_ready = False
        self.admin_queue = Queue(0, config.admin_depth, config, self, self.emit, self.next_connection)
        self.io = IoQueues(self, self._settled)
        self.keep_alive = KeepAlive(self)
        self.scan = NamespaceScan(self, self._scanned)
        self._watch = EventWatch(self, lambda now_ns: self.scan.start(now_ns, clear_event=True))
        self.bring_up = BringUp(
            self,
            arm=self._watch.arm,
            scan=lambda now_ns: self.scan.start(now_ns, clear_event=False),
            open_queues=self._open_queues,
        )
        self._shutdown = Shutdown(self, self._shut_down)
        self._recovery = Recovery(config)

    @property
    def state(self) -> ControllerState:
        """Where the controller is."""
        return self.machine.state

    @property
    def cntlid(self) -> int | None:
        """The id that the target gave."""
        return self.admin_queue.cntlid

    def start(self, now_ns: int) -> None:
        """Begins."""
        self.machine.fire(ControllerInput.START)
        self._recovery.begin(now_ns)
        self.admin_queue.open(now_ns)

    def stop(self, now_ns: int) -> None:
        """Begins the orderly end."""
        self.machine.fire(ControllerInput.STOP)
        self._quiesce()
        self._recovery.cancel()
        error = NotReadyError("the controller is stopping", where=self.config.subnqn)
        self.io.close(error, now_ns)
        if self.admin_queue.state is not QueueState.LIVE:
            self.admin_queue.fail(error, now_ns)
        self.connection_gone(now_ns)

    def give_up(self, error: EngineError, now_ns: int) -> None:
        """Ends for good because of `error`; does nothing when it has ended."""
        if not self.machine.can(ControllerInput.GIVE_UP):
            return
        self.machine.fire(ControllerInput.GIVE_UP)
        self._quiesce()
        self._recovery.cancel()
        self.io.close(error, now_ns)
        self.admin_queue.fail(error, now_ns)
        self.emit(out.Lost(error))

    def tick(self, now_ns: int) -> None:
        """Does what is due."""
        self.admin_queue.expire(now_ns)
        self.io.tick(now_ns)
        for part in (self.keep_alive, self.bring_up, self._shutdown):
            part.tick(now_ns)
        if self._recovery.is_lost(now_ns):
            what = "the controller did not come back in time"
            self.give_up(ControllerLostError(what, where=self.config.subnqn, found=str(self._error)), now_ns)
        elif self.state is ControllerState.WAITING and self._recovery.is_retry_due(now_ns):
            self.machine.fire(ControllerInput.RETRY)
            self.admin_queue.open(now_ns)

    def next_timer_ns(self) -> int | None:
        """Returns when `tick` has something to do."""
        return min(self._timers(), default=None)

    # -- session.Session, for the parts

    def emit(self, output: out.Output) -> None:
        """Hands out a command or an event."""
        self.outputs.append(output)

    def next_connection(self, queue: Queue) -> out.ConnectionId:
        """Returns a connection id that was never used, and remembers that it is of `queue`."""
        connection = out.ConnectionId(next(self._connections))
        self.by_connection[connection] = queue
        return connection

    def admin(self, body: Body, owner: Owner, now_ns: int, *, timeout_ns: int | None) -> None:
        """Sends an admin command of the machine's own; a queue that cannot take it is broken."""
        try:
            self.admin_queue.submit(body, owner, now_ns, timeout_ns=timeout_ns)
        except EngineError as error:
            self.fail(error, now_ns)
            owner.lost(Pending(owner, 0, now_ns), error, now_ns)  # it was in no slot, so that the queue tells nobody

    def fail(self, error: EngineError, now_ns: int) -> None:
        """Takes every connection down because of `error`; what comes next depends on it and on the loss timeout."""
        if not self.machine.can(ControllerInput.FAIL):
            return
        first = self.state is not ControllerState.RESETTING
        self.machine.fire(ControllerInput.FAIL)
        if first:
            self._error = error
        self._quiesce()
        if self.state is ControllerState.RESETTING:
            self._recovery.begin(now_ns)
        self.io.close(error, now_ns)
        self.admin_queue.fail(error, now_ns)
        self.connection_gone(now_ns)

    def wants_queues(self) -> bool:
        """Whether a queue that went down should be opened again."""
        return self.state in (ControllerState.CONFIGURING, ControllerState.LIVE)

    def connection_gone(self, now_ns: int) -> None:
        """Goes on once no connection is left."""
        if not self.io.all_down:
            return
        admin_down = self.admin_queue.connection is None
        if self.state is ControllerState.RESETTING and admin_down:
            self._wait(now_ns)
        elif self.state is ControllerState.STOPPING and admin_down:
            self.machine.fire(ControllerInput.ALL_DOWN)
            self.emit(out.Closed())
        elif self._may_shut_down():
            self._shutdown.start(now_ns)

    # -- queue.QueueHooks, for the admin queue

    def queue_up(self, queue: Queue, now_ns: int) -> None:
        """The admin queue is granted: configure the controller."""
        self.machine.fire(ControllerInput.ADMIN_UP)
        self.identity = None
        self.keep_alive.start(queue.greeted_ns)
        self.bring_up.start(now_ns)

    def queue_down(self, queue: Queue, error: EngineError, now_ns: int) -> None:
        """The admin queue failed, and the controller with it."""
        del queue
        self.fail(error, now_ns)

    def queue_gone(self, queue: Queue, now_ns: int) -> None:
        """The admin queue's connection is gone."""
        del queue
        self.connection_gone(now_ns)

    # -- from the parts

    def _may_shut_down(self) -> bool:
        stopping = self.state is ControllerState.STOPPING and self.admin_queue.state is QueueState.LIVE
        return stopping and not self._shutdown.is_running

    def _wait(self, now_ns: int) -> None:
        self.machine.fire(ControllerInput.ALL_DOWN)
        if isinstance(self._error, _FINAL):
            self.give_up(self._error, now_ns)
            return
        at_ns = self._recovery.schedule(now_ns, stale=self.admin_queue.stale)
        self.emit(out.Reconnecting(self._recovery.attempts, at_ns, self._error))

    def _open_queues(self, count: int, depth: int, now_ns: int) -> None:
        self.io.open(count, depth, self.bring_up.limits.in_capsule_bytes, now_ns)

    def _settled(self, now_ns: int) -> None:
        if self.state is not ControllerState.CONFIGURING:
            return
        if self.config.io_queues and not self.config.is_discovery and not self.io.live:
            found = "" if self.io.first_error is None else str(self.io.first_error)
            self.fail(TransportError("no I/O queue could be opened", where=self.config.subnqn, found=found), now_ns)
            return
        self.machine.fire(ControllerInput.READY)
        self._recovery.succeeded()
        self._was_ready = True
        if self.identity is not None:
            self.emit(out.Ready(self.identity, self.io.live, tuple(sorted(self.scan.namespaces))))

    def _scanned(self, change: out.NamespacesChanged, now_ns: int) -> None:
        if self._was_ready and change != out.NamespacesChanged():
            self.emit(change)
        self.bring_up.scanned(now_ns)

    def _shut_down(self, now_ns: int) -> None:
        self.admin_queue.fail(NotReadyError("the controller is stopping", where=self.config.subnqn), now_ns)

    def _quiesce(self) -> None:
        self.keep_alive.stop()
        self.bring_up.stop()

    def _timers(self) -> Iterator[int]:
        parts = (self.admin_queue, self.io, self.keep_alive, self.bring_up, self._shutdown, self._recovery)
        for part in parts:
            at_ns = part.next_timer_ns()
            if at_ns is not None:
                yield at_ns
