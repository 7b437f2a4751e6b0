"""Rules about hosts, one at a time: what fails, what is unknown and why, and what a family has no setting for."""

from dataclasses import replace

import pytest

from fabric.host.families.catalog import DRIVERS
from fabric.host.judge import PortEvidence, host_findings, unread_host
from fabric.host.judging.settings import SETTINGS, setting_rule
from fabric.host.report import Definition, HostReport
from fabric.qos import UNKNOWN
from fabric.state import Finding, Severity, Status
from fabric.state.host import DcbxState, GidEntry, LldpNeighbour, NvmetState, RdmaCounters
from tests.unit.host.right import KV1, UNIT, UUID, report, site, with_nic, with_path, with_state

RIGHT = site()
FAMILIES = ("mlx5", "bnxt_re", "irdma", "rxe", "generic")


def judged(host: str, found: HostReport, *, family: str = "") -> dict[str, Finding]:
    """Returns what did not pass, by rule; one place each in these tests."""
    intent = RIGHT.intents[host]
    if family:
        plan = replace(intent.plan, nics=tuple(replace(nic, family=family) for nic in intent.plan.nics))
        intent = replace(intent, plan=plan)
    findings = host_findings(intent, found, {})
    return {one.rule: one for one in findings if one.status is not Status.PASS}


def nic(host: str, family: str = "", **more: object) -> dict[str, Finding]:
    return judged(host, with_nic(RIGHT.reports[host], **more), family=family)


def state(host: str, **more: object) -> dict[str, Finding]:
    return judged(host, with_state(RIGHT.reports[host], **more))


# --- settings -------------------------------------------------------------------------------------------------------


def test_every_setting_of_every_family_has_its_own_rule() -> None:
    settings = {setting.name for driver in DRIVERS for setting in driver.settings}
    assert settings - {"rdma-link", "rdma-mtu"} == set(SETTINGS)
    ids = [rule.rule.id for rule in SETTINGS.values()]
    assert len(ids) == len(set(ids))


def test_setting_that_nobody_described_is_judged_all_the_same() -> None:
    assert setting_rule("new-thing").rule.id == "host-new-thing"


@pytest.mark.parametrize("family", FAMILIES)
def test_right_nic_of_each_family_passes(family: str) -> None:
    values = {"dcqcn": (("roce_dcqcn_enable", 1),)} if family == "irdma" else {}
    assert nic("host2", family, **values) == {}


@pytest.mark.parametrize(
    ("family", "field", "value", "rule"),
    [
        ("mlx5", "dcbx_owner", "firmware", "host-dcbx-owner"),
        ("mlx5", "global_pause_rx", True, "host-global-pause-on"),
        ("mlx5", "global_pause_tx", True, "host-global-pause-on"),
        ("mlx5", "dscp_to_priority", (), "host-dscp-map"),
        ("mlx5", "tsa", ("vendor",) * 8, "host-ets-classes"),
        ("mlx5", "np_priorities", (), "host-dcqcn-points"),
        ("mlx5", "cnp_dscp", 4, "host-cnp-dscp"),
        ("bnxt_re", "cnp_dscp", 4, "host-cnp-dscp"),
        ("irdma", "firmware_lldp", True, "host-firmware-lldp"),
        ("rxe", "default_mode", "IB/RoCE v1", "host-roce-mode"),
        ("rxe", "default_tos", 0, "host-default-tos"),
        ("rxe", "link_up", False, "host-link-down"),
        ("rxe", "addresses", (), "host-address-missing"),
        ("rxe", "mtu_bytes", 1500, "host-netdev-mtu"),
    ],
)
def test_setting_that_is_wrong_fails_its_rule_alone(family: str, field: str, value: object, rule: str) -> None:
    values = {"dcqcn": (("roce_dcqcn_enable", 1),)} if family == "irdma" else {}
    found = nic("host2", family, **{**values, field: value})
    assert list(found) == [rule]
    assert (found[rule].status, found[rule].severity) == (Status.FAIL, Severity.ERROR)
    assert found[rule].expected
    assert found[rule].remedy
    assert "NETDEV" not in found[rule].remedy


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ("dcbx_owner", "host-dcbx-owner"),
        ("global_pause_rx", "host-global-pause-on"),
        ("dscp_to_priority", "host-dscp-map"),
        ("prio_tc", "host-ets-classes"),
        ("pfc_priorities", "host-pfc-priorities"),
        ("rp_priorities", "host-dcqcn-points"),
        ("default_tos", "host-default-tos"),
        ("mtu_bytes", "host-netdev-mtu"),
    ],
)
def test_what_a_family_has_and_nobody_read_is_unknown(field: str, rule: str) -> None:
    found = nic("host1", "", **{field: UNKNOWN})
    assert list(found) == [rule]
    assert (found[rule].status, found[rule].severity) == (Status.UNKNOWN, Severity.ERROR)
    assert "not read" in found[rule].evidence


