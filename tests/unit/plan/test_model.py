"""What a plan says of itself."""

from fabric.plan import FabricPlan, HostPlan, Note, SwitchPlan
from fabric.qos import DeviceQos

BLOCKING = Note("headroom-unknown", "nobody knows", blocks_lossless=True)
PLAIN = Note("mtu-clamped", "smaller")


def one_switch(name: str, *notes: Note) -> SwitchPlan:
    return SwitchPlan(name, "sonic", DeviceQos(name, "sonic"), notes=notes)


def test_plan_is_lossless_when_nothing_blocks_anywhere() -> None:
    switches, hosts = (one_switch("leaf1", PLAIN),), (HostPlan("gpu1", "host", (), (PLAIN,)),)
    assert FabricPlan("f", switches, hosts, (PLAIN,)).lossless
    assert not FabricPlan("f", (*switches, one_switch("leaf2", BLOCKING)), hosts).lossless
    assert not FabricPlan("f", switches, (HostPlan("gpu1", "host", (), (BLOCKING,)),)).lossless
    assert not FabricPlan("f", switches, hosts, (BLOCKING,)).lossless


def test_switches_are_found_by_name() -> None:
    plan = FabricPlan("f", (one_switch("leaf1"), one_switch("leaf2")))
    assert plan.switch("leaf2") is plan.switches[1]
    assert plan.switch("leaf3") is None


def test_adoption_and_narrowing_leave_the_rest_alone() -> None:
    plan = FabricPlan("f", (one_switch("leaf1"), one_switch("leaf2")), (HostPlan("gpu1", "host", ()),))
    assert [one.adopt for one in plan.adopted().switches] == [True, True]
    assert [one.adopt for one in plan.switches] == [False, False]
    narrow = plan.only(["leaf2"])
    assert [one.device for one in narrow.switches] == ["leaf2"]
    assert narrow.hosts == plan.hosts
