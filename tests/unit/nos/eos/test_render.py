"""What EOS is told, what it is spared, and what it cannot do."""

import re
from dataclasses import replace

import pytest

from fabric.diff import changes
from fabric.errors import UnsupportedFeatureError
from fabric.nos.base import Nos, RenderContext
from fabric.nos.catalog import catalog
from fabric.nos.eos import EOS
from fabric.qos import (
    UNKNOWN,
    Aqm,
    AqmKind,
    DeviceQos,
    DscpRewrite,
    PfcMode,
    PortPfc,
    PortQos,
    PortWatchdog,
    QueueQos,
    Scheduler,
    SchedulerKind,
    Threshold,
    ThresholdUnit,
    Trust,
    WatchdogAction,
)
from tests.unit.nos.eos.devices import CLASSES, CURVE, device, port

TRIDENT = RenderContext(asic="trident3")


def lines(one: PortQos, context: RenderContext = TRIDENT) -> list[str]:
    return [row.strip() for row in EOS.render(device(one), context).text.splitlines()]


def test_the_catalog_has_eos() -> None:
    nos: Nos = catalog.get("eos")

    assert nos is EOS
    assert nos.name == "eos"


def test_canonical_port_has_the_lines_of_the_guide() -> None:
    found = EOS.render(device(port("Ethernet1")), RenderContext(asic="tomahawk4", adopt=True)).text

    assert found == (
        "qos map dscp 24 25 27 28 29 30 31 to traffic-class 1\n"
        "priority-flow-control pause watchdog default timeout 0.2\n"
        "priority-flow-control pause watchdog default recovery-time 0.4\n"
        "priority-flow-control pause watchdog default polling-interval 0.1\n"
        "priority-flow-control pause watchdog action drop\n"
        "!\n"
        "qos profile FABRICCTL-100G\n"
        "   qos trust dscp\n"
        "   priority-flow-control on\n"
        "   priority-flow-control priority 3 no-drop\n"
        "   !\n"
        "   uc-tx-queue 1\n"
        "      no priority\n"
        "      bandwidth percent 50\n"
        "   !\n"
        "   uc-tx-queue 3\n"
        "      no priority\n"
        "      bandwidth percent 50\n"
        "      random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes"
        " max-mark-probability 10 weight 0\n"
        "      random-detect ecn count\n"
        "   !\n"
        "   uc-tx-queue 6\n"
        "      priority strict\n"
        "!\n"
        "interface Ethernet1\n"
        "   mtu 9214\n"
        "   dcbx mode ieee\n"
        "   service-profile FABRICCTL-100G\n"
        "   !\n"
        "   tx-queue 3\n"
        "      bandwidth guaranteed 100\n"
        "!\n"
    )


def test_the_tree_is_that_of_the_text() -> None:
    intended = EOS.render(device(port("Ethernet1")), TRIDENT)

    assert intended.tree == EOS.tree(intended.text)


def test_jericho_has_tx_queues() -> None:
    assert "tx-queue 6" in lines(port("Ethernet1"), RenderContext(asic="Jericho2"))


def test_ports_that_do_the_same_share_a_profile_and_others_do_not() -> None:
    other = port("Ethernet3", queues=(QueueQos(3, aqm=replace(CURVE, pmax_percent=20)),))
    slow = port("Ethernet4", speed_mbps=25_000)
    text = EOS.render(device(port("Ethernet1"), port("Ethernet2"), other, slow), TRIDENT).text

    names = [row for row in text.splitlines() if row.startswith("qos profile")]

    assert names == ["qos profile FABRICCTL-100G", "qos profile FABRICCTL-100G-2", "qos profile FABRICCTL-25G"]
    assert text.count("service-profile FABRICCTL-100G\n") == 2


def test_without_adoption_the_watchdog_stands_in_the_profile() -> None:
    timer = "priority-flow-control pause watchdog port timer timeout 0.2 polling-interval 0.1 recovery-time 0.4"

    assert timer in lines(port("Ethernet1"))
    assert timer not in lines(port("Ethernet1"), replace(TRIDENT, adopt=True))


