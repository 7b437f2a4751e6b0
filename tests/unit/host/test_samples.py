"""Each host output of the reference data is read to the right state: the facts beside each sample, by hand."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabric.host.judging.answers import tos_serves, tos_words
from fabric.host.nvme.connect import NvmeCli
from fabric.host.parse import dcb, ethtool, lldp, mlnx_qos, niccli, nvme, rdma
from fabric.host.unconfirmed import listing_without_sample, unconfirmed_tools
from fabric.qos import UNKNOWN
from fabric.state.host import LldpNeighbour, NicState, NvmePath, NvmeSubsystem

READY_MAP = tuple((dscp, dscp // 8) for dscp in range(64))


@pytest.fixture(name="show")
def _show(reference: Path) -> Callable[[str], str]:
    return lambda name: (reference / "samples" / "linux" / "show" / name).read_text(encoding="utf-8")


Show = Callable[[str], str]


def catalogued(reference: Path) -> list[str]:
    """Returns the host outputs that the catalogue of samples has an entry for, in its order."""
    text = (reference / "samples" / "SOURCES.md").read_text(encoding="utf-8")
    return re.findall(r"(?m)^### `linux/show/(.+)`$", text)


def test_every_sample_of_the_catalogue_is_read_by_a_test_of_this_file(reference: Path) -> None:
    names = catalogued(reference)
    assert sorted(names) == sorted(path.name for path in (reference / "samples/linux/show").iterdir())
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    read = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert [name for name in names if name not in read] == []
    print(f"{len(names)} host outputs of the catalogue are read to the right state")


def test_kinds_of_tools_and_versions_that_samples_show(reference: Path) -> None:
    """What the product calls confirmed is in the catalogue, and no listing of another version is."""
    names = catalogued(reference)
    versions = {found[1] for name in names if (found := re.match(r"nvme_\w*?_v(\d(?:\.\d)?)", name))}
    assert versions == {"1", "2.3", "3.0"}
    assert [listing_without_sample(NvmeCli(*map(int, one.split(".")))) for one in sorted(versions)] == [""] * 3
    assert listing_without_sample(NvmeCli(2, 11)) == "nvme-cli 2.11"
    tools = {name.split("_")[0] for name in names}
    assert tools == {"dcb", "ethtool", "ibv", "lldpcli", "lossless", "mlnx", "niccli", "nvme", "rdma"}
    # no sample shows these three, so that whatever reads them is unconfirmed
    assert {"ethtool -a", "ethtool --show-priv-flags", "dcb dcbx show"} <= set(unconfirmed_tools())
    assert not [name for name in names if "dcbx" in name or "priv" in name or "ethtool_a" in name]


def fields(state: NicState, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(state, name) for name in names)


def test_dcb_app_without_entries_is_measured_empty(show: Show) -> None:
    assert dcb.read_app(show("dcb_default_app_empty.json")) == NicState(
        dscp_to_priority=(), udp_port_to_priority=(), trust="pcp"
    )


def test_dcb_pfc(show: Show) -> None:
    off = dcb.read_pfc(show("dcb_default_pfc.json"))
    assert fields(off, "pfc_priorities", "pfc_delay", "pfc_capability") == ((), 0, 8)
    ready = dcb.read_pfc(show("dcb_ready_pfc.json"))
    assert fields(ready, "pfc_priorities", "pfc_delay", "pfc_capability") == ((3,), 32768, 8)
    assert ready.prio_tc is UNKNOWN
    pauses = dcb.read_pause_counters(show("dcb_ready_pfc.json"))
    assert pauses.pfc_tx_xoff == (0, 0, 0, 84211, 0, 0, 0, 0)  # requests
    assert pauses.pfc_rx_xoff == (0, 0, 0, 120904, 0, 0, 0, 0)  # indications


def test_dcb_app(show: Show) -> None:
    found = dcb.read_app(show("dcb_ready_app.json"), "ens1f0np0")
    assert fields(found, "netdev", "trust", "dscp_to_priority", "udp_port_to_priority") == (
        "ens1f0np0",
        "dscp",
        ((26, 3), (48, 6)),
        ((4791, 3),),
    )


def test_dcb_ets(show: Show) -> None:
    found = dcb.read_ets(show("dcb_ready_ets.json"))
    assert found.prio_tc == (0, 0, 0, 3, 0, 0, 6, 0)
    assert found.ets_percent == (50, 0, 0, 50, 0, 0, 0, 0)
    assert found.tsa == ("ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict")
    assert found.ets_willing is False


def test_dcb_buffer(show: Show) -> None:
    found = dcb.read_buffer(show("dcb_ready_buffer.json"))
    assert found.prio_buffer == (0, 0, 0, 1, 0, 0, 0, 0)
    assert found.buffer_bytes == (130944, 130944, 0, 0, 0, 0, 0, 0)
    assert found.buffer_total_bytes == 262016


def test_dcb_text_says_the_same_as_json_and_names_dscps(show: Show) -> None:
    text = dcb.read_text(show("dcb_ready_all.txt"))
    parts = (
        dcb.read_pfc(show("dcb_ready_pfc.json")),
        dcb.read_ets(show("dcb_ready_ets.json")),
        dcb.read_app(show("dcb_ready_app.json")),
        dcb.read_buffer(show("dcb_ready_buffer.json")),
    )
    for part in parts:
        for name in NicState.__dataclass_fields__:
            if getattr(part, name) is not UNKNOWN:
                assert getattr(text, name) == getattr(part, name), name


def test_ethtool_ice_counts_xoff_and_xon_of_each_priority(show: Show) -> None:
    found = ethtool.read_pause_counters(show("ethtool_ice_pfc_zero.txt"))
    zeros = (0,) * 8
    assert (found.pfc_rx_xoff, found.pfc_tx_xoff, found.pfc_rx_xon, found.pfc_tx_xon) == (zeros,) * 4
    assert (found.link_rx_pause, found.link_tx_pause, found.link_pause) == (0, 0, UNKNOWN)


def test_mlx5_without_pfc_lines_has_link_pause_and_no_zero_pfc_counter(show: Show) -> None:
    found = ethtool.read_pause_counters(show("ethtool_mlx5_global_pause_only.txt"))
    assert (found.pfc_rx_xoff, found.pfc_tx_xoff) == (UNKNOWN, UNKNOWN)
    assert (found.link_pause, found.link_rx_pause, found.link_tx_pause) == (True, 0, 0)
    assert found.storm_events == 0


def test_ibv_devinfo(show: Show) -> None:
    (port,) = rdma.read_devinfo(show("ibv_devinfo_mlx5_roce.txt"))
    assert (port.name, port.state, port.link_layer, port.firmware) == ("mlx5_2/1", "ACTIVE", "Ethernet", "28.42.1000")
    assert (port.active_mtu_bytes, port.max_mtu_bytes) == (4096, 4096)


def test_rdma_statistic_of_mlx5(show: Show) -> None:
    (counters,) = rdma.read_statistic(show("rdma_statistic_mlx5.json"))
    assert (counters.device, counters.port) == ("mlx5_1", 1)
    assert counters.value("rx_write_requests") == 2331678
    assert counters.value("rx_read_requests") == 1161608
    for name in ("sequence-gap-seen", "sequence-nak-received", "ack-timeout", "receiver-not-ready", "cnp-received"):
        assert rdma.meaning(counters, name) == 0
    assert rdma.meaning(counters, "retransmitted") is UNKNOWN


def test_rdma_statistic_of_ionic_lacks_what_its_driver_does_not_count(show: Show) -> None:
    counters, second = rdma.read_statistic(show("rdma_statistic_ionic.json"))[:2]
    assert (counters.device, second.device) == ("ionic_0", "ionic_1")
    for name in ("tx_rdma_retx_pkts", "tx_rdma_ack_timeout", "req_rx_pkt_seq_err", "resp_rx_outouf_seq"):
        assert counters.value(name) == 0
    for name in ("out_of_sequence", "local_ack_timeout_err", "np_cnp_sent"):
        assert counters.value(name) is UNKNOWN
    for name in ("ack-timeout", "sequence-gap-seen", "cnp-sent", "cnp-received", "ce-received", "mtu-discard"):
        assert rdma.meaning(counters, name) == 0
    assert rdma.meaning(counters, "cnp-ignored") is UNKNOWN


def one_neighbour(name: str, neighbours: tuple[LldpNeighbour, ...]) -> LldpNeighbour:
    assert [one.netdev for one in neighbours] == [name]
    return neighbours[0]


def test_lldpcli_reads_the_three_dcbx_tlvs(show: Show) -> None:
    found = one_neighbour("swp1", lldp.read_lldp(show("lldpcli_one_neighbour.json")))
    assert (found.system, found.port_id, found.port_description) == ("gpu-node-01", "02:00:5e:20:00:01", "ens1f0np0")
    dcbx = found.dcbx
    assert (dcbx.ets_willing, dcbx.ets_cbs, dcbx.ets_max_tcs) == (False, False, 8)
    assert dcbx.prio_tc == (0, 0, 0, 3, 0, 0, 6, 0)
    assert dcbx.ets_percent == (50, 0, 0, 50, 0, 0, 0, 0)
    assert dcbx.tsa == ("ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict")
    assert (dcbx.pfc_willing, dcbx.pfc_mbc, dcbx.pfc_capability, dcbx.pfc_priorities) == (False, False, 8, (3,))
    assert dcbx.app == ((3, 3, 4791),)


def test_lldpcli_json0_says_the_same(show: Show) -> None:
    regular = lldp.read_lldp(show("lldpcli_one_neighbour.json0"))
    assert regular == lldp.read_lldp(show("lldpcli_one_neighbour.json"))


def test_lldpcli_with_a_single_tlv(show: Show) -> None:
    found = one_neighbour("ens1f0np0", lldp.read_lldp(show("lldpcli_single_tlv.json")))
    assert (found.system, found.port_description) == ("leaf01", "swp1")
    assert (found.dcbx.pfc_willing, found.dcbx.pfc_priorities) == (False, (3, 4))
    assert (found.dcbx.prio_tc, found.dcbx.app) == (UNKNOWN, UNKNOWN)


def test_lldpcli_keeps_two_agents_behind_one_port_apart(show: Show) -> None:
    host, firmware = lldp.read_lldp(show("lldpcli_two_agents_one_port.json"))
    assert (host.netdev, host.system, host.dcbx.pfc_priorities) == ("swp1", "gpu-node-01", (3,))
    assert (firmware.netdev, firmware.system) == ("swp1", "fw-agent-01")
    assert firmware.system_description == "NIC firmware LLDP agent"
    dcbx = firmware.dcbx
    assert (dcbx.pfc_willing, dcbx.pfc_mbc, dcbx.pfc_capability, dcbx.pfc_priorities) == (True, False, 8, (4,))


def test_lldpcli_text_says_the_same_as_json(show: Show) -> None:
    text = lldp.read_lldp_text(show("lldpcli_two_agents_one_port.txt"))
    assert text == lldp.read_lldp(show("lldpcli_two_agents_one_port.json"))


def test_mlnx_qos_ready(show: Show) -> None:
    found = mlnx_qos.read_mlnx_qos(show("mlnx_qos_ready.txt"))
    assert fields(found, "dcbx_owner", "trust", "pfc_priorities", "cable_m") == ("os", "dscp", (3,), 7)
    assert found.dscp_to_priority == READY_MAP
    assert found.prio_tc == (0, 0, 0, 3, 0, 0, 6, 0)
    assert found.tsa == ("ets", "", "", "ets", "", "", "strict", "")
    assert found.ets_percent == (50, 0, 0, 50, 0, 0, 0, 0)
    assert found.prio_buffer == (0, 0, 0, 1, 0, 0, 0, 0)
    assert found.buffer_bytes == (20352, 239872, 0, 0, 0, 0, 0, 0)
    assert found.buffer_total_bytes == 262016


def test_mlnx_qos_of_2018_has_descending_dscps_and_no_buffers(show: Show) -> None:
    found = mlnx_qos.read_mlnx_qos(show("mlnx_qos_2018_connectx.txt"))
    assert fields(found, "dcbx_owner", "trust", "pfc_priorities", "cable_m") == ("os", "dscp", (3,), 7)
    assert found.dscp_to_priority == READY_MAP
    assert found.prio_tc == (1, 0, 2, 3, 4, 5, 6, 7)
    assert found.tsa == ("vendor",) * 8
    assert found.buffer_bytes is UNKNOWN


def test_mlnx_qos_factory(show: Show) -> None:
    found = mlnx_qos.read_mlnx_qos(show("mlnx_qos_factory.txt"))
    assert fields(found, "dcbx_owner", "trust", "pfc_priorities") == ("firmware", "pcp", ())
    assert found.prio_tc == (1, 0, 2, 3, 4, 5, 6, 7)
    assert found.tsa == ("vendor",) * 8
    assert found.dscp_to_priority == ()


def test_mlnx_qos_with_wrapped_dscps_and_a_rate_limit(show: Show) -> None:
    found = mlnx_qos.read_mlnx_qos(show("mlnx_qos_priority5.txt"))
    assert fields(found, "dcbx_owner", "trust", "pfc_priorities", "cable_m") == ("os", "dscp", (5,), 100)
    special = {24: 5, 26: 5, 48: 6}
    assert found.dscp_to_priority == tuple((dscp, special.get(dscp, 0)) for dscp in range(64))
    assert found.rate_limit_mbps == (None, None, None, None, None, 40_000, None, None)
    assert found.ets_percent == (12, 12, 12, 12, 13, 13, 13, 13)
    assert found.tsa == ("ets",) * 8


def test_log_of_a_setup_ends_with_its_last_output(show: Show) -> None:
    text = show("lossless_setup_log_2018.txt")
    found = mlnx_qos.read_mlnx_qos(text)
    assert fields(found, "dcbx_owner", "trust", "pfc_priorities") == ("os", "dscp", (3,))
    assert found.dscp_to_priority == READY_MAP
    assert found.prio_tc == (1, 0, 2, 3, 4, 5, 6, 7)
    # the trace shows which type of service was set, on the device and for the connection manager
    said = {int(one) for one in re.findall(r"(?m)^\+ .*?(?:echo|-t) (\d+)(?: > /sys/class/infiniband/.*|)'?$", text)}
    assert said == {106}
    assert tos_words(106) == "106 (DSCP 26, ECN-capable)"
    assert tos_serves(104, 106)


def test_query_script_shows_ecn_cnp_and_tos(show: Show) -> None:
    found = mlnx_qos.read_query(show("rdma_qos_query_priority5_tos160.txt"))
    assert fields(found, "trust", "pfc_priorities", "default_tos", "traffic_class") == ("dscp", (5,), 160, 160)
    assert found.prio_buffer == (0, 0, 0, 0, 0, 1, 0, 0)
    assert (found.np_priorities, found.rp_priorities, found.cnp_dscp) == (tuple(range(8)), tuple(range(8)), 48)
    assert fields(found, "dscp_to_priority", "prio_tc", "dcbx_owner") == (UNKNOWN,) * 3


def test_niccli(show: Show) -> None:
    found = niccli.read_niccli_qos(show("niccli_qos_bcm57608.txt"))
    assert found.prio_tc == (0, 0, 0, 1, 0, 0, 0, 2)
    assert found.ets_percent == (50, 50, 0, 0, 0, 0, 0, 0)
    assert found.tsa == ("ets", "ets", "strict", "", "", "", "", "")
    assert (found.pfc_priorities, found.trust) == ((3,), "dscp")
    assert (found.dscp_to_priority, found.udp_port_to_priority) == (((26, 3), (48, 7)), ((4791, 3),))
    assert found.rate_limit_percent == (100, 100, 100, 0, 0, 0, 0, 0)


def paths_of(subsystems: tuple[NvmeSubsystem, ...]) -> dict[str, dict[str, NvmePath]]:
    return {
        one.nqn: {} if one.paths is UNKNOWN else {path.controller: path for path in one.paths} for one in subsystems
    }


ONE, TWO = "nqn.2016-06.io.spdk:cnode1", "nqn.2016-06.io.spdk:cnode2"
UUID = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("name", "addressed"),
    [
        ("nvme_list_subsys_v2.3.json", True),
        ("nvme_list_subsys_v3.0rc1.json", True),
        ("nvme_list_subsys_v2.3.txt", True),
        ("nvme_list_subsys_v3.0rc1.txt", False),
    ],
)
def test_versions_2_and_3_list_the_same_paths(show: Show, name: str, addressed: bool) -> None:
    read = nvme.read_subsystems if name.endswith(".json") else nvme.read_subsystems_text
    subsystems = read(show(name))
    paths = paths_of(subsystems)
    assert [(nqn, list(of)) for nqn, of in paths.items()] == [(ONE, ["nvme1", "nvme2"]), (TWO, ["nvme3"])]
    first, second, third = paths[ONE]["nvme1"], paths[ONE]["nvme2"], paths[TWO]["nvme3"]
    assert [path.transport for path in (first, second, third)] == ["rdma", "rdma", "tcp"]
    assert [path.traddr for path in (first, second, third)] == ["192.0.2.11", "192.0.2.12", "192.0.2.13"]
    assert [path.state for path in (first, second, third)] == ["live", "connecting", "live"]
    assert (first.trsvcid, first.src_addr) == ((4420, "192.0.2.101") if addressed else (UNKNOWN, UNKNOWN))
    assert [one.name for one in subsystems] == ["nvme-subsys1", "nvme-subsys3"]
    if name != "nvme_list_subsys_v2.3.txt":
        assert {one.hostnqn for one in subsystems} == {f"nqn.2014-08.org.nvmexpress:uuid:{UUID}"}
    if name.endswith(".json"):
        assert {one.hostid for one in subsystems} == {UUID}


def test_version_1_hangs_paths_after_their_subsystem(show: Show) -> None:
    paths = paths_of(nvme.read_subsystems(show("nvme_list_subsys_v1_alternating.json")))
    assert {nqn: list(of) for nqn, of in paths.items()} == {ONE: ["nvme0"], TWO: ["nvme1", "nvme2"]}
    assert (paths[ONE]["nvme0"].transport, paths[ONE]["nvme0"].traddr) == ("tcp", "10.0.2.15")
    assert (paths[ONE]["nvme0"].trsvcid, paths[ONE]["nvme0"].state) == (4420, UNKNOWN)
    assert [path.traddr for path in paths[TWO].values()] == ["10.0.2.16", "10.0.2.17"]
    assert {path.transport for path in paths[TWO].values()} == {"rdma"}


def test_late_version_1_says_which_path_is_being_deleted(show: Show) -> None:
    paths = paths_of(nvme.read_subsystems(show("nvme_list_subsys_v1_late_deleting.json")))
    (found,) = paths.values()
    assert {name: path.state for name, path in found.items()} == {"nvme0": "live", "nvme1": "deleting"}


def test_form_of_the_manual_page(show: Show) -> None:
    paths = paths_of(nvme.read_subsystems(show("nvme_list_subsys_manpage.json")))
    sources = {nqn: {name: path.host_traddr for name, path in of.items()} for nqn, of in paths.items()}
    assert sources == {
        "nvmf-test": {"nvme0": "192.0.2.1", "nvme1": "192.0.2.2"},
        "nvmf-test2": {"nvme2": "192.0.2.2", "nvme3": "192.0.2.1"},
    }
    assert paths["nvmf-test"]["nvme0"].traddr == "192.0.2.3"
    assert paths["nvmf-test"]["nvme0"].transport == "rdma"


def test_verbose_list_of_version_2_has_ana(show: Show) -> None:
    subsystems = nvme.read_subsystems(show("nvme_list_v2.3_verbose.json"))
    ana = [path.ana for of in paths_of(subsystems).values() for path in of.values()]
    assert ana == [(("nvme1c1n1", "optimized"),), (("nvme1c2n1", "inaccessible"),), (("nvme3c3n1", "optimized"),)]
    assert [one.namespaces for one in subsystems] == [(), ()]
    assert nvme.read_devices(show("nvme_list_v2.3_verbose.json")) == ()


def test_verbose_list_of_version_3_has_no_path_level(show: Show) -> None:
    paths = paths_of(nvme.read_subsystems(show("nvme_list_v3.0rc1_verbose.json")))
    assert [name for of in paths.values() for name in of] == ["nvme1", "nvme2", "nvme3"]
    assert {path.ana for of in paths.values() for path in of.values()} == {UNKNOWN}


def test_empty_list(show: Show) -> None:
    assert nvme.read_devices(show("nvme_list_empty_v3.0rc1.json")) == ()
    assert nvme.read_subsystems(show("nvme_list_empty_v3.0rc1.json")) == ()


def test_topology_has_policies_and_does_not_tell_paths(show: Show) -> None:
    subsystems = nvme.read_subsystems(show("nvme_show_topology_v3.0rc1.json"))
    assert {one.nqn: one.iopolicy for one in subsystems} == {ONE: "round-robin", TWO: "numa"}
    assert {one.paths for one in subsystems} == {UNKNOWN}
