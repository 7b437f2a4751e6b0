"""What the sample outputs of show commands say (samples/SOURCES.md)."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest

from fabric.errors import FabricError
from fabric.nos.sonic import SONIC
from fabric.nos.sonic.show import buffers, interfaces, pfc, priority_group, queue, table, watchdog
from fabric.qos import UNKNOWN
from fabric.state import WatchdogCounters

Shown = Callable[[str], str]


@pytest.fixture
def shown(reference: Path) -> Shown:
    return lambda name: (reference / "samples" / "sonic" / "show" / name).read_text()


pytestmark = pytest.mark.reference


def test_pfc_counters_have_separators_and_internal_ports(shown: Shown) -> None:
    received, sent = pfc.counters(shown("pfc_counters_multi_asic.txt"))
    assert received["Ethernet0"] == (1200, 201, 202, 203, 204, 205, 206, 207)
    assert received["Ethernet-BP260"] == (1100, 101, 102, 103, 104, 105, 106, 107)
    assert sent["Ethernet0"] == (1210, 211, 212, 213, 214, 215, 216, 217)
    assert len(received) == len(sent) == 6


def test_zeros_that_were_measured_are_zeros(shown: Shown) -> None:
    received, sent = pfc.counters(shown("pfc_counters_all_zero.txt"))
    assert received["Ethernet0"] == sent["Ethernet8"] == (0,) * 8


def test_pause_history(shown: Shown) -> None:
    found = pfc.history(shown("pfc_counters_history.txt"))
    entry = found["Ethernet0"][3]
    assert (entry.rx_pause_transitions, entry.total_rx_pause_us, entry.recent_rx_pause_us) == (23, 20000003, 2000003)
    assert entry.recent_at == dt.datetime(2033, 5, 18, 3, 33, 20)  # noqa: DTZ001  (the device prints no zone)
    assert {port: sorted(priorities) for port, priorities in found.items()} == {
        port: list(range(8)) for port in ("Ethernet0", "Ethernet4", "Ethernet8")
    }


def test_a_port_that_never_paused_has_no_time() -> None:
    text = (
        "     Port    Priority    RX Pause Transitions    Total RX Pause Time US    Recent RX Pause Time US    Recent RX Pause Timestamp\n"
        "---------  ----------  ----------------------  ------------------------  -------------------------  ---------------------------\n"
        "Ethernet0        PFC3                     N/A                       N/A                        N/A                          N/A\n"
    )
    entry = pfc.history(text)["Ethernet0"][3]
    assert (entry.rx_pause_transitions, entry.recent_at) == (UNKNOWN, None)


def test_lossless_priorities_and_asymmetric_pfc(shown: Shown) -> None:
    assert pfc.priorities(shown("pfc_priority.txt")) == {"Ethernet0": (3, 4), "Ethernet4": (3, 4)}
    asymmetric = pfc.asymmetric(shown("pfc_asymmetric.txt"))
    assert len(asymmetric) == 32
    assert (asymmetric["Ethernet0"], asymmetric["Ethernet124"]) == (False, False)


def test_queue_counters(shown: Shown) -> None:
    found = queue.counters(shown("queue_counters_port.txt"))["Ethernet8"]
    assert found["UC3"] == queue.QueueCount(11, 97, 63, 72)
    assert (found["UC0"].packets, found["UC0"].dropped_packets) == (0, 0)
    assert found["ALL20"] == queue.QueueCount(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def test_wred_counters_that_are_not_measured_are_unknown(shown: Shown) -> None:
    found = queue.wred(shown("wred_ecn_counters_port.txt"))["Ethernet8"]
    assert found["UC3"] == queue.WredCount(11, 97, 63, 72)
    assert (found["UC4"].dropped_packets, found["UC4"].marked_packets) == (54, 62)
    assert found["ALL20"].marked_packets is UNKNOWN


def test_a_summary_of_zeros_is_no_evidence(shown: Shown) -> None:
    found = queue.wred_total(shown("wred_ecn_counters_summary.txt"))
    assert (found["UC3"].dropped_packets, found["UC3"].marked_packets) == (123, 130)
    assert found["ALL20"].dropped_packets is UNKNOWN


def test_voq_counters_keep_credit_watchdog_deletes_apart(shown: Shown) -> None:
    found = queue.voq_counters(shown("queue_voq_counters.json"))["testsw|Ethernet0"]["VOQ3"]
    assert (found.packets, found.dropped_packets, found.credit_watchdog_packets) == (11, 12, 12)


def test_voq_counters_that_are_not_json_are_refused() -> None:
    with pytest.raises(FabricError, match="not JSON"):
        queue.voq_counters("For namespace :")


def test_queue_watermarks(shown: Shown) -> None:
    found = queue.watermarks(shown("queue_watermark_unicast.txt"))
    assert (found["Ethernet4"]["UC3"], found["Ethernet4"]["UC4"]) == (1986, 2567)
    assert found["Ethernet0"]["UC0"] == 2057328


def test_ingress_drops_by_priority_group(shown: Shown) -> None:
    found = priority_group.drops(shown("pg_drop_counters.txt"))
    assert found["Ethernet0"] == (800, 801, 802, 803, 804, 805, 806, 807)
    assert found["Ethernet4"][3] == 403


def test_headroom_watermarks_by_namespace(shown: Shown) -> None:
    found = priority_group.watermarks(shown("pg_headroom_watermark_multi_asic.txt"))
    assert set(found) == {"asic0", "asic1"}
    assert found["asic0"]["Ethernet0"][3:5] == (103, 104)
    assert found["asic1"]["Ethernet-BP256"][3] == 103
    assert len(found["asic0"]["Ethernet0"]) == 16


def test_headroom_pool_watermark(shown: Shown) -> None:
    assert priority_group.headroom_pool(shown("headroom_pool_watermark.txt")) == {"ingress_lossless_pool": 432640}


def test_watchdog_setting(shown: Shown) -> None:
    found = watchdog.setting(shown("pfcwd_config.txt"))
    assert (found.polling_ms, found.big_red_switch) == ({"": 600}, {})
    assert found.ports["Ethernet0"] == watchdog.PortSetting("drop", 600, 600, history=False)


def test_watchdog_setting_of_two_asics(shown: Shown) -> None:
    found = watchdog.setting(shown("pfcwd_config_multi_asic.txt"))
    assert found.polling_ms == {"asic0": 199, "asic1": 199}
    assert found.big_red_switch == {"asic0": True, "asic1": True}
    assert (len(found.ports), found.ports["Ethernet0"].detection_ms) == (6, 200)


def test_watchdog_port_that_the_polling_interval_outran(shown: Shown) -> None:
    found = watchdog.setting(shown("pfcwd_config_poll_above_detect.txt"))
    assert (found.polling_ms[""], found.ports["Ethernet8"].detection_ms) == (1000, 600)
    assert found.ports["Ethernet0"].restoration_ms == 3200


def test_storms(shown: Shown) -> None:
    found = watchdog.storms(shown("pfcwd_stats_storm.txt"))
    storm = found["Ethernet0"][3]
    assert storm.total == WatchdogCounters(3, "stormed", 1, 0, 100, 300, 100, 300)
    assert (storm.last_tx_dropped, storm.last_rx_dropped) == (200, 200)
    assert (found["Ethernet4"][3].total.status, found["Ethernet4"][3].total.tx_dropped) == ("operational", 100)
    assert (found["Ethernet8"][4].total.storms_detected, found["Ethernet8"][4].total.storms_restored) == (3, 2)


def test_watchdog_status_not_available_stays_so(shown: Shown) -> None:
    found = watchdog.storms(shown("pfcwd_stats_status_na.txt"))
    assert found["Ethernet0"][3].total == WatchdogCounters(3, "N/A", 0, 1, 8814, 0, 1757, 49)
    assert sum(len(queues) for queues in found.values()) == 30


def test_buffer_configuration(shown: Shown) -> None:
    found = buffers.buffers(shown("buffer_configuration.txt"))
    assert found.pools["egress_lossless_pool"] == buffers.Pool("dynamic", "egress", 13945824)
    assert found.pools["ingress_lossless_pool"].size_bytes is UNKNOWN
    assert found.pools["ingress_lossless_pool_hbm"] == buffers.Pool("static", "ingress", 139458240)
    headroom = found.profiles["headroom_profile"]
    assert (headroom.xon_bytes, headroom.xoff_bytes, headroom.size_bytes) == (18432, 32768, 51200)
    assert (headroom.dynamic_th, headroom.headroom_type) == (0, "static")
    assert found.profiles["alpha_profile"].headroom_type == "dynamic"
    assert found.profiles["q_lossy_profile"].packet_discard_action == "drop"
    assert (found.default_dynamic_th, found.over_subscribe_ratio) == (0, 2)


def test_negative_alpha_is_read() -> None:
    text = "Profile: x\n----------  --\ndynamic_th  -3\npool        p\n----------  --\n"
    assert buffers.buffers(text).profiles["x"].dynamic_th == -3


def test_ecn_profile(shown: Shown) -> None:
    found = buffers.ecn_profiles(shown("ecn_profile_ok.txt"))["AZURE_LOSSLESS"]
    assert (found.ecn, found.kmin_bytes, found.kmax_bytes) == ("ecn_all", 1048576, 2097152)
    assert found.enabled == {"green": True, "yellow": True, "red": True}
    assert found.drop_percent == {"green": 5, "yellow": 5, "red": 5}


def test_ecn_profiles_without_colour_flags(shown: Shown) -> None:
    found = buffers.ecn_profiles(shown("ecn_profiles_color_flags_missing.txt"))
    assert (found["AZURE_LOSSLESS"].ecn, found["AZURE_LOSSLESS"].enabled) == ("ecn_all", {})
    assert (found["AZURE_LOSSY"].ecn, found["AZURE_LOSSY"].drop_percent) == ("ecn_none", {"yellow": 2})


def test_two_lldp_neighbours_on_one_port(shown: Shown) -> None:
    found = buffers.lldp_neighbours(shown("lldp_table_two_neighbours.txt"))
    assert found == {
        "Ethernet0": (
            buffers.Neighbour("dummy", "00:00:00:00:00:01", "BR", "First MAC"),
            buffers.Neighbour("dummy", "00:00:00:00:00:02", "R", "Second MAC"),
        )
    }


INTERFACES = """\
Last cached time was 2026-11-30 04:41:47.000000
    IFACE    STATE    RX_OK      RX_BPS    RX_UTIL    RX_ERR    RX_DRP    TX_OK    TX_UTIL    TX_ERR    TX_DRP
