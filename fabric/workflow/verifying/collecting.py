"""The counters of a whole fabric as one snapshot: hosts and targets over SSH, switches over their own sessions.

Who cannot be asked is missing, with the reason, and stops no other. Changes nothing anywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fabric.errors import FabricError
from fabric.intent import Fabric, Loaded
from fabric.plan import FabricPlan
from fabric.state import CounterSet, Missing, Snapshot, Source, SourceKind
from fabric.state.snapshot import from_port
from fabric.verify import Volumes, volume_cache_ns, volumes_of, with_volumes
from fabric.workflow.environment import Environment
from fabric.workflow.evidence import read_counters
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.verifying.hostcounters import Machine, MachineReading, read_machine, read_volumes, unreached
from fabric.workflow.verifying.reaching import Way, Ways

__all__ = ("Collector", "cache_s", "machines_of")

_SETTLES: Final = 6  # a fabric in production may never be silent between two readings: then the books have a tolerance
# SONiC polls queue and priority group counters every 10 s (sonic-utilities counterpoll, QUEUE_STAT and PG_DROP_STAT);
# for EOS no document of ours gives a period: unconfirmed, the same is waited for
_SWITCH_CACHE_NS: Final = 10_000_000_000


def machines_of(fabric: Fabric, selected: Sequence[str]) -> tuple[Machine, ...]:
    """Returns every host and target, with why one is not contacted."""
    chosen = frozenset(selected)

    def why_not(name: str, *, managed: bool) -> str:
        if not managed:
            return "fabric_managed is false: it is not contacted"
        return "" if name in chosen else "left out by the limit"

    return (
        *(Machine(one.name, SourceKind.HOST, one.nics, why_not(one.name, managed=one.managed)) for one in fabric.hosts),
        *(
            Machine(one.name, SourceKind.TARGET, one.nics, why_not(one.name, managed=one.managed))
            for one in fabric.targets
        ),
    )


def cache_s(snapshot: Snapshot) -> float:
    """Returns for how long a counter of the snapshot may be old when it is read, in seconds."""
    return max((one.cache_ns for one in snapshot.sets), default=0) / 1e9


@dataclass(frozen=True, slots=True)
class _Reading:
    """Counts of packets of one machine, and when they were read."""

    volumes: Volumes
    at_ns: int
    span_ns: int


def _later(one: CounterSet, reading: _Reading) -> CounterSet:
    return with_volumes(one, reading.volumes, at_ns=reading.at_ns, span_ns=reading.span_ns)


@dataclass(frozen=True, slots=True)
class Collector:
    """Takes snapshots.

    Attributes:
        loaded: the ways to the switches. ways: to the machines.
        plan: the switches that are asked.
        machines: hosts and targets; see `machines_of`.
        workers: switches at a time.
    """

    loaded: Loaded
    plan: FabricPlan
    machines: tuple[Machine, ...]
    ways: Ways
    environment: Environment
    workers: int = 8

    def snapshot(self, label: str, *, switches: bool = True, wait_s: float = 0.0, settle: bool = False) -> Snapshot:
        """Returns what everybody has counted.

        Args:
            label: of the snapshot.
            switches: the switches too.
            wait_s: how long a machine that does not answer is tried again.
            settle: hosts and targets are read again, some times, until no packet has moved between two readings.
        """
        unix_s = self.environment.clock.unix_s()
        sets, missing = self._machines(wait_s)
        more: tuple[CounterSet, ...] = ()
        gone: tuple[Missing, ...] = ()
        if switches and self.plan.switches:
            more, gone = self._switches()
        is_settled = False
        if settle:
            sets, is_settled = self._settled(sets)
        return Snapshot(label, unix_s, (*sets, *more), (*missing, *gone), is_settled)

    def _settled(self, sets: tuple[CounterSet, ...]) -> tuple[tuple[CounterSet, ...], bool]:
        """Returns the sets with counts of packets read again, and whether those are one moment."""
        wanted, cache_s = volumes_of(sets).keys(), volume_cache_ns(sets) / 1e9
        earlier, is_settled = self._volumes(), False
        for _ in range(_SETTLES):
            self.environment.clock.sleep_s(cache_s)
            later = self._volumes()
            if all(one.volumes == other.volumes for one, other in zip(earlier, later, strict=True)):
                is_settled = {key for one in earlier for key in one.volumes} == wanted
                break
            earlier = later
        by_machine = {machine.name: one for machine, one in zip(self.machines, earlier, strict=True)}
        return tuple(_later(one, by_machine[one.source.device]) for one in sets), is_settled

    def _volumes(self) -> tuple[_Reading, ...]:
        clock = self.environment.clock

        def read(machine: Machine, way: Way) -> _Reading:
            begin_ns = clock.now_ns()
            found = read_volumes(machine, way.facts, way.executor)
            return _Reading(found, begin_ns, clock.now_ns() - begin_ns)

        return self.ways.each(self.machines, read, failed=lambda _machine, _why: _Reading({}, 0, 0))

    def _machines(self, wait_s: float) -> tuple[tuple[CounterSet, ...], tuple[Missing, ...]]:
        readings = self.ways.each(self.machines, self._read, failed=unreached, wait_s=wait_s)
        sets = tuple(one for reading in readings for one in reading.sets)
        return sets, tuple(one for reading in readings for one in reading.missing)

    def _read(self, machine: Machine, way: Way) -> MachineReading:
        clock = self.environment.clock
        begin_ns = clock.now_ns()
        found = read_machine(machine, way.facts, way.executor, now_ns=begin_ns)
        span_ns = clock.now_ns() - begin_ns
        return replace(found, sets=tuple(replace(one, span_ns=span_ns) for one in found.sets))

    def _switches(self) -> tuple[tuple[CounterSet, ...], tuple[Missing, ...]]:
        clock = self.environment.clock
        begin_ns = clock.now_ns()
        read = read_counters(self.loaded, self.plan, self.environment, Stopwatch(clock), workers=self.workers)
        span_ns = clock.now_ns() - begin_ns
        nos = {one.device: one.nos for one in self.plan.switches}
        sets = tuple(
            CounterSet(
                Source(device, one.port, SourceKind.SWITCH, nos[device]),
                epoch="",  # no command of ours shows when it booted; counters that fell do
                at_ns=begin_ns,
                span_ns=span_ns,
                cache_ns=_SWITCH_CACHE_NS,
                counters=from_port(one),
            )
            for device, ports in read.by_device.items()
            for one in ports
        )
        return sets, tuple(self._missing(sets, read.errors))

    def _missing(self, sets: Sequence[CounterSet], errors: Mapping[str, FabricError]) -> Iterator[Missing]:
        """Ports of the intent that no switch listed, with the reason."""
        there = {(one.source.device, one.source.place) for one in sets}
        for switch in self.plan.switches:
            error = errors.get(switch.device)
            why = "the switch listed no counters of this port" if error is None else error.what
            for port in switch.qos.ports:
                if (switch.device, port.name) not in there:
                    yield Missing(Source(switch.device, port.name, SourceKind.SWITCH, switch.nos), why)
