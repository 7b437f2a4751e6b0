"""Turns commands into capsules in slots of one connection. Knows slots and memory, no state of the queue.

Reads and writes of a registered region are most of what a KV engine sends: they are packed in one go.
`tests/property/test_engine_wire.py` holds both ways to the same bytes.
"""

from dataclasses import dataclass
from typing import Final, Literal

from fabric.engine.nvmeof.host.outputs import ConnectionId, PostSend, QueueMemory, Region
from fabric.engine.nvmeof.host.requests import Body, place
from fabric.engine.nvmeof.host.slots import Pending, SlotTable
from fabric.engine.nvmeof.wire.io import pack_keyed_transfer, pack_tcp_transfer

__all__ = ("Poster",)

_new: Final = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much


@dataclass(slots=True)
class Poster:
    """The sending side of one connection.

    Attributes:
        connection, qid: which.
        transport: how a region is described to the target.
        memory: the scratch of each slot.
        slots: what is in flight.
    """

    connection: ConnectionId
    qid: int
    transport: Literal["rdma", "tcp"]
    memory: QueueMemory
    slots: SlotTable

    def command(self, body: Body, pending: Pending, deadline_ns: int | None, in_capsule_bytes: int) -> PostSend:
        """Returns what to send for any command.

        Raises:
            QueueFullError: no slot is free.
            LocalProtocolError: its data fits nowhere; no slot is taken.
        """
        place(body, self.transport, self.memory, 0, in_capsule_bytes)
        slot, cid = self.slots.take(pending, deadline_ns)
        placed = place(body, self.transport, self.memory, slot, in_capsule_bytes)
        capsule = body.command.pack(cid, placed.sgl) + placed.in_capsule
        return PostSend(self.connection, self.qid, slot, capsule, placed.scratch, body.incoming_bytes, body.region)

    def transfer(
        self, words: tuple[int, int, int, int], region: Region, pending: Pending, deadline_ns: int
    ) -> PostSend:
        """Returns what to send for a read or write of a region.

        Args:
            words: opcode, namespace, first block, CDW12.
            region: its memory.
            pending: who waits.
            deadline_ns: until when.

        Raises:
            QueueFullError: no slot is free.
        """
        slot, cid = self.slots.take(pending, deadline_ns)
        pack = pack_keyed_transfer if self.transport == "rdma" else pack_tcp_transfer
        return _new(PostSend, (self.connection, self.qid, slot, pack(cid, words, region), b"", 0, region))
