"""Counts of packets, read again and laid into what was read before."""

from dataclasses import replace

from fabric.qos import UNKNOWN
from fabric.state import Counter, CounterSet
from fabric.verify import volume_cache_ns, volumes_of, with_volumes
from tests.unit.verify.evidence import HOST, HOST_NIC, TARGET_NIC

SENT, GAP = Counter("tx_prio3_packets", 7), Counter("out_of_sequence", 1)
READ = (
    CounterSet(HOST_NIC, "boot-1", 0, cache_ns=5, counters=(SENT, Counter("rx_crc_errors_phy", 2))),
    CounterSet(TARGET_NIC, "boot-1", 0, cache_ns=3, counters=(SENT, Counter("rx_prio3_packets", UNKNOWN))),
    CounterSet(HOST, "boot-1", 0, cache_ns=90, counters=(GAP,)),
)


def test_counts_of_packets_alone_are_volumes_and_unknown_ones_are_none() -> None:
    assert volumes_of(READ) == {(HOST_NIC, "tx_prio3_packets"): 7, (TARGET_NIC, "tx_prio3_packets"): 7}
    assert volume_cache_ns(READ) == 5  # the gap's cache does not matter


def test_what_was_read_later_takes_the_place_of_counts_and_leaves_troubles_as_they_were_read() -> None:
    later = {(HOST_NIC, "tx_prio3_packets"): 9, (HOST_NIC, "rx_crc_errors_phy"): 2}
    found = with_volumes(READ[0], later, at_ns=50, span_ns=2)
    assert found == replace(
        READ[0], at_ns=50, span_ns=2, counters=(Counter("tx_prio3_packets", 9), READ[0].counters[1])
    )
    assert with_volumes(READ[2], later, at_ns=50, span_ns=2) is READ[2]