def test_soft_roce_has_no_dcb_and_is_not_asked_for_it() -> None:
    assert nic("host2", pfc_priorities=UNKNOWN, dscp_to_priority=UNKNOWN, global_pause_rx=UNKNOWN) == {}
    every = {one.rule for one in host_findings(RIGHT.intents["host2"], RIGHT.reports["host2"], {})}
    assert not every & {"host-pfc-priorities", "host-dscp-map", "host-ets-classes", "host-global-pause-on"}


def test_unknown_says_which_command_gave_nothing_and_why() -> None:
    found = with_nic(RIGHT.reports["host1"], pfc_priorities=UNKNOWN)
    line = "dcb -j pfc show dev data0: exit 95: Operation not supported"
    found = replace(found, reading=replace(found.reading, unread=(line,)))
    assert line in judged("host1", found)["host-pfc-priorities"].evidence


def test_tools_that_disagree_are_named() -> None:
    conflict = "pfc_priorities: one tool shows (3,), another (4,)"
    found = nic("host1", pfc_priorities=UNKNOWN, conflicts=(conflict,))
    assert found["host-pfc-priorities"].status is Status.UNKNOWN
    assert conflict in found["host-pfc-priorities"].evidence


def test_ofed_trusts_and_overrides() -> None:
    def ofed(**more: object) -> dict[str, Finding]:
        found = with_nic(RIGHT.reports["host1"], **more)
        facts = tuple(replace(one, flavour="ofed") for one in found.reading.facts)
        return judged("host1", replace(found, reading=replace(found.reading, facts=facts)))

    assert ofed() == {}
    # without trust mlnx_qos prints no map: one cause
    assert list(ofed(trust="pcp", dscp_to_priority=())) == ["host-trust-not-dscp"]
    wrong = ofed(traffic_class=0)["host-traffic-class-override"]
    assert (wrong.severity, wrong.evidence.split(": ")[-1]) == (Severity.ERROR, "0 (DSCP 0)")
    assert ofed(traffic_class=106) == {}  # the same DSCP
    assert ofed(traffic_class=None)["host-traffic-class-override"].severity is Severity.WARNING
    assert ofed(cnp_priority=3)["host-cnp-priority"].severity is Severity.WARNING


def test_type_of_service_of_the_device_matters_less_on_a_target() -> None:
    host, target = nic("host2", default_tos=0), nic("target1", default_tos=0)
    assert host["host-default-tos"].severity is Severity.ERROR
    assert target["host-default-tos"].severity is Severity.WARNING
    assert nic("target1", default_tos=UNKNOWN)["host-default-tos"].severity is Severity.WARNING
    # the same DSCP without ECT: Soft-RoCE copies the byte, so nothing is marked, and nothing is lost
    assert nic("host2", default_tos=104)["host-default-tos"].severity is Severity.WARNING
    assert nic("host1", default_tos=106) == {}


def test_larger_mtu_than_planned_is_a_warning() -> None:
    assert nic("host2", mtu_bytes=9000)["host-netdev-mtu"].severity is Severity.WARNING


# --- unconfirmed ----------------------------------------------------------------------------------------------------


def test_tool_without_a_sample_is_named_in_its_findings_and_in_no_other() -> None:
    found = with_state(RIGHT.reports["host1"], unconfirmed=("dcb dcbx show", "ethtool -a"))
    every = {one.rule: one.evidence for one in host_findings(RIGHT.intents["host1"], found, {})}
    named = {rule for rule, evidence in every.items() if "unconfirmed" in evidence}
    assert named == {"host-dcbx-owner", "host-global-pause-on"}
    assert every["host-dcbx-owner"].endswith("[unconfirmed: dcb dcbx show]")


