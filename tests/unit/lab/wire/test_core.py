from dataclasses import replace

import pytest

from fabric.lab.wire import DropReason, PausePeer, Platform, Send, SwitchCore
from fabric.lab.wire.pfc import pfc_frame, read_pfc
from fabric.lab.wire.platform import plan_switch
from fabric.qos import (
    UNKNOWN,
    Aqm,
    AqmKind,
    BufferPool,
    DeviceQos,
    DscpRewrite,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    PriorityGroupQos,
    QueueQos,
    Scheduler,
    SchedulerKind,
    Threshold,
    ThresholdUnit,
    Trust,
    tc_map,
)
from tests.unit.lab.wire.wiring import LOSSLESS, device, flow, mac, switch

FRAME = flow(0, 1).frame(0, bytes(1000))


def sends(actions: list[object]) -> list[Send]:
    return [one for one in actions if isinstance(one, Send)]


def test_a_frame_to_an_unknown_address_goes_to_all_other_ports_and_is_counted_once_in_the_buffer() -> None:
    core = switch(known_ports=())
    out = sends([*core.receive("p0", FRAME, 0)])
    assert [one.port for one in out] == ["p1", "p2", "p3"]
    assert core.buffer.charged_bytes == 0
    tally = core.tally()
    assert (tally.received, tally.admitted, tally.copies, tally.sent) == (1, 1, 3, 3)


def test_an_address_is_learned_from_its_source() -> None:
    core = switch(known_ports=())
    core.receive("p2", flow(2, 9).frame(0, b""), 0)
    out = sends([*core.receive("p0", flow(0, 2).frame(0, b""), 1_000_000)])
    assert [one.port for one in out] == ["p2"]


def test_a_fixed_address_does_not_move() -> None:
    core = switch()
    core.receive("p3", flow(1, 2).frame(0, b""), 0)
    assert [one.port for one in sends([*core.receive("p0", FRAME, 1_000_000)])] == ["p1"]


def test_a_frame_takes_as_long_as_its_bits() -> None:
    (out,) = sends([*switch().receive("p0", FRAME, 500)])
    assert (out.start_ns, out.end_ns) == (500, 500 + (len(FRAME) + 24) * 8)


def test_link_local_frames_end_at_the_switch() -> None:
    core = switch()
    lldp = bytes.fromhex("0180c200000e") + mac(0) + b"\x88\xcc" + bytes(46)
    assert core.receive("p0", lldp, 0) == []
    assert core.tally().refused == {DropReason.CONTROL: 1}


def test_a_frame_that_would_go_back_is_dropped() -> None:
    core = switch()
    assert core.receive("p1", FRAME, 0) == []
    assert core.tally().refused == {DropReason.NO_WAY: 1}


def test_a_runt_is_dropped() -> None:
    core = switch()
    assert core.receive("p1", bytes(5), 0) == []
    assert core.tally().refused == {DropReason.MALFORMED: 1}


def test_a_packet_larger_than_the_mtu_is_dropped_and_one_of_its_size_passes() -> None:
    core = switch(device(mtu_bytes=1060))  # 20 IP + 8 UDP + 12 BTH + 4 ICRC
    assert sends([*core.receive("p0", flow(0, 1).frame(0, bytes(1016)), 0)])
    assert core.receive("p0", flow(0, 1).frame(0, bytes(1020)), 1_000_000) == []
    assert core.tally().refused == {DropReason.MTU: 1}


def test_the_mtu_of_the_way_out_counts_too() -> None:
    qos = device()
    small = replace(qos.ports[1], mtu_bytes=1000)
    core = switch(replace(qos, ports=(qos.ports[0], small, *qos.ports[2:])))
    assert core.receive("p0", FRAME, 0) == []
    assert core.tally().lost == {DropReason.MTU: 1}
    assert core.buffer.charged_bytes == 0


