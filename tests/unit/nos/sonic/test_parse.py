"""What fields, rows and tables that are missing or malformed mean."""

import json
from collections.abc import Mapping

import pytest

from fabric.nos.sonic import SONIC
from fabric.nos.sonic.capabilities import capabilities
from fabric.qos import (
    UNKNOWN,
    BufferModel,
    DeviceQos,
    PfcMode,
    PortQos,
    PortWatchdog,
    Reference,
    Scheduler,
    SchedulerKind,
    Trust,
    WatchdogAction,
)

META = {"DEVICE_METADATA": {"localhost": {"hostname": "leaf1"}}}


def _parse(**tables: object) -> DeviceQos:
    return SONIC.parse(json.dumps(tables))


def _port(**tables: object) -> PortQos:
    return _port_of("Ethernet0", tables)


def _port_of(name: str, tables: Mapping[str, object]) -> PortQos:
    found = _parse(**tables).port(name)
    assert found is not None
    return found


def test_device_name_comes_from_the_text_unless_given() -> None:
    assert _parse(**META).device == "leaf1"
    assert SONIC.parse("{}", device="spine9").device == "spine9"


def test_numbers_that_are_none_are_unknown_and_named() -> None:
    qos = _parse(PORT={"Ethernet0": {"mtu": "jumbo", "speed": "100G"}}, CABLE_LENGTH={"AZURE": {"Ethernet0": "5ft"}})
    port = qos.ports[0]
    assert (port.mtu_bytes, port.speed_mbps, port.cable_m) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert Reference("number", "jumbo", "PORT|Ethernet0|mtu") in qos.undefined


def test_pfc_that_cannot_be_read_is_unknown() -> None:
    port = _port(PORT_QOS_MAP={"Ethernet0": {"pfc_enable": "3,x"}})
    assert (port.pfc.mode, port.pfc.priorities, port.pfc.rx) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert port.priority_groups == ()


@pytest.mark.parametrize("row", [{}, {"pfc_enable": ""}])
def test_no_priority_is_pfc_off(row: dict[str, str]) -> None:
    port = _port(PORT_QOS_MAP={"Ethernet0": row})
    assert (port.pfc.mode, port.pfc.priorities) == (PfcMode.OFF, frozenset())


@pytest.mark.parametrize(("text", "value"), [("on", True), ("off", False), (None, False)])
def test_asymmetric_pfc(text: str | None, value: object) -> None:
    row = {} if text is None else {"pfc_asym": text}
    assert _port(PORT={"Ethernet0": row}).pfc.asymmetric is value
    assert _port(PORT_QOS_MAP={"Ethernet0": {}}).pfc.asymmetric is UNKNOWN


def test_port_without_a_map_has_the_device_wide_one() -> None:
    maps = {"DSCP_TO_TC_MAP": {"M": {"26": "3"}}, "DOT1P_TO_TC_MAP": {"M": {"3": "3"}}}
    rows = {"global": {"dscp_to_tc_map": "M"}, "Ethernet0": {}, "Ethernet4": {"dot1p_to_tc_map": "M"}}
    first = _port(**maps, PORT_QOS_MAP=rows)
    assert isinstance(first.dscp_to_tc, tuple)
    assert (first.trust, first.dscp_to_tc[26], first.dscp_to_tc[0]) == (Trust.DSCP, 3, None)
    assert _port_of("Ethernet4", {**maps, "PORT_QOS_MAP": rows}).trust is Trust.BOTH
    del rows["global"]
    assert _port_of("Ethernet4", {**maps, "PORT_QOS_MAP": rows}).trust is Trust.PCP


def test_fragment_without_bindings_leaves_trust_open() -> None:
    tables = {"DSCP_TO_TC_MAP": {"M": {"26": "3"}}, "QUEUE": {"Ethernet0|3": {}}}
    assert (_port(**tables).trust, _port(**tables).dscp_to_tc) == (UNKNOWN, UNKNOWN)
    assert (_port(**META, **tables).trust, _port(**META, **tables).dscp_to_tc) == (Trust.NONE, None)


def test_map_entries_out_of_range_are_left_out() -> None:
    port = _port(
        PORT_QOS_MAP={"Ethernet0": {"tc_to_queue_map": "M"}}, TC_TO_QUEUE_MAP={"M": {"0": "x", "8": "1", "y": "1"}}
    )
    assert port.tc_to_queue == (None,) * 8