def test_every_tool_that_a_driver_calls_unconfirmed_is_in_a_finding() -> None:
    told = {tool for rule in SETTINGS.values() for tool in rule.tools}
    facts = RIGHT.reports["host1"].reading.facts[0]
    plan = RIGHT.intents["host1"].plan.nics[0]
    asked = {read.unconfirmed for driver in DRIVERS for read in driver.reads(plan, facts) if read.unconfirmed}
    assert asked <= told


@pytest.mark.parametrize("family", ["irdma", "generic"])
def test_every_finding_on_a_family_without_a_sample_says_so(family: str) -> None:
    intent = RIGHT.intents["target1"]
    plan = replace(intent.plan, nics=tuple(replace(one, family=family) for one in intent.plan.nics))
    found = host_findings(replace(intent, plan=plan), report(intent), {})
    at_nic = [one for one in found if one.where.ports == ("data0",)]
    assert len(at_nic) > 8
    assert all(f"unconfirmed: family {family}" in one.evidence for one in at_nic)


def test_version_of_nvme_cli_without_a_sample_is_in_the_findings_on_connections() -> None:
    found = with_state(RIGHT.reports["host2"], unconfirmed=("nvme-cli 3.1",))
    every = host_findings(RIGHT.intents["host2"], found, {})
    missing = next(one for one in every if one.rule == "nvme-connection-missing")
    assert missing.evidence == "nvme0 [unconfirmed: nvme-cli 3.1]"


# --- RDMA -----------------------------------------------------------------------------------------------------------


def test_no_rdma_device_is_one_finding_and_its_address_another() -> None:
    assert list(nic("host2", rdma_device=None)) == ["rdma-link-missing", "gid-missing-for-address"]
    assert nic("host2", rdma_device=UNKNOWN)["rdma-link-missing"].status is Status.UNKNOWN


def test_link_that_is_down() -> None:
    ports = RIGHT.reports["host2"].reading.state.rdma_ports
    assert isinstance(ports, tuple)
    down = state("host2", rdma_ports=(replace(ports[0], state="DOWN"),))
    assert down["rdma-link-down"].evidence == "rdma0/1 is DOWN"
    assert state("host2", rdma_ports=UNKNOWN)["rdma-link-down"].status is Status.UNKNOWN


def test_path_mtu_that_nobody_read_cannot_be_larger_than_the_netdev_carries() -> None:
    found = with_state(with_nic(RIGHT.reports["host2"], rdma_mtu_bytes=UNKNOWN), rdma_ports=UNKNOWN)
    assert judged("host2", found)["rdma-mtu-below-planned"].status is Status.UNKNOWN
    small = judged("host2", with_nic(found, mtu_bytes=1500))["rdma-mtu-below-planned"]
    assert (small.status, "it is 1024 at most" in small.evidence) == (Status.FAIL, True)
    # a family that shows the path MTU of its own device
    assert "rdma-mtu-below-planned" not in judged("host2", with_nic(found, rdma_mtu_bytes=4096))


@pytest.mark.parametrize(
    ("gids", "text"),
    [
        ((), "no GID has 192.0.2.22"),
        ((GidEntry("rdma0", 1, 0, "0000:0000:0000:0000:0000:ffff:c000:0216", "v1", "data0"),), "RoCEv1 only"),
        ((GidEntry("other", 1, 0, "0000:0000:0000:0000:0000:ffff:c000:0216", "v2", "data0"),), "no GID"),
        ((GidEntry("rdma0", 1, 0, "nonsense", "v2", "data0"),), "no GID"),
    ],
)
def test_address_without_a_gid_of_roce_v2(gids: tuple[GidEntry, ...], text: str) -> None:
    found = state("host2", gids=gids)["gid-missing-for-address"]
    assert found.status is Status.FAIL
    assert text in found.evidence


def test_unread_table_of_gids_is_unknown() -> None:
    assert state("host2", gids=UNKNOWN)["gid-missing-for-address"].status is Status.UNKNOWN


