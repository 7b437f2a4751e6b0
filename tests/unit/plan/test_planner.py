"""The whole plan: features, hops, MTU, device-wide settings, and all problems at once."""

import re
from dataclasses import replace

import pytest
from hypothesis import given

from fabric.errors import PlanError, UnsupportedFeatureError
from fabric.intent.model import EtsShare, Fabric, Host, RocePolicy
from fabric.nos import catalog
from fabric.plan import FabricPlan, make_plan
from fabric.qos import UNKNOWN, Fact, LinkPause, PfcMode, Trust
from fabric.serial import from_json, to_json
from tests.strategies.capabilities import SONIC_LIKE, capabilities_of
from tests.strategies.fabrics import fabrics, generate
from tests.unit.plan.intents import eos, fabric_of, nic, notes, plan, plan_one, port, switch, two_hops

MOVED = RocePolicy(data_priority=4, ets=(EtsShare(0, 50), EtsShare(4, 50)))


def test_unsupported_features_are_refused_by_name_for_all_devices_at_once() -> None:
    fabric = fabric_of(
        switch("leaf1", features=("evpn_vxlan",)), eos("leaf2", features=("srv6", "evpn_vxlan")), eos("leaf3")
    )
    with pytest.raises(UnsupportedFeatureError) as caught:
        plan(fabric)
    text = str(caught.value)
    assert "this release cannot plan evpn_vxlan, srv6" in text
    assert "leaf1: evpn_vxlan; leaf2: evpn_vxlan, srv6" in text
    assert "leaf3" not in text


def test_every_problem_of_every_device_is_raised_at_once() -> None:
    bad = RocePolicy(cnp_priority=3, watchdog_detection_ms=1)
    fabric = fabric_of(
        switch("leaf1", policy=bad),
        eos("leaf2", policy=replace(bad, ets=())),
        hosts=(Host("gpu1", (nic(mtu_bytes=100),)),),
    )
    with pytest.raises(PlanError) as caught:
        plan(fabric)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the intent cannot be met:"
    assert {line.split(":")[0].strip() for line in lines[1:]} == {"leaf1", "leaf2", "gpu1"}
    assert len(lines) > 6


def test_every_port_gets_the_whole_of_it() -> None:
    planned = plan_one(switch("leaf1", port(lag="PortChannel1", fec="rs", vlan=110), port("Ethernet4")))
    tagged, plain = planned.qos.ports
    assert (tagged.lag, tagged.fec, plain.fec) == ("PortChannel1", "rs", UNKNOWN)
    for one in (tagged, plain):
        assert one.trust is Trust.DSCP
        assert one.pfc.mode is PfcMode.ON
        assert (one.pfc.rx, one.pfc.tx, one.pfc.asymmetric) == (True, True, False)
        assert one.link_pause == LinkPause(rx=False, tx=False)
        assert (one.pcp_to_tc, one.rewrite, one.lldp) == (None, None, True)
        assert UNKNOWN not in (one.speed_mbps, one.mtu_bytes, one.cable_m, one.watchdog, one.dcbx)
    assert planned.qos.aqm_counters is True
    assert planned.qos.pfc_disabled_globally is False


def test_device_wide_map_is_that_of_the_ports_adopted_or_not() -> None:
    for one in (eos(), switch(), switch(adopt=True)):
        planned = plan_one(one)
        assert planned.qos.global_dscp_to_tc == planned.qos.ports[0].dscp_to_tc
        assert planned.adopt is one.adopt


def test_mtu_is_clamped_with_a_note() -> None:
    planned = plan_one(eos("leaf1", port(), port("Ethernet1", mtu_bytes=9000)))
    assert [one.mtu_bytes for one in planned.qos.ports] == [9214, 9000]
    (note,) = notes(planned, "mtu-clamped")
    assert (note.text, note.ports) == ("MTU 9216 B becomes 9214 B, the largest that eos takes", ("Ethernet0",))
    assert planned.lossless


@pytest.mark.parametrize(
    ("overhead", "vlan", "carried"),
    [(22, None, 9000), (22, 110, 9000), (14, None, 9000), (14, 110, 8996), (0, None, 8986), (0, 110, 8982)],
)
def test_hop_must_carry_the_hosts_packets_however_the_network_os_counts(
    overhead: int, vlan: int | None, carried: int
) -> None:
    leaf = switch("leaf1", port(mtu_bytes=9000, vlan=vlan))
    fact = Fact(overhead, "test")
    for mtu, fits in ((carried, True), (carried + 1, False)):
        planned = plan(fabric_of(leaf, hosts=(Host("gpu1", (nic(mtu_bytes=mtu),)),)), mtu_overhead_bytes=fact)
        found = notes(planned.switches[0], "mtu-too-small")
        assert (not found) is fits
        assert planned.lossless is fits
    assert found[0].text == f"IP packets of up to {carried} B pass, and hosts send {carried + 1} B"


def test_link_between_switches_must_carry_the_largest_of_all_hosts() -> None:
    fabric = two_hops(spine=RocePolicy(mtu_bytes=8999))
    planned = plan(fabric)
    spine = planned.switch("spine1")
    assert spine is not None
    assert notes(spine, "mtu-too-small")[0].ports == ("Ethernet1",)
    leaf = planned.switch("leaf1")
    assert leaf is not None
    assert not notes(leaf, "mtu-too-small")


