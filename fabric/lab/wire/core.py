"""The data plane of a switch as a state machine: frames, pauses and the time go in, actions come out.

Theory of operation. A frame that has wholly arrived is looked up (MAC table), classified (DSCP or PCP → traffic
class → priority group and queue), charged to the shared buffer and queued, once for each port it leaves through.
A port whose link is free takes the next frame from its queues; only then, with the depth that remains, is the
marking curve asked. A group above its threshold pauses the peer that feeds it; room given back resumes it.

There is no socket, thread or clock here: `now_ns` never goes back, `next_timer_ns` says when `advance` has work.
Events that are overdue happen at their own time, not at the caller's, so that rates hold when a caller is late.

| event | what may change |
|---|---|
| frame arrives | buffer, one or more queues, XOFF to its sender |
| link free | frame leaves, mark, XON to whoever sent it |
| pause, resume, expiry | which queues are held |
| watchdog | storm: queue flushed or freed; restored |
"""

import heapq
from collections import Counter, deque
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from fabric.lab.wire.actions import Action, DropReason, PausePeer, Send, Tally
from fabric.lab.wire.aqm import Draw
from fabric.lab.wire.buffer import Charge, SharedBuffer, shifted
from fabric.lab.wire.classify import classify, fits
from fabric.lab.wire.faults import WireFaults
from fabric.lab.wire.frame import ECT0, ECT1, Headers, parse, with_dscp, with_mark
from fabric.lab.wire.pfc import MAX_QUANTA, is_mac_control, pause_ns, pfc_frame, read_pfc
from fabric.lab.wire.platform import Platform, plan_switch
from fabric.lab.wire.port import FOREVER_NS, Packet, PortState
from fabric.lab.wire.transmitter import QUEUES
from fabric.qos import AqmKind, DeviceQos
from fabric.state import PortCounters, WatchdogCounters

__all__ = ("SwitchCore",)

_LINK_LOCAL: Final = bytes.fromhex("0180c20000")  # IEEE 802.1Q-2018 table 8-1: no bridge forwards 00..0f
_MAC: Final = bytes.fromhex("0200000000")


class _Timer(Enum):
    LINK = auto()
    EXPIRY = auto()
    WATCHDOG = auto()
    REFRESH = auto()
    ARRIVAL = auto()
    OVERDUE = auto()


