"""Puts many small extents into one transfer, for links that take several ranges of flash with one command. Pure.

A file or block device is such a link; a controller is none, for an NVMe Read names one range. What a transfer costs
here is then paid once for all of them.
"""

from itertools import repeat
from operator import is_, itemgetter
from typing import Final

from fabric.engine.queues.request import Request, Transfer

__all__ = ("gather",)

_new = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much
_NAMESPACE, _LBA, _BLOCKS = itemgetter(0), itemgetter(1), itemgetter(2)  # of extents
_LENGTH: Final = itemgetter(2)  # of views
SPREAD_MASK: Final = (1 << 64) - 1


def gather(request: Request, *, transfer_bytes: int, ranges: int, first: int, spread: int) -> list[Transfer] | None:
    """Returns the transfers of a request of many extents; None where it has to be cut otherwise.

    Args:
        request: what to cut: each extent with a view of its own, in order, all of one length, as pages are.
        transfer_bytes: longest transfer; an extent that is longer has to be cut.
        ranges: extents that one transfer may name.
        first: id of the first transfer.
        spread: of the first transfer.
    """
    extents, views = request.extents, request.views
    namespace, _lba, blocks = extents[0]
    size = blocks * namespace.block_bytes
    longest = min(transfer_bytes, namespace.mdts_bytes or transfer_bytes)
    # As sets and maps, for there may be thousands: no loop in Python over extents.
    if not 0 < size <= longest or len(extents) != len(views) or {*map(_LENGTH, views)} != {size}:
        return None
    if {*map(_BLOCKS, extents)} != {blocks} or not all(map(is_, map(_NAMESPACE, extents), repeat(namespace))):
        return None
    lbas = tuple(map(_LBA, extents))
    if min(lbas) < 0:
        return None
    each = min(ranges, longest // size)
    transfers: list[Transfer] = []
    for at in range(0, len(views), each):
        pieces, starts = views[at : at + each], lbas[at : at + each]
        transfers.append(
            _new(
                Transfer,
                (
                    first + len(transfers),
                    request.id,
                    request.op,
                    namespace,
                    starts[0],
                    blocks * len(pieces),
                    size * len(pieces),
                    pieces,
                    (spread + len(transfers)) & SPREAD_MASK,
                    request.port,
                    0,
                    starts if len(pieces) > 1 else (),
                ),
            )
        )
    return transfers
