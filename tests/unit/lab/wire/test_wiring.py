"""Switches in real time with peers of our own at their sockets: no QEMU."""

import threading
import time
from pathlib import Path

import pytest

from fabric.errors import FabricError
from fabric.lab.wire import GuestSide, NicPlan, SwitchCore, Wiring
from fabric.qos import DeviceQos
from tests.unit.lab.wire.peers import LEAF, P0, P1, SIDE, Peer, SystemClock, counters, pause, peers, running, wired
from tests.unit.lab.wire.wiring import GIGABIT, LOSSLESS, device, flow, switch


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
        assert wiring.ask(LEAF, lambda core, _: (core.dscp_received("p0")[26], ())) == 200
    times = [now for port, _, now in captured if port == P1]
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
        sender = threading.Thread(target=one.send, args=frames)
        sender.start()
        while counters(wiring, "p1").pfc_rx_total == 0:
            assert sender.is_alive()  # else all fitted into buffers, and nothing was tested
        assert [other.receive() for _ in frames] == frames
        sender.join(10)
        assert wiring.lost_frames() == {P0: 0, P1: 0}
        tally = wiring.ask(LEAF, lambda core, _: (core.tally(), ()))
        assert tally.refused == tally.lost == {}


def test_what_a_full_guest_cannot_take_is_counted_as_lost() -> None:
    side = GuestSide(NicPlan(10 * GIGABIT), limit_bytes=1_000)
    with wired(switch(device(2, pfc=False)), side) as (wiring, _), peers(wiring) as (one, _):
        for psn in range(2_000):
            one.send(flow(0, 1, dscp=0).frame(psn, bytes(4000)))
            if psn % 100 == 0 and wiring.lost_frames()[P1]:
                break
        while not wiring.lost_frames()[P1]:
            counters(wiring, "p1")


def test_a_guest_may_come_again() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (one, other):
        frame = flow(0, 1).frame(0, b"")
        other.close()
        again = Peer(wiring.path(P1))
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
        wiring.ask(LEAF, apply)  # type: ignore[arg-type]
        assert other.receive() == frame  # a pause is no longer obeyed


def test_a_question_that_fails_fails_for_the_asker_alone() -> None:
    with wired(switch(device(2))) as (wiring, _):
        with pytest.raises(KeyError):
            counters(wiring, "p9")
        assert counters(wiring, "p0").port == "p0"


