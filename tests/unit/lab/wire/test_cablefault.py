"""Faults and captures that come and go while frames flow."""

import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fabric.errors import FabricError
from fabric.lab.wire import (
    ActiveFault,
    CableFault,
    CableFaultKind,
    PacketKind,
    SwitchCore,
    Wiring,
    cable_fault_from_json,
)
from fabric.lab.wire.cablefault import CableFaults
from fabric.lab.wire.capture import Captures
from fabric.lab.wire.pcap import read_pcap
from fabric.lab.wire.roce import read_bth
from fabric.serial import to_json
from tests.unit.lab.wire.peers import LEAF, P0, P1, Peer, counters, pause, peers, wired
from tests.unit.lab.wire.wiring import LOSSLESS, device, flow, switch

MS = 1_000_000


def fault(kind: str, **fields: object) -> CableFault:
    return cable_fault_from_json({"kind": kind, "switch": LEAF, "port": "p0", **fields})  # type: ignore[dict-item]


def frames(count: int, *, dscp: int = 26) -> list[bytes]:
    return [flow(0, 1, dscp=dscp).frame(psn, bytes(100)) for psn in range(count)]


def psns(peer: Peer, count: int) -> list[int]:
    found = [read_bth(peer.receive()) for _ in range(count)]
    return [one.psn for one in found if one is not None]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (fault("drop", packet="write", nth=3), [0, 1, 3, 4, 5]),
        (fault("drop", packet="data", nth=2, every=True), [0, 2, 4]),
        (fault("drop", packet="ack", nth=1), [0, 1, 2, 3, 4, 5]),
        (fault("duplicate", nth=2), [0, 1, 1, 2, 3, 4, 5]),
        (fault("reorder", nth=2), [0, 2, 1, 3, 4, 5]),
        (fault("delay", nth=1, delay_ms=30), [1, 2, 3, 4, 5, 0]),
    ],
)
def test_a_fault_strikes_what_it_names(one: CableFault, expected: list[int]) -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        number = wiring.add_fault(one)
        sender.send(*frames(6))
        assert psns(receiver, len(expected)) == expected
        struck = 0 if one.packet is PacketKind.ACK else 3 if one.every else 1
        assert wiring.faults() == (ActiveFault(number, one, struck),)
        assert counters(wiring, "p1").queues[LOSSLESS].packets == len(expected)


def test_a_corrupted_frame_has_another_payload_and_is_counted_as_any_other() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        wiring.add_fault(fault("corrupt", nth=2))
        sent = frames(3)
        sender.send(*sent)
        received = [receiver.receive() for _ in sent]
        assert [got == frame for got, frame in zip(received, sent, strict=True)] == [True, False, True]
        assert counters(wiring, "p1").queues[LOSSLESS].bytes == sum(map(len, sent))


def test_a_fault_that_is_removed_strikes_no_more() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        number = wiring.add_fault(fault("drop", every=True))
        other = wiring.add_fault(fault("duplicate", packet="cnp"))
        sender.send(*frames(3))
        assert receiver.hears_nothing_for(0.02)
        wiring.remove_fault(number)
        sender.send(*frames(3))
        assert psns(receiver, 3) == [0, 1, 2]
        assert [one.number for one in wiring.faults()] == [other]
        with pytest.raises(FabricError, match="no such fault"):
            wiring.remove_fault(number)


def test_a_cut_cable_is_cut_both_ways_until_every_cut_is_removed() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        cuts = [wiring.add_fault(fault("down")) for _ in range(2)]
        sender.send(*frames(2))
        receiver.send(flow(1, 0).frame(0, b""))
        assert sender.hears_nothing_for(0.02)
        wiring.remove_fault(cuts[0])
        sender.send(*frames(2))
        assert receiver.hears_nothing_for(0.02)
        assert counters(wiring, "p1").queues[LOSSLESS].packets == 0
        wiring.remove_fault(cuts[1])
        sender.send(*frames(2))
        assert psns(receiver, 2) == [0, 1]


def test_a_storm_holds_its_priority_alone_for_its_time_and_counts_no_pause() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        start = time.monotonic()
        wiring.add_fault(CableFault(CableFaultKind.STORM, LEAF, "p1", priority=LOSSLESS, duration_ms=60))
        lossy = frames(1, dscp=0)
        sender.send(*frames(1), *lossy)
        assert receiver.receive() == lossy[0]
        assert psns(receiver, 1) == [0]
        assert time.monotonic() - start >= 0.06
        assert counters(wiring, "p1").pfc_rx_total == 0