class SwitchCore:
    """One switch.

    Args:
        qos: what it is configured to do.
        platform: its board.
        draw: source of randomness, `random.Random(seed)`.
        ports: names of the ports that exist; () for those of `qos`.
        pfc_frames: pauses leave as PFC frames, refreshed at half their time; else as `PausePeer` actions.
        faults: what happens on the cables.
    """

    def __init__(
        self,
        qos: DeviceQos,
        platform: Platform,
        *,
        draw: Draw,
        ports: Sequence[str] = (),
        pfc_frames: bool = False,
        faults: WireFaults | None = None,
    ) -> None:
        plan = plan_switch(qos, platform, ports)
        self.unresolved = plan.unresolved
        self.faults = faults or WireFaults()
        self.ports = tuple(port.name for port in plan.ports)
        self.buffer = SharedBuffer(
            plan.shared_bytes,
            tuple(port.groups for port in plan.ports),
            headroom_pool_bytes=plan.headroom_pool_bytes,
        )
        self._platform = platform
        self._draw = draw
        self._pfc_frames = pfc_frames
        self._states = tuple(PortState(index, port) for index, port in enumerate(plan.ports))
        self._index = {port.name: index for index, port in enumerate(plan.ports)}
        self._table: dict[bytes, int] = {}
        self._static: frozenset[bytes] = frozenset()
        self._timers: list[tuple[int, int, _Timer, int, int, bytes]] = []
        self._serial = 0
        self._actions: deque[Action] = deque()
        self._received = self._admitted = self._copies = self._sent = 0
        self._refused: Counter[DropReason] = Counter()
        self._lost: Counter[DropReason] = Counter()

    # What goes in. Each returns what is to be done, in order.

    def receive(self, port: str, frame: bytes, now_ns: int) -> list[Action]:
        """Takes a frame that has wholly arrived at a port."""
        self._run_until(now_ns)
        index = self._index[port]
        if self.faults.idle:
            self._arrived(index, frame, now_ns)
            return self._taken()
        for delay_ns, one in self.faults.arriving(port, frame):
            if delay_ns:
                self._at(now_ns + delay_ns, _Timer.ARRIVAL, index, 0, one)
            else:
                self._arrived(index, one, now_ns)
        hold_ns = self.faults.hold_ns(port)
        if hold_ns is not None:
            self._at(now_ns + hold_ns, _Timer.OVERDUE, index)
        return self._taken()

    def peer_pauses(self, port: str, priority: int, *, paused: bool, now_ns: int) -> list[Action]:
        """Takes a pause or resume of the peer, as if one PFC frame had come; it does not expire.

        It is obeyed, but not counted, where the port is shut or its cable cut: so that the two ends agree afterwards.
        """
        self._run_until(now_ns)
        state = self._states[self._index[port]]
        state.pfc_rx[priority] += self._is_up(state)
        state.paused_until_ns[priority] = FOREVER_NS if paused else 0
        self._rehold(state, now_ns)
        return self._taken()

    def storm(self, port: str, priority: int, *, until_ns: int, now_ns: int) -> list[Action]:
        """Injects a pause storm: the priority is held until then, and no pause is counted."""
        self._run_until(now_ns)
        state = self._states[self._index[port]]
        state.storm_until_ns[priority] = until_ns
        self._at(until_ns, _Timer.EXPIRY, state.index, priority)
        self._rehold(state, now_ns)
        return self._taken()

    def set_enabled(self, port: str, *, enabled: bool, now_ns: int) -> list[Action]:
        """Shuts a port down or takes it up: frames that wait there are lost, addresses learned there forgotten.

        While it is down nothing comes in or goes out and no pause is counted; the pauses in force stay known.
        """
        self._run_until(now_ns)
        state = self._states[self._index[port]]
        if state.enabled and not enabled:
            self._table = {
                mac: index for mac, index in self._table.items() if index != state.index or mac in self._static
            }
            for queue in range(QUEUES):
                for packet in state.transmitter.flush(queue):
                    self._lose(state, packet.charge, DropReason.DOWN, now_ns)
        state.enabled = enabled
        self._rehold(state, now_ns)
        return self._taken()

    def advance(self, now_ns: int) -> list[Action]:
        """Does all that is due by now."""
        self._run_until(now_ns)
        return self._taken()

    def next_timer_ns(self) -> int | None:
        """Returns when `advance` has something to do, None when only a frame or pause can change anything."""
        return self._timers[0][0] if self._timers else None

    def learn(self, mac: bytes, port: str) -> None:
        """Fixes the port of an address, against whatever source addresses say."""
        self._table[mac] = self._index[port]
        self._static |= {mac}

    def configure(self, qos: DeviceQos, now_ns: int, platform: Platform | None = None) -> list[Action]:
        """Obeys another configuration from now; queued frames, the MAC table and counters stay."""
        self._run_until(now_ns)
        self._platform = platform or self._platform
        plan = plan_switch(qos, self._platform, self.ports)
        self.unresolved = plan.unresolved
        for state, port in zip(self._states, plan.ports, strict=True):
            for group, (old, new) in enumerate(zip(state.plan.groups, port.groups, strict=True)):
                if old.pauses != new.pauses and self.buffer.forget_pause(state.index, group):
                    for priority in old.pauses:
                        self._tell_peer(state, priority, paused=False, now_ns=now_ns)
        groups = tuple(port.groups for port in plan.ports)
        self.buffer.configure(plan.shared_bytes, groups, headroom_pool_bytes=plan.headroom_pool_bytes)
        for state, port in zip(self._states, plan.ports, strict=True):
            state.configure(port)
            for group in range(len(port.groups)):
                self._pause_if_due(state, group, now_ns)
            self._rehold(state, now_ns)
        return self._taken()

    # What can be read.

    def counters(self, port: str) -> PortCounters:
        """Returns the counters of a port."""
        return self._states[self._index[port]].counters()

    def storms(self, port: str) -> tuple[WatchdogCounters, ...]:
        """Returns for each watched queue what the packets of its last storm, or the one that goes on, came to."""
        return self._states[self._index[port]].storms()

    def early_bytes(self, port: str) -> tuple[tuple[int, int], ...]:
        """Returns per queue the bytes (dropped early, marked)."""
        state = self._states[self._index[port]]
        return tuple(zip(state.early_dropped_bytes, state.marked_bytes, strict=True))

    def is_enabled(self, port: str) -> bool:
        """Returns whether the port is not shut down."""
        return self._states[self._index[port]].enabled

    def dscp_received(self, port: str) -> tuple[int, ...]:
        """Returns the IP frames received by DSCP, 64 elements."""
        return tuple(self._states[self._index[port]].dscp_rx)

    def depth_bytes(self, port: str, queue: int) -> int:
        """Returns the depth of an egress queue."""
        return self._states[self._index[port]].transmitter.depth_bytes[queue]

    def tally(self) -> Tally:
        """Returns where every frame is."""
        return Tally(
            received=self._received,
            admitted=self._admitted,
            copies=self._copies,
            sent=self._sent,
            queued=sum(state.transmitter.waiting() for state in self._states),
            refused=dict(self._refused),
            lost=dict(self._lost),
        )

    # Arrival.

    def _arrived(self, index: int, frame: bytes, now_ns: int) -> None:
        state = self._states[index]
        if not state.enabled:
            return
        self._received += 1
        state.rx_packets += 1
        headers = parse(frame)
        if headers is None:
            self._refuse(state, DropReason.MALFORMED)
            return
        if headers.dscp is not None:
            state.dscp_rx[headers.dscp] += 1
        if is_mac_control(frame) or (headers.destination.startswith(_LINK_LOCAL) and headers.destination[5] < 16):
            self._refused[DropReason.CONTROL] += 1
            self._control(state, frame, now_ns)
            return
        if not headers.source[0] & 1 and headers.source not in self._static:
            self._table[headers.source] = index
        if not fits(state.plan, headers, len(frame)):
            self._refuse(state, DropReason.MTU)
            return
        outs = self._ways(index, headers)
        if not outs:
            self._refuse(state, DropReason.NO_WAY)
            return
        self._admit(state, outs, frame, headers, now_ns)

    def _refuse(self, state: PortState, reason: DropReason) -> None:
        self._refused[reason] += 1
        state.rx_discards += 1

    def _ways(self, index: int, headers: Headers) -> Sequence[int]:
        if not headers.is_group:
            known_port = self._table.get(headers.destination)
            if known_port is not None:
                return () if known_port == index or not self._states[known_port].enabled else (known_port,)
        return [state.index for state in self._states if state.index != index and state.enabled]

    def _admit(self, state: PortState, outs: Sequence[int], frame: bytes, headers: Headers, now_ns: int) -> None:
        plan = state.plan
        traffic_class = classify(plan, headers)
        group = plan.tc_to_pg[traffic_class]
        for priority in plan.groups[group].pauses if state.watchdogs else ():
            dog = state.watchdogs.get(priority)
            if dog is not None and dog.drops:
                dog.rx_dropped += 1
                self._refuse(state, DropReason.WATCHDOG)
                return
            if dog is not None and dog.forwards:
                dog.rx_ok += 1
        charge = self.buffer.admit(state.index, group, len(frame))
        if charge is None:
            state.group_dropped[group] += 1
            self._refuse(state, DropReason.BUFFER)
            self._pause_if_due(state, group, now_ns, refused=True)
            return
        self._admitted += 1
        self._copies += len(outs)
        charge.copies = len(outs)
        self._pause_if_due(state, group, now_ns)
        lossless = plan.groups[group].lossless
        for out in outs:
            packet = Packet(frame, headers, traffic_class, charge)
            self._enqueue(self._states[out], packet, lossless=lossless, now_ns=now_ns)

    def _enqueue(self, state: PortState, packet: Packet, *, lossless: bool, now_ns: int) -> None:
        queue = state.plan.tc_to_queue[packet.traffic_class]
        reason = self._refusal(state, queue, packet, lossless=lossless)
        if reason is not None:
            self._lose(state, packet.charge, reason, now_ns)
            return
        transmitter = state.transmitter
        transmitter.push(queue, packet)
        dog = state.dog_of_queue.get(queue)
        if dog is not None and transmitter.held[queue]:
            state.hold(now_ns)
            self._schedule_watchdog(state, dog.plan.queue)
        self._transmit(state, now_ns)

    def _refusal(self, state: PortState, queue: int, packet: Packet, *, lossless: bool) -> DropReason | None:
        """Returns why the packet may not join the queue, counted, or None."""
        plan, size = state.plan, packet.size_bytes
        if not fits(plan, packet.headers, size):
            return DropReason.MTU
        dog = state.dog_of_queue.get(queue)
        if dog is not None and dog.drops:
            dog.tx_dropped += 1
            return DropReason.WATCHDOG
        depth = state.transmitter.depth_bytes[queue]
        curve = plan.curves[queue]
        if curve is not None and curve.kind is AqmKind.DROP and curve.selects(depth, self._draw):
            state.count_early(queue, size)
            return DropReason.EARLY
        tail = plan.tail_drops[queue]
        may_drop = not lossless if tail is None else tail
        if may_drop and depth + size > shifted(self.buffer.free_bytes + size, plan.queue_alpha_log2):
            state.count_dropped(queue, size)
            return DropReason.TAIL
        return None

    def _lose(self, state: PortState, charge: Charge, reason: DropReason, now_ns: int) -> None:
        self._lost[reason] += 1
        state.tx_discards += 1
        self._give_back(charge, now_ns)

    def _give_back(self, charge: Charge, now_ns: int) -> None:
        if self.buffer.release(charge):
            group = charge.group
            self._pause_if_due(self._states[group.port], group.index, now_ns)

    # Departure.

    def _transmit(self, state: PortState, now_ns: int) -> None:
        transmitter = state.transmitter
        if transmitter.busy_until_ns > now_ns:
            self._wake(state, transmitter.busy_until_ns)
            return
        if state.control:
            frame = state.control.pop(0)
            self._on_link(state, frame, now_ns)
            return
        taken = transmitter.take(now_ns)
        if taken is None:
            later = transmitter.shaped_until_ns(now_ns)
            if later is not None:
                self._wake(state, later)
            return
        queue, packet = taken
        frame = self._rewritten(state, queue, packet)
        state.count_sent(queue, packet.size_bytes)
        self._sent += 1
        self._on_link(state, frame, now_ns)
        self._give_back(packet.charge, now_ns)

    def _rewritten(self, state: PortState, queue: int, packet: Packet) -> bytes:
        """Returns the frame as it leaves: marked as the depth that remains wants it, DSCP rewritten."""
        frame, headers, plan = packet.frame, packet.headers, state.plan
        curve = plan.curves[queue]
        if (
            curve is not None
            and curve.kind is not AqmKind.DROP
            and headers.ecn in {ECT0, ECT1}
            and curve.selects(state.transmitter.depth_bytes[queue], self._draw)
        ):
            marked = with_mark(frame, headers)
            if marked is not None:
                state.count_mark(queue, packet.size_bytes)
                frame = marked
        dscp = plan.rewrite[packet.traffic_class]
        if dscp is None or headers.dscp in {None, dscp}:
            return frame
        again = parse(frame)
        return frame if again is None else with_dscp(frame, again, dscp)

    def _on_link(self, state: PortState, frame: bytes, now_ns: int) -> None:
        end_ns = state.transmitter.occupy(len(frame), now_ns)
        if state.control or any(state.transmitter.queues):
            self._wake(state, end_ns)
        name = state.plan.name
        if not state.enabled:
            return
        state.tx_packets += 1
        if self.faults.is_down(name):
            self.faults.cut(name, frame)
            return
        self._actions.append(Send(name, frame, now_ns, end_ns))

    # Pauses.

    def _pause_if_due(self, state: PortState, group: int, now_ns: int, *, refused: bool = False) -> None:
        change = self.buffer.pause_change(state.index, group, refused=refused)
        if change is not None:
            for priority in state.plan.groups[group].pauses:
                self._tell_peer(state, priority, paused=change, now_ns=now_ns)

    def _tell_peer(self, state: PortState, priority: int, *, paused: bool, now_ns: int) -> None:
        # Resumes too: they are PFC frames (that every ASIC counts them is unconfirmed).
        state.pfc_tx[priority] += self._is_up(state)
        if not self._pfc_frames:
            self._actions.append(PausePeer(state.plan.name, priority, paused, now_ns))
            return
        quanta = MAX_QUANTA if paused else 0
        state.control.append(pfc_frame(_MAC + bytes([state.index & 0xFF]), {priority: quanta}))
        if paused:
            refresh = now_ns + pause_ns(MAX_QUANTA, state.plan.rate_bps) // 2
            state.refresh_ns[priority] = refresh
            self._at(refresh, _Timer.REFRESH, state.index, priority)
        self._transmit(state, now_ns)

    def _is_up(self, state: PortState) -> bool:
        return state.enabled and not self.faults.is_down(state.plan.name)

    def _holds_peer(self, state: PortState, priority: int) -> bool:
        return any(
            priority in group.pauses and self.buffer.is_paused(state.index, index)
            for index, group in enumerate(state.plan.groups)
        )

    def _control(self, state: PortState, frame: bytes, now_ns: int) -> None:
        times = read_pfc(frame)
        if times is None:
            return
        for priority, quanta in times.items():
            state.pfc_rx[priority] += 1
            until = now_ns + pause_ns(quanta, state.plan.rate_bps) if quanta else 0
            state.paused_until_ns[priority] = until
            if quanta:
                self._at(until, _Timer.EXPIRY, state.index, priority)
        self._rehold(state, now_ns)

    def _rehold(self, state: PortState, now_ns: int) -> None:
        state.hold(now_ns)
        for queue in state.dog_of_queue:
            self._schedule_watchdog(state, queue)
        self._transmit(state, now_ns)

    def _schedule_watchdog(self, state: PortState, queue: int) -> None:
        due = state.dog_of_queue[queue].due_ns()
        if due is not None:
            self._at(due, _Timer.WATCHDOG, state.index, queue)

    def _watchdog(self, state: PortState, queue: int, now_ns: int) -> None:
        dog = state.dog_of_queue.get(queue)
        if dog is None or not dog.fire(now_ns):
            return
        if dog.drops:
            for packet in state.transmitter.flush(queue):
                dog.tx_dropped += 1
                self._lose(state, packet.charge, DropReason.WATCHDOG, now_ns)
        self._rehold(state, now_ns)

    # Timers.

    def _at(self, time_ns: int, kind: _Timer, port: int, what: int = 0, frame: bytes = b"") -> None:
        self._serial += 1
        heapq.heappush(self._timers, (time_ns, self._serial, kind, port, what, frame))

    def _wake(self, state: PortState, time_ns: int) -> None:
        if state.wake_ns is None or time_ns < state.wake_ns:
            state.wake_ns = time_ns
            self._at(time_ns, _Timer.LINK, state.index)

    def _run_until(self, now_ns: int) -> None:
        while self._timers and self._timers[0][0] <= now_ns:
            time_ns, _, kind, port, what, frame = heapq.heappop(self._timers)
            self._fire(kind, self._states[port], what, frame, time_ns)

    def _fire(self, kind: _Timer, state: PortState, what: int, frame: bytes, now_ns: int) -> None:
        match kind:
            case _Timer.LINK:
                if state.wake_ns == now_ns:
                    state.wake_ns = None
                self._transmit(state, now_ns)
            case _Timer.EXPIRY:
                self._rehold(state, now_ns)
            case _Timer.WATCHDOG:
                self._watchdog(state, what, now_ns)
            case _Timer.REFRESH:
                if state.refresh_ns[what] == now_ns and self._holds_peer(state, what):
                    self._tell_peer(state, what, paused=True, now_ns=now_ns)
            case _Timer.ARRIVAL:
                self._arrived(state.index, frame, now_ns)
            case _Timer.OVERDUE:
                for late in self.faults.overdue(state.plan.name):
                    self._arrived(state.index, late, now_ns)

    def _taken(self) -> list[Action]:
        actions = list(self._actions)
        self._actions.clear()
        return actions
