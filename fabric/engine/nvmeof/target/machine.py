"""A target: takes connections and capsules, answers them, asks storage. Sans-I/O.

| input | output |
|---|---|
| connect_request | Accept, Reject |
| capsule | Respond, or FetchData, or a storage command |
| data_fetched | as a capsule whose data is here |
| stored | PushData and Respond |
| disconnected | Drop of the other queues, when the admin queue went |
| tick | Drop of every queue of a controller whose host was silent too long |
| add_namespace, remove_namespace, add_subsystem | Respond to event requests |

A command of a connection that is gone is dropped, with what storage still answers for it.
"""

import itertools
from collections.abc import Iterable, Sequence

from fabric.engine.nvmeof.target import outputs as out
from fabric.engine.nvmeof.target.admin import Answer, execute_admin
from fabric.engine.nvmeof.target.association import Association, Peer, Task
from fabric.engine.nvmeof.target.connect import Registry
from fabric.engine.nvmeof.target.discovery import DiscoveryService
from fabric.engine.nvmeof.target.io import execute_io
from fabric.engine.nvmeof.target.model import Address, Subsystem
from fabric.engine.nvmeof.target.placement import Placement, place_data
from fabric.engine.nvmeof.target.profile import NVMET, Refusal, TargetProfile
from fabric.engine.nvmeof.target.properties import get_property, set_property
from fabric.engine.nvmeof.wire.cm import CmAccept, CmReject, CmRequest, CmStatus
from fabric.engine.nvmeof.wire.command import FABRICS_OPCODE, SQE_BYTES, DataDirection, Sqe
from fabric.engine.nvmeof.wire.events import EventKind
from fabric.engine.nvmeof.wire.fabrics import CONNECT_DATA_BYTES, Connect, ConnectData, FabricsType
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.registers import Csts
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.errors import RemoteProtocolError

__all__ = ("Target",)