def test_a_storm_may_be_ended_early() -> None:
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        storm = CableFault(CableFaultKind.STORM, LEAF, "p1", priority=LOSSLESS, duration_ms=600_000)
        number = wiring.add_fault(storm)
        sender.send(*frames(1))
        assert receiver.hears_nothing_for(0.02)
        wiring.remove_fault(number)
        assert psns(receiver, 1) == [0]


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (CableFault(CableFaultKind.DROP, LEAF, "p9"), "no such port"),
        (CableFault(CableFaultKind.DROP, "leaf9", "p0"), "no such port"),
        (CableFault(CableFaultKind.DROP, LEAF, "p0", nth=0), "counts from 1"),
        (CableFault(CableFaultKind.DELAY, LEAF, "p0"), "delay_ms"),
        (CableFault(CableFaultKind.STORM, LEAF, "p0", priority=8, duration_ms=1), "storm"),
        (CableFault(CableFaultKind.STORM, LEAF, "p0"), "storm"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(one: CableFault, words: str) -> None:
    with wired(switch(device(2))) as (wiring, _):
        with pytest.raises(FabricError, match=words):
            wiring.add_fault(one)
        assert wiring.faults() == ()


def test_a_fault_goes_through_json_and_comes_back() -> None:
    one = CableFault(CableFaultKind.REORDER, LEAF, "p0", PacketKind.READ_RESPONSE, nth=7, every=True, delay_ms=5)
    assert cable_fault_from_json(to_json(one)) == one
    with pytest.raises(FabricError, match="cannot be read"):
        cable_fault_from_json({"kind": "melt", "switch": LEAF, "port": "p0"})


# Which frames are meant.


def roce(opcode: int, *, queue_pair: int = 2) -> bytes:
    frame = bytearray(flow(0, 1, queue_pair=queue_pair).frame(0, bytes(64)))
    bth = read_bth(bytes(frame))
    assert bth is not None
    frame[bth.at] = opcode
    return bytes(frame)


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        (0x04, PacketKind.SEND),
        (0x17, PacketKind.SEND),
        (0x0A, PacketKind.WRITE),
        (0x0C, PacketKind.READ_REQUEST),
        (0x0E, PacketKind.READ_RESPONSE),
        (0x11, PacketKind.ACK),
        (0x81, PacketKind.CNP),
    ],
)
def test_packets_are_told_apart_by_their_opcode(opcode: int, kind: PacketKind) -> None:
    by_opcode = set(PacketKind) - {PacketKind.ANY, PacketKind.ROCE, PacketKind.DATA, PacketKind.CM}
    frame = roce(opcode)
    assert {one for one in by_opcode if one.matches(frame)} == {kind}
    assert PacketKind.ANY.matches(frame)
    assert PacketKind.ROCE.matches(frame)
    assert not PacketKind.CM.matches(frame)


def test_connection_management_is_told_by_its_queue_pair_and_other_frames_are_no_roce() -> None:
    assert PacketKind.CM.matches(roce(0x64, queue_pair=1))
    plain = bytes(12) + b"\x08\x06" + bytes(46)
    assert [one for one in PacketKind if one.matches(plain)] == [PacketKind.ANY]


# Captures.


def captured_psns(path: Path) -> list[int]:
    with path.open("rb") as file:
        found = [read_bth(frame) for _, frame in read_pcap(file)]
    return [one.psn for one in found if one is not None]


def test_a_capture_has_one_port_from_its_start_to_its_end_and_can_be_read_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "p1.pcap"
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        sender.send(*frames(2))
        assert psns(receiver, 2) == [0, 1]
        before = time.time_ns()
        wiring.start_capture(P1, path)
        sender.send(*frames(5))
        assert psns(receiver, 5) == list(range(5))
        assert captured_psns(path) == list(range(5))
        assert wiring.captures() == {P1: (path, 5)}
        with path.open("rb") as file:
            times = [at_ns for at_ns, _ in read_pcap(file)]
        assert before - 1_000_000 < times[0] <= times[-1] < time.time_ns() + 1_000_000
        assert wiring.stop_capture(P1) == 5
        sender.send(*frames(1))
        assert psns(receiver, 1) == [0]
        assert captured_psns(path) == list(range(5))


def test_tshark_reads_a_capture_that_still_grows(tmp_path: Path) -> None:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed")
    path = tmp_path / "p0.pcap"
    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        wiring.start_capture(P0, path)
        sender.send(*frames(3))
        assert psns(receiver, 3) == [0, 1, 2]
        argv = [program, "-r", str(path), "-T", "fields", "-e", "infiniband.bth.psn", "-e", "ip.dsfield.dscp"]
        run = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
        assert run.stdout.split() == ["0", "26", "1", "26", "2", "26"]


def test_captures_that_cannot_be_are_refused(tmp_path: Path) -> None:
    def refused(words: str) -> None:
        with pytest.raises(FabricError, match=words):
            wiring.start_capture(end, path)

    with wired(switch(device(2))) as (wiring, _):
        path, end = tmp_path / "one.pcap", (LEAF, "p9")
        refused("no such port")
        end = P0
        wiring.start_capture(end, path)
        refused("captured already")
        path, end = tmp_path / "none" / "one.pcap", P1
        refused("cannot be made")
        with pytest.raises(FabricError, match="not captured"):
            wiring.stop_capture(P1)


