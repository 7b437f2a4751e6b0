"""What two settings that do the same share."""

from math import log2

import pytest

from fabric.tune.essence import Essence, Offer, essence, essences
from fabric.tune.knobs import Knobs, Space
from tests.unit.tune.worlds import KIB, MIB

WIDE = Knobs(4, 8, 64 * KIB, "round-robin", 4 * MIB, 16 * MIB)


def test_a_window_that_queues_cannot_fill_changes_nothing() -> None:
    open_wide = Knobs(4, 8, 64 * KIB, "round-robin", 8 * MIB, 64 * MIB)
    assert essence(WIDE, Offer(4)) == essence(open_wide, Offer(4))


def test_queues_beyond_the_commands_that_may_fly_change_nothing() -> None:
    few, many = (Knobs(queues, 8, 64 * KIB, "round-robin", 256 * KIB, 16 * MIB) for queues in (4, 16))
    assert essence(few, Offer(4)) == essence(many, Offer(4))
    assert essence(few, Offer(4)).queues == 4


def test_with_one_queue_there_is_nothing_to_deal() -> None:
    one, other = (Knobs(1, 8, 64 * KIB, dealing, MIB, MIB) for dealing in ("round-robin", "least-bytes"))
    assert essence(one, Offer(1)) == essence(other, Offer(1))


@pytest.mark.parametrize(
    "other",
    [
        Knobs(2, 8, 64 * KIB, "round-robin", 4 * MIB, 16 * MIB),
        Knobs(4, 2, 64 * KIB, "round-robin", 4 * MIB, 16 * MIB),
        Knobs(4, 8, 32 * KIB, "round-robin", 4 * MIB, 16 * MIB),
        Knobs(4, 8, 64 * KIB, "least-bytes", 4 * MIB, 16 * MIB),
        Knobs(4, 8, 64 * KIB, "round-robin", MIB, 16 * MIB),
        Knobs(4, 8, 64 * KIB, "round-robin", 4 * MIB, 2 * MIB),
    ],
)
def test_each_knob_counts_where_it_binds(other: Knobs) -> None:
    assert essence(WIDE, Offer(4)) != essence(other, Offer(4))


def test_no_window_holds_more_than_the_load_asks_for() -> None:
    """Four requests of 1 MiB from four targets: 1 MiB of each, 4 MiB of all."""
    offer = Offer(4, requests=4, chunk_bytes=MIB)
    found = essence(Knobs(4, 8, 64 * KIB, "round-robin", 16 * MIB, 64 * MIB), offer)
    assert (found.target_bytes, found.receiver_bytes) == (MIB, 4 * MIB)
    assert found == essence(Knobs(4, 64, 64 * KIB, "round-robin", 2 * MIB, 4 * MIB), offer)
    assert found != essence(Knobs(4, 8, 64 * KIB, "round-robin", 16 * MIB, 2 * MIB), offer)


def test_a_request_of_one_command_may_meet_the_others_at_one_target() -> None:
    assert Offer(4, requests=4, chunk_bytes=MIB).most_bytes(MIB) == (4 * MIB, 4 * MIB)


def test_coordinates_are_ratios() -> None:
    one, other = Essence(2, 4, 64 * KIB, "b", MIB, 4 * MIB), Essence(4, 4, 64 * KIB, "a", MIB, 2 * MIB)
    far = [theirs - ours for ours, theirs in zip(one.place(("a", "b")), other.place(("a", "b")), strict=True)]
    assert far == pytest.approx([log2(2), 0, 0, 0, -1, -1])


def test_a_space_has_each_essence_once_with_its_lowest_setting() -> None:
    space = Space((1, 2, 4), (1, 8), (64 * KIB,), ("least-bytes",), (64 * KIB, MIB), (MIB,))
    found = essences(space, Offer(2), 0)
    assert all(essence(knobs, Offer(2)) == one for one, knobs in found.items())
    assert found[essence(Knobs(4, 8, 64 * KIB, "least-bytes", 64 * KIB, MIB), Offer(2))].queues == 1
    assert len(found) < 12


def test_a_space_that_is_too_large_is_sampled_the_same_way_each_time() -> None:
    space = Space.between(queues=128, depth=1024, mdts_bytes=1 << 20)
    first = essences(space, Offer(4), 3)
    assert first == essences(space, Offer(4), 3)
    assert 1000 < len(first) <= 50_000
