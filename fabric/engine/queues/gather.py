"""Puts many small extents into one transfer, for links that take several ranges of flash with one command. Pure.

A file or block device is such a link; a controller is none, for an NVMe Read names one range. What a transfer costs
here is then paid once for all of them.
"""

from typing import Final

from fabric.engine.queues.request import Request, Transfer, View

__all__ = ("gather",)

_new = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much
SPREAD_MASK: Final = (1 << 64) - 1


def gather(request: Request, *, transfer_bytes: int, ranges: int, first: int, spread: int) -> list[Transfer] | None:
    """Returns the transfers of a request of many extents; None where it has to be cut otherwise.

    Args:
        request: what to cut: each extent with a view of its own, in order, of the same length.
        transfer_bytes: longest transfer; an extent that is longer has to be cut.
        ranges: extents that one transfer may name.
        first: id of the first transfer.
        spread: of the first transfer.
    """
    extents, views = request.extents, request.views
    if len(extents) != len(views):
        return None
    transfers: list[Transfer] = []
    namespace = extents[0].namespace
    block = namespace.block_bytes
    longest = min(transfer_bytes, namespace.mdts_bytes or transfer_bytes)
    pieces: list[View] = []
    lbas: list[int] = []
    length = 0
    for extent, view in zip(extents, views, strict=True):
        space, lba, blocks = extent
        size = view[2]
        if space is not namespace or lba < 0 or not 0 < size <= longest or size != blocks * block:
            return None
        if length + size > longest or len(lbas) == ranges:
            transfers.append(_transfer(request, pieces, lbas, length, (first, spread, len(transfers))))
            pieces, lbas, length = [], [], 0
        pieces.append(view)
        lbas.append(lba)
        length += size
    transfers.append(_transfer(request, pieces, lbas, length, (first, spread, len(transfers))))
    return transfers


def _transfer(
    request: Request, pieces: list[View], lbas: list[int], length: int, numbers: tuple[int, int, int]
) -> Transfer:
    first, spread, index = numbers
    namespace = request.extents[0].namespace
    blocks = length // namespace.block_bytes
    starts = tuple(lbas) if len(lbas) > 1 else ()
    mixed = (spread + index) & SPREAD_MASK
    one = (first + index, request.id, request.op, namespace, lbas[0], blocks, length)
    return _new(Transfer, (*one, tuple(pieces), mixed, request.port, 0, starts))