def test_rewriting_is_read() -> None:
    port = _port(PORT_QOS_MAP={"Ethernet0": {"tc_to_dscp_map": "M"}}, TC_TO_DSCP_MAP={"M": {"3": "26"}})
    assert port.rewrite is not None
    assert port.rewrite is not UNKNOWN
    assert port.rewrite.tc_to_dscp[3] == 26
    assert _port(PORT_QOS_MAP={"Ethernet0": {"tc_to_dscp_map": "M"}}).rewrite is UNKNOWN


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ({}, Scheduler(SchedulerKind.WRR, weight=1)),
        ({"type": "STRICT", "weight": "3"}, Scheduler(SchedulerKind.STRICT)),
        ({"type": "DWRR", "weight": "x"}, UNKNOWN),
        ({"type": "FIFO"}, UNKNOWN),
        ({"type": "STRICT", "cir": "1", "pir": "125000"}, Scheduler(SchedulerKind.STRICT, shape_kbps=1000)),
        ({"type": "STRICT", "cir": "250", "pir": "x"}, Scheduler(SchedulerKind.STRICT, guaranteed_kbps=2)),
        ({"type": "STRICT", "cir": "250", "meter_type": "packets"}, Scheduler(SchedulerKind.STRICT)),
    ],
)
def test_schedulers(row: dict[str, str], value: object) -> None:
    queue = _port(QUEUE={"Ethernet0|3": {"scheduler": "s"}}, SCHEDULER={"s": row}).queue(3)
    assert queue is not None
    assert queue.scheduler == value


def test_curve_that_names_ecn_without_wred_is_unknown_and_without_both_is_none() -> None:
    rows = {"A": {"ecn": "ecn_all"}, "B": {"ecn": "ecn_none"}, "C": {"ecn": "ecn_red", "wred_green_enable": "true"}}
    queues = {f"Ethernet0|{index}": {"wred_profile": name} for index, name in enumerate("ABC")}
    found = _port(QUEUE=queues, WRED_PROFILE=rows).queues
    assert [queue.aqm for queue in found[:2]] == [UNKNOWN, None]
    third = found[2].aqm
    assert third is not None
    assert third is not UNKNOWN
    assert (third.kind.value, third.kmin, third.pmax_percent) == ("drop", UNKNOWN, 100)


@pytest.mark.parametrize(
    ("table", "value"),
    [
        (None, UNKNOWN),
        ({}, UNKNOWN),
        ({"PORT": {}}, False),
        ({"WRED_ECN_QUEUE": {"FLEX_COUNTER_STATUS": "enable"}}, True),
    ],
)
def test_ecn_counters_are_off_until_switched_on(table: object, value: object) -> None:
    assert _parse(**({} if table is None else {"FLEX_COUNTER_TABLE": table})).aqm_counters is value


def test_buffer_model_comes_from_the_metadata_or_a_computed_profile() -> None:
    assert _parse(**META).buffer_model is BufferModel.TRADITIONAL
    assert _parse(BUFFER_PG={"Ethernet0|3": {"profile": "NULL"}}).buffer_model is BufferModel.DYNAMIC
    assert _parse().buffer_model is UNKNOWN


def test_priority_groups_by_profile() -> None:
    profiles = {
        "auto": {"pool": "p", "size": "0", "headroom_type": "dynamic", "dynamic_th": "1"},
        "bad": {"pool": "p", "size": "0", "xoff": "x"},
    }
    rows = {
        "Ethernet0|1": {"profile": "auto"},
        "Ethernet0|2": {"profile": "bad"},
        "Ethernet0|3": {"profile": "gone"},
        "Ethernet0|4": {"profile": "NULL"},
    }
    traditional = _port(**META, BUFFER_PROFILE=profiles, BUFFER_PG=rows).priority_groups
    assert [(one.index, one.lossless, one.derived_by_nos) for one in traditional] == [
        (1, True, True),
        (2, UNKNOWN, False),
        (3, UNKNOWN, False),
        (4, UNKNOWN, False),
    ]
    assert traditional[0].alpha_log2 == 1
    dynamic = _port(BUFFER_PG=rows, DEFAULT_LOSSLESS_BUFFER_PARAMETER={"AZURE": {}}).priority_groups
    assert (dynamic[3].lossless, dynamic[3].alpha_log2) == (True, UNKNOWN)


def test_pfc_priority_pauses_the_group_that_its_map_names() -> None:
    port = _port(
        PORT_QOS_MAP={"Ethernet0": {"pfc_enable": "3,4", "pfc_to_pg_map": "M"}},
        PFC_PRIORITY_TO_PRIORITY_GROUP_MAP={"M": {"3": "5"}},
        BUFFER_PG={"Ethernet0|0": {"profile": "x"}},
    )
    assert [(one.index, one.lossless) for one in port.priority_groups] == [(0, UNKNOWN), (4, False), (5, False)]


