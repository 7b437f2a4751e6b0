"""Host plans: numbers of each NIC, and agreement with the switch."""

from dataclasses import replace
from typing import Any

import pytest

from fabric.errors import PlanError
from fabric.intent.model import DcqcnSetting, EtsShare, Fabric, Host, HostNic, NicPolicy, NvmeTarget, RocePolicy
from fabric.plan import HostNicPlan, HostPlan
from fabric.plan.hosts import rdma_mtu_bytes
from tests.unit.plan.intents import eos, fabric_of, nic, plan, switch


def host_plan(one: HostNic, policy: RocePolicy | None = None, *, peer: Any = None) -> HostPlan:
    policy = policy or RocePolicy()
    fabric = fabric_of(peer or switch(policy=policy), hosts=(Host("gpu1", (one,), policy=policy),))
    return plan(fabric).hosts[0]


def nic_plan(one: HostNic, policy: RocePolicy | None = None) -> HostNicPlan:
    return host_plan(one, policy).nics[0]


def test_defaults_are_the_common_profile() -> None:
    found = nic_plan(nic(addresses=("192.0.2.1/24",), vlan=110))
    assert found.dscp_to_priority == ((26, 3), (48, 6))
    assert (found.pfc_priorities, found.tos, found.rdma_mtu_bytes) == ((3,), 104, 4096)
    assert found.prio_tc == (0, 0, 0, 3, 0, 0, 6, 0)
    assert found.ets_percent == (50, 0, 0, 50, 0, 0, 0, 0)
    assert (found.cnp_dscp, found.cnp_priority, found.rp_enabled, found.np_enabled) == (48, 6, True, True)
    assert (found.vlan, found.addresses) == (110, ("192.0.2.1/24",))


def test_rxe_carries_ect_in_the_byte_because_it_copies_it() -> None:
    assert nic_plan(nic(family="rxe")).tos == 106


def test_e810_has_four_classes_only() -> None:
    found = nic_plan(nic(family="irdma"))
    assert found.prio_tc == (0, 0, 0, 1, 0, 0, 2, 0)
    assert found.ets_percent == (50, 50, 0, 0, 0, 0, 0, 0)


def test_family_settings_go_to_that_family() -> None:
    dcqcn = (DcqcnSetting("rp_dce_tcp_g", 1019),)
    policy = RocePolicy(nics=(NicPolicy("mlx5", np_enabled=False, cnp_dscp=50, cnp_priority=5, dcqcn=dcqcn),))
    found = nic_plan(nic(), policy)
    assert (found.np_enabled, found.cnp_dscp, found.cnp_priority, found.dcqcn) == (False, 50, 5, dcqcn)
    assert nic_plan(nic(family="bnxt_re"), policy).cnp_dscp == 48


def test_cnp_priority_is_the_policys_else_the_switchs() -> None:
    assert nic_plan(nic(), RocePolicy(cnp_priority=5)).cnp_priority == 5
    assert nic_plan(nic()).cnp_priority == 6
    assert nic_plan(nic(peer=None)).cnp_priority == 6


def test_every_data_dscp_gets_the_data_priority_and_the_first_is_marked() -> None:
    found = nic_plan(nic(), RocePolicy(data_dscps=(34, 26)))
    assert found.dscp_to_priority == ((26, 3), (34, 3), (48, 6))
    assert found.tos == 136


def test_lossless_priority_0_keeps_a_class_for_the_rest() -> None:
    policy = RocePolicy(data_priority=0, ets=(EtsShare(0, 60), EtsShare(1, 40)))
    found = nic_plan(nic(), policy)
    assert found.prio_tc == (0, 1, 1, 1, 1, 1, 6, 1)
    assert found.ets_percent == (60, 40, 0, 0, 0, 0, 0, 0)


