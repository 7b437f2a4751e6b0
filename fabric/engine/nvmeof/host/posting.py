"""Turns commands into capsules in slots of one connection. Knows slots and memory, no state of the queue.

Reads and writes of a registered region are most of what a KV engine sends: they are packed in one go.
`tests/property/test_engine_wire.py` holds both ways to the same bytes.
"""

from dataclasses import dataclass
from typing import Final, Literal

from fabric.engine.nvmeof.host.outputs import ConnectionId, PostSend, QueueMemory, Region
from fabric.engine.nvmeof.host.requests import Body, place
from fabric.engine.nvmeof.host.slots import Pending, SlotTable
from fabric.engine.nvmeof.wire.io import IoOpcode, pack_keyed_transfer, pack_tcp_transfer, pack_tcp_write

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
        in_capsule_bytes: data that fits behind an entry.
    """

    connection: ConnectionId
    qid: int
    transport: Literal["rdma", "tcp"]
    memory: QueueMemory
    slots: SlotTable
    in_capsule_bytes: int = 0

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

        Over TCP a write that fits its capsule goes in it, as from Linux host/tcp.c: for one below its
        inline_data_size nvmet (target/tcp.c, nvmet_tcp_queue_response) waits, and never asks with an R2T.

        Args:
            words: opcode, namespace, first block, CDW12.
            region: its memory.
            pending: who waits.
            deadline_ns: until when.

        Raises:
            QueueFullError: no slot is free.
        """
        slot, cid = self.slots.take(pending, deadline_ns)
        pack = pack_keyed_transfer
        if self.transport == "tcp":
            fits = words[0] == IoOpcode.WRITE and region.length <= self.in_capsule_bytes
            pack = pack_tcp_write if fits else pack_tcp_transfer
        return _new(PostSend, (self.connection, self.qid, slot, pack(cid, words, region), b"", 0, region))
