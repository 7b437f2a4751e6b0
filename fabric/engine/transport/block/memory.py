"""Where registered memory lies, for calls that take addresses. Knows no post."""

import ctypes

__all__ = ("Exports",)


class Exports:
    """Registered memory in the order of registration, kept from moving until `clear`.

    Attributes:
        numbers: of an arena, by its key.
        views: the bytes, by number.
    """

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.views: list[memoryview] = []
        self._held: list[ctypes.Array[ctypes.c_char]] = []

    def add(self, key: int, memory: memoryview) -> int:
        """Takes writable, contiguous bytes; returns the address of the first, 0 where there is none."""
        self.numbers[key] = len(self.views)
        self.views.append(memory.cast("B"))
        if not memory.nbytes:
            return 0
        self._held.append((ctypes.c_char * memory.nbytes).from_buffer(memory))  # so that nobody resizes a bytearray
        return ctypes.addressof(self._held[-1])

    def view(self, number: int, offset: int, length: int) -> memoryview:
        """Returns bytes of an arena."""
        return self.views[number][offset : offset + length]

    def clear(self) -> None:
        """Lets go of all of it."""
        self.numbers.clear()
        self.views.clear()
        self._held.clear()
