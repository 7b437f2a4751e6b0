"""How a request is cut: at the transfer size, on the alignment, where memory or flash breaks off."""

import pytest

from fabric.engine.queues import Extent, Namespace, Request, RequestId, View, split
from fabric.errors import LocalProtocolError

KIB = 1024
NS = Namespace(1, "t", 4 * KIB)


def cut(
    extents: tuple[Extent, ...],
    views: tuple[View, ...],
    *,
    transfer: int = 16 * KIB,
    align: int = 4 * KIB,
    segments: int = 1,
) -> list[tuple[int, int, tuple[View, ...]]]:
    request = Request(RequestId(7), extents, views)
    transfers = split(request, transfer_bytes=transfer, align_bytes=align, segments=segments, first=3)
    assert [one.id for one in transfers] == list(range(3, 3 + len(transfers)))
    return [(one.lba, one.blocks, one.pieces) for one in transfers]


def test_cut_at_transfer_size_with_its_slice_of_memory() -> None:
    assert cut((Extent(NS, 8, 10),), (View(2, 100, 40 * KIB),)) == [
        (8, 4, (View(2, 100, 16 * KIB),)),
        (12, 4, (View(2, 100 + 16 * KIB, 16 * KIB),)),
        (16, 2, (View(2, 100 + 32 * KIB, 8 * KIB),)),
    ]


def test_first_transfer_ends_on_the_alignment() -> None:
    assert [(lba, blocks) for lba, blocks, _ in cut((Extent(NS, 3, 9),), (View(0, 0, 36 * KIB),), align=16 * KIB)] == [
        (3, 1),
        (4, 4),
        (8, 4),
    ]


def test_neighbours_on_both_sides_are_one_transfer() -> None:
    extents = (Extent(NS, 0, 1), Extent(NS, 1, 2))
    views = (View(0, 0, 8 * KIB), View(0, 8 * KIB, 4 * KIB))
    assert cut(extents, views) == [(0, 3, (View(0, 0, 12 * KIB),))]


def test_gap_on_either_side_is_a_cut() -> None:
    assert len(cut((Extent(NS, 0, 1), Extent(NS, 2, 1)), (View(0, 0, 8 * KIB),))) == 2
    assert len(cut((Extent(NS, 0, 2),), (View(0, 0, 4 * KIB), View(0, 8 * KIB, 4 * KIB)))) == 2
    assert len(cut((Extent(NS, 0, 2),), (View(0, 0, 4 * KIB), View(1, 4 * KIB, 4 * KIB)))) == 2


def test_more_segments_join_scattered_memory() -> None:
    views = tuple(View(page, 0, 4 * KIB) for page in range(5))
    assert cut((Extent(NS, 0, 5),), views, segments=3) == [(0, 3, views[:3]), (3, 2, views[3:])]


def test_more_segments_may_break_off_within_a_block() -> None:
    views = (View(0, 0, 3 * KIB), View(1, 0, 7 * KIB), View(2, 0, 2 * KIB))
    assert cut((Extent(NS, 0, 3),), views, segments=2) == [
        (0, 2, (View(0, 0, 3 * KIB), View(1, 0, 5 * KIB))),
        (2, 1, (View(1, 5 * KIB, 2 * KIB), View(2, 0, 2 * KIB))),
    ]


def test_controller_with_a_smaller_mdts_gets_shorter_transfers() -> None:
    small = Namespace(1, "t", 4 * KIB, mdts_bytes=8 * KIB)
    assert [blocks for _, blocks, _ in cut((Extent(small, 0, 4),), (View(0, 0, 16 * KIB),))] == [2, 2]


def test_no_transfer_has_more_blocks_than_the_command_can_say() -> None:
    sectors = Namespace(1, "t", 512)
    got = cut((Extent(sectors, 0, 70_000),), (View(0, 0, 70_000 * 512),), transfer=1 << 30)
    assert [blocks for _, blocks, _ in got] == [65_536, 4_464]


def test_key_spreads_the_same_way_each_time_and_its_transfers_in_a_row() -> None:
    def spread(number: int, key: bytes) -> list[int]:
        request = Request(RequestId(number), (Extent(NS, 0, 8),), (View(0, 0, 32 * KIB),), key=key)
        return [one.spread for one in split(request, transfer_bytes=16 * KIB, align_bytes=4 * KIB)]

    first = spread(1, b"k")
    assert first == spread(2, b"k")
    assert first[1] == first[0] + 1
    assert spread(1, b"") != spread(2, b"")


@pytest.mark.parametrize(
    ("extents", "views", "message"),
    [
        ((Extent(NS, 0, 2),), (View(0, 0, 4 * KIB),), r"differ in length \(found 4096, expected 8192 bytes\)"),
        ((), (), r"differ in length \(found 0, expected 1 bytes\)"),
        ((Extent(NS, 0, 0),), (View(0, 0, 4 * KIB),), "an extent has no blocks"),
        ((Extent(NS, -1, 1),), (View(0, 0, 4 * KIB),), "an extent has no blocks"),
        ((Extent(NS, 0, 1),), (View(0, 0, 0), View(0, 0, 4 * KIB)), "a view has no bytes"),
        ((Extent(NS, 0, 1),), (View(0, 0, KIB), View(1, 0, 3 * KIB)), "a view ends within a block"),
        ((Extent(NS, 0, 2),), (View(0, 0, 6 * KIB), View(1, 0, 2 * KIB)), "a view ends within a block"),
        ((Extent(Namespace(1, "t", 64 * KIB), 0, 1),), (View(0, 0, 64 * KIB),), "not one block fits into a transfer"),
    ],
)
def test_request_that_makes_no_sense_is_refused(
    extents: tuple[Extent, ...], views: tuple[View, ...], message: str
) -> None:
    with pytest.raises(LocalProtocolError, match=f"^request 7: .*{message}"):
        cut(extents, views)