def test_ports_that_disagree_on_the_watchdog_say_it_themselves_even_after_adoption() -> None:
    slow = port("Ethernet2", watchdog=PortWatchdog(frozenset({3}), 400, 800, 100, WatchdogAction.ALERT))
    text = EOS.render(device(port("Ethernet1"), slow), replace(TRIDENT, adopt=True)).text

    assert "watchdog default" not in text
    assert "watchdog port action notify-only" in text


def test_a_port_without_watchdog_refuses_the_one_of_the_device() -> None:
    running = EOS.tree("priority-flow-control pause watchdog default timeout 1\n")
    off = port("Ethernet1", watchdog=None)

    assert "no priority-flow-control pause watchdog" in lines(off, replace(TRIDENT, running=running))
    assert "no priority-flow-control pause watchdog" not in lines(off)


def test_what_the_plan_leaves_open_has_no_line() -> None:
    open_port = PortQos("Ethernet1", watchdog=PortWatchdog(frozenset({3})))
    found = EOS.render(DeviceQos("leaf2", "eos", (open_port,)), TRIDENT).text

    assert [row.strip() for row in found.splitlines()] == [
        "!",
        "qos profile FABRICCTL-ROCE",
        "priority-flow-control pause watchdog",
        "!",
        "interface Ethernet1",
        "service-profile FABRICCTL-ROCE",
        "!",
        "tx-queue 3",
        "bandwidth guaranteed 100",
        "!",
    ]


def test_1500_is_not_typed_where_eos_hides_it() -> None:
    routed = EOS.tree("interface Ethernet1\n   no switchport\n")

    assert "mtu 1500" not in lines(port("Ethernet1", mtu_bytes=1500), replace(TRIDENT, running=routed))
    assert "mtu 1500" in lines(port("Ethernet1", mtu_bytes=1500))


def test_rewrite_map_and_queue_map_are_device_wide() -> None:
    rewrite = DscpRewrite((None, None, None, 26, None, None, 48, None))
    intended = EOS.render(device(port("Ethernet1", rewrite=rewrite, tc_to_queue=(0, 1, 2, 3, 4, 5, 5, 7))), TRIDENT)

    assert "qos rewrite dscp\n" in intended.text
    assert "qos map traffic-class 3 to dscp 26\n" in intended.text
    assert "qos map traffic-class 6 to tx-queue 5\n" in intended.text
    assert ("qos map traffic-class to dscp", r"\d") in intended.device_wide


def test_a_rewrite_that_the_plan_does_not_know_of_is_left_alone() -> None:
    intended = EOS.render(device(port("Ethernet1", rewrite=UNKNOWN)), TRIDENT)

    assert ("qos rewrite dscp",) not in intended.device_wide


@pytest.mark.parametrize(
    "name", ["Ethernet1\n   shutdown", "Ethernet1 !", "eth0", "Ethernet1;reload", "Port-Channel1", ""]
)
def test_a_name_that_is_no_eos_port_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="no EOS port name"):
        EOS.render(device(port(name)), TRIDENT)


WATCHED = PortWatchdog(frozenset({3}), 200, 400, 100, WatchdogAction.DROP)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"mtu_bytes": 9216}, "MTU"),
        ({"trust": Trust.BOTH}, "trust"),
        ({"pfc": PortPfc(mode=PfcMode.AUTO)}, "waits for DCBX"),
        ({"watchdog": replace(WATCHED, detection_ms=9)}, "detection"),
        ({"watchdog": replace(WATCHED, restoration_ms=60_001)}, "restoration"),
        ({"watchdog": replace(WATCHED, polling_ms=4)}, "polling"),
        ({"watchdog": replace(WATCHED, action=WatchdogAction.FORWARD)}, "watchdog action"),
        ({"queues": (QueueQos(7, scheduler=Scheduler(SchedulerKind.DWRR, 10, percent=True)),)}, "queue 7"),
        ({"queues": (QueueQos(7, aqm=CURVE),)}, "queue 7"),
        ({"queues": (QueueQos(3, scheduler=Scheduler(SchedulerKind.DWRR, 101)),)}, "percent"),
        ({"queues": (QueueQos(3, aqm=Aqm(AqmKind.DYNAMIC_MARK, UNKNOWN, UNKNOWN, UNKNOWN)),)}, "numbers"),
        (
            {"queues": (QueueQos(3, aqm=replace(CURVE, kmin=Threshold(10, ThresholdUnit.PERCENT))),)},
            "no unit",
        ),
        (
            {
                "queues": (
                    QueueQos(
                        3,
                        aqm=replace(
                            CURVE,
                            kmin=Threshold(1, ThresholdUnit.NANOSECONDS),
                            kmax=Threshold(2, ThresholdUnit.NANOSECONDS),
                        ),
                    ),
                )
            },
            "no unit",
        ),
    ],
)
def test_what_eos_cannot_do_is_refused_by_name(changes: dict[str, object], what: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=what):
        EOS.render(device(port("Ethernet1", **changes)), TRIDENT)


