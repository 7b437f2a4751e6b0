"""Findings name all ports of one cause, in natural order, and come out in one order."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.compliance import HostMtu, Judgement, Subject, evaluate, evaluate_links, expected_of, rules
from fabric.compliance.grouping import group
from fabric.compliance.hints import hint
from fabric.intent.model import EcnOverride, Endpoint, Link, RocePolicy
from fabric.qos import UNKNOWN, dscp_map
from fabric.registry import UnknownNameError
from fabric.state import Finding, Severity, Status
from tests.unit.compliance.devices import EXPECTED, capabilities, device, port, spoil, subject


def _group(*judged: tuple[str, Judgement]) -> tuple[Finding, ...]:
    return group(judged, rule="some-rule", severity=Severity.ERROR, device="leaf1")


def test_ports_with_one_cause_share_a_finding_in_natural_order() -> None:
    bad = Judgement(Status.FAIL, "no headroom", "headroom", "add it", 3)

    (finding,) = _group(("Ethernet12", bad), ("Ethernet4", bad))

    assert finding.where.ports == ("Ethernet4", "Ethernet12")
    assert finding.where.priority == 3
    assert finding.evidence == "no headroom"


def test_different_evidence_of_one_cause_names_its_ports() -> None:
    ports = [f"Ethernet{n}" for n in range(6)]
    judged = [(name, Judgement(Status.FAIL, "lossy", priority=3)) for name in ports[:5]]

    (finding,) = _group(*judged, ("Ethernet5", Judgement(Status.FAIL, "0 B", priority=3)))

    assert finding.evidence == "Ethernet0, Ethernet1, Ethernet2 and 2 more: lossy; Ethernet5: 0 B"
    assert finding.expected == ""


def test_causes_with_different_details_stay_apart() -> None:
    one = Judgement(Status.FAIL, "a", details=(("found_tc", 0),))
    two = Judgement(Status.FAIL, "b", details=(("found_tc", 1),))

    assert [f.where.ports for f in _group(("p1", one), ("p2", two), ("p3", one))] == [("p1", "p3"), ("p2",)]


def test_port_that_fails_in_one_respect_is_not_among_those_that_pass() -> None:
    bad, good = Judgement(Status.FAIL, "no"), Judgement(Status.PASS, "yes")

    findings = _group(("p1", good), ("p1", bad), ("p2", good))

    assert [(f.status, f.where.ports) for f in findings] == [(Status.FAIL, ("p1",)), (Status.PASS, ("p2",))]


def test_two_data_dscps_in_one_wrong_class_are_one_finding() -> None:
    bad = replace(port("Ethernet4"), dscp_to_tc=dscp_map({24: 1, 26: 1, 48: 6}, default=0))
    one = subject(spoil(device(), bad), expected=replace(EXPECTED, data_dscps=(24, 26)))

    found = [f for f in evaluate([one]) if f.rule == "dscp-maps-to-lossy-tc" and "Ethernet4" in f.where.ports]

    assert [(f.status, f.where.details) for f in found] == [(Status.FAIL, (("dscp", "24, 26"), ("found_tc", 1)))]


@given(st.randoms(use_true_random=False))
def test_order_of_devices_and_rules_does_not_change_the_result(source: random.Random) -> None:
    spoiled = spoil(device(), replace(port("Ethernet4"), watchdog=None))
    subjects = [Subject(replace(spoiled, device=f"leaf{n}"), EXPECTED) for n in (1, 2, 10)]
    chosen = [rules.get(name) for name in rules.names()]
    wanted = evaluate(subjects, chosen)

    source.shuffle(subjects)
    source.shuffle(chosen)

    assert evaluate(subjects, chosen) == wanted
    assert [f.where.device for f in wanted] == sorted((f.where.device for f in wanted), key=lambda name: int(name[4:]))


def test_rule_that_nobody_registered_is_named_with_its_neighbour() -> None:
    with pytest.raises(UnknownNameError, match="pfc-asymmetric"):
        rules.get("pfc-asymetric")


@pytest.mark.parametrize("name", rules.names())
def test_rule_has_the_id_it_is_registered_under_and_a_sentence(name: str) -> None:
    rule = rules.get(name)

    assert rule.id == name
    assert rule.title.endswith(".")


def test_policy_becomes_expectation() -> None:
    policy = RocePolicy(data_dscps=(24,), data_priority=4, reassign_unlisted=False, watchdog_enabled=False)

    expected = expected_of(policy, host_mtus=(HostMtu(9000), HostMtu(1500, "Ethernet4")))

    assert (expected.data_dscps, expected.data_priority, expected.unlisted_allowed) == ((24,), 4, True)
    assert (expected.watchdog, expected.watchdog_action) == (False, None)
    assert [expected.host_mtu(f"Ethernet{n}") for n in (0, 4)] == [HostMtu(9000), HostMtu(1500, "Ethernet4")]
    assert (expected.ecn_kmin_bytes, expected.ecn_kmax_bytes) == (150_000, 1_500_000)


def test_policy_with_overrides_leaves_the_curve_to_the_plan() -> None:
    override = EcnOverride(1, 2, 3, speed_mbps=100_000)

    assert expected_of(RocePolicy(ecn_overrides=(override,))).ecn_kmin_bytes is None


def test_hint_speaks_the_language_of_the_os_or_is_silent() -> None:
    assert "qos map dscp 26 to traffic-class 3" in hint("eos", "classify", dscp=26, tc=3)
    assert hint("junos", "classify", dscp=26, tc=3) == ""


def _link(subjects: list[Subject]) -> Finding:
    a, b = (Endpoint(one.qos.device, "Ethernet0") for one in subjects)
    cable = Link(a, b, 100_000, 5, None, 9216)
    stray = Link(a, Endpoint("elsewhere", "Ethernet0"), 100_000, 5, None, 9216)
    (finding,) = evaluate_links(subjects, [cable, stray])
    return finding


def _end(name: str, mtu_bytes: int | None, *, overhead_bytes: int = 14) -> Subject:
    one = replace(port("Ethernet0"), mtu_bytes=UNKNOWN if mtu_bytes is None else mtu_bytes)
    qos = replace(device(names=("Ethernet0",)), device=name, ports=(one,))
    return Subject(qos, EXPECTED, capabilities(mtu_overhead_bytes=overhead_bytes))


def test_link_whose_ends_differ_fails_at_the_smaller_end() -> None:
    finding = _link([_end("leaf1", 9000), _end("spine1", 9100)])

    assert (finding.status, finding.where.device) == (Status.FAIL, "leaf1")
    assert "spine1:Ethernet0" in finding.evidence


def test_link_ends_that_count_differently_are_compared_as_frames() -> None:
    assert _link([_end("leaf1", 9000), _end("spine1", 9014, overhead_bytes=0)]).status is Status.PASS


def test_link_whose_smaller_end_can_do_no_more_passes() -> None:
    finding = _link([_end("leaf1", 9216, overhead_bytes=0), _end("spine1", 9216)])

    assert finding.status is Status.PASS
    assert "all that the smaller end can" in finding.evidence


def test_link_with_an_end_that_cannot_be_read_is_unknown() -> None:
    assert _link([_end("leaf1", None), _end("spine1", 9216)]).status is Status.UNKNOWN
    assert _link([replace(_end("leaf1", 9216), capabilities=None), _end("spine1", 9216)]).status is Status.UNKNOWN
