"""Registered memory by key, for transports that reach it through Python: bounds are checked as an adapter would.

The scratch of connections is registered here too. Knows no connection and no wire.
"""

import itertools

from fabric.engine.nvmeof.host import QueueMemory, Region
from fabric.engine.transport.base import Arena
from fabric.errors import LocalProtocolError

__all__ = ("SLOT_BYTES", "Arenas")

SLOT_BYTES = 4096  # what the host machine needs for Identify, log pages and Connect data


class Arenas:
    """All registered memory of one transport. An address is an offset; keys are never used twice."""

    def __init__(self) -> None:
        self._keys = itertools.count(1)
        self._views: dict[int, memoryview] = {}

    def register(self, memory: memoryview) -> Arena:
        """Returns the arena of `memory`.

        Raises:
            LocalProtocolError: it is read-only, or no contiguous run of bytes.
        """
        if memory.readonly or not memory.contiguous or memory.itemsize != 1 or memory.ndim != 1:
            found = f"format {memory.format}, {'read-only' if memory.readonly else 'writable'}"
            raise LocalProtocolError("this cannot be registered", expected="writable bytes in a row", found=found)
        key = next(self._keys)
        self._views[key] = memory.cast("B")
        return Arena(memory, 0, key)

    def scratch(self, slots: int) -> QueueMemory:
        """Returns the scratch of a connection, newly registered."""
        arena = self.register(memoryview(bytearray(slots * SLOT_BYTES)))
        return QueueMemory(0, arena.key, SLOT_BYTES)

    def forget(self, key: int) -> None:
        """Deregisters; whoever still uses the key is refused."""
        self._views.pop(key, None)

    def view(self, region: Region) -> memoryview:
        """Returns the bytes of a region.

        Raises:
            LocalProtocolError: no such key, or bytes outside of what it stands for.
        """
        memory = self._views.get(region.key)
        end = region.address + region.length
        if memory is None or not 0 <= region.address <= end <= memory.nbytes:
            raise LocalProtocolError(
                "memory that is not registered", found=f"{region.length} bytes at {region.address}, key {region.key}"
            )
        return memory[region.address : end]

    def slot(self, memory: QueueMemory, slot: int) -> memoryview:
        """Returns the scratch of a slot.

        Raises:
            LocalProtocolError: there is no such slot.
        """
        return self.view(Region(memory.address + slot * memory.slot_bytes, memory.slot_bytes, memory.key))

    def clear(self) -> None:
        """Deregisters everything."""
        self._views.clear()
