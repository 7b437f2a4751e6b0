"""What the text cannot tell is UNKNOWN: never a pass, never a failure."""

from dataclasses import replace

import pytest

from fabric.compliance import Expected, HostMtu, PortState, Subject, evaluate
from fabric.plan.model import SwitchPlan
from fabric.qos import (
    UNKNOWN,
    Aqm,
    AqmKind,
    DeviceQos,
    DscpRewrite,
    Fact,
    HeadroomOwner,
    PfcMode,
    PortQos,
    PortWatchdog,
    PriorityGroupQos,
    QueueQos,
    Scheduler,
    SchedulerKind,
    Threshold,
    ThresholdUnit,
    dscp_map,
    tc_map,
)
from fabric.state import Finding, Severity, Status
from tests.unit.compliance.devices import (
    CURVE,
    EXPECTED,
    PORTS,
    SPOILED,
    blank,
    capabilities,
    device,
    port,
    spoil,
    subject,
    with_group,
    with_queue,
)

DWRR = Scheduler(SchedulerKind.DWRR, weight=50)


def _of(one: Subject, rule: str) -> dict[Status, Finding]:
    return {f.status: f for f in evaluate([one]) if f.rule == rule}


def _with(**changes: object) -> PortQos:
    return replace(port(SPOILED), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "bad"),
    [
        ("dscp-not-trusted", _with(trust=UNKNOWN)),
        ("dscp-maps-to-lossy-tc", _with(dscp_to_tc=UNKNOWN)),
        ("dscp-maps-to-lossy-tc", _with(dscp_to_tc=dscp_map({48: 6}))),
        ("unlisted-dscp-in-lossless-class", _with(dscp_to_tc=dscp_map({26: 3, 48: 6}))),
        ("unlisted-dscp-in-lossless-class", _with(dscp_to_tc=UNKNOWN)),
        ("dscp-rewritten-on-egress", _with(rewrite=UNKNOWN)),
        ("pfc-not-on-data-priority", _with(pfc=replace(port(SPOILED).pfc, priorities=UNKNOWN))),
        ("pfc-mode-depends-on-dcbx", _with(pfc=replace(port(SPOILED).pfc, mode=UNKNOWN))),
        ("pfc-asymmetric", _with(pfc=replace(port(SPOILED).pfc, asymmetric=UNKNOWN))),
        ("lossless-class-not-closed", _with(tc_to_queue=None)),
        ("lossless-class-not-closed", _with(pfc_to_pg=UNKNOWN)),
        ("other-class-in-lossless-buffer", _with(tc_to_pg=UNKNOWN)),
        ("cnp-not-in-strict-queue", _with(dscp_to_tc=dscp_map({26: 3}))),
        ("cnp-not-in-strict-queue", _with(tc_to_queue=tc_map({3: 3}))),
        ("cnp-not-in-strict-queue", with_queue(port(SPOILED), QueueQos(6, UNKNOWN))),
        ("cnp-not-in-strict-queue", with_queue(port(SPOILED), QueueQos(6, None))),
        ("cnp-class-is-paused", _with(pfc=replace(port(SPOILED).pfc, priorities=UNKNOWN))),
        ("cnp-class-is-paused", _with(dscp_to_tc=UNKNOWN)),
        ("cnp-queue-has-curve", with_queue(port(SPOILED), QueueQos(6, Scheduler(SchedulerKind.STRICT), UNKNOWN))),
        ("cnp-queue-has-curve", _with(tc_to_queue=UNKNOWN)),
        ("cnp-queue-has-curve", _with(dscp_to_tc=UNKNOWN)),
        ("ecn-off-on-lossless-queue", with_queue(port(SPOILED), QueueQos(3, DWRR, UNKNOWN))),
        ("ecn-off-on-lossless-queue", _with(tc_to_queue=UNKNOWN)),
        ("wred-drop-on-lossless-queue", with_queue(port(SPOILED), QueueQos(3, DWRR, UNKNOWN))),
        ("ecn-thresholds-reversed", with_queue(port(SPOILED), QueueQos(3, DWRR, replace(CURVE, kmin=UNKNOWN)))),
        ("ecn-step-curve", with_queue(port(SPOILED), QueueQos(3, DWRR, replace(CURVE, kmax=UNKNOWN)))),
        ("ecn-pmax-zero", with_queue(port(SPOILED), QueueQos(3, DWRR, replace(CURVE, pmax_percent=UNKNOWN)))),
        ("ecn-thresholds-unscaled", with_queue(port(SPOILED), QueueQos(3, DWRR, replace(CURVE, kmin=UNKNOWN)))),
        ("lossless-pg-without-headroom", with_group(port(SPOILED), None)),
        ("lossless-pg-without-headroom", with_group(port(SPOILED), PriorityGroupQos(3, lossless=UNKNOWN))),
        ("lossless-pg-without-headroom", with_group(port(SPOILED), PriorityGroupQos(3, lossless=True))),
        ("lossless-pg-without-headroom", _with(tc_to_pg=UNKNOWN)),
        ("headroom-below-computed", with_group(port(SPOILED), PriorityGroupQos(3, lossless=True))),
        ("mtu-below-policy", _with(mtu_bytes=UNKNOWN)),
        ("mtu-below-host-mtu", _with(mtu_bytes=UNKNOWN)),
        ("pfc-without-watchdog", _with(watchdog=UNKNOWN)),
        ("watchdog-misses-lossless-priority", _with(watchdog=PortWatchdog(UNKNOWN))),
        ("watchdog-timers-inconsistent", _with(watchdog=PortWatchdog(frozenset({3}), 200))),
        ("watchdog-action-differs", _with(watchdog=PortWatchdog(frozenset({3}), 200, 400, 200))),
    ],
)
def test_missing_fact_is_unknown_on_that_port_alone(rule: str, bad: PortQos) -> None:
    found = _of(subject(spoil(device(), bad)), rule)

    assert set(found) == {Status.UNKNOWN, Status.PASS}
    assert found[Status.UNKNOWN].where.ports == (SPOILED,)
    assert found[Status.UNKNOWN].remedy
    assert SPOILED not in found[Status.PASS].where.ports