def test_two_nics_on_one_port_need_the_larger_mtu() -> None:
    hosts = (
        Host(
            "gpu1",
            (nic(mtu_bytes=9217), nic(mtu_bytes=1500), nic(mtu_bytes=1500, peer=None)),
        ),
    )
    assert notes(plan(fabric_of(switch(), hosts=hosts)).switches[0], "mtu-too-small")


def test_port_with_nothing_known_behind_it_needs_no_mtu() -> None:
    assert not notes(plan_one(switch("leaf1", port(mtu_bytes=100))), "mtu-too-small")


@pytest.mark.parametrize(
    ("spine", "words"),
    [
        (MOVED, "priority 3 pauses here, and priority 4 on spine1"),
        (RocePolicy(data_dscps=(26, 24)), "DSCP 26 is RoCE data here, and DSCP 24, 26 on spine1"),
    ],
)
def test_neighbours_that_disagree_block_lossless(spine: RocePolicy, words: str) -> None:
    planned = plan(two_hops(spine=spine))
    leaf = planned.switch("leaf1")
    assert leaf is not None
    (note,) = notes(leaf, "hop-mismatch")
    assert (note.text, note.ports, note.blocks_lossless) == (words, ("Ethernet4",), True)
    assert not planned.lossless


def test_canonical_line_of_hops_is_lossless() -> None:
    planned = plan(two_hops())
    assert planned.lossless
    assert [one.device for one in planned.switches] == ["leaf1", "spine1"]
    assert planned.fabric == "test"


def test_facts_that_nobody_confirmed_are_named() -> None:
    shaky = Fact(6, "test", unconfirmed=True)
    (note,) = notes(plan_one(switch(), cnp_queue=shaky), "unconfirmed-fact")
    assert note.text == "nobody confirmed these facts about sonic on a device: cnp_queue"
    assert not notes(plan_one(switch()), "unconfirmed-fact")
    assert not notes(plan_one(eos()), "unconfirmed-fact")  # what happens above Kmax decides no number here


@pytest.mark.parametrize("seed", range(4))
def test_plan_survives_the_run_folder(seed: int) -> None:
    planned = make_plan(generate(seed, defaults_only=seed % 2 == 0), capabilities_of)
    assert from_json(FabricPlan, to_json(planned)) == planned


@pytest.mark.no_cover  # long and alike
@given(fabrics())
def test_closure_holds_on_every_port_of_every_hop(fabric: Fabric) -> None:
    planned = make_plan(fabric, capabilities_of)
    assert planned.lossless
    for one, intent in zip(planned.switches, fabric.switches, strict=True):
        policy = intent.policy
        assert [p.name for p in one.qos.ports] == [p.name for p in intent.ports]
        for planned_port in one.qos.ports:
            maps = (planned_port.dscp_to_tc, planned_port.tc_to_queue, planned_port.tc_to_pg, planned_port.pfc_to_pg)
            dscp_to_tc, queue_of, group_of, group_of_pfc = (m for m in maps if isinstance(m, tuple))
            lossless = {d for d in range(64) if dscp_to_tc[d] == policy.data_priority}
            assert set(policy.data_dscps) <= lossless
            if policy.reassign_unlisted:
                assert lossless == set(policy.data_dscps)
            assert queue_of[policy.data_priority] == group_of[policy.data_priority] == policy.data_priority
            assert group_of_pfc[policy.data_priority] == policy.data_priority
            cnp = dscp_to_tc[policy.cnp_dscp]
            assert cnp is not None
            assert cnp != policy.data_priority
            queue = planned_port.queue(cnp)
            assert queue is not None
            assert queue.aqm is None


def test_generator_mixes_systems_speeds_and_cables() -> None:
    for seed in range(20):
        fabric = generate(seed, defaults_only=seed % 2 == 0)
        ports = [one for each in fabric.switches for one in each.ports]
        assert {one.nos for one in fabric.switches} == {"sonic", "eos"}
        assert len({one.speed_mbps for one in ports}) >= 3
        assert len({one.cable_m for one in ports}) >= 2
        if seed % 2 == 0:
            assert {one.policy for one in fabric.switches} == {RocePolicy()}


def test_port_that_the_network_os_cannot_have_is_a_problem() -> None:
    capabilities = replace(SONIC_LIKE, port_names=Fact(("Ethernet[0-9]+", "Ethernet0"), "test"))
    names = ("Ethernet0", "Ethernet1/1", "PortChannel1")
    fabric = fabric_of(switch("leaf1", *(port(name) for name in names)))
    with pytest.raises(PlanError, match="sonic has no physical port of this name") as caught:
        make_plan(fabric, lambda _: capabilities)
    assert "(found Ethernet1/1 and 1 more, expected names such as Ethernet0; port channels" in str(caught.value)


def test_dialects_know_the_names_of_their_ports() -> None:
    for nos, right, wrong in (("sonic", "Ethernet-BP4", "Ethernet1/1"), ("eos", "Ethernet3/1/1", "Management1")):
        pattern, example = catalog.get(nos).capabilities().port_names.value
        assert re.fullmatch(pattern, right)
        assert not re.fullmatch(pattern, wrong)
        assert re.fullmatch(pattern, example.split(", ")[0])
