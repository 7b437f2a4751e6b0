"""Switches in real time, cabled to each other and to virtual machines: all in one thread.

Theory of operation. What is to happen stands on one agenda by its time: a switch's next timer, a guest's next frame on
its link, a frame or pause on its way from one switch to the next. A turn waits for sockets or for the first of these,
reads the clock once, does in order of time all that is due, then serves the sockets. So no pause is overtaken, and
rates hold when a turn comes late.

| from | what | to |
|---|---|---|
| guest's socket | frame | its NIC, then the switch once the frame has left the link |
| switch | frame | guest's socket at once (one serialisation early), or the next switch at its end |
| switch | pause | the guest's NIC at once, or the next switch |
| guest that does not read | pause, or loss where its NIC pauses nothing | the switch |

Frames follow the switches' address tables; there is no spanning tree, so cables that form a loop are refused. Other
threads come in through `ask` and the methods that say so.
"""

import heapq
import logging
import select
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

from fabric.clock import Clock
from fabric.errors import FabricError
from fabric.lab.wire.actions import Action, Send
from fabric.lab.wire.cablefault import ActiveFault, CableFault, CableFaults
from fabric.lab.wire.capture import Captures
from fabric.lab.wire.core import SwitchCore
from fabric.lab.wire.guest import NEVER_NS, Endpoint, GuestPort, GuestSide
from fabric.lab.wire.questions import Questions
from fabric.lab.wire.topology import check_topology

__all__ = ("Wiring",)

T = TypeVar("T")
Tap = Callable[[Endpoint, bytes, int], None]
_LOG: Final = logging.getLogger(__name__)
_IDLE_S: Final = 1.0
_SECOND_NS: Final = 1_000_000_000
_ASK_S: Final = 5.0


class _Switch:
    """A core and what stands at its ports."""

    def __init__(self, name: str, core: SwitchCore) -> None:
        self.name = name
        self.core = core
        self.guests: dict[str, GuestPort] = {}
        self.cables: dict[str, _Far] = {}
        self.armed_ns = NEVER_NS


class _Far:
    """The other end of a cable between two switches."""

    __slots__ = ("port", "switch")

    def __init__(self, switch: _Switch, port: str) -> None:
        self.switch = switch
        self.port = port


class _OnCable:
    """A frame or pause between two switches."""

    __slots__ = ("far", "frame", "paused", "priority")

    def __init__(self, far: _Far, frame: bytes | None, priority: int = 0, *, paused: bool = False) -> None:
        self.far = far
        self.frame = frame
        self.priority = priority
        self.paused = paused


_Due = _Switch | GuestPort | _OnCable


