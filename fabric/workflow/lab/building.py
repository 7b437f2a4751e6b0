"""From an inventory to a lab: a switch for each switch, a machine for each host and managed target, a wire each cable.

Switches come as out of the box, with ports and settings of their own that a run must leave alone. Starts nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.errors import FabricError, HostError, IntentError, Problem
from fabric.intent import Fabric, HostNic, NvmeTarget, Switch
from fabric.lab import DeviceSpec
from fabric.lab.site import Cable, End, LabMachine, LabPort, LabSpec, LabSwitch, mac_of
from fabric.lab.stock import StockPort, eos_config, sonic_config
from fabric.lab.vm import MachineSpec, Nic
from fabric.plan import make_plan
from fabric.plan.model import FabricPlan, HostNicPlan
from fabric.workflow.lab.board import board_of
from fabric.workflow.lab.variables import LabVariables, disks_of
from fabric.workflow.subjects import capabilities_of

__all__ = ("RATE_BPS", "SEED", "lab_spec", "stock_front")

RATE_BPS: Final = 100_000_000  # measured: an emulated target sends some 17 MB/s, so two of them congest 12.5 MB/s
SEED: Final = 1
_LARGEST_MTU: Final = 4200  # Soft-RoCE's largest path MTU, 4096, fits; the inventory says what is set
_UNWATCHED: Final = "leaf2"  # comes without PFC watchdog, which SONiC takes only by load and reload
_CLASS_SELECTOR: Final = tuple(dscp >> 3 for dscp in range(64))  # RFC 2474 section 4.2.2
_NO_VARIABLES: Final = LabVariables()


@dataclass(frozen=True, slots=True)
class _Node:
    """A host or target: what becomes a machine."""

    name: str
    role: str
    nics: tuple[HostNic, ...]
    devices: tuple[str, ...] = ()


def lab_spec(
    fabric: Fabric, variables: Mapping[str, LabVariables], *, seed: int = SEED, rate_bps: int = RATE_BPS
) -> LabSpec:
    """Returns the lab that emulates a fabric.

    Args:
        fabric: the intent.
        variables: the `lab_…` variables by device.
        seed: of MAC addresses and all draws.
        rate_bps: of each link.

    Raises:
        FabricError: the lab has no emulation of a switch's network OS.
        IntentError: a machine, port or disk has a name that no machine of the lab can have.
        PlanError: the intent cannot be met.
    """
    plan = make_plan(fabric, capabilities_of)
    nodes = [*(_Node(one.name, "host", one.nics) for one in fabric.hosts), *_targets(fabric.targets)]
    machines = _machines(nodes, plan, variables, seed)
    switches = tuple(_switch(one, plan, rate_bps) for one in fabric.switches)
    there = {End(one.name, port) for one in switches for port in one.ports}
    there |= {End(one.name, port.name) for one in machines for port in one.ports}
    cables = (Cable(End(one.a.device, one.a.port), End(one.b.device, one.b.port)) for one in fabric.links)
    return LabSpec(
        fabric.name,
        seed,
        rate_bps,
        machines,
        switches,
        tuple(one for one in cables if one.a in there and one.b in there),  # an unmanaged array is not emulated
    )


def _targets(targets: Sequence[NvmeTarget]) -> list[_Node]:
    return [
        _Node(one.name, "target", one.nics, tuple(space.device for sub in one.subsystems for space in sub.namespaces))
        for one in targets
        if one.managed
    ]


def _machines(
    nodes: Sequence[_Node], plan: FabricPlan, variables: Mapping[str, LabVariables], seed: int
) -> tuple[LabMachine, ...]:
    """Returns the machines; what cannot be one is refused now, not after an image was built."""
    made, problems = list[LabMachine](), list[Problem]()
    for node in nodes:
        try:
            made.append(_machine(node, plan, variables.get(node.name, _NO_VARIABLES), seed))
            _checked(made[-1])
        except HostError as error:
            problems.append(Problem(error.what, device=node.name, found=error.found, expected=error.expected))
    if problems:
        raise IntentError(problems)
    return tuple(made)


def _checked(machine: LabMachine) -> MachineSpec:
    nics = tuple(Nic(port.name, port.mac, "", mtu_bytes=port.mtu_bytes) for port in machine.ports)
    return MachineSpec(machine.name, machine.memory_mib, machine.cpus, nics, machine.disks)


def _machine(node: _Node, plan: FabricPlan, variables: LabVariables, seed: int) -> LabMachine:
    planned = {nic.netdev: nic for host in plan.hosts if host.host == node.name for nic in host.nics}
    return LabMachine(
        node.name,
        node.role,
        variables.memory_mib,
        variables.cpus,
        tuple(_port(node.name, nic, planned.get(nic.netdev), seed) for nic in node.nics),
        disks_of(node.devices, variables.disks),
    )


def _port(machine: str, nic: HostNic, plan: HostNicPlan | None, seed: int) -> LabPort:
    priorities = list(_CLASS_SELECTOR)
    for dscp, priority in plan.dscp_to_priority if plan else ():
        priorities[dscp] = priority
    return LabPort(
        nic.netdev,
        mac_of(seed, End(machine, nic.netdev)),
        max(nic.mtu_bytes, _LARGEST_MTU),
        tuple(priorities),
        frozenset(plan.pfc_priorities if plan else ()),
    )


def _switch(switch: Switch, plan: FabricPlan, rate_bps: int) -> LabSwitch:
    cabled = tuple(port.name for port in switch.ports)
    return LabSwitch(stock_front(switch), cabled, board_of(switch, plan.switch(switch.name), rate_bps=rate_bps))


def stock_front(switch: Switch) -> DeviceSpec:
    """Returns a switch as it comes out of the box, with two ports that the intent does not own.

    Raises:
        FabricError: the lab has no emulation of its network OS.
    """
    ports = [*_ports(switch), *_foreign_ports(switch)]
    match switch.nos:
        case "sonic":
            text = sonic_config(
                ports,
                hostname=switch.name,
                hwsku=switch.hwsku,
                dynamic="spectrum" in switch.asic,
                watchdog=switch.name != _UNWATCHED,
            )
            return DeviceSpec(switch.name, "sonic", text, hwsku=switch.hwsku)
        case "eos":
            text = eos_config(switch.name, switch.hwsku, ports)
            return DeviceSpec(switch.name, "eos", text, version=switch.version, hwsku=switch.hwsku)
        case other:
            raise FabricError(f"the lab cannot emulate {other}", where=switch.name, expected="sonic, eos")


def _ports(switch: Switch) -> Sequence[StockPort]:
    return [StockPort(port.name, port.speed_mbps, lanes=port.lanes or 4) for port in switch.ports]


def _foreign_ports(switch: Switch) -> Sequence[StockPort]:
    """Returns ports that the intent does not own: they must come out as they went in."""
    names = ("Ethernet400", "Ethernet408") if switch.nos == "sonic" else ("Ethernet49/1", "Ethernet50/1")
    return [StockPort(name, 100_000) for name in names]