@pytest.mark.parametrize(
    ("trust", "vlan", "queue"),
    [
        (Trust.DSCP, None, 3),
        (Trust.DSCP, (5, 1), 3),
        (Trust.PCP, (5, 1), 5),
        (Trust.PCP, None, 0),
        (Trust.BOTH, (5, 1), 3),
        (Trust.NONE, (5, 1), 0),
    ],
)
def test_the_trusted_field_chooses_the_queue(trust: Trust, vlan: tuple[int, int] | None, queue: int) -> None:
    core = switch(device(trust=trust))
    core.receive("p0", replace(flow(0, 1), vlan=vlan).frame(0, bytes(100)), 0)
    assert [one.packets for one in core.counters("p1").queues] == [int(one == queue) for one in range(8)]


def test_received_packets_are_counted_by_dscp() -> None:
    core = switch()
    core.receive("p0", FRAME, 0)
    counts = core.dscp_received("p0")
    assert counts[26] == sum(counts) == 1


def test_a_group_over_its_threshold_pauses_its_peer_and_resumes_it() -> None:
    core = switch(shared_bytes=10_000)
    seen: list[tuple[int, bool]] = []
    for number in range(8):
        actions = core.receive("p0", flow(0, 1).frame(number, bytes(1000)), number)
        seen += [(number, one.paused) for one in actions if isinstance(one, PausePeer)]
    assert seen == [(5, True)]  # alpha 1: the sixth no longer finds T = free above what the group holds
    later = core.advance(1_000_000_000)
    assert [(one.port, one.priority, one.paused) for one in later if isinstance(one, PausePeer)] == [
        ("p0", LOSSLESS, False)
    ]
    assert core.counters("p0").pfc_tx_frames == (0, 0, 0, 2, 0, 0, 0, 0)
    assert core.buffer.charged_bytes == 0


def test_without_room_above_the_threshold_frames_are_lost_and_counted() -> None:
    core = switch(device(headroom_bytes=0), shared_bytes=4_000)
    for number in range(8):
        core.receive("p0", flow(0, 1).frame(number, bytes(1000)), number)
    dropped = core.counters("p0").pg_dropped_packets
    assert isinstance(dropped, tuple)
    assert dropped[LOSSLESS] == core.tally().refused[DropReason.BUFFER] == 5


def test_a_lossy_queue_drops_at_its_tail() -> None:
    core = switch(device(), shared_bytes=10_000)
    for number in range(9):
        core.receive("p0", flow(0, 1, dscp=0).frame(number, bytes(1000)), number)
    (queue,) = [one for one in core.counters("p1").queues if one.dropped_packets]
    assert (queue.queue, queue.dropped_packets) == ("0", core.tally().lost[DropReason.TAIL])
    assert core.counters("p0").pfc_tx_total == 0


def test_a_paused_queue_is_held_and_others_go_on() -> None:
    core = switch()
    core.peer_pauses("p1", LOSSLESS, paused=True, now_ns=0)
    assert core.receive("p0", FRAME, 1) == []
    assert sends([*core.receive("p0", flow(0, 1, dscp=0).frame(0, b""), 2)])
    assert sends([*core.peer_pauses("p1", LOSSLESS, paused=False, now_ns=1_000_000)])
    assert core.counters("p1").pfc_rx_frames == (0, 0, 0, 2, 0, 0, 0, 0)


def test_a_pause_of_a_priority_without_pfc_is_counted_and_not_obeyed() -> None:
    core = switch(device(pfc=False))
    core.peer_pauses("p1", LOSSLESS, paused=True, now_ns=0)
    assert sends([*core.receive("p0", FRAME, 1)])
    assert core.counters("p1").pfc_rx_total == 1


def test_a_pfc_frame_pauses_for_its_quanta() -> None:
    core = switch()
    core.receive("p1", pfc_frame(mac(1), {LOSSLESS: 1000}), 0)
    assert core.receive("p0", FRAME, 1) == []
    assert core.next_timer_ns() == 512_000
    (out,) = sends([*core.advance(600_000)])
    assert out.start_ns == 512_000


