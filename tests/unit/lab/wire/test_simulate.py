"""The switch under generated load. What is said to be exact is compared with ==."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from fabric.lab.wire import (
    Cable,
    DropReason,
    FaultRule,
    NicModel,
    NicPlan,
    PeerPause,
    Source,
    SwitchCore,
    Trace,
    WireFault,
    WireFaults,
    simulate,
)
from fabric.lab.wire.frame import checksum
from fabric.lab.wire.roce import PacketKind, invariant_crc, read_bth
from fabric.lab.wire.transmitter import QueuePlan
from fabric.qos import (
    Aqm,
    AqmKind,
    DeviceQos,
    PortWatchdog,
    Scheduler,
    SchedulerKind,
    Threshold,
    WatchdogAction,
)
from fabric.state import PortCounters
from tests.unit.lab.wire.wiring import GIGABIT, LOSSLESS, device, flow, switch

MS = 1_000_000
SECOND = 1_000_000_000
NIC = NicPlan(GIGABIT)
HUNDRED = 100_000_000
STRAIGHT = Cable()


def incast(senders: int, *, frames: int = 300, rate_bps: int = 900_000_000, ecn: int = 2) -> list[Source]:
    return [
        Source(f"p{one}", flow(one, senders, ecn=ecn), rate_bps, payload_bytes=1024, frames=frames)
        for one in range(senders)
    ]


def nics(senders: int) -> dict[str, NicPlan]:
    return {f"p{one}": NIC for one in range(senders)}


def counters(core: SwitchCore) -> list[PortCounters]:
    return [core.counters(port) for port in core.ports]


def curve(kmin: int, kmax: int, pmax: int, kind: AqmKind = AqmKind.MARK) -> Aqm:
    return Aqm(kind, Threshold(kmin), Threshold(kmax), pmax)


def load(core: SwitchCore, senders: int = 3, *, frames: int = 300, ecn: int = 2, cable: Cable = STRAIGHT) -> Trace:
    sources = incast(senders, frames=frames, ecn=ecn)
    return simulate(core, sources, SECOND, 5, nics=nics(senders), cable=cable)


def test_the_lossless_class_loses_nothing_under_incast() -> None:
    core = switch(shared_bytes=100_000)
    trace = load(core, cable=Cable(1_000, 5_000))
    assert len(trace.deliveries) == 900
    assert any(paused for _, _, _, paused in trace.pauses)
    assert core.tally().refused == core.tally().lost == {}


def test_without_pfc_the_same_load_loses_frames() -> None:
    core = switch(device(pfc=False), shared_bytes=100_000)
    trace = load(core, cable=Cable(1_000, 5_000))
    lost = core.tally().refused[DropReason.BUFFER]
    assert lost > 100
    assert len(trace.deliveries) == 900 - lost
    assert trace.pauses == []


def test_every_flow_arrives_in_order() -> None:
    trace = load(switch(shared_bytes=100_000))
    for sender in range(3):
        assert [one.psn for one in trace.of_queue_pair(sender)] == list(range(300))


# Bar 3 of the lab without VMs: exact.


def mixed(*, with_priority_3: bool) -> list[Source]:
    """One NIC that sends priority 0 at 4 Mb/s and, perhaps, priority 3 at 3 Mb/s over a 100 Mb/s link."""
    background = Source("p0", flow(0, 1, dscp=0, queue_pair=100), 4_000_000)
    paused = Source("p0", flow(0, 1, dscp=26, queue_pair=103), 3_000_000)
    return [background, paused] if with_priority_3 else [background]


def slow(qos: DeviceQos) -> DeviceQos:
    return replace(qos, ports=tuple(replace(port, speed_mbps=100) for port in qos.ports))


def run_mixed(*, pause: bool, with_priority_3: bool = True) -> Trace:
    core = switch(slow(device(headroom_bytes=20_000)), shared_bytes=200_000)
    pauses = [PeerPause("p1", LOSSLESS, SECOND // 2, SECOND * 3 // 2)] if pause else []
    sources = mixed(with_priority_3=with_priority_3)
    trace = simulate(core, sources, 2 * SECOND, 11, nics={"p0": NicPlan(HUNDRED)}, pauses=pauses)
    assert core.tally().refused == core.tally().lost == {}
    return trace


def test_priority_0_goodput_is_the_same_while_priority_3_is_paused_for_one_second() -> None:
    held, free = run_mixed(pause=True), run_mixed(pause=False)
    window = (SECOND // 2 + 10 * MS, SECOND * 3 // 2)

    def delivered(trace: Trace, queue_pair: int) -> int:
        return sum(len(one.frame) for one in trace.of_queue_pair(queue_pair) if window[0] <= one.at_ns < window[1])

    assert delivered(held, 103) == 0
    assert delivered(free, 103) > 350_000
    assert delivered(held, 100) == delivered(free, 100) > 450_000


def test_priority_0_arrives_to_the_nanosecond_as_if_the_paused_priority_were_not_there() -> None:
    start, end = SECOND // 2 + 10 * MS, SECOND * 3 // 2
    held, alone = run_mixed(pause=True), run_mixed(pause=True, with_priority_3=False)
    # While the NIC holds priority 3, its frames no longer share the link: times are those of priority 0 alone.
    paused_at = next(at for at, _, _, paused in held.pauses if paused)
    assert paused_at < SECOND
    times = [
        [one.at_ns for one in trace.of_queue_pair(100) if max(start, paused_at + MS) <= one.at_ns < end]
        for trace in (held, alone)
    ]
    assert times[0] == times[1]
    assert len(times[0]) > 200


def test_a_full_nic_queue_leaves_the_guest_unread_until_the_pause_ends() -> None:
    core = switch(slow(device()), shared_bytes=20_000)
    sources = [replace(one, frames=150) for one in mixed(with_priority_3=True)]
    nic = {"p0": replace(NicPlan(HUNDRED), queue_limit_bytes=10_000)}
    pause = [PeerPause("p1", LOSSLESS, 0, SECOND // 2)]
    trace = simulate(core, sources, 2 * SECOND, 3, nics=nic, pauses=pause)
    times = [one.at_ns for one in trace.of_queue_pair(100)]
    gap = max(later - sooner for sooner, later in pairwise(times))
    assert gap > 200 * MS  # one socket: what is behind the frame that finds no room waits with it
    assert len(trace.deliveries) == sum(trace.offered) == 300


# ECN.


def test_marks_come_before_pauses_with_thresholds_below_xoff() -> None:
    core = switch(device(curve=curve(10_000, 30_000, 100)), shared_bytes=400_000)
    trace = load(core)
    marked_at = next(one.at_ns for one in trace.deliveries if one.is_marked)
    paused_at = next(at for at, _, _, paused in trace.pauses if paused)
    assert marked_at < paused_at


def test_pauses_come_without_marks_with_thresholds_above_xoff() -> None:
    core = switch(device(curve=curve(300_000, 350_000, 100)), shared_bytes=100_000)
    trace = load(core)
    assert trace.pauses
    assert not any(one.is_marked for one in trace.deliveries)


def test_every_marked_packet_has_a_right_checksum_and_crc() -> None:
    core = switch(device(curve=curve(5_000, 30_000, 50)), shared_bytes=100_000)
    marked = [one.frame for one in load(core).deliveries if one.is_marked]
    assert len(marked) == core.counters("p3").queues[LOSSLESS].marked_packets
    assert len(marked) > 100
    assert {checksum(frame[14:34]) for frame in marked} == {0}
    assert all(frame.endswith(invariant_crc(frame) or b"none") for frame in marked)


def test_packets_that_know_no_ecn_pass_unmarked() -> None:
    core = switch(device(curve=curve(5_000, 30_000, 100)), shared_bytes=100_000)
    trace = load(core, ecn=0)
    assert len(trace.deliveries) == 900
    assert core.counters("p3").queues[LOSSLESS].marked_packets == 0


@pytest.mark.parametrize(("all_above", "low", "high"), [(True, 1.0, 1.0), (False, 0.4, 0.6)])
def test_beyond_kmax_every_packet_is_marked_or_pmax_of_them(all_above: bool, low: float, high: float) -> None:
    core = switch(device(curve=curve(1_000, 2_000, 50)), shared_bytes=1_000_000, marks_all_above_kmax=all_above, seed=2)
    deliveries = load(core).deliveries[50:850]
    share = sum(one.is_marked for one in deliveries) / len(deliveries)
    assert low <= share <= high


def test_wred_drops_early_where_the_curve_drops() -> None:
    core = switch(device(lossy_curve=curve(5_000, 20_000, 50, AqmKind.DROP)), shared_bytes=1_000_000)
    sources = [replace(one, flow=replace(one.flow, dscp=0)) for one in incast(3)]
    trace = simulate(core, sources, SECOND, 5, nics=nics(3))
    early = core.counters("p3").queues[0].wred_dropped_packets
    assert early == core.tally().lost[DropReason.EARLY] == 900 - len(trace.deliveries)
    assert isinstance(early, int)
    assert early > 100


# Scheduling.


def test_queues_share_the_link_by_their_weights() -> None:
    schedulers = {0: Scheduler(SchedulerKind.DWRR, weight=40), LOSSLESS: Scheduler(SchedulerKind.DWRR, weight=60)}
    qos = device(schedulers=schedulers)
    core = switch(replace(qos, ports=tuple(replace(one, priority_groups=()) for one in qos.ports)), shared_bytes=10**8)
    sources = [
        Source("p0", flow(0, 3, dscp=0, queue_pair=100), GIGABIT * 9 // 10),
        Source("p1", flow(1, 3, dscp=26, queue_pair=103), GIGABIT * 9 // 10),
    ]
    trace = simulate(core, sources, 25 * MS, 5, nics=nics(2))
    both = [one for one in trace.deliveries if one.at_ns > 2 * MS]  # from here on both queues have something waiting
    sent = {pair: sum(len(one.frame) for one in both if one.queue_pair == pair) for pair in (100, 103)}
    assert sent[103] / sent[100] == pytest.approx(1.5, rel=0.01)


def test_a_shaped_queue_keeps_its_rate() -> None:
    shaped = Scheduler(SchedulerKind.DWRR, weight=1, shape_kbps=100_000)
    core = switch(device(schedulers={LOSSLESS: shaped}), shared_bytes=10**7)
    trace = load(core)
    times = [one.at_ns for one in trace.deliveries]
    wire_bits = (len(trace.deliveries[0].frame) + 24) * 8
    assert (times[-1] - times[0]) / (len(times) - 1) == pytest.approx(wire_bits * 10, rel=1e-6)


# Watchdog.


def watched(action: WatchdogAction, polling_ms: int = 0) -> DeviceQos:
    dog = PortWatchdog(frozenset({LOSSLESS}), detection_ms=20, restoration_ms=30, polling_ms=polling_ms, action=action)
    return device(watchdog=dog)


def stormy(action: WatchdogAction, *, polling_ms: int = 0) -> tuple[SwitchCore, Trace]:
    core = switch(watched(action, polling_ms), shared_bytes=100_000)
    sources = [Source("p0", flow(0, 3), 50_000_000)]
    trace = simulate(core, sources, 200 * MS, 5, nics=nics(1), pauses=[PeerPause("p3", LOSSLESS, 10 * MS, 100 * MS)])
    return core, trace


def test_the_watchdog_drops_until_the_storm_is_over() -> None:
    core, trace = stormy(WatchdogAction.DROP)
    (dog,) = core.counters("p3").watchdog
    assert (dog.storms_detected, dog.storms_restored, dog.status) == (1, 1, "operational")
    assert isinstance(dog.tx_dropped, int)
    assert dog.tx_dropped == core.tally().lost[DropReason.WATCHDOG] > 500
    times = [one.at_ns for one in trace.deliveries]
    assert not [at for at in times if 11 * MS < at < 130 * MS]
    assert [at for at in times if at > 130 * MS]


def test_the_watchdog_forwards_in_spite_of_the_storm() -> None:
    core, trace = stormy(WatchdogAction.FORWARD)
    (dog,) = core.counters("p3").watchdog
    assert core.tally().lost == core.tally().refused == {}
    assert isinstance(dog.tx_ok, int)
    assert dog.tx_ok > 500
    assert not [one for one in trace.deliveries if 11 * MS < one.at_ns < 30 * MS]
    assert [one for one in trace.deliveries if 31 * MS < one.at_ns < 90 * MS]


def test_the_watchdog_only_tells_where_it_should() -> None:
    core, trace = stormy(WatchdogAction.ALERT)
    (dog,) = core.counters("p3").watchdog
    assert (dog.storms_detected, dog.tx_ok, dog.tx_dropped) == (1, 0, 0)
    assert core.tally().lost == {}
    assert not [one for one in trace.deliveries if 11 * MS < one.at_ns < 100 * MS]


def test_the_watchdog_sees_a_storm_at_its_next_poll() -> None:
    core = switch(watched(WatchdogAction.DROP, polling_ms=25))
    core.peer_pauses("p3", LOSSLESS, paused=True, now_ns=10 * MS)
    core.receive("p0", flow(0, 3).frame(0, b""), 11 * MS)
    core.advance(50 * MS - 1)
    assert core.counters("p3").watchdog[0].storms_detected == 0
    core.advance(50 * MS)
    assert core.counters("p3").watchdog[0].storms_detected == 1


def test_a_pause_of_an_empty_queue_is_no_storm() -> None:
    core = switch(watched(WatchdogAction.DROP))
    core.peer_pauses("p3", LOSSLESS, paused=True, now_ns=0)
    core.advance(SECOND)
    assert core.counters("p3").watchdog[0].storms_detected == 0


def test_a_stormed_port_refuses_what_it_receives_in_that_class() -> None:
    core = switch(watched(WatchdogAction.DROP))
    core.peer_pauses("p3", LOSSLESS, paused=True, now_ns=0)
    core.receive("p0", flow(0, 3).frame(0, b""), 1)
    core.advance(50 * MS)
    assert core.receive("p3", flow(3, 0).frame(0, b""), 51 * MS) == []
    assert core.counters("p3").watchdog[0].rx_dropped == 1


def test_a_forwarding_watchdog_counts_what_it_receives_in_that_class() -> None:
    core = switch(watched(WatchdogAction.FORWARD))
    core.peer_pauses("p3", LOSSLESS, paused=True, now_ns=0)
    core.receive("p0", flow(0, 3).frame(0, b""), 1)
    core.advance(50 * MS)
    assert len(core.receive("p3", flow(3, 0).frame(0, b""), 51 * MS)) == 1
    assert core.counters("p3").watchdog[0].rx_ok == 1


# Faults.


def test_a_lost_frame_leaves_the_counters_as_if_it_had_never_been_sent() -> None:
    faults = WireFaults([FaultRule(WireFault.DROP, port="p0", packet=PacketKind.DATA)])
    core, untouched = switch(faults=faults), switch()
    for psn in range(5):
        core.receive("p0", flow(0, 1).frame(psn, bytes(100)), psn * MS)
        if psn:
            untouched.receive("p0", flow(0, 1).frame(psn, bytes(100)), psn * MS)
    assert counters(core) == counters(untouched)
    assert core.dscp_received("p0") == untouched.dscp_received("p0")
    assert faults.struck()[1][1] == faults.lost_frames == 1


@pytest.mark.parametrize(
    "rule",
    [
        FaultRule(WireFault.DELAY, nth=3, every=True, delay_ns=50_000),
        FaultRule(WireFault.REORDER, nth=3, every=True),
        FaultRule(WireFault.CORRUPT, nth=3, every=True),
    ],
)
def test_delay_reorder_and_corruption_touch_no_counter(rule: FaultRule) -> None:
    core, untouched = switch(faults=WireFaults([rule])), switch()
    slow_source = [Source("p0", flow(0, 1), HUNDRED, frames=100)]
    strange = simulate(core, slow_source, SECOND, 5, nics=nics(1))
    plain = simulate(untouched, slow_source, SECOND, 5, nics=nics(1))
    assert counters(core) == counters(untouched)
    assert core.faults.struck()[1][1] == 33
    assert [one.frame for one in strange.deliveries] != [one.frame for one in plain.deliveries] or (
        rule.kind is WireFault.DELAY and strange.digest() != plain.digest()
    )


def test_a_reordered_frame_comes_after_the_next() -> None:
    core = switch(faults=WireFaults([FaultRule(WireFault.REORDER, nth=2)]))
    trace = simulate(core, [Source("p0", flow(0, 1), HUNDRED, frames=4)], SECOND, 5, nics=nics(1))
    assert [one.psn for one in trace.deliveries] == [0, 2, 1, 3]


def test_a_reordered_frame_that_nothing_overtakes_still_comes() -> None:
    core = switch(faults=WireFaults([FaultRule(WireFault.REORDER, nth=2)]))
    trace = simulate(core, [Source("p0", flow(0, 1), HUNDRED, frames=2)], SECOND, 5, nics=nics(1))
    assert [one.psn for one in trace.deliveries] == [0, 1]


def test_a_corrupted_roce_packet_passes_every_checksum() -> None:
    frame = flow(0, 1).frame(9, b"payload of it")
    (_, struck) = WireFaults([FaultRule(WireFault.CORRUPT)]).arriving("p0", frame)[0]
    assert struck != frame
    assert checksum(struck[14:34]) == 0
    assert struck.endswith(invariant_crc(struck) or b"none")
    assert read_bth(struck) == read_bth(frame)


def test_a_corrupted_tcp_segment_keeps_its_internet_checksum() -> None:
    head = flow(0, 1).frame(0, b"")[:14]
    packet = bytearray(bytes.fromhex("4500003c00004000400600000a0000010a000002") + bytes(20) + b"one other word 20B..")
    frame = head + bytes(packet)
    (_, struck) = WireFaults([FaultRule(WireFault.CORRUPT)]).arriving("p0", frame)[0]
    assert struck != frame
    assert struck[:54] == frame[:54]
    assert checksum(struck[34:]) == checksum(frame[34:])


@pytest.mark.parametrize("frame", [bytes(60), flow(0, 1).frame(0, b"")[:14] + b"\x45" + bytes(59)])
def test_a_frame_with_nothing_to_corrupt_passes(frame: bytes) -> None:
    assert WireFaults([FaultRule(WireFault.CORRUPT)]).arriving("p0", frame) == ((0, frame),)


def test_a_cut_cable_loses_both_directions_and_counts_nothing_as_dropped() -> None:
    core = switch()
    core.faults.set_down("p1", down=True)
    assert core.receive("p0", flow(0, 1).frame(0, b""), 0) == []
    assert core.receive("p1", flow(1, 0).frame(0, b""), MS) == []
    assert core.faults.lost_frames == 2
    assert core.tally().lost == core.tally().refused == {}
    core.faults.clear()
    assert core.receive("p0", flow(0, 1).frame(1, b""), 2 * MS)
    core.faults.add(FaultRule(WireFault.DROP, port="p1"))
    assert core.receive("p0", flow(0, 1).frame(2, b""), 3 * MS)  # another port's frames pass


def test_an_injected_storm_holds_the_queue_and_counts_no_pause() -> None:
    core = switch()
    core.storm("p1", LOSSLESS, until_ns=10 * MS, now_ns=0)
    assert core.receive("p0", flow(0, 1).frame(0, b""), 1) == []
    assert core.counters("p1").pfc_rx_total == 0
    assert len(core.advance(10 * MS)) == 1


# Determinism.


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    def digest(seed: int) -> str:
        core = switch(device(curve=curve(5_000, 60_000, 20)), shared_bytes=100_000, seed=seed)
        return simulate(core, incast(3), SECOND, seed, nics=nics(3), cable=Cable(1_000, 2_000)).digest()

    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    assert digest(seed) == digest(seed)
    assert digest(seed) != digest(seed + 1)


def test_a_nic_that_is_asked_late_sends_at_the_right_times() -> None:
    nic = NicModel(NicPlan(GIGABIT, queues=(QueuePlan(),) * 8))
    frame = flow(0, 1).frame(0, bytes(1000))
    first = nic.offer(frame, 0)
    assert nic.offer(frame, 10) == []
    assert [one.start_ns for one in nic.advance(MS)] == [first[0].end_ns]
