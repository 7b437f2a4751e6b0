"""What the samples do not show: other drivers' counters, text of other tools, cut and empty outputs."""

from collections.abc import Callable
from typing import Any

import pytest

from fabric.errors import HostError
from fabric.host.parse import dcb, ethtool, lldp, mlnx_qos, niccli, nvme, rdma
from fabric.qos import UNKNOWN
from fabric.state.host import DcbxState


@pytest.mark.parametrize(
    "read",
    [
        dcb.read_pfc,
        dcb.read_ets,
        dcb.read_app,
        dcb.read_buffer,
        dcb.read_dcbx,
        ethtool.read_pause,
        ethtool.read_pause_counters,
        ethtool.read_firmware_lldp,
        lldp.read_lldp,
        lldp.read_lldp_text,
        mlnx_qos.read_mlnx_qos,
        mlnx_qos.read_query,
        niccli.read_niccli_qos,
        nvme.read_subsystems,
        nvme.read_devices,
        rdma.read_devinfo,
        rdma.read_gids,
        rdma.read_links,
        rdma.read_statistic,
    ],
)
@pytest.mark.parametrize("text", ["", "bash: command not found\n", "<html>"])
def test_text_of_another_tool_is_refused(read: Callable[[str], Any], text: str) -> None:
    with pytest.raises(HostError):
        read(text)


@pytest.mark.parametrize("read", [dcb.read_pfc, rdma.read_links, rdma.read_statistic, lldp.read_lldp])
def test_json_of_another_kind_is_refused(read: Callable[[str], Any]) -> None:
    with pytest.raises(HostError):
        read('["x"]' if read is not rdma.read_links else '{"x": 1}')


def test_values_that_json_lacks_are_unknown() -> None:
    assert dcb.read_pfc("{}").pfc_priorities is UNKNOWN
    ets = dcb.read_ets("{}")
    assert (ets.prio_tc, ets.tsa, ets.ets_percent, ets.ets_willing) == (UNKNOWN,) * 4
    assert dcb.read_buffer("{}").buffer_total_bytes is UNKNOWN


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ('{"host":true,"ieee":true}', "os"),
        ('{"lld_managed":true,"host":false}', "firmware"),
        ('{"host":false,"lld_managed":false}', UNKNOWN),
        ("{}", UNKNOWN),
    ],
)
def test_dcbx_owner(text: str, owner: object) -> None:
    assert dcb.read_dcbx(text).dcbx_owner == owner


def test_dcb_text_of_one_table_leaves_the_others_unknown() -> None:
    found = dcb.read_text("dscp-prio AF31:3 40:5 EF:6\n")
    assert found.dscp_to_priority == ((26, 3), (40, 5), (46, 6))
    assert (found.pfc_priorities, found.prio_tc, found.tsa, found.buffer_total_bytes) == (UNKNOWN,) * 4
    assert dcb.read_text("prio-pfc 0:off 3:on\n").trust is UNKNOWN


@pytest.mark.parametrize(
    ("text", "pause"),
    [
        ('[ {\n "ifname": "eth0",\n "autonegotiate": false,\n "rx": true,\n "tx": false\n} ]', (True, False)),
        ("Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\ton\n", (False, True)),
    ],
)
def test_link_pause(text: str, pause: tuple[bool, bool]) -> None:
    found = ethtool.read_pause(text)
    assert (found.global_pause_rx, found.global_pause_tx) == pause