def test_two_dscp_maps_are_one_too_many() -> None:
    other = port("Ethernet2", dscp_to_tc=(0,) * 64)

    with pytest.raises(UnsupportedFeatureError, match="one DSCP map"):
        EOS.render(device(port("Ethernet1"), other), TRIDENT)


def test_two_queue_maps_are_one_too_many() -> None:
    other = port("Ethernet2", tc_to_queue=(0,) * 8)

    with pytest.raises(UnsupportedFeatureError, match="one traffic class to queue map"):
        EOS.render(device(port("Ethernet1"), other), TRIDENT)


def test_members_of_one_channel_must_do_the_same() -> None:
    text = "".join(f"interface Ethernet{n}\n   channel-group 9 mode on\n" for n in (1, 2))
    running = EOS.tree(f"interface Port-Channel9\n   no switchport\n{text}")

    with pytest.raises(UnsupportedFeatureError, match="Port-Channel9"):
        EOS.render(device(port("Ethernet1"), port("Ethernet2", mtu_bytes=9000)), replace(TRIDENT, running=running))


CHANNEL = """\
interface Port-Channel9
   no switchport
!
interface Ethernet1
   channel-group 9 mode active
!
interface Ethernet2
   channel-group 9 mode active
!
interface Ethernet3
   no switchport
!
"""


def test_a_port_channel_with_a_member_outside_the_intent_waits_for_adoption() -> None:
    context = RenderContext(running=EOS.tree(CHANNEL))
    plan = EOS.render(device(port("Ethernet1")), context)

    held = changes(context.running, plan, EOS.rules)

    assert not [one for one in held.forward if one.path[0] == "interface Port-Channel9"]
    assert ("interface Port-Channel9", "service-profile") in [one.path for one in held.held_back]
    after = EOS.apply(CHANNEL, EOS.payload(held.forward, context.running))
    assert EOS.parse(after).port("Ethernet2") == EOS.parse(CHANNEL).port("Ethernet2")


def test_only_members_of_a_shared_channel_feel_it_where_the_device_changes_nothing_else() -> None:
    once = EOS.apply(CHANNEL, EOS.render(device(port("Ethernet1")), RenderContext(running=EOS.tree(CHANNEL))).text)
    text = once.replace("interface Port-Channel9\n", "interface Port-Channel9\n   mtu 9000\n").replace(
        "   mtu 9214\n", "", 1
    )
    running = EOS.tree(text)

    plan = EOS.render(device(port("Ethernet1")), RenderContext(running=running))

    assert EOS.outside_ports(running, plan) == ("Ethernet2",)
    assert EOS.outside_ports(EOS.tree(CHANNEL), plan) == ("Ethernet2", "Ethernet3"), "the DSCP map is everybody's"


def test_a_whole_channel_of_the_intent_is_not_held_back() -> None:
    context = RenderContext(running=EOS.tree(CHANNEL))

    plan = changes(context.running, EOS.render(device(port("Ethernet1"), port("Ethernet2")), context), EOS.rules)

    assert ("interface Port-Channel9", "service-profile") in [one.path for one in plan.forward]


