"""One seeded run: a random fabric and load, one planted fault or none; the evidence and, apart from it, the truth."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from fabric.lab.wire import FaultRule, PacketKind, Platform, WireFault
from fabric.qos import Aqm, AqmKind, DeviceQos, PfcMode, PortPfc, PortWatchdog, Threshold, WatchdogAction, dscp_map
from fabric.state import CounterSet, Missing, Snapshot, SourceKind
from fabric.verify import End, Evidence, FlawSummary, Hop, JobSummary, LinkPath, StreamSummary, TrafficClass
from tests.unit.lab.wire.wiring import device
from tests.verify_plant.endpoint import Machine
from tests.verify_plant.frames import CM, PAYLOAD_BYTES, READ_REQUEST, SEND, WRITE, Framer, lossy
from tests.verify_plant.queuepair import QueuePair
from tests.verify_plant.truth import BAR_1, INCAST, KINDS, POOR, Fault, Truth
from tests.verify_plant.world import RATE_BPS, World

FRAMES = re.compile(r"(statistics\.)?[rt]x_(packets|errors|discards)(_phy)?")
MS = 1_000_000
US = 1_000
LOSSLESS = 3


@dataclass(slots=True)
class Connection:
    """A host's commands to one target."""

    host: Machine
    target: Machine
    number: int
    ends: tuple[QueuePair, QueuePair]
    commands: list[tuple[bytes, int]]
    reads: int = 0
    writes: int = 0
    begun: int = 0
    done: int = 0
    flaws: int = 0

    @property
    def over(self) -> bool:
        return self.done == len(self.commands) or any(one.dead for one in self.ends)


