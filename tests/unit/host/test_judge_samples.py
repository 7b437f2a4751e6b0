"""The findings and verdicts that the catalogue of samples names beside an output are those of the rules."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.host.judge import host_findings
from fabric.host.nvme.connect import Connection
from fabric.host.parse import lldp, mlnx_qos, niccli, nvme
from fabric.host.report import HostReport
from fabric.host.settings import NicFacts
from fabric.qos import UNKNOWN
from fabric.state import Finding, Status
from fabric.state.host import NicState, NvmeSubsystem
from tests.unit.host.right import Site, site, with_nic, with_state

RIGHT = site()
Show = Callable[[str], str]
ONE, TWO = "nqn.2016-06.io.spdk:cnode1", "nqn.2016-06.io.spdk:cnode2"


@pytest.fixture(name="show")
def _show(reference: Path) -> Show:
    return lambda name: (reference / "samples" / "linux" / "show" / name).read_text(encoding="utf-8")


def failed(found: HostReport, *, family: str = "mlx5", of: Site = RIGHT) -> dict[str, Finding]:
    intent = of.intents["host1"]
    plan = replace(intent.plan, nics=tuple(replace(nic, family=family) for nic in intent.plan.nics))
    findings = host_findings(replace(intent, plan=plan), found, {})
    return {one.rule: one for one in findings if one.status is Status.FAIL}


def with_tool(state: NicState, *, flavour: str = "ofed") -> HostReport:
    """Returns the right host, with what the tool showed in place of it."""
    shown = {
        name: getattr(state, name)
        for name in NicState.__dataclass_fields__
        if name not in {"netdev", "conflicts"} and getattr(state, name) is not UNKNOWN
    }
    found = with_nic(RIGHT.reports["host1"], **shown)
    facts = (NicFacts("data0", "rdma0", pci="0000:3b:00.0", flavour=flavour),)
    return replace(found, reading=replace(found.reading, facts=facts))


def test_ready_nic_has_nothing_against_it(show: Show) -> None:
    assert failed(with_tool(mlnx_qos.read_mlnx_qos(show("mlnx_qos_ready.txt")))) == {}


def test_factory_state_fails_for_the_three_reasons_of_the_catalogue(show: Show) -> None:
    found = failed(with_tool(mlnx_qos.read_mlnx_qos(show("mlnx_qos_factory.txt"))))
    assert set(found) == {"host-dcbx-owner", "host-trust-not-dscp", "host-pfc-priorities", "host-ets-classes"}
    assert found["host-pfc-priorities"].evidence == "PFC priorities: none"


def test_output_of_2018_has_no_ets(show: Show) -> None:
    found = failed(with_tool(mlnx_qos.read_mlnx_qos(show("mlnx_qos_2018_connectx.txt"))))
    assert set(found) == {"host-ets-classes"}
    assert "vendor" in found["host-ets-classes"].evidence


def test_host_on_priority_5_in_a_fabric_of_priority_3(show: Show) -> None:
    found = failed(with_tool(mlnx_qos.read_mlnx_qos(show("mlnx_qos_priority5.txt"))))
    assert set(found) == {"host-pfc-priorities", "host-dscp-map", "host-ets-classes"}
    assert found["host-pfc-priorities"].evidence == "PFC priorities: 5"
    # the limit is on class 5, which carries the data of a fabric of priority 5
    intent = RIGHT.intents["host1"]
    nics = tuple(replace(nic, pfc_priorities=(5,)) for nic in intent.plan.nics)
    five = replace(RIGHT, intents={"host1": replace(intent, plan=replace(intent.plan, nics=nics))})
    limited = failed(with_tool(mlnx_qos.read_mlnx_qos(show("mlnx_qos_priority5.txt"))), of=five)
    assert limited["host-rate-limit-on-data-class"].evidence == "class 5 is limited to 40000 Mb/s"


def test_host_that_marks_dscp_40(show: Show) -> None:
    found = failed(with_tool(mlnx_qos.read_query(show("rdma_qos_query_priority5_tos160.txt"))))
    assert {"host-default-tos", "host-traffic-class-override", "host-pfc-priorities"} <= set(found)
    assert "160 (DSCP 40)" in found["host-default-tos"].evidence
    assert "host-dcqcn-points" not in found  # all eight are on, the data's among them


def test_broadcom_nic_is_ready_but_for_its_cnp_priority(show: Show) -> None:
    state = niccli.read_niccli_qos(show("niccli_qos_bcm57608.txt"))
    found = failed(with_tool(state, flavour="inbox"), family="bnxt_re")
    # the plan of this fabric has CNPs on priority 6; the DSCP decides in the switch all the same
    assert set(found) == {"host-dscp-map", "host-ets-classes"}
    assert "48:7" in found["host-dscp-map"].evidence
    assert "host-rate-limit-on-data-class" not in found


@pytest.mark.parametrize("name", ["lldpcli_two_agents_one_port.json", "lldpcli_two_agents_one_port.txt"])
def test_two_agents_behind_one_port(show: Show, name: str) -> None:
    read = lldp.read_lldp if name.endswith(".json") else lldp.read_lldp_text
    neighbours = tuple(replace(one, netdev="data0") for one in read(show(name)))
    found = failed(with_state(RIGHT.reports["host1"], neighbours=neighbours))
    assert set(found) == {"dcbx-two-agents"}
    assert "fw-agent-01 announces PFC on 4" in found["dcbx-two-agents"].evidence


def test_one_agent_is_none_too_many(show: Show) -> None:
    neighbours = tuple(replace(one, netdev="data0") for one in lldp.read_lldp(show("lldpcli_one_neighbour.json")))
    assert failed(with_state(RIGHT.reports["host1"], neighbours=neighbours)) == {}


def connected(subsystems: tuple[NvmeSubsystem, ...], *wanted: tuple[str, str]) -> list[tuple[str, str, str]]:
    """Returns (rule, status, evidence) of what did not pass on planned connections to (NQN, address)."""
    intent = RIGHT.intents["host1"]
    (right,) = intent.connections
    planned = tuple(Connection(nqn, traddr, 4420, right.host_traddr, right.netdev, right.tos) for nqn, traddr in wanted)
    found = with_state(RIGHT.reports["host1"], subsystems=subsystems)
    rules = {"nvme-connection-missing", "nvme-connection-not-live", "nvme-path-not-optimized"}
    findings = host_findings(replace(intent, connections=planned), found, {})
    return [
        (one.rule, one.status.value, one.evidence)
        for one in findings
        if one.rule in rules and one.status is not Status.PASS
    ]


@pytest.mark.parametrize("name", ["nvme_list_subsys_v2.3.json", "nvme_list_subsys_v3.0rc1.json"])
def test_path_that_is_connecting_and_subsystem_that_is_reached_over_tcp(show: Show, name: str) -> None:
    found = connected(nvme.read_subsystems(show(name)), (ONE, "192.0.2.11"), (ONE, "192.0.2.12"), (TWO, "192.0.2.13"))
    assert found == [
        ("nvme-connection-not-live", "fail", "nvme2 is connecting"),
        ("nvme-connection-missing", "fail", "nvme3 over tcp"),
    ]


def test_version_1_prints_no_state(show: Show) -> None:
    found = connected(nvme.read_subsystems(show("nvme_list_subsys_v1_alternating.json")), (TWO, "10.0.2.16"))
    assert found == [("nvme-connection-not-live", "unknown", "state of nvme1 not read")]


def test_path_that_is_inaccessible(show: Show) -> None:
    found = connected(
        nvme.read_subsystems(show("nvme_list_v2.3_verbose.json")), (ONE, "192.0.2.11"), (ONE, "192.0.2.12")
    )
    assert ("nvme-path-not-optimized", "fail", "nvme1c2n1 inaccessible") in found


def test_listing_without_paths_is_unknown(show: Show) -> None:
    found = connected(nvme.read_subsystems(show("nvme_show_topology_v3.0rc1.json")), (ONE, "192.0.2.11"))
    assert [(rule, status) for rule, status, _ in found] == [("nvme-connection-missing", "unknown")]
