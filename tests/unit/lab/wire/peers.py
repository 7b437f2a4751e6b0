"""Peers of our own at the sockets of a wiring, in place of QEMU."""

import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fabric.lab.wire import Endpoint, GuestSide, NicPlan, SwitchCore, Wiring
from fabric.state import PortCounters
from tests.unit.lab.wire.wiring import GIGABIT, LOSSLESS

SIDE = GuestSide(NicPlan(GIGABIT))
LEAF = "leaf1"
P0, P1 = (LEAF, "p0"), (LEAF, "p1")
Captured = list[tuple[Endpoint, bytes, int]]


class SystemClock:
    def now_ns(self) -> int:
        return time.monotonic_ns()

    def unix_s(self) -> float:
        return time.time()

    def sleep_s(self, seconds: float) -> None:
        raise AssertionError(f"the wiring never sleeps, not even {seconds} s")


class Peer:
    """What QEMU is to the switch: one end of a stream of frames."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(10)
        self.socket.connect(str(path))

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))

    def receive(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def hears_nothing_for(self, seconds: float) -> bool:
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(10)
        return False

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True  # closed before it had read all

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, "the switch hung up"
            data += more
        return data


@contextmanager
def running(
    cores: Mapping[str, SwitchCore],
    guests: Mapping[Endpoint, GuestSide],
    cables: Sequence[tuple[Endpoint, Endpoint]] = (),
    *,
    tap: Callable[[Endpoint, bytes, int], None] | None = None,
) -> Iterator[Wiring]:
    """Yields a wiring that forwards; afterwards its thread has ended and its sockets are gone."""
    with tempfile.TemporaryDirectory(prefix="wire-") as folder:
        wiring = Wiring(cores, Path(folder), guests, cables, SystemClock(), tap=tap)
        thread = threading.Thread(target=wiring.run)
        thread.start()
        try:
            yield wiring
        finally:
            wiring.stop()
            thread.join(10)
            assert not thread.is_alive()
            assert list(Path(folder).iterdir()) == []


@contextmanager
def wired(core: SwitchCore, side: GuestSide = SIDE) -> Iterator[tuple[Wiring, Captured]]:
    """Yields one switch with room for a guest at p0 and one at p1, and every frame that crosses a port."""
    captured: Captured = []
    with running(
        {LEAF: core}, {P0: side, P1: side}, tap=lambda end, frame, now: captured.append((end, frame, now))
    ) as wiring:
        yield wiring, captured


@contextmanager
def peers(wiring: Wiring, *ends: Endpoint) -> Iterator[tuple[Peer, Peer]]:
    one, other = (Peer(wiring.path(end)) for end in ends or (P0, P1))
    try:
        yield one, other
    finally:
        one.close()
        other.close()


def counters(wiring: Wiring, port: str, switch: str = LEAF) -> PortCounters:
    return wiring.ask(switch, lambda core, _: (core.counters(port), ()))


def pause(wiring: Wiring, *, paused: bool, port: str = "p1") -> None:
    wiring.ask(LEAF, lambda core, now: (None, core.peer_pauses(port, LOSSLESS, paused=paused, now_ns=now)))
