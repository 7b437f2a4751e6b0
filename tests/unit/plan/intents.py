"""Small intents for the planner's tests: one leaf, one spine, one host, changed where a test wants it."""

from dataclasses import replace
from typing import Any

from fabric.intent.model import (
    Endpoint,
    Fabric,
    Host,
    HostNic,
    NvmeTarget,
    PortRole,
    RocePolicy,
    Switch,
    SwitchPort,
    SwitchRole,
)
from fabric.plan import FabricPlan, Note, SwitchPlan, make_plan
from fabric.qos import Capabilities
from tests.strategies.capabilities import capabilities_of

UPLINK = Endpoint("leaf1", "Ethernet4")
DOWNLINK = Endpoint("spine1", "Ethernet1")
EDGE = Endpoint("leaf1", "Ethernet0")
NIC = Endpoint("gpu1", "ens1f0np0")


def port(name: str = "Ethernet0", **more: Any) -> SwitchPort:
    defaults: dict[str, Any] = {"role": PortRole.HOST, "speed_mbps": 100_000, "mtu_bytes": 9216, "cable_m": 5}
    return SwitchPort(name, **{**defaults, **more})


def switch(name: str = "leaf1", *ports: SwitchPort, **more: Any) -> Switch:
    """Returns a SONiC switch on Spectrum-3 unless told otherwise."""
    defaults: dict[str, Any] = {"nos": "sonic", "role": SwitchRole.LEAF, "asic": "spectrum3", "hwsku": "ACS-MSN4700"}
    return Switch(name, ports=ports or (port(),), **{**defaults, **more})


def eos(name: str = "leaf1", *ports: SwitchPort, **more: Any) -> Switch:
    """Returns an EOS switch on Tomahawk 4 unless told otherwise."""
    return switch(name, *ports, **{"nos": "eos", "asic": "tomahawk4", "hwsku": "", **more})


def nic(**more: Any) -> HostNic:
    defaults: dict[str, Any] = {"family": "mlx5", "speed_mbps": 100_000, "mtu_bytes": 9000, "peer": EDGE}
    return HostNic(NIC.port, **{**defaults, **more})


def fabric_of(*switches: Switch, hosts: tuple[Host, ...] = (), targets: tuple[NvmeTarget, ...] = ()) -> Fabric:
    return Fabric("test", switches, hosts, targets)


def two_hops(
    *, leaf: RocePolicy | None = None, spine: RocePolicy | None = None, host: RocePolicy | None = None
) -> Fabric:
    """Returns host, SONiC leaf, EOS spine, cabled in a line."""
    fabric_port = {"role": PortRole.FABRIC, "speed_mbps": 400_000, "cable_m": 40}
    return fabric_of(
        switch(
            "leaf1",
            port("Ethernet0", peer=NIC),
            port("Ethernet4", peer=DOWNLINK, **fabric_port),
            policy=leaf or RocePolicy(),
        ),
        eos(
            "spine1", port("Ethernet1", peer=UPLINK, **fabric_port), role=SwitchRole.SPINE, policy=spine or RocePolicy()
        ),
        hosts=(Host("gpu1", (nic(),), policy=host or RocePolicy()),),
    )


def plan(fabric: Fabric, **facts: Any) -> FabricPlan:
    """Returns the plan, with some capabilities of every switch replaced."""

    def capabilities(one: Switch) -> Capabilities:
        return replace(capabilities_of(one), **facts)

    return make_plan(fabric, capabilities)


def plan_one(one: Switch, **facts: Any) -> SwitchPlan:
    """Returns the plan of a fabric with that one switch."""
    return plan(fabric_of(one), **facts).switches[0]


def notes(plan: SwitchPlan, code: str) -> tuple[Note, ...]:
    return tuple(note for note in plan.notes if note.code == code)
