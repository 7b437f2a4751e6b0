"""Blocks that name themselves, and what each may hold: number, version and CRC in every block, so that no byte of
another block, of another version or of no block at all passes for the right one.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

BLOCK = 512
_HEAD = struct.Struct("<QQ")
_REPEATS = 31  # of the head, which leaves room for the CRC
ZEROES = -1  # the version of a block of zeroes
GARBAGE = b"\xa5"  # what a buffer holds while nobody uses it
GUARD = b"\xc3"


@lru_cache(maxsize=4096)
def block(lba: int, version: int) -> bytes:
    """The block `lba` in a version."""
    body = (_HEAD.pack(lba, version) * _REPEATS).ljust(BLOCK - 4, b"\x5c")
    return body + zlib.crc32(body).to_bytes(4, "little")


def named(data: bytes) -> tuple[int, int] | None:
    """Which block this is, and which version; None when it is no block. Zeroes may be any block."""
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        return None
    lba, version = _HEAD.unpack_from(data)
    return (lba, version) if data == block(lba, version) else None


def split(data: bytes | memoryview) -> Iterable[bytes]:
    """The blocks of some bytes."""
    return (bytes(data[at : at + BLOCK]) for at in range(0, len(data), BLOCK))


def holds(data: bytes, lba: int, versions: Iterable[int]) -> bool:
    """Whether this is block `lba` in one of the versions."""
    name = named(data)
    if name is None:
        return ZEROES in versions and not any(data)
    return name[0] == lba and name[1] in versions


@dataclass
class Store:
    """What each block of a namespace may hold: one version, and those of writes whose end nobody knows.

    Attributes:
        blocks: how many.
        may: versions by block.
        unsettled: blocks with a write under way; nobody writes them again before it is settled.
    """

    blocks: int
    may: list[set[int]] = field(init=False)
    unsettled: set[int] = field(default_factory=set)
    _next: int = 1

    def __post_init__(self) -> None:
        self.may = [{0} for _ in range(self.blocks)]

    def image(self) -> bytes:
        """The namespace before the first write."""
        return b"".join(block(lba, 0) for lba in range(self.blocks))

    def begin(self, lba: int, count: int, *, zero: bool = False) -> tuple[int, bytes]:
        """A new version of some blocks, with its bytes."""
        version, self._next = ZEROES if zero else self._next, self._next + 1
        for one in range(lba, lba + count):
            self.may[one].add(version)
            self.unsettled.add(one)
        data = GARBAGE * (BLOCK * count) if zero else b"".join(block(one, version) for one in range(lba, lba + count))
        return version, data

    def done(self, lba: int, count: int, version: int) -> None:
        """That write succeeded: the blocks hold it."""
        for one in range(lba, lba + count):
            self.may[one] = {version}
            self.unsettled.discard(one)

    def failed(self, lba: int, count: int) -> None:
        """That write failed and is settled: the blocks hold it, or what they held before."""
        self.unsettled.difference_update(range(lba, lba + count))

    def wrong(self, disk: bytes | bytearray) -> list[str]:
        """What a namespace holds that it may not."""
        found = []
        for lba, data in enumerate(split(memoryview(disk))):
            if not holds(data, lba, self.may[lba]):
                found.append(f"block {lba} holds {named(data)}, expected one of {sorted(self.may[lba])}")
        return found