@pytest.mark.parametrize(
    ("profile", "pool", "value"),
    [
        ({"pool": "lossless", "dynamic_th": "7"}, {}, True),
        ({"pool": "lossless", "dynamic_th": "3"}, {}, False),
        ({"pool": "lossless", "static_th": "100"}, {"size": "100"}, True),
        ({"pool": "lossless", "static_th": "99"}, {"size": "100"}, False),
        ({"pool": "lossless", "static_th": "99"}, {}, UNKNOWN),
        ({"pool": "lossless", "static_th": "x"}, {}, UNKNOWN),
        ({"pool": "other", "dynamic_th": "7"}, {}, UNKNOWN),
        (None, {}, UNKNOWN),
    ],
)
def test_egress_buffer_is_lossless_when_its_threshold_is_the_pool(
    profile: dict[str, str] | None, pool: dict[str, str], value: object
) -> None:
    tables: dict[str, object] = {
        "BUFFER_POOL": {"lossless": pool},
        "BUFFER_QUEUE": {"Ethernet0|3": {"profile": "p"}},
        "BUFFER_PROFILE": {} if profile is None else {"p": profile},
    }
    queue = _port(**tables).queue(3)
    assert queue is not None
    assert queue.lossless_buffer is value


def test_headroom_pools_of_ingress_add_up() -> None:
    pools = {"a": {"type": "ingress", "xoff": "5"}, "b": {"type": "ingress", "xoff": "7"}, "c": {"type": "egress"}}
    assert _parse(BUFFER_POOL=pools).headroom_pool_bytes == 12
    assert _parse(BUFFER_POOL={"a": {"type": "ingress", "xoff": "x"}}).headroom_pool_bytes is UNKNOWN
    assert _parse(BUFFER_POOL={"a": {"type": "ingress"}}).headroom_pool_bytes is None


def test_watchdog_rows_and_bindings() -> None:
    bound = {"PORT_QOS_MAP": {"Ethernet0": {"pfcwd_sw_enable": "3"}}}
    row = {"detection_time": "200", "action": "forward"}
    assert _port(**bound, PFC_WD={"Ethernet0": row, "GLOBAL": {"POLL_INTERVAL": "100"}}).watchdog == PortWatchdog(
        frozenset({3}), 200, UNKNOWN, 100, WatchdogAction.FORWARD
    )
    assert _port(**bound).watchdog == PortWatchdog(frozenset({3}))
    assert _port(**bound, PFC_WD={"Ethernet4": row}).watchdog is None
    assert _port(**bound, **META).watchdog is None
    assert _port(PFC_WD={"Ethernet0": {}}).watchdog == PortWatchdog(UNKNOWN)


@pytest.mark.parametrize(
    ("tables", "value"),
    [
        ({}, UNKNOWN),
        ({"FEATURE": {"lldp": {"state": "enabled"}}}, True),
        ({"FEATURE": {"lldp": {"state": "disabled"}}}, False),
        ({"FEATURE": {"lldp": {"state": "enabled"}}, "LLDP_PORT": {"Ethernet0": {"enabled": "false"}}}, False),
        ({"LLDP": {"GLOBAL": {"enabled": "false"}}}, False),
    ],
)
def test_lldp(tables: dict[str, object], value: object) -> None:
    assert _port(PORT={"Ethernet0": {}}, **tables).lldp is value


def test_members_name_their_port_channel() -> None:
    assert _port(PORT={"Ethernet0": {}}, PORTCHANNEL_MEMBER={"PortChannel1|Ethernet0": {}}).lag == "PortChannel1"


def test_every_capability_says_where_it_is_from() -> None:
    facts = capabilities(asic="spectrum3", version="202605")
    named = {name: getattr(facts, name) for name in facts.__dataclass_fields__ if name != "nos"}
    assert all(fact.source for fact in named.values())
    assert {name for name, fact in named.items() if fact.unconfirmed} == {
        "lossless_priorities_max",
        "threshold_quantum_bytes",
        "reserved_queues",
        "marks_all_above_kmax",
    }


def test_watched_priorities_that_are_no_numbers_are_unknown_and_no_error() -> None:
    text = '{"PORT": {"Ethernet0": {}}, "PORT_QOS_MAP": {"Ethernet0": {"pfcwd_sw_enable": "three"}}}'

    (port,) = SONIC.parse(text).ports

    assert port.watchdog == PortWatchdog(priorities=UNKNOWN)