def test_a_pfc_frame_with_zero_quanta_resumes() -> None:
    core = switch()
    core.receive("p1", pfc_frame(mac(1), {LOSSLESS: 1000}), 0)
    core.receive("p0", FRAME, 1)
    assert len(sends([*core.receive("p1", pfc_frame(mac(1), {LOSSLESS: 0}), 100)])) == 1


def test_pauses_leave_as_frames_on_request_and_are_refreshed_while_they_last() -> None:
    core = switch(shared_bytes=10_000, pfc_frames=True)
    core.peer_pauses("p1", LOSSLESS, paused=True, now_ns=0)
    out: list[object] = []
    for number in range(8):
        out += core.receive("p0", flow(0, 1).frame(number, bytes(1000)), number)
    out += core.advance(20_000_000)
    pauses = [(one.start_ns, read_pfc(one.frame)) for one in sends(out) if one.port == "p0"]
    assert pauses == [(4, {LOSSLESS: 0xFFFF}), (4 + 16_776_960, {LOSSLESS: 0xFFFF})]
    end = core.peer_pauses("p1", LOSSLESS, paused=False, now_ns=20_000_000) + core.advance(60_000_000)
    assert [read_pfc(one.frame) for one in sends([*end]) if one.port == "p0"] == [{LOSSLESS: 0}]


def test_a_strict_queue_overtakes() -> None:
    core = switch(device(schedulers={6: Scheduler(SchedulerKind.STRICT)}))
    for number in range(3):
        core.receive("p0", flow(0, 1).frame(number, bytes(1000)), 0)
    core.receive("p0", flow(0, 1, dscp=48, queue_pair=6).frame(0, b""), 1)
    order = [len(one.frame) for one in sends([*core.advance(1_000_000)])]
    assert order[0] < order[1] == order[2]


def test_dscp_is_rewritten_on_the_way_out() -> None:
    qos = device()
    out = replace(qos.ports[1], rewrite=DscpRewrite((None, None, None, 10, None, None, None, None)))
    core = switch(replace(qos, ports=(qos.ports[0], out)))
    (sent,) = sends([*core.receive("p0", FRAME, 0)])
    assert sent.frame[15] >> 2 == 10


def test_another_configuration_holds_from_now_and_keeps_what_is_queued() -> None:
    core = switch(shared_bytes=10_000)
    for number in range(8):
        core.receive("p0", flow(0, 1).frame(number, bytes(1000)), number)
    actions = core.configure(device(pfc=False), 10)
    assert [one for one in actions if isinstance(one, PausePeer)] == [PausePeer("p0", LOSSLESS, False, 10)]
    assert len(sends([*core.advance(1_000_000)])) == 7
    assert core.tally().queued == 0


def test_headroom_from_a_shared_pool_ends_with_the_pool() -> None:
    qos = replace(device(headroom_bytes=40_000), headroom_pool_bytes=3_000)
    core = switch(qos, shared_bytes=4_000)
    core.peer_pauses("p1", LOSSLESS, paused=True, now_ns=0)
    for number in range(8):
        core.receive("p0", flow(0, 1).frame(number, bytes(1000)), number)
    assert core.buffer.headroom_used_bytes == 2 * len(FRAME)
    assert core.tally().refused == {DropReason.BUFFER: 4}
    assert core.depth_bytes("p1", LOSSLESS) == 4 * len(FRAME)


@pytest.mark.parametrize(("never_drops", "dropped"), [(True, 0), (False, 1)])
def test_an_egress_profile_says_whether_a_lossless_frame_may_be_dropped(never_drops: bool, dropped: int) -> None:
    qos = device()
    queues = (QueueQos(LOSSLESS, lossless_buffer=never_drops),)
    qos = replace(qos, ports=tuple(replace(port, queues=queues) for port in qos.ports))
    core = SwitchCore(qos, Platform(shared_bytes=10_000, queue_alpha_log2=-4), draw=_Never())
    core.learn(mac(1), "p1")
    core.receive("p0", FRAME, 0)
    assert core.tally().lost.get(DropReason.TAIL, 0) == dropped


