"""Cuts a request into transfers. Pure.

Extents and views are two descriptions of the same run of bytes. Each is first merged where it is contiguous; then the
run is cut where either breaks off, at the transfer size, and on the alignment within the namespace. So two neighbours
stay one transfer exactly when they touch on both sides.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from fabric.engine.queues.gather import gather
from fabric.engine.queues.request import Extent, Request, Transfer, View
from fabric.errors import LocalProtocolError

__all__ = ("split",)

MAX_BLOCKS: Final = 65536  # NVM command set 1.0, Read: NLB is 16 bits, 0-based
_new = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much
SPREAD_MASK: Final = (1 << 64) - 1


def split(
    request: Request, *, transfer_bytes: int, align_bytes: int, segments: int = 1, ranges: int = 1, first: int = 0
) -> list[Transfer]:
    """Returns the transfers of the request in order; together they cover each of its bytes once.

    Args:
        request: what to cut.
        transfer_bytes: longest transfer, a multiple of `align_bytes`.
        align_bytes: a power of two; blocks that are larger set the alignment themselves.
        segments: pieces of memory that one command may name; 1 is a keyed SGL of RDMA, whose data block is one region.
        ranges: extents that one command may name, each with its memory (see `gather`); 1 is a Read of NVMe.
        first: id of the first transfer.

    Raises:
        LocalProtocolError: the request is empty, its sides differ in length, or memory breaks off within a block.
    """
    spread = _spread(request)
    if ranges > 1 and len(request.extents) > 1:
        gathered = gather(request, transfer_bytes=transfer_bytes, ranges=ranges, first=first, spread=spread)
        if gathered is not None:
            return gathered
    whole = _whole(request, transfer_bytes, first)
    if whole is not None:
        return [whole]
    extents, views = _merged_extents(request), _merged_views(request)
    wanted = length = 0
    for extent in extents:
        wanted += extent.blocks * extent.namespace.block_bytes
    for view in views:
        length += view.length
    if wanted != length or not wanted:
        raise _misfit(request, "extents and views differ in length", f"{wanted or 1} bytes", f"{length}")
    memory = _Memory(views)
    transfers: list[Transfer] = []
    for extent in extents:
        _cut(request, extent, memory, (transfer_bytes, align_bytes, segments), (first, spread), transfers)
    return transfers


def _spread(request: Request) -> int:
    return int.from_bytes(blake2b(request.key, digest_size=8).digest()) if request.key else request.id


def _whole(request: Request, transfer_bytes: int, first: int) -> Transfer | None:
    """Returns the request as one transfer: what the cutting below would make of one extent and one view that fit."""
    if len(request.extents) != 1 or len(request.views) != 1:
        return None
    namespace, lba, blocks = request.extents[0]
    length, most = request.views[0].length, namespace.mdts_bytes
    fits = length <= transfer_bytes and (not most or length <= most) and 0 < blocks <= MAX_BLOCKS
    if not fits or lba < 0 or length != blocks * namespace.block_bytes:
        return None
    spread = _spread(request) & SPREAD_MASK
    return _new(
        Transfer,
        (first, request.id, request.op, namespace, lba, blocks, length, request.views, spread, request.port, 0, ()),
    )


def _cut(
    request: Request,
    extent: Extent,
    memory: "_Memory",
    limits: tuple[int, int, int],
    bases: tuple[int, int],
    transfers: list[Transfer],
) -> None:
    # The hot loop of a submission: locals, positional construction, one append.
    transfer_bytes, align, segments = limits
    first, spread = bases
    namespace = extent.namespace
    block = namespace.block_bytes
    align = max(align, block)
    longest = min(transfer_bytes, namespace.mdts_bytes or transfer_bytes, MAX_BLOCKS * block) // block * block
    if not longest:
        raise _misfit(request, "not one block fits into a transfer", f"{block} bytes", f"{transfer_bytes}")
    at, end = extent.lba * block, (extent.lba + extent.blocks) * block
    while at < end:
        stop = at + longest
        if stop < end:
            aligned = stop // align * align
            stop = aligned if aligned > at else stop
        else:
            stop = end
        pieces, length = memory.take(stop - at, block, segments)
        if not length:
            raise _misfit(request, "a view ends within a block", f"a multiple of {block} bytes", f"{pieces[-1].length}")
        index = len(transfers)
        transfers.append(
            _new(
                Transfer,
                (
                    first + index,
                    request.id,
                    request.op,
                    namespace,
                    at // block,
                    length // block,
                    length,
                    pieces,
                    (spread + index) & SPREAD_MASK,
                    request.port,
                    0,
                    (),
                ),
            )
        )
        at += length


class _Memory:
    """Views, consumed from the front."""

    __slots__ = ("_at", "_index", "_views")

    def __init__(self, views: Sequence[View]) -> None:
        self._views = views
        self._index = 0
        self._at = 0  # bytes taken of the view at `_index`

    def take(self, wanted: int, block: int, segments: int) -> tuple[tuple[View, ...], int]:
        """Returns up to `segments` pieces of together at most `wanted` bytes, whole blocks, and their length."""
        buffer, offset, length = self._views[self._index]
        left = length - self._at
        if left > wanted:
            piece = _new(View, (buffer, offset + self._at, wanted))
            self._at += wanted
            return (piece,), wanted
        if segments == 1 or left == wanted:
            whole = left // block * block
            piece = _new(View, (buffer, offset + self._at, whole or left))
            self._advance(whole, length)
            return (piece,), whole
        pieces = self._ahead(wanted, segments)
        whole = sum(piece.length for piece in pieces) // block * block
        return (self._consume(whole) if whole else pieces), whole

    def _advance(self, taken: int, length: int) -> None:
        self._at += taken
        if self._at == length:
            self._index += 1
            self._at = 0

    def _ahead(self, wanted: int, segments: int) -> tuple[View, ...]:
        pieces: list[View] = []
        skip = self._at
        for buffer, offset, length in self._views[self._index : self._index + segments]:
            if not wanted:
                break
            taken = min(length - skip, wanted)
            pieces.append(View(buffer, offset + skip, taken))
            wanted -= taken
            skip = 0
        return tuple(pieces)

    def _consume(self, wanted: int) -> tuple[View, ...]:
        pieces: list[View] = []
        while wanted:
            buffer, offset, length = self._views[self._index]
            taken = min(length - self._at, wanted)
            pieces.append(View(buffer, offset + self._at, taken))
            wanted -= taken
            self._advance(taken, length)
        return tuple(pieces)


def _merged_extents(request: Request) -> list[Extent]:
    merged: list[Extent] = []
    for extent in request.extents:
        namespace, lba, blocks = extent
        if lba < 0 or blocks <= 0:
            raise _misfit(request, "an extent has no blocks", "lba 0 or more, blocks 1 or more", f"{blocks}")
        if merged:
            before, start, length = merged[-1]
            if namespace == before and lba == start + length:
                merged[-1] = Extent(namespace, start, length + blocks)
                continue
        merged.append(extent)
    return merged


def _merged_views(request: Request) -> list[View]:
    merged: list[View] = []
    for view in request.views:
        buffer, offset, length = view
        if length <= 0:
            raise _misfit(request, "a view has no bytes", "1 or more", f"{length}")
        if merged:
            before, start, ahead = merged[-1]
            if buffer == before and offset == start + ahead:
                merged[-1] = View(buffer, start, ahead + length)
                continue
        merged.append(view)
    return merged


def _misfit(request: Request, what: str, expected: str, found: str) -> LocalProtocolError:
    return LocalProtocolError(what, where=f"request {request.id}", expected=expected, found=found)
