"""Outputs that no tool should print, and that one prints nevertheless: refused or UNKNOWN, never a wrong value."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.errors import HostError
from fabric.host.parse import dcb, ethtool, ip, lldp, mlnx_qos, niccli, nvme, rdma
from fabric.qos import UNKNOWN
from fabric.state.host import DcbxState

KEYS = (
    "prio_pfc", "pfc_cap", "delay", "prio_tc", "tc_bw", "tc_tsa", "willing", "dscp_prio", "dgram_port_prio",
    "prio_buffer", "buffer_size", "total_size", "host", "lld_managed", "requests", "indications", "ifname", "port",
    "netdev", "state", "rx", "tx", "lldp", "interface", "name", "chassis", "via", "unknown-tlvs", "unknown-tlv", "oui",
    "subtype", "value", "Subsystems", "Devices", "NQN", "SubsystemNQN", "Paths", "Controllers", "Controller", "Name",
    "Address", "Transport", "State", "ANAState", "Path", "Namespaces", "NameSpace", "DevicePath", "HostNQN", "IOPolicy",
    "addr_info", "local", "prefixlen", "flags", "mtu", "link", "family", "operstate",
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 70), st.floats(allow_nan=False), st.text(max_size=4),
    st.sampled_from(["00,80,C2", "08,0", "traddr=192.0.2.1,trsvcid=x", "nqn.x", "off", "on", "AF31", "swp1"]),
)  # fmt: skip
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=9), st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)),
    max_leaves=20,
)
JSON_READERS: tuple[Callable[[str], Any], ...] = (
    dcb.read_pfc,
    dcb.read_pause_counters,
    dcb.read_ets,
    dcb.read_app,
    dcb.read_buffer,
    dcb.read_dcbx,
    ethtool.read_pause,
    lldp.read_lldp,
    nvme.read_subsystems,
    nvme.read_devices,
    rdma.read_links,
    rdma.read_statistic,
    lambda text: ip.read_address(text, "swp1"),
)
TEXT_READERS: tuple[Callable[[str], Any], ...] = (
    dcb.read_text,
    ethtool.read_statistics,
    ethtool.read_pause_counters,
    ethtool.read_firmware_lldp,
    lldp.read_lldp_text,
    mlnx_qos.read_mlnx_qos,
    mlnx_qos.read_query,
    niccli.read_niccli_qos,
    nvme.read_subsystems_text,
    rdma.read_devinfo,
    rdma.read_gids,
)
WORDS = (
    "prio-pfc", "0:on", "3:x", "dscp-prio", "AF31:3", "x:y", "total-size", "262016b", "buffer-size", "prio-tc", "tc-tsa",
    "willing", "off", "hca_id:", "mlx5_0", "\n\t\tport:\t1\n", "state:", "active_mtu:", "4096 (5)", "DEV", "PORT", "INDEX",
    "GID", "v2", "\n", "\t", "LLDP neighbors:", "\n    PortID:", "\nInterface:", "PRIO_MAP:", "0:0", "PFC enabled:",
    "Priority trust state: dscp", "\nPFC configuration:\n", "\tenabled     0 0 0 1 0 0 0 0", "\tenabled - - - - - - - -",
    "tc: 3 ratelimit: 40.0 Gbps, tsa: ets, bw: 50%", "Receive buffer size (bytes): 1,,max_buffer_size=5",
    "nvme-subsys1 - NQN=n", "\n +- nvme1 rdma traddr=a,trsvcid=x live", "TC Bandwidth:", "50%", "TSA_MAP:", "1:ets", ":",
)  # fmt: skip


@given(DOCUMENTS)
def test_any_json_is_read_or_refused(document: object) -> None:
    text = json.dumps(document)
    for read in JSON_READERS:
        try:
            read(text)
        except HostError:
            continue


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_text_is_read_or_refused(words: list[str]) -> None:
    text = " ".join(words)
    for read in TEXT_READERS:
        try:
            read(text)
        except HostError:
            continue


@pytest.mark.parametrize("read", JSON_READERS)
def test_json_that_is_nested_too_deep_is_refused(read: Callable[[str], Any]) -> None:
    with pytest.raises(HostError):
        read("[" * 100_000)


# --- dcb ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "true",
        "null",
        '["off","off","off","on"]',
        "[true,true]",
        "[0,0,0,1,0,0,0,0]",
        '{"3":true}',
        str([True] * 9).lower(),
    ],
)
def test_pfc_that_is_no_list_of_eight_booleans_is_unknown(value: str) -> None:
    assert dcb.read_pfc(f'{{"prio_pfc":{value}}}').pfc_priorities is UNKNOWN


def test_boolean_is_no_number() -> None:
    found = dcb.read_pfc('{"pfc_cap":true,"delay":false}')
    assert (found.pfc_capability, found.pfc_delay) == (UNKNOWN, UNKNOWN)
    assert dcb.read_buffer('{"total_size":true}').buffer_total_bytes is UNKNOWN
    (counters,) = rdma.read_statistic('[{"ifname":"rxe0","port":1,"sent_pkts":5,"optional":true}]')
    assert counters.values == (("sent_pkts", 5),)
    (device,) = nvme.read_devices('{"Devices":[{"DevicePath":"/dev/nvme0n1","NameSpace":true}]}')
    assert device.nsid is UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        '{"prio_tc":[0,0],"tc_bw":[50,50],"tc_tsa":["ets","ets"]}',
        '{"prio_tc":"00030060","tc_bw":{"0":50},"tc_tsa":null}',
        '{"prio_tc":[0,0,0,"3",0,0,6,0],"tc_bw":[50,0,0,true,0,0,0,0],"tc_tsa":[1,2,3,4,5,6,7,8]}',
        '{"prio_tc":[0,0,0,9,0,0,6,0]}',
    ],
)
def test_classes_that_are_not_eight_are_unknown(text: str) -> None:
    found = dcb.read_ets(text)
    assert (found.prio_tc, found.ets_percent, found.tsa) == (UNKNOWN,) * 3


def test_app_names_dscps_where_the_tool_was_asked_without_the_flag() -> None:
    assert dcb.read_app('{"dscp_prio":[["AF31",3],["CS6",6]]}').dscp_to_priority == ((26, 3), (48, 6))


@pytest.mark.parametrize(
    "entries",
    [
        '{"26":3}',
        '["26"]',
        "[[26]]",
        "[[26,3,1]]",
        "[[26,true]]",
        "[[64,3]]",
        "[[26,8]]",
        "[[26,3],[26,4]]",
        '"26:3"',
        "3",
    ],
)
def test_app_entries_that_cannot_be_told_are_refused(entries: str) -> None:
    with pytest.raises(HostError):
        dcb.read_app(f'{{"dscp_prio":{entries}}}')


def test_pauses_of_dcb_by_priority() -> None:
    found = dcb.read_pause_counters('{"requests":[0,0,0,5,0,0,0,0],"indications":[0,0,0,7,0,0,0,0]}', "eth0")
    assert (found.netdev, found.pfc_tx_xoff, found.pfc_rx_xoff) == (
        "eth0",
        (0, 0, 0, 5, 0, 0, 0, 0),
        (0, 0, 0, 7, 0, 0, 0, 0),
    )
    without = dcb.read_pause_counters('{"prio_pfc":[]}')
    assert (without.pfc_tx_xoff, without.pfc_rx_xoff) == (UNKNOWN, UNKNOWN)


def test_text_lists_may_stand_in_any_order() -> None:
    found = dcb.read_text(
        "prio-tc 3:3 0:0 1:0 2:0 4:0 5:0 6:6 7:0\ntc-tsa 7:ets 0:ets 1:a 2:b 3:ets 4:c 5:d 6:strict\n"
    )
    assert found.prio_tc == (0, 0, 0, 3, 0, 0, 6, 0)
    assert found.tsa == ("ets", "a", "b", "ets", "c", "d", "strict", "ets")
    assert dcb.read_text("prio-tc 0:0 1:0\n").prio_tc is UNKNOWN


# --- other tools ----------------------------------------------------------------------------------------------------


def test_link_without_a_netdev_has_none_called_none() -> None:
    (port,) = rdma.read_links('[{"ifname":"mlx5_0","port":1,"netdev":null,"state":5}]')
    assert (port.netdev, port.state) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("port", ['"x"', "null", "[]", "true", "1.5"])
def test_port_that_is_no_number_is_refused(port: str) -> None:
    for read in (rdma.read_links, rdma.read_statistic):
        with pytest.raises(HostError):
            read(f'[{{"ifname":"mlx5_0","port":{port}}}]')


def test_table_of_gids_with_blank_lines_a_footer_and_broken_rows() -> None:
    text = (
        "\nDEV\tPORT\tINDEX\tGID\tIPv4\tVER\tDEV\n---\t----\t-----\t---\n"
        "mlx5_0 1 0 fe80:0000:0000:0000:0200:5eff:fe00:0021 v2 eth0\n"
        "mlx5_0 1 x fe80:0000:0000:0000:0200:5eff:fe00:0021 v2 eth0\n"
        "mlx5_0 1 2 not-a-gid v2 eth0\nn_gids_found=3\n"
    )
    assert [one.index for one in rdma.read_gids(text)] == [0]


def test_devinfo_with_empty_values() -> None:
    (port,) = rdma.read_devinfo(
        "hca_id:\tmlx5_0\n\tfw_ver:\n\t\tport:\t1\n\t\t\tstate:\n\t\t\tlink_layer:\n\t\t\tactive_mtu: invalid MTU (0)\n"
    )
    assert (port.state, port.link_layer, port.firmware, port.active_mtu_bytes) == (UNKNOWN,) * 4
    with pytest.raises(HostError):
        rdma.read_devinfo("hca_id:\n")


@pytest.mark.parametrize("address", ["trsvcid=none", "trsvcid=04420", "trsvcid=-1", "0000:01:00.0"])
def test_address_without_a_service_is_an_address_all_the_same(address: str) -> None:
    text = f'[{{"Subsystems":[{{"NQN":"n","Paths":[{{"Name":"nvme0","Transport":"x","Address":"{address}"}}]}}]}}]'
    ((one,),) = (nvme.read_subsystems(text),)
    assert one.paths is not UNKNOWN
    assert one.paths[0].trsvcid in {UNKNOWN, 4420}


@pytest.mark.parametrize(
    "body", ['"Paths":null', '"Paths":["nvme0"]', '"Controllers":{"nvme0":{}}', '"Namespaces":["x",1]', '"Paths":"x"']
)
def test_subsystem_whose_paths_are_none_is_a_subsystem(body: str) -> None:
    (one,) = nvme.read_subsystems(f'{{"Subsystems":[{{"NQN":"n",{body}}}]}}')
    assert one.nqn == "n"
    assert one.paths in {UNKNOWN, ()}


@pytest.mark.parametrize(
    "tlv",
    [
        '{"oui":"00,80,C2"}',
        '{"oui":"00,80,C2","subtype":"x","value":"08,08"}',
        '{"oui":"00,80,C2","subtype":"11","value":"zz"}',
    ],
)
def test_tlv_that_cannot_be_read_changes_nothing(tlv: str) -> None:
    body = f'{{"via":"LLDP","unknown-tlvs":{{"unknown-tlv":{tlv}}}}}'
    (one,) = lldp.read_lldp(f'{{"lldp":{{"interface":{{"eth0":{body}}}}}}}')
    assert one.dcbx == DcbxState()


def test_oui_in_small_letters() -> None:
    body = '{"via":"LLDP","unknown-tlvs":{"unknown-tlv":{"oui":"00,80,c2","subtype":"11","value":"08,08"}}}'
    (one,) = lldp.read_lldp(f'{{"lldp":{{"interface":{{"eth0":{body}}}}}}}')
    assert one.dcbx.pfc_priorities == (3,)


@pytest.mark.parametrize("node", ["null", '"x"', "5", "true"])
def test_neighbours_that_are_no_object_are_refused(node: str) -> None:
    with pytest.raises(HostError):
        lldp.read_lldp(f'{{"lldp":{node}}}')


@pytest.mark.parametrize(
    ("line", "priorities"), [("3", (3,)), ("3,4", (3, 4)), ("none", ()), ("", ()), ("N/A", UNKNOWN), ("10", UNKNOWN)]
)
def test_pfc_of_niccli(line: str, priorities: object) -> None:
    assert niccli.read_niccli_qos(f"PRIO_MAP: 0:0\nPFC enabled: {line}\n").pfc_priorities == priorities


def test_classes_of_niccli_that_cannot_be_told() -> None:
    with pytest.raises(HostError):
        niccli.read_niccli_qos("PRIO_MAP: x:y\n")
    assert niccli.read_niccli_qos("PRIO_MAP: 0:0 3:1\nTSA_MAP: a:ets\n").tsa is UNKNOWN


def test_pfc_row_of_mlnx_qos_without_numbers_is_refused() -> None:
    text = "Priority trust state: pcp\nPFC configuration:\n\tenabled     - - - - - - - -\n"
    with pytest.raises(HostError, match="no PFC row"):
        mlnx_qos.read_mlnx_qos(text)


def test_carriage_returns_change_nothing() -> None:
    text = "DCBX mode: OS controlled\r\nPriority trust state: pcp\r\nPFC configuration:\r\n\tenabled     0 0 0 1 0 0 0 0\r\n"
    assert mlnx_qos.read_mlnx_qos(text).pfc_priorities == (3,)
    assert ethtool.read_statistics("     rx_prio3_pause: 7\r\n") == {"rx_prio3_pause": 7}
    assert ethtool.read_pause("RX:\t\toff\r\nTX:\t\ton\r\nRX negotiated: on\r\n").global_pause_rx is False
