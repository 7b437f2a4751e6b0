"""A `SwitchCore` in real time between virtual machines: QEMU's `-netdev stream` on unix sockets, one thread.

Each port listens on a socket of its own; a frame is a 4-byte big-endian length and its bytes (QEMU net/stream.c).
Between a guest's socket and the core stands a `NicModel`, so that a pause holds one priority and not the guest. The
other way, a guest that does not read fills its NIC: priorities with PFC are paused at the switch, the rest is lost.

Frames are handed over when their transmission starts, one serialisation early; the rate holds, since the next one
waits for the link. Everything runs in the thread of `run`; others come in through `ask`.
"""

import logging
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from fabric.clock import Clock
from fabric.errors import FabricError
from fabric.lab.wire.actions import Action, Send
from fabric.lab.wire.core import SwitchCore
from fabric.lab.wire.nic import Departure, NicModel, NicPlan

__all__ = ("GuestSide", "Plug")

T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)
_LENGTH_BYTES: Final = 4
_FRAME_MAX_BYTES: Final = 68 * 1024  # QEMU include/net/net.h NET_BUFSIZE: 4096 + 65536
_READ_BYTES: Final = 1 << 16
_IDLE_S: Final = 1.0
_NEVER_NS: Final = 1 << 62
_MAX_READS: Final = 4  # of one guest in a row, before the others and the timers get their turn

Tap = Callable[[str, bytes, int], None]


@dataclass(frozen=True, slots=True)
class GuestSide:
    """How a guest's NIC is and what it does when the guest does not read.

    Attributes:
        nic: the sending side.
        pauses: PFC priorities that the NIC pauses when its receive buffer is full.
        xoff_bytes: unread bytes at which it pauses; it resumes at half of them.
        limit_bytes: unread bytes beyond which frames are lost.
    """

    nic: NicPlan
    pauses: frozenset[int] = frozenset()
    xoff_bytes: int = 1 << 20
    limit_bytes: int = 4 << 20


class _Guest:
    """One port's socket, whether or not a guest is there."""

    def __init__(self, port: str, listener: socket.socket, side: GuestSide) -> None:
        self.port = port
        self.listener = listener
        self.side = side
        self.nic = NicModel(side.nic)
        self.connection: socket.socket | None = None
        self.unparsed = bytearray()
        self.unread = bytearray()
        self.interest = 0
        self.pausing = False
        self.lost_frames = 0
        self.in_flight: deque[Departure] = deque()


