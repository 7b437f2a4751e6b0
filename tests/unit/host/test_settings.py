"""Drivers of NIC families: steps, read-back, what must change, and what it costs."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabric.errors import HostError, UnsupportedFeatureError
from fabric.host.actions import Disruption, Run, Stage, Step, Write, command
from fabric.host.executor import RecordedExecutor
from fabric.host.families.catalog import DRIVERS, driver
from fabric.host.families.common import found_classes, planned_classes
from fabric.host.merge import merge
from fabric.host.settings import Driver, NicFacts, differences, held, observe
from fabric.intent.model import DcqcnSetting
from fabric.plan.model import HostNicPlan
from fabric.qos import UNKNOWN
from fabric.remote.ssh import ExecResult
from fabric.state.host import NicState
from tests.unit.host.nics import FACTS, nic, said

INBOX, OFED = driver("mlx5"), driver("mlx5", "ofed")
RXE_FACTS = NicFacts("eth0")


def lines(steps: tuple[Step, ...]) -> list[str]:
    """Returns each step as one line."""
    return [
        " ".join(one.argv) if isinstance(one := step.action, Run) else f"{one.text} > {one.path}"
        for step in steps
        if isinstance(step.action, Run | Write)
    ]


def test_generic_steps_in_order() -> None:
    steps = driver("generic").steps(nic(family="generic"), FACTS)
    assert lines(steps) == [
        "dcb dcbx set dev ens1f0np0 host ieee",
        "ethtool -A ens1f0np0 rx off tx off",
        "dcb app replace dev ens1f0np0 dscp-prio 26:3 48:6",
        (
            "dcb ets set dev ens1f0np0 willing off prio-tc 0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0"
            " tc-tsa 0:ets 1:strict 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict"
            " tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0"
        ),
        "dcb pfc set dev ens1f0np0 prio-pfc all:off 3:on",
        "ip link set dev ens1f0np0 mtu 9000",
        "ip link set dev ens1f0np0 up",
        "ip address replace 192.0.2.21/26 dev ens1f0np0",
        "modprobe rdma_cm",
        "RoCE v2 > /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode",
        "modprobe rdma_cm",
        "104 > /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos",
    ]


@pytest.mark.parametrize("one", DRIVERS, ids=lambda one: f"{one.family}-{one.flavour}")
def test_qos_comes_before_what_makes_rdma_ready(one: Driver) -> None:
    facts = RXE_FACTS if one.family == "rxe" else FACTS
    plan = nic(family=one.family, prio_tc=(0, 0, 0, 1, 0, 0, 2, 0), ets_percent=(50, 50, 0, 0, 0, 0, 0, 0))
    stages = [step.stage for step in one.steps(plan, facts)]
    assert stages == sorted(stages, key=list(Stage).index)
    assert one.steps(plan, facts, Stage.QOS) + one.steps(plan, facts, Stage.LINK) == one.steps(plan, facts)


@pytest.mark.parametrize("one", DRIVERS, ids=lambda one: f"{one.family}-{one.flavour}")
def test_what_was_never_read_is_unknown_and_must_be_set(one: Driver) -> None:
    facts = RXE_FACTS if one.family == "rxe" else FACTS
    plan = nic(family=one.family, prio_tc=(0, 0, 0, 1, 0, 0, 2, 0), ets_percent=(50, 50, 0, 0, 0, 0, 0, 0))
    found = differences(one, plan, NicState("ens1f0np0"), facts)
    assert {difference.found for difference in found} == {"UNKNOWN"}
    assert [difference.is_known for difference in found] == [False] * len(found)
    every = [step for difference in found for step in difference.steps]
    assert sorted(map(repr, every)) == sorted(map(repr, one.steps(plan, facts)))


ADDRESSES = """[{"ifname":"lo","mtu":65536,"flags":["LOOPBACK","UP"],"addr_info":[]},
{"ifname":"ens1f0np0","mtu":9000,"flags":["BROADCAST","UP","LOWER_UP"],"addr_info":[
 {"family":"inet","local":"192.0.2.21","prefixlen":26},{"family":"inet6","local":"fe80::1","prefixlen":64}]}]"""


def ready(reference: Path) -> RecordedExecutor:
    """Returns a host whose dcb shows the samples and whose other files are as planned."""
    show = reference / "samples/linux/show"
    dcb = {table: (show / f"dcb_ready_{table}.json").read_text() for table in ("pfc", "ets", "app", "buffer")}
    cm = "/sys/kernel/config/rdma_cm/mlx5_0/ports/1"
    return RecordedExecutor(
        outputs={
            ("dcb", "-j", "pfc", "show", "dev", "ens1f0np0"): said(dcb["pfc"]),
            ("dcb", "-j", "ets", "show", "dev", "ens1f0np0"): said(dcb["ets"]),
            ("dcb", "-N", "-j", "app", "show", "dev", "ens1f0np0"): said(dcb["app"]),
            ("dcb", "-j", "buffer", "show", "dev", "ens1f0np0"): said(dcb["buffer"]),
            ("dcb", "-j", "dcbx", "show", "dev", "ens1f0np0"): said('{"host":true,"ieee":true}'),
            ("ethtool", "-a", "ens1f0np0"): said("Pause parameters for ens1f0np0:\nRX:\t\toff\nTX:\t\toff\n"),
            ("ip", "-j", "address", "show"): said(ADDRESSES),
        },
        files={
            "/sys/class/net/ens1f0np0/mtu": "9000\n",
            f"{cm}/default_roce_mode": "RoCE v2\n",
            f"{cm}/default_roce_tos": "104\n",
        },
    )


def test_host_as_planned_needs_nothing(reference: Path) -> None:
    one, plan = driver("generic"), nic(family="generic")
    reading = observe(one, plan, FACTS, ready(reference))
    assert differences(one, plan, reading.state, FACTS) == ()
    assert reading.unconfirmed == ("dcb dcbx show", "ethtool -a")
    assert reading.unread == ("rdma -j link show: exit 127: rdma: not recorded",)


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ({"pfc_priorities": (3, 4)}, "pfc"),
        ({"pfc_priorities": (5,)}, "pfc"),
        ({"dscp_to_priority": ((34, 3), (48, 6))}, "dscp-map"),
        ({"dscp_to_priority": ((26, 4), (48, 6))}, "dscp-map"),
        ({"ets_percent": (40, 0, 0, 60, 0, 0, 0, 0)}, "ets"),
        ({"prio_tc": (0, 0, 0, 3, 0, 0, 5, 0), "cnp_priority": 3}, "ets"),
        ({"addresses": ("192.0.2.21/26", "192.0.2.22/26")}, "addresses"),
        ({"tos": 106}, "default-tos"),
    ],
)
def test_each_deviation_is_named_alone(reference: Path, change: dict[str, object], setting: str) -> None:
    one, plan = driver("generic"), nic(family="generic", **change)
    reading = observe(one, plan, FACTS, ready(reference))
    assert [found.setting for found in differences(one, plan, reading.state, FACTS)] == [setting]


def test_driver_without_dcb_gives_unknown_and_not_off() -> None:
    nothing = ExecResult(0, "", "Attribute read: Operation not supported")
    executor = RecordedExecutor({("dcb", "-j", "pfc", "show", "dev", "ens1f0np0"): nothing})
    reading = observe(driver("generic"), nic(), FACTS, executor)
    assert reading.state.pfc_priorities is UNKNOWN
    assert "dcb -j pfc show dev ens1f0np0: exit 0: Attribute read: Operation not supported" in reading.unread


def test_ofed_reads_mlnx_qos_and_the_ecn_folder(reference: Path) -> None:
    show = reference / "samples/linux/show"
    query = (show / "rdma_qos_query_priority5_tos160.txt").read_text()
    rows = [line.split(": ", 1)[1].replace(" = ", ":") for line in query.splitlines() if "/enable/" in line]
    ecn = "/sys/class/net/ens1f0np0/ecn"
    executor = RecordedExecutor(
        {
            ("mlnx_qos", "-i", "ens1f0np0"): said((show / "mlnx_qos_ready.txt").read_text()),
            ("grep", "-r", "", f"{ecn}/roce_np/enable", f"{ecn}/roce_rp/enable"): said("\n".join(rows)),
        },
        {
            f"{ecn}/roce_np/cnp_dscp": "48\n",
            f"{ecn}/roce_np/cnp_802p_prio": "6\n",
            f"{ecn}/roce_rp/ai_rate": "5\n",
            "/sys/class/infiniband/mlx5_0/tc/1/traffic_class": "Global tclass=160\n",
        },
    )
    plan = nic(dcqcn=(DcqcnSetting("rp_ai_rate", 10),))
    state = observe(OFED, plan, FACTS, executor).state
    found = {one.setting: one for one in differences(OFED, plan, state, FACTS) if one.is_known}
    assert {name: (one.wanted, one.found) for name, one in found.items()} == {
        "dcqcn": ("(('rp_ai_rate', 10),)", "(('rp_ai_rate', 5),)"),
        "traffic-class": ("104", "160"),
    }
    assert lines(found["dcqcn"].steps) == [f"10 > {ecn}/roce_rp/ai_rate"]
    assert "ecn folder" in found["dcqcn"].unconfirmed


def test_ofed_commands_are_those_of_mlnx_qos() -> None:
    qos = [line for line in lines(OFED.steps(nic(), FACTS)) if line.startswith("mlnx_qos")]
    assert qos == [
        "mlnx_qos -i ens1f0np0 -d os",
        "mlnx_qos -i ens1f0np0 --trust dscp",
        "mlnx_qos -i ens1f0np0 --dscp2prio set,26,3",
        "mlnx_qos -i ens1f0np0 --dscp2prio set,48,6",
        (
            "mlnx_qos -i ens1f0np0 -p 0,0,0,3,0,0,6,0 -s ets,strict,strict,ets,strict,strict,strict,strict"
            " -t 50,0,0,50,0,0,0,0"
        ),
        "mlnx_qos -i ens1f0np0 --pfc 0,0,0,1,0,0,0,0",
    ]


def test_firmware_mask_needs_a_reset_and_is_held_back() -> None:
    state = NicState("ens1f0np0", np_priorities=(), rp_priorities=())
    found = differences(INBOX, nic(), state, FACTS)
    points = next(one for one in found if one.setting == "cc-points")
    assert (points.disruption, points.disruptive) == (Disruption.FIRMWARE_RESET, True)
    assert lines(points.steps) == ["mstconfig -y -d 0000:3b:00.0 set ROCE_CC_PRIO_MASK_P1=8"]
    assert held(found, allowed=Disruption.LINK) == (points,)
    assert points in held(found, allowed=Disruption.NONE)


def test_firmware_mask_of_all_priorities_is_enough() -> None:
    text = "Configurations:   Next Boot\n        ROCE_CC_PRIO_MASK_P1                255\n"
    argv = ("mstconfig", "-d", "0000:3b:00.0", "q", "ROCE_CC_PRIO_MASK_P1")
    state = observe(INBOX, nic(), FACTS, RecordedExecutor({argv: said(text)})).state
    assert state.np_priorities == tuple(range(8))
    assert "cc-points" not in [one.setting for one in differences(INBOX, nic(), state, FACTS)]
    off = nic(np_enabled=False, rp_enabled=False)
    assert "cc-points" in [one.setting for one in differences(INBOX, off, state, FACTS)]


def test_second_function_is_port_two_in_firmware() -> None:
    steps = INBOX.steps(nic(), replace(FACTS, pci="0000:3b:00.1"))
    assert "mstconfig -y -d 0000:3b:00.1 set ROCE_CC_PRIO_MASK_P2=8" in lines(steps)


def test_rxe_makes_its_device_once_and_sets_no_qos() -> None:
    steps = driver("rxe").steps(nic(family="rxe", netdev="eth0", tos=106), RXE_FACTS)
    assert lines(steps)[:5] == [
        "ip link set dev eth0 mtu 9000",
        "ip link set dev eth0 up",
        "ip address replace 192.0.2.21/26 dev eth0",
        "modprobe rdma_rxe",
        "rdma link add rxe_eth0 type rxe netdev eth0",
    ]
    assert "106 > /sys/kernel/config/rdma_cm/rxe_eth0/ports/1/default_roce_tos" in lines(steps)
    add = steps[4].action
    assert isinstance(add, Run)
    assert add.unless_exists == "/sys/class/infiniband/rxe_eth0"


def test_rxe_device_under_another_name_is_taken_over() -> None:
    links = '[{"ifindex":0,"ifname":"rxe0","port":1,"state":"ACTIVE","netdev":"eth0"}]'
    executor = RecordedExecutor({("rdma", "-j", "link", "show"): said(links)})
    facts = NicFacts("eth0", "rxe0")
    state = observe(driver("rxe"), nic(family="rxe"), facts, executor).state
    assert state.rdma_device == "rxe0"
    settings = [one.setting for one in differences(driver("rxe"), nic(family="rxe"), state, facts)]
    assert settings == ["mtu", "link-up", "addresses", "roce-mode", "default-tos"]


def test_link_list_without_the_netdev_means_no_device() -> None:
    executor = RecordedExecutor({("rdma", "-j", "link", "show"): said("[]")})
    state = observe(driver("rxe"), nic(family="rxe"), RXE_FACTS, executor).state
    assert state.rdma_device is None
    found = differences(driver("rxe"), nic(family="rxe"), state, RXE_FACTS)
    assert ("rdma-link", "None") in [(one.setting, one.found) for one in found]


@pytest.mark.parametrize(
    ("family", "plan", "words"),
    [
        ("irdma", nic(pfc_priorities=(3, 4)), "one traffic class only"),
        ("irdma", nic(), "four traffic classes"),
        ("mlx5", nic(np_enabled=False), "on or off together"),
        ("rxe", nic(dcqcn=(DcqcnSetting("rp_ai_rate", 1),)), "no congestion control"),
    ],
)
def test_what_a_family_cannot_do_is_refused(family: str, plan: HostNicPlan, words: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=words):
        driver(family).steps(plan, FACTS)
    with pytest.raises(UnsupportedFeatureError, match=words):
        differences(driver(family), plan, NicState(), FACTS)


def test_irdma_turns_the_firmware_agent_off_first_and_reads_dcqcn() -> None:
    plan = nic(
        family="irdma",
        prio_tc=(0, 0, 0, 1, 0, 0, 2, 0),
        ets_percent=(50, 50, 0, 0, 0, 0, 0, 0),
        dcqcn=(DcqcnSetting("roce_dcqcn_t", 55),),
    )
    one, facts = driver("irdma"), NicFacts("ens1f0np0", "irdma0")
    assert lines(one.steps(plan, facts))[0] == "ethtool --set-priv-flags ens1f0np0 fw-lldp-agent off"
    folder = "/sys/kernel/config/irdma/irdma0"
    flags = ("ethtool", "--show-priv-flags", "ens1f0np0")
    executor = RecordedExecutor(
        {flags: said("Private flags for ens1f0np0:\nfw-lldp-agent        : on\n")},
        {f"{folder}/roce_dcqcn_enable": "1\n", f"{folder}/roce_dcqcn_t": "55\n"},
    )
    state = observe(one, plan, facts, executor).state
    assert (state.firmware_lldp, state.dcqcn) == (True, (("roce_dcqcn_enable", 1), ("roce_dcqcn_t", 55)))
    settings = [found.setting for found in differences(one, plan, state, facts)]
    assert "firmware-lldp" in settings
    assert "dcqcn" not in settings


def test_bnxt_is_read_by_the_vendors_tool(reference: Path) -> None:
    text = (reference / "samples/linux/show/niccli_qos_bcm57608.txt").read_text()
    executor = RecordedExecutor({("niccli", "--dev", "1", "qos", "--ets", "--show"): said(text)})
    plan = nic(
        family="bnxt_re",
        dscp_to_priority=((26, 3), (48, 7)),
        cnp_priority=7,
        prio_tc=(0, 0, 0, 3, 0, 0, 0, 7),
    )
    state = observe(driver("bnxt_re"), plan, FACTS, executor).state
    settings = [one.setting for one in differences(driver("bnxt_re"), plan, state, FACTS)]
    assert not {"pfc", "ets", "dscp-map"} & set(settings)
    cnp = next(one for one in differences(driver("bnxt_re"), plan, state, FACTS) if one.setting == "cnp-dscp")
    assert "from memory" in cnp.unconfirmed


def test_tools_that_disagree_leave_unknown_and_a_note() -> None:
    state = merge(
        (NicState(pfc_priorities=(3,)), NicState(pfc_priorities=(4,)), NicState(pfc_priorities=(3,))), netdev="a"
    )
    assert state.pfc_priorities is UNKNOWN
    assert state.conflicts == ("pfc_priorities: one tool shows (3,), another (4,)",)


def test_maps_of_two_tools_are_joined_unless_they_disagree() -> None:
    one, two = NicState(dscp_to_priority=((26, 3),)), NicState(dscp_to_priority=((26, 3), (48, 6)))
    assert merge((one, two), netdev="a").dscp_to_priority == ((26, 3), (48, 6))
    other = NicState(dscp_to_priority=((26, 4),))
    assert merge((one, other), netdev="a").dscp_to_priority is UNKNOWN


def test_shares_sum_to_a_hundred() -> None:
    plan = nic(ets_percent=(1, 0, 0, 2, 0, 0, 0, 0))
    assert planned_classes(plan) == (((0, 1, 2, 4, 5, 7), "ets", 33), ((3,), "ets", 67), ((6,), "strict", 0))
    assert planned_classes(nic(ets_percent=(0,) * 8))[0][2] == 50


def test_classes_are_compared_without_their_numbers() -> None:
    prio_tc, tsa = (1, 1, 1, 0, 1, 1, 2, 1), ("ets", "ets", "strict", "", "", "", "", "")
    state = NicState(prio_tc=prio_tc, tsa=tsa, ets_percent=(50, 50, 0, 0, 0, 0, 0, 0))
    settings = [one.setting for one in differences(driver("generic"), nic(), state, FACTS)]
    assert "ets" not in settings
    assert found_classes(NicState(prio_tc=prio_tc)) is UNKNOWN


@pytest.mark.parametrize("netdev", ["eth0; reboot", "../x", "a" * 16, "eth0 mtu 1", "-x", ""])
def test_netdev_that_is_none_reaches_no_command(netdev: str) -> None:
    with pytest.raises(HostError, match="network device"):
        driver("generic").steps(nic(family="generic"), replace(FACTS, netdev=netdev))


def test_mlx5_without_pci_address_says_so() -> None:
    with pytest.raises(HostError, match="PCI address"):
        INBOX.steps(nic(), replace(FACTS, pci=""))


def test_unknown_family_names_the_nearest() -> None:
    with pytest.raises(HostError, match="Did you mean 'mlx5'"):
        driver("mlx4")


@pytest.mark.parametrize("one", DRIVERS, ids=lambda one: f"{one.family}-{one.flavour}")
def test_way_back_of_what_was_read_is_the_way_to_it(one: Driver) -> None:
    """The steps back to a state that was as another plan wants are that plan's own steps."""
    facts = RXE_FACTS if one.family == "rxe" else FACTS
    plan = nic(family=one.family, prio_tc=(0, 0, 0, 1, 0, 0, 2, 0), ets_percent=(50, 50, 0, 0, 0, 0, 0, 0))
    old = replace(plan, mtu_bytes=1500, pfc_priorities=(4,), cnp_dscp=46, cnp_priority=5, tos=0)
    state = NicState(
        "ens1f0np0",
        mtu_bytes=1500,
        link_up=True,
        pfc_priorities=(4,),
        cnp_dscp=46,
        cnp_priority=5,
        default_tos=0,
        traffic_class=0,
        trust="pcp",
    )
    same = {"mtu", "pfc", "cnp-dscp", "cnp-priority", "default-tos", "traffic-class"}
    found = {difference.setting: difference for difference in differences(one, plan, state, facts)}
    own = {setting.name: setting for setting in one.settings}
    for name in (same & found.keys()) - ({"cnp-dscp"} if one.family == "bnxt_re" else set()):
        assert found[name].back == own[name].steps(old, facts), name
    assert {
        name for name, difference in found.items() if not difference.is_known and difference.back is not None
    } == set()


