"""A target with its storage, its shape and its faults: what stands behind the wire, whatever the wire is.

| input | from |
|---|---|
| connect_request, capsule, data_fetched, disconnected | the wire |
| poll | the wire, often: does what is due, returns what the wire has to do, in order |

Time is an argument. Outputs of one connection keep their order, but for what a fault asks.
"""

import heapq
import itertools
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from fabric.engine.nvmeof.target import (
    Accept,
    Drop,
    FetchData,
    PeerId,
    PushData,
    Reject,
    Respond,
    SetTimer,
    Target,
    TaskId,
)
from fabric.engine.nvmeof.wire.command import FABRICS_OPCODE, SQE_BYTES
from fabric.engine.nvmeof.wire.fabrics import FabricsType
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.engine.transport.faults import Fault, FaultKind, FaultScript
from fabric.engine.transport.shape import UNSHAPED, Shape, Shaper
from fabric.engine.transport.storage import Storage, StorageWork, perform, work_bytes

__all__ = ("Service", "WireOutput")

WireOutput: TypeAlias = Accept | Reject | FetchData | PushData | Respond | Drop
_FaultKey: TypeAlias = tuple[PeerId, int]  # connection, command id
_WIRE = (Accept, Reject, FetchData, PushData, Respond, Drop)
_LATE = (FaultKind.DELAY, FaultKind.LATE_ANSWER)


class _Work(NamedTuple):
    peer: PeerId
    cid: int
    work: StorageWork


class _Held(NamedTuple):
    peer: PeerId
    answer: Respond


@dataclass(slots=True)
class _Peer:
    qid: int = 0
    fetching: dict[TaskId, int] = field(default_factory=dict)  # command ids
    behind: list[Respond] = field(default_factory=list)  # answers that let another one pass


