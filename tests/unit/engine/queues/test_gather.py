"""Small extents share a transfer where the link takes several ranges; whatever does not fit that is cut as ever."""

import pytest

from fabric.engine.queues import Extent, Namespace, Op, Request, RequestId, Transfer, View
from fabric.engine.queues.split import split
from fabric.errors import LocalProtocolError

SPACE = Namespace(1, "disk", 4096)
OTHER = Namespace(2, "disk", 4096)
KIB = 1024


def request(*runs: tuple[int, int], space: Namespace = SPACE) -> Request:
    """Reads runs of (lba, blocks), each into a view of its own that touches no other."""
    extents = tuple(Extent(space, lba, blocks) for lba, blocks in runs)
    views = tuple(View(0, index << 20, blocks * 4096) for index, (_lba, blocks) in enumerate(runs))
    return Request(RequestId(7), extents, views, Op.READ, key=b"k", port="p")


def cut(one: Request, *, transfer_bytes: int = 64 * KIB, ranges: int = 8) -> list[Transfer]:
    return split(one, transfer_bytes=transfer_bytes, align_bytes=4096, ranges=ranges, first=100)


def test_runs_are_gathered_up_to_the_bytes_of_a_transfer() -> None:
    first, second = cut(request((10, 4), (99, 4), (5, 4), (1000, 4)), transfer_bytes=48 * KIB)
    assert (first.lbas, first.lba, first.blocks, first.length) == ((10, 99, 5), 10, 12, 48 * KIB)
    assert first.pieces == tuple(View(0, at << 20, 16 * KIB) for at in range(3))
    assert (second.lbas, second.lba, second.pieces) == ((), 1000, (View(0, 3 << 20, 16 * KIB),))
    assert [first.id, second.id] == [100, 101]
    assert second.spread == (first.spread + 1) & (1 << 64) - 1
    assert {(one.request, one.op, one.namespace, one.port, one.attempt) for one in (first, second)} == {
        (7, Op.READ, SPACE, "p", 0)
    }


def test_runs_are_gathered_up_to_the_ranges_of_a_transfer() -> None:
    found = cut(request(*((lba, 1) for lba in range(0, 60, 3))), ranges=8)
    assert [len(one.lbas) for one in found] == [8, 8, 4]
    assert [lba for one in found for lba in one.lbas] == list(range(0, 60, 3))


@pytest.mark.parametrize(
    "one",
    [
        request((0, 100), (500, 100)),  # longer than a transfer
        request((0, 2), (500, 1)),
        request((0, 2), (500, 2))._replace(views=(View(0, 0, 4 * 4096),)),
        request((0, 2), (500, 2))._replace(views=(View(0, 0, 4096), View(0, 8192, 3 * 4096))),
        request((0, 2), (500, 2))._replace(extents=(Extent(SPACE, 0, 2), Extent(OTHER, 500, 2))),
    ],
)
def test_what_cannot_be_gathered_is_cut_as_for_one_range(one: Request) -> None:
    assert cut(one) == cut(one, ranges=1)
    assert all(not transfer.lbas for transfer in cut(one))


@pytest.mark.parametrize("runs", [((-1, 1), (5, 1)), ((3, 0), (5, 1))])
def test_malformed_runs_are_refused(runs: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(LocalProtocolError):
        cut(request(*runs))


def test_one_extent_and_a_controller_know_nothing_of_it() -> None:
    assert cut(request((5, 3))) == cut(request((5, 3)), ranges=1)
    assert [one.lbas for one in cut(request((5, 3), (9, 3)), ranges=1)] == [(), ()]