def test_thresholds_in_segments_are_not_taken_for_bytes() -> None:
    segments = Aqm(AqmKind.MARK, Threshold(2000, ThresholdUnit.SEGMENTS), Threshold(10_000, ThresholdUnit.SEGMENTS), 20)
    one = subject(spoil(device(), with_queue(port(SPOILED), QueueQos(3, DWRR, segments))))

    assert _of(one, "ecn-thresholds-unscaled")[Status.UNKNOWN].where.ports == (SPOILED,)
    assert set(_of(one, "ecn-thresholds-reversed")) == {Status.PASS}


def test_thresholds_in_two_units_cannot_be_compared() -> None:
    mixed = replace(CURVE, kmin=Threshold(2000, ThresholdUnit.SEGMENTS))
    one = subject(spoil(device(), with_queue(port(SPOILED), QueueQos(3, DWRR, mixed))))

    assert Status.UNKNOWN in _of(one, "ecn-thresholds-reversed")


def test_curve_that_the_device_chooses_marks_and_has_no_thresholds_to_judge() -> None:
    own = Aqm(AqmKind.DYNAMIC_MARK, UNKNOWN, UNKNOWN, UNKNOWN)
    one = subject(spoil(device(), with_queue(port(SPOILED), QueueQos(3, DWRR, own))))

    assert set(_of(one, "ecn-off-on-lossless-queue")) == {Status.PASS}
    assert _of(one, "ecn-thresholds-reversed")[Status.PASS].where.ports == ("Ethernet0", "Ethernet12")


def test_speed_that_nobody_knows_leaves_the_scale_open_without_a_plan() -> None:
    one = Subject(spoil(device(), _with(speed_mbps=UNKNOWN)), EXPECTED)

    assert _of(one, "ecn-thresholds-unscaled")[Status.UNKNOWN].where.ports == (SPOILED,)


def test_headroom_that_the_device_computes_passes_when_it_knows_the_cable() -> None:
    derived = PriorityGroupQos(3, lossless=True, derived_by_nos=True)
    one = subject(spoil(device(), with_group(port(SPOILED), derived)))

    assert set(_of(one, "lossless-pg-without-headroom")) == {Status.PASS}
    assert set(_of(one, "headroom-below-computed")) == {Status.PASS}


