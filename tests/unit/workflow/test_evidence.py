"""What switches counted, beside the NICs at the other end of each cable: errors kept, nothing made up."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fabric.clock import FakeClock
from fabric.errors import ConnectError
from fabric.host.judge import PortEvidence
from fabric.intent import Loaded
from fabric.nos import catalog
from fabric.qos import UNKNOWN, Known, PortQos, Trust
from fabric.state import PortCounters, QueueCounters, Severity, Status
from fabric.workflow.environment import Environment
from fabric.workflow.evidence import SwitchCounters, port_evidence, read_counters, switch_counter_findings
from fabric.workflow.stopwatch import Stopwatch
from tests.unit.host.right import LEAF, RECEIVED, Site, site

RIGHT = site()
REFUSED = SwitchCounters(errors={LEAF: ConnectError("connection refused", remedy="look")})


def evidence(found: Site) -> dict[str, dict[str, PortEvidence]]:
    return port_evidence(found.fabric, found.plan, found.running, found.read)


def test_port_at_the_other_end_of_each_cable() -> None:
    found = evidence(RIGHT)
    assert {host: {netdev: one.port for netdev, one in nics.items()} for host, nics in found.items()} == {
        "host1": {"data0": "Ethernet0"},
        "host2": {"data0": "Ethernet4"},
        "target1": {"data0": "Ethernet8"},
    }
    one = found["host2"]["data0"]
    assert (one.switch, one.data_packets, one.other_packets, one.data_queue) == (LEAF, RECEIVED, 50, 3)
    assert (one.classifies, one.reason) == (True, "")


def test_queues_that_are_not_counted() -> None:
    def multicast(one: PortCounters) -> PortCounters:
        return replace(one, queues=(*one.queues, QueueCounters("MC8")))

    (one,) = evidence(RIGHT.with_counters(multicast))["host2"].values()
    assert (one.data_packets, one.other_packets) == (RECEIVED, 50)  # at least

    def drops_only(one: PortCounters) -> PortCounters:
        return replace(one, queues=tuple(QueueCounters(q.queue, dropped_packets=0) for q in one.queues))

    (one,) = evidence(RIGHT.with_counters(drops_only))["host2"].values()
    assert (one.data_packets, one.other_packets) == (UNKNOWN, UNKNOWN)
    assert one.reason == "leaf1 does not show packets by queue"


def test_classification_is_that_of_the_running_configuration() -> None:
    def classifies(change: Callable[[PortQos], PortQos]) -> Known[bool]:
        return evidence(RIGHT.with_ports(change))["host1"]["data0"].classifies

    def without(port: PortQos) -> PortQos:
        assert isinstance(port.dscp_to_tc, tuple)
        changed = tuple(0 if dscp == 26 else tc for dscp, tc in enumerate(port.dscp_to_tc))
        return replace(port, dscp_to_tc=changed) if port.name == "Ethernet8" else port

    assert classifies(without) is False
    assert classifies(lambda port: replace(port, trust=Trust.PCP)) is False
    assert classifies(lambda port: replace(port, dscp_to_tc=UNKNOWN)) is UNKNOWN
    unread = replace(RIGHT, running={})
    assert evidence(unread)["host1"]["data0"].classifies is UNKNOWN


def test_switch_that_could_not_be_asked() -> None:
    found = port_evidence(RIGHT.fabric, RIGHT.plan, RIGHT.running, REFUSED)["host1"]["data0"]
    assert (found.data_packets, found.reason) == (UNKNOWN, "leaf1 could not be asked: connection refused")
    silent = port_evidence(RIGHT.fabric, RIGHT.plan, RIGHT.running, SwitchCounters({LEAF: ()}))["host1"]["data0"]
    assert silent.reason == "leaf1:Ethernet0 is not counted"
    (unknown,) = switch_counter_findings(RIGHT.fabric, RIGHT.plan, RIGHT.running, REFUSED)
    assert (unknown.rule, unknown.status, unknown.severity) == (
        "switch-counters-read",
        Status.UNKNOWN,
        Severity.WARNING,
    )
    assert (unknown.where.device, unknown.remedy) == (LEAF, "look")


def test_nics_of_switches_outside_the_plan_are_absent() -> None:
    nobody = RIGHT.plan.only(())
    assert port_evidence(RIGHT.fabric, nobody, {}, SwitchCounters()) == {}


def test_switch_without_a_way_to_it_is_an_error_kept(tmp_path: Path) -> None:
    environment = Environment(clock=FakeClock(), state_dir=tmp_path)
    loaded = Loaded(RIGHT.fabric, {}, (LEAF,))
    read = read_counters(loaded, RIGHT.plan, environment, Stopwatch(environment.clock))
    assert (dict(read.by_device), list(read.errors)) == ({}, [LEAF])


def test_sonic_output_becomes_evidence(reference: Path) -> None:
    show = reference / "samples" / "sonic" / "show" / "queue_counters_port.txt"
    counted = catalog.get("sonic").counters({"queue": show.read_text(encoding="utf-8")})
    assert {one.port for one in counted} >= {"Ethernet8"}
    read = SwitchCounters({LEAF: counted})
    (one,) = port_evidence(RIGHT.fabric, RIGHT.plan, RIGHT.running, read)["target1"].values()
    by_name = {queue.queue: queue.packets for port in counted if port.port == "Ethernet8" for queue in port.queues}
    assert one.data_packets == by_name["UC3"]