def test_way_back_of_each_table_of_dcb_is_exact() -> None:
    state = NicState(
        "ens1f0np0",
        dcbx_owner="firmware",
        dscp_to_priority=((10, 1), (26, 2)),
        prio_tc=(0, 1, 2, 3, 4, 5, 6, 7),
        tsa=("ets", "strict") * 4,
        ets_percent=(25, 0) * 4,
        ets_willing=True,
        global_pause_rx=True,
        global_pause_tx=False,
    )
    found = {one.setting: one for one in differences(driver("generic"), nic(family="generic"), state, FACTS)}
    assert lines(found["dscp-map"].back or ()) == [
        "dcb app flush dev ens1f0np0 dscp-prio",
        "dcb app add dev ens1f0np0 dscp-prio 10:1 26:2",
    ]
    assert lines(found["ets"].back or ()) == [
        (
            "dcb ets set dev ens1f0np0 willing on prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7"
            " tc-tsa 0:ets 1:strict 2:ets 3:strict 4:ets 5:strict 6:ets 7:strict"
            " tc-bw 0:25 1:0 2:25 3:0 4:25 5:0 6:25 7:0"
        )
    ]
    assert lines(found["global-pause"].back or ()) == ["ethtool -A ens1f0np0 rx on tx off"]
    assert lines(found["dcbx-owner"].back or ()) == ["dcb dcbx set dev ens1f0np0 lld-managed ieee"]


