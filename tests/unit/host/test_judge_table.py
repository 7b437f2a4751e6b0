"""Which rule names each wrong thing: from a right fabric by one change, these rules fail and no other.

The rows of the table of issue 3, bar 2, on the switch and on the host, each with its neighbours.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fabric.host.report import HostReport
from fabric.qos import UNKNOWN, PfcMode, PortPfc, PortQos
from fabric.state import Finding, PortCounters, QueueCounters, Severity, Status
from tests.unit.host.right import LEAF, RECEIVED, Site, site, with_nic, with_path, with_state

RIGHT = site()
Change = Callable[[Site], Site]


def on_ports(change: Callable[[PortQos], PortQos]) -> Change:
    return lambda found: found.with_ports(change)


def on_host(host: str, change: Callable[[HostReport], HostReport]) -> Change:
    return lambda found: found.with_report(host, change)


def nic(host: str, **more: object) -> Change:
    return on_host(host, lambda found: with_nic(found, **more))


def tos(host: str, value: object) -> Change:
    def change(found: HostReport) -> HostReport:
        assert isinstance(found.definitions, tuple)
        (one,) = found.definitions
        return replace(found, definitions=(replace(one, tos=value),))  # type: ignore[arg-type]  # UNKNOWN too

    return on_host(host, change)


def both(*changes: Change) -> Change:
    def change(found: Site) -> Site:
        for one in changes:
            found = one(found)
        return found

    return change


def without_dscp_26(port: PortQos) -> PortQos:
    assert isinstance(port.dscp_to_tc, tuple)
    return replace(port, dscp_to_tc=tuple(0 if dscp == 26 else tc for dscp, tc in enumerate(port.dscp_to_tc)))


def without_ecn(port: PortQos) -> PortQos:
    return replace(port, queues=tuple(replace(queue, aqm=None) for queue in port.queues))


def pfc(*priorities: int) -> Callable[[PortQos], PortQos]:
    mode = PfcMode.ON if priorities else PfcMode.OFF
    return lambda port: replace(port, pfc=PortPfc(mode, frozenset(priorities), rx=True, tx=True, asymmetric=False))


def small_port(port: PortQos) -> PortQos:
    return replace(port, mtu_bytes=1500) if port.name == "Ethernet4" else port


def small_path(found: HostReport) -> HostReport:
    ports = found.reading.state.rdma_ports
    assert isinstance(ports, tuple)
    small = with_nic(found, mtu_bytes=1500, rdma_mtu_bytes=1024)
    return with_state(small, rdma_ports=(replace(ports[0], active_mtu_bytes=1024),))


TABLE: dict[str, tuple[Change, set[tuple[str, str]]]] = {
    "host without ToS: its definition names none, and the device has no default": (
        both(tos("host2", UNKNOWN), nic("host2", default_tos=0)),
        {("host2", "nvme-connection-tos"), ("host2", "host-default-tos")},
    ),
    "host with another ToS": (tos("host2", 0), {("host2", "nvme-connection-tos")}),
    "host with another ToS, on a ConnectX": (tos("host1", 96), {("host1", "nvme-connection-tos")}),
    "switch map without DSCP 26": (on_ports(without_dscp_26), {(LEAF, "dscp-maps-to-lossy-tc")}),
    "PFC off at the switch": (on_ports(pfc()), {(LEAF, "pfc-not-on-data-priority")}),
    "PFC off at the host": (nic("host1", pfc_priorities=()), {("host1", "host-pfc-priorities")}),
    "MTU 1500 at one host": (
        on_host("host2", small_path),
        {("host2", "host-netdev-mtu"), ("host2", "rdma-mtu-below-planned"), ("host2", "rdma-mtu-mismatch")},
    ),
    "MTU 1500 at the switch port": (
        on_ports(small_port),
        {(LEAF, "mtu-below-policy"), (LEAF, "mtu-below-host-mtu")},
    ),
    "wrong priority at the host": (nic("host1", pfc_priorities=(4,)), {("host1", "host-pfc-priorities")}),
    "one priority too many at the host": (nic("host1", pfc_priorities=(3, 4)), {("host1", "host-pfc-priorities")}),
    "DSCP 26 on another priority at the host": (
        nic("host1", dscp_to_priority=((26, 4), (48, 6))),
        {("host1", "host-dscp-map")},
    ),
    "wrong priority at the switch": (on_ports(pfc(4)), {(LEAF, "pfc-not-on-data-priority")}),
    "one priority too many at the switch": (
        on_ports(pfc(3, 4)),
        {(LEAF, "pfc-on-other-priority"), (LEAF, "watchdog-misses-lossless-priority")},
    ),
    "ECN off at the switch": (on_ports(without_ecn), {(LEAF, "ecn-off-on-lossless-queue")}),
    "ECN off at the host: neither point": (
        nic("host1", np_priorities=(), rp_priorities=()),
        {("host1", "host-dcqcn-points")},
    ),
    "ECN off at the host: ToS without ECT": (tos("host2", 104), {("host2", "nvme-connection-tos")}),
}


def test_right_fabric_passes_every_rule() -> None:
    assert [one for one in RIGHT.findings() if one.status is not Status.PASS] == []


@pytest.mark.parametrize("name", TABLE)
def test_rule_that_names_the_wrong_thing(name: str) -> None:
    change, expected = TABLE[name]
    assert change(RIGHT).failed() == expected


@pytest.mark.parametrize("name", TABLE)
def test_nothing_else_becomes_unknown(name: str) -> None:
    change, _ = TABLE[name]
    assert [one for one in change(RIGHT).findings() if one.status is Status.UNKNOWN] == []


def the(site: Site, device: str, rule: str) -> Finding:
    (found,) = [one for one in site.findings() if (one.where.device, one.rule) == (device, rule)]
    return found


def test_findings_name_what_was_found_and_what_to_do() -> None:
    wrong = the(nic("host1", pfc_priorities=(4,))(RIGHT), "host1", "host-pfc-priorities")
    assert (wrong.where.ports, wrong.where.priority, wrong.expected) == (("data0",), 3, "3")
    assert wrong.evidence == "PFC priorities: 4"
    assert "exactly priority 3" in wrong.remedy
    small = the(on_host("host2", small_path)(RIGHT), "host2", "rdma-mtu-below-planned")
    assert small.evidence == "active MTU 1024 over a netdev with MTU 1500"
    assert "4200 or more" in small.remedy
    lost = the(tos("host2", UNKNOWN)(nic("host2", default_tos=0)(RIGHT)), "host2", "nvme-connection-tos")
    assert "names no type of service; the device's default is 0 (DSCP 0) now" in lost.evidence
    assert "--tos=106" in lost.remedy


# --- what the counters add ------------------------------------------------------------------------------------------


def lossy(one: PortCounters) -> PortCounters:
    """Everything went out on queue 0."""
    moved = {"UC0": RECEIVED + 50, "UC3": 0}
    return replace(one, queues=tuple(replace(q, packets=moved.get(q.queue, q.packets)) for q in one.queues))


def undefined(found: HostReport) -> HostReport:
    return replace(found, definitions=())


def test_without_a_definition_the_type_of_service_is_unknown() -> None:
    found = the(on_host("host2", undefined)(RIGHT), "host2", "nvme-connection-tos")
    assert (found.status, found.severity) == (Status.UNKNOWN, Severity.ERROR)
    assert "--tos=106" in found.remedy


def test_without_a_definition_the_counters_of_the_switch_prove_a_missing_one() -> None:
    change = both(on_host("host2", undefined), lambda found: found.with_counters(lossy))
    found = the(change(RIGHT), "host2", "nvme-connection-tos")
    assert found.status is Status.FAIL
    assert "1000 RDMA packets came in (rcvd_pkts)" in found.evidence
    assert "leaf1 sent out of Ethernet4 none was on queue 3" in found.evidence


def test_counters_do_not_blame_the_host_for_the_map_of_the_switch() -> None:
    change = both(on_host("host2", undefined), on_ports(without_dscp_26), lambda found: found.with_counters(lossy))
    found = change(RIGHT)
    assert the(found, "host2", "nvme-connection-tos").status is Status.UNKNOWN
    data = the(found, "host2", "data-in-lossy-queue")
    assert (data.status, data.severity) == (Status.FAIL, Severity.ERROR)  # the configuration explains it


def test_right_definition_with_data_in_the_lossy_queue_may_be_history() -> None:
    found = RIGHT.with_counters(lossy)
    assert the(found, "host2", "nvme-connection-tos").status is Status.PASS
    data = the(found, "host2", "data-in-lossy-queue")
    assert (data.status, data.severity) == (Status.FAIL, Severity.WARNING)


@pytest.mark.parametrize(
    ("data", "other", "status"),
    [
        (0, 950, "fail"),
        (0, 900, "unknown"),  # the switch's counters are younger than the host's
        (950, 0, "pass"),
        (500, 500, "unknown"),
        (UNKNOWN, 950, "unknown"),
    ],
)
def test_class_of_the_traffic(data: int, other: int, status: str) -> None:
    def change(one: PortCounters) -> PortCounters:
        return replace(one, queues=(QueueCounters("UC0", other), QueueCounters("UC3", data)))

    assert the(RIGHT.with_counters(change), "host2", "data-in-lossy-queue").status.value == status


def test_driver_that_counts_no_packets_is_judged_by_requests() -> None:
    def change(found: HostReport) -> HostReport:
        (one,) = found.counters
        return replace(found, counters=(replace(one, values=(("rx_write_requests", 900), ("rx_read_requests", 60))),))

    found = the(on_host("host1", change)(RIGHT), "host1", "data-in-lossy-queue")
    assert found.status is Status.PASS
    assert "960 came in (rx_write_requests + rx_read_requests)" in found.evidence
    silent = on_host("host1", lambda found: replace(found, counters=()))(RIGHT)
    assert the(silent, "host1", "data-in-lossy-queue").status is Status.UNKNOWN


def test_controller_made_by_hand_through_another_nic_is_named() -> None:
    change = on_host("host2", lambda found: with_path(found, host_traddr=UNKNOWN))
    assert change(RIGHT).failed() == {("host2", "nvme-connection-wrong-source")}
