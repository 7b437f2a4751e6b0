"""From a raw inventory to a `Fabric`: reads the doors, connects the cables, checks, and fills in what follows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fabric.intent import checks
from fabric.intent.access import DeviceAccess
from fabric.intent.cabling import ROLE_OF_PEER, Cable, Cabling, Ends, connect
from fabric.intent.devices import HOSTS, SWITCHES, TARGETS, Device, read_devices, read_fabric
from fabric.intent.doors import AccessDoor, ConnectPolicyDoor, HostDoor, NicsDoor, PortsDoor, SubsystemDoor, SwitchDoor
from fabric.intent.flaws import Flaw, Spot, shown
from fabric.intent.model import (
    ConnectPolicy,
    Endpoint,
    Fabric,
    Host,
    HostNic,
    Link,
    Namespace,
    NvmePort,
    NvmeTarget,
    PortRole,
    RocePolicy,
    Subsystem,
    Switch,
    SwitchPort,
    SwitchRole,
)
from fabric.intent.policy import make_policy
from fabric.intent.ports import NicDraft, PortDraft, draft_nics, draft_ports, named
from fabric.intent.reading import Reading
from fabric.qos.headroom_terms import misspelt_asic
from fabric.registry import nearest
from fabric.remote.ansible import RawInventory
from fabric.units import natural_key

__all__ = ("Built", "build")

HOST_MTU: Final = 9000  # IP MTU of a NIC when nobody said: fits the 9216 of the switches with every tag


@dataclass(frozen=True, slots=True)
class Built:
    """The outcome; `fabric` means nothing while there are flaws."""

    fabric: Fabric
    access: Mapping[str, DeviceAccess]
    flaws: tuple[Flaw, ...]


def build(inventory: RawInventory, known_nos: Iterable[str] = ()) -> Built:
    """Returns the fabric of an inventory with everything that is wrong with it.

    Args:
        inventory: what Ansible read.
        known_nos: the network OSes that there are; () takes any.
    """
    devices, flaws = read_devices(inventory)
    wide, owner, wide_flaws = read_fabric(inventory, list(devices))
    builder = _Builder(devices, frozenset(known_nos), are_links_known="links" not in wide.failed)
    flaws += wide_flaws
    fabric = builder.fabric(wide.door.name, connect(wide.door.links, builder.ends(), owner))
    access = {name: _access(name, device.access.door) for name, device in devices.items()}
    return Built(fabric, access, (*flaws, *builder.flaws))


class _Builder:
    """Holds the drafts of all devices, and the flaws found on the way."""

    def __init__(self, devices: Mapping[str, Device], known_nos: frozenset[str], *, are_links_known: bool) -> None:
        self.flaws: list[Flaw] = []
        self._devices = devices
        self._known_nos = known_nos
        self._are_links_known = are_links_known
        self._made: dict[int, tuple[RocePolicy, tuple[Flaw, ...]]] = {}
        self._drafted: dict[int, tuple[dict[str, PortDraft], tuple[Flaw, ...]]] = {}
        self._policies = {name: self._policy(device) for name, device in devices.items()}
        self._ports = {
            name: self._draft_ports(name, device.switch)
            for name, device in self._of(SWITCHES)
            if device.switch is not None
        }
        self._nics = {name: self._draft_nics(device) for name, device in (*self._of(HOSTS), *self._of(TARGETS))}
        self._peers: dict[Endpoint, tuple[Endpoint, Cable]] = {}
        self._named: frozenset[Endpoint] = frozenset()
        self._without_role: dict[tuple[str, int], list[str]] = {}

    def _of(self, kind: str) -> list[tuple[str, Device]]:
        found = ((name, device) for name, device in self._devices.items() if device.kind == kind)
        return sorted(found, key=lambda item: natural_key(item[0]))

    def _policy(self, device: Device) -> RocePolicy:
        # devices with the same variables share one reading, which the device keeps alive: its id names it
        key = id(device.policy)
        policy, flaws = self._made.setdefault(key, self._made.get(key) or make_policy(device.policy))
        self.flaws += (flaw.on(device.name) for flaw in flaws)
        return policy

    def _draft_ports(self, device: str, reading: Reading[SwitchDoor]) -> Mapping[str, PortDraft]:
        key = id(reading)
        ports, flaws = self._drafted.setdefault(key, self._drafted.get(key) or draft_ports(reading.door))
        self.flaws += (flaw.on(device) for flaw in flaws)
        return ports

    def _draft_nics(self, device: Device) -> Mapping[str, NicDraft]:
        reading = device.host or device.target
        nics, flaws = draft_nics(reading.door.nics if reading is not None else ())
        self.flaws += (flaw.on(device.name) for flaw in flaws)
        return nics

    def ends(self) -> Ends:
        """Returns what cables can be connected to."""
        ports: dict[str, dict[str, PortsDoor | NicsDoor]] = {}
        for name, device in self._devices.items():
            if not device.failed & {"ports", "nics"}:
                drafts = self._ports.get(name) or self._nics.get(name) or {}
                ports[name] = {port: draft.profile for port, draft in drafts.items()}
        return Ends({name: device.kind for name, device in self._devices.items()}, ports)

    def fabric(self, name: str, cabling: Cabling) -> Fabric:
        """Returns the fabric with these cables."""
        self.flaws += cabling.flaws
        self._named = cabling.named
        for cable in cabling.cables:
            self._peers[cable.a] = (cable.b, cable)
            self._peers[cable.b] = (cable.a, cable)
        self._check_storage()
        switches = tuple(self._switch(device) for _, device in self._of(SWITCHES))
        self.flaws += self._role_flaws()
        hosts = tuple(self._host(device) for _, device in self._of(HOSTS))
        targets = tuple(self._target(device) for _, device in self._of(TARGETS))
        return Fabric(
            name=name,
            switches=switches,
            hosts=hosts,
            targets=targets,
            links=self._links(cabling.cables, switches, (*hosts, *targets)),
        )

    def _check_storage(self) -> None:
        targets = {name: device.target.door for name, device in self._of(TARGETS) if device.target is not None}
        for name, door in targets.items():
            self.flaws += checks.target_flaws(name, door, self._nics[name])
        self.flaws += checks.unique_nqn_flaws(targets)
        self.flaws += checks.address_flaws(self._nics)
        if any("subsystems" in self._devices[name].failed for name in targets):
            return  # a subsystem that could not be read may be the one that a host wants
        known = frozenset(subsystem.nqn for door in targets.values() for subsystem in door.subsystems)
        for name, device in self._of(HOSTS):
            if device.host is not None:
                self.flaws += checks.connect_flaws(name, device.host.door.connect, known)

    def _switch(self, device: Device) -> Switch:
        door = device.switch.door if device.switch is not None else SwitchDoor()
        self._check_identity(device, door)
        self._check_asic(device, door.asic)
        policy = self._policies[device.name]
        ports = (self._port(device.name, draft, policy, door) for draft in self._ports[device.name].values())
        return Switch(
            name=device.name,
            nos=door.nos or "",
            role=SwitchRole(door.role or SwitchRole.LEAF),
            ports=tuple(sorted(ports, key=lambda port: natural_key(port.name))),
            policy=policy,
            version=door.version or "",
            asic=door.asic or "",
            hwsku=door.hwsku or "",
            adopt=door.adopt,
            features=door.features,
        )

    def _check_identity(self, device: Device, door: SwitchDoor) -> None:
        for field, value in (("nos", door.nos), ("role", door.role), ("ports", door.ports)):
            if not value and field not in device.failed:
                spot = Spot(device.name, f"fabric_{field}")
                self.flaws.append(Flaw(f"a switch needs fabric_{field}, and it is not set", spot))
        if door.nos is not None and self._known_nos and door.nos not in self._known_nos:
            close = nearest(door.nos, self._known_nos)
            self.flaws.append(
                Flaw(
                    "no network OS of this name is known",
                    Spot(device.name, "fabric_nos"),
                    shown(door.nos),
                    ", ".join(sorted(self._known_nos)),
                    f"Did you mean {close}?" if close else "",
                )
            )

    def _check_asic(self, device: Device, asic: str | None) -> None:
        close = misspelt_asic(asic or "")
        if close:
            spot = Spot(device.name, "fabric_asic")
            what = "no line of ASICs has this name: every number that hangs on it would be unknown"
            self.flaws.append(Flaw(what, spot, shown(asic), remedy=f"Did you mean {close}?"))

    def _port(self, device: str, draft: PortDraft, policy: RocePolicy, door: SwitchDoor) -> SwitchPort:
        profile = draft.profile
        peer, cable = self._peers.get(Endpoint(device, draft.name), (None, None))
        link = cable.door if cable is not None else None
        return SwitchPort(
            name=draft.name,
            role=self._role(device, draft, peer),
            speed_mbps=profile.speed,
            mtu_bytes=(link.mtu if link else None) or profile.mtu or policy.mtu_bytes,
            cable_m=(link.cable if link else None) or profile.cable,
            fec=(link.fec if link else None) or profile.fec,
            lanes=profile.lanes,
            breakout_of=draft.breakout_of,
            lag=draft.lag,
            mlag=draft.mlag,
            vlan=profile.vlan,
            routed=profile.vlan is None if profile.routed is None else profile.routed,
            peer=peer,
            keep=door.keep if profile.keep is None else profile.keep,
        )

    def _role(self, device: str, draft: PortDraft, peer: Endpoint | None) -> PortRole:
        if draft.profile.role is not None:
            return PortRole(draft.profile.role)
        if peer is not None:
            return ROLE_OF_PEER[self._devices[peer.device].kind]
        if self._are_links_known and Endpoint(device, draft.name) not in self._named:
            self._without_role.setdefault((device, draft.index), []).append(draft.name)
        return PortRole.FABRIC

    def _role_flaws(self) -> Iterator[Flaw]:
        for (device, index), names in self._without_role.items():
            yield Flaw(
                "a port without a cable needs a role",
                Spot(device, "fabric_ports", (index,)),
                named(names),
                "role: host, target, fabric or peer-link",
            )

    def _host_nics(self, name: str, host_mtu: int | None) -> tuple[HostNic, ...]:
        return tuple(
            HostNic(
                netdev=draft.netdev,
                family=draft.profile.family,
                speed_mbps=draft.profile.speed,
                mtu_bytes=draft.profile.mtu or host_mtu or HOST_MTU,
                addresses=draft.addresses,
                vlan=draft.profile.vlan,
                peer=self._peers.get(Endpoint(name, draft.netdev), (None, None))[0],
            )
            for draft in sorted(self._nics[name].values(), key=lambda draft: natural_key(draft.netdev))
        )

    def _host(self, device: Device) -> Host:
        door = device.host.door if device.host is not None else HostDoor()
        return Host(
            name=device.name,
            nics=self._host_nics(device.name, door.host_mtu),
            policy=self._policies[device.name],
            connect=door.connect,
            connect_policy=_connect_policy(door.connect_policy),
            managed=door.managed,
            shard_profile=door.shard_profile,
        )

    def _target(self, device: Device) -> NvmeTarget:
        door = device.target.door if device.target is not None else None
        return NvmeTarget(
            name=device.name,
            nics=self._host_nics(device.name, door.host_mtu if door else None),
            subsystems=tuple(_subsystem(one) for one in door.subsystems) if door else (),
            ports=tuple(NvmePort(one.traddr, one.trsvcid) for one in door.nvme_ports) if door else (),
            managed=door.managed if door else True,
            policy=self._policies[device.name],
        )

    def _links(
        self, cables: list[Cable], switches: tuple[Switch, ...], hosts: tuple[Host | NvmeTarget, ...]
    ) -> tuple[Link, ...]:
        ports = {Endpoint(switch.name, port.name): port for switch in switches for port in switch.ports}
        nics = {Endpoint(host.name, nic.netdev): nic for host in hosts for nic in host.nics}
        links = []
        for cable in cables:
            ends = [ports[end] for end in (cable.a, cable.b) if end in ports]
            # a host on a target, without a switch: its MTU is that of the NICs
            direct = [nics[end] for end in (cable.a, cable.b) if end in nics] if not ends else []
            if ends or direct:
                links.append(
                    Link(
                        a=cable.a,
                        b=cable.b,
                        speed_mbps=(ends or direct)[0].speed_mbps,
                        cable_m=next((end.cable_m for end in ends if end.cable_m is not None), cable.door.cable),
                        fec=next((end.fec for end in ends if end.fec is not None), cable.door.fec),
                        mtu_bytes=min(end.mtu_bytes for end in ends or direct),
                    )
                )
        return tuple(sorted(links, key=lambda link: (natural_key(str(link.a)), natural_key(str(link.b)))))


def _connect_policy(door: ConnectPolicyDoor) -> ConnectPolicy:
    said = {
        "nr_io_queues": door.io_queues,
        "queue_size": door.queue_size,
        "keep_alive_s": door.keep_alive,
        "reconnect_delay_s": door.reconnect_delay,
        "ctrl_loss_tmo_s": door.ctrl_loss_tmo,
        "fast_io_fail_tmo_s": door.fast_io_fail_tmo,
        "iopolicy": door.iopolicy,
    }
    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    return ConnectPolicy(**given)


def _subsystem(door: SubsystemDoor) -> Subsystem:
    namespaces = [
        Namespace(nsid, device)
        for one in door.namespaces
        for nsid, device in zip(one.nsid, one.device or ("",) * len(one.nsid), strict=False)  # lengths: `checks`
    ]
    return Subsystem(
        nqn=door.nqn,
        namespaces=tuple(sorted(namespaces, key=lambda namespace: namespace.nsid)),
        allowed_hosts=door.allowed_hosts,
    )


def _access(name: str, door: AccessDoor) -> DeviceAccess:
    return DeviceAccess(
        device=name,
        host=door.host or name,
        port=door.port,
        username=door.username or "",
        password=door.password,
        private_key=Path(door.private_key).expanduser() if door.private_key else None,
        become=door.become,
        enable_secret=door.enable_secret,
        known_hosts=Path(door.known_hosts).expanduser() if door.known_hosts else None,
    )
