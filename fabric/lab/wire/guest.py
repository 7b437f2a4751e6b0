"""One port's end towards a virtual machine: QEMU's stream of frames, and the model of the NIC that sends them.

A frame is a 4-byte big-endian length and its bytes (QEMU net/stream.c). There may be no guest: frames to it go nowhere.
A guest that comes again (rebooted by its owner, restored from a saved state) finds nothing of the one before: half a
frame, unread frames and what waited in its NIC are lost, and the switch is no longer paused on its behalf. What the
switch holds stays held, until the switch itself resumes it. Knows no switch and no clock.
"""

import socket
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric.lab.wire.nic import Departure, NicModel, NicPlan

__all__ = ("NEVER_NS", "Endpoint", "GuestPort", "GuestSide")

Endpoint = tuple[str, str]  # switch, port
NEVER_NS: Final = 1 << 62
_LENGTH_BYTES: Final = 4
_FRAME_MAX_BYTES: Final = 68 * 1024  # QEMU include/net/net.h NET_BUFSIZE: 4096 + 65536
_READ_BYTES: Final = 1 << 18
_MAX_READS: Final = 4  # of one guest in a row, before the others and the timers get their turn


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


class GuestPort:
    """One port's socket, whether or not a guest is there.

    Args:
        endpoint: switch and port.
        path: where the socket is made.
        side: the NIC.

    Raises:
        OSError: the socket cannot be made.
    """

    def __init__(self, endpoint: Endpoint, path: Path, side: GuestSide) -> None:
        self.endpoint = endpoint
        self.path = path
        self.side = side
        self.nic = NicModel(side.nic)
        self.connection: socket.socket | None = None
        self.lost_frames = 0
        self.pausing = False
        self.armed_ns = NEVER_NS  # when the wiring will look at `due_ns` again
        self.interest = 0  # what the wiring waits for at the connection
        self.in_flight: deque[Departure] = deque()
        self._received = bytearray(_READ_BYTES)  # kept: a new one for each read would cost its page faults
        self._unparsed = bytearray()
        self._unread = bytearray()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.listener.bind(str(path))
            self.listener.listen(1)
            self.listener.setblocking(False)
        except OSError:
            self.listener.close()
            raise

    @property
    def has_unread(self) -> bool:
        """Returns whether the guest has frames to read."""
        return bool(self._unread)

    def accept(self) -> socket.socket | None:
        """Returns the connection of a guest that came, None when it is gone again; `hang_up` the one before first."""
        try:
            connection, _ = self.listener.accept()
        except (BlockingIOError, ConnectionError):
            return None
        connection.setblocking(False)
        self.connection = connection
        return connection

    def read(self, now_ns: int) -> None:
        """Takes what the guest has sent, as far as its NIC has room.

        Raises:
            ConnectionError: the guest is gone, or does not speak QEMU's format.
        """
        for _ in range(_MAX_READS):
            if self.connection is None or not self.nic.reads_guest:
                return
            try:
                size = self.connection.recv_into(self._received)
            except BlockingIOError:
                return
            if not size:
                raise ConnectionError("end of stream")
            with memoryview(self._received) as received:
                self._unparsed += received[:size]
            self.take_frames(now_ns)
            if size < _READ_BYTES:
                return

    def take_frames(self, now_ns: int) -> None:
        """Gives whole frames to the NIC until it has no room; the rest stays unparsed.

        Raises:
            ConnectionError: the guest does not speak QEMU's format.
        """
        at, end = 0, len(self._unparsed)
        nic, in_flight = self.nic, self.in_flight
        with memoryview(self._unparsed) as data:
            while end - at >= _LENGTH_BYTES and nic.reads_guest:
                start = at + _LENGTH_BYTES
                size = int.from_bytes(data[at:start], "big")
                if not 0 < size <= _FRAME_MAX_BYTES:
                    raise ConnectionError(f"a frame of {size} B: not QEMU's stream format")
                if end - start < size:
                    break
                at = start + size
                in_flight.extend(nic.offer(bytes(data[start:at]), now_ns))
        del self._unparsed[:at]

    def due_ns(self) -> int:
        """Returns when something happens on the link: a frame has arrived, or the next may start; else NEVER_NS."""
        arrives = self.in_flight[0].end_ns if self.in_flight else NEVER_NS
        starts = self.nic.next_ns()
        return arrives if starts is None or arrives < starts else starts

    def arrived(self, at_ns: int) -> list[Departure]:
        """Returns and removes the frames that have wholly crossed the link by then."""
        in_flight = self.in_flight
        in_flight.extend(self.nic.advance(at_ns))
        done = []
        while in_flight and in_flight[0].end_ns <= at_ns:
            done.append(in_flight.popleft())
        return done

    def hold(self, priority: int, *, paused: bool, now_ns: int) -> None:
        """Obeys a pause or resume of the switch."""
        self.in_flight.extend(self.nic.set_pause(priority, paused=paused, now_ns=now_ns))

    def hand_over(self, frame: bytes) -> bool:
        """Returns whether the guest will get the frame; it does not when it is absent or its NIC full."""
        if self.connection is None:
            return False
        if len(self._unread) > self.side.limit_bytes:
            self.lost_frames += 1
            return False
        self._unread += len(frame).to_bytes(_LENGTH_BYTES, "big")
        self._unread += frame
        return True

    def flush(self) -> None:
        """Sends what the guest reads now.

        Raises:
            ConnectionError: the guest is gone.
        """
        if self.connection is None or not self._unread:
            return
        try:
            sent = self.connection.send(self._unread)
        except BlockingIOError:
            return
        del self._unread[:sent]

    def pause_change(self) -> bool | None:
        """Returns True when the NIC now pauses the switch, False when it resumes it, None when nothing changes."""
        limit = self.side.xoff_bytes // 2 if self.pausing else self.side.xoff_bytes
        pausing = len(self._unread) > limit
        if pausing == self.pausing:
            return None
        self.pausing = pausing
        return pausing

    def hang_up(self) -> None:
        """Forgets the guest and all that was on its way to or from it, but for what is on the link."""
        if self.connection is None:
            return
        self.connection.close()
        self.connection, self.interest = None, 0
        self._unparsed.clear()
        self._unread.clear()
        self.nic.reset()

    def close(self) -> None:
        """Hangs up and removes the socket."""
        self.hang_up()
        self.listener.close()
        self.path.unlink(missing_ok=True)
