"""What is rendered where the device already has something, and what is refused."""

import json
from dataclasses import replace

import pytest

from fabric.diff import changes, future, matches
from fabric.errors import PlanError, UnsupportedFeatureError
from fabric.nos.base import RenderContext
from fabric.nos.sonic import SONIC
from fabric.nos.sonic.names import STOCK_WRED
from fabric.nos.sonic.render_queues import needs_stock_wred
from fabric.qos import (
    UNKNOWN,
    Aqm,
    AqmKind,
    BufferModel,
    DcbxMode,
    DeviceQos,
    LinkPause,
    PfcMode,
    PortPfc,
    PriorityGroupQos,
    QueueQos,
    Threshold,
    ThresholdUnit,
)
from fabric.tree import EMPTY, Tree
from tests.oracle.sonic_base import BasePort, base_text, sonic_base
from tests.unit.nos.sonic.devices import device, port

PORTS = (BasePort("Ethernet0"), BasePort("Ethernet4"), BasePort("Ethernet8"))
STOCK = SONIC.tree(base_text(PORTS))


def _render(qos: DeviceQos, running: Tree = STOCK, **options: object) -> Tree:
    return SONIC.render(qos, RenderContext(running=running, **options)).tree  # type: ignore[arg-type]


def test_a_stock_port_is_taken_over_without_interruption() -> None:
    intended = SONIC.render(device(port("Ethernet0")), RenderContext(running=STOCK))
    plan = changes(STOCK, intended, SONIC.rules)
    assert (plan.disruptive, plan.held_back) == ((), ())


def test_another_cable_swaps_the_profile_and_says_so() -> None:
    intended = SONIC.render(device(port("Ethernet0", cable_m=40)), RenderContext(running=STOCK))
    assert intended.tree["BUFFER_PG", "Ethernet0|3", "profile"] == "pg_lossless_100000_40m_profile"
    assert changes(STOCK, intended, SONIC.rules).disruptive


def test_groups_are_left_to_the_device_where_nobody_knows_a_profile() -> None:
    intended = SONIC.render(device(port("Ethernet0", cable_m=7)), RenderContext(running=STOCK))
    assert intended.tree.under("BUFFER_PG") == EMPTY
    assert not any(matches(pattern, ("BUFFER_PG", "Ethernet0|3-4", "profile")) for pattern in intended.owned)
    assert intended.tree["CABLE_LENGTH", "AZURE", "Ethernet0"] == "7m"


def test_a_plan_with_bytes_gets_a_profile_of_ours() -> None:
    group = PriorityGroupQos(3, True, 60_000, 18_432, 2288, 1248, static_threshold_bytes=9000)
    tree = _render(device(port("Ethernet0", cable_m=7, group=group)))
    name = tree["BUFFER_PG", "Ethernet0|3", "profile"]
    assert isinstance(name, str)
    assert tree.under("BUFFER_PROFILE", name) == Tree(
        {
            ("BUFFER_PROFILE", name, "pool"): "ingress_lossless_pool",
            ("BUFFER_PROFILE", name, "size"): "1248",
            ("BUFFER_PROFILE", name, "xon"): "18432",
            ("BUFFER_PROFILE", name, "xoff"): "60000",
            ("BUFFER_PROFILE", name, "xon_offset"): "2288",
            ("BUFFER_PROFILE", name, "static_th"): "9000",
        }
    )


def test_a_profile_of_ours_that_a_group_outside_still_uses_stays() -> None:
    group = PriorityGroupQos(3, lossless=True, xoff_bytes=60_000, xon_bytes=0, size_bytes=1248, alpha_log2=0)
    both = device(port("Ethernet0", cable_m=7, group=group), port("Ethernet4", cable_m=7, group=group))
    text = _applied(base_text(PORTS), both)
    again = _applied(text, device(port("Ethernet0")))
    assert json.loads(again)["BUFFER_PG"]["Ethernet0|3"] == {"profile": "pg_lossless_100000_5m_profile"}
    name = json.loads(again)["BUFFER_PG"]["Ethernet4|3"]["profile"]
    assert name in json.loads(again)["BUFFER_PROFILE"]
    last = _applied(again, device(port("Ethernet4")))
    assert name not in json.loads(last)["BUFFER_PROFILE"]


def test_dynamic_model_computes_headroom() -> None:
    running = SONIC.tree(base_text(PORTS, dynamic=True, stock_qos=False))
    assert _render(device(port("Ethernet0")), running).under("BUFFER_PG", "Ethernet0|3-4") == Tree(
        {("BUFFER_PG", "Ethernet0|3-4", "profile"): "NULL"}
    )
    unread = replace(device(port("Ethernet0")), buffer_model=BufferModel.DYNAMIC)
    assert _render(unread, EMPTY)["BUFFER_PG", "Ethernet0|3", "profile"] == "NULL"


