"""A right fabric, to be spoiled by one change at a time: plan, running configurations, reports and counters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fabric.host.change import HostIntent
from fabric.host.intents import host_intent
from fabric.host.judge import host_findings
from fabric.host.nvme.connect import Connection
from fabric.host.observe import HostReading
from fabric.host.report import Definition, HostReport
from fabric.host.settings import NicFacts
from fabric.intent.model import (
    Endpoint,
    Fabric,
    Host,
    HostNic,
    Link,
    Namespace,
    NvmePort,
    NvmeTarget,
    PortRole,
    Subsystem,
    Switch,
    SwitchPort,
    SwitchRole,
)
from fabric.plan import FabricPlan, make_plan
from fabric.plan.model import HostNicPlan
from fabric.qos import DeviceQos, PortQos
from fabric.state import Finding, PortCounters, QueueCounters, Status, WatchdogCounters
from fabric.state.host import (
    GidEntry,
    HostState,
    NicState,
    NvmePath,
    NvmeSubsystem,
    RdmaCounters,
    RdmaPort,
)
from fabric.workflow.evidence import SwitchCounters, port_evidence, switch_counter_findings
from fabric.workflow.subjects import capabilities_of, findings_on, running_subjects

LEAF, KV1 = "leaf1", "nqn.2026-01.net.example:kv1"
UUID = "6f6e0c5e-7c63-4c8e-9d3f-2b1f4f0f8a11"
UNIT = "/etc/systemd/system/fabric-nvme-1.service"
MACHINES = (("host1", "mlx5", 21), ("host2", "rxe", 22), ("target1", "rxe", 11))
RECEIVED = 1000


def _nic(family: str, number: int, port: str) -> HostNic:
    peer = Endpoint(LEAF, port)
    return HostNic("data0", family, 100_000, 4200, (f"192.0.2.{number}/24",), peer=peer)


def fabric() -> Fabric:
    """Returns leaf1 with host1 (mlx5), host2 and target1 (Soft-RoCE), which publishes one subsystem."""
    ports = {name: f"Ethernet{4 * at}" for at, (name, _, _) in enumerate(MACHINES)}
    nics = {name: _nic(family, number, ports[name]) for name, family, number in MACHINES}
    roles = {name: PortRole.TARGET if name.startswith("target") else PortRole.HOST for name in nics}
    switch = Switch(
        LEAF,
        "sonic",
        SwitchRole.LEAF,
        tuple(
            SwitchPort(
                port,
                roles[name],
                100_000,
                9100,
                cable_m=5,
                fec="rs",
                lanes=4,
                routed=False,
                peer=Endpoint(name, "data0"),
            )
            for name, port in ports.items()
        ),
        asic="spectrum3",
        hwsku="ACS-MSN4600C",
    )
    links = tuple(
        Link(Endpoint(LEAF, port), Endpoint(name, "data0"), 100_000, 5, "rs", 9100) for name, port in ports.items()
    )
    hosts = tuple(Host(name, (nics[name],), connect=(KV1,)) for name in ("host1", "host2"))
    subsystem = Subsystem(KV1, (Namespace(1, "/dev/ram0"),), (f"nqn.2014-08.org.nvmexpress:uuid:{UUID}",))
    target = NvmeTarget("target1", (nics["target1"],), (subsystem,), (NvmePort("192.0.2.11"),))
    return Fabric("lab", (switch,), hosts, (target,), links)


def nic_state(plan: HostNicPlan) -> NicState:
    """Returns a NIC that shows everything, as planned."""
    return NicState(
        plan.netdev,
        mtu_bytes=plan.mtu_bytes,
        link_up=True,
        addresses=plan.addresses,
        rdma_mtu_bytes=plan.rdma_mtu_bytes,
        dcbx_owner="os",
        trust="dscp",
        dscp_to_priority=plan.dscp_to_priority,
        pfc_priorities=plan.pfc_priorities,
        prio_tc=plan.prio_tc,
        tsa=tuple("strict" if tc == plan.prio_tc[plan.cnp_priority] else "ets" for tc in range(8)),
        ets_percent=plan.ets_percent,
        global_pause_rx=False,
        global_pause_tx=False,
        firmware_lldp=False,
        rdma_device="rdma0",
        default_tos=plan.tos,
        default_mode="RoCE v2",
        traffic_class=plan.tos,
        np_priorities=plan.pfc_priorities if plan.np_enabled else (),
        rp_priorities=plan.pfc_priorities if plan.rp_enabled else (),
        cnp_dscp=plan.cnp_dscp,
        cnp_priority=plan.cnp_priority,
        dcqcn=tuple((one.name, one.value) for one in plan.dcqcn),
    )


def path(one: Connection) -> NvmePath:
    """Returns the controller of a connection, as planned."""
    return NvmePath(
        "nvme0",
        transport="rdma",
        traddr=one.traddr,
        trsvcid=one.trsvcid,
        host_traddr=one.host_traddr,
        state="live",
        ctrl_loss_tmo_s=one.policy.ctrl_loss_tmo_s,
        reconnect_delay_s=one.policy.reconnect_delay_s,
        fast_io_fail_tmo_s=one.policy.fast_io_fail_tmo_s,
    )


def report(intent: HostIntent) -> HostReport:
    """Returns what a host shows that is as it shall be, and whose switch counted all it received as data."""
    (plan,) = intent.plan.nics
    address = plan.addresses[0].partition("/")[0]
    gid = "0000:0000:0000:0000:0000:ffff:c000:02{:02x}".format(int(address.rpartition(".")[2]))
    state = HostState(
        intent.host,
        nics=(nic_state(plan),),
        rdma_ports=(RdmaPort("rdma0", 1, state="ACTIVE", active_mtu_bytes=4096, max_mtu_bytes=4096),),
        gids=(GidEntry("rdma0", 1, 1, gid, "v2", plan.netdev, address),),
        neighbours=(),
        subsystems=tuple(NvmeSubsystem(one.nqn, paths=(path(one),)) for one in intent.connections),
        target=intent.target if intent.target is not None else HostState("").target,
        hostnqn=f"nqn.2014-08.org.nvmexpress:uuid:{UUID}",
        hostid=UUID,
    )
    reading = HostReading(state, (NicFacts(plan.netdev, "rdma0", pci="0000:3b:00.0"),))
    definitions = tuple(Definition(one.nqn, one.traddr, one.host_traddr, one.tos, UNIT) for one in intent.connections)
    return HostReport(intent.host, reading, definitions, (RdmaCounters("rdma0", 1, (("rcvd_pkts", RECEIVED),)),))


def counters(port: str, *, data: int = RECEIVED, other: int = 50) -> PortCounters:
    """Returns a port of SONiC that sent `data` packets on queue 3 and lost, paused and marked none."""
    queues = tuple(QueueCounters(f"UC{index}", {0: other, 3: data}.get(index, 0), 0, 0, 0, 0, 0) for index in range(8))
    zeros = (0,) * 8
    return PortCounters(port, zeros, zeros, 0, 0, zeros, queues, (WatchdogCounters(3, "operational", 0, 0),))


@dataclass(frozen=True)
class Site:
    """All that is judged together."""

    fabric: Fabric
    plan: FabricPlan
    intents: Mapping[str, HostIntent]
    running: Mapping[str, DeviceQos]
    reports: Mapping[str, HostReport]
    read: SwitchCounters = field(default_factory=SwitchCounters)

    def findings(self) -> tuple[Finding, ...]:
        """Returns what `check --live` would say: on switches, their counters, and each host."""
        found = list(findings_on(self.fabric, running_subjects(self.fabric, self.plan, self.running)))
        found += switch_counter_findings(self.fabric, self.plan, self.running, self.read)
        peers = port_evidence(self.fabric, self.plan, self.running, self.read)
        for host, intent in self.intents.items():
            found += host_findings(intent, self.reports[host], peers.get(host, {}), peer_reports=self.reports)
        return tuple(found)

    def failed(self) -> set[tuple[str, str]]:
        """Returns (device, rule) of what failed."""
        return {(one.where.device, one.rule) for one in self.findings() if one.status is Status.FAIL}

    def with_ports(self, change: Callable[[PortQos], PortQos]) -> "Site":
        """Returns the site with the running configuration of every port of the leaf changed."""
        qos = self.running[LEAF]
        return replace(self, running={LEAF: replace(qos, ports=tuple(change(port) for port in qos.ports))})

    def with_report(self, host: str, change: Callable[[HostReport], HostReport]) -> "Site":
        """Returns the site with one host's report changed."""
        return replace(self, reports={**self.reports, host: change(self.reports[host])})

    def with_counters(self, change: Callable[[PortCounters], PortCounters]) -> "Site":
        """Returns the site with the counters of every port of the leaf changed."""
        return replace(self, read=SwitchCounters({LEAF: tuple(change(one) for one in self.read.by_device[LEAF])}))


