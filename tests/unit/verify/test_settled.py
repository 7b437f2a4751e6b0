"""Readings of many machines are one moment where every count of packets stood between two of them."""

from dataclasses import replace

import pytest

from fabric.qos import UNKNOWN
from fabric.state import Counter, CounterSet
from fabric.verify import stood, volume_cache_ns
from tests.unit.verify.evidence import HOST, HOST_NIC, TARGET_NIC

SENT, GAP = Counter("tx_prio3_packets", 7), Counter("out_of_sequence", 1)
READ = (
    CounterSet(HOST_NIC, "boot-1", 0, cache_ns=5, counters=(SENT,)),
    CounterSet(TARGET_NIC, "boot-1", 0, cache_ns=3, counters=(SENT, Counter("rx_prio3_packets", UNKNOWN))),
    CounterSet(HOST, "boot-1", 0, cache_ns=90, counters=(GAP,)),
)


def test_what_is_the_same_twice_stood() -> None:
    assert stood(READ, tuple(replace(one, at_ns=9) for one in reversed(READ)))
    assert volume_cache_ns(READ) == 5  # the gap's cache does not matter


@pytest.mark.parametrize(
    "second",
    [
        (replace(READ[0], counters=(Counter("tx_prio3_packets", 8),)), *READ[1:]),
        (replace(READ[0], epoch="boot-2"), *READ[1:]),
        READ[1:],
        (READ[0], replace(READ[1], counters=(SENT, Counter("rx_prio3_packets", 1))), READ[2]),
    ],
    ids=["a packet", "another boot", "an end is gone", "what was unknown is known"],
)
def test_what_moved_or_went_did_not_stand(second: tuple[CounterSet, ...]) -> None:
    assert not stood(READ, second)


def test_where_nobody_counts_packets_nothing_is_said() -> None:
    assert not stood(READ[2:], READ[2:])