def test_headroom_that_the_device_computes_for_a_shorter_cable_fails() -> None:
    derived = PriorityGroupQos(3, lossless=True, derived_by_nos=True)
    short = replace(with_group(port(SPOILED), derived), cable_m=5)

    found = _of(subject(spoil(device(), short)), "headroom-below-computed")

    assert found[Status.FAIL].where.ports == (SPOILED,)
    assert "5 m" in found[Status.FAIL].evidence
    assert "40 m" in found[Status.FAIL].expected


def test_headroom_that_the_device_computes_is_open_without_a_cable_length() -> None:
    derived = PriorityGroupQos(3, lossless=True, derived_by_nos=True)
    one = subject(spoil(device(), replace(with_group(port(SPOILED), derived), cable_m=None)))

    assert Status.UNKNOWN in _of(one, "headroom-below-computed")


def test_headroom_is_open_without_a_plan_to_compare_with() -> None:
    assert set(_of(Subject(device(), EXPECTED), "headroom-below-computed")) == {Status.UNKNOWN}


def test_platform_without_priority_groups_is_judged_by_its_queues_alone() -> None:
    hidden = tuple(replace(port(name), tc_to_pg=UNKNOWN, pfc_to_pg=UNKNOWN) for name in PORTS)
    one = replace(
        subject(replace(device(), ports=hidden)), capabilities=capabilities(owner=HeadroomOwner.PLATFORM), plan=None
    )

    assert set(_of(one, "lossless-class-not-closed")) == {Status.PASS}
    assert set(_of(one, "other-class-in-lossless-buffer")) == {Status.PASS}


def test_port_left_to_dcbx_is_judged_by_what_was_shown_only_with_willing_hosts() -> None:
    auto = spoil(device(), _with(pfc=replace(port(SPOILED).pfc, mode=PfcMode.AUTO)))
    up = (PortState(SPOILED, frozenset({3})),)
    willing = replace(EXPECTED, host_dcbx_willing=True)
    rule = "pfc-mode-depends-on-dcbx"

    assert set(_of(replace(subject(auto, expected=willing), states=up), rule)) == {Status.PASS}
    assert _of(replace(subject(auto), states=up), rule)[Status.FAIL].where.ports == (SPOILED,)
    assert _of(subject(auto, expected=willing), rule)[Status.FAIL].where.priority == 3


def test_device_that_switches_pfc_off_at_once_fails_on_every_port() -> None:
    found = _of(subject(replace(device(), pfc_disabled_globally=True)), "pfc-not-on-data-priority")

    assert found[Status.FAIL].where.ports == PORTS


def test_mtu_is_open_only_where_the_header_may_or_may_not_be_counted() -> None:
    def status(mtu_bytes: int) -> set[Status]:
        qos = DeviceQos("leaf1", "sonic", (replace(port("Ethernet0"), mtu_bytes=mtu_bytes),))
        return set(_of(Subject(qos, replace(EXPECTED, mtu_bytes=None)), "mtu-below-host-mtu"))

    assert status(9014) == {Status.PASS}
    assert status(9013) == {Status.UNKNOWN}
    assert status(9000) == {Status.UNKNOWN}
    assert status(8999) == {Status.FAIL}


def test_tagged_hosts_need_four_more_bytes() -> None:
    qos = DeviceQos("leaf1", "sonic", (replace(port("Ethernet0"), mtu_bytes=9000),))
    plain = replace(EXPECTED, mtu_bytes=None)
    tagged = replace(plain, host_mtus=(HostMtu(9000, tagged=True),))

    assert set(_of(Subject(qos, plain, capabilities()), "mtu-below-host-mtu")) == {Status.PASS}
    assert set(_of(Subject(qos, tagged, capabilities()), "mtu-below-host-mtu")) == {Status.FAIL}


def test_policy_mtu_is_cut_to_what_the_os_can_do() -> None:
    one = Subject(device(), replace(EXPECTED, mtu_bytes=10_000), capabilities())

    assert set(_of(one, "mtu-below-policy")) == {Status.PASS}
    assert set(_of(replace(one, capabilities=None), "mtu-below-policy")) == {Status.FAIL}


