"""Counts of durations: where a sample goes, what a percentile may be wrong by, and that snapshots add up."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.metrics import EDGES_NS, MOST_RATIO, Histogram
from fabric.engine.metrics.histogram import Tally

durations = st.lists(st.integers(0, 60_000_000_000), min_size=1, max_size=60)


def counted(samples: list[int]) -> Histogram:
    tally = Tally()
    for one in samples:
        tally.add(one)
    return tally.histogram()


def test_edges_go_from_ten_microseconds_to_thirty_seconds_in_small_steps() -> None:
    assert (EDGES_NS[0], EDGES_NS[-1]) == (10_000, 30_000_000_000)
    assert list(EDGES_NS) == sorted(set(EDGES_NS))
    assert max(two / one for one, two in pairwise(EDGES_NS)) == MOST_RATIO


def test_a_sample_on_an_edge_belongs_below_it() -> None:
    found = counted([10_000, 10_001, 30_000_000_000, 30_000_000_001])
    assert found.counts[:2] == (1, 1)
    assert found.counts[-2:] == (1, 1)
    assert (found.count, found.sum_ns, found.highest_ns) == (4, 60_000_020_002, 30_000_000_001)


@given(durations, st.integers(1, 100))
def test_a_percentile_is_not_too_low_and_not_much_too_high(samples: list[int], percent: int) -> None:
    true = sorted(samples)[-(-percent * len(samples) // 100) - 1]
    found = counted(samples).percentile_ns(percent)
    assert found is not None
    assert found >= true
    if 10_000 <= true <= 30_000_000_000:
        assert found < true * MOST_RATIO or found == true
    elif true < 10_000:
        assert found <= 10_000
    else:
        assert found == max(samples)


@given(durations, durations)
def test_snapshots_add_up_and_come_apart(one: list[int], two: list[int]) -> None:
    both = counted(one) + counted(two)
    assert both == counted(one + two)
    assert both.since(counted(one)).counts == counted(two).counts
    assert both.mean_ns == sum(one + two) // len(one + two)


def test_without_a_sample_there_is_no_percentile() -> None:
    assert Histogram().percentile_ns(50) is None
    assert Histogram().mean_ns is None
    for percent in (0, -1, 101):
        with pytest.raises(ValueError, match="above 0 and at most 100"):
            Histogram().percentile_ns(percent)