class Run:
    """A world with its load and fault."""

    def __init__(
        self, seed: int, *, fault: Fault | None = None, commands: int | None = None, rule: FaultRule | None = None
    ) -> None:
        self.draw = random.Random(seed)  # noqa: S311  (which fabric is no secret)
        self.rule = rule
        self.fault = fault or self.draw.choice(BAR_1)
        self.family = self.draw.choice(("rxe", "mlx5")) if self.fault is not Fault.DEAF else "mlx5"
        self.incast = self.fault in INCAST or (self.fault is Fault.MISCLASSIFIED and self.draw.random() < 0.5)
        self.targets = 3 if self.incast else self.draw.randint(1, 3)
        self.hosts = 1 if self.incast else self.draw.randint(1, 2)
        self.commands = commands or self.draw.randint(10, 40)
        self.size = 16 if self.incast else self.draw.choice((4, 8, 16))
        self.depth = 4 if self.incast else self.draw.randint(1, 3)
        self.write_share = 0.0 if self.incast else self.draw.choice((0.0, 0.2, 0.5))
        self.counts_ports = random.Random(f"ports {seed}").random() < 0.7  # noqa: S311  (as above)
        self.poor = self.fault in POOR and self.draw.random() < 0.3
        self.when: dict[int, Callable[[], None]] = {}  # commands done, of all → what happens then
        self.places: tuple[str, ...] = ()
        self.void = ""
        self.hide: frozenset[str] = frozenset()
        self.switches = tuple(f"s{one}" for one in range(1, self.draw.randint(1, 3) + 1))
        self.world = self._build()
        self.connections = self._connect()

    # Fabric.

    def _build(self) -> World:
        total = self.hosts + self.targets
        homes = [self.draw.choice(self.switches) for _ in range(total)]
        if self.incast:  # it meets where the fault is
            homes = [self.switches[-1]] * total
        watchdog = PortWatchdog(frozenset({LOSSLESS}), 1, 1, 1, WatchdogAction.DROP)
        curve = Aqm(AqmKind.MARK, Threshold(8_000), Threshold(24_000), pmax_percent=50)
        qos = [
            replace(device(total + 2, curve=curve, watchdog=watchdog, headroom_bytes=30_000), device=name)
            for name in self.switches
        ]
        qos = [self._spoilt(one) for one in qos]
        shared = 20_000 if self.incast else self.draw.choice((60_000, 200_000))
        platform = Platform(shared_bytes=shared, rate_bps=RATE_BPS, xon_offset_bytes=5_000)
        world = World(qos, platform, self.draw)
        for number, home in enumerate(homes):
            kind = SourceKind.HOST if number < self.hosts else SourceKind.TARGET
            name = f"h{number + 1}" if kind is SourceKind.HOST else f"t{number - self.hosts + 1}"
            deaf = self.fault is Fault.DEAF and number == self.hosts
            world.attach(Machine(name, number, kind, self.family, RATE_BPS, deaf=deaf), home, f"p{number}")
        for one, other in zip(self.switches, self.switches[1:], strict=False):
            world.join((one, f"p{total}"), (other, f"p{total + 1}"))
        world.learn(
            {
                (switch, machine.number): self._way(switch, machine, total)
                for switch in self.switches
                for machine in world.machines.values()
            }
        )
        return world

    def _way(self, switch: str, machine: Machine, total: int) -> str:
        if machine.switch == switch:
            return machine.port
        return f"p{total}" if machine.switch > switch else f"p{total + 1}"

    def _spoilt(self, qos: DeviceQos) -> DeviceQos:
        """The configuration with the fault in it, on the last switch."""
        if qos.device != self.switches[-1]:
            return qos
        if self.fault is Fault.PFC_OFF:
            off = PortPfc(PfcMode.OFF, frozenset({LOSSLESS}))
            return replace(qos, ports=tuple(replace(one, pfc=off) for one in qos.ports))
        if self.fault in {Fault.HEADROOM, Fault.DEAF}:  # enough for a NIC that obeys, or for none
            headroom = 700 if self.fault is Fault.HEADROOM else 3_000
            return replace(device(len(qos.ports), headroom_bytes=headroom), device=qos.device)
        if self.fault is Fault.MISCLASSIFIED:
            wrong = dscp_map({48: 6, 10: 1}, default=0)
            return replace(qos, ports=tuple(replace(one, dscp_to_tc=wrong) for one in qos.ports))
        return qos

    # Load.

    def _connect(self) -> list[Connection]:
        found: list[Connection] = []
        machines = list(self.world.machines.values())
        for host in machines[: self.hosts]:
            for target in machines[self.hosts :]:
                number = 16 + len(found)
                commands = [
                    (b"W" if self.draw.random() < self.write_share else b"R", self.size) for _ in range(self.commands)
                ]
                connection: Connection
                ends = self.world.connect(number, host, target, self._got, self._placed)
                connection = Connection(host, target, number, ends, commands)
                for end in ends:
                    end.context = connection
                found.append(connection)
        return found

    def _got(self, pair: QueuePair, payload: bytes) -> None:
        connection = pair.context
        assert isinstance(connection, Connection)
        if pair is connection.ends[0]:
            connection.done += 1
            self.when.pop(sum(one.done for one in self.connections), lambda: None)()
            self._next(connection)
            return
        command, index = payload[:1], int.from_bytes(payload[1:5], "big")
        size = connection.commands[index][1]
        if command == b"R":
            bodies = [_body(connection.number, index, packet) for packet in range(size)]
            pair.post(WRITE, bodies)
        else:
            pair.post(READ_REQUEST, [b""], responses=size)
        pair.post(SEND, [payload])

    def _placed(self, pair: QueuePair, payload: bytes) -> None:
        connection = pair.context
        assert isinstance(connection, Connection)
        unit = 8 if pair is connection.ends[0] else 4
        if payload[:unit] * (PAYLOAD_BYTES // unit) != payload:
            connection.flaws += 1

    def _next(self, connection: Connection) -> None:
        if connection.begun < len(connection.commands):
            command = connection.commands[connection.begun][0]
            connection.ends[0].post(SEND, [command + connection.begun.to_bytes(4, "big") + bytes(59)])
            connection.reads += command == b"R"
            connection.writes += command == b"W"
            connection.begun += 1

    def _begin(self) -> None:
        for one in self.connections:
            for near, far in ((one.host, one.target), (one.target, one.host), (one.host, one.target)):
                near.events["sent"] += 1
                framer = Framer(near.number, far.number)
                self.world.offer(near, framer.frame(CM, 1, 0, wants_ack=False, word=1, payload=b""))
            for _ in range(self.depth):
                self._next(one)
        self._background()

    def _background(self) -> None:
        machines = list(self.world.machines.values())
        for _ in range(self.draw.choice((0, 0, 60))):
            one, other = self.draw.sample(machines, 2)
            frame = lossy(one.number, other.number, self.draw.randint(60, 1400))
            at_ns = self.world.now_ns + self.draw.randrange(200 * US)
            self.world.at(at_ns, lambda one=one, frame=frame: self.world.offer(one, frame))  # type: ignore[misc]

    # Faults.

    def _plant(self) -> None:
        match self.fault:
            case Fault.NTH:
                self._drop_nth()
            case Fault.RANDOM:
                self._lose_at_random()
            case Fault.SLOW:
                self._stall()
            case Fault.REORDERED:
                self._overtake()
            case Fault.DEAF:
                self._deafen()
            case Fault.MISCLASSIFIED | Fault.PFC_OFF | Fault.HEADROOM:
                last = self.switches[-1]
                self.places = (last, *(f"{last}/{port}" for port in self.world.cores[last].ports))
            case Fault.WATCHDOG:
                self._storm()
            case Fault.FLAP:
                self._flap()
            case Fault.CORRUPT:
                self._corrupt()
            case Fault.RESET | Fault.REBOOT | Fault.UNAVAILABLE:
                self._spoil_machine()
            case Fault.NONE:
                pass

    def _amid(self, act: Callable[[], None]) -> None:
        """Lets it happen at some command of the load."""
        self.when[self.draw.randint(1, max(1, self.commands * len(self.connections) * 2 // 3))] = act

    def _cable(self, kind: PacketKind = PacketKind.ANY) -> tuple[Machine, bool]:
        """A machine's cable where such packets go, and whether they are struck on the way in to the machine."""
        machines = list(self.world.machines.values())
        to_machine = self.draw.random() < 0.4
        if kind in {PacketKind.WRITE, PacketKind.READ_REQUEST}:
            machines = machines[: self.hosts] if to_machine else machines[self.hosts :]
        elif kind is PacketKind.READ_RESPONSE:
            machines = machines[self.hosts :] if to_machine else machines[: self.hosts]
        return self.draw.choice(machines), to_machine

    def _strike(self, rule: FaultRule, machine: Machine, *, to_machine: bool) -> None:
        near, far = f"{machine.name}/data0", f"{machine.switch}/{machine.port}"
        if to_machine:
            self.world.out_faults[machine.name].add(rule)
            self.places = (f"{far} -> {near}",)
        else:
            self.world.cores[machine.switch].faults.add(replace(rule, port=machine.port))
            self.places = (f"{near} -> {far}",)

    def _drop_nth(self) -> None:
        kind = self.draw.choice(KINDS)
        machine, to_machine = self._cable(kind)
        nth = 1 if kind is PacketKind.CM else self.draw.randint(1, 12)
        rule = FaultRule(WireFault.DROP, packet=kind, nth=nth)
        if self.rule is not None:
            machines = list(self.world.machines.values())
            machine = machines[0 if self.rule.packet is PacketKind.READ_RESPONSE else -1]
            rule, to_machine = self.rule, False
        self._strike(rule, machine, to_machine=to_machine)

    def _lose_at_random(self) -> None:
        machine, to_machine = self._cable()
        rate = self.draw.choice((1e-3, 1e-2))
        self.world.loss[machine.switch, machine.port, "out" if to_machine else "in"] = rate
        near, far = f"{machine.name}/data0", f"{machine.switch}/{machine.port}"
        self.places = (f"{far} -> {near}" if to_machine else f"{near} -> {far}",)

    def _storm(self) -> None:
        machine = self.draw.choice(list(self.world.machines.values()))
        core = self.world.cores[machine.switch]
        self.places = (f"{machine.switch}/{machine.port}",)

        def blow() -> None:
            now_ns = self.world.now_ns
            self.world._obey(core, core.storm(machine.port, LOSSLESS, until_ns=now_ns + 5 * MS, now_ns=now_ns))

        self._amid(blow)

    def _flap(self) -> None:
        machine = self.draw.choice(list(self.world.machines.values()))
        faults = self.world.cores[machine.switch].faults
        self.places = (_cable_name(machine),)
        up_after_ns = self.draw.randint(30, 3000) * US

        def down() -> None:
            faults.set_down(machine.port, down=True)
            machine.events["link-down"] += 1
            self.world.at(self.world.now_ns + up_after_ns, lambda: faults.set_down(machine.port, down=False))

        self._amid(down)

    def _corrupt(self) -> None:
        kind = self.draw.choice(
            (PacketKind.WRITE, PacketKind.READ_RESPONSE) if self.write_share else (PacketKind.WRITE,)
        )
        machine, to_machine = self._cable(kind)
        rule = FaultRule(WireFault.CORRUPT, packet=kind, nth=self.draw.randint(1, 12))
        self._strike(rule, machine, to_machine=to_machine)
        self.places = (_cable_name(machine),)

    def _overtake(self) -> None:
        machine = self.draw.choice(list(self.world.machines.values())[self.hosts :])
        rule = FaultRule(WireFault.REORDER, packet=PacketKind.WRITE, nth=self.draw.randint(1, 6))
        self._strike(rule, machine, to_machine=False)

    def _stall(self) -> None:
        """A host's software stands still for longer than its peers' timers; its NIC goes on."""
        machine = self.draw.choice(list(self.world.machines.values()))

        def stall() -> None:
            machine.slow_until_ns = self.world.now_ns + 9 * MS

        self._amid(stall)

    def _deafen(self) -> None:
        machine = next(one for one in self.world.machines.values() if one.deaf)
        self.places = (f"{machine.switch}/{machine.port}",)

    def _spoil_machine(self) -> None:
        machine = self.draw.choice(list(self.world.machines.values()))
        self.void = machine.name
        if self.fault is Fault.RESET:
            epoch = self.draw.choice(("boot-1", "boot-1-driver-2"))
            self._amid(lambda: machine.reset_counters(epoch))
        elif self.fault is Fault.REBOOT:
            self._amid(lambda: self._reboot(machine))
        else:
            switch = self.draw.choice(self.switches)
            self.hide = frozenset({self.draw.choice((machine.name, switch))})
            self.void = next(iter(self.hide))

    def _reboot(self, machine: Machine) -> None:
        machine.up = False
        machine.nic.reset()
        machine.reset_counters("boot-2")
        for pair in machine.queue_pairs.values():
            pair.dead = True

    # Evidence.

    def go(self) -> tuple[Evidence, Truth]:
        """Runs it all."""
        world = self.world
        idle = world.snapshot("idle-1")
        world.run(20 * MS)
        before = world.snapshot("before")
        world.run(world.now_ns + MS)
        started_ns = world.now_ns
        self._begin()
        self._plant()
        world.run(world.now_ns + 400 * MS, stop=lambda: all(one.over for one in self.connections))
        ended_ns = world.now_ns
        world.run(world.now_ns + 60 * MS)
        after = world.snapshot("after")
        evidence = Evidence(
            before=self._hidden(before),
            after=self._hidden(after),
            idle=(self._hidden(idle), self._hidden(before)),
            jobs=(self._job(),),
            links=tuple(self._path(one) for one in self.connections),
            classes=(TrafficClass("storage", LOSSLESS, lossless=True), TrafficClass("rest", 0, lossless=False)),
            asked_packets=50,
            load_started_ns=started_ns,
            load_ended_ns=ended_ns,
        )
        lost = world.truth["sent"] - world.truth["came"]
        flaws = sum(one.flaws for one in self.connections)
        return evidence, Truth(self.fault, lost, flaws, self.places, self.void, counts_ports=self.counts_ports)

    def _job(self) -> JobSummary:
        streams = tuple(
            StreamSummary(
                one.host.name,
                one.target.name,
                f"{one.host.name}-{one.target.name}",
                reads=one.reads,
                writes=one.writes,
                errors=(("transport", 1),) if any(end.dead for end in one.ends) else (),
                flaws=(FlawSummary(7, 511, "wrong"),) if one.flaws else (),
                flaw_count=one.flaws,
            )
            for one in self.connections
        )
        return JobSummary("plant", 0.001, streams)

    def _hidden(self, snapshot: Snapshot) -> Snapshot:
        sets = tuple(_poor(one) if self.poor else one for one in snapshot.sets if one.source.device not in self.hide)
        if not self.counts_ports:
            sets = tuple(found for one in sets for found in _without_frames(one))
        missing = tuple(
            Missing(one.source, "it could not be asked") for one in snapshot.sets if one.source.device in self.hide
        )
        return replace(snapshot, sets=sets, missing=missing)

    def _path(self, connection: Connection) -> LinkPath:
        host, target = connection.host, connection.target
        total = self.hosts + self.targets
        hops = [Hop(_end(host), End(host.switch, host.port, SourceKind.SWITCH))]
        here = self.switches.index(host.switch)
        there = self.switches.index(target.switch)
        step = 1 if there >= here else -1
        for index in range(here, there, step):
            one, other = self.switches[index], self.switches[index + step]
            ports = (f"p{total}", f"p{total + 1}") if step == 1 else (f"p{total + 1}", f"p{total}")
            hops.append(Hop(End(one, ports[0], SourceKind.SWITCH), End(other, ports[1], SourceKind.SWITCH)))
        hops.append(Hop(End(target.switch, target.port, SourceKind.SWITCH), _end(target)))
        return LinkPath(host.name, target.name, tuple(hops))


def _cable_name(machine: Machine) -> str:
    return " - ".join(sorted((f"{machine.name}/data0", f"{machine.switch}/{machine.port}")))


def _end(machine: Machine) -> End:
    return End(machine.name, "data0", machine.kind, machine.rdma)


def _poor(found: CounterSet) -> CounterSet:
    """What EOS shows of a port: pauses, drops and marks by queue, no packets and no priority groups."""
    if found.source.kind is not SourceKind.SWITCH:
        return found
    gone = (".packets", ".bytes", "pg_dropped")
    kept = tuple(one for one in found.counters if not any(word in one.name for word in gone))
    return replace(found, source=replace(found.source, family="eos"), counters=kept)


def _without_frames(found: CounterSet) -> tuple[CounterSet, ...]:
    """The set without totals of frames; none where it had nothing else."""
    kept = tuple(one for one in found.counters if not FRAMES.fullmatch(one.name))
    return (replace(found, counters=kept),) if kept else ()


def _body(number: int, index: int, packet: int) -> bytes:
    unit = number.to_bytes(2, "big") + index.to_bytes(4, "big") + packet.to_bytes(2, "big")
    return unit * (PAYLOAD_BYTES // len(unit))