class Target:
    """A target of some subsystems.

    Args:
        profile: whose checks it makes.
        subsystems: what it serves.
        addresses: where it listens, for the discovery log.
        transport: "rdma": keyed SGLs; "tcp": data by command id, no private data.
    """

    def __init__(
        self,
        profile: TargetProfile = NVMET,
        subsystems: Iterable[Subsystem] = (),
        addresses: Sequence[Address] = (),
        *,
        transport: str = "rdma",
    ) -> None:
        self.profile = profile
        self._transport = transport
        self._subsystems = {one.nqn: one for one in subsystems}
        self._registry = Registry(profile, self._subsystems)
        self._discovery = DiscoveryService(self._subsystems, tuple(addresses), profile)
        self._peers: dict[out.PeerId, Peer] = {}
        self._tasks: dict[out.TaskId, Task] = {}
        self._task_ids = itertools.count(1)
        self._out: list[out.Output] = []
        self._timer_ns: int | None = None

    @property
    def controllers(self) -> tuple[Association, ...]:
        """The controllers that hosts have."""
        return tuple(self._registry.associations.values())

    @property
    def open_tasks(self) -> int:
        """Commands that wait for data or storage."""
        return len(self._tasks)

    def drain(self) -> tuple[out.Output, ...]:
        """Returns the outputs since the last call, in order; SetTimer last, when the next timer changed."""
        due = [one.expires_ns for one in self.controllers if one.expires_ns is not None]
        at_ns = min(due) if due else None
        if at_ns != self._timer_ns:
            self._timer_ns = at_ns
            self._out.append(out.SetTimer(at_ns))
        drained, self._out = tuple(self._out), []
        return drained

    def connect_request(self, peer: out.PeerId, private_data: bytes, *, responder_resources: int = 1) -> None:
        """A host asks for a connection; `responder_resources`: RDMA READs that it allows."""
        if self._transport == "tcp":
            self._peers[peer] = Peer(peer, 0, self.profile.max_depth)
            self._out.append(out.Accept(peer, b""))
            return
        status, request = self._judge(private_data, responder_resources)
        if request is None:
            self._out.append(out.Reject(peer, CmReject(status).pack()))
            return
        depth = request.hsqsize + 1
        if self.profile.caps_depth:
            depth = min(depth, request.hrqsize, self.profile.max_depth)
        self._peers[peer] = Peer(peer, request.qid, depth)
        self._out.append(out.Accept(peer, CmAccept(depth & 0xFFFF).pack()))

    def capsule(self, peer: out.PeerId, data: bytes, now_ns: int) -> None:
        """A command capsule came."""
        connection = self._peers.get(peer)
        if connection is None:
            return
        try:
            sqe = Sqe.parse(data)
        except RemoteProtocolError as error:
            self._fatal(connection, str(error))
            return
        association = connection.association
        if association is not None and self.profile.traffic_keeps_alive:
            association.touch(now_ns)
        task = Task(out.TaskId(next(self._task_ids)), connection, sqe.cid, sqe.command, sqe.sgl)
        refusal = self._admit(sqe, connection)
        placed = refusal or place_data(sqe, data[SQE_BYTES:], self.profile, self._transport, qid=connection.qid)
        if isinstance(placed, Refusal):
            self._refuse(task, placed)
        elif placed is Placement.FETCH:
            self._tasks[task.identifier] = task
            sgl = sqe.sgl
            self._out.append(out.FetchData(peer, task.identifier, sqe.cid, sgl.address, sgl.key, sgl.length))
        else:
            task.data = placed if isinstance(placed, bytes) else b""
            self._execute(task, now_ns)

    def data_fetched(self, task: out.TaskId, data: bytes, now_ns: int) -> None:
        """The data that FetchData asked for is here."""
        found = self._tasks.pop(task, None)
        if found is not None:
            found.data = data
            self._execute(found, now_ns)

    def stored(self, task: out.TaskId, *, data: bytes = b"", status: int = 0) -> None:
        """Storage did what it was asked; `data` of a read; `status` when it could not, as in `Cqe.status`."""
        found = self._tasks.pop(task, None)
        if found is None:
            return
        if status:
            self._refuse(found, Refusal(status))
        else:
            self._answer(found, Answer(data=data))

    def disconnected(self, peer: out.PeerId) -> None:
        """A connection is gone; with its admin queue a controller goes too."""
        connection = self._peers.pop(peer, None)
        if connection is None:
            return
        self._tasks = {key: one for key, one in self._tasks.items() if one.peer is not connection}
        association = connection.association
        if association is None:
            return
        association.peers.pop(connection.qid, None)
        if connection.qid == 0:
            self._end(association, "its admin queue is gone")

    def tick(self, now_ns: int) -> None:
        """Ends the controllers whose hosts were silent for longer than their keep-alive timeout."""
        for association in self.controllers:
            if association.expires_ns is not None and association.expires_ns <= now_ns:
                self._end(association, "keep-alive timeout")

    def add_subsystem(self, subsystem: Subsystem) -> None:
        """Serves one more subsystem, and tells the hosts of the discovery service."""
        self._subsystems[subsystem.nqn] = subsystem
        self._discovery.changed()
        self._announce(EventKind.DISCOVERY_CHANGED, None)

    def add_namespace(self, subnqn: str, nsid: int, namespace: IdentifyNamespace) -> None:
        """Adds or changes a namespace, and tells the hosts."""
        self._subsystems[subnqn].namespaces[nsid] = namespace
        self._namespace_changed(subnqn, nsid)

    def remove_namespace(self, subnqn: str, nsid: int) -> None:
        """Takes a namespace away, and tells the hosts."""
        del self._subsystems[subnqn].namespaces[nsid]
        self._namespace_changed(subnqn, nsid)

    def _judge(self, private_data: bytes, responder_resources: int) -> tuple[CmStatus, CmRequest | None]:
        profile = self.profile
        if len(private_data) < profile.cm_least_bytes:
            return CmStatus.INVALID_LENGTH, None
        # nvmet reads its struct from whatever the connection manager padded
        padded = private_data.ljust(32, b"\0")
        if padded[0:2] != b"\0\0":
            return CmStatus.INVALID_RECORD_FORMAT, None
        request = CmRequest.parse(padded)
        if profile.cm_wants_ird and not responder_resources:
            return CmStatus.INVALID_IRD, None
        if profile.cm_admin_depth and request.qid == 0 and request.hsqsize + 1 > profile.cm_admin_depth:
            return CmStatus.INVALID_HOST_SQ_SIZE, None
        return CmStatus.NONE, request

    def _admit(self, sqe: Sqe, connection: Peer) -> Refusal | None:
        is_fabrics = sqe.command.opcode == FABRICS_OPCODE
        is_connect = is_fabrics and sqe.command.nsid & 0xFF == FabricsType.CONNECT
        if self.profile.psdt and not sqe.has_sgl:
            return self.profile.psdt
        if sqe.fused:
            return Refusal(Status.INVALID_FIELD | DNR)
        if connection.association is None:
            return None if is_connect else self.profile.not_connected
        if is_connect:
            return self.profile.reconnect
        if is_fabrics:
            return None
        return None if connection.association.is_ready else self.profile.not_ready

    def _execute(self, task: Task, now_ns: int) -> None:
        connection, association = task.peer, task.peer.association
        if task.command.opcode == FABRICS_OPCODE:
            self._finish(task, self._fabrics(task, now_ns))
        elif association is None:
            self._refuse(task, self.profile.not_connected)
        elif connection.qid == 0:
            self._finish(task, execute_admin(task, association, self._discovery.log, now_ns))
            self._deliver(association)
        else:
            work = execute_io(task, association)
            if isinstance(work, Refusal):
                self._refuse(task, work)
                return
            self._tasks[task.identifier] = task
            self._out.append(work)

    def _fabrics(self, task: Task, now_ns: int) -> Answer | Refusal:
        association, kind = task.peer.association, task.command.nsid & 0xFF
        if association is None:
            return self._connect(task, now_ns)
        if kind == FabricsType.PROPERTY_GET:
            value = get_property(association, task.command)
            return value if isinstance(value, Refusal) else Answer(value)
        if kind == FabricsType.PROPERTY_SET and task.peer.qid == 0:
            return set_property(association, task.command) or Answer()
        return Refusal(Status.INVALID_OPCODE | DNR)

    def _connect(self, task: Task, now_ns: int) -> Answer | Refusal:
        if len(task.data) < CONNECT_DATA_BYTES:
            return self.profile.sgl_length
        try:
            data = ConnectData.parse(task.data)
        except RemoteProtocolError:
            return Refusal(Status.INVALID_FIELD | DNR)
        found = self._registry.connect(task.peer, Connect.of(task.command), data, now_ns)
        return found if isinstance(found, Refusal) else Answer(found.cntlid)

    def _finish(self, task: Task, end: Answer | Refusal) -> None:
        if isinstance(end, Refusal):
            self._refuse(task, end)
        elif not end.later:
            self._answer(task, end)

    def _answer(self, task: Task, answer: Answer) -> None:
        wanted, given = len(answer.data), task.sgl.length
        if task.command.direction is DataDirection.TO_HOST and task.command.opcode != FABRICS_OPCODE and wanted:
            if given < wanted or (given > wanted and not self.profile.sgl_may_be_longer):
                self._refuse(task, self.profile.sgl_length)
                return
            sgl = task.sgl
            self._out.append(out.PushData(task.peer.identifier, task.cid, sgl.address, sgl.key, answer.data))
        self._respond(task.peer, task.cid, 0, answer.result)

    def _refuse(self, task: Task, refusal: Refusal) -> None:
        self._respond(task.peer, task.cid, refusal.status, refusal.result)

    def _respond(self, peer: Peer, cid: int, status: int, result: int) -> None:
        self._out.append(out.Respond(peer.identifier, peer.answer(cid, status, result).pack()))

    def _fatal(self, connection: Peer, reason: str) -> None:
        if connection.association is not None:
            self._end(connection.association, reason)
        else:
            self._out.append(out.Drop(connection.identifier, reason))

    def _end(self, association: Association, reason: str) -> None:
        self._registry.remove(association)
        association.expires_ns, association.csts = None, Csts.FATAL
        for peer in association.peers.values():
            self._out.append(out.Drop(peer.identifier, reason))

    def _namespace_changed(self, subnqn: str, nsid: int) -> None:
        for association in self.controllers:
            if association.subsystem is not None and association.subsystem.nqn == subnqn:
                association.changed.append(nsid)
        self._announce(EventKind.NAMESPACE_CHANGED, subnqn)

    def _announce(self, kind: EventKind, subnqn: str | None) -> None:
        for association in self.controllers:
            served = association.subsystem.nqn if association.subsystem else None
            if served == subnqn:
                association.announce(kind)
                self._deliver(association)

    def _deliver(self, association: Association) -> None:
        for peer, cid, event in association.deliverable():
            self._respond(peer, cid, 0, event.result)