class Plug:
    """The sockets of one switch.

    Args:
        core: the switch.
        folder: where the sockets are made, one `<port>.sock` each; a path of a unix socket is at most 107 bytes.
        guests: by port.
        clock: monotonic time.
        tap: called with (port, frame, now in ns) for every frame that crosses a port, to capture it.
    """

    def __init__(
        self,
        core: SwitchCore,
        folder: Path,
        guests: Mapping[str, GuestSide],
        clock: Clock,
        *,
        tap: Tap | None = None,
    ) -> None:
        self._core = core
        self._clock = clock
        self._now_ns = clock.now_ns()
        self._tap = tap
        self._asked: deque[Callable[[], None]] = deque()
        self._stopped = threading.Event()
        self._selector = (
            selectors.SelectSelector()
        )  # epoll and poll wait whole milliseconds, a frame takes microseconds
        self._waker, self._wake_end = socket.socketpair()
        for one in (self._waker, self._wake_end):
            one.setblocking(False)
        self._selector.register(self._wake_end, selectors.EVENT_READ, None)
        self._guests: dict[str, _Guest] = {}
        try:
            for port, side in guests.items():
                self._guests[port] = self._listen(port, folder, side)
        except OSError:
            self._close()
            raise

    def path(self, port: str) -> Path:
        """Returns the socket that QEMU connects to: `-netdev stream,server=off,addr.type=unix,addr.path=…`."""
        return Path(self._guests[port].listener.getsockname())

    def run(self) -> None:
        """Forwards until `stop`; then closes and removes the sockets."""
        try:
            while not self._stopped.is_set():
                self._turn()
        finally:
            self._close()

    def stop(self) -> None:
        """Makes `run` return; from any thread."""
        self._stopped.set()
        self._wake()

    def ask(self, question: Callable[[SwitchCore, int], tuple[T, Sequence[Action]]], timeout_s: float = 5.0) -> T:
        """Returns what `question(core, now_ns)` answers in the forwarding thread; its actions are obeyed there.

        A port or configuration that does not exist fails here, not in the forwarding thread.

        Raises:
            TimeoutError: the thread did not come to it in time.
        """
        future: Future[T] = Future()

        def answer() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found, actions = question(self._core, self._now_ns)
            except (FabricError, LookupError, ValueError) as error:  # a wrong name or configuration is the asker's
                future.set_exception(error)
                return
            self._obey(actions)
            future.set_result(found)

        self._asked.append(answer)
        self._wake()
        return future.result(timeout_s)

    def lost_frames(self) -> dict[str, int]:
        """Returns by port the frames that a guest's full NIC lost."""
        return {port: guest.lost_frames for port, guest in self._guests.items()}

    # One turn: sockets, questions, timers.

    def _turn(self) -> None:
        ready = self._selector.select(self._patience_s())
        self._now_ns = self._clock.now_ns()  # one time a turn: what the core and the NICs see never goes back
        self._run_timers()
        for key, events in ready:
            if key.data is None:
                self._drain_wakes()
            elif key.fileobj is key.data.listener:
                self._accept(key.data)
            elif key.fileobj is key.data.connection:
                self._serve(key.data, events)
        while self._asked:
            self._asked.popleft()()
        for guest in self._guests.values():
            self._watch(guest)

    def _patience_s(self) -> float:
        due = [self._core.next_timer_ns(), *(_due_ns(guest) for guest in self._guests.values())]
        first = min((one for one in due if one is not None), default=None)
        if first is None:
            return _IDLE_S
        return min(_IDLE_S, max(0, first - self._clock.now_ns()) / 1e9)

    def _run_timers(self) -> None:
        """Catches up with the clock: links and switch in one order of time, so that a pause is never overtaken."""
        while True:
            due = [(at, guest.port) for guest in self._guests.values() if (at := _due_ns(guest)) is not None]
            link_ns, port = min(due, default=(_NEVER_NS, ""))
            core_ns = self._core.next_timer_ns()
            if core_ns is not None and core_ns <= min(link_ns, self._now_ns):
                self._obey(self._core.advance(core_ns))
            elif link_ns <= self._now_ns:
                self._step(self._guests[port], link_ns)
            else:
                return

    def _step(self, guest: _Guest, at_ns: int) -> None:
        guest.in_flight.extend(guest.nic.advance(at_ns))
        while guest.in_flight and guest.in_flight[0].end_ns <= at_ns:
            one = guest.in_flight.popleft()
            if self._tap is not None:
                self._tap(guest.port, one.frame, one.end_ns)
            self._obey(self._core.receive(guest.port, one.frame, one.end_ns))

    def _obey(self, actions: Sequence[Action]) -> None:
        for one in actions:
            guest = self._guests.get(one.port)
            if guest is None:
                continue
            if isinstance(one, Send):
                self._hand_over(guest, one)
            else:
                guest.in_flight.extend(guest.nic.set_pause(one.priority, paused=one.paused, now_ns=one.at_ns))

    # A guest's socket.

    def _listen(self, port: str, folder: Path, side: GuestSide) -> _Guest:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        guest = _Guest(port, listener, side)
        try:
            listener.bind(str(folder / f"{port}.sock"))
            listener.listen(1)
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, guest)
        except OSError:
            listener.close()
            raise
        return guest

    def _accept(self, guest: _Guest) -> None:
        try:
            connection, _ = guest.listener.accept()
        except BlockingIOError:
            return
        self._hang_up(guest)  # a guest that comes again: the old connection is dead
        connection.setblocking(False)
        guest.connection = connection
        guest.interest = selectors.EVENT_READ
        self._selector.register(connection, selectors.EVENT_READ, guest)

    def _serve(self, guest: _Guest, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                self._flush(guest)
            if events & selectors.EVENT_READ:
                self._read(guest)
        except ConnectionError as error:
            _LOG.info("%s: the guest is gone: %s", guest.port, error)
            self._hang_up(guest)

    def _read(self, guest: _Guest) -> None:
        for _ in range(_MAX_READS):
            if guest.connection is None or not guest.nic.reads_guest:
                return
            try:
                data = guest.connection.recv(_READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._hang_up(guest)
                return
            guest.unparsed += data
            self._take_frames(guest)

    def _take_frames(self, guest: _Guest) -> None:
        """Gives whole frames to the NIC until it has no room; the rest stays unparsed."""
        data, at = guest.unparsed, 0
        while len(data) - at >= _LENGTH_BYTES and guest.nic.reads_guest:
            size = int.from_bytes(data[at : at + _LENGTH_BYTES], "big")
            if not 0 < size <= _FRAME_MAX_BYTES:
                raise ConnectionError(f"a frame of {size} B: not QEMU's stream format")
            if len(data) - at < _LENGTH_BYTES + size:
                break
            frame = bytes(data[at + _LENGTH_BYTES : at + _LENGTH_BYTES + size])
            at += _LENGTH_BYTES + size
            guest.in_flight.extend(guest.nic.offer(frame, self._now_ns))
        del data[:at]

    def _hand_over(self, guest: _Guest, sent: Send) -> None:
        if guest.connection is None:
            return
        if len(guest.unread) > guest.side.limit_bytes:
            guest.lost_frames += 1
            return
        if self._tap is not None:
            self._tap(guest.port, sent.frame, sent.end_ns)
        guest.unread += len(sent.frame).to_bytes(_LENGTH_BYTES, "big") + sent.frame
        self._pause_switch(guest, sent.start_ns)  # at once: a turn may come late, and the limit is a hard one

    def _flush(self, guest: _Guest) -> None:
        if guest.connection is None or not guest.unread:
            return
        try:
            sent = guest.connection.send(guest.unread)
        except BlockingIOError:
            return
        del guest.unread[:sent]

    def _watch(self, guest: _Guest) -> None:
        """Sends what can be sent, takes what the NIC has room for again, and asks for what is still missing."""
        if guest.connection is None:
            return
        try:
            self._flush(guest)
            if guest.unparsed and guest.nic.reads_guest:
                self._take_frames(guest)
        except ConnectionError as error:
            _LOG.info("%s: the guest is gone: %s", guest.port, error)
            self._hang_up(guest)
            return
        self._pause_switch(guest, self._now_ns)
        wanted = (selectors.EVENT_READ if guest.nic.reads_guest else 0) | (selectors.EVENT_WRITE if guest.unread else 0)
        if wanted == guest.interest:
            return
        if guest.interest == 0:
            self._selector.register(guest.connection, wanted, guest)
        elif wanted == 0:
            self._selector.unregister(guest.connection)
        else:
            self._selector.modify(guest.connection, wanted, guest)
        guest.interest = wanted

    def _pause_switch(self, guest: _Guest, now_ns: int) -> None:
        waiting = len(guest.unread)
        pausing = waiting > (guest.side.xoff_bytes // 2 if guest.pausing else guest.side.xoff_bytes)
        if pausing == guest.pausing:
            return
        guest.pausing = pausing
        for priority in sorted(guest.side.pauses):
            self._obey(self._core.peer_pauses(guest.port, priority, paused=pausing, now_ns=now_ns))

    def _hang_up(self, guest: _Guest) -> None:
        if guest.connection is None:
            return
        if guest.interest:
            self._selector.unregister(guest.connection)
        guest.connection.close()
        guest.connection, guest.interest = None, 0
        guest.unparsed.clear()
        guest.unread.clear()
        self._pause_switch(guest, self._now_ns)

    # Threads and the end.

    def _wake(self) -> None:
        try:
            self._waker.send(b"\0")
        except OSError:
            return  # it is awake already, or closed

    def _drain_wakes(self) -> None:
        try:
            while self._wake_end.recv(4096):
                pass
        except BlockingIOError:
            return

    def _close(self) -> None:
        for guest in self._guests.values():
            self._hang_up(guest)
            path = Path(guest.listener.getsockname())
            guest.listener.close()
            path.unlink(missing_ok=True)
        self._selector.close()
        self._waker.close()
        self._wake_end.close()


def _due_ns(guest: _Guest) -> int | None:
    """Returns when something happens on the guest's link: a frame has arrived, or the next may start."""
    arrives = guest.in_flight[0].end_ns if guest.in_flight else None
    starts = guest.nic.next_ns()
    return min((one for one in (arrives, starts) if one is not None), default=None)