---------  -------  -------  ----------  ---------  --------  --------  -------  ---------  --------  --------
Ethernet0        D        8   0.00 B/s      64.00%        10       100       10     48.00%       N/A       N/A
Ethernet8      N/A        6  13.50 KB/s        N/A       100        10       60        N/A       N/A         0

Reminder: Please execute 'show interface counters -d all' to include internal links
"""


def test_frames_of_a_port_are_found_by_the_names_of_their_columns() -> None:
    found = interfaces.totals(INTERFACES)
    assert found["Ethernet0"] == interfaces.PortTotals(8, 10, 10, UNKNOWN, 100, UNKNOWN)
    assert set(found) == {"Ethernet0", "Ethernet8"}
    assert interfaces.totals("IFACE    STATE\n-------  -------\nEthernet0  U\n") == {}


def test_counters_of_a_port_meet(shown: Shown) -> None:
    outputs = {
        "interfaces": INTERFACES,
        "pfc": shown("pfc_counters_all_zero.txt"),
        "pg_drop": shown("pg_drop_counters.txt"),
        "queue": shown("queue_counters_port.txt"),
        "wred": shown("wred_ecn_counters_port.txt"),
        "watchdog": shown("pfcwd_stats_storm.txt"),
    }
    assert set(outputs) == set(SONIC.session.fetch_counters)
    found = {port.port: port for port in SONIC.counters(outputs)}
    assert list(found) == ["Ethernet0", "Ethernet4", "Ethernet8"]
    port = found["Ethernet8"]
    assert (port.pfc_rx_frames, port.pfc_rx_total, port.pfc_tx_total) == ((0,) * 8, 0, 0)
    assert port.pg_dropped_packets == (100, 101, 102, 103, 104, 105, 106, 107)
    assert (port.rx_packets, port.tx_packets, port.rx_errors, port.tx_errors) == (6, 60, 100, UNKNOWN)
    assert (port.rx_discards, port.tx_discards) == (10, 0)
    labels = [one.queue for one in port.queues]
    assert labels[:4] == ["ALL20", "ALL21", "ALL22", "ALL23"]
    third = port.queues[labels.index("UC3")]
    assert (third.packets, third.dropped_packets, third.wred_dropped_packets, third.marked_packets) == (11, 63, 11, 63)
    assert [(one.queue, one.status) for one in port.watchdog] == [(4, "stormed")]


def test_a_command_that_was_not_run_leaves_unknown(shown: Shown) -> None:
    (first, *_) = SONIC.counters({"pg_drop": shown("pg_drop_counters.txt")})
    assert (first.pfc_rx_frames, first.pfc_rx_total, first.queues, first.watchdog) == (UNKNOWN, UNKNOWN, (), ())
    only_wred = SONIC.counters({"wred": shown("wred_ecn_counters_port.txt")})[0].queues
    assert {one.packets for one in only_wred} == {UNKNOWN}
    only_queue = SONIC.counters({"queue": shown("queue_counters_port.txt")})[0].queues
    assert {one.marked_packets for one in only_queue} == {UNKNOWN}


def test_a_counter_that_is_not_available_has_no_total() -> None:
    text = "  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7\n"
    text += "---------  ------  ------  ------  ------  ------  ------  ------  ------\n"
    text += "Ethernet0     N/A       0       0       0       0       0       0       0\n"
    (found,) = SONIC.counters({"pfc": text})
    assert found.pfc_rx_frames == (UNKNOWN, 0, 0, 0, 0, 0, 0, 0)
    assert found.pfc_rx_total is UNKNOWN


def test_a_name_that_wraps_goes_on_in_the_next_line() -> None:
    text = (
        "Interface     Lossless priorities\n------------  ---------------------\nEthernet-BP2  3,4\n              ,5\n"
    )
    (found,) = table.tables(text)
    assert found.rows == (("Ethernet-BP2", "3,4,5"),)


@pytest.mark.parametrize(
    ("cell", "value"), [("1,200", 1200), ("0", 0), ("N/A", UNKNOWN), ("", UNKNOWN), ("-", UNKNOWN), ("1,2", UNKNOWN)]
)
def test_count_reads_numbers_and_nothing_else(cell: str, value: object) -> None:
    assert table.count(cell) == value


def test_tables_of_other_commands_are_passed_over(shown: Shown) -> None:
    other = shown("queue_watermark_unicast.txt").replace("Port", "Iface")
    assert pfc.history(other) == {}
    assert pfc.counters(other) == ({}, {})
    assert queue.watermarks(other) == {}
    assert queue.wred_total(other) == {}
    assert (priority_group.drops(other), priority_group.watermarks(other), priority_group.headroom_pool(other)) == (
        {},
        {},
        {},
    )
    assert (watchdog.storms(other), watchdog.setting(other).ports, buffers.lldp_neighbours(other)) == ({}, {}, {})


def test_rows_that_are_of_no_queue_are_passed_over() -> None:
    storms = "QUEUE      STATUS    A    B    C    D    E\n---------  --------  ---  ---  ---  ---  ---\nEthernet0  stormed   1/0  0/0  0/0  0/0  0/0\n"
    assert watchdog.storms(storms) == {}
    history = "Port       Priority    A    B    C    D\n---------  ----------  ---  ---  ---  ---\nEthernet0  total       1    2    3    4\n"
    assert pfc.history(history) == {}
    assert queue.voq_counters('{"sw|Ethernet0": {"time": "12:00"}}') == {}
