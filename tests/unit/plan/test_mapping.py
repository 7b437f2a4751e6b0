"""Mapping closure: DSCP, traffic class, queue, priority group and PFC priority."""

import pytest

from fabric.errors import PlanError
from fabric.intent.model import Host, NicPolicy, RocePolicy
from fabric.plan.mapping import numbers
from fabric.qos import Fact, dscps_of
from tests.unit.plan.intents import eos, fabric_of, nic, notes, plan, plan_one, switch


def test_data_lands_on_one_number_all_the_way() -> None:
    port = plan_one(switch()).qos.ports[0]
    assert isinstance(port.dscp_to_tc, tuple)
    assert dscps_of(port.dscp_to_tc, 3) == (26,)
    for mapping in (port.tc_to_queue, port.tc_to_pg, port.pfc_to_queue, port.pfc_to_pg):
        assert isinstance(mapping, tuple)
        assert mapping[3] == 3
    assert port.pfc.active == frozenset({3})


def test_without_a_default_map_all_others_fall_into_class_0() -> None:
    port = plan_one(switch()).qos.ports[0]
    assert isinstance(port.dscp_to_tc, tuple)
    assert set(dscps_of(port.dscp_to_tc, 0)) == set(range(64)) - {26, 48}
    assert port.tc_to_pg == (0, 0, 0, 3, 0, 0, 0, 7)


def test_unlisted_dscps_leave_the_lossless_class_of_eos() -> None:
    planned = plan_one(eos())
    port = planned.qos.ports[0]
    assert isinstance(port.dscp_to_tc, tuple)
    assert dscps_of(port.dscp_to_tc, 3) == (26,)
    assert set(dscps_of(port.dscp_to_tc, 1)) == {*range(8), 24, 25, *range(27, 32)}
    assert dscps_of(port.dscp_to_tc, 6) == tuple(range(48, 56))
    (moved,) = notes(planned, "dscp-moved")
    assert moved.text == "DSCP 24-25, 27-31: from the lossless class 3 to class 1"
    (left,) = notes(planned, "classes-left-alone")
    assert left.text == "traffic classes 0, 2, 4-5, 7 keep their DSCPs and the scheduling of eos"


def test_unlisted_dscps_stay_where_they_are_when_told_so() -> None:
    planned = plan_one(eos(policy=RocePolicy(reassign_unlisted=False)))
    port = planned.qos.ports[0]
    assert isinstance(port.dscp_to_tc, tuple)
    assert dscps_of(port.dscp_to_tc, 3) == tuple(range(24, 32))
    assert notes(planned, "unlisted-dscp-in-lossless-class")[0].text.startswith("DSCP 24-25, 27-31: ")


def test_every_nics_cnp_dscp_reaches_the_cnp_class() -> None:
    policy = RocePolicy(nics=(NicPolicy("bnxt_re", cnp_dscp=46),))
    hosts = (Host("gpu1", (nic(family="bnxt_re"), nic()), policy=policy),)
    (planned,) = plan(fabric_of(eos(), hosts=hosts)).switches
    port = planned.qos.ports[0]
    assert isinstance(port.dscp_to_tc, tuple)
    assert (port.dscp_to_tc[46], port.dscp_to_tc[47], port.dscp_to_tc[48]) == (6, 5, 6)


def test_lossless_class_0_leaves_group_0_to_itself() -> None:
    policy = RocePolicy(data_priority=0, ets=())
    port = plan_one(switch(policy=policy)).qos.ports[0]
    assert port.tc_to_pg == (0, 1, 1, 1, 1, 1, 1, 7)
    assert isinstance(port.dscp_to_tc, tuple)
    assert port.dscp_to_tc[0] == 1
    assert [group.index for group in port.priority_groups] == [0, 1]


def test_default_class_gives_way_to_the_data_class() -> None:
    port = plan_one(eos(policy=RocePolicy(data_priority=1, ets=()))).qos.ports[0]
    assert isinstance(port.dscp_to_tc, tuple)
    assert dscps_of(port.dscp_to_tc, 1) == (26,)
    assert port.dscp_to_tc[0] == 0


def test_default_map_with_gaps_fills_them_with_the_default_class() -> None:
    stock = (None, *([4] * 31), *([None] * 32))
    port = plan_one(switch(), dscp_default_to_tc=Fact(stock, "test")).qos.ports[0]
    assert isinstance(port.dscp_to_tc, tuple)
    assert (port.dscp_to_tc[0], port.dscp_to_tc[1], port.dscp_to_tc[63]) == (0, 4, 0)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            RocePolicy(cnp_priority=3),
            "leaf1: cnp_priority: CNPs would be paused with the data they slow down (found 3)",
        ),
        (RocePolicy(data_dscps=(26, 48)), "leaf1: data_dscps: a DSCP is both data and CNP (found 48)"),
        (RocePolicy(cnp_priority=7), "leaf1: cnp_priority: eos keeps queue 7 for itself (found 7, expected none of 7)"),
        (RocePolicy(data_priority=7, ets=()), "leaf1: data_priority: eos keeps queue 7 for itself"),
    ],
)
def test_contradictions_are_refused(policy: RocePolicy, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_one(eos(policy=policy))
    assert words in str(caught.value)


def test_network_os_without_lossless_priorities_is_refused() -> None:
    with pytest.raises(PlanError, match="sonic has no lossless priority on this ASIC"):
        plan_one(switch(), lossless_priorities_max=Fact(0, "test"))


@pytest.mark.parametrize(("values", "text"), [((), ""), ((5,), "5"), ((1, 2, 3, 7, 9, 10), "1-3, 7, 9-10")])
def test_numbers_are_written_as_runs(values: tuple[int, ...], text: str) -> None:
    assert numbers(values) == text


def test_best_effort_leaves_the_strict_class_when_the_policy_gives_cnps_the_default_class() -> None:
    planned = plan_one(eos(policy=RocePolicy(cnp_priority=1)))
    port = planned.qos.ports[0]
    assert isinstance(port.dscp_to_tc, tuple)
    assert dscps_of(port.dscp_to_tc, 1) == (48,)
    assert set(dscps_of(port.dscp_to_tc, 0)) == {*range(16), 24, 25, *range(27, 32)}
    assert "DSCP 0-7: from the strict class 1 of CNPs to class 0" in [n.text for n in notes(planned, "dscp-moved")]
