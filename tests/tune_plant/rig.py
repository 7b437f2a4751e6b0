"""One evaluation: readers, host CPU, connections, devices, NICs, and the lab's `SwitchCore` in one event loop.

Loss, pauses and marks are the switch's own counters. Same plant, knobs and seed give the same outcome. Senders know no
congestion control: what bounds the bytes in flight is the policy alone, which is what the tuner turns.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fabric.lab.wire import Action, Platform, RoceFlow, Send, SwitchCore
from fabric.qos import UNKNOWN, Known, known
from fabric.tune import Knobs, Outcome
from tests.tune_plant.plants import DSCP, HEADERS, MS, PACKET_BYTES, PRIORITY, US, Plant, switch_qos

DELAY_NS: Final = 500  # of a cable, one way
RETRY_NS: Final = 2 * MS  # a lost packet is sent again after so long
WARM_SHARE: Final = 0.2
LOW_PACKETS: Final = 900  # what all receivers' links carry in the shortest evaluation
WIRE_BYTES: Final = PACKET_BYTES + HEADERS + 24


def mac(number: int) -> bytes:
    return bytes((2, 0, 0, 0, 1, number))


class Transfer:
    """One command."""

    __slots__ = ("arrived", "frame", "left", "number", "packets", "queue", "reader", "receiver", "size", "target")

    def __init__(self, number: int, receiver: int, reader: int, target: int, size: int) -> None:
        self.number, self.receiver, self.reader, self.target, self.size = number, receiver, reader, target, size
        self.packets = -(-size // PACKET_BYTES)
        self.left = self.packets
        self.arrived = 0
        self.queue = 0
        self.frame = b""


class Lane:
    """From one receiver's host to one target: its connections and what waits for them."""

    __slots__ = ("bytes_by_queue", "count_by_queue", "flying", "free_ns", "last_ns", "turn", "waiting")

    def __init__(self, queues: int) -> None:
        self.waiting: deque[Transfer] = deque()
        self.flying = 0
        self.count_by_queue = [0] * queues
        self.bytes_by_queue = [0] * queues
        self.free_ns = [0.0] * queues
        self.last_ns = [0.0] * queues
        self.turn = 0