def test_a_profile_that_a_port_outside_the_intent_is_bound_to_stays_as_it_is() -> None:
    both = device(port("Ethernet1"), port("Ethernet2"))
    text = EOS.apply("interface Ethernet1\n!\ninterface Ethernet2\n!\n", EOS.render(both, RenderContext()).text)
    context = RenderContext(running=EOS.tree(text))
    same, other = (device(port("Ethernet1", **more)) for more in ({}, {"trust": Trust.PCP}))

    assert changes(context.running, EOS.render(same, context), EOS.rules).empty, "one port less in the intent"
    plan = changes(context.running, EOS.render(other, context), EOS.rules)
    after = EOS.apply(text, EOS.payload(plan.forward, context.running))
    assert EOS.parse(after).port("Ethernet2") == EOS.parse(text).port("Ethernet2")
    again = RenderContext(running=EOS.tree(after))
    assert changes(again.running, EOS.render(other, again), EOS.rules).empty
    gone = changes(context.running, EOS.render(device(), context), EOS.rules)
    assert gone.forward == (), "no port of the intent is left, and the profile is still in use"


def test_holes_in_the_dscp_map_are_the_defaults_of_eos() -> None:
    holed = tuple(None if dscp < 24 else tc for dscp, tc in enumerate(CLASSES))
    qos = replace(device(port("Ethernet1", dscp_to_tc=holed)), global_dscp_to_tc=UNKNOWN)

    assert EOS.observable(qos, TRIDENT).global_dscp_to_tc == CLASSES


def test_what_the_plan_leaves_open_is_seen_as_the_device_has_it() -> None:
    running = EOS.tree(
        "priority-flow-control pause watchdog default timeout 1\nqos rewrite dscp\ninterface Ethernet1\n   mtu 9000\n"
    )
    open_port = PortQos("Ethernet1", watchdog=UNKNOWN)
    before = EOS.observable(DeviceQos("leaf2", "eos", (open_port,)), TRIDENT).ports[0]
    after = EOS.observable(DeviceQos("leaf2", "eos", (open_port,)), replace(TRIDENT, running=running)).ports[0]

    assert (before.watchdog, before.rewrite, before.mtu_bytes, before.trust) == (None, None, 9214, Trust.PCP)
    assert (after.watchdog, after.mtu_bytes) == (UNKNOWN, 9000)
    assert isinstance(after.rewrite, DscpRewrite)


def test_a_watchdog_without_times_takes_those_of_the_device() -> None:
    running = EOS.tree(
        "priority-flow-control pause watchdog default timeout 1\n"
        "priority-flow-control pause watchdog default recovery-time 2\n"
        "priority-flow-control pause watchdog default polling-interval 0.5\n"
    )
    watched = port("Ethernet1", watchdog=PortWatchdog(frozenset({3}), action=WatchdogAction.ALERT))
    seen = EOS.observable(device(watched), replace(TRIDENT, running=running)).ports[0].watchdog

    assert seen == PortWatchdog(frozenset({3}), 1000, 2000, 500, WatchdogAction.ALERT)


def test_a_session_takes_every_change_in_service() -> None:
    intended = EOS.render(device(port("Ethernet1")), TRIDENT)
    plan = changes(TRIDENT.running, intended, EOS.rules, adopt=True)

    assert plan.forward
    assert EOS.refusals(plan.forward, TRIDENT.running, TRIDENT) == ()
    assert plan.disruptive == ()


def test_facts_carry_sources_and_what_is_only_remembered_is_marked() -> None:
    facts = EOS.capabilities(asic="trident3", version="4.33.1F")

    assert facts.dscp_default_to_tc.value is not None
    assert [facts.dscp_default_to_tc.value[dscp] for dscp in (0, 8, 26, 48, 63)] == [1, 0, 3, 6, 7]
    assert facts.mtu_max_bytes.value == 9214
    assert facts.reserved_queues.value == (7,)
    assert facts.marks_all_above_kmax.unconfirmed
    assert not facts.watchdog_timer_range_ms.unconfirmed
    assert facts.watchdog_polls_per_timer.value == 2


@pytest.mark.parametrize("answer", ["% Invalid input", "  ok\n% Incomplete command\n", "% Ambiguous command"])
def test_refusals_are_recognised(answer: str) -> None:

    assert any(re.search(pattern, answer) for pattern in EOS.session.error_patterns)
    assert not any(re.search(pattern, "! warning only\n 50 % of 3") for pattern in EOS.session.error_patterns)
