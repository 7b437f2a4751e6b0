"""What a configuration does on EOS beside the samples: defaults, inheritance, the lines that do nothing."""

import pytest

from fabric.nos.eos import EOS
from fabric.qos import UNKNOWN, Aqm, DcbxMode, LinkPause, PfcMode, PortQos, PortWatchdog, SchedulerKind, Trust

# cases/04 in short: the map in the wrong direction, the strict queue in the wrong place
CASE_04 = """qos map traffic-class 3 to dscp 26
qos map traffic-class 7 to dscp 48
!
qos profile ROCE
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   priority-flow-control pause watchdog
   !
   uc-tx-queue 6
      no priority
      bandwidth percent 1
   !
   uc-tx-queue 7
      priority strict
!
interface Ethernet1/1
   no switchport
   service-profile ROCE
"""


def only_port(text: str) -> PortQos:
    (port,) = EOS.parse(text).ports
    return port


def watchdog_of(text: str) -> PortWatchdog:
    watchdog = only_port(text).watchdog
    assert isinstance(watchdog, PortWatchdog)
    return watchdog


def test_a_rewrite_map_does_not_classify() -> None:
    port = only_port(CASE_04)

    assert isinstance(port.dscp_to_tc, tuple)
    assert (port.dscp_to_tc[26], port.dscp_to_tc[48]) == (3, 6)
    kinds = {queue.index: queue.scheduler.kind for queue in port.queues if queue.scheduler not in {None, UNKNOWN}}
    assert (kinds[6], kinds[7]) == (SchedulerKind.DWRR, SchedulerKind.STRICT)
    assert port.rewrite is None


def test_a_watchdog_without_guaranteed_bandwidth_watches_nothing() -> None:
    bound = CASE_04 + "   !\n   tx-queue 3\n      bandwidth guaranteed 100\n"

    assert watchdog_of(CASE_04).priorities == frozenset()
    assert watchdog_of(bound).priorities == frozenset({3})
    assert watchdog_of(bound).detection_ms is UNKNOWN


def test_the_watchdog_watches_the_queue_that_the_class_drains_into() -> None:
    text = "qos map traffic-class 3 to tx-queue 5\n" + CASE_04 + "   !\n   tx-queue 5\n      bandwidth guaranteed 100\n"

    assert watchdog_of(text).priorities == frozenset({3})


def test_a_port_may_refuse_the_watchdog_of_the_device() -> None:
    text = "priority-flow-control pause watchdog default timeout 0.2\ninterface Ethernet1\n   mtu 9214\n"

    assert watchdog_of(text).detection_ms == 200
    assert only_port(text + "   no priority-flow-control pause watchdog\n").watchdog is None


def test_the_times_of_a_port_go_over_those_of_the_device() -> None:
    text = (
        "priority-flow-control pause watchdog default timeout 9\n"
        "priority-flow-control pause watchdog action notify-only\n"
        "interface Ethernet1\n"
        "   priority-flow-control pause watchdog port timer timeout 0.2 polling-interval 0.1 recovery-time 0.4\n"
    )

    found = watchdog_of(text)

    assert (found.detection_ms, found.restoration_ms, found.polling_ms, found.action) == (200, 400, 100, "alert")


def test_polling_that_eos_replaces_is_unknown() -> None:
    text = (
        "interface Ethernet1\n"
        "   priority-flow-control pause watchdog port timer timeout 0.2 polling-interval 0.101 recovery-time 0.4\n"
    )

    assert watchdog_of(text).polling_ms is UNKNOWN


@pytest.mark.parametrize(
    ("lines", "trust", "mtu"),
    [
        ("switchport", Trust.PCP, 9214),
        ("no switchport", Trust.DSCP, 1500),
        ("ip address 192.0.2.1/31", Trust.DSCP, 1500),
        ("description nothing said", Trust.PCP, 9214),
        ("no switchport\n   mtu 9000\n   l2 mtu 8000", Trust.DSCP, 8000),
    ],
)
def test_defaults_depend_on_whether_the_port_is_routed(lines: str, trust: Trust, mtu: int) -> None:
    port = only_port(f"interface Ethernet1\n   {lines}\n")

    assert (port.trust, port.mtu_bytes) == (trust, mtu)


def test_a_device_may_route_by_default() -> None:
    assert only_port("switchport default mode routed\ninterface Ethernet1\n   load-interval 2\n").trust is Trust.DSCP


def test_a_member_takes_profile_and_mtu_from_its_channel() -> None:
    text = (
        "qos profile P\n   priority-flow-control on\n   priority-flow-control priority 3 no-drop\n"
        "interface Port-Channel9\n   no switchport\n   mtu 9214\n   service-profile P\n"
        "interface Ethernet1\n   channel-group 9 mode active\n   mtu 1500\n"
    )
    port = only_port(text)

    assert (port.lag, port.mtu_bytes, port.trust, port.pfc.active) == (
        "Port-Channel9",
        9214,
        Trust.DSCP,
        frozenset({3}),
    )


