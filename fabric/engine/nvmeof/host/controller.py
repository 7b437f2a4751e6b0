"""A controller as its host sees it: the inputs of the caller, of the transport and of the timer; the outputs in order.

| input | from |
|---|---|
| start, submit, submit_admin, read_discovery_log, add_queue, remove_queue, stop, device_removed | the caller |
| connected, rejected, sent, received, failed, disconnected | the transport |
| tick | the timer: deliver what has arrived before it, or a stall looks like a timeout |

Every input may produce outputs (`outputs`); `drain` hands them out. States and moves are tables (`states`,
`bringup.AFTER`). Inputs of a connection that is no more are ignored: connection ids are never used twice. No input of
the transport raises for what a peer did: that takes the queue down, and `QueueDown` says why.

Reads and writes, their answers and their sends only put timers off; so between other inputs the next timer is not
looked for anew, and may ring early.
"""

import itertools
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, cast

from fabric.engine.nvmeof.errors import ControllerLostError, NotReadyError, QueueFullError, status_error
from fabric.engine.nvmeof.host import outputs as out
from fabric.engine.nvmeof.host.config import ADMIN_RESERVE, HostConfig
from fabric.engine.nvmeof.host.discovery import DiscoveryReader
from fabric.engine.nvmeof.host.lifecycle import Lifecycle
from fabric.engine.nvmeof.host.queue import Queue
from fabric.engine.nvmeof.host.requests import Admin, Body, IoRequest, Limits, prepare, region_transfer
from fabric.engine.nvmeof.host.slots import Pending
from fabric.engine.nvmeof.host.states import ControllerState, QueueState
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.identify import IdentifyController, IdentifyNamespace
from fabric.engine.nvmeof.wire.status import CODE_MASK, Disposition, Status, retry_delay_index
from fabric.errors import EngineError, LocalProtocolError

__all__ = ("Controller",)

_RETRY_DELAY_UNIT_NS = 100_000_000  # CRDT counts 100 ms
_new: Final = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much