def test_a_file_that_takes_no_more_ends_its_capture_and_not_the_forwarding(tmp_path: Path) -> None:
    captures = Captures()
    captures.start(P0, tmp_path / "one.pcap", start_unix_ns=0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (24, limits[1]))
    try:
        captures.write(P0, bytes(100), 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not captures


def test_a_capture_goes_to_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FabricError, match="written to a file"):
        Captures().start(P0, tmp_path / "pipe", start_unix_ns=0)


def test_nothing_is_stuck_after_faults_and_pauses_together() -> None:
    def all_pass(wiring: Wiring) -> None:
        sender.send(*frames(10))
        assert psns(receiver, 10) == list(range(10))
        assert wiring.ask(LEAF, lambda core, _: (core.tally().queued, ())) == 0

    with wired(switch(device(2))) as (wiring, _), peers(wiring) as (sender, receiver):
        numbers = [wiring.add_fault(fault("drop", every=True)), wiring.add_fault(fault("down"))]
        pause(wiring, paused=True)
        sender.send(*frames(10))
        pause(wiring, paused=False)
        for number in numbers:
            wiring.remove_fault(number)
        all_pass(wiring)


def test_no_pause_is_counted_that_a_cut_cable_cannot_carry() -> None:
    core = switch()
    core.faults.set_down("p1", down=True)
    core.peer_pauses("p1", LOSSLESS, paused=True, now_ns=0)
    assert core.counters("p1").pfc_rx_total == 0
    core.faults.set_down("p1", down=False)
    core.peer_pauses("p1", LOSSLESS, paused=True, now_ns=0)
    assert core.counters("p1").pfc_rx_total == 1


def test_no_pause_is_counted_as_sent_into_a_cut_cable() -> None:
    core = switch(shared_bytes=20_000)
    core.faults.set_down("p0", down=True)
    core.peer_pauses("p1", LOSSLESS, paused=True, now_ns=0)
    core.faults.set_down("p0", down=False)
    for frame in frames(9):
        core.receive("p0", frame + bytes(1400), 0)
    sent = core.counters("p0").pfc_tx_total
    assert sent == 1
    core.faults.set_down("p0", down=True)
    core.peer_pauses("p1", LOSSLESS, paused=False, now_ns=10_000_000)
    core.advance(100_000_000)
    assert core.counters("p0").pfc_tx_total == sent


def test_cable_between_switches_is_cut_for_both_of_them() -> None:
    cores = {"leaf1": switch(), "leaf2": switch()}
    faults = CableFaults(cores, [(("leaf1", "p0"), ("leaf2", "p1"))])
    near, _ = faults.add(fault("down"), 0)
    far, _ = faults.add(CableFault(CableFaultKind.DOWN, "leaf2", "p1"), 0)
    assert [core.faults.is_down(port) for core, port in zip(cores.values(), ("p0", "p1"), strict=True)] == [True, True]
    faults.remove(near, 0)
    assert cores["leaf1"].faults.is_down("p0")
    faults.remove(far, 0)
    assert [core.faults.idle for core in cores.values()] == [True, True]


def test_a_cut_cable_tells_how_many_frames_of_a_kind_it_did_not_carry() -> None:
    cores = {"leaf1": switch()}
    faults = CableFaults(cores)
    faults.add(fault("down"), 0)
    cores["leaf1"].receive("p0", frames(1)[0], 0)
    number, _ = faults.add(fault("down", packet="roce"), 0)
    every = fault("down", port="p1")
    faults.add(every, 0)
    for frame in (*frames(3), bytes(12) + b"\x08\x06" + bytes(46)):  # the last is an ARP request
        cores["leaf1"].receive("p0", frame, 0)
    assert [one.struck for one in faults.active(0)] == [5, 3, 0]
    faults.remove(number, 0)
    assert [one.struck for one in faults.active(0)] == [5, 0]


def storm(seconds: float, *, port: str = "p0") -> CableFault:
    return fault("storm", port=port, duration_ms=round(seconds * 1000))


def is_held(core: SwitchCore, at_ns: int) -> bool:
    """Returns whether a frame of the stormy priority stays in the switch then."""
    sent = core.receive("p1", flow(1, 0).frame(at_ns, bytes(100)), at_ns)
    return not sent


def test_storm_that_ends_first_leaves_the_other_in_force() -> None:
    core = switch()
    faults = CableFaults({LEAF: core})
    long, _ = faults.add(storm(2), 0)
    short, _ = faults.add(storm(1), 0)
    core.advance(1_500 * MS)
    assert is_held(core, 1_500 * MS)
    faults.remove(short, 1_600 * MS)
    assert is_held(core, 1_700 * MS)
    faults.remove(long, 1_800 * MS)
    core.advance(1_900 * MS)
    assert not is_held(core, 1_950 * MS)


def test_storm_that_is_over_is_said_to_be() -> None:
    faults = CableFaults({LEAF: switch()})
    faults.add(storm(1), 0)
    faults.add(fault("down"), 0)
    assert [one.is_over for one in faults.active(999 * MS)] == [False, False]
    assert [one.is_over for one in faults.active(1_000 * MS)] == [True, False]