def test_two_agents_with_different_pfc_sets() -> None:
    def agent(name: str, *priorities: int) -> LldpNeighbour:
        return LldpNeighbour("data0", system=name, dcbx=DcbxState(pfc_priorities=priorities))

    assert state("host1", neighbours=(agent("leaf1", 3), agent("leaf1", 3))) == {}
    found = state("host1", neighbours=(agent("leaf1", 3), agent("fw-agent-01", 4)))["dcbx-two-agents"]
    assert (found.severity, found.evidence) == (
        Severity.WARNING,
        "leaf1 announces PFC on 3; fw-agent-01 announces PFC on 4",
    )
    assert state("host1", neighbours=(agent("leaf1", 3), LldpNeighbour("data0"))) == {}


# --- connections ----------------------------------------------------------------------------------------------------


def test_connection_that_is_missing_is_one_finding() -> None:
    assert list(state("host2", subsystems=())) == ["nvme-connection-missing"]
    assert state("host2", subsystems=UNKNOWN)["nvme-connection-missing"].status is Status.UNKNOWN
    over_tcp = judged("host2", with_path(RIGHT.reports["host2"], transport="tcp"))
    assert over_tcp["nvme-connection-missing"].evidence == "nvme0 over tcp"


@pytest.mark.parametrize(
    ("more", "rule", "status"),
    [
        ({"state": "connecting"}, "nvme-connection-not-live", Status.FAIL),
        ({"state": "deleting (no IO)"}, "nvme-connection-not-live", Status.FAIL),
        ({"state": UNKNOWN}, "nvme-connection-not-live", Status.UNKNOWN),
        ({"host_traddr": "192.0.2.99"}, "nvme-connection-wrong-source", Status.FAIL),
        ({"host_traddr": UNKNOWN}, "nvme-connection-wrong-source", Status.FAIL),
        ({"ctrl_loss_tmo_s": 600}, "nvme-ctrl-loss-tmo-default", Status.FAIL),
        ({"ana": (("nvme0c0n1", "inaccessible"),)}, "nvme-path-not-optimized", Status.FAIL),
        ({"trsvcid": 4421}, "nvme-connection-missing", Status.FAIL),
    ],
)
def test_controller_that_is_not_as_planned(more: dict[str, object], rule: str, status: Status) -> None:
    found = judged("host2", with_path(RIGHT.reports["host2"], **more))
    assert {name: one.status for name, one in found.items()} == {rule: status}


def test_deleting_controller_does_not_come_back() -> None:
    found = judged("host2", with_path(RIGHT.reports["host2"], state="deleting"))["nvme-connection-not-live"]
    assert "not come back by itself" in found.remedy


def definitions(*found: Definition) -> dict[str, Finding]:
    return judged("host2", replace(RIGHT.reports["host2"], definitions=found))


def definition(tos: int | None, *, nqn: str = KV1, source: str = UNIT, host_traddr: str = "192.0.2.22") -> Definition:
    return Definition(nqn, "192.0.2.11", host_traddr, UNKNOWN if tos is None else tos, source)


def test_every_definition_of_a_connection_counts() -> None:
    assert definitions(definition(106)) == {}
    config = definition(0, source="/etc/nvme/config.json")
    found = definitions(definition(106), config)["nvme-connection-tos"]
    assert (found.severity, found.evidence) == (Severity.ERROR, "0 (DSCP 0) by /etc/nvme/config.json")
    discovered = definition(0, nqn="", source="/etc/nvme/discovery.conf", host_traddr="")
    assert definitions(definition(106), discovered)["nvme-connection-tos"].status is Status.FAIL
    other = Definition("nqn.2026-01.net.example:other", "192.0.2.11", "", 0, UNIT)
    assert definitions(definition(106), other) == {}


def test_definition_without_a_type_of_service_stands_by_the_devices_default() -> None:
    found = definitions(definition(None))["nvme-connection-tos"]
    assert (found.status, found.severity) == (Status.FAIL, Severity.WARNING)
    assert "the device's default is 106" in found.evidence
    unread = with_nic(replace(RIGHT.reports["host2"], definitions=(definition(-1),)), default_tos=UNKNOWN)
    assert judged("host2", unread)["nvme-connection-tos"].severity is Severity.ERROR