def test_what_nobody_asked_for_is_not_judged() -> None:
    nothing = Expected(lossless=False, cnp_dscp=None, unlisted_allowed=True, ecn=False, watchdog=False)

    rules = {f.rule for f in evaluate([Subject(device(), nothing)])}

    assert rules == {
        "dscp-maps-to-lossy-tc",
        "dscp-maps-to-other-tc",
        "dscp-not-trusted",
        "dscp-rewritten-on-egress",
        "duplicate-config-key",
        "ecn-pmax-zero",
        "ecn-step-curve",
        "ecn-thresholds-reversed",
        "port-without-qos",
        "undefined-reference",
    }


def test_planned_port_that_the_device_lacks_fails() -> None:
    qos = device(names=("Ethernet0",))
    one = replace(subject(qos), plan=SwitchPlan("leaf1", "sonic", device()))

    assert _of(one, "port-without-qos")[Status.FAIL].where.ports == ("Ethernet4", "Ethernet12")


def test_port_outside_the_plan_is_not_judged() -> None:
    one = subject(replace(device(), ports=(*device().ports, blank("Ethernet99"))))

    assert {f.status for f in evaluate([one])} == {Status.PASS}


def test_ports_that_the_caller_names_are_judged_alone() -> None:
    one = replace(subject(spoil(device(), blank(SPOILED))), ports=("Ethernet0",))

    assert {f.where.ports for f in evaluate([one])} == {(), ("Ethernet0",)}


def test_port_that_is_covered_by_the_map_of_the_device_alone_is_not_bound() -> None:
    covered = replace(blank(SPOILED), dscp_to_tc=port(SPOILED).dscp_to_tc)
    qos = replace(spoil(device(), covered), global_dscp_to_tc=port(SPOILED).dscp_to_tc)

    assert _of(subject(qos), "port-without-qos")[Status.FAIL].where.ports == (SPOILED,)


def test_eos_polling_must_fit_twice_into_the_shorter_timer() -> None:
    watchdog = PortWatchdog(frozenset({3}), 200, 400, 101)
    bad = _with(watchdog=watchdog)
    rule = "watchdog-timers-inconsistent"

    eos = Subject(
        DeviceQos("leaf1", "eos", (bad,)), EXPECTED, replace(capabilities(), watchdog_polls_per_timer=Fact(2, "test"))
    )

    assert _of(eos, rule)[Status.FAIL].where.ports == (SPOILED,)
    assert "2 times polling 101 ms" in _of(eos, rule)[Status.FAIL].evidence
    assert set(_of(subject(spoil(device(), bad)), rule)) == {Status.PASS}


def test_polling_of_the_device_holds_where_the_port_has_none() -> None:
    watchdog = PortWatchdog(frozenset({3}), 200, 400)
    qos = spoil(replace(device(), watchdog_polling_ms=300), _with(watchdog=watchdog))

    found = _of(subject(qos), "watchdog-timers-inconsistent")

    assert found[Status.FAIL].where.ports == (SPOILED,)
    assert found[Status.FAIL].severity is Severity.WARNING


def test_bare_port_left_to_dcbx_waits_for_the_host() -> None:
    waiting = replace(blank(SPOILED), pfc=replace(blank(SPOILED).pfc, mode=PfcMode.AUTO, priorities=UNKNOWN))
    one = subject(spoil(device(), waiting))

    assert _of(one, "pfc-mode-depends-on-dcbx")[Status.FAIL].where.ports == (SPOILED,)
    assert set(_of(one, "port-without-qos")) == {Status.PASS}


def test_cnps_in_the_data_class_fail_for_their_queue_and_not_for_its_curve() -> None:
    one = subject(spoil(device(), _with(dscp_to_tc=dscp_map({26: 3, 48: 3}, default=0))))

    assert _of(one, "cnp-not-in-strict-queue")[Status.FAIL].where.priority == 3
    assert SPOILED not in _of(one, "cnp-queue-has-curve")[Status.PASS].where.ports


def test_rewrite_of_cnps_fails_and_one_to_the_same_dscp_does_not() -> None:
    def status(cnp_to: int) -> set[Status]:
        rewrite = DscpRewrite((None, None, None, 26, None, None, cnp_to, None))
        return set(_of(subject(spoil(device(), _with(rewrite=rewrite))), "dscp-rewritten-on-egress"))

    assert status(46) == {Status.FAIL, Status.PASS}
    assert status(48) == {Status.PASS}