class Controller:
    """One controller of one subsystem.

    Args:
        config: names, sizes, patience.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        self._life = Lifecycle(config)
        self._emit = self._life.outputs.append
        self._requests = cast("Iterator[out.RequestId]", itertools.count(1))
        self._discovery = DiscoveryReader(self._life)
        self._timer_ns: int | None = None
        self._has_moved = True  # an input may have brought the next timer forward

    @property
    def state(self) -> ControllerState:
        """Where the controller is."""
        return self._life.state

    @property
    def identity(self) -> IdentifyController | None:
        """What the controller says of itself; None while it is being asked."""
        return self._life.identity

    @property
    def limits(self) -> Limits:
        """The largest transfer and the data that fits a capsule; known when ready."""
        return self._life.bring_up.limits

    @property
    def namespaces(self) -> Mapping[int, IdentifyNamespace]:
        """The usable namespaces, as last seen."""
        return MappingProxyType(self._life.scan.namespaces)

    @property
    def live_queues(self) -> tuple[int, ...]:
        """The I/O queues that take requests."""
        return self._life.io.live if self.state is ControllerState.LIVE else ()

    def room(self, qid: int) -> int:
        """Returns how many requests an I/O queue takes now; 0 when it is not connected.

        Raises:
            NotReadyError: there is none of that id.
        """
        queue = self._life.io.get(qid)
        live = self.state is ControllerState.LIVE and queue.state is QueueState.LIVE
        return queue.slots.count - queue.slots.in_use if live else 0

    def queue(self, qid: int) -> Queue:
        """Returns a queue, to read its state, slots and telemetry.

        Raises:
            NotReadyError: there is none of that id.
        """
        return self._life.admin_queue if qid == 0 else self._life.io.get(qid)

    def drain(self) -> tuple[out.Output, ...]:
        """Returns the outputs since the last call, in order; SetTimer last, when the next timer changed."""
        life = self._life
        if self._has_moved:
            self._has_moved = False
            at_ns = life.next_timer_ns()
            if at_ns != self._timer_ns:
                self._timer_ns = at_ns
                life.emit(out.SetTimer(at_ns))
        drained = tuple(life.outputs)
        life.outputs.clear()
        return drained

    def start(self, now_ns: int) -> None:
        """Begins; ends with Ready or Lost."""
        self._moved().start(now_ns)

    def submit(self, qid: int, request: IoRequest, now_ns: int, *, timeout_ns: int | None = None) -> out.RequestId:
        """Sends `request` on an I/O queue; Completed or Failed will name the id that it returns.

        Raises:
            NotReadyError: the controller or the queue does not take requests now.
            QueueFullError: the queue has no free slot.
            LocalProtocolError: the request cannot be right: unknown namespace, wrong length, blocks outside.
        """
        life = self._life
        if life.machine.state is not ControllerState.LIVE:
            raise self._not_live()
        queue = life.io.get(qid)
        namespace = life.scan.namespaces.get(request.nsid)
        if namespace is None:
            raise LocalProtocolError("no such namespace", where=self.config.subnqn, found=str(request.nsid))
        timeout = self.config.io_timeout_ns if timeout_ns is None else timeout_ns
        transfer = region_transfer(request, namespace, life.bring_up.limits)
        if transfer is None:
            return self._send(queue, prepare(request, namespace, life.bring_up.limits), timeout, now_ns)
        words, region = transfer
        identifier = next(self._requests)
        deadline_ns = now_ns + timeout
        pending = _new(Pending, (self, qid, now_ns, identifier))
        self._emit(queue.transfer(words, region, pending, deadline_ns))
        if self._timer_ns is None or deadline_ns < self._timer_ns:
            self._has_moved = True
        return identifier

    def submit_admin(self, request: Admin, now_ns: int, *, timeout_ns: int | None = None) -> out.RequestId:
        """Sends an admin command; Completed or Failed will name the id that it returns.

        Raises:
            NotReadyError: the controller takes no requests now.
            QueueFullError: the caller's share of the admin queue is in use.
            LocalProtocolError: its data does not fit a slot's scratch.
        """
        self._need_live()
        queue = self._life.admin_queue
        if queue.slots.in_use >= queue.slots.count - ADMIN_RESERVE:
            raise QueueFullError("the admin queue is in use", where=self.config.subnqn)
        body = Body(request.command, outgoing=request.outgoing, incoming_bytes=request.incoming_bytes)
        timeout = self.config.admin_timeout_ns if timeout_ns is None else timeout_ns
        return self._send(queue, body, timeout, now_ns)

    def read_discovery_log(self, now_ns: int) -> out.RequestId:
        """Reads the discovery log; ends with DiscoveryLog, or Failed of the id that it returns.

        Raises:
            NotReadyError: the controller takes no requests now, or reads a log already.
        """
        self._need_live()
        self._has_moved = True
        identifier = next(self._requests)
        self._discovery.start(identifier, now_ns)
        return identifier

    def add_queue(self, now_ns: int) -> int:
        """Opens one more I/O queue; returns its id. QueueUp or QueueDown follows.

        Raises:
            NotReadyError: the controller takes no requests now, or allows no further queue.
        """
        self._need_live()
        return self._moved().io.add(self._life.bring_up.allowed_queues, now_ns)

    def remove_queue(self, qid: int, now_ns: int) -> None:
        """Takes an I/O queue down for good; requests that it still carries fail, their memory held until it is gone.

        Raises:
            NotReadyError: there is none of that id.
        """
        self._moved().io.remove(qid, now_ns)

    def stop(self, now_ns: int) -> None:
        """Shuts down in order; ends with Closed. Requests still out fail.

        Raises:
            LocalProtocolError: it is stopping, closed or lost already.
        """
        self._moved().stop(now_ns)

    def device_removed(self, now_ns: int, *, reason: str = "") -> None:
        """Gives up: the network device is gone. Ends with Lost; every request fails."""
        error = ControllerLostError("the network device was removed", where=self.config.subnqn, found=reason)
        self._moved().give_up(error, now_ns)

    def connected(
        self, connection: out.ConnectionId, private_data: bytes, memory: out.QueueMemory, now_ns: int
    ) -> None:
        """A connection is there, with the target's private data and the scratch that the transport registered."""
        if (queue := self._moved().by_connection.get(connection)) is not None:
            queue.connected(private_data, memory, now_ns)

    def rejected(self, connection: out.ConnectionId, private_data: bytes, now_ns: int, *, stale: bool = False) -> None:
        """A connection was refused; `stale`: because the peer still holds an earlier one (ESTALE)."""
        if (queue := self._moved().by_connection.pop(connection, None)) is not None:
            queue.rejected(private_data, now_ns, stale=stale)

    def sent(self, connection: out.ConnectionId, slot: int) -> None:
        """The send of a slot completed.

        Raises:
            LocalProtocolError: the slot waits for none.
        """
        if (queue := self._life.by_connection.get(connection)) is not None:
            queue.slots.send_done(slot)

    def received(self, connection: out.ConnectionId, response: bytes, now_ns: int, *, payload: bytes = b"") -> None:
        """An answer came: 16 bytes, and the slot's scratch if PostSend asked for it."""
        queue = self._life.by_connection.get(connection)
        if queue is None:
            return
        answer = queue.received(response, now_ns)
        if answer is None:
            self._has_moved = True
            return
        pending, cqe = answer
        if pending.owner is not self:
            self._has_moved = True
        pending.owner.answered(pending, cqe, payload, now_ns)

    def failed(self, connection: out.ConnectionId, error: EngineError, now_ns: int) -> None:
        """A connection broke: a bad completion, a disconnect of the peer. Disconnect follows."""
        if (queue := self._moved().by_connection.get(connection)) is not None:
            queue.fail(error, now_ns)

    def disconnected(self, connection: out.ConnectionId, now_ns: int, *, reason: str = "") -> None:
        """A connection is gone: nothing can write to its memory any more."""
        if (queue := self._moved().by_connection.pop(connection, None)) is not None:
            queue.gone(now_ns, reason)

    def tick(self, now_ns: int) -> None:
        """Does what is due."""
        self._moved().tick(now_ns)

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes the answer to a request."""
        self._life.keep_alive.note(pending.submitted_ns)
        if not cqe.status:
            self._emit(_new(out.Completed, (pending.request, pending.qid, cqe.result, payload)))
            return
        error = status_error(cqe.status, where=f"{self.config.subnqn}, queue {pending.qid}")
        delay_ns = self._retry_delay_ns(cqe.status)
        self._life.emit(out.Failed(pending.request, pending.qid, error, error.disposition, delay_ns))
        if pending.qid and cqe.status & CODE_MASK == Status.COMMAND_SEQUENCE_ERROR:
            # the target reset the controller behind our back, and refuses all I/O: only a new one will do it
            self._life.fail(error, now_ns)

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss of a request (called by its queue); its memory is held until the queue is gone."""
        del now_ns
        failed = out.Failed(pending.request, pending.qid, error, Disposition.RETRY_ELSEWHERE, held=True)
        self._life.emit(failed)

    def _moved(self) -> Lifecycle:
        """Returns the lifecycle, for an input that may bring the next timer forward."""
        self._has_moved = True
        return self._life

    def _need_live(self) -> None:
        if self.state is not ControllerState.LIVE:
            raise self._not_live()

    def _not_live(self) -> NotReadyError:
        return NotReadyError("the controller takes no requests", where=self.config.subnqn, found=str(self.state))

    def _send(self, queue: Queue, body: Body, timeout_ns: int, now_ns: int) -> out.RequestId:
        self._has_moved = True
        identifier = next(self._requests)
        queue.submit(body, self, now_ns, timeout_ns=timeout_ns, request=identifier)
        return identifier

    def _retry_delay_ns(self, status: int) -> int:
        index = retry_delay_index(status)
        identity = self._life.identity
        return identity.retry_delays_100ms[index - 1] * _RETRY_DELAY_UNIT_NS if index and identity else 0
