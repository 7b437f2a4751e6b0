"""The sockets of the switch with two peers of our own at them: no QEMU."""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabric.lab.wire import NicPlan, SwitchCore
from fabric.lab.wire.plug import GuestSide, Plug
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
        raise AssertionError(f"the plug never sleeps, not even {seconds} s")


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
def plugged(core: SwitchCore, side: GuestSide = SIDE) -> Iterator[tuple[Plug, Captured]]:
    captured: Captured = []
    with tempfile.TemporaryDirectory(prefix="wire-") as folder:
        plug = Plug(
            core,
            Path(folder),
            dict.fromkeys(("p0", "p1"), side),
            SystemClock(),
            tap=lambda port, frame, now_ns: captured.append((port, frame, now_ns)),
        )
        thread = threading.Thread(target=plug.run)
        thread.start()
        try:
            yield plug, captured
        finally:
            plug.stop()
            thread.join(10)
            assert not thread.is_alive()
            assert list(Path(folder).iterdir()) == []


@contextmanager
def peers(plug: Plug) -> Iterator[tuple[Peer, Peer]]:
    ends = Peer(plug.path("p0")), Peer(plug.path("p1"))
    try:
        yield ends
    finally:
        for one in ends:
            one.close()


def counters(plug: Plug, port: str) -> PortCounters:
    return plug.ask(lambda core, _: (core.counters(port), ()))


def pause(plug: Plug, *, paused: bool) -> None:
    plug.ask(lambda core, now: (None, core.peer_pauses("p1", LOSSLESS, paused=paused, now_ns=now)))


def test_frames_cross_the_switch_both_ways_in_order() -> None:
    with plugged(switch(device(2))) as (plug, captured), peers(plug) as (one, other):
        there = [flow(0, 1).frame(psn, bytes(psn)) for psn in range(200)]
        back = [flow(1, 0).frame(psn, bytes(1000)) for psn in range(200)]
        for forth_frame, back_frame in zip(there, back, strict=True):
            one.send(forth_frame)
            other.send(back_frame)
        assert [other.receive() for _ in there] == there
        assert [one.receive() for _ in back] == back
        assert counters(plug, "p1").queues[LOSSLESS].packets == 200
        assert plug.ask(lambda core, _: (core.dscp_received("p0")[26], ())) == 200
    times = [now for port, _, now in captured if port == "p1"]
    assert len(captured) == 800
    assert times[0] > 0


def test_frames_in_pieces_are_put_together() -> None:
    with plugged(switch(device(2))) as (plug, _), peers(plug) as (one, other):
        frame = flow(0, 1).frame(0, bytes(300))
        stream = (len(frame).to_bytes(4, "big") + frame) * 3
        for at in range(0, len(stream), 7):
            one.socket.sendall(stream[at : at + 7])
        assert [other.receive() for _ in range(3)] == [frame] * 3


def test_a_pause_holds_one_priority_and_lets_the_other_pass() -> None:
    with plugged(switch(device(2))) as (plug, _), peers(plug) as (one, other):
        pause(plug, paused=True)
        lossless, lossy = flow(0, 1).frame(0, b""), flow(0, 1, dscp=0).frame(1, b"")
        one.send(lossless)
        one.send(lossy)
        assert other.receive() == lossy
        pause(plug, paused=False)
        assert other.receive() == lossless


def test_a_guest_that_does_not_read_pauses_the_switch_and_loses_nothing_lossless() -> None:
    side = GuestSide(NicPlan(10 * GIGABIT), pauses=frozenset({LOSSLESS}), xoff_bytes=20_000, limit_bytes=200_000)
    with plugged(switch(device(2), shared_bytes=100_000), side) as (plug, _), peers(plug) as (one, other):
        frames = [flow(0, 1).frame(psn, bytes(4000)) for psn in range(600)]
        sender = threading.Thread(target=one.send_all, args=(frames,))
        sender.start()
        while counters(plug, "p1").pfc_rx_total == 0:
            assert sender.is_alive()  # else all fitted into buffers, and nothing was tested
        assert [other.receive() for _ in frames] == frames
        sender.join(10)
        assert plug.lost_frames() == {"p0": 0, "p1": 0}
        tally = plug.ask(lambda core, _: (core.tally(), ()))
        assert tally.refused == tally.lost == {}


def test_what_a_full_guest_cannot_take_is_counted_as_lost() -> None:
    side = GuestSide(NicPlan(10 * GIGABIT), limit_bytes=1_000)
    with plugged(switch(device(2, pfc=False)), side) as (plug, _), peers(plug) as (one, _):
        for psn in range(2_000):
            one.send(flow(0, 1, dscp=0).frame(psn, bytes(4000)))
            if psn % 100 == 0 and plug.lost_frames()["p1"]:
                break
        while not plug.lost_frames()["p1"]:
            counters(plug, "p1")


def test_a_guest_may_come_again() -> None:
    with plugged(switch(device(2))) as (plug, _), peers(plug) as (one, other):
        frame = flow(0, 1).frame(0, b"")
        other.close()
        again = Peer(plug.path("p1"))
        counters(plug, "p1")  # the switch has had a turn: the new connection is taken
        one.send(frame)
        assert again.receive() == frame
        again.close()


def test_what_is_no_frame_stream_is_hung_up() -> None:
    with plugged(switch(device(2))) as (plug, _), peers(plug) as (one, _):
        one.socket.sendall(b"\xff\xff\xff\xff")
        assert one.is_closed()


def test_a_frame_without_a_guest_at_its_port_goes_nowhere() -> None:
    with plugged(switch(device(3))) as (plug, _), peers(plug) as (one, other):
        one.send(flow(0, 2).frame(0, b""))
        one.send(flow(0, 1).frame(1, b""))
        assert other.receive() == flow(0, 1).frame(1, b"")
        assert counters(plug, "p2").queues[LOSSLESS].packets == 1


def test_another_configuration_holds_while_frames_flow() -> None:
    def apply(core: SwitchCore, now_ns: int) -> tuple[None, list[object]]:
        return None, [*core.configure(lossy, now_ns)]

    lossy: DeviceQos = device(2, pfc=False)
    with plugged(switch(device(2))) as (plug, _), peers(plug) as (one, other):
        pause(plug, paused=True)
        frame = flow(0, 1).frame(0, b"")
        one.send(frame)
        plug.ask(apply)  # type: ignore[arg-type]
        assert other.receive() == frame  # a pause is no longer obeyed


def test_a_question_that_fails_fails_for_the_asker_alone() -> None:
    with plugged(switch(device(2))) as (plug, _):
        with pytest.raises(KeyError):
            counters(plug, "p9")
        assert counters(plug, "p0").port == "p0"


def test_a_folder_that_is_not_there_is_refused_and_nothing_stays_open(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file|path too long"):
        Plug(switch(device(2)), tmp_path / "none", {"p0": SIDE}, SystemClock())
