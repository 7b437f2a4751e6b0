"""Where registered memory lies, for calls that take addresses. Knows no post."""

import ctypes

__all__ = ("Exports",)


class Exports:
    """Registered memory by key, kept from moving until `clear`.

    Attributes:
        bases: address of the first byte. sizes: bytes.
    """

    def __init__(self) -> None:
        self.bases: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self._held: list[ctypes.Array[ctypes.c_char]] = []

    def add(self, key: int, memory: memoryview) -> None:
        """Takes writable, contiguous bytes."""
        size = memory.nbytes
        if size:
            self._held.append((ctypes.c_char * size).from_buffer(memory))  # a bytearray cannot be resized meanwhile
            self.bases[key] = ctypes.addressof(self._held[-1])
            self.sizes[key] = size

    def clear(self) -> None:
        """Lets go of all of it."""
        self.bases.clear()
        self.sizes.clear()
        self._held.clear()