def test_unread_definitions_are_unknown_until_the_counters_prove_a_fault() -> None:
    unread = replace(RIGHT.reports["host2"], definitions=UNKNOWN)
    found = judged("host2", unread)["nvme-connection-tos"]
    assert (found.status, "no switch was asked" in found.evidence) == (Status.UNKNOWN, True)
    lossy = {"data0": PortEvidence("leaf1", "Ethernet4", 0, 2000, 3, classifies=True)}
    every = {one.rule: one for one in host_findings(RIGHT.intents["host2"], unread, lossy)}
    assert every["nvme-connection-tos"].status is Status.FAIL
    unasked = {"data0": PortEvidence("leaf1", "Ethernet4", reason="leaf1 could not be asked")}
    every = {one.rule: one for one in host_findings(RIGHT.intents["host2"], unread, unasked)}
    assert "leaf1 could not be asked" in every["nvme-connection-tos"].evidence


def test_worst_of_several_definitions_is_told() -> None:
    found = definitions(definition(104), definition(0, source="/etc/nvme/config.json"))["nvme-connection-tos"]
    assert (found.severity, found.evidence) == (Severity.ERROR, "0 (DSCP 0) by /etc/nvme/config.json")


def test_addresses_of_version_6_are_compared_as_addresses() -> None:
    intent = RIGHT.intents["host2"]
    (one,) = intent.connections
    plan = replace(intent.plan, nics=(replace(intent.plan.nics[0], addresses=("2001:db8::22/64",)),))
    wanted = replace(one, traddr="2001:db8::11", host_traddr="2001:db8::22")
    six = replace(intent, plan=plan, connections=(wanted,))
    shown = with_nic(with_path(RIGHT.reports["host2"], traddr="2001:0db8::0011", host_traddr="2001:db8:0::22"))
    gid = GidEntry("rdma0", 1, 0, "2001:0db8:0000:0000:0000:0000:0000:0022", "v2", "data0")
    shown = with_state(with_nic(shown, addresses=("2001:db8::22/64",)), gids=(gid,))
    shown = replace(shown, definitions=(Definition(KV1, "2001:db8::11", "", wanted.tos, UNIT),))
    there = with_state(RIGHT.reports["target1"], gids=(replace(gid, gid="2001:0db8::0011"),))
    found = host_findings(six, shown, {}, peer_reports={"host2": shown, "target1": there})
    assert [one for one in found if one.status is not Status.PASS] == []
    assert {one.where.device for one in found if one.rule == "rdma-mtu-mismatch"} == {"host2", "target1"}


def test_link_local_target_needs_the_source_of_its_scope() -> None:
    intent = RIGHT.intents["host2"]
    local = replace(intent.connections[0], traddr="fe80::99%data0", host_traddr="fe80::22%data0")
    rules = {
        one.rule: one.status for one in host_findings(replace(intent, connections=(local,)), RIGHT.reports["host2"], {})
    }
    assert rules["nvme-linklocal-needs-host-traddr"] is Status.PASS


def test_counter_that_no_sample_shows_says_so() -> None:
    counted = replace(RIGHT.reports["host2"], counters=(RdmaCounters("rdma0", 1, (("rx_pkts", 1000),)),))
    lossy = {"data0": PortEvidence("leaf1", "Ethernet4", 0, 2000, 3, classifies=True)}
    every = {one.rule: one for one in host_findings(RIGHT.intents["host2"], counted, lossy)}
    assert "rx_pkts [unconfirmed: bnxt_re counters]" in every["data-in-lossy-queue"].evidence


@pytest.mark.parametrize(
    ("hostnqn", "hostid", "status"),
    [
        (f"nqn.2014-08.org.nvmexpress:uuid:{UUID}", UUID.upper(), None),
        ("nqn.2026-01.net.example:host2", UUID, None),
        (f"nqn.2014-08.org.nvmexpress:uuid:{UUID}", "00000000-0000-4000-8000-000000000001", Status.FAIL),
        (UNKNOWN, UUID, Status.UNKNOWN),
    ],
)
def test_identity_is_a_pair(hostnqn: object, hostid: str, status: Status | None) -> None:
    found = state("host2", hostnqn=hostnqn, hostid=hostid)
    assert {name: one.status for name, one in found.items()} == ({"nvme-identity-pair": status} if status else {})


