"""However extents and views are drawn: each byte goes where it belongs, once, in commands that a controller takes."""

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.queues import Extent, Namespace, Request, RequestId, Transfer, View, split

BLOCK = 8  # bytes; the cut knows no smallest block, and the bytes stay few
SPACES = tuple(Namespace(nsid, "t", BLOCK, mdts_bytes=mdts) for nsid, mdts in ((1, None), (2, 5 * BLOCK)))

Byte = tuple[int, int]


def on_flash(extents: tuple[Extent, ...]) -> Iterator[Byte]:
    for extent in extents:
        yield from ((extent.namespace.nsid, extent.lba * BLOCK + at) for at in range(extent.blocks * BLOCK))


def in_memory(views: tuple[View, ...]) -> Iterator[Byte]:
    for view in views:
        yield from ((view.buffer, view.offset + at) for at in range(view.length))


@st.composite
def requests(draw: st.DrawFn, unit: int) -> Request:
    """Draws a request whose views end on multiples of `unit`; many neighbours touch."""
    extents, views, lba, offset = [], [], 0, 0
    for _ in range(draw(st.integers(1, 4))):
        lba += draw(st.sampled_from((0, 0, 3)))
        extents.append(Extent(draw(st.sampled_from(SPACES)), lba, draw(st.integers(1, 9))))
        lba += extents[-1].blocks
    left = sum(extent.blocks for extent in extents) * BLOCK
    while left:
        offset += draw(st.sampled_from((0, 0, BLOCK)))
        length = draw(st.integers(1, left // unit)) * unit
        views.append(View(draw(st.integers(0, 1)), offset, length))
        offset += length
        left -= length
    return Request(RequestId(1), tuple(extents), tuple(views))


def bytes_of(transfers: list[Transfer]) -> list[tuple[Byte, Byte]]:
    return [
        pair
        for one in transfers
        for pair in zip(on_flash((Extent(one.namespace, one.lba, one.blocks),)), in_memory(one.pieces), strict=True)
    ]


@given(data=st.data(), align=st.sampled_from((1, 2, 4)), times=st.integers(1, 3), segments=st.integers(1, 3))
def test_each_byte_goes_where_it_belongs_once(data: st.DataObject, align: int, times: int, segments: int) -> None:
    request = data.draw(requests(BLOCK))
    longest = align * times * BLOCK
    transfers = split(request, transfer_bytes=longest, align_bytes=align * BLOCK, segments=segments)
    assert bytes_of(transfers) == list(zip(on_flash(request.extents), in_memory(request.views), strict=True))
    for one in transfers:
        assert one.length == one.blocks * BLOCK <= min(longest, one.namespace.mdts_bytes or longest)
        assert len(one.pieces) <= segments


@given(data=st.data(), align=st.sampled_from((1, 2, 4)), times=st.integers(1, 3))
def test_neighbours_are_apart_only_where_something_asks_for_it(data: st.DataObject, align: int, times: int) -> None:
    request = data.draw(requests(BLOCK))
    longest = align * times * BLOCK
    transfers = split(request, transfer_bytes=longest, align_bytes=align * BLOCK)
    for one, other in pairwise(transfers):
        touches = (one.namespace, one.lba + one.blocks) == (other.namespace, other.lba)
        (before,), (after,) = one.pieces, other.pieces
        if touches and (before.buffer, before.offset + before.length) == (after.buffer, after.offset):
            limit = min(longest, one.namespace.mdts_bytes or longest)
            # As long as it may be, or it ended on the last aligned block that it could reach.
            assert one.length == limit or other.lba % align == 0
            assert one.lba + limit // BLOCK < other.lba + align


@given(data=st.data(), segments=st.integers(8, 12))
def test_memory_may_break_off_within_a_block_when_a_command_takes_the_pieces(
    data: st.DataObject, segments: int
) -> None:
    request = data.draw(requests(1))
    transfers = split(request, transfer_bytes=BLOCK, align_bytes=BLOCK, segments=segments)
    assert bytes_of(transfers) == list(zip(on_flash(request.extents), in_memory(request.views), strict=True))
