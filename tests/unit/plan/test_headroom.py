"""Headroom in the plan: the closed form's number, whoever sizes it, and what blocks lossless."""

from fabric.intent.model import RocePolicy
from fabric.qos import UNKNOWN, Fact, HeadroomOwner, PriorityGroupQos
from fabric.qos.headroom import HeadroomQuery, lossless_headroom
from tests.unit.plan.intents import eos, notes, plan_one, port, switch

CONFIG = Fact(HeadroomOwner.CONFIG, "test")


def group(planned: object, index: int) -> PriorityGroupQos:
    found = planned.qos.ports[0].priority_group(index)  # type: ignore[attr-defined]
    assert isinstance(found, PriorityGroupQos)
    return found


def test_network_os_that_derives_headroom_gets_none_and_the_plan_keeps_the_number() -> None:
    planned = plan_one(switch())
    lossless = group(planned, 3)
    assert (lossless.lossless, lossless.derived_by_nos, lossless.xoff_bytes) == (True, True, UNKNOWN)
    assert group(planned, 0).lossless is False
    (row,) = planned.headroom
    assert (row.ports, row.headroom.xoff_bytes) == (("Ethernet0",), 33_792)
    assert row.headroom == lossless_headroom(HeadroomQuery("spectrum3", 100_000, 5, 9216, hwsku="ACS-MSN4700"))
    assert "from speed, cable and MTU" in notes(planned, "headroom-by-device")[0].text
    assert "does not show it" in notes(plan_one(eos()), "headroom-by-device")[0].text


def test_network_os_that_is_told_headroom_gets_all_of_it() -> None:
    planned = plan_one(switch(hwsku="DellEMC-S5232f-C32", asic="trident3"), headroom_owner=CONFIG)
    lossless = group(planned, 3)
    assert (lossless.xoff_bytes, lossless.xon_bytes, lossless.size_bytes) == (162_048, 2048, 1024)
    assert (lossless.xon_offset_bytes, lossless.derived_by_nos, lossless.alpha_log2) == (2048, False, UNKNOWN)
    assert not notes(planned, "headroom-by-device")


def test_policys_alpha_is_told() -> None:
    policy = RocePolicy(alpha_log2=-2)
    assert group(plan_one(switch(policy=policy)), 3).alpha_log2 == -2
    assert group(plan_one(switch(policy=policy), headroom_owner=CONFIG), 3).alpha_log2 == -2


def test_ports_of_one_kind_share_a_number() -> None:
    ports = (port("Ethernet0"), port("Ethernet4", cable_m=40), port("Ethernet8"))
    rows = plan_one(switch("leaf1", *ports)).headroom
    assert [(row.ports, row.headroom.xoff_bytes) for row in rows] == [
        (("Ethernet0", "Ethernet8"), 33_792),
        (("Ethernet4",), 44_032),
    ]


def test_unknown_length_blocks_lossless() -> None:
    planned = plan_one(switch("leaf1", port(cable_m=None)))
    (note,) = notes(planned, "headroom-unknown")
    assert note.text == "nobody knows the headroom on spectrum3: nobody said how long the cable is"
    assert note.blocks_lossless
    assert note.ports == ("Ethernet0",)
    assert not planned.lossless
    assert planned.qos.ports[0].cable_m is None


def test_unknown_asic_blocks_lossless_where_the_sum_has_no_interface_delay() -> None:
    planned = plan_one(switch("leaf1", port(speed_mbps=10_000), asic="", hwsku=""))
    assert notes(planned, "headroom-unknown")[0].text == (
        "nobody knows the headroom on an unnamed ASIC: no interface delay is published for 10000 Mb/s"
    )
    assert not planned.lossless


def test_unknown_asic_is_planned_by_the_sum_where_it_can_be() -> None:
    planned = plan_one(switch("leaf1", port(), asic="", hwsku=""))
    assert planned.headroom[0].headroom.xoff_bytes == 59_757
    assert notes(planned, "headroom-approximate")[0].text.startswith("by ieee-sum: the ASIC has no model")
    assert planned.lossless


def test_longer_row_of_a_table_is_noted_once_for_all_ports() -> None:
    ports = (port("Ethernet10", cable_m=6), port("Ethernet2", cable_m=7), port("Ethernet3", cable_m=5))
    planned = plan_one(switch("leaf1", *ports, asic="trident3", hwsku="DellEMC-S5232f-C32"))
    (note,) = notes(planned, "headroom-approximate")
    assert note.ports == ("Ethernet2", "Ethernet10")
    assert note.text == (
        "by table Dell S5232F: the table has no row for 6 m: the one for 40 m was taken; "
        "the table has no row for 7 m: the one for 40 m was taken"
    )


def test_cable_is_told_as_the_next_longer_that_the_network_os_takes() -> None:
    enum = Fact((5, 40, 300), "test")
    planned = plan_one(switch("leaf1", port(cable_m=7)), cable_lengths_m=enum)
    assert planned.qos.ports[0].cable_m == 40
    assert planned.headroom[0].headroom.xoff_bytes == 44_032
    assert notes(planned, "cable-rounded-up")[0].text.startswith("a cable of 7 m is told as 40 m")
    exact = plan_one(switch("leaf1", port(cable_m=40)), cable_lengths_m=enum)
    assert not notes(exact, "cable-rounded-up")


def test_cable_longer_than_any_that_can_be_told_blocks_lossless() -> None:
    planned = plan_one(switch("leaf1", port(cable_m=500)), cable_lengths_m=Fact((5, 40, 300), "test"))
    assert planned.qos.ports[0].cable_m is None
    assert notes(planned, "cable-too-long")[0].blocks_lossless
    assert planned.headroom[0].headroom.xoff_bytes is not UNKNOWN


def test_switch_without_ports_needs_no_headroom() -> None:
    bare = switch()
    planned = plan_one(type(bare)(bare.name, bare.nos, bare.role, ()))
    assert planned.headroom == ()
    assert not notes(planned, "headroom-by-device")