def test_a_refreshed_pause_lasts_till_its_last_expiry() -> None:
    core = switch()
    core.receive("p1", pfc_frame(mac(1), {LOSSLESS: 1000}), 0)
    core.receive("p1", pfc_frame(mac(1), {LOSSLESS: 1000}), 100_000)  # refreshed
    core.receive("p0", FRAME, 100_001)
    assert core.advance(600_000) == []
    assert len(sends([*core.advance(612_000)])) == 1


# What the configuration is taken to mean.


def port_of(port: PortQos, **platform: object) -> SwitchCore:
    return SwitchCore(
        DeviceQos("leaf1", "eos", (port, PortQos("p1"))),
        Platform(shared_bytes=100_000, rate_bps=1_000_000_000, **platform),  # type: ignore[arg-type]
        draw=_Never(),
    )


class _Never:
    def randrange(self, stop: int, /) -> int:
        raise AssertionError(f"nothing should be drawn of {stop}")


def test_a_switch_without_a_buffer_size_is_refused() -> None:
    with pytest.raises(ValueError, match="no ingress pool has a size"):
        plan_switch(DeviceQos("leaf1", "sonic"), Platform())


def test_a_port_without_a_speed_is_refused() -> None:
    with pytest.raises(ValueError, match="p0 has no speed"):
        plan_switch(DeviceQos("leaf1", "sonic", (PortQos("p0"),)), Platform(shared_bytes=1))


def test_the_pool_of_the_configuration_is_the_buffer() -> None:
    pools = (BufferPool("in", "ingress", 7_000), BufferPool("out", "egress", 9_000))
    assert plan_switch(DeviceQos("leaf1", "sonic", pools=pools), Platform()).shared_bytes == 7_000


def test_what_cannot_be_obeyed_is_said() -> None:
    percent = Threshold(10, ThresholdUnit.PERCENT)
    aqm = Aqm(AqmKind.MARK, percent, percent, 100)
    core = port_of(
        PortQos(
            "p0",
            queues=(
                QueueQos(3, aqm=aqm),
                QueueQos(4, aqm=UNKNOWN, scheduler=Scheduler(SchedulerKind.DWRR, guaranteed_kbps=5)),
            ),
        )
    )
    assert len(core.unresolved) == 3
    assert "10 percent" in "".join(core.unresolved)


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (Threshold(3, ThresholdUnit.SEGMENTS), 624),
        (Threshold(10, ThresholdUnit.PERCENT), 5_000),
        (Threshold(8_000, ThresholdUnit.NANOSECONDS), 1_000),
        (Threshold(77), 77),
    ],
)
def test_thresholds_become_bytes_where_the_platform_has_the_denominator(threshold: Threshold, expected: int) -> None:
    qos = DeviceQos(
        "leaf1", "eos", (PortQos("p0", queues=(QueueQos(0, aqm=Aqm(AqmKind.MARK, threshold, threshold, 1)),)),)
    )
    platform = Platform(shared_bytes=1, rate_bps=1_000_000_000, segment_bytes=208, queue_buffer_bytes=50_000)
    curve = plan_switch(qos, platform).ports[0].curves[0]
    assert curve is not None
    assert curve.kmin_bytes == expected


def test_pfc_left_to_dcbx_is_as_the_platform_says() -> None:
    port = PortQos("p0", pfc=PortPfc(PfcMode.AUTO, frozenset({3})))
    qos = DeviceQos("leaf1", "nxos", (port,))
    for auto_pfc in (False, True):
        platform = Platform(shared_bytes=1, rate_bps=1, auto_pfc=auto_pfc, lossless_by_pfc=True, headroom_bytes=9)
        plan = plan_switch(qos, platform).ports[0]
        assert plan.pfc_rx == (frozenset({3}) if auto_pfc else frozenset())
        assert plan.groups[3].headroom_bytes == (9 if auto_pfc else 0)


