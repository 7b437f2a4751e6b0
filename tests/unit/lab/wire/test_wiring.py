"""Switches in real time with peers of our own at their sockets: no QEMU."""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabric.lab.wire import GuestSide, NicPlan, SwitchCore, Wiring
from fabric.qos import DeviceQos
from fabric.state import PortCounters
from tests.unit.lab.wire.wiring import GIGABIT, LOSSLESS, device, flow, switch

SIDE = GuestSide(NicPlan(GIGABIT))


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

    def send(self, frame: bytes) -> None:
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def send_all(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.send(frame)

    def receive(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def is_closed(self) -> bool:
        return self.socket.recv(1) == b""

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, "the switch hung up"
            data += more
        return data


Captured = list[tuple[str, bytes, int]]


@contextmanager
def wired(core: SwitchCore, side: GuestSide = SIDE) -> Iterator[tuple[Wiring, Captured]]:
    captured: Captured = []
    with tempfile.TemporaryDirectory(prefix="wire-") as folder:
        wiring = Wiring(
            {"leaf1": core},
            Path(folder),
            {("leaf1", port): side for port in ("p0", "p1")},
            (),
            SystemClock(),
            tap=lambda end, frame, now_ns: captured.append((end[1], frame, now_ns)),
        )
        thread = threading.Thread(target=wiring.run)
        thread.start()
        try:
            yield wiring, captured
        finally:
            wiring.stop()
            thread.join(10)
            assert not thread.is_alive()
            assert list(Path(folder).iterdir()) == []


@contextmanager
def peers(wiring: Wiring) -> Iterator[tuple[Peer, Peer]]:
    ends = Peer(wiring.path(("leaf1", "p0"))), Peer(wiring.path(("leaf1", "p1")))
    try:
        yield ends
    finally:
        for one in ends:
            one.close()


def counters(wiring: Wiring, port: str) -> PortCounters:
    return wiring.ask("leaf1", lambda core, _: (core.counters(port), ()))


def pause(wiring: Wiring, *, paused: bool) -> None:
    wiring.ask("leaf1", lambda core, now: (None, core.peer_pauses("p1", LOSSLESS, paused=paused, now_ns=now)))


def test_frames_cross_the_switch_both_ways_in_order() -> None:
    with wired(switch(device(2))) as (wiring, captured), peers(wiring) as (one, other):
        there = [flow(0, 1).frame(psn, bytes(psn)) for psn in range(200)]
        back = [flow(1, 0).frame(psn, bytes(1000)) for psn in range(200)]
        for forth_frame, back_frame in zip(there, back, strict=True):
            one.send(forth_frame)
            other.send(back_frame)
        assert [other.receive() for _ in there] == there
        assert [one.receive() for _ in back] == back
        assert counters(wiring, "p1").queues[LOSSLESS].packets == 200
        assert wiring.ask("leaf1", lambda core, _: (core.dscp_received("p0")[26], ())) == 200
    times = [now for port, _, now in captured if port == "p1"]
    assert len(captured) == 800
    assert times[0] > 0


def test_frames_in_pieces_are_put_together() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (one, other):
        frame = flow(0, 1).frame(0, bytes(300))
        stream = (len(frame).to_bytes(4, "big") + frame) * 3
        for at in range(0, len(stream), 7):
            one.socket.sendall(stream[at : at + 7])
        assert [other.receive() for _ in range(3)] == [frame] * 3


def test_a_pause_holds_one_priority_and_lets_the_other_pass() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (one, other):
        pause(wiring, paused=True)
        lossless, lossy = flow(0, 1).frame(0, b""), flow(0, 1, dscp=0).frame(1, b"")
        one.send(lossless)
        one.send(lossy)
        assert other.receive() == lossy
        pause(wiring, paused=False)
        assert other.receive() == lossless


def test_a_guest_that_does_not_read_pauses_the_switch_and_loses_nothing_lossless() -> None:
    side = GuestSide(NicPlan(10 * GIGABIT), pauses=frozenset({LOSSLESS}), xoff_bytes=20_000, limit_bytes=200_000)
    with wired(switch(device(2), shared_bytes=100_000), side) as (wiring, _), peers(wiring) as (one, other):
        frames = [flow(0, 1).frame(psn, bytes(4000)) for psn in range(600)]
        sender = threading.Thread(target=one.send_all, args=(frames,))
        sender.start()
        while counters(wiring, "p1").pfc_rx_total == 0:
            assert sender.is_alive()  # else all fitted into buffers, and nothing was tested
        assert [other.receive() for _ in frames] == frames
        sender.join(10)
        assert wiring.lost_frames() == {("leaf1", "p0"): 0, ("leaf1", "p1"): 0}
        tally = wiring.ask("leaf1", lambda core, _: (core.tally(), ()))
        assert tally.refused == tally.lost == {}


def test_what_a_full_guest_cannot_take_is_counted_as_lost() -> None:
    side = GuestSide(NicPlan(10 * GIGABIT), limit_bytes=1_000)
    with wired(switch(device(2, pfc=False)), side) as (wiring, _), peers(wiring) as (one, _):
        for psn in range(2_000):
            one.send(flow(0, 1, dscp=0).frame(psn, bytes(4000)))
            if psn % 100 == 0 and wiring.lost_frames()["leaf1", "p1"]:
                break
        while not wiring.lost_frames()["leaf1", "p1"]:
            counters(wiring, "p1")


def test_a_guest_may_come_again() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (one, other):
        frame = flow(0, 1).frame(0, b"")
        other.close()
        again = Peer(wiring.path(("leaf1", "p1")))
        counters(wiring, "p1")  # the switch has had a turn: the new connection is taken
        one.send(frame)
        assert again.receive() == frame
        again.close()


def test_what_is_no_frame_stream_is_hung_up() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (one, _):
        one.socket.sendall(b"\xff\xff\xff\xff")
        assert one.is_closed()


def test_a_frame_without_a_guest_at_its_port_goes_nowhere() -> None:
    with wired(switch(device(3))) as (wiring, _), peers(wiring) as (one, other):
        one.send(flow(0, 2).frame(0, b""))
        one.send(flow(0, 1).frame(1, b""))
        assert other.receive() == flow(0, 1).frame(1, b"")
        assert counters(wiring, "p2").queues[LOSSLESS].packets == 1


def test_another_configuration_holds_while_frames_flow() -> None:
    def apply(core: SwitchCore, now_ns: int) -> tuple[None, list[object]]:
        return None, [*core.configure(lossy, now_ns)]

    lossy: DeviceQos = device(2, pfc=False)
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (one, other):
        pause(wiring, paused=True)
        frame = flow(0, 1).frame(0, b"")
        one.send(frame)
        wiring.ask("leaf1", apply)  # type: ignore[arg-type]
        assert other.receive() == frame  # a pause is no longer obeyed


def test_a_question_that_fails_fails_for_the_asker_alone() -> None:
    with wired(switch(device(2))) as (wiring, _):
        with pytest.raises(KeyError):
            counters(wiring, "p9")
        assert counters(wiring, "p0").port == "p0"


def test_a_folder_that_is_not_there_is_refused_and_nothing_stays_open(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file|path too long"):
        Wiring({"leaf1": switch(device(2))}, tmp_path / "none", {("leaf1", "p0"): SIDE}, (), SystemClock())
