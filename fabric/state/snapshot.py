"""Counters of a whole fabric at one moment: hosts, targets and switches in one form, each with what voids a difference.

A counter that could not be read is UNKNOWN, a source that could not be asked is `Missing`: neither is ever zero. Knows
no vendor's names beyond those that `PortCounters`, `RdmaCounters` and `PauseCounters` already carry.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from fabric.qos import UNKNOWN, Known
from fabric.state.counters import PortCounters
from fabric.state.host import PauseCounters, RdmaCounters

__all__ = (
    "Counter",
    "CounterSet",
    "Missing",
    "Snapshot",
    "Source",
    "SourceKind",
    "from_ethtool",
    "from_pause",
    "from_port",
    "from_rdma",
)


class SourceKind(StrEnum):
    """Whose counters: of a host, a target or a switch."""

    HOST = "host"
    TARGET = "target"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a set of counters stands.

    Attributes:
        device: name in the inventory.
        place: RDMA port `rxe0/1`, netdev `data0`, switch port `Ethernet4`.
        kind: host, target or switch.
        family: whose names the counters have: `rxe`, `mlx5`, `bnxt_re`, `irdma`; `netdev`; `sonic`, `eos`.
    """

    device: str
    place: str
    kind: SourceKind
    family: str

    def __str__(self) -> str:
        return f"{self.device} {self.place}"


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter by its own name; bits: the width at which it wraps, 0 where it never does."""

    name: str
    value: Known[int]
    bits: int = 64


@dataclass(frozen=True, slots=True)
class CounterSet:
    """What one source had counted.

    Attributes:
        epoch: boot id and driver instance; between two epochs there is no difference.
        at_ns: when it was read, on the clock of whoever asked. span_ns: how long the reading took.
        cache_ns: how old a value may be when it is read (`lifespan` of hw_counters, a switch's poll interval).
    """

    source: Source
    epoch: str
    at_ns: int
    span_ns: int = 0
    cache_ns: int = 0
    counters: tuple[Counter, ...] = ()

    def value(self, name: str) -> Known[int]:
        """Returns the counter of that name, UNKNOWN when the source has none."""
        return next((one.value for one in self.counters if one.name == name), UNKNOWN)


@dataclass(frozen=True, slots=True)
class Missing:
    """A source that gave no counters, and why."""

    source: Source
    why: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole fabric at one moment.

    Attributes:
        label: what it is for: `before`, `after`, `idle-1`.
        unix_s: wall time, for people.
        is_settled: hosts and targets were read twice and no packet had moved: their readings are one moment.
    """

    label: str
    unix_s: float
    sets: tuple[CounterSet, ...] = ()
    missing: tuple[Missing, ...] = ()
    is_settled: bool = False

    def of(self, source: Source) -> CounterSet | None:
        """Returns the counters of that source, None when it gave none."""
        return next((one for one in self.sets if one.source == source), None)


def from_rdma(read: RdmaCounters, *, bits: int = 64) -> tuple[Counter, ...]:
    """Returns the counters of one RDMA port by the driver's names."""
    return tuple(Counter(name, value, bits) for name, value in read.values)


def from_ethtool(values: tuple[tuple[str, int], ...], *, bits: int = 64) -> tuple[Counter, ...]:
    """Returns the counters of `ethtool -S` by the driver's names."""
    return tuple(Counter(name, value, bits) for name, value in values)


def from_pause(read: PauseCounters) -> tuple[Counter, ...]:
    """Returns the pause counters of one netdev in the house's names: `pfc_rx_xoff.3`, `link_rx_pause`."""
    by_priority = (
        ("pfc_rx_xoff", read.pfc_rx_xoff),
        ("pfc_tx_xoff", read.pfc_tx_xoff),
        ("pfc_rx_xon", read.pfc_rx_xon),
        ("pfc_tx_xon", read.pfc_tx_xon),
    )
    single = (
        Counter("link_rx_pause", read.link_rx_pause),
        Counter("link_tx_pause", read.link_tx_pause),
        Counter("storm_events", read.storm_events),
    )
    return (*(one for name, values in by_priority for one in _by_index(name, values)), *single)


def from_port(read: PortCounters) -> tuple[Counter, ...]:
    """Returns the counters of one switch port in the house's names.

    `pfc_rx.3`, `pfc_tx.3`, `pfc_rx_total`, `pg_dropped.3`, `rx_packets`, `tx_packets`, `rx_errors`, `tx_errors`,
    `rx_discards`, `tx_discards`; per queue as the switch labels it `queue.UC3.packets`,
    `.bytes`, `.dropped`, `.dropped_bytes`, `.wred_dropped`, `.marked`; per watchdog `watchdog.3.storms`, `.restored`,
    `.tx_ok`, `.tx_dropped`, `.rx_ok`, `.rx_dropped`. What a switch does not show at all has no counter here.
    """
    return (
        *_by_index("pfc_rx", read.pfc_rx_frames),
        *_by_index("pfc_tx", read.pfc_tx_frames),
        *_total("pfc_rx_total", read.pfc_rx_total),
        *_total("pfc_tx_total", read.pfc_tx_total),
        *_by_index("pg_dropped", read.pg_dropped_packets),
        *_total("rx_packets", read.rx_packets),
        *_total("tx_packets", read.tx_packets),
        *_total("rx_errors", read.rx_errors),
        *_total("tx_errors", read.tx_errors),
        *_total("rx_discards", read.rx_discards),
        *_total("tx_discards", read.tx_discards),
        *_queues(read),
        *_watchdogs(read),
    )


def _by_index(name: str, values: Known[tuple[Known[int], ...]]) -> Iterator[Counter]:
    if values is not UNKNOWN:
        yield from (Counter(f"{name}.{index}", value) for index, value in enumerate(values))


def _total(name: str, value: Known[int]) -> tuple[Counter, ...]:
    return () if value is UNKNOWN else (Counter(name, value),)


def _queues(read: PortCounters) -> Iterator[Counter]:
    for one in read.queues:
        at = f"queue.{one.queue}"
        yield Counter(f"{at}.packets", one.packets)
        yield Counter(f"{at}.bytes", one.bytes)
        yield Counter(f"{at}.dropped", one.dropped_packets)
        yield Counter(f"{at}.dropped_bytes", one.dropped_bytes)
        yield Counter(f"{at}.wred_dropped", one.wred_dropped_packets)
        yield Counter(f"{at}.marked", one.marked_packets)


def _watchdogs(read: PortCounters) -> Iterator[Counter]:
    for one in read.watchdog:
        at = f"watchdog.{one.queue}"
        yield Counter(f"{at}.storms", one.storms_detected)
        yield Counter(f"{at}.restored", one.storms_restored)
        yield Counter(f"{at}.tx_ok", one.tx_ok)
        yield Counter(f"{at}.tx_dropped", one.tx_dropped)
        yield Counter(f"{at}.rx_ok", one.rx_ok)
        yield Counter(f"{at}.rx_dropped", one.rx_dropped)
