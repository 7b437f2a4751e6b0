"""Each rule has a device that it alone fails, and leaves that device's right ports alone."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from fabric.compliance import Subject, evaluate, rules
from fabric.plan.model import Note
from fabric.qos import (
    Aqm,
    AqmKind,
    DeviceQos,
    DscpRewrite,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    PriorityGroupQos,
    QueueQos,
    Reference,
    Scheduler,
    SchedulerKind,
    Threshold,
    Trust,
    WatchdogAction,
    dscp_map,
    tc_map,
)
from fabric.state import Status
from tests.unit.compliance.devices import (
    CURVE,
    SPOILED,
    blank,
    device,
    port,
    spoil,
    subject,
    with_group,
    with_queue,
)

DWRR = Scheduler(SchedulerKind.DWRR, weight=50)
PFC = port(SPOILED).pfc
WATCHDOG = PortWatchdog(frozenset({3}), 200, 400, 200, WatchdogAction.DROP)


def _curve(**changes: object) -> PortQos:
    return with_queue(port(SPOILED), QueueQos(3, DWRR, replace(CURVE, **changes)))  # type: ignore[arg-type]


def _with(**changes: object) -> PortQos:
    return replace(port(SPOILED), **changes)  # type: ignore[arg-type]


SPOILED_PORTS: Mapping[str, PortQos] = {
    "port-without-qos": blank(SPOILED),
    "dscp-not-trusted": _with(trust=Trust.PCP),
    "dscp-maps-to-lossy-tc": _with(dscp_to_tc=dscp_map({26: 1, 48: 6}, default=0)),
    "dscp-maps-to-other-tc": _with(
        dscp_to_tc=dscp_map({26: 4, 48: 6}, default=0),
        pfc=replace(PFC, priorities=frozenset({3, 4})),
        watchdog=PortWatchdog(frozenset({3, 4}), 200, 400, 200, WatchdogAction.DROP),
    ),
    "unlisted-dscp-in-lossless-class": _with(dscp_to_tc=dscp_map({24: 3, 26: 3, 48: 6}, default=0)),
    "dscp-rewritten-on-egress": _with(rewrite=DscpRewrite((None, None, None, 24, None, None, None, None))),
    "pfc-not-on-data-priority": _with(pfc=replace(PFC, priorities=frozenset({4}))),
    "pfc-on-other-priority": _with(
        pfc=replace(PFC, priorities=frozenset({0, 3})),
        watchdog=PortWatchdog(frozenset({0, 3}), 200, 400, 200, WatchdogAction.DROP),
    ),
    "pfc-mode-depends-on-dcbx": _with(pfc=replace(PFC, mode=PfcMode.AUTO)),
    "pfc-asymmetric": _with(pfc=replace(PFC, asymmetric=True)),
    "lossless-class-not-closed": _with(pfc_to_queue=tc_map({3: 4}, default=0)),
    "other-class-in-lossless-buffer": _with(tc_to_queue=tc_map({3: 3, 4: 3, 6: 6}, default=0)),
    "cnp-not-in-strict-queue": with_queue(port(SPOILED), QueueQos(6, DWRR)),
    "cnp-class-is-paused": _with(
        pfc=replace(PFC, priorities=frozenset({3, 6})),
        watchdog=PortWatchdog(frozenset({3, 6}), 200, 400, 200, WatchdogAction.DROP),
    ),
    "cnp-queue-has-curve": with_queue(port(SPOILED), QueueQos(6, Scheduler(SchedulerKind.STRICT), CURVE)),
    "ecn-off-on-lossless-queue": with_queue(port(SPOILED), QueueQos(3, DWRR)),
    "wred-drop-on-lossless-queue": with_queue(
        port(SPOILED), QueueQos(3, DWRR, Aqm(AqmKind.DROP, Threshold(4095), Threshold(32760), 100))
    ),
    "ecn-thresholds-reversed": _curve(kmin=Threshold(1_000_000), kmax=Threshold(999_999)),
    "ecn-step-curve": _curve(kmin=Threshold(280_000), kmax=Threshold(280_000)),
    "ecn-pmax-zero": _curve(pmax_percent=0),
    "ecn-thresholds-unscaled": _curve(kmin=Threshold(600_000), kmax=Threshold(6_000_000)),
    "lossless-pg-without-headroom": with_group(port(SPOILED), PriorityGroupQos(3, lossless=True, xoff_bytes=0)),
    "headroom-below-computed": with_group(port(SPOILED), PriorityGroupQos(3, lossless=True, xoff_bytes=49_999)),
    "mtu-below-policy": _with(mtu_bytes=9100),
    "mtu-below-host-mtu": _with(mtu_bytes=8999),
    "pfc-without-watchdog": _with(watchdog=None),
    "watchdog-misses-lossless-priority": _with(watchdog=replace(WATCHDOG, priorities=frozenset({4}))),
    "watchdog-timers-inconsistent": _with(watchdog=replace(WATCHDOG, polling_ms=201)),
    "watchdog-action-differs": _with(watchdog=replace(WATCHDOG, action=WatchdogAction.FORWARD)),
}

SPOILED_TEXTS: Mapping[str, Callable[[DeviceQos], DeviceQos]] = {
    "undefined-reference": lambda q: replace(q, undefined=(Reference("map", "AZURE", "Ethernet0"),)),
    "duplicate-config-key": lambda q: replace(q, duplicates=(Reference("duplicate", "QUEUE|Ethernet0|3", ""),)),
}


def _subject(rule: str, qos: DeviceQos) -> Subject:
    right = subject(qos)
    if rule == "mtu-below-host-mtu":
        return replace(right, plan=None, expected=replace(right.expected, mtu_bytes=1500))
    if rule in {"ecn-step-curve", "ecn-thresholds-reversed"}:
        return replace(right, plan=None, expected=replace(right.expected, ecn_kmin_bytes=None))
    return right


def _failures(one: Subject) -> dict[str, tuple[str, ...]]:
    return {f.rule: f.where.ports for f in evaluate([one]) if f.status is Status.FAIL}


@pytest.mark.parametrize("rule", sorted(SPOILED_PORTS))
def test_spoiled_port_fails_this_rule_alone(rule: str) -> None:
    qos = spoil(device(), SPOILED_PORTS[rule])

    assert _failures(_subject(rule, qos)) == {rule: (SPOILED,)}


@pytest.mark.parametrize("rule", sorted(SPOILED_TEXTS))
def test_spoiled_text_fails_this_rule_alone(rule: str) -> None:
    assert _failures(subject(SPOILED_TEXTS[rule](device()))) == {rule: ()}


@pytest.mark.parametrize("rule", sorted(SPOILED_PORTS))
def test_right_twin_fails_nothing(rule: str) -> None:
    assert _failures(_subject(rule, device())) == {}


def test_corpus_covers_every_registered_rule() -> None:
    assert {*SPOILED_PORTS, *SPOILED_TEXTS} == set(rules.names())


def test_right_device_passes_every_rule_and_leaves_none_open() -> None:
    findings = evaluate([subject()])

    assert {f.status for f in findings} == {Status.PASS}
    assert {f.rule for f in findings} == set(rules.names())
    assert all(f.where.ports in {(), ("Ethernet0", "Ethernet4", "Ethernet12")} for f in findings)


@pytest.mark.parametrize("rule", sorted({*SPOILED_PORTS, *SPOILED_TEXTS}))
def test_every_failure_says_what_was_read_and_what_to_do(rule: str) -> None:
    qos = spoil(device(), SPOILED_PORTS[rule]) if rule in SPOILED_PORTS else SPOILED_TEXTS[rule](device())
    (finding,) = [f for f in evaluate([_subject(rule, qos)]) if f.status is Status.FAIL]

    assert finding.evidence
    assert finding.expected
    assert finding.remedy
    assert "UNKNOWN" not in finding.evidence


def test_pfc_off_in_one_direction_fails() -> None:
    for half in ("rx", "tx"):
        pfc = replace(PFC, rx=half != "rx", tx=half != "tx")
        assert _failures(subject(spoil(device(), _with(pfc=pfc)))) == {"pfc-not-on-data-priority": (SPOILED,)}


def test_pfc_off_on_a_bound_port_fails_once() -> None:
    pfc = PortPfc(PfcMode.OFF, frozenset({3}), rx=False, tx=False, asymmetric=False)

    assert _failures(subject(spoil(device(), _with(pfc=pfc)))) == {"pfc-not-on-data-priority": (SPOILED,)}


def test_every_paused_priority_needs_the_watchdog() -> None:
    qos = spoil(device(), _with(pfc=replace(PFC, priorities=frozenset({2, 3, 6}))))
    found = [f for f in evaluate([subject(qos)]) if f.rule == "watchdog-misses-lossless-priority"]

    assert [(f.status, f.where.priority) for f in found if f.where.ports == (SPOILED,)] == [
        (Status.FAIL, 2),
        (Status.FAIL, 6),
    ]


def test_cnp_dscp_of_a_nic_family_is_judged_like_the_policys() -> None:
    wants = subject(device())
    wants = replace(wants, expected=replace(wants.expected, nic_cnp_dscps=(46, 48)))
    strict = [f for f in evaluate([wants]) if f.rule == "cnp-not-in-strict-queue"]

    assert [(f.status, f.where.details) for f in strict] == [(Status.FAIL, (("dscp", 46),))]
    assert "DSCP 46 → traffic class 0 → queue 0, dwrr" in strict[0].evidence


def test_cable_that_no_device_can_be_told_of_is_not_called_unsaid() -> None:
    wants = subject(with_nos_headroom())
    assert wants.plan is not None
    ports = tuple(replace(one, cable_m=None) for one in wants.plan.qos.ports)
    note = Note("cable-too-long", "a cable of 3000 m", tuple(one.name for one in ports), blocks_lossless=True)
    planned = replace(wants.plan, qos=replace(wants.plan.qos, ports=ports), notes=(note,))
    (found,) = [f for f in evaluate([replace(wants, plan=planned)]) if f.rule == "headroom-below-computed"]

    assert found.status is Status.UNKNOWN
    assert found.evidence.startswith("the cable is longer than any")


def test_port_of_another_speed_than_the_plans_passes_no_rule_on_speed() -> None:
    qos = spoil(device(), _with(speed_mbps=25_000))
    found = {f.rule: f for f in evaluate([subject(qos)]) if SPOILED in f.where.ports and f.status is not Status.PASS}

    assert {rule: one.status for rule, one in found.items()} == {
        "ecn-thresholds-unscaled": Status.FAIL,
        "headroom-below-computed": Status.UNKNOWN,
    }
    assert found["ecn-thresholds-unscaled"].evidence.startswith("the port runs at 25G, and the plan is for 100G")


def with_nos_headroom() -> DeviceQos:
    group = PriorityGroupQos(3, lossless=True, derived_by_nos=True)
    return replace(device(), ports=tuple(with_group(one, group) for one in device().ports))