def test_way_back_of_ofed_and_of_congestion_control() -> None:
    plan = nic(dcqcn=(DcqcnSetting("rp_ai_rate", 5),))
    state = NicState(
        "ens1f0np0",
        dcbx_owner="firmware",
        trust="pcp",
        dscp_to_priority=((26, 0), (48, 1)),
        prio_tc=(0,) * 8,
        tsa=("ets",) + ("strict",) * 7,
        ets_percent=(100,) + (0,) * 7,
        np_priorities=(3,),
        rp_priorities=(),
        dcqcn=(("rp_ai_rate", 9),),
        traffic_class=None,
    )
    found = {one.setting: one for one in differences(OFED, plan, state, FACTS)}
    assert lines(found["dscp-map"].back or ()) == [
        "mlnx_qos -i ens1f0np0 --dscp2prio set,26,0",
        "mlnx_qos -i ens1f0np0 --dscp2prio set,48,1",
    ]
    assert lines(found["ets"].back or ()) == [
        (
            "mlnx_qos -i ens1f0np0 -p 0,0,0,0,0,0,0,0"
            " -s ets,strict,strict,strict,strict,strict,strict,strict -t 100,0,0,0,0,0,0,0"
        )
    ]
    ecn = "/sys/class/net/ens1f0np0/ecn"
    assert lines(found["cc-points"].back or ()) == [f"1 > {ecn}/roce_np/enable/3", f"0 > {ecn}/roce_rp/enable/3"]
    assert lines(found["dcqcn"].back or ()) == [f"9 > {ecn}/roce_rp/ai_rate"]
    assert lines(found["trust"].back or ()) == ["mlnx_qos -i ens1f0np0 --trust pcp"]
    assert lines(found["dcbx-owner"].back or ()) == ["mlnx_qos -i ens1f0np0 -d fw"]
    assert found["traffic-class"].back is None
    inbox = {
        one.setting: one for one in differences(INBOX, replace(plan, np_enabled=False, rp_enabled=False), state, FACTS)
    }
    assert lines(inbox["cc-points"].back or ()) == ["mstconfig -y -d 0000:3b:00.0 set ROCE_CC_PRIO_MASK_P1=8"]