class Rig:
    """One plant under one setting of the knobs."""

    def __init__(self, plant: Plant, knobs: Knobs, seed: int) -> None:
        self.plant, self.knobs = plant, knobs
        self.dice = random.Random(seed)  # noqa: S311  (no secret)
        self.events: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self.serial = 0
        self.now = 0
        hosts = range(plant.receivers)
        self.senders = [f"t{one}" for one in range(plant.targets)] + (["n0"] if plant.neighbour else [])
        ports = (*self.senders, *(f"r{one}" for one in hosts))
        self.core = SwitchCore(
            switch_qos(plant, ports),
            Platform(shared_bytes=plant.shared_bytes, xon_offset_bytes=2 * PACKET_BYTES),
            draw=random.Random(seed + 1),  # noqa: S311  (no secret)
        )
        for number, name in enumerate(ports):
            self.core.learn(mac(number), name)
        self.port_index = {name: number for number, name in enumerate(ports)}
        self.flows = {
            (sender, host): RoceFlow(mac(sender), mac(len(self.senders) + host), dscp=DSCP).frame(
                0, bytes(PACKET_BYTES)
            )
            for sender in range(len(self.senders))
            for host in hosts
        }
        self.lanes = [[Lane(knobs.queues) for _ in range(plant.targets)] for _ in hosts]
        self.flying = [0] * plant.receivers
        self.cpu_free = [0.0] * plant.receivers
        self.first_lane = [0] * plant.receivers
        self.chunk_left = [[0] * plant.readers for _ in hosts]
        self.chunk_start = [[0] * plant.readers for _ in hosts]
        self.bytes_of = [[0] * plant.readers for _ in hosts]
        self.first_reads = plant.receivers * plant.readers
        self.last_byte_ns = 0
        self.transfers: dict[int, Transfer] = {}
        self.channels = [[0.0] * plant.channels for _ in range(plant.targets)]
        self.active = [0] * plant.targets
        self.nic: list[deque[Transfer]] = [deque() for _ in self.senders]
        self.nic_busy = [False] * len(self.senders)
        self.paused = [False] * len(self.senders)
        self.paused_since = [0] * len(self.senders)
        self.paused_ns = 0
        self.latencies: list[int] = []
        self.good_bytes = 0
        self.warm_ns = 0
        self.cost_ns = plant.command_cost_ns(knobs.queues)
        self.byte_ns = 1e9 / plant.device_bytes_per_s
        self.pipe_free = [0.0] * plant.targets
        self.packet_ns = WIRE_BYTES * 8e9 / plant.link_bps

    def at(self, when: float, call: Callable[[Any], None], what: object) -> None:
        self.serial += 1
        heapq.heappush(self.events, (int(when), self.serial, call, what))

    def run(self, packets: int) -> Outcome:
        """Returns the outcome after so many packet times of all receivers' links, those of the warm-up not counted."""
        span = packets * self.packet_ns / self.plant.receivers
        self.warm_ns = int(span * WARM_SHARE)
        end = self.warm_ns + int(span)
        for host in range(self.plant.receivers):
            for reader in range(self.plant.readers):
                self.at(self.dice.randrange(20 * US), self.read, (host, reader))
        if self.plant.neighbour:
            self.at(self.dice.randrange(self.plant.neighbour.off_ns), self.burst, None)
        self.loop(end)
        return self.outcome(end)

    def loop(self, end: int) -> None:
        events, core = self.events, self.core
        while events and events[0][0] <= end:
            timer = core.next_timer_ns()
            if timer is not None and timer <= events[0][0]:
                self.now = timer
                self.obey(core.advance(timer))
                continue
            self.now, _, call, what = heapq.heappop(events)
            call(what)

    # The host.

    def read(self, who: tuple[int, int]) -> None:
        host, reader = who
        size = self.plant.chunk_bytes
        self.chunk_start[host][reader] = self.now
        step, targets = self.knobs.transfer_bytes, self.plant.targets
        pieces = -(-size // step)
        self.chunk_left[host][reader] = pieces
        first = self.dice.randrange(targets)
        for piece in range(pieces):
            target = (first + piece) % targets
            self.serial += 1
            one = Transfer(self.serial, host, reader, target, min(step, size - piece * step))
            self.lanes[host][target].waiting.append(one)
        self.deal(host)

    def deal(self, host: int) -> None:
        """Issues what windows and depth allow, one command of each target in turn."""
        knobs, lanes, count = self.knobs, self.lanes[host], self.plant.targets
        idle = 0
        lane_at = self.first_lane[host]
        while idle < count:
            lane = lanes[lane_at]
            lane_at = (lane_at + 1) % count
            idle += 1
            if not lane.waiting:
                continue
            size = lane.waiting[0].size
            if lane.flying + size > knobs.target_bytes and lane.flying:
                continue
            if self.flying[host] + size > knobs.receiver_bytes and self.flying[host]:
                break
            queue = self.choose(lane)
            if queue is None:
                continue
            idle = 0
            self.issue(host, lane, lane.waiting.popleft(), queue)
        self.first_lane[host] = lane_at

    def choose(self, lane: Lane) -> int | None:
        depth, counts = self.knobs.depth, lane.count_by_queue
        if self.knobs.dealing == "round-robin":
            for step in range(len(counts)):
                queue = (lane.turn + step) % len(counts)
                if counts[queue] < depth:
                    lane.turn = queue + 1
                    return queue
            return None
        loads = lane.bytes_by_queue
        free = [queue for queue, flying in enumerate(counts) if flying < depth]
        return min(free, key=loads.__getitem__) if free else None

    def issue(self, host: int, lane: Lane, one: Transfer, queue: int) -> None:
        one.queue = queue
        lane.flying += one.size
        lane.count_by_queue[queue] += 1
        lane.bytes_by_queue[queue] += one.size
        self.flying[host] += one.size
        self.transfers[one.number & 0xFFFFFF] = one
        self.cpu_free[host] = max(self.cpu_free[host], self.now) + self.cost_ns
        self.at(self.cpu_free[host] + self.plant.rtt_ns / 2, self.serve, one)

    # The target.

    def serve(self, one: Transfer) -> None:
        plant, target = self.plant, one.target
        channels = self.channels[target]
        self.active[target] += 1
        crowded = 1 + plant.crowd * max(0, self.active[target] - plant.channels)
        mean = plant.slow_ns if self.dice.random() < plant.slow_share else plant.fast_ns
        service = mean * self.dice.uniform(0.8, 1.2) * crowded
        done = max(self.now, channels[0]) + service
        heapq.heapreplace(channels, done)
        pipe = max(done, self.pipe_free[target]) + one.size * self.byte_ns * crowded
        self.pipe_free[target] = done = pipe
        lane = self.lanes[one.receiver][target]
        if plant.in_order:
            done = lane.last_ns[one.queue] = max(done, lane.last_ns[one.queue])
        if plant.connection_bytes_per_s:
            done = max(done, lane.free_ns[one.queue]) + one.size * 1e9 / plant.connection_bytes_per_s
            lane.free_ns[one.queue] = done
        self.at(done + plant.rtt_ns / 2, self.ready, one)

    def ready(self, one: Transfer) -> None:
        self.active[one.target] -= 1
        frame = self.flows[one.target, one.receiver]
        at = 14 + 20 + 8 + 9  # the packet sequence number, which carries the transfer's number here
        one.frame = frame[:at] + (one.number & 0xFFFFFF).to_bytes(3, "big") + frame[at + 3 :]
        self.nic[one.target].append(one)
        self.push(one.target)

    def push(self, sender: int) -> None:
        """Puts the next packet on a sender's link; its connections take turns."""
        waiting = self.nic[sender]
        if self.nic_busy[sender] or self.paused[sender] or not waiting:
            return
        one = waiting.popleft()
        one.left -= 1
        if one.left:
            waiting.append(one)
        elif sender < self.plant.targets and not self.plant.pfc:
            self.at(self.now + RETRY_NS, self.missing, one)
        self.nic_busy[sender] = True
        done = self.now + self.packet_ns
        self.at(done, self.sent, sender)
        self.at(done + DELAY_NS, self.arrive, (self.senders[sender], one.frame))

    def sent(self, sender: int) -> None:
        self.nic_busy[sender] = False
        self.push(sender)

    def missing(self, one: Transfer) -> None:
        lost = one.packets - one.arrived
        if lost > 0 and not one.left and one.number & 0xFFFFFF in self.transfers:
            one.left = lost
            self.nic[one.target].append(one)
            self.push(one.target)

    # The switch.

    def arrive(self, what: tuple[str, bytes]) -> None:
        self.obey(self.core.receive(what[0], what[1], self.now))

    def obey(self, actions: Sequence[Action]) -> None:
        for one in actions:
            if isinstance(one, Send):
                self.at(one.end_ns + DELAY_NS, self.deliver, one.frame)
            elif one.port in self.senders and one.priority == PRIORITY:
                self.at(one.at_ns + DELAY_NS, self.pause, (self.port_index[one.port], one.paused))

    def pause(self, what: tuple[int, bool]) -> None:
        sender, paused = what
        if paused and not self.paused[sender]:
            self.paused_since[sender] = self.now
        elif not paused and self.paused[sender] and sender < self.plant.targets:
            self.paused_ns += max(0, self.now - max(self.paused_since[sender], self.warm_ns))
        self.paused[sender] = paused
        self.push(sender)

    # The receiver.

    def deliver(self, frame: bytes) -> None:
        one = self.transfers.get(int.from_bytes(frame[51:54], "big"))
        if one is None:
            return  # the neighbour's
        one.arrived += 1
        if self.now >= self.warm_ns:
            bytes_ = min(PACKET_BYTES, one.size)
            self.good_bytes += bytes_
            self.bytes_of[one.receiver][one.reader] += bytes_
        if one.arrived == one.packets:
            self.complete(one)

    def complete(self, one: Transfer) -> None:
        host, reader = one.receiver, one.reader
        del self.transfers[one.number & 0xFFFFFF]
        lane = self.lanes[host][one.target]
        lane.flying -= one.size
        lane.count_by_queue[one.queue] -= 1
        lane.bytes_by_queue[one.queue] -= one.size
        self.flying[host] -= one.size
        self.chunk_left[host][reader] -= 1
        if not self.chunk_left[host][reader]:
            if self.now >= self.warm_ns:
                self.latencies.append(self.now - self.chunk_start[host][reader])
            self.first_reads -= 1
            if not self.first_reads:
                self.last_byte_ns = self.now
            self.read((host, reader))
        else:
            self.deal(host)

    # The neighbour.

    def burst(self, _: None) -> None:
        noise = self.plant.neighbour
        if noise is None:
            return
        until = self.now + self.dice.expovariate(1 / noise.on_ns)
        self.shout(until)
        self.at(until + self.dice.expovariate(1 / noise.off_ns), self.burst, None)

    def shout(self, until: float) -> None:
        noise, sender = self.plant.neighbour, len(self.senders) - 1
        if noise is None or self.now >= until:
            return
        if not self.paused[sender]:
            self.arrive((self.senders[sender], self.flows[sender, 0]))
        self.at(self.now + self.packet_ns / noise.rate_share, self.shout, until)

    def outcome(self, end: int) -> Outcome:
        plant, span = self.plant, end - self.warm_ns
        for sender in range(plant.targets):
            if self.paused[sender]:
                self.paused_ns += end - max(self.paused_since[sender], self.warm_ns)
        counters = [self.core.counters(port) for port in self.core.ports]
        queues = [queue for one in counters for queue in one.queues]
        packets = _sum(queue.packets for queue in queues)
        lost = _sum(group for one in counters for group in known(one.pg_dropped_packets, (UNKNOWN,)))
        lost += _sum(queue.dropped_packets for queue in queues)
        marked = _sum(queue.marked_packets for queue in queues)
        ranks = sorted(self.latencies) or [end]
        shares = [one for host in self.bytes_of for one in host]
        squares = sum(one * one for one in shares)
        return Outcome(
            bytes_per_s=self.good_bytes * 1e9 / span,
            p50_ns=ranks[len(ranks) // 2],
            p99_ns=ranks[min(len(ranks) - 1, len(ranks) * 99 // 100)],
            last_byte_ns=self.last_byte_ns or end,
            fairness=sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0,
            lost=lost,
            pause_share=self.paused_ns / span / plant.targets,
            marks_share=marked / packets if packets else 0.0,
            packets=packets,
        )


def _sum(counts: Iterable[Known[int]]) -> int:
    """Returns the sum; this switch knows all its counters, and one that it did not know would end the run."""
    total = 0
    for one in counts:
        if one is UNKNOWN:
            raise ValueError("the switch has a counter that it does not know")
        total += one
    return total


def evaluate(plant: Plant, knobs: Knobs, fidelity: float, seed: int) -> Outcome:
    """Returns what the plant does; fidelity 1 is nine times the shortest evaluation."""
    return Rig(plant, knobs, seed * 7919 + plant.seed).run(max(LOW_PACKETS, round(9 * LOW_PACKETS * fidelity)))
