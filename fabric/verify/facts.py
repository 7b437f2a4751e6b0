"""Evidence laid out for questions: every counter with its meaning and how far it moved, by device, place and event.

An answer is UNKNOWN when nobody counts, and when what is counted stands still but not all of it was read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fabric.qos import UNKNOWN, Known
from fabric.state import Source, SourceKind
from fabric.verify.delta import Differences, difference
from fabric.verify.events import Event, Meaning, Per, Rule, Unit
from fabric.verify.meanings import meaning
from fabric.verify.model import End, Evidence, Hop, LinkPath, TrafficClass

__all__ = ("Facts", "Reading", "add", "gather", "is_above")


@dataclass(frozen=True, slots=True)
class Reading:
    """How far one counter moved."""

    source: Source
    name: str
    meaning: Meaning
    value: Known[int]

    @property
    def event(self) -> Event:
        """Returns what it counts."""
        return self.meaning.row.event


@dataclass(frozen=True, slots=True)
class Facts:
    """One run.

    Attributes:
        idle: differences of the two snapshots without load, None where there were none.
        ends: of hosts and targets, in order of names. hops: every cable once.
        by_device, ways, partners: the same by device and event, by host and target, and who talks with whom.
    """

    evidence: Evidence
    differences: Differences
    idle: Differences | None
    readings: tuple[Reading, ...]
    ends: tuple[End, ...]
    hops: tuple[Hop, ...]
    by_device: dict[tuple[str, Event], list[Reading]] = field(default_factory=dict)
    ways: dict[tuple[str, str], list[LinkPath]] = field(default_factory=dict)
    partners: dict[str, set[str]] = field(default_factory=dict)

    @property
    def lossless(self) -> tuple[TrafficClass, ...]:
        """Returns the lossless classes."""
        return tuple(one for one in self.evidence.classes if one.lossless)

    @property
    def switches(self) -> tuple[str, ...]:
        """Returns the switches on the way, in order of names."""
        ends = (end for hop in self.hops for end in (hop.near, hop.far))
        return tuple(sorted({end.device for end in ends if end.kind is SourceKind.SWITCH}))

    @property
    def void_devices(self) -> frozenset[str]:
        """Returns the devices of which a window is void."""
        return frozenset(one.source.device for one in self.differences.voids)

    def pick(self, device: str, *events: Event, place: str | None = None) -> tuple[Reading, ...]:
        """Returns the readings of these events there, packets and episodes; at one place where it is given."""
        found = (one for event in events for one in self.by_device.get((device, event), ()))
        return tuple(one for one in found if place is None or one.source.place == place)

    def count(self, device: str, *events: Event, place: str | None = None) -> Known[int]:
        """Returns how often any of these events happened there, as far as they matter to lossless classes."""
        return add(one.value for one in self.pick(device, *events, place=place) if self.matters(one))

    def peers(self, device: str) -> tuple[str, ...]:
        """Returns the hosts and targets that the device talks with."""
        return tuple(sorted(self.partners.get(device, ())))

    def hop_at(self, device: str, place: str) -> Hop | None:
        """Returns the cable that ends at that port, netdev or RDMA port; None when it is on no way."""
        return next((hop for hop in self.hops for end in (hop.near, hop.far) if end.is_at(device, place)), None)

    def matters(self, reading: Reading) -> bool:
        """Returns whether the counter is about a lossless class, or about all classes alike."""
        index, device = reading.meaning.index, reading.source.device
        if index is None or reading.meaning.row.mixed:
            return True
        match reading.meaning.row.per:
            case Per.QUEUE:
                return any(one.at(device).queue == index for one in self.lossless)
            case Per.GROUP:
                return any(one.at(device).group == index for one in self.lossless)
            case _:
                return any(one.priority == index for one in self.lossless)

    def must_stand(self, reading: Reading) -> bool:
        """Returns whether the counter must not move.

        One that counts all classes alike may, where the same source counts the lossless ones apart; errors at a port of
        a switch that no packet of this run passes may, too.
        """
        if reading.meaning.row.rule is not Rule.ZERO or not self.matters(reading):
            return False
        source = reading.source
        is_of_switch = source.kind is SourceKind.SWITCH and reading.event is Event.LINK_ERROR
        if is_of_switch and self.hop_at(source.device, source.place) is None:
            return False
        return not (reading.meaning.row.mixed and self._counts_apart(reading))

    def _counts_apart(self, reading: Reading) -> bool:
        same = self.pick(reading.source.device, reading.event, place=reading.source.place)
        apart = [one for one in same if one.meaning.row.per is Per.PRIORITY and self.matters(one)]
        return bool(apart) and all(one.value is not UNKNOWN for one in apart)


def gather(evidence: Evidence) -> Facts:
    """Returns the evidence, laid out."""
    differences = difference(
        evidence.before, evidence.after, started_ns=evidence.load_started_ns, ended_ns=evidence.load_ended_ns
    )
    idle = None if evidence.idle is None else difference(*evidence.idle)
    readings = tuple(_readings(differences))
    hops = {hop.name: hop for path in evidence.links for hop in path.hops}
    ends = {end for hop in hops.values() for end in (hop.near, hop.far) if end.kind is not SourceKind.SWITCH}
    by_device: dict[tuple[str, Event], list[Reading]] = {}
    for one in readings:
        if one.meaning.row.unit in {Unit.PACKETS, Unit.EPISODES}:
            by_device.setdefault((one.source.device, one.event), []).append(one)
    ways: dict[tuple[str, str], list[LinkPath]] = {}
    partners: dict[str, set[str]] = {}
    for path in evidence.links:
        ways.setdefault((path.host, path.target), []).append(path)
        partners.setdefault(path.host, set()).add(path.target)
        partners.setdefault(path.target, set()).add(path.host)
    return Facts(
        evidence,
        differences,
        idle,
        readings,
        tuple(sorted(ends, key=str)),
        tuple(hops[name] for name in sorted(hops)),
        by_device,
        ways,
        partners,
    )


def _readings(differences: Differences) -> Iterator[Reading]:
    for window in differences.windows:
        for one in window.deltas:
            found = meaning(window.source.family, one.name)
            if found is not None:
                yield Reading(window.source, one.name, found, one.value)


def add(values: Iterable[Known[int]]) -> Known[int]:
    """Returns the sum; what is known, when it is above zero; UNKNOWN for nothing, or for zero with a gap."""
    all_values = tuple(values)
    known = [one for one in all_values if one is not UNKNOWN]
    total = sum(known)
    return UNKNOWN if not known or (total == 0 and len(known) < len(all_values)) else total


def is_above(value: Known[int], limit: int = 0) -> bool:
    """Returns whether it is known to be above the limit."""
    return value is not UNKNOWN and value > limit
