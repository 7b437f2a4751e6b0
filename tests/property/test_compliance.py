"""What the planner plans, no rule fails; and a plan spoiled in one port fails there alone."""

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given

from fabric.compliance import evaluate, evaluate_links, rules, subjects_of
from fabric.intent.model import Fabric
from fabric.plan import make_plan
from fabric.qos import PfcMode
from fabric.state import Status
from tests.strategies.capabilities import capabilities_of
from tests.strategies.fabrics import fabrics


@given(fabrics())
def test_planned_fabric_fails_no_rule(fabric: Fabric) -> None:
    subjects = subjects_of(fabric, make_plan(fabric, capabilities_of), capabilities_of)

    findings = evaluate(subjects) + evaluate_links(subjects, fabric.links)

    assert [f for f in findings if f.status is Status.FAIL] == []
    assert {f.where.device for f in findings} >= {switch.name for switch in fabric.switches}


@given(fabrics(), st.data())
def test_pfc_switched_off_on_one_planned_port_fails_there_alone(fabric: Fabric, data: st.DataObject) -> None:
    subject = data.draw(st.sampled_from(subjects_of(fabric, make_plan(fabric, capabilities_of), capabilities_of)))
    victim = data.draw(st.sampled_from(subject.qos.ports))
    off = replace(victim, pfc=replace(victim.pfc, mode=PfcMode.OFF))
    ports = tuple(off if port is victim else port for port in subject.qos.ports)

    failed = [f for f in evaluate([replace(subject, qos=replace(subject.qos, ports=ports))]) if f.status is Status.FAIL]

    # Without ECN and with the map of the whole device, PFC was all that the port had.
    assert [f.where.ports for f in failed] == [(victim.name,)]
    assert failed[0].rule in {"pfc-not-on-data-priority", "port-without-qos"}


@given(fabrics())
def test_device_that_nobody_read_is_unknown_and_never_passes(fabric: Fabric) -> None:
    plan = make_plan(fabric, capabilities_of)
    empty = {one.device: replace(one.qos, ports=()) for one in plan.switches}
    rule = rules.get("port-without-qos")

    subjects = subjects_of(fabric, plan, capabilities_of, observed=empty)
    unplanned = [replace(one, plan=None) for one in subjects]

    assert {f.status for one in subjects for f in rule.evaluate(one)} == {Status.FAIL}
    assert {f.status for one in unplanned for f in rule.evaluate(one)} == {Status.UNKNOWN}