def test_counters_of_mlx5_and_bnxt_by_priority() -> None:
    mlx5 = ethtool.read_pause_counters("NIC statistics:\n     rx_prio3_pause: 7\n     tx_prio3_pause: 9\n")
    assert mlx5.pfc_rx_xoff == (UNKNOWN, UNKNOWN, UNKNOWN, 7, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    assert (mlx5.link_pause, mlx5.storm_events) == (UNKNOWN, UNKNOWN)
    bnxt = ethtool.read_pause_counters("     rx_pfc_ena_frames_pri3: 1\n     tx_pfc_ena_frames_pri3: 2\n")
    assert bnxt.pfc_tx_xoff == (UNKNOWN, UNKNOWN, UNKNOWN, 2, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def test_mlnx_qos_that_was_cut_has_no_classes() -> None:
    text = "DCBX mode: OS controlled\nPriority trust state: pcp\nPFC configuration:\n\tenabled     0 0 0 1 0 0 0 0\n"
    found = mlnx_qos.read_mlnx_qos(text)
    assert (found.pfc_priorities, found.prio_tc, found.tsa, found.cable_m) == ((3,), UNKNOWN, UNKNOWN, UNKNOWN)
    with pytest.raises(HostError, match="no PFC row"):
        mlnx_qos.read_mlnx_qos("Priority trust state: pcp\nPFC configuration:\n")


def test_niccli_without_pfc_has_measured_none() -> None:
    text = "PRIO_MAP: 0:0 3:1\r\nIEEE 8021QAZ PFC TLV:\r\n  PFC enabled: none\r\nIEEE 8021QAZ APP TLV:\r\n"
    found = niccli.read_niccli_qos(text)
    assert (found.pfc_priorities, found.trust, found.dscp_to_priority) == ((), "pcp", ())
    assert (found.tsa, found.ets_percent, found.rate_limit_percent) == (UNKNOWN,) * 3


def test_devinfo_of_two_ports() -> None:
    text = "hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate:\t\tPORT_DOWN (1)\n\t\tport:\t2\n\t\t\tactive_mtu:\t\t1024 (3)\n"
    one, two = rdma.read_devinfo(text)
    assert (one.name, one.state, one.active_mtu_bytes) == ("mlx5_0/1", "DOWN", UNKNOWN)
    assert (two.name, two.state, two.active_mtu_bytes, two.firmware) == ("mlx5_0/2", UNKNOWN, 1024, UNKNOWN)


@pytest.mark.parametrize(
    "chassis",
    ['{"id":{"type":"mac","value":"02:00:5e:00:00:01"}}', '{"id":{"type":"mac","value":"x"},"descr":"y"}', "{}"],
)
def test_neighbour_without_a_name_is_a_neighbour(chassis: str) -> None:
    text = f'{{"lldp":{{"interface":{{"eth0":{{"via":"LLDP","chassis":{chassis},"port":{{}}}}}}}}}}'
    (found,) = lldp.read_lldp(text)
    assert (found.netdev, found.system, found.dcbx) == ("eth0", UNKNOWN, DcbxState())


@pytest.mark.parametrize(("subtype", "value"), [(11, b"\x08"), (9, b"\x00" * 20), (12, b""), (13, b"\x00\x00")])
def test_short_and_foreign_tlvs_change_nothing(subtype: int, value: bytes) -> None:
    assert lldp.with_tlv(DcbxState(), subtype, value) == DcbxState()


def test_app_tlv_with_a_dscp_and_a_cut_entry() -> None:
    assert lldp.with_tlv(DcbxState(), 12, bytes([0, 0x65, 0, 26, 0x63])).app == ((3, 5, 26),)


def test_no_neighbours_is_measured() -> None:
    assert lldp.read_lldp('{"lldp":{}}') == ()
    assert lldp.read_lldp('{"lldp":[{}]}') == ()


def test_one_subsystem_of_two_hosts_keeps_all_paths() -> None:
    def one(name: str) -> str:
        return f'{{"Subsystems":[{{"NQN":"n","Paths":[{{"Name":"{name}","Transport":"rdma"}}]}}]}}'

    (found,) = nvme.read_subsystems(f"[{one('nvme10')},{one('nvme2')}]")
    assert found.paths is not UNKNOWN
    assert [path.controller for path in found.paths] == ["nvme2", "nvme10"]


def test_number_that_is_none_is_an_error() -> None:
    with pytest.raises(HostError, match="ctrl_loss_tmo is no number"):
        nvme.controller("nvme1", {"ctrl_loss_tmo": "soon"})