# --- target ---------------------------------------------------------------------------------------------------------


def target(**more: object) -> dict[str, Finding]:
    found = RIGHT.reports["target1"].reading.state.target
    assert isinstance(found, NvmetState)
    subsystem, port = found.subsystems[0], found.ports[0]
    of_subsystem = {name: value for name, value in more.items() if name in {"any_host", "allowed_hosts", "namespaces"}}
    of_port = {name: value for name, value in more.items() if name in {"traddr", "subsystems"}}
    changed = NvmetState(
        (replace(subsystem, **of_subsystem),),  # type: ignore[arg-type]
        (replace(port, **of_port),),  # type: ignore[arg-type]
    )
    return state("target1", target=changed)


@pytest.mark.parametrize(
    ("more", "rule", "text"),
    [
        ({"any_host": True}, "nvmet-allowed-hosts", "admits any host"),
        ({"allowed_hosts": ()}, "nvmet-allowed-hosts", "admits no host"),
        ({"namespaces": ((1, "/dev/ram0", False),)}, "nvmet-namespace-not-enabled", "nsid 1: /dev/ram0, not enabled"),
        ({"namespaces": ()}, "nvmet-namespace-not-enabled", "nsid 1: absent"),
        ({"traddr": "192.0.2.99"}, "nvmet-listener-missing", "rdma 192.0.2.99 4420"),
        ({"subsystems": ()}, "nvmet-subsystem-not-published", "not on rdma 192.0.2.11 4420"),
    ],
)
def test_target_that_is_not_as_planned(more: dict[str, object], rule: str, text: str) -> None:
    found = target(**more)
    assert list(found) == [rule]
    assert (found[rule].status, found[rule].severity) == (Status.FAIL, Severity.ERROR)
    assert text in found[rule].evidence


def test_target_that_is_empty_or_was_not_read() -> None:
    empty = state("target1", target=NvmetState())
    assert list(empty) == ["nvmet-listener-missing", "nvmet-subsystem-not-published"]
    unread = state("target1", target=UNKNOWN)
    assert {name: one.status for name, one in unread.items()} == {"nvmet-subsystem-not-published": Status.UNKNOWN}
    assert target(any_host=UNKNOWN)["nvmet-allowed-hosts"].status is Status.UNKNOWN


# --- paths and hosts that say nothing -------------------------------------------------------------------------------


def test_both_ends_of_a_path_are_compared() -> None:
    small = RIGHT.reports["target1"].reading.state.rdma_ports
    assert isinstance(small, tuple)
    there = with_state(RIGHT.reports["target1"], rdma_ports=(replace(small[0], active_mtu_bytes=1024),))
    found = host_findings(RIGHT.intents["host2"], RIGHT.reports["host2"], {}, peer_reports={"target1": there})
    ends = {one.where.device: one.status for one in found if one.rule == "rdma-mtu-mismatch"}
    assert ends == {"host2": Status.PASS, "target1": Status.FAIL}
    without = with_state(there, gids=UNKNOWN)
    found = host_findings(RIGHT.intents["host2"], RIGHT.reports["host2"], {}, peer_reports={"target1": without})
    assert [one for one in found if one.rule == "rdma-mtu-mismatch"] == []


def test_host_that_shows_nothing_is_unknown_throughout() -> None:
    blank = report(RIGHT.intents["host1"])
    names = dict.fromkeys(type(blank.reading.state.nics[0]).__dataclass_fields__, UNKNOWN)
    nothing = with_nic(blank, **{**names, "netdev": "data0", "conflicts": ()})
    nothing = with_state(
        nothing, rdma_ports=UNKNOWN, gids=UNKNOWN, neighbours=UNKNOWN, subsystems=UNKNOWN, hostnqn=UNKNOWN
    )
    nothing = replace(nothing, definitions=UNKNOWN, counters=())
    found = host_findings(RIGHT.intents["host1"], nothing, {})
    assert {one.status for one in found} == {Status.UNKNOWN}
    assert len(found) > 15


def test_unread_host_is_one_unknown() -> None:
    found = unread_host("host9", "connection refused", "look")
    assert (found.rule, found.status, found.where.device) == ("host-read", Status.UNKNOWN, "host9")