def test_share_of_the_strict_class_is_not_used() -> None:
    policy = RocePolicy(ets=(EtsShare(0, 40), EtsShare(3, 50), EtsShare(6, 10)))
    assert nic_plan(nic(), policy).ets_percent == (40, 0, 0, 50, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("ip_mtu", "ipv6", "rdma"),
    [
        (9000, False, 4096),
        (4160, False, 4096),
        (4159, False, 2048),
        (4179, True, 2048),
        (4180, True, 4096),
        (1500, False, 1024),
        (320, False, 256),
        (319, False, 0),
    ],
)
def test_path_mtu_is_the_largest_that_fits_with_its_headers(ip_mtu: int, ipv6: bool, rdma: int) -> None:
    assert rdma_mtu_bytes(ip_mtu, ipv6=ipv6) == rdma


def test_path_mtu_that_linux_would_not_choose_is_noted() -> None:
    (note,) = host_plan(nic(mtu_bytes=4160, addresses=("192.0.2.1/24",))).notes
    assert note.code == "rdma-mtu-falls-short"
    assert note.text.endswith("make it 4192 B")
    assert not host_plan(nic(mtu_bytes=4192)).notes


def test_ipv6_needs_twenty_bytes_more() -> None:
    assert nic_plan(nic(mtu_bytes=4170, addresses=("2001:db8::1/64",))).rdma_mtu_bytes == 2048


@pytest.mark.parametrize(
    ("one", "policy", "words"),
    [
        (nic(mtu_bytes=300), RocePolicy(), "gpu1: ens1f0np0.mtu: no RDMA path MTU fits this IP MTU"),
        (
            nic(),
            RocePolicy(nics=(NicPolicy("mlx5", cnp_priority=3),)),
            "gpu1: ens1f0np0.cnp_priority: CNPs would be paused",
        ),
        (
            nic(),
            RocePolicy(nics=(NicPolicy("mlx5", cnp_dscp=26),)),
            "gpu1: ens1f0np0.cnp_dscp: a DSCP is both data and CNP",
        ),
    ],
)
def test_contradictions_are_refused(one: HostNic, policy: RocePolicy, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        host_plan(one, policy)
    assert words in str(caught.value)


def test_host_that_marks_or_pauses_otherwise_than_its_switch_blocks_lossless() -> None:
    policy = RocePolicy(data_dscps=(24,), data_priority=4, ets=(EtsShare(0, 50), EtsShare(4, 50)))
    fabric = fabric_of(switch(), hosts=(Host("gpu1", (nic(),), policy=policy),))
    planned = plan(fabric)
    assert [note.text for note in planned.hosts[0].notes] == [
        "ens1f0np0 marks DSCP 24, and leaf1 takes only DSCP 26 for RoCE data",
        "ens1f0np0 pauses priority 4, and leaf1 priority 3",
    ]
    assert planned.switches[0].lossless
    assert not planned.lossless


def test_managed_targets_are_planned_and_others_are_told_about() -> None:
    ours = NvmeTarget("store1", (nic(),))
    theirs = NvmeTarget("array1", (nic(),), managed=False)
    planned = plan(Fabric("test", (eos("leaf1"),), targets=(ours, theirs)))
    assert [(one.host, one.role) for one in planned.hosts] == [("store1", "target")]
    (note,) = planned.notes
    assert note.code == "unmanaged-target"
    assert note.text == (
        "array1 is not managed: whoever does must mark DSCP 26, pause priority 3 and send CNPs with DSCP 48"
    )
    assert planned.lossless


def test_unmanaged_target_that_marks_otherwise_than_its_switch_blocks_lossless() -> None:
    policy = RocePolicy(data_dscps=(24,), data_priority=4, ets=(EtsShare(0, 50), EtsShare(4, 50)))
    array = NvmeTarget("array1", (replace(nic(), netdev="eth0"),), managed=False, policy=policy)
    planned = plan(Fabric("test", (switch(),), targets=(array,)))
    assert [note.text for note in planned.notes if note.blocks_lossless] == [
        "array1: eth0 marks DSCP 24, and leaf1 takes only DSCP 26 for RoCE data",
        "array1: eth0 pauses priority 4, and leaf1 priority 3",
    ]
    assert planned.hosts == ()
    assert not planned.lossless
