"""The switch without VMs: generated RoCEv2 sources, NICs and cables in one deterministic event loop.

Same core, sources and seed give the same trace. Knows no socket and no clock.
"""

import hashlib
import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from fabric.lab.wire.actions import Action, Send
from fabric.lab.wire.core import SwitchCore
from fabric.lab.wire.frame import CE, parse
from fabric.lab.wire.nic import Departure, NicModel, NicPlan
from fabric.lab.wire.roce import RoceFlow, read_bth

__all__ = ("Cable", "Delivery", "PeerPause", "Source", "Trace", "simulate")

_NS_BITS_PER_BYTE = 8 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """A guest that sends one flow at an even rate, as far as its NIC reads it.

    Attributes:
        rate_bps: payload bits each second that it offers.
        frames: how many it sends in all, None for no end.
    """

    port: str
    flow: RoceFlow
    rate_bps: int
    payload_bytes: int = 1024
    frames: int | None = None
    start_ns: int = 0


@dataclass(frozen=True, slots=True)
class PeerPause:
    """The peer of a port pauses one priority for a while (a slow receiver)."""

    port: str
    priority: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Cable:
    """Between each NIC and the switch.

    Attributes:
        delay_ns: one way.
        reaction_ns: from the arrival of a pause to the NIC's obeying it; a frame that has begun goes on.
    """

    delay_ns: int = 0
    reaction_ns: int = 0


@dataclass(frozen=True, slots=True)
class Delivery:
    """A frame that has wholly arrived at the peer of a port."""

    port: str
    at_ns: int
    frame: bytes

    @property
    def queue_pair(self) -> int | None:
        """Returns the destination queue pair, None when it is no RoCEv2 packet."""
        bth = read_bth(self.frame)
        return None if bth is None else bth.queue_pair

    @property
    def psn(self) -> int | None:
        """Returns the packet sequence number, None when it is no RoCEv2 packet."""
        bth = read_bth(self.frame)
        return None if bth is None else bth.psn

    @property
    def is_marked(self) -> bool:
        """Returns whether CE is set."""
        headers = parse(self.frame)
        return headers is not None and headers.ecn == CE


@dataclass(slots=True)
class Trace:
    """What happened.

    Attributes:
        deliveries: in order of time.
        offered: frames that each source handed to its NIC.
        pauses: (time, port, priority, paused) that the switch asked for.
    """

    deliveries: list[Delivery] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    pauses: list[tuple[int, str, int, bool]] = field(default_factory=list)

    def of_queue_pair(self, queue_pair: int) -> list[Delivery]:
        """Returns the deliveries of one flow."""
        return [one for one in self.deliveries if one.queue_pair == queue_pair]

    def digest(self) -> str:
        """Returns one number for the whole trace: equal traces have equal digests."""
        whole = hashlib.sha256()
        for one in self.deliveries:
            whole.update(f"{one.at_ns} {one.port} ".encode() + one.frame)
        whole.update(repr((self.offered, self.pauses)).encode())
        return whole.hexdigest()


class _Kind(IntEnum):
    ARRIVE = 0
    DELIVER = 1
    PEER_PAUSE = 2
    NIC_PAUSE = 3
    NIC = 4
    SOURCE = 5


def simulate(
    core: SwitchCore,
    sources: Sequence[Source],
    until_ns: int,
    seed: int,
    *,
    nics: Mapping[str, NicPlan] | None = None,
    cable: Cable = Cable(),
    pauses: Sequence[PeerPause] = (),
) -> Trace:
    """Returns what the sources' frames came to by `until_ns`.

    Args:
        core: the switch; its own randomness is the caller's.
        sources: who sends; each starts within one of its intervals, drawn from `seed`.
        until_ns: events later than this do not happen.
        seed: of the sources' phases.
        nics: by port; a source's port without one has a NIC of the source's own rate, ten times.
        cable: delays.
        pauses: by receivers.
    """
    return _Loop(core, sources, nics or {}, cable, random.Random(seed), pauses).run(until_ns)  # noqa: S311  (phases are no secret)


