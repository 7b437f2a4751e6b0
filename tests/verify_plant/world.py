"""The event loop: machines, cables and switches. It alone knows the truth: what went on a cable and what came off one."""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence

from fabric.lab.wire import Action, Platform, Send, SwitchCore, WireFaults
from fabric.qos import DeviceQos
from fabric.state import CounterSet, Snapshot, Source, SourceKind
from fabric.state.snapshot import from_port
from tests.verify_plant.endpoint import Machine
from tests.verify_plant.frames import DATA_DSCP, Framer, Packet, dscp_of, mac, read
from tests.verify_plant.queuepair import QueuePair

DELAY_NS = 500
RATE_BPS = 10_000_000_000


class World:
    """Switches in a row, machines at their ports.

    Attributes:
        truth: frames of the class: `sent` onto a cable, `came` off the last one, `flawed`.
        loss: (switch, port, way) → chance to lose a frame there; way `in` at the switch, `out` at the machine.
    """

    def __init__(self, qos: Sequence[DeviceQos], platform: Platform, draw: random.Random) -> None:
        self.draw = draw
        self.now_ns = 0
        self.machines: dict[str, Machine] = {}
        self.cores = {one.device: SwitchCore(one, platform, draw=draw, faults=WireFaults()) for one in qos}
        self.cables: dict[tuple[str, str], tuple[str, str] | Machine] = {}
        self.out_faults: dict[str, WireFaults] = {}
        self.loss: dict[tuple[str, str, str], float] = {}
        self.truth: Counter[str] = Counter()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._wakes: dict[str, int | None] = {}

    # Building.

    def attach(self, machine: Machine, switch: str, port: str) -> None:
        machine.switch, machine.port = switch, port
        self.machines[machine.name] = machine
        self.cables[switch, port] = machine
        self.out_faults[machine.name] = WireFaults()
        self._wakes[machine.name] = None

    def join(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        self.cables[one], self.cables[other] = other, one

    def learn(self, ways: dict[tuple[str, int], str]) -> None:
        """(switch, machine's number) → the port that leads there."""
        for (switch, number), port in ways.items():
            self.cores[switch].learn(mac(number), port)

    def connect(
        self,
        number: int,
        one: Machine,
        other: Machine,
        got: Callable[[QueuePair, bytes], None],
        placed: Callable[[QueuePair, bytes], None],
    ) -> tuple[QueuePair, QueuePair]:
        ends = []
        for near, far in ((one, other), (other, one)):
            framer = Framer(near.number, far.number)
            pair = QueuePair(number, framer, self._emitter(near), self._waker(near), got, placed, lambda: self.now_ns)
            near.queue_pairs[number] = pair
            ends.append(pair)
        return ends[0], ends[1]

    # Running.

    def at(self, time_ns: int, act: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (time_ns, self._serial, act))

    def run(self, until_ns: int, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Runs until then, or until there is nothing left to do, or `stop`."""
        while not stop():
            event_ns = self._events[0][0] if self._events else until_ns + 1
            timers = [(due, core) for core in self.cores.values() if (due := core.next_timer_ns()) is not None]
            core_ns, core = min(timers, key=lambda one: one[0], default=(until_ns + 1, None))
            if min(event_ns, core_ns) > until_ns:
                self.now_ns = until_ns
                return
            if core is not None and core_ns <= event_ns:
                self.now_ns = core_ns
                self._obey(core, core.advance(core_ns))
                continue
            self.now_ns, _, act = heapq.heappop(self._events)
            act()

    def offer(self, machine: Machine, frame: bytes) -> None:
        """A machine hands a frame to its NIC."""
        self._left(machine, machine.nic.offer(frame, self.now_ns))

    def _emitter(self, machine: Machine) -> Callable[[bytes], None]:
        def emit(frame: bytes) -> None:
            if machine.up:
                machine.events["sent"] += 1
                self.offer(machine, frame)

        return emit

    def _waker(self, machine: Machine) -> Callable[[QueuePair, int], None]:
        def wake(pair: QueuePair, at_ns: int) -> None:
            self.at(at_ns, lambda: pair.timer(at_ns) if machine.up else None)

        return wake

    def _left(self, machine: Machine, departures: Sequence[object]) -> None:
        for one in departures:
            frame: bytes = one.frame  # type: ignore[attr-defined]
            machine.count_wire("tx", frame)
            self.truth["sent"] += dscp_of(frame) == DATA_DSCP
            core = self.cores[machine.switch]
            self.at(
                one.end_ns + DELAY_NS,  # type: ignore[attr-defined]
                lambda core=core, frame=frame: self._arrive(core, machine.switch, machine.port, frame),  # type: ignore[misc]
            )
        next_ns, wake = machine.nic.next_ns(), self._wakes[machine.name]
        if next_ns is not None and (wake is None or next_ns < wake):
            self._wakes[machine.name] = next_ns
            self.at(next_ns, lambda: self._nic(machine, next_ns))

    def _nic(self, machine: Machine, at_ns: int) -> None:
        if self._wakes[machine.name] == at_ns:
            self._wakes[machine.name] = None
            self._left(machine, machine.nic.advance(at_ns))

    def _arrive(self, core: SwitchCore, switch: str, port: str, frame: bytes) -> None:
        chance = self.loss.get((switch, port, "in"), 0.0)
        if chance and self.draw.random() < chance:
            return
        self._obey(core, core.receive(port, frame, self.now_ns))

    def _obey(self, core: SwitchCore, actions: Sequence[Action]) -> None:
        name = next(name for name, one in self.cores.items() if one is core)
        for one in actions:
            peer = self.cables.get((name, one.port))
            if peer is None:
                continue
            if isinstance(one, Send):
                self.at(one.end_ns + DELAY_NS, self._arrival(name, one, peer))
            else:
                self.at(one.at_ns + DELAY_NS, self._pause(peer, one.priority, paused=one.paused))

    def _arrival(self, switch: str, sent: Send, peer: tuple[str, str] | Machine) -> Callable[[], None]:
        if isinstance(peer, Machine):
            return lambda: self._deliver(switch, peer, sent.frame)
        return lambda: self._arrive(self.cores[peer[0]], peer[0], peer[1], sent.frame)

    def _pause(self, peer: tuple[str, str] | Machine, priority: int, *, paused: bool) -> Callable[[], None]:
        def act() -> None:
            if isinstance(peer, Machine):
                if peer.deaf:
                    return
                peer.paused(on=paused, now_ns=self.now_ns)
                self._left(peer, peer.nic.set_pause(priority, paused=paused, now_ns=self.now_ns))
            else:
                core = self.cores[peer[0]]
                self._obey(core, core.peer_pauses(peer[1], priority, paused=paused, now_ns=self.now_ns))

        return act

    def _deliver(self, switch: str, machine: Machine, frame: bytes) -> None:
        chance = self.loss.get((switch, machine.port, "out"), 0.0)
        if chance and self.draw.random() < chance:
            return
        for _, one in self.out_faults[machine.name].arriving(machine.port, frame):
            self._received(machine, one)

    def _received(self, machine: Machine, frame: bytes) -> None:
        machine.count_wire("rx", frame)
        self.truth["came"] += dscp_of(frame) == DATA_DSCP
        packet = read(frame)
        if packet is None or not machine.up:
            return
        machine.events["received"] += 1
        if machine.slow_until_ns > self.now_ns:
            self.at(machine.slow_until_ns, lambda: self._take(machine, packet))
        else:
            self._take(machine, packet)

    def _take(self, machine: Machine, packet: Packet) -> None:
        pair = machine.queue_pairs.get(packet.queue_pair)
        if pair is None or not machine.up:
            return
        pair.receive(packet)
        if machine.family == "mlx5" and pair.events["cnp-wanted"] > pair.events["cnp-sent"]:
            pair.send_cnp()

    # Reading.

    def snapshot(self, label: str, *, spread_ns: int = 3000) -> Snapshot:
        sets: list[CounterSet] = []
        for index, machine in enumerate(self.machines.values()):
            sets += machine.sets(self.now_ns + index * spread_ns)
        for name, core in self.cores.items():
            for port in core.ports:
                source = Source(name, port, SourceKind.SWITCH, "sonic")
                sets.append(CounterSet(source, "up-1", self.now_ns, 2000, 1_000_000, from_port(core.counters(port))))
        return Snapshot(label, 0.0, tuple(sets))
