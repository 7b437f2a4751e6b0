"""Whether work can be right, and what is made of it for dealer or orders: a batch is taken whole or not at all."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Final

from fabric.engine.client.link import Described
from fabric.engine.client.orders import OrderCommand, Plan
from fabric.engine.client.work import BlockRange, Buffer, Deallocate, Flush, Read, Write, WriteZeroes
from fabric.engine.nvmeof import host
from fabric.engine.nvmeof.wire.io import MAX_BLOCKS, MAX_RANGES, LbaRange
from fabric.engine.queues import Extent, Namespace, Request, RequestId, View
from fabric.errors import LocalProtocolError

__all__ = ("checked_length", "plan_of", "request_of")

_BUFFER, _OFFSET, _LENGTH = itemgetter(0), itemgetter(1), itemgetter(2)  # of views
_new = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much
_EXTENT: Final = partial(_new, Extent)
_MAX_RANGE_BLOCKS: Final = (1 << 32) - 1  # a range of Dataset Management has 32 bits, counted from 1


def checked_length(work: Read | Write, described: Described, buffers: Sequence[Buffer]) -> int:
    """Returns how many bytes a read or write moves.

    Raises:
        LocalProtocolError: memory that is not registered, views that hold no whole blocks, or blocks outside.
    """
    if (alike := _alike(work, described, buffers)) is not None:
        return alike
    unit = described.namespace.block_bytes
    length = 0
    for buffer, offset, size in work.views:
        if not 0 <= buffer < len(buffers):
            raise LocalProtocolError("memory that is not registered here", found=f"buffer {buffer}")
        most = buffers[buffer].memory.nbytes
        if offset < 0 or size < 1 or offset + size > most or size % unit:
            found, expected = f"{size} bytes at {offset}", f"whole blocks of {unit} within {most} bytes"
            raise LocalProtocolError("a view cannot be used", where=f"buffer {buffer}", found=found, expected=expected)
        length += size
    if isinstance(work.lba, int):
        _check_blocks(work.lba, length // unit, described)
    else:
        _check_runs(work.lba, work.views, described)
    if work.deadline_ns is not None:
        _check_deadline(work.deadline_ns)
    return length


def _alike(work: Read | Write, described: Described, buffers: Sequence[Buffer]) -> int | None:
    """Returns the bytes of good runs of one length in one buffer, as pages are, without a loop in Python."""
    lbas, views = work.lba, work.views
    if isinstance(lbas, int) or not views or len(lbas) != len(views) or work.deadline_ns is not None:
        return None
    unit, size, number = described.namespace.block_bytes, views[0].length, views[0].buffer
    if size < 1 or size % unit or not 0 <= number < len(buffers):
        return None
    most = buffers[number].memory.nbytes
    offsets = [*map(_OFFSET, views)]
    if min(offsets) < 0 or max(offsets) + size > most or min(lbas) < 0 or max(lbas) + size // unit > described.blocks:
        return None
    if {*map(_LENGTH, views)} != {size} or {*map(_BUFFER, views)} != {number}:
        return None
    return size * len(views)


def plan_of(work: Flush | WriteZeroes | Deallocate, described: Described) -> tuple[Plan, int]:
    """Returns the commands of a flush, of zeroes or of a deallocation, and how many bytes they concern.

    Raises:
        LocalProtocolError: blocks outside, or none.
    """
    _check_deadline(work.deadline_ns)
    nsid, unit = described.namespace.nsid, described.namespace.block_bytes
    match work:
        case Flush():
            return Plan(iter((host.Flush(nsid),)), 1, is_flush=True), 0
        case WriteZeroes(lba, blocks, deallocate):
            _check_blocks(lba, blocks, described)
            parts = -(-blocks // MAX_BLOCKS)
            return Plan(_zeroes(nsid, work.lba, blocks, deallocate=deallocate), parts, writes=True), blocks * unit
        case Deallocate(ranges):
            if not ranges:
                raise LocalProtocolError("no range is given", where=described.namespace.target)
            for lba, blocks in ranges:
                _check_blocks(lba, blocks, described)
            cut = sum(-(-blocks // _MAX_RANGE_BLOCKS) for _lba, blocks in ranges)
            length = sum(blocks for _lba, blocks in ranges) * unit
            return Plan(_deallocations(nsid, ranges), -(-cut // MAX_RANGES)), length


def _zeroes(nsid: int, lba: int, blocks: int, *, deallocate: bool) -> Iterator[OrderCommand]:
    for at in range(lba, lba + blocks, MAX_BLOCKS):
        yield host.WriteZeroes(nsid, at, min(MAX_BLOCKS, lba + blocks - at), deallocate)


def _deallocations(nsid: int, ranges: Sequence[BlockRange]) -> Iterator[OrderCommand]:
    part: list[LbaRange] = []
    for lba, blocks in ranges:
        for at in range(lba, lba + blocks, _MAX_RANGE_BLOCKS):
            part.append(LbaRange(at, min(_MAX_RANGE_BLOCKS, lba + blocks - at)))
            if len(part) == MAX_RANGES:
                yield host.Deallocate(nsid, tuple(part))
                part.clear()
    if part:
        yield host.Deallocate(nsid, tuple(part))


def _check_runs(lbas: tuple[int, ...], views: tuple[View, ...], described: Described) -> None:
    if len(lbas) != len(views) or not views:
        found = f"{len(lbas)} first blocks for {len(views)} views"
        raise LocalProtocolError("a first block for each view is wanted", found=found)
    unit, end = described.namespace.block_bytes, described.blocks
    for lba, view in zip(lbas, views, strict=True):
        blocks = view[2] // unit
        if lba < 0 or lba + blocks > end:
            _check_blocks(lba, blocks, described)


def _check_blocks(lba: int, blocks: int, described: Described) -> None:
    if blocks < 1 or lba < 0 or lba + blocks > described.blocks:
        found, expected = f"{blocks} at {lba}", f"1 or more within {described.blocks} blocks"
        raise LocalProtocolError(
            "blocks outside the namespace", where=described.namespace.target, found=found, expected=expected
        )


def _check_deadline(deadline_ns: int | None) -> None:
    if deadline_ns is not None and deadline_ns < 0:
        raise LocalProtocolError("a deadline in the past", found=f"{deadline_ns} ns from now")


def request_of(number: RequestId, work: Read | Write, length: int, described: Described, now_ns: int) -> Request:
    """Returns the request of a checked read or write."""
    extents = _extents(work, length, described.namespace)
    at_ns = None if work.deadline_ns is None else now_ns + work.deadline_ns
    values = (number, extents, work.views, work.op, work.tenant, work.urgency, at_ns, work.key, "")
    return _new(Request, values)


def _extents(work: Read | Write, length: int, namespace: Namespace) -> tuple[Extent, ...]:
    unit = namespace.block_bytes
    if isinstance(work.lba, int):
        return (_new(Extent, (namespace, work.lba, length // unit)),)
    blocks = [size // unit for size in map(_LENGTH, work.views)]
    return tuple(map(_EXTENT, zip(repeat(namespace), work.lba, blocks, strict=False)))
