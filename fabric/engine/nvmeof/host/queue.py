"""One queue pair: connects, greets, sends, fails, goes away. Knows its slots; which commands pass is not its matter.

| input | output |
|---|---|
| open | Connect |
| connected | PostSend of the Connect command |
| rejected, failed | Disconnect, `queue_down` |
| received | the command, whose owner is then told |
| expire | `lost` for what is late and what shares its queue, Disconnect |
| gone | QuarantineReleased, `queue_gone` |

A lost command cannot be told from one that the target still carries out, and Abort stops nothing (nvmet ignores it).
So the memory of a command that failed without an answer stays held until the connection is gone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from fabric.engine.nvmeof.errors import CommandTimeoutError, ConnectRefusedError, NotReadyError, QueueLostError
from fabric.engine.nvmeof.host.config import ADMIN_RESERVE, HostConfig
from fabric.engine.nvmeof.host.outputs import (
    Connect,
    ConnectionId,
    Disconnect,
    Output,
    PostSend,
    QuarantineReleased,
    QueueMemory,
    Region,
    RequestId,
)
from fabric.engine.nvmeof.host.posting import Poster
from fabric.engine.nvmeof.host.refusals import refused_connect, rejection
from fabric.engine.nvmeof.host.requests import Body
from fabric.engine.nvmeof.host.slots import NO_REQUEST, Owner, Pending, SlotTable
from fabric.engine.nvmeof.host.states import QUEUE, Machine, QueueInput, QueueState
from fabric.engine.nvmeof.host.telemetry import Telemetry
from fabric.engine.nvmeof.wire import fabrics
from fabric.engine.nvmeof.wire.cm import CmAccept, CmReject, CmRequest
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.errors import EngineError, RemoteProtocolError, TransportError

__all__ = ("Queue", "QueueHooks")

_TCP_ADMIN_CAPSULE_BYTES = 8192  # Linux nvme-tcp.h, NVME_TCP_ADMIN_CCSZ: what any fabrics command may carry


class QueueHooks(Protocol):
    """Whom a queue reports to."""

    def queue_up(self, queue: "Queue", now_ns: int) -> None:
        """The target granted the queue."""
        ...

    def queue_down(self, queue: "Queue", error: EngineError, now_ns: int) -> None:
        """The queue takes nothing more; a Disconnect is on its way unless it never connected."""
        ...

    def queue_gone(self, queue: "Queue", now_ns: int) -> None:
        """The connection is gone; the queue may be opened again."""
        ...


@dataclass(slots=True)
class Queue:
    """A queue pair. `qid` 0 is the admin queue.

    Attributes:
        qid, depth: its id and entries.
        config: names and timeouts.
        hooks: whom to tell.
        emit: where outputs go.
        next_connection: gives an id that was never used.
        cntlid: the controller's id, once it is known.
        connection: the current one, or None.
        in_capsule_bytes: data that fits behind an entry.
        deadline_ns: when the transport must have connected.
        greeted_ns: when the Connect command was sent.
        stale: the last try to connect met an earlier connection of ours at the peer.
    """

    qid: int
    depth: int
    config: HostConfig
    hooks: QueueHooks
    emit: Callable[[Output], None]
    next_connection: Callable[["Queue"], ConnectionId]
    cntlid: int | None = None
    connection: ConnectionId | None = None
    in_capsule_bytes: int = 0
    stale: bool = False
    telemetry: Telemetry = field(default_factory=Telemetry)
    slots: SlotTable = field(init=False)
    deadline_ns: int | None = None
    greeted_ns: int = 0
    _poster: Poster | None = None
    _machine: Machine[QueueState, QueueInput] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = SlotTable(self.depth - 1, self.qid)
        self._machine = Machine(QUEUE, QueueState.DOWN, f"queue {self.qid}")

    @property
    def state(self) -> QueueState:
        """Where the queue is."""
        return self._machine.state

    @property
    def where(self) -> str:
        """The queue, for messages."""
        return f"{self.config.subnqn}, queue {self.qid}"

    def open(self, now_ns: int) -> None:
        """Asks the transport for a connection."""
        self._machine.fire(QueueInput.OPEN)
        self.stale = False
        self.connection = self.next_connection(self)
        self.deadline_ns = now_ns + self.config.connect_timeout_ns
        request = CmRequest(self.qid, self.depth, self.depth - 1, (self.cntlid or 0) if self.qid else 0)
        self.emit(Connect(self.connection, self.qid, self.depth, request.pack(), self.config.responder_resources))

    def connected(self, private_data: bytes, memory: QueueMemory, now_ns: int) -> None:
        """Takes the transport's connection and sends the Connect command; all RDMA needs is in `private_data`."""
        if self._machine.fire(QueueInput.CONNECTED) is not QueueState.GREETING:
            return
        entries = self.depth
        if self.config.transport == "rdma":
            try:
                # SPDK's host too shrinks to what is granted (lib/nvme/nvme_rdma.c, nvme_rdma_connect_established)
                entries = min(self.depth, CmAccept.parse(private_data).crqsize)
            except RemoteProtocolError as error:
                self.fail(error, now_ns)
                return
        if entries < (2 if self.qid else ADMIN_RESERVE + 2):
            self.fail(TransportError("the target grants no usable queue", where=self.where, found=str(entries)), now_ns)
            return
        self.slots = SlotTable(entries - 1, self.qid)
        transport, room = self.config.transport, self.in_capsule_bytes
        self._poster = Poster(self._connection(), self.qid, transport, memory, self.slots, room)
        self._greet(entries, now_ns)

    def rejected(self, private_data: bytes, now_ns: int, *, stale: bool) -> None:
        """Takes the transport's refusal; `stale`: the peer still holds an earlier connection of ours."""
        self.stale = stale
        was_closing = self.state is QueueState.CLOSING
        self._machine.fire(QueueInput.REJECTED)
        self._forget()
        if not was_closing:
            try:
                error = rejection(CmReject.parse(private_data).status, self.where)
            except RemoteProtocolError as problem:
                error = problem
            self.hooks.queue_down(self, error, now_ns)
        self.hooks.queue_gone(self, now_ns)

    def submit(
        self, body: Body, owner: Owner, now_ns: int, *, timeout_ns: int | None, request: RequestId = NO_REQUEST
    ) -> None:
        """Sends a command.

        Raises:
            NotReadyError: the queue is not connected.
            QueueFullError: no slot is free.
            LocalProtocolError: its data fits nowhere.
        """
        deadline_ns = None if timeout_ns is None else now_ns + timeout_ns
        pending = Pending(owner, self.qid, now_ns, request)
        poster = self._open_poster(greeting=owner is self)
        self.emit(poster.command(body, pending, deadline_ns, self._capsule_room(body)))

    def transfer(
        self, words: tuple[int, int, int, int], region: Region, pending: Pending, deadline_ns: int
    ) -> PostSend:
        """Returns what to send for a read or write of a region: see `Poster.transfer`.

        Raises:
            NotReadyError: the queue is not connected.
            QueueFullError: no slot is free.
        """
        poster = self._poster if self._machine.state is QueueState.LIVE else None
        if poster is None:
            raise self._not_connected()
        return poster.transfer(words, region, pending, deadline_ns)

    def received(self, response: bytes, now_ns: int) -> tuple[Pending, Cqe] | None:
        """Takes an answer; returns it with its command, whose owner is still to be told.

        None when the command had timed out, and when it fits no open command: that takes the queue down.
        """
        try:
            cqe = Cqe.parse(response)
            pending = self.slots.answer(cqe.cid)
        except RemoteProtocolError as error:
            self.fail(error, now_ns)
            return None
        telemetry = self.telemetry
        telemetry.sqhd = cqe.sqhd
        telemetry.answers += 1
        if pending is None:
            telemetry.late += 1
            return None
        return pending, cqe

    def next_timer_ns(self) -> int | None:
        """Returns when `expire` has something to do."""
        due = [at for at in (self.deadline_ns, self.slots.next_deadline_ns()) if at is not None]
        return min(due) if due else None

    def expire(self, now_ns: int) -> None:
        """Fails the connection or the commands whose time is over, and with one command its queue."""
        if self.deadline_ns is not None and self.deadline_ns <= now_ns:
            self.fail(TransportError("no connection came in time", where=self.where), now_ns)
            return
        if not self.slots.is_due(now_ns):
            return
        late = self.slots.expire(now_ns)
        error = CommandTimeoutError("a command had no answer in time", where=self.where)
        self._close()
        for pending in late:
            pending.owner.lost(pending, error, now_ns)
        self._lose_the_rest(error, now_ns)
        self.hooks.queue_down(self, error, now_ns)

    def fail(self, error: EngineError, now_ns: int) -> None:
        """Takes the queue down because of `error`; does nothing when it is down or closing."""
        if not self._machine.can(QueueInput.CLOSE):
            return
        self._close()
        self._lose_the_rest(error, now_ns)
        self.hooks.queue_down(self, error, now_ns)

    def gone(self, now_ns: int, reason: str) -> None:
        """Takes the news that the connection is no more, asked for or not."""
        error = QueueLostError("the connection was lost", where=self.where, found=reason)
        unasked = self.state is not QueueState.CLOSING
        self._machine.fire(QueueInput.GONE)
        if unasked:
            self._lose_the_rest(error, now_ns)
        connection = self._connection()
        held = self.slots.tear_down()
        self._forget()
        if held:
            self.emit(QuarantineReleased(connection, self.qid, held))
        if unasked:
            self.hooks.queue_down(self, error, now_ns)
        self.hooks.queue_gone(self, now_ns)

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes the answer to the Connect command."""
        del pending, payload
        if cqe.status:
            self.fail(refused_connect(cqe.status, cqe.result, admin=self.qid == 0, where=self.where), now_ns)
            return
        grant = fabrics.ConnectGrant.of(cqe.result)
        if grant.auth_required or grant.secure_channel_required:
            remedy = "take the host's key off the subsystem, or wait for a version that authenticates"
            self.fail(ConnectRefusedError("the target wants the host to authenticate", remedy=remedy), now_ns)
            return
        if self.qid == 0:
            self.cntlid = grant.cntlid
        self._machine.fire(QueueInput.GRANTED)
        self.hooks.queue_up(self, now_ns)

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss of the Connect command; the queue is closing already."""

    def _greet(self, entries: int, now_ns: int) -> None:
        self.deadline_ns = None
        self.greeted_ns = now_ns
        data = self.config.connect_data(None if self.qid == 0 else self.cntlid)
        connect = fabrics.Connect(self.qid, entries - 1, self.config.kato_ms if self.qid == 0 else 0)
        body = Body(connect.command(), outgoing=data.pack())
        try:
            self.submit(body, self, now_ns, timeout_ns=self.config.connect_timeout_ns)
        except EngineError as error:
            self.fail(error, now_ns)

    def _capsule_room(self, body: Body) -> int:
        if self.config.transport == "tcp" and (self.qid == 0 or self.state is QueueState.GREETING):
            return _TCP_ADMIN_CAPSULE_BYTES
        # on RDMA Connect data goes keyed: always accepted, and the admin capsule holds 64 bytes
        return 0 if self.state is QueueState.GREETING or not body.outgoing else self.in_capsule_bytes

    def _close(self) -> None:
        self._machine.fire(QueueInput.CLOSE)
        self._poster = self.deadline_ns = None
        self.emit(Disconnect(self._connection(), self.qid))

    def _lose_the_rest(self, error: EngineError, now_ns: int) -> None:
        lost = self.slots.quarantine_all()
        reason = QueueLostError("the queue went away under a command", where=self.where, found=str(error))
        for one in lost:
            one.owner.lost(one, reason, now_ns)

    def _open_poster(self, *, greeting: bool) -> Poster:
        # only the Connect command itself may go out before the target granted the queue
        if self._poster is None or (self.state is QueueState.GREETING and not greeting):
            raise self._not_connected()
        return self._poster

    def _not_connected(self) -> NotReadyError:
        return NotReadyError("the queue is not connected", where=self.where, found=str(self.state))

    def _connection(self) -> ConnectionId:
        if self.connection is None:
            raise NotReadyError("no connection", where=self.where)
        return self.connection

    def _forget(self) -> None:
        self.connection = self.deadline_ns = self._poster = None