def site() -> Site:
    """Returns the right fabric."""
    intent = fabric()
    plan = make_plan(intent, capabilities_of)
    intents = {one.host: host_intent(intent, one) for one in plan.hosts}
    running = {one.device: one.qos for one in plan.switches}
    read = SwitchCounters({LEAF: tuple(counters(port.name) for port in intent.switches[0].ports)})
    return Site(intent, plan, intents, running, {host: report(one) for host, one in intents.items()}, read)


def with_nic(found: HostReport, **more: object) -> HostReport:
    """Returns the report with the state of its only NIC changed."""
    state = found.reading.state
    nic = replace(state.nics[0], **more)  # type: ignore[arg-type]  # fields of NicState
    return with_state(found, nics=(nic,))


def with_state(found: HostReport, **more: object) -> HostReport:
    """Returns the report with the host's state changed."""
    state = replace(found.reading.state, **more)  # type: ignore[arg-type]  # fields of HostState
    return replace(found, reading=replace(found.reading, state=state))


def with_path(found: HostReport, **more: object) -> HostReport:
    """Returns the report with its only controller changed."""
    subsystems = found.reading.state.subsystems
    assert isinstance(subsystems, tuple)
    (one,) = subsystems
    assert isinstance(one.paths, tuple)
    changed = replace(one.paths[0], **more)  # type: ignore[arg-type]  # fields of NvmePath
    return with_state(found, subsystems=(replace(one, paths=(changed,)),))
