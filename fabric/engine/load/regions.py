"""What stands in the region of one namespace: the version of each sector, and which places are open right now.

A write is never open together with anything else of the same place, so the version that a read has to find is known.
After a write that failed nobody knows what stands there: such a sector is not judged until it has been written again.
"""

from array import array
from random import Random
from typing import Final

from fabric.engine.client.link import Described
from fabric.engine.load.model import SECTOR_BYTES, Region
from fabric.engine.load.payload import FIRST_VERSION, Origin, device_id
from fabric.errors import LocalProtocolError

__all__ = ("Ground", "Grounds", "Places")

_PAGE_SHIFT: Final = 16
_PAGE: Final = 1 << _PAGE_SHIFT
_DRAWS: Final = 64


class Ground:
    """The versions of the sectors of one namespace in one run; 1, as `prepare` writes them, where none is known.

    Sectors are counted from block 0. Eight bytes for each of those near one that was written again.

    Args:
        origin: what stands in all their headers.
    """

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self._pages: dict[int, array[int]] = {}
        self._unsure: set[int] = set()

    def versions(self, first: int, count: int) -> list[int | None]:
        """Returns what stands in `count` sectors from `first` on; None: nobody knows."""
        if not self._pages and not self._unsure:
            return [FIRST_VERSION] * count
        return [None if one in self._unsure else self._version(one) for one in range(first, first + count)]

    def next_versions(self, first: int, count: int) -> list[int]:
        """Returns with which versions to write these sectors now; until `written` nobody knows what stands there."""
        following = []
        for number in range(first, first + count):
            version = self._version(number) + 1
            self._page(number)[number & _PAGE - 1] = version
            self._unsure.add(number)
            following.append(version)
        return following

    def written(self, first: int, count: int) -> None:
        """Says that the write with the last versions ended well."""
        self._unsure.difference_update(range(first, first + count))

    def prepared(self, first: int, count: int) -> None:
        """Says that these sectors have version 1."""
        for number in range(first, first + count):
            if number >> _PAGE_SHIFT in self._pages:
                self._page(number)[number & _PAGE - 1] = FIRST_VERSION
        self.written(first, count)

    def _version(self, number: int) -> int:
        page = self._pages.get(number >> _PAGE_SHIFT)
        return FIRST_VERSION if page is None else page[number & _PAGE - 1]

    def _page(self, number: int) -> "array[int]":
        at = number >> _PAGE_SHIFT
        if at not in self._pages:
            self._pages[at] = array("Q", [FIRST_VERSION]) * _PAGE
        return self._pages[at]


class Grounds:
    """All that this process has prepared or written, by run and namespace. It outlives a job."""

    def __init__(self) -> None:
        self._known: dict[Origin, Ground] = {}

    def of(self, run: int, described: Described) -> Ground:
        """Returns the ground of a namespace in a run, the same for each path to it."""
        space = described.namespace
        origin = Origin(run, device_id(space.target, space.nsid))
        return self._known.setdefault(origin, Ground(origin))


class Places:
    """The region of one namespace as places of one request each, and who is at them. Shared by all paths of a job.

    Args:
        described: the namespace.
        region: of it.
        size_bytes: of a request.
        least: places that there have to be.
        is_checked: places are whole sectors.

    Attributes:
        count: of places.

    Raises:
        LocalProtocolError: the region is not in the namespace, is not aligned, or is too small.
    """

    def __init__(self, described: Described, region: Region, size_bytes: int, least: int, *, is_checked: bool) -> None:
        block = described.namespace.block_bytes
        self._block_bytes, self._region, self._size_bytes = block, region, size_bytes
        unit = SECTOR_BYTES if is_checked else block
        if unit % block or size_bytes % unit or region.first_lba * block % unit:
            expected = f"sizes and a first block that are multiples of {max(unit, block)} bytes"
            found = f"{size_bytes} bytes, first block {region.first_lba} of {block} bytes"
            raise LocalProtocolError("requests would not be whole", expected=expected, found=found)
        if region.first_lba + region.blocks > described.blocks:
            found = f"blocks {region.first_lba} to {region.first_lba + region.blocks - 1}"
            raise LocalProtocolError("the region is not in the namespace", found=found, expected=f"{described.blocks}")
        self.count = region.blocks * block // size_bytes
        if self.count < least:
            found, expected = f"{self.count} requests long", f"at least {least}"
            raise LocalProtocolError("the region is too small", found=found, expected=expected)
        self._at: dict[int, int] = {}  # place → readers there, -1 for a writer

    def take(self, draw: Random, *, write: bool) -> int:
        """Returns a place where nobody is in the way; hold it until `leave`."""
        place = draw.randrange(self.count)
        for _ in range(_DRAWS):
            if not self._is_taken(place, write=write):
                break
            place = draw.randrange(self.count)
        while self._is_taken(place, write=write):  # at most half of them are taken
            place = (place + 1) % self.count
        self._at[place] = -1 if write else self._at.get(place, 0) + 1
        return place

    def leave(self, place: int) -> None:
        """Says that nothing touches the place any more."""
        if self._at[place] > 1:
            self._at[place] -= 1
        else:
            del self._at[place]

    def _is_taken(self, place: int, *, write: bool) -> bool:
        there = self._at.get(place)
        return there is not None and (write or there < 0)

    def lba(self, place: int) -> int:
        """Returns the first block of a place."""
        return self._region.first_lba + place * (self._size_bytes // self._block_bytes)

    def sector(self, place: int) -> int:
        """Returns the first sector of a place, counted from block 0; of a region that is checked."""
        return (self._region.first_lba * self._block_bytes + place * self._size_bytes) // SECTOR_BYTES

    @property
    def sector_blocks(self) -> int:
        """Blocks of a sector."""
        return SECTOR_BYTES // self._block_bytes