def test_a_channel_that_is_not_in_the_text_changes_nothing() -> None:
    text = "interface Ethernet1\n   no switchport\n   channel-group 9 mode active\n   mtu 9000\n"

    assert (only_port(text).mtu_bytes, only_port(text).trust) == (9000, Trust.DSCP)


def test_lines_of_the_port_go_over_its_profile() -> None:
    text = (
        "qos profile P\n   qos trust dscp\n   priority-flow-control on\n   priority-flow-control priority 3 no-drop\n"
        "   uc-tx-queue 3\n      no priority\n      bandwidth percent 30\n"
        "interface Ethernet1\n   service-profile P\n   no qos trust\n   priority-flow-control priority 3 drop\n"
        "   uc-tx-queue 3\n      priority strict\n"
    )
    port = only_port(text)

    assert port.trust is Trust.NONE
    assert port.pfc.active == frozenset()
    queue = port.queue(3)
    assert queue is not None
    assert (queue.scheduler.kind, queue.scheduler.weight) == (SchedulerKind.STRICT, 30)  # type: ignore[union-attr]


def test_link_pause_dcbx_fec_and_lldp_are_read() -> None:
    text = (
        "interface Ethernet1\n   flowcontrol receive on\n   dcbx mode cee\n   no lldp transmit\n"
        "   no error-correction encoding\n   speed 100g-2\n"
    )
    port = only_port(text)

    assert port.link_pause == LinkPause(rx=True, tx=False)
    assert (port.dcbx, port.lldp, port.fec, port.speed_mbps) == (DcbxMode.CEE, False, None, 100_000)


def test_percent_rates_need_a_speed() -> None:
    lines = "   tx-queue 4\n      bandwidth guaranteed percent 10\n      shape rate 40 percent\n"
    fast = only_port(f"interface Ethernet1\n   speed 100g\n{lines}").queue(4)
    open_speed = only_port(f"interface Ethernet1\n   mtu 9214\n{lines}").queue(4)

    assert fast is not None
    assert open_speed is not None
    assert (fast.scheduler.guaranteed_kbps, fast.scheduler.shape_kbps) == (10_000_000, 40_000_000)  # type: ignore[union-attr]
    assert (open_speed.scheduler.guaranteed_kbps, open_speed.scheduler.shape_kbps) == (None, None)  # type: ignore[union-attr]


def test_a_curve_of_an_unknown_unit_is_unknown() -> None:
    line = "random-detect ecn minimum-threshold 1 furlongs maximum-threshold 2 furlongs"
    queue = only_port(f"interface Ethernet1\n   tx-queue 3\n      {line}\n").queue(3)

    assert queue is not None
    assert queue.aqm is UNKNOWN


def test_a_queue_that_both_marks_and_drops_is_unknown() -> None:
    limits = "minimum-threshold 150 kbytes maximum-threshold 1500 kbytes"
    lines = f"random-detect ecn {limits}\n      random-detect drop {limits} drop-probability 90"
    queue = only_port(f"interface Ethernet1\n   tx-queue 3\n      {lines}\n").queue(3)

    assert queue is not None
    assert queue.aqm is UNKNOWN


def test_mbytes_are_bytes() -> None:
    line = "random-detect ecn minimum-threshold 1 mbytes maximum-threshold 2 mbytes"
    queue = only_port(f"interface Ethernet1\n   tx-queue 3\n      {line}\n").queue(3)

    assert queue is not None
    assert isinstance(queue.aqm, Aqm)
    assert str(queue.aqm.kmax) == "2000000 bytes"


def test_pfc_of_an_undefined_profile_is_off_where_the_device_says_all_off() -> None:
    text = "priority-flow-control all off\ninterface Ethernet1\n   service-profile GONE\n"

    assert only_port(text).pfc.mode is PfcMode.OFF
    assert only_port(text).pfc.active == frozenset()


def test_a_port_says_pfc_on_over_an_undefined_profile_and_its_priorities_stay_unknown() -> None:
    port = only_port("interface Ethernet1\n   service-profile GONE\n   priority-flow-control on\n")

    assert port.pfc.mode is PfcMode.ON
    assert port.pfc.active is UNKNOWN


def test_undefined_policies_are_named() -> None:
    qos = EOS.parse("interface Ethernet1\n   service-policy type qos input GONE\n")

    assert [(one.kind, one.name, one.where) for one in qos.undefined] == [("policy", "GONE", "Ethernet1")]


def test_the_device_is_called_as_it_calls_itself_unless_told() -> None:
    assert EOS.parse("hostname leaf1\n").device == "leaf1"
    assert EOS.parse("hostname leaf1\n", device="other").device == "other"


def test_mark_counters_are_known_to_be_on_only_by_their_line() -> None:
    assert EOS.parse("hardware counter feature ecn out\n").aqm_counters is True
    assert EOS.parse("hostname leaf1\n").aqm_counters is UNKNOWN