class Wiring:
    """Switches, cables and the sockets of guests.

    Args:
        cores: the switches by name.
        folder: where the guests' sockets are made; a path of a unix socket is at most 107 bytes.
        guests: by switch and port; no guest needs to come.
        cables: between switch ports.
        clock: monotonic time.
        tap: called in the forwarding thread for every frame that crosses a port, with the time in ns.

    Raises:
        FabricError: a port does not exist or is used twice, or the cables form a loop.
        OSError: a socket cannot be made.
    """

    def __init__(
        self,
        cores: Mapping[str, SwitchCore],
        folder: Path,
        guests: Mapping[Endpoint, GuestSide],
        cables: Sequence[tuple[Endpoint, Endpoint]],
        clock: Clock,
        *,
        tap: Tap | None = None,
    ) -> None:
        check_topology(cores, guests, cables)
        self._clock = clock
        self._now_ns = clock.now_ns()
        self._tap = tap
        self._captures = Captures()
        self._faults = CableFaults(cores, cables)
        self._agenda: list[tuple[int, int, int, _Due]] = []
        self._serial = 0
        self._touched: set[GuestPort] = set()
        self._questions = Questions()
        self._stopped = threading.Event()
        self._switches = {name: _Switch(name, core) for name, core in cores.items()}
        for one, other in (*cables, *((other, one) for one, other in cables)):
            self._switches[one[0]].cables[one[1]] = _Far(self._switches[other[0]], other[1])
        self._guests: dict[Endpoint, GuestPort] = {}
        self._by_fd: dict[int, GuestPort | None] = {}
        self._epoll = select.epoll()
        self._listen(self._questions.end, None)
        try:
            for endpoint, side in guests.items():
                self._add_guest(endpoint, folder, side)
        except OSError:
            self._close()
            raise

    # From any thread.

    def path(self, endpoint: Endpoint) -> Path:
        """Returns the socket that QEMU connects to: `-netdev stream,server=off,addr.type=unix,addr.path=…`."""
        return self._guests[endpoint].path

    def ports(self, switch: str) -> tuple[str, ...]:
        """Returns the ports of a switch."""
        return self._switches[switch].core.ports

    def run(self) -> None:
        """Forwards until `stop`; then closes and removes the sockets."""
        try:
            for switch in self._switches.values():
                self._arm_switch(switch)
            while not self._stopped.is_set():
                self._turn()
        finally:
            self._close()

    def stop(self) -> None:
        """Makes `run` return."""
        self._stopped.set()
        self._questions.wake()

    def ask(
        self,
        switch: str,
        question: Callable[[SwitchCore, int], tuple[T, Sequence[Action]]],
        timeout_s: float = _ASK_S,
    ) -> T:
        """Returns what `question(core, now_ns)` answers in the forwarding thread; its actions are obeyed there.

        A port or configuration that does not exist fails here, not in the forwarding thread.

        Raises:
            TimeoutError: the thread did not come to it in time, and will not; or forwarding has ended.
        """

        def answer() -> T:
            one = self._switches[switch]
            found, actions = question(one.core, self._now_ns)
            self._perform(one, actions)
            return found

        return self._questions.ask(answer, timeout_s)

    def lost_frames(self) -> dict[Endpoint, int]:
        """Returns by port the frames that a guest's full NIC lost."""
        return {endpoint: guest.lost_frames for endpoint, guest in self._guests.items()}

    def connected(self) -> frozenset[Endpoint]:
        """Returns the ports at which a guest is."""
        return frozenset(endpoint for endpoint, guest in self._guests.items() if guest.connection is not None)

    def add_fault(self, fault: CableFault, timeout_s: float = _ASK_S) -> int:
        """Makes a cable faulty from now on and returns the number by which the fault can be removed.

        Raises:
            FabricError: there is no such port, or the fault cannot be.
            TimeoutError: as `ask`.
        """

        def add() -> int:
            number, actions = self._faults.add(fault, self._now_ns)
            self._perform(self._switches[fault.switch], actions)
            return number

        return self._questions.ask(add, timeout_s)

    def remove_fault(self, number: int, timeout_s: float = _ASK_S) -> None:
        """Makes the cable whole again; frames that a fault holds back still come.

        Raises:
            FabricError: there is no such fault.
            TimeoutError: as `ask`.
        """

        def remove() -> None:
            fault, actions = self._faults.remove(number, self._now_ns)
            self._perform(self._switches[fault.switch], actions)

        self._questions.ask(remove, timeout_s)

    def faults(self, timeout_s: float = _ASK_S) -> tuple[ActiveFault, ...]:
        """Returns the faults in the order they were added.

        Raises:
            TimeoutError: as `ask`.
        """
        return self._questions.ask(lambda: self._faults.active(self._now_ns), timeout_s)

    def start_capture(self, endpoint: Endpoint, path: Path, timeout_s: float = _ASK_S) -> None:
        """Records what crosses a port from now on, both directions, in a pcap file that can be read meanwhile.

        Raises:
            FabricError: there is no such port, it is captured already, or the file cannot be made.
            TimeoutError: as `ask`.
        """

        def start() -> None:
            if endpoint[0] not in self._switches or endpoint[1] not in self._switches[endpoint[0]].core.ports:
                raise FabricError("the wiring has no such port", where="/".join(endpoint))
            start_unix_ns = round(self._clock.unix_s() * _SECOND_NS) - self._clock.now_ns()
            self._captures.start(endpoint, path, start_unix_ns=start_unix_ns)

        self._questions.ask(start, timeout_s)

    def stop_capture(self, endpoint: Endpoint, timeout_s: float = _ASK_S) -> int:
        """Ends a capture and returns how many frames it has.

        Raises:
            FabricError: the port is not captured.
            TimeoutError: as `ask`.
        """
        return self._questions.ask(lambda: self._captures.stop(endpoint), timeout_s)

    def captures(self, timeout_s: float = _ASK_S) -> dict[Endpoint, tuple[Path, int]]:
        """Returns by port the file of its capture and how many frames it has.

        Raises:
            TimeoutError: as `ask`.
        """
        return self._questions.ask(self._captures.running, timeout_s)

    # One turn: what is due, sockets, questions.

    def _turn(self) -> None:
        patience_s = self._patience_s()
        if patience_s:  # epoll itself waits whole milliseconds, a frame takes microseconds
            select.select([self._epoll.fileno()], (), (), patience_s)
        ready = self._epoll.poll(0)
        self._now_ns = self._clock.now_ns()  # one time a turn: what the switches and NICs see never goes back
        self._catch_up()
        for fd, events in ready:
            guest = self._by_fd.get(fd)
            if guest is None:
                self._questions.drain()
            elif fd == guest.listener.fileno():
                self._accept(guest)
            elif guest.connection is not None and fd == guest.connection.fileno():
                self._serve(guest, events)
        self._questions.answer()
        touched, self._touched = self._touched, set()
        for guest in touched:
            self._settle(guest)

    def _patience_s(self) -> float:
        if self._touched:
            return 0
        if not self._agenda:
            return _IDLE_S
        return min(_IDLE_S, max(0, self._agenda[0][0] - self._clock.now_ns()) / _SECOND_NS)

    def _catch_up(self) -> None:
        agenda, now_ns = self._agenda, self._now_ns
        while agenda and agenda[0][0] <= now_ns:
            at_ns, _, _, due = heapq.heappop(agenda)
            if isinstance(due, GuestPort):
                if due.armed_ns == at_ns:
                    due.armed_ns = NEVER_NS
                    self._step(due, at_ns)
            elif isinstance(due, _Switch):
                if due.armed_ns == at_ns:
                    due.armed_ns = NEVER_NS
                    self._perform(due, due.core.advance(at_ns))
            else:
                self._come_out(due, at_ns)

    def _step(self, guest: GuestPort, at_ns: int) -> None:
        frames = guest.arrived(at_ns)
        if frames:
            switch, port = self._switches[guest.endpoint[0]], guest.endpoint[1]
            watched = self._tap is not None or self._captures
            for one in frames:
                if watched:
                    self._watch(guest.endpoint, one.frame, one.end_ns)
                self._obey(switch, switch.core.receive(port, one.frame, one.end_ns))
            self._arm_switch(switch)
        self._touched.add(guest)
        self._arm_guest(guest)

    def _come_out(self, item: _OnCable, at_ns: int) -> None:
        switch, port = item.far.switch, item.far.port
        if item.frame is None:
            actions = switch.core.peer_pauses(port, item.priority, paused=item.paused, now_ns=at_ns)
        else:
            self._watch((switch.name, port), item.frame, at_ns)
            actions = switch.core.receive(port, item.frame, at_ns)
        self._perform(switch, actions)

    def _perform(self, switch: _Switch, actions: Sequence[Action]) -> None:
        self._obey(switch, actions)
        self._arm_switch(switch)

    def _obey(self, switch: _Switch, actions: Sequence[Action]) -> None:
        for one in actions:
            guest = switch.guests.get(one.port)
            if guest is not None:
                if isinstance(one, Send):
                    self._hand_over(guest, one)
                else:
                    guest.hold(one.priority, paused=one.paused, now_ns=one.at_ns)
                    self._arm_guest(guest)
                    self._touched.add(guest)
                continue
            far = switch.cables.get(one.port)
            if far is None:
                continue
            if isinstance(one, Send):
                self._watch((switch.name, one.port), one.frame, one.end_ns)
                self._at(one.end_ns, 2, _OnCable(far, one.frame))
            else:
                self._at(one.at_ns, 1, _OnCable(far, None, one.priority, paused=one.paused))

    def _watch(self, endpoint: Endpoint, frame: bytes, at_ns: int) -> None:
        if self._tap is not None:
            self._tap(endpoint, frame, at_ns)
        if self._captures:
            self._captures.write(endpoint, frame, at_ns)

    # The agenda. At one time a switch's own timers come first, then pauses, then frames.

    def _at(self, at_ns: int, rank: int, due: _Due) -> None:
        self._serial += 1
        heapq.heappush(self._agenda, (at_ns, rank, self._serial, due))

    def _arm_switch(self, switch: _Switch) -> None:
        at_ns = switch.core.next_timer_ns()
        if at_ns is not None and at_ns < switch.armed_ns:
            switch.armed_ns = at_ns
            self._at(at_ns, 0, switch)

    def _arm_guest(self, guest: GuestPort) -> None:
        at_ns = guest.due_ns()
        if at_ns < guest.armed_ns:
            guest.armed_ns = at_ns
            self._at(at_ns, 2, guest)

    # A guest's socket.

    def _add_guest(self, endpoint: Endpoint, folder: Path, side: GuestSide) -> None:
        name = ":".join(quote(part, safe="") for part in endpoint)
        guest = GuestPort(endpoint, folder / f"{name}.sock", side)
        self._guests[endpoint] = guest
        self._switches[endpoint[0]].guests[endpoint[1]] = guest
        self._listen(guest.listener, guest)

    def _listen(self, end: socket.socket, guest: GuestPort | None) -> None:
        self._by_fd[end.fileno()] = guest
        self._epoll.register(end.fileno(), select.EPOLLIN)

    def _accept(self, guest: GuestPort) -> None:
        self._hang_up(guest)  # a guest that comes again: the old connection is dead
        connection = guest.accept()
        if connection is not None:
            self._by_fd[connection.fileno()] = guest
            self._touched.add(guest)

    def _serve(self, guest: GuestPort, events: int) -> None:
        self._touched.add(guest)
        try:
            if events & select.EPOLLOUT:
                guest.flush()
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                guest.read(self._now_ns)
        except ConnectionError as error:
            self._lose(guest, error)
        self._arm_guest(guest)

    def _settle(self, guest: GuestPort) -> None:
        """Sends what can be sent, takes what the NIC has room for again, and waits for what is still missing."""
        if guest.connection is None:
            return
        try:
            guest.flush()
            guest.take_frames(self._now_ns)
        except ConnectionError as error:
            self._lose(guest, error)
            return
        self._arm_guest(guest)
        self._tell_pause(guest, self._now_ns)
        wanted = (select.EPOLLIN if guest.nic.reads_guest else 0) | (select.EPOLLOUT if guest.has_unread else 0)
        if wanted != guest.interest:
            self._wait_for(guest, guest.connection.fileno(), wanted)

    def _wait_for(self, guest: GuestPort, fd: int, wanted: int) -> None:
        """A connection that nothing is wanted of is not watched: epoll would tell its hang-up again and again."""
        if guest.interest == 0:
            self._epoll.register(fd, wanted)
        elif wanted == 0:
            self._epoll.unregister(fd)
        else:
            self._epoll.modify(fd, wanted)
        guest.interest = wanted

    def _hand_over(self, guest: GuestPort, sent: Send) -> None:
        if not guest.hand_over(sent.frame):
            return
        if self._tap is not None or self._captures:
            self._watch(guest.endpoint, sent.frame, sent.end_ns)
        self._touched.add(guest)
        self._tell_pause(guest, sent.start_ns)  # at once: a turn may come late, and the limit is a hard one

    def _tell_pause(self, guest: GuestPort, now_ns: int) -> None:
        pausing = guest.pause_change()
        if pausing is None:
            return
        switch = self._switches[guest.endpoint[0]]
        for priority in sorted(guest.side.pauses):
            self._obey(switch, switch.core.peer_pauses(guest.endpoint[1], priority, paused=pausing, now_ns=now_ns))
        self._arm_switch(switch)

    def _lose(self, guest: GuestPort, error: ConnectionError) -> None:
        _LOG.info("%s %s: the guest is gone: %s", *guest.endpoint, error)
        self._hang_up(guest)

    def _hang_up(self, guest: GuestPort) -> None:
        if guest.connection is None:
            return
        fd = guest.connection.fileno()
        if guest.interest:
            self._epoll.unregister(fd)
        self._by_fd.pop(fd, None)
        guest.hang_up()
        self._tell_pause(guest, self._now_ns)

    def _close(self) -> None:
        self._questions.close()
        self._captures.close()
        for guest in self._guests.values():
            guest.close()
        self._epoll.close()
