from fabric.qos import UNKNOWN
from fabric.serial import from_json, to_json
from fabric.state import (
    Counter,
    CounterSet,
    Missing,
    PortCounters,
    QueueCounters,
    Snapshot,
    Source,
    SourceKind,
    WatchdogCounters,
)
from fabric.state.host import PauseCounters, RdmaCounters
from fabric.state.snapshot import from_ethtool, from_pause, from_port, from_rdma

RXE = Source("h1", "rxe0/1", SourceKind.HOST, "rxe")


def test_a_snapshot_goes_through_json_with_what_is_unknown_in_it() -> None:
    counters = (Counter("sent_pkts", 7), Counter("rcvd_seq_err", UNKNOWN, 32))
    one = Snapshot("before", 12.5, (CounterSet(RXE, "boot", 5, 6, 7, counters),), (Missing(RXE, "no answer"),))
    assert from_json(Snapshot, to_json(one)) == one
    assert str(RXE) == "h1 rxe0/1"


def test_a_source_and_a_counter_that_are_not_there_are_unknown() -> None:
    own = CounterSet(RXE, "boot", 5, counters=(Counter("sent_pkts", 7),))
    snapshot = Snapshot("before", 0.0, (own,))
    assert snapshot.of(RXE) is own
    assert snapshot.of(Source("h2", "rxe0/1", SourceKind.HOST, "rxe")) is None
    assert (own.value("sent_pkts"), own.value("rcvd_pkts")) == (7, UNKNOWN)


def test_counters_of_hosts_keep_their_drivers_names() -> None:
    read = RdmaCounters("mlx5_0", 1, (("out_of_sequence", 3),))
    assert from_rdma(read, bits=32) == (Counter("out_of_sequence", 3, 32),)
    assert from_ethtool((("rx_prio3_pause", 2),)) == (Counter("rx_prio3_pause", 2),)


def test_pauses_of_a_netdev_are_named_by_priority_and_absent_where_not_shown() -> None:
    read = PauseCounters("data0", pfc_rx_xoff=(1, UNKNOWN), storm_events=4)
    named = {one.name: one.value for one in from_pause(read)}
    assert (named["pfc_rx_xoff.0"], named["pfc_rx_xoff.1"], named["storm_events"]) == (1, UNKNOWN, 4)
    assert named["link_rx_pause"] is UNKNOWN
    assert "pfc_tx_xoff.0" not in named


def test_counters_of_a_switch_port_are_named_by_queue_priority_and_watchdog() -> None:
    read = PortCounters(
        "Ethernet4",
        pfc_tx_frames=(0, 9),
        pfc_tx_total=9,
        pg_dropped_packets=(UNKNOWN, 2),
        queues=(QueueCounters("UC3", packets=5, marked_packets=1),),
        watchdog=(WatchdogCounters(3, "operational", storms_detected=1, rx_dropped=6),),
    )
    named = {one.name: one.value for one in from_port(read)}
    assert (named["pfc_tx.1"], named["pfc_tx_total"], named["pg_dropped.1"]) == (9, 9, 2)
    assert (named["queue.UC3.packets"], named["queue.UC3.marked"], named["queue.UC3.dropped"]) == (5, 1, UNKNOWN)
    assert (named["watchdog.3.storms"], named["watchdog.3.rx_dropped"]) == (1, 6)
    assert "pfc_rx.0" not in named
    assert "pfc_rx_total" not in named
