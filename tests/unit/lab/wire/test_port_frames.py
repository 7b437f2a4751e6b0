"""Frames of every class at a port: what faults of the cable do to them, and what a port discards."""

import pytest

from fabric.lab.wire import DropReason, FaultRule, Send, SwitchCore, WireFault
from tests.unit.lab.wire.wiring import LOSSLESS, device, flow, mac, switch

LLDP = bytes.fromhex("0180c200000e") + mac(0) + b"\x88\xcc" + bytes(46)


def come(core: SwitchCore, count: int = 3) -> int:
    """Returns how many frames left, of so many that were sent to the switch."""
    actions = [
        one for psn in range(count) for one in core.receive("p0", flow(0, 1).frame(psn, bytes(100)), psn * 100_000)
    ]
    return sum(isinstance(one, Send) for one in actions)


@pytest.mark.parametrize(
    ("kind", "received"), [(WireFault.DROP, 2), (WireFault.CORRUPT, 3), (WireFault.DUPLICATE, 4), (WireFault.DELAY, 3)]
)
def test_a_port_receives_what_comes_off_its_cable_and_finds_no_error_in_it(kind: WireFault, received: int) -> None:
    core = switch()
    core.faults.add(FaultRule(kind, port="p0", nth=2, delay_ns=1_000))
    sent = come(core)
    sent += sum(isinstance(one, Send) for one in core.advance(10_000_000))
    near, far = core.counters("p0"), core.counters("p1")
    assert (near.rx_packets, near.rx_errors, near.rx_discards, near.tx_packets) == (received, 0, 0, 0)
    assert (far.tx_packets, far.tx_errors, far.tx_discards) == (sent, 0, 0)
    assert sent == received


def test_a_cut_cable_gives_nothing_and_takes_what_is_sent_into_it() -> None:
    core = switch()
    core.faults.set_down("p1", down=True)
    assert come(core) == 0
    assert (core.counters("p0").rx_packets, core.counters("p1").tx_packets) == (3, 3)
    core.receive("p1", flow(1, 0).frame(0, b""), 1_000_000)
    assert core.counters("p1").rx_packets == 0


def test_a_port_that_is_shut_counts_nothing() -> None:
    core = switch()
    core.set_enabled("p0", enabled=False, now_ns=0)
    assert come(core) == 0
    assert core.counters("p0").rx_packets == 0


def test_frames_that_end_at_the_switch_are_received_and_not_discarded() -> None:
    core = switch()
    core.receive("p0", LLDP, 0)
    assert (core.counters("p0").rx_packets, core.counters("p0").rx_discards) == (1, 0)


def test_what_finds_no_room_is_received_and_discarded_there() -> None:
    core = switch(device(headroom_bytes=0), shared_bytes=4_000)
    for number in range(8):
        core.receive("p0", flow(0, 1).frame(number, bytes(1000)), number)
    near = core.counters("p0")
    assert (near.rx_packets, near.rx_discards) == (8, core.tally().refused[DropReason.BUFFER])
    assert near.rx_discards == 5


def test_what_a_queue_drops_is_discarded_where_it_would_have_left() -> None:
    core = switch(device(), shared_bytes=10_000)
    for number in range(9):
        core.receive("p0", flow(0, 1, dscp=0).frame(number, bytes(1000)), number)
    core.advance(1_000_000_000)
    far, lost = core.counters("p1"), core.tally().lost[DropReason.TAIL]
    assert (far.tx_packets, far.tx_discards) == (9 - lost, lost)
    assert lost > 0


def test_what_waits_at_a_port_that_is_shut_is_discarded_there() -> None:
    core = switch()
    core.peer_pauses("p1", LOSSLESS, paused=True, now_ns=0)
    come(core, 2)
    core.set_enabled("p1", enabled=False, now_ns=1_000_000)
    assert (core.counters("p1").tx_packets, core.counters("p1").tx_discards) == (0, 2)