def test_way_back_of_intels_agent_and_values() -> None:
    plan = nic(family="irdma", prio_tc=(0, 0, 0, 1, 0, 0, 2, 0), ets_percent=(50, 50, 0, 0, 0, 0, 0, 0))
    state = NicState("ens1f0np0", firmware_lldp=True, dcqcn=(("roce_dcqcn_enable", 0),))
    found = {one.setting: one for one in differences(driver("irdma"), plan, state, FACTS)}
    assert lines(found["firmware-lldp"].back or ()) == ["ethtool --set-priv-flags ens1f0np0 fw-lldp-agent on"]
    assert lines(found["dcqcn"].back or ()) == ["0 > /sys/kernel/config/irdma/mlx5_0/roce_dcqcn_enable"]


@pytest.mark.parametrize(("address", "waits"), [("192.0.2.2/24", False), ("2001:db8::2/64", True)])
def test_ipv6_address_is_waited_for_until_it_can_be_bound(address: str, *, waits: bool) -> None:
    steps = driver("rxe").steps(nic(family="rxe", netdev="eth0", addresses=(address,)), RXE_FACTS)
    lines = [command(step.action) for step in steps]
    given = lines.index(f"ip address replace {address} dev eth0")
    assert ("tentative" in lines[given + 1]) is waits
