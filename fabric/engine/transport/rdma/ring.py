"""The buffers of one queue and the requests that were built for them: made once, used by one connection after another.

Every slot has a command buffer, a response buffer and scratch. Its requests are built twice: `last` is never chained to
another, `chained` always is when it is posted, because a request that was chained can never be unchained.
"""

import ctypes
from collections.abc import Sequence
from typing import Final

from fabric.engine.nvmeof.host import QueueMemory
from fabric.engine.nvmeof.wire.command import SQE_BYTES
from fabric.engine.transport.base import allocate
from fabric.engine.transport.rdma.ports import Adapter, QueuePair

__all__ = (
    "CHAINED",
    "COMMAND_BYTES",
    "RECEIVE",
    "RESPONSE_BYTES",
    "SLOT_BYTES",
    "SLOT_MASK",
    "WR_BITS",
    "Ring",
    "address_of",
)

SLOT_BYTES: Final = 4096  # what the host machine needs for Identify, log pages and Connect data
COMMAND_BYTES: Final = SQE_BYTES + SLOT_BYTES  # an entry, and in-capsule data of a slot's scratch at most
RESPONSE_BYTES: Final = 16
RECEIVE: Final = 1 << 15  # of a request's id: a receive
CHAINED: Final = 1 << 14  # a send that has no signal of its own; below it the slot, above these bits the connection
SLOT_MASK: Final = CHAINED - 1
WR_BITS: Final = 16


def address_of(memory: memoryview) -> tuple[int, object]:
    """Returns where writable bytes are, and what must live as long as they are used."""
    held = ctypes.c_char.from_buffer(memory)
    return ctypes.addressof(held), held


class Ring:
    """Buffers and requests for `depth` slots.

    Args:
        adapter: registers and builds.
        depth: slots.
    """

    def __init__(self, adapter: Adapter, depth: int) -> None:
        self.depth = depth
        scratch_start = -(-depth * (COMMAND_BYTES + RESPONSE_BYTES) // SLOT_BYTES) * SLOT_BYTES
        memory = allocate(scratch_start + depth * SLOT_BYTES)
        address, self._held = address_of(memory)
        keys = adapter.register(address, memory.nbytes)
        response_start = depth * COMMAND_BYTES
        self.commands = memory[:response_start]
        self.responses = memory[response_start : response_start + depth * RESPONSE_BYTES]
        self.scratch = memory[scratch_start:]
        self.memory = QueueMemory(address + scratch_start, keys.rkey, SLOT_BYTES)
        sends = [
            [adapter.send_request(at, SQE_BYTES, keys.lkey, signalled=is_last) for is_last in (True, False)]
            for at in (address + slot * COMMAND_BYTES for slot in range(depth))
        ]
        self._last = [last for (last, _), _ in sends]
        self._chained = [chained for _, (chained, _) in sends]
        self._resize = [(one, other) for (_, one), (_, other) in sends]
        responses = [address + response_start + slot * RESPONSE_BYTES for slot in range(depth)]
        self._last_receive = [adapter.recv_request(at, RESPONSE_BYTES, keys.lkey) for at in responses]
        self._chained_receive = [adapter.recv_request(at, RESPONSE_BYTES, keys.lkey) for at in responses]
        self._lengths = [SQE_BYTES] * depth

    def assign(self, serial: int) -> None:
        """Makes the requests those of a connection."""
        for slot in range(self.depth):
            wr_id = serial << WR_BITS | slot
            self._last[slot].wr_id = wr_id
            self._chained[slot].wr_id = wr_id | CHAINED
            self._last_receive[slot].wr_id = self._chained_receive[slot].wr_id = wr_id | RECEIVE

    def fill(self, slot: int, capsule: bytes) -> None:
        """Puts a capsule into a slot's command buffer."""
        length = len(capsule)
        start = slot * COMMAND_BYTES
        self.commands[start : start + length] = capsule
        if length != self._lengths[slot]:
            self._lengths[slot] = length
            for resize in self._resize[slot]:
                resize(length)

    def put(self, slot: int, data: bytes) -> None:
        """Puts bytes at the start of a slot's scratch."""
        start = slot * SLOT_BYTES
        self.scratch[start : start + len(data)] = data

    def take(self, slot: int, length: int) -> bytes:
        """Returns bytes from the start of a slot's scratch."""
        start = slot * SLOT_BYTES
        return bytes(self.scratch[start : start + length])

    def send(self, pair: QueuePair, slots: Sequence[int]) -> None:
        """Posts the capsules of slots, in order, with one doorbell; the last one alone signals, for all of them."""
        head = self._last[slots[-1]]
        for slot in reversed(slots[:-1]):
            before = self._chained[slot]
            before.next_wr = head
            head = before
        pair.post_send(head)

    def receive(self, pair: QueuePair, slots: Sequence[int]) -> None:
        """Posts the receives of slots, with one call."""
        head = self._last_receive[slots[-1]]
        for slot in reversed(slots[:-1]):
            before = self._chained_receive[slot]
            before.next_wr = head
            head = before
        pair.post_recv(head)