class _Loop:
    def __init__(
        self,
        core: SwitchCore,
        sources: Sequence[Source],
        nics: Mapping[str, NicPlan],
        cable: Cable,
        draw: random.Random,
        pauses: Sequence[PeerPause],
    ) -> None:
        self.core = core
        self.sources = sources
        self.cable = cable
        self.nics = {
            one.port: NicModel(nics.get(one.port) or NicPlan(rate_bps=one.rate_bps * 10)) for one in reversed(sources)
        }
        self.trace = Trace(offered=[0] * len(sources))
        self.events: list[tuple[int, int, _Kind, object]] = []
        self.serial = 0
        self.blocked: dict[str, list[int]] = {port: [] for port in self.nics}
        self.nic_wake: dict[str, int | None] = dict.fromkeys(self.nics)
        self.due = [0] * len(sources)
        self.remainder = [0] * len(sources)
        for index, one in enumerate(sources):
            interval = one.payload_bytes * _NS_BITS_PER_BYTE // one.rate_bps
            self.due[index] = one.start_ns + draw.randrange(max(1, interval))
            self.at(self.due[index], _Kind.SOURCE, index)
        for pause in pauses:
            self.at(pause.start_ns, _Kind.PEER_PAUSE, (pause.port, pause.priority, True))
            self.at(pause.end_ns, _Kind.PEER_PAUSE, (pause.port, pause.priority, False))

    def at(self, time_ns: int, kind: _Kind, what: object) -> None:
        self.serial += 1
        heapq.heappush(self.events, (time_ns, self.serial, kind, what))

    def run(self, until_ns: int) -> Trace:
        while True:
            event_ns = self.events[0][0] if self.events else until_ns + 1
            core_ns = self.core.next_timer_ns()
            if min(event_ns, event_ns if core_ns is None else core_ns) > until_ns:
                return self.trace
            if core_ns is not None and core_ns <= event_ns:
                self.obey(self.core.advance(core_ns))
                continue
            now_ns, _, kind, what = heapq.heappop(self.events)
            self.happen(now_ns, kind, what)

    def happen(self, now_ns: int, kind: _Kind, what: object) -> None:
        match kind, what:
            case _Kind.ARRIVE, (str(port), bytes(frame)):
                self.obey(self.core.receive(port, frame, now_ns))
            case _Kind.DELIVER, Delivery() as delivery:
                self.trace.deliveries.append(delivery)
            case _Kind.PEER_PAUSE, (str(port), int(priority), bool(paused)):
                self.obey(self.core.peer_pauses(port, priority, paused=paused, now_ns=now_ns))
            case _Kind.NIC_PAUSE, (str(port), int(priority), bool(paused)):
                self.left(port, self.nics[port].set_pause(priority, paused=paused, now_ns=now_ns), now_ns)
            case _Kind.NIC, str(port):
                if self.nic_wake[port] == now_ns:
                    self.nic_wake[port] = None
                self.left(port, self.nics[port].advance(now_ns), now_ns)
            case _Kind.SOURCE, int(index):
                self.emit(index, now_ns)

    def emit(self, index: int, now_ns: int) -> None:
        source = self.sources[index]
        if source.frames is not None and self.trace.offered[index] >= source.frames:
            return
        nic = self.nics[source.port]
        if not nic.reads_guest:
            self.blocked[source.port].append(index)
            return
        psn = self.trace.offered[index]
        frame = source.flow.frame(psn, psn.to_bytes(4, "big") + bytes(source.payload_bytes - 4))
        self.trace.offered[index] += 1
        ticks = source.payload_bytes * _NS_BITS_PER_BYTE + self.remainder[index]
        step_ns, self.remainder[index] = divmod(ticks, source.rate_bps)
        self.due[index] = max(self.due[index], now_ns) + step_ns
        self.at(self.due[index], _Kind.SOURCE, index)
        self.left(source.port, nic.offer(frame, now_ns), now_ns)

    def left(self, port: str, departures: Sequence[Departure], now_ns: int) -> None:
        nic = self.nics[port]
        for one in departures:
            self.at(one.end_ns + self.cable.delay_ns, _Kind.ARRIVE, (port, one.frame))
        if nic.reads_guest and self.blocked[port]:
            for index in self.blocked[port]:
                self.at(now_ns, _Kind.SOURCE, index)
            self.blocked[port].clear()
        next_ns = nic.next_ns()
        wake = self.nic_wake[port]
        if next_ns is not None and (wake is None or next_ns < wake):
            self.nic_wake[port] = next_ns
            self.at(next_ns, _Kind.NIC, port)

    def obey(self, actions: Sequence[Action]) -> None:
        for one in actions:
            if isinstance(one, Send):
                at_ns = one.end_ns + self.cable.delay_ns
                self.at(at_ns, _Kind.DELIVER, Delivery(one.port, at_ns, one.frame))
                continue
            self.trace.pauses.append((one.at_ns, one.port, one.priority, one.paused))
            if one.port in self.nics:
                at_ns = one.at_ns + self.cable.delay_ns + self.cable.reaction_ns
                self.at(at_ns, _Kind.NIC_PAUSE, (one.port, one.priority, one.paused))