def test_lossless_queue_gets_the_egress_lossless_profile() -> None:
    base = sonic_base(PORTS)
    base["BUFFER_QUEUE"] = {"Ethernet0|0-6": {"profile": "egress_lossy_profile"}}
    wanted = port("Ethernet0")
    unsaid = replace(wanted, queues=tuple(replace(queue, lossless_buffer=UNKNOWN) for queue in wanted.queues))
    for one in (wanted, unsaid):
        tree = _render(device(one), SONIC.tree(json.dumps(base)))
        rows = {path[1]: value for path, value in tree.under("BUFFER_QUEUE").items()}
        lossy = {f"Ethernet0|{index}": "egress_lossy_profile" for index in (0, 1, 2, 4, 5, 6)}
        assert rows == lossy | {"Ethernet0|3": "egress_lossless_profile"}
    unmapped = replace(unsaid, pfc_to_queue=None)
    assert set(_render(device(unmapped), SONIC.tree(json.dumps(base))).children("BUFFER_QUEUE")) == {"Ethernet0|0-6"}


@pytest.mark.parametrize(
    ("version", "stock"),
    [("", False), ("202311.x", False), ("SONiC.20240531.08", True), ("SONiC.20260430.1", True), ("20260501.2", False)],
)
def test_branches_that_take_only_the_stock_curve(version: str, *, stock: bool) -> None:
    assert needs_stock_wred(version) is stock


def test_old_branch_gives_the_commonest_curve_the_stock_name() -> None:
    qos = device(port("Ethernet0"), port("Ethernet4"), port("Ethernet8", speed_mbps=25_000))
    tree = _render(qos, version="SONiC.20240531.08")
    assert tree["QUEUE", "Ethernet0|3", "wred_profile"] == STOCK_WRED
    assert tree["WRED_PROFILE", STOCK_WRED, "green_min_threshold"] == "150000"
    assert ("WRED_PROFILE", STOCK_WRED, "yellow_min_threshold") not in tree  # older GCU refuses yellow and red
    assert tree["QUEUE", "Ethernet8|3", "wred_profile"] == "FABRICCTL_ECN_37500_375000_10"
    installed = _render(qos, version="SONiC.20240531.08", install=True)
    assert installed["QUEUE", "Ethernet0|3", "wred_profile"] == "FABRICCTL_ECN_150000_1500000_10"


def test_old_branch_has_nothing_to_do_after_an_install_under_our_own_names() -> None:
    qos = device(port("Ethernet0"), port("Ethernet4"))
    context = RenderContext(running=STOCK, version="SONiC.20240531.08", adopt=True)
    install = changes(STOCK, SONIC.render(qos, replace(context, install=True)), SONIC.rules, adopt=True)
    again = replace(context, running=future(STOCK, install.forward))
    assert changes(again.running, SONIC.render(qos, again), SONIC.rules, adopt=True).empty


def test_stock_curve_is_device_wide_while_others_use_it() -> None:
    context = RenderContext(running=STOCK, version="SONiC.20240531.08")
    intended = SONIC.render(device(port("Ethernet0")), context)
    plan = changes(STOCK, intended, SONIC.rules)
    assert {change.path[:2] for change in plan.held_back} == {("WRED_PROFILE", STOCK_WRED)}
    assert SONIC.outside_ports(STOCK, intended) == ("Ethernet4", "Ethernet8")


def test_long_curve_names_are_shortened_and_stay_apart() -> None:
    def named(kmax: int) -> str:
        curve = Aqm(AqmKind.DROP, Threshold(12_000_000), Threshold(kmax), UNKNOWN)
        qos = device(replace(port("Ethernet0"), queues=(QueueQos(3, None, curve),)))
        name = _render(qos)["QUEUE", "Ethernet0|3", "wred_profile"]
        assert isinstance(name, str)
        return name

    assert len(named(120_000_000)) <= 32
    assert named(120_000_000) != named(120_000_001)


def test_device_wide_map_needs_adopt() -> None:
    wanted = port("Ethernet0").dscp_to_tc
    qos = replace(device(port("Ethernet0")), global_dscp_to_tc=wanted)
    assert ("PORT_QOS_MAP", "global", "dscp_to_tc_map") not in _render(qos)
    intended = SONIC.render(qos, RenderContext(running=STOCK, adopt=True))
    assert str(intended.tree["PORT_QOS_MAP", "global", "dscp_to_tc_map"]).startswith("FABRICCTL_")
    bare = SONIC.tree(base_text(PORTS, stock_qos=False))
    assert SONIC.outside_ports(bare, intended) == ("Ethernet4", "Ethernet8")
    assert SONIC.outside_ports(STOCK, intended) == ()  # they have maps of their own