def test_a_folder_that_is_not_there_is_refused_and_nothing_stays_open(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file|path too long"):
        Wiring({LEAF: switch(device(2))}, tmp_path / "none", {P0: SIDE}, (), SystemClock())


def test_ports_that_do_not_exist_are_used_twice_or_form_a_loop_are_refused(tmp_path: Path) -> None:
    cores = {LEAF: switch(device(2)), "leaf2": switch(device(2)), "spine": switch(device(2))}
    for guests, cables, words in (
        ({(LEAF, "p9"): SIDE}, (), "no such port"),
        ({}, ((P0, ("leaf9", "p0")),), "no such port"),
        ({P0: SIDE}, ((P0, ("leaf2", "p0")),), "two cables"),
        (
            {},
            ((P0, ("leaf2", "p0")), (("leaf2", "p1"), ("spine", "p0")), (("spine", "p1"), P1)),
            "loop",
        ),
    ):
        with pytest.raises(FabricError, match=words):
            Wiring(cores, tmp_path, guests, cables, SystemClock())
    assert list(tmp_path.iterdir()) == []


def test_a_question_to_a_wiring_that_ended_is_answered_at_once() -> None:
    with wired(switch(device(2))) as (wiring, _):
        assert wiring.ports(LEAF) == ("p0", "p1")
    with pytest.raises(TimeoutError, match="does not run"):
        counters(wiring, "p0")


def test_a_question_that_nobody_answers_in_time_is_not_answered_later(tmp_path: Path) -> None:
    asked: list[int] = []

    def ask_time(_: SwitchCore, now_ns: int) -> tuple[None, tuple[()]]:
        asked.append(now_ns)
        return None, ()

    wiring = Wiring({LEAF: switch(device(2))}, tmp_path, {}, (), SystemClock())
    with pytest.raises(TimeoutError):
        wiring.ask(LEAF, ask_time, timeout_s=0.01)
    thread = threading.Thread(target=wiring.run)
    thread.start()
    counters(wiring, "p0")
    wiring.stop()
    thread.join(10)
    assert asked == []


# Two switches.

TRUNK = (LEAF, "p2"), ("leaf2", "p2")
FAR = ("leaf2", "p1")


def two_leaves(*, shared_bytes: int = 400_000) -> dict[str, SwitchCore]:
    return {name: switch(device(3), shared_bytes=shared_bytes, known_ports=()) for name in (LEAF, "leaf2")}


def test_frames_cross_two_switches_both_ways_in_order() -> None:
    with running(two_leaves(), {P0: SIDE, FAR: SIDE}, [TRUNK]) as wiring, peers(wiring, P0, FAR) as (one, other):
        there = [flow(0, 1).frame(psn, bytes(psn)) for psn in range(100)]
        back = [flow(1, 0).frame(psn, bytes(1000)) for psn in range(100)]
        one.send(*there)
        assert [other.receive() for _ in there] == there
        other.send(*back)
        assert [one.receive() for _ in back] == back
        assert counters(wiring, "p2").queues[LOSSLESS].packets == 100
        assert counters(wiring, "p2", "leaf2").queues[LOSSLESS].packets == 100


def test_a_frame_is_at_the_next_switch_when_all_of_it_has_left_the_first() -> None:
    captured: list[tuple[tuple[str, str], int]] = []
    cores, guests = two_leaves(), {P0: SIDE, FAR: SIDE}
    with (
        running(cores, guests, [TRUNK], tap=lambda end, _, now: captured.append((end, now))) as wiring,
        peers(wiring, P0, FAR) as (one, other),
    ):
        frame = flow(0, 1).frame(0, bytes(4000))
        one.send(frame)
        assert other.receive() == frame
    times = dict(captured)
    link_ns = (len(frame) + 24) * 8
    assert times[LEAF, "p2"] == times["leaf2", "p2"] == times[P0] + link_ns
    assert times[FAR] == times[P0] + 2 * link_ns


def test_a_pause_runs_back_through_two_switches_and_nothing_is_lost() -> None:
    side = GuestSide(NicPlan(10 * GIGABIT), pauses=frozenset({LOSSLESS}), xoff_bytes=20_000, limit_bytes=200_000)
    cores = two_leaves(shared_bytes=100_000)
    with running(cores, {P0: side, FAR: side}, [TRUNK]) as wiring, peers(wiring, P0, FAR) as (one, other):
        frames = [flow(0, 1).frame(psn, bytes(4000)) for psn in range(800)]
        sender = threading.Thread(target=one.send, args=frames)
        sender.start()
        while counters(wiring, "p0").pfc_tx_total == 0:
            time.sleep(0.001)
        assert [other.receive() for _ in frames] == frames
        sender.join(10)
        near, far = counters(wiring, "p2"), counters(wiring, "p2", "leaf2")
        assert near.pfc_rx_frames == far.pfc_tx_frames
        assert near.pfc_rx_total != 0
        for name in cores:
            tally = wiring.ask(name, lambda core, _: (core.tally(), ()))
            assert (tally.refused, tally.lost, tally.queued) == ({}, {}, 0)


# One priority held for long.


def test_holding_one_priority_for_a_second_does_not_touch_another() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (one, other):
        pause(wiring, paused=True)
        start = time.monotonic()
        lossless: list[bytes] = []
        lossy: list[bytes] = []
        while time.monotonic() < start + 1.0 or len(lossless) < 300:
            number = len(lossy)
            lossless.append(flow(0, 1).frame(number, bytes(8000)))
            lossy.append(flow(0, 1, dscp=0).frame(number, bytes(1000)))
            one.send(lossless[-1], lossy[-1])
            assert other.receive() == lossy[-1]  # at once: else this times out
            time.sleep(0.001)
        assert sum(map(len, lossless)) > 4 * 400_000  # more than the switch holds: the guest's NIC was paused too
        assert counters(wiring, "p0").pfc_tx_total == 1
        assert counters(wiring, "p1").queues[LOSSLESS].packets == 0
        pause(wiring, paused=False)
        assert [other.receive() for _ in lossless] == lossless
        assert wiring.lost_frames() == {P0: 0, P1: 0}


def test_a_guest_is_left_unread_when_the_held_queue_of_its_nic_is_full_and_loses_nothing() -> None:
    side = GuestSide(NicPlan(GIGABIT, queue_limit_bytes=50_000))
    with wired(switch(device(2), shared_bytes=50_000), side) as (wiring, _), peers(wiring) as (one, other):
        pause(wiring, paused=True)
        frames = [flow(0, 1).frame(psn, bytes(4000)) for psn in range(500)]
        sender = threading.Thread(target=one.send, args=frames)
        sender.start()
        sender.join(0.2)
        assert sender.is_alive()
        pause(wiring, paused=False)
        assert [other.receive() for _ in frames] == frames
        sender.join(10)


# A guest that comes again.


def test_a_guest_that_comes_again_is_not_held_back_by_what_it_did_not_read() -> None:
    side = GuestSide(NicPlan(10 * GIGABIT), pauses=frozenset({LOSSLESS}), xoff_bytes=20_000)
    with wired(switch(device(2)), side) as (wiring, _), peers(wiring) as (one, other):
        psn = 0
        while not counters(wiring, "p1").pfc_rx_total:
            one.send(flow(0, 1).frame(psn, bytes(4000)))
            psn += 1
        again = Peer(wiring.path(P1))  # the old connection is still open: restored from a saved state
        counters(wiring, "p1")
        while counters(wiring, "p1").pfc_rx_total != 2:
            time.sleep(0.001)
        last = flow(0, 1).frame(psn, b"last")
        one.send(last)
        while again.receive() != last:
            pass
        while other.socket.recv(1 << 20):
            pass  # what was on its way; then the end: the old connection was closed
        again.close()


def test_what_a_guest_left_in_its_nic_does_not_come_out_when_it_comes_again() -> None:
    side = GuestSide(NicPlan(GIGABIT, queue_limit_bytes=20_000))
    core = switch(device(2), shared_bytes=20_000)
    with wired(core, side) as (wiring, _), peers(wiring) as (one, other):
        pause(wiring, paused=True)
        old = [flow(0, 1).frame(psn, bytes(4000)) for psn in range(200)]
        sender = threading.Thread(target=_send_until_closed, args=(one, old))
        sender.start()
        sender.join(0.2)
        assert sender.is_alive()  # its NIC is full and it is not read
        again = Peer(wiring.path(P0))
        sender.join(10)
        assert not sender.is_alive()
        free, held = flow(0, 1, dscp=0).frame(0, b"free"), flow(0, 1).frame(0, b"held")
        again.send(held, free)
        assert other.receive() == free  # it is read again, and held on its lossless priority alone
        pause(wiring, paused=False)
        received = [other.receive()]
        while received[-1] != held:
            received.append(other.receive())
        switched = len(received) - 1
        assert received[:-1] == old[:switched]
        assert switched * 4000 < 20_000 + 40_000 + 3 * 4100  # the switch's buffer and the link; no NIC's queue
        assert other.hears_nothing_for(0.05)
        again.close()


def _send_until_closed(peer: Peer, frames: list[bytes]) -> None:
    try:
        peer.send(*frames)
    except ConnectionError:
        return


def test_half_a_frame_of_the_guest_before_is_forgotten() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (one, other):
        frame = flow(0, 1).frame(0, bytes(300))
        one.socket.sendall(len(frame).to_bytes(4, "big") + frame[:100])
        again = Peer(wiring.path(P0))
        again.send(frame)
        assert other.receive() == frame
        assert one.is_closed()
        again.close()


def test_a_port_that_is_shut_down_carries_nothing_and_counts_nothing() -> None:
    def shut(*, enabled: bool) -> None:
        wiring.ask(LEAF, lambda core, now: (None, core.set_enabled("p1", enabled=enabled, now_ns=now)))

    with wired(switch(device(2), known_ports=())) as (wiring, _), peers(wiring) as (one, other):
        there, back = flow(0, 1).frame(0, b""), flow(1, 0).frame(0, b"")
        other.send(back)
        assert one.receive() == back
        pause(wiring, paused=True)
        one.send(there)
        while not wiring.ask(LEAF, lambda core, _: (core.depth_bytes("p1", LOSSLESS), ())):
            time.sleep(0.001)
        shut(enabled=False)
        before = counters(wiring, "p1")
        assert before.tx_discards == 1  # what waited
        pause(wiring, paused=False)
        one.send(there)
        other.send(back)
        assert one.hears_nothing_for(0.02)
        assert other.hears_nothing_for(0.02)
        assert counters(wiring, "p1") == before
        shut(enabled=True)
        again = flow(0, 1).frame(1, b"again")
        one.send(again)
        assert other.receive() == again