def test_one_line_turns_pfc_off_everywhere() -> None:
    qos = replace(device(), pfc_disabled_globally=True)
    assert all(not port.pfc_rx for port in plan_switch(qos, Platform(shared_bytes=1)).ports)


def test_asymmetric_pfc_obeys_on_all_priorities() -> None:
    port = PortQos("p0", pfc=PortPfc(PfcMode.ON, frozenset({3}), asymmetric=True, tx=False))
    plan = plan_switch(DeviceQos("leaf1", "sonic", (port,)), Platform(shared_bytes=1, rate_bps=1)).ports[0]
    assert plan.pfc_rx == frozenset(range(8))
    assert all(not group.pauses for group in plan.groups)
    deaf = replace(port, pfc=replace(port.pfc, rx=False))
    assert not plan_switch(DeviceQos("leaf1", "s", (deaf,)), Platform(shared_bytes=1, rate_bps=1)).ports[0].pfc_rx


def test_the_device_wide_map_holds_where_the_port_has_none() -> None:
    dscps = tuple(5 if dscp == 26 else None for dscp in range(64))
    qos = DeviceQos("leaf1", "eos", (PortQos("p0", tc_to_queue=tc_map({5: 2})),), global_dscp_to_tc=dscps)
    plan = plan_switch(qos, Platform(shared_bytes=1, rate_bps=1)).ports[0]
    assert (plan.dscp_to_tc[26], plan.dscp_to_tc[0], plan.tc_to_queue[5], plan.tc_to_queue[1]) == (5, 0, 2, 1)


def test_a_dynamic_curve_and_a_watchdog_without_timers_are_left_out_and_said() -> None:
    aqm = Aqm(AqmKind.DYNAMIC_MARK, UNKNOWN, UNKNOWN, 5)
    port = PortQos("p0", queues=(QueueQos(3, aqm=aqm),), watchdog=PortWatchdog(frozenset({3})))
    plan = plan_switch(DeviceQos("leaf1", "vrp", (port,)), Platform(shared_bytes=1, rate_bps=1))
    assert plan.ports[0].curves[3] is None
    assert plan.ports[0].watchdogs == ()
    assert len(plan.unresolved) == 2


def test_a_size_that_counts_the_headroom_leaves_the_rest_as_reserve() -> None:
    group = PriorityGroupQos(3, lossless=True, xoff_bytes=47_104, xon_bytes=18_432, size_bytes=65_536)
    plan = plan_switch(
        DeviceQos("leaf2", "sonic", (PortQos("p0", priority_groups=(group,)),)), Platform(shared_bytes=1, rate_bps=1)
    ).ports[0]
    assert (plan.groups[3].reserved_bytes, plan.groups[3].headroom_bytes) == (18_432, 47_104)


@pytest.mark.parametrize("with_profile", [True, False])
def test_pfc_without_headroom_loses_frames_whether_or_not_it_pauses(with_profile: bool) -> None:
    """The cases of SONiC issue 480: a profile without xoff, and no profile, for the group that PFC pauses."""
    qos = device(headroom_bytes=0)
    if not with_profile:
        qos = replace(qos, ports=tuple(replace(port, priority_groups=()) for port in qos.ports))
    core = switch(qos, shared_bytes=4_000)
    actions = [one for n in range(8) for one in core.receive("p0", flow(0, 1).frame(n, bytes(1000)), n)]
    assert any(isinstance(one, PausePeer) for one in actions) is with_profile
    tally = core.tally()
    assert sum(tally.refused.values()) + sum(tally.lost.values()) > 0