def test_polling_interval_that_others_feel_is_held_back_with_what_depends_on_it() -> None:
    base = sonic_base(PORTS)
    base["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] = "600"
    for name in ("Ethernet4", "Ethernet8"):
        base["PFC_WD"][name] = {"action": "drop", "detection_time": "600", "restoration_time": "600"}
    running = SONIC.tree(json.dumps(base))
    intended = SONIC.render(device(port("Ethernet0")), RenderContext(running=running))
    plan = changes(running, intended, SONIC.rules)
    assert {change.path[:2] for change in plan.held_back} == {("PFC_WD", "GLOBAL"), ("PFC_WD", "Ethernet0")}
    assert SONIC.outside_ports(running, intended) == ("Ethernet4", "Ethernet8")


def test_polling_interval_that_nobody_else_feels_is_set() -> None:
    running = SONIC.tree(base_text(PORTS, watchdog=False))
    plan = changes(running, SONIC.render(device(port("Ethernet0")), RenderContext(running=running)), SONIC.rules)
    assert ("PFC_WD", "GLOBAL", "POLL_INTERVAL") in {change.path for change in plan.forward}


def test_polling_interval_of_no_number_forbids_nothing() -> None:
    base = sonic_base(PORTS)
    base["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] = "soon"
    running = SONIC.tree(json.dumps(base))
    plan = changes(running, SONIC.render(device(port("Ethernet0")), RenderContext(running=running)), SONIC.rules)
    assert {change.path[:2] for change in plan.held_back} == {("PFC_WD", "GLOBAL")}


def test_polling_interval_beyond_other_ports_watchdogs_is_refused() -> None:
    with pytest.raises(PlanError, match="Ethernet4, Ethernet8"):
        _render(device(port("Ethernet0"), polling_ms=300), adopt=True)
    unsaid = replace(device(port("Ethernet0")), watchdog_polling_ms=UNKNOWN)
    assert ("PFC_WD", "GLOBAL", "POLL_INTERVAL") not in _render(unsaid, adopt=True)


def test_watchdog_history_of_the_device_stays_and_a_dropped_watchdog_goes() -> None:
    base = sonic_base(PORTS)
    base["PFC_WD"]["Ethernet0"]["pfc_stat_history"] = "enable"
    running = SONIC.tree(json.dumps(base))
    assert _render(device(port("Ethernet0")), running)["PFC_WD", "Ethernet0", "pfc_stat_history"] == "enable"
    without = json.loads(_applied(json.dumps(base), device(replace(port("Ethernet0"), watchdog=None))))
    assert "Ethernet0" not in without["PFC_WD"]
    assert "pfcwd_sw_enable" not in without["PORT_QOS_MAP"]["Ethernet0"]
    nothing = replace(port("Ethernet0").watchdog, priorities=frozenset())  # type: ignore[type-var]
    assert _render(device(replace(port("Ethernet0"), watchdog=nothing))).under("PFC_WD") == EMPTY


def test_asymmetric_pfc_is_written_where_it_was_or_shall_be() -> None:
    base = sonic_base(PORTS)
    base["PORT"]["Ethernet0"]["pfc_asym"] = "on"
    running = SONIC.tree(json.dumps(base))
    off = port("Ethernet0")
    on = replace(off, pfc=replace(off.pfc, asymmetric=True))
    assert _render(device(off), running)["PORT", "Ethernet0", "pfc_asym"] == "off"
    assert _render(device(on))["PORT", "Ethernet0", "pfc_asym"] == "on"
    assert ("PORT", "Ethernet0", "pfc_asym") not in _render(device(off))


def test_a_shaper_of_the_whole_port_is_foreign() -> None:
    base = sonic_base(PORTS)
    base["PORT_QOS_MAP"]["Ethernet0"]["scheduler"] = "scheduler.0"
    after = json.loads(_applied(json.dumps(base), device(port("Ethernet0"))))
    assert after["PORT_QOS_MAP"]["Ethernet0"]["scheduler"] == "scheduler.0"
    row = base["PORT_QOS_MAP"].pop("Ethernet0")
    base["PORT_QOS_MAP"] = {"Ethernet0,Ethernet99": row, **base["PORT_QOS_MAP"]}
    after = json.loads(_applied(json.dumps(base), device(port("Ethernet0"))))
    assert after["PORT_QOS_MAP"]["Ethernet0"]["scheduler"] == "scheduler.0"
    assert after["PORT_QOS_MAP"]["Ethernet99"]["dscp_to_tc_map"] == "AZURE"


@pytest.mark.parametrize("own_first", [True, False])
def test_of_a_joined_key_and_a_row_of_its_own_the_later_one_is_kept(*, own_first: bool) -> None:
    base = sonic_base(PORTS)
    joined, own = {"scheduler": "scheduler.1"}, {"scheduler": "scheduler.0", "wred_profile": "AZURE_LOSSLESS"}
    pairs = [("Ethernet4|3", own), ("Ethernet0,Ethernet4|3", joined), ("Ethernet4|2", own)]
    base["QUEUE"] = dict(pairs if own_first else [pairs[1], pairs[0], pairs[2]])
    after = _applied(json.dumps(base), device(port("Ethernet0")))
    wanted = {"scheduler": "scheduler.1" if own_first else "scheduler.0", "wred_profile": "AZURE_LOSSLESS"}
    assert json.loads(after)["QUEUE"]["Ethernet4|3"] == wanted
    assert SONIC.parse(after).port("Ethernet4") == SONIC.parse(json.dumps(base)).port("Ethernet4")


def test_without_a_reading_a_mellanox_is_known_by_its_asic() -> None:
    field = ("PORT_QOS_MAP", "Ethernet0", "pfc_to_pg_map")
    assert field in _render(device(port("Ethernet0")), EMPTY, asic="spectrum3")
    assert field not in _render(device(port("Ethernet0")), EMPTY, asic="trident3")


def test_a_device_without_ports_owns_no_port() -> None:
    intended = SONIC.render(device(), RenderContext(running=STOCK))
    assert intended.tree == EMPTY
    assert changes(STOCK, intended, SONIC.rules).forward == ()
    assert intended.text == "{}\n"


def test_ports_that_the_device_lacks_are_named() -> None:
    with pytest.raises(PlanError, match="no PORT row for Ethernet1, Ethernet2"):
        _render(device(port("Ethernet1"), port("Ethernet2")))


def test_a_voq_chassis_is_not_written() -> None:
    base = sonic_base(PORTS)
    base["DEVICE_METADATA"]["localhost"]["switch_type"] = "voq"
    with pytest.raises(UnsupportedFeatureError, match="VOQ chassis"):
        _render(device(port("Ethernet0")), SONIC.tree(json.dumps(base)))


def test_everything_that_sonic_cannot_do_is_named_at_once() -> None:
    plain = port("Ethernet0")
    percent = Threshold(10, ThresholdUnit.PERCENT)
    bad = replace(
        plain,
        dcbx=DcbxMode.IEEE,
        link_pause=LinkPause(rx=True, tx=False),
        pfc=replace(plain.pfc, mode=PfcMode.AUTO),
        queues=(
            QueueQos(1, None, Aqm(AqmKind.DYNAMIC_MARK, UNKNOWN, UNKNOWN, UNKNOWN)),
            QueueQos(2, None, Aqm(AqmKind.MARK, UNKNOWN, UNKNOWN, 10)),
            QueueQos(3, None, Aqm(AqmKind.MARK, percent, percent, 10, weight=9)),
        ),
    )
    one_way = replace(plain, name="Ethernet4", pfc=PortPfc(PfcMode.ON, frozenset({3}), rx=True, tx=False))
    with pytest.raises(UnsupportedFeatureError) as caught:
        _render(device(bad, one_way))
    for words in (
        "DCBX does not exist",
        "link pause",
        "cannot depend on DCBX",
        "ECN curve by itself",
        "both thresholds",
        "thresholds are bytes",
        "weight 0 only",
        "Ethernet4: PFC in one direction",
    ):
        assert words in str(caught.value)


def test_a_plan_that_says_nothing_writes_nothing() -> None:
    silent = replace(
        port("Ethernet0"),
        mtu_bytes=UNKNOWN,
        cable_m=UNKNOWN,
        trust=UNKNOWN,
        dscp_to_tc=UNKNOWN,
        pcp_to_tc=UNKNOWN,
        tc_to_queue=UNKNOWN,
        tc_to_pg=UNKNOWN,
        pfc_to_queue=UNKNOWN,
        pfc_to_pg=(None,) * 8,
        pfc=PortPfc(),
        queues=(QueueQos(0),),
        priority_groups=(PriorityGroupQos(0, UNKNOWN),),
        watchdog=UNKNOWN,
    )
    qos = device(silent)
    tree = _render(qos)
    assert {path[0] for path in tree} == {"BUFFER_PG", "BUFFER_QUEUE"}  # as they are on the device
    assert all(STOCK[path] == value for path, value in tree.items())
    seen = SONIC.observable(qos, RenderContext(running=STOCK)).ports[0]
    assert (seen.mtu_bytes, seen.cable_m, seen.pfc.mode, seen.watchdog) == (9100, 5, PfcMode.OFF, None)


def _applied(text: str, qos: DeviceQos) -> str:
    running = SONIC.tree(text)
    plan = changes(running, SONIC.render(qos, RenderContext(running=running)), SONIC.rules, adopt=True)
    return SONIC.apply(text, SONIC.payload(plan.forward, running))