class Service:
    """What serves.

    Args:
        target: the machine.
        storage: its namespaces.
        shape: how slow, and what goes wrong.

    Attributes:
        max_transfer_bytes: longer commands are refused: the MDTS that the target's profile states.
    """

    def __init__(self, target: Target, storage: Storage, shape: Shape = UNSHAPED) -> None:
        self.target = target
        self.storage = storage
        self.max_transfer_bytes = 4096 << target.profile.mdts
        self._shaper = Shaper(shape)
        self._script = FaultScript(shape.faults, shape.seed)
        self._peers: dict[PeerId, _Peer] = {}
        self._fate: dict[_FaultKey, Fault] = {}
        self._due: list[tuple[int, int, WireOutput | _Work | _Held]] = []
        self._order = itertools.count()
        self._timer_ns: int | None = None

    def connect_request(self, peer: PeerId, private_data: bytes, now_ns: int, *, responder_resources: int = 1) -> None:
        """A host asks for a connection."""
        self._peers[peer] = _Peer()
        self.target.connect_request(peer, private_data, responder_resources=responder_resources)
        self._collect(peer, 0, now_ns)

    def capsule(self, peer: PeerId, data: bytes, now_ns: int) -> None:
        """A command came."""
        known = self._peers.get(peer)
        if known is None:
            return
        cid = int.from_bytes(data[2:4], "little")
        if len(data) >= SQE_BYTES:
            if data[0] == FABRICS_OPCODE and data[4] == FabricsType.CONNECT:
                known.qid = int.from_bytes(data[42:44], "little")  # Connect: QID at 42 (hosts study 1.5)
            fault = self._script.judge(data[0], is_io=bool(known.qid) and data[0] != FABRICS_OPCODE)
            self._fate.pop((peer, cid), None)
            if fault is not None and self._strike(fault, peer, cid, now_ns):
                return
        self.target.capsule(peer, data, now_ns)
        self._collect(peer, cid, now_ns)

    def data_fetched(self, peer: PeerId, task: TaskId, data: bytes, now_ns: int) -> None:
        """The data that FetchData asked for is here."""
        known = self._peers.get(peer)
        if known is not None and task in known.fetching:
            cid = known.fetching.pop(task)
            self.target.data_fetched(task, data, now_ns)
            self._collect(peer, cid, now_ns)

    def disconnected(self, peer: PeerId, now_ns: int) -> None:
        """A connection is gone; nothing more is done for it."""
        if self._peers.pop(peer, None) is None:
            return
        self._shaper.forget(peer)
        self._fate = {key: fault for key, fault in self._fate.items() if key[0] != peer}
        self.target.disconnected(peer)
        self._collect(peer, 0, now_ns)

    def poll(self, now_ns: int) -> list[WireOutput]:
        """Returns what the wire has to do now."""
        if self._timer_ns is not None and self._timer_ns <= now_ns:
            self.target.tick(now_ns)
            self._collect(PeerId(0), 0, now_ns)
        wire: list[WireOutput] = []
        while self._due and self._due[0][0] <= now_ns:
            _at_ns, _order, item = heapq.heappop(self._due)
            known = self._peers.get(item.peer)
            if known is None:
                continue
            if isinstance(item, _Work):
                self._carry_out(item, now_ns)
            elif not isinstance(item, _Held):
                wire.append(item)
            elif item.answer in known.behind:
                known.behind.remove(item.answer)
                wire.append(item.answer)
        return wire

    def next_timer_ns(self) -> int | None:
        """Returns when `poll` has something to do."""
        due = [self._due[0][0]] if self._due else []
        if self._timer_ns is not None:
            due.append(self._timer_ns)
        return min(due) if due else None

    def announce(self, now_ns: int) -> None:
        """Sends what a change of subsystems or namespaces made the target say. Call it after such a change."""
        self._collect(PeerId(0), 0, now_ns)

    def _strike(self, fault: Fault, peer: PeerId, cid: int, now_ns: int) -> bool:
        """Returns whether the command ends here."""
        if fault.kind is FaultKind.DROP:
            return True
        if fault.kind is FaultKind.BREAK:
            self._schedule(Drop(peer, "a scripted fault"), now_ns)
            return True
        self._fate[peer, cid] = fault
        return False

    def _collect(self, peer: PeerId, cid: int, now_ns: int) -> None:
        for output in self.target.drain():
            if isinstance(output, SetTimer):
                self._timer_ns = output.at_ns
            elif isinstance(output, _WIRE):
                self._emit(output, now_ns)
            else:
                self._accept_work(_Work(peer, cid, output), now_ns)

    def _accept_work(self, item: _Work, now_ns: int) -> None:
        length = work_bytes(item.work)
        self._schedule(item, self._shaper.storage_done_ns(item.peer, length, now_ns))

    def _carry_out(self, item: _Work, now_ns: int) -> None:
        peer, cid, work = item
        fault = self._fate.get((peer, cid))
        if fault is not None and fault.kind is FaultKind.STATUS:
            data, status = b"", fault.status
        elif work_bytes(work) > self.max_transfer_bytes:
            data, status = b"", Status.INVALID_FIELD | DNR  # NVMe base 1.4, Identify Controller: MDTS
        else:
            data, status = perform(work, self.storage)
        self.target.stored(work.task, data=data, status=status)
        self._collect(peer, cid, now_ns)

    def _emit(self, output: WireOutput, now_ns: int) -> None:
        if isinstance(output, PushData):
            self._emit_data(output, now_ns)
        elif isinstance(output, Respond):
            self._emit_answer(output, now_ns)
        else:
            if isinstance(output, FetchData) and output.peer in self._peers:
                self._peers[output.peer].fetching[output.task] = output.cid
            self._schedule(output, now_ns)

    def _emit_data(self, output: PushData, now_ns: int) -> None:
        fault = self._fate.get((output.peer, output.cid))
        kind = fault.kind if fault else None
        if kind is FaultKind.LOSE_DATA:
            return
        if kind is FaultKind.CORRUPT:
            changed = bytes([output.data[0] ^ 0x01]) + output.data[1:]
            output = PushData(output.peer, output.cid, output.address, output.key, changed)
        late_ns = fault.delay_ns if fault and kind is FaultKind.DELAY else 0
        self._schedule(output, self._shaper.link_done_ns(len(output.data), now_ns) + late_ns)

    def _emit_answer(self, output: Respond, now_ns: int) -> None:
        cid = int.from_bytes(output.response[12:14], "little")
        known = self._peers.get(output.peer)
        if known is None:
            return
        fault = self._fate.pop((output.peer, cid), None)
        kind, delay_ns = (fault.kind, fault.delay_ns) if fault else (None, 0)
        if kind is FaultKind.LOSE_ANSWER:
            return
        at_ns = self._shaper.link_done_ns(len(output.response), now_ns)
        if kind is FaultKind.REORDER:
            known.behind.append(output)
            self._schedule(_Held(output.peer, output), at_ns + delay_ns)  # should no other answer come
            return
        if kind in _LATE:
            at_ns += delay_ns
        self._schedule(output, at_ns)
        if kind is FaultKind.DUPLICATE:
            self._schedule(output, at_ns + delay_ns)
        for overtaken in known.behind:
            self._schedule(overtaken, at_ns)
        known.behind.clear()

    def _schedule(self, item: WireOutput | _Work | _Held, at_ns: int) -> None:
        heapq.heappush(self._due, (at_ns, next(self._order), item))
