"""Evidence by hand: one host, one target, one switch between; what moved is said, everything else stood."""

from collections.abc import Mapping
from dataclasses import replace

from fabric.qos import UNKNOWN, Known
from fabric.state import Counter, CounterSet, Snapshot, Source, SourceKind
from fabric.verify import End, Evidence, Hop, JobSummary, LinkPath, StreamSummary, TrafficClass

HOST = Source("h1", "mlx5_0/1", SourceKind.HOST, "mlx5")
HOST_NIC = Source("h1", "data0", SourceKind.HOST, "netdev")
TARGET = Source("t1", "mlx5_0/1", SourceKind.TARGET, "mlx5")
TARGET_NIC = Source("t1", "data0", SourceKind.TARGET, "netdev")
TO_HOST = Source("s1", "Ethernet0", SourceKind.SWITCH, "sonic")
TO_TARGET = Source("s1", "Ethernet4", SourceKind.SWITCH, "sonic")
SOURCES = (HOST, HOST_NIC, TARGET, TARGET_NIC, TO_HOST, TO_TARGET)

SECOND = 1_000_000_000
RDMA = (
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "implied_nak_seq_err",
    "duplicate_request",
    "rnr_nak_retry_err",
    "req_cqe_error",
)
NIC = (
    "tx_prio3_packets",
    "rx_prio3_packets",
    "rx_prio3_discards",
    "rx_discards_phy",
    "rx_crc_errors_phy",
    "link_down_events_phy",
    "rx_prio3_pause",
    "rx_prio3_pause_duration",
    "tx_pause_storm_error_events",
)
SWITCH = (
    "pfc_rx.3",
    "pfc_tx.3",
    "pg_dropped.3",
    "queue.3.packets",
    "queue.3.dropped",
    "queue.3.wred_dropped",
    "queue.3.marked",
    "queue.1.packets",
    "queue.1.dropped",
    "watchdog.3.storms",
    "watchdog.3.tx_dropped",
)
NAMES = {"mlx5": RDMA, "netdev": NIC, "sonic": SWITCH}

Moves = Mapping[Source, Mapping[str, Known[int]]]

SOUND: Moves = {
    HOST_NIC: {"tx_prio3_packets": 300, "rx_prio3_packets": 1000},
    TARGET_NIC: {"tx_prio3_packets": 1000, "rx_prio3_packets": 300},
    TO_HOST: {"queue.3.packets": 1000},
    TO_TARGET: {"queue.3.packets": 300},
}
PATH = LinkPath(
    "h1",
    "t1",
    (
        Hop(End("h1", "data0", SourceKind.HOST, "mlx5_0/1"), End("s1", "Ethernet0", SourceKind.SWITCH)),
        Hop(End("s1", "Ethernet4", SourceKind.SWITCH), End("t1", "data0", SourceKind.TARGET, "mlx5_0/1")),
    ),
)
STREAM = StreamSummary("h1", "t1", reads=50)


def snapshot(label: str, at_ns: int, moves: Moves, *, without: frozenset[Source] = frozenset()) -> Snapshot:
    sets = []
    for source in SOURCES:
        moved = moves.get(source, {})
        names = dict.fromkeys((*NAMES[source.family], *moved))
        shown = tuple(Counter(name, _plus(moved.get(name, 0))) for name in names)
        if source not in without:
            sets.append(CounterSet(source, "boot-1", at_ns, counters=shown))
    return Snapshot(label, 0.0, tuple(sets))


def _plus(moved: Known[int]) -> Known[int]:
    return UNKNOWN if moved is UNKNOWN else 5000 + moved


def evidence(moves: Moves | None = None, *, stream: StreamSummary = STREAM, sound: bool = True) -> Evidence:
    """Returns a run in which `moves` happened on top of sound traffic."""
    merged = {
        source: {**(SOUND.get(source, {}) if sound else {}), **(moves or {}).get(source, {})} for source in SOURCES
    }
    unread = {
        source: {name: UNKNOWN if value is UNKNOWN else 0 for name, value in moved.items()}
        for source, moved in merged.items()
    }
    return Evidence(
        before=snapshot("before", 0, unread),
        after=snapshot("after", 10 * SECOND, merged),
        jobs=(JobSummary("pairwise", 5.0, (stream,)),),
        links=(PATH,),
        classes=(TrafficClass("storage", 3, lossless=True),),
        asked_packets=1000,
        load_started_ns=SECOND,
        load_ended_ns=9 * SECOND,
    )


def without(found: Evidence, *gone: Source) -> Evidence:
    """Returns the evidence without these sources in both snapshots."""

    def cut(one: Snapshot) -> Snapshot:
        return replace(one, sets=tuple(own for own in one.sets if own.source not in gone))

    return replace(found, before=cut(found.before), after=cut(found.after))


def plus(found: Evidence, source: Source, **shown: int) -> Evidence:
    """Returns the evidence with one more source; shown: how far its counters moved, `__` for a dot."""

    def with_more(snapshot: Snapshot, at_ns: int, *, moved: bool) -> Snapshot:
        counters = tuple(Counter(name.replace("__", "."), value if moved else 0) for name, value in shown.items())
        return replace(snapshot, sets=(*snapshot.sets, CounterSet(source, "boot-1", at_ns, counters=counters)))

    return replace(
        found,
        before=with_more(found.before, 0, moved=False),
        after=with_more(found.after, 10 * SECOND, moved=True),
    )
