"""Which devices there are, of what kind, and what their variables say: everything that needs one device at a time."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from fabric.intent.doors import SECRETS, AccessDoor, FabricDoor, HostDoor, PolicyDoor, SwitchDoor, TargetDoor
from fabric.intent.fields import DEVICE_NAME
from fabric.intent.flaws import Flaw, Spot, shown
from fabric.intent.reading import DoorReader, Reading
from fabric.registry import nearest
from fabric.remote.ansible import CONNECTION_VARIABLES, RawHost, RawInventory

__all__ = ("FABRIC_WIDE", "HOSTS", "SWITCHES", "TARGETS", "Device", "read_devices", "read_fabric")

SWITCHES, HOSTS, TARGETS = "switches", "hosts", "targets"
_KINDS: Final = (SWITCHES, HOSTS, TARGETS)
_PREFIX: Final = "fabric_"


def _variables(door: type[BaseModel]) -> frozenset[str]:
    return frozenset(f"{_PREFIX}{field}" for field in door.model_fields)


_POLICY: Final = _variables(PolicyDoor)
_OF_KIND: Final = {
    SWITCHES: _variables(SwitchDoor),
    HOSTS: _variables(HostDoor),
    TARGETS: _variables(TargetDoor),
}
FABRIC_WIDE: Final = _variables(FabricDoor)
_KNOWN_HOSTS: Final = "fabric_known_hosts"
_KNOWN: Final = _POLICY | FABRIC_WIDE | {_KNOWN_HOSTS} | frozenset().union(*_OF_KIND.values())
# These describe one kind of device; on another they would be ignored, so they are refused there.
_BOUND: Final = frozenset(
    {
        "fabric_ports",
        "fabric_lags",
        "fabric_nics",
        "fabric_connect",
        "fabric_connect_policy",
        "fabric_shard_profile",
        "fabric_subsystems",
        "fabric_nvme_ports",
    }
)


@dataclass(frozen=True, slots=True)
class Device:
    """One device after its own variables were read; `switch`, `host` or `target` is set, by its kind.

    `unrendered`: fields that Ansible could not render.
    """

    name: str
    kind: str
    policy: Reading[PolicyDoor]
    access: Reading[AccessDoor]
    switch: Reading[SwitchDoor] | None = None
    host: Reading[HostDoor] | None = None
    target: Reading[TargetDoor] | None = None
    unrendered: frozenset[str] = frozenset()

    @property
    def failed(self) -> frozenset[str]:
        """Returns the fields of its kind's door that nobody could read, Ansible or the door."""
        reading = self.switch or self.host or self.target
        return self.unrendered | (reading.failed if reading is not None else frozenset())

    @property
    def flaws(self) -> Iterator[Flaw]:
        """Returns the flaws of its variables."""
        for reading in (self.policy, self.access, self.switch, self.host, self.target):
            if reading is not None:
                yield from (flaw.on(self.name) for flaw in reading.flaws)


def read_devices(inventory: RawInventory) -> tuple[dict[str, Device], list[Flaw]]:
    """Returns the devices in the inventory's order, and what is wrong with their variables."""
    flaws: list[Flaw] = []
    kinds = dict(_kinds(inventory.hosts, flaws))
    readers = _Readers(inventory)
    devices = {name: readers.device(name, kind, inventory.hosts[name]) for name, kind in kinds.items()}
    for name, device in devices.items():
        flaws += _strangers(name, device.kind, inventory.hosts[name].variables)
        flaws += device.flaws
    if not devices and not flaws:
        flaws.append(
            Flaw(
                "the inventory has no device",
                expected=f"hosts in the groups {', '.join(_KINDS)}",
                remedy="Put each device into the group of its kind.",
            )
        )
    return devices, flaws


def _kinds(hosts: Mapping[str, RawHost], flaws: list[Flaw]) -> Iterator[tuple[str, str]]:
    groups = {group for host in hosts.values() for group in host.groups}
    for name, host in hosts.items():
        kinds = [kind for kind in _KINDS if kind in host.groups]
        stray = sorted(_BOUND & set(host.variables))
        if kinds and name in groups:
            what = "the device is named like a group: Ansible takes the name for the group, in limits too"
            flaws.append(Flaw(what, Spot(name), remedy="Rename the one or the other."))
        if DEVICE_NAME.fullmatch(name) is None and (kinds or stray):
            what = "the name has characters that a device would take for something else"
            flaws.append(Flaw(what, found=shown(name), expected="letters, digits and ._-, at most 63"))
        elif len(kinds) > 1:
            flaws.append(Flaw("a device is of one kind", Spot(name), ", ".join(kinds), f"one of {', '.join(_KINDS)}"))
        elif kinds:
            yield name, kinds[0]
        elif stray:
            what = f"the device is in none of the groups {', '.join(_KINDS)}"
            close = next((near for group in host.groups if (near := nearest(group, _KINDS))), "")
            remedy = f"Did you mean the group {close}?" if close else ""
            flaws.append(Flaw(what, Spot(name), found=", ".join(host.groups), remedy=remedy))


def _strangers(name: str, kind: str, variables: Iterable[str]) -> Iterator[Flaw]:
    for variable in variables:
        if not variable.startswith(_PREFIX):
            continue
        spot = Spot(name, variable)
        if variable not in _KNOWN:
            close = nearest(variable, _KNOWN)
            yield Flaw("there is no such variable", spot, remedy=f"Did you mean {close}?" if close else "")
        elif variable in _BOUND and variable not in _OF_KIND[kind]:
            owners = [other for other in _KINDS if variable in _OF_KIND[other]]
            yield Flaw(f"the variable belongs to {' and '.join(owners)}", spot, found=f"it on a device of {kind}")


class _Readers:
    """A reader for each door, shared by all devices."""

    def __init__(self, inventory: RawInventory) -> None:
        values = inventory.values
        self._policy = DoorReader(PolicyDoor, values)
        self._switch = DoorReader(SwitchDoor, values)
        self._host = DoorReader(HostDoor, values)
        self._target = DoorReader(TargetDoor, values)
        self._values = values
        self._unrendered = inventory.problems

    def device(self, name: str, kind: str, host: RawHost) -> Device:
        return Device(
            name=name,
            kind=kind,
            policy=self._policy.read(_indices(host, _POLICY)),
            access=self._access(host),
            switch=self._switch.read(_indices(host, _OF_KIND[SWITCHES])) if kind == SWITCHES else None,
            host=self._host.read(_indices(host, _OF_KIND[HOSTS])) if kind == HOSTS else None,
            target=self._target.read(_indices(host, _OF_KIND[TARGETS])) if kind == TARGETS else None,
            unrendered=frozenset(one.variable.removeprefix(_PREFIX) for one in self._unrendered if one.host == name),
        )

    def _access(self, host: RawHost) -> Reading[AccessDoor]:
        names = {
            field: variable
            for field, aliases in CONNECTION_VARIABLES.items()
            for variable in aliases  # the last one set wins, as in Ansible
            if variable in host.variables
        }
        if _KNOWN_HOSTS in host.variables:
            names["known_hosts"] = _KNOWN_HOSTS
        reader = DoorReader(AccessDoor, self._values, names=names, secret=SECRETS)
        return reader.read({field: host.variables[variable] for field, variable in names.items()})


def _indices(host: RawHost, variables: frozenset[str]) -> dict[str, int]:
    return {name.removeprefix(_PREFIX): index for name, index in host.variables.items() if name in variables}


def read_fabric(inventory: RawInventory, devices: Sequence[str]) -> tuple[Reading[FabricDoor], str, list[Flaw]]:
    """Returns what is said of the whole fabric, the device whose variables were taken, and what is wrong there."""
    first: dict[str, tuple[str, int]] = {}
    flaws: list[Flaw] = []
    for name in devices:
        for field, index in _indices(inventory.hosts[name], FABRIC_WIDE).items():
            owner, seen = first.setdefault(field, (name, index))
            if seen != index:
                what = f"the variable is about the whole fabric, and {owner} has another value"
                flaws.append(Flaw(what, Spot(name, f"{_PREFIX}{field}"), remedy="Set it once, in group_vars/all."))
    reading = DoorReader(FabricDoor, inventory.values).read({field: index for field, (_, index) in first.items()})
    lost = frozenset(one.variable.removeprefix(_PREFIX) for one in inventory.problems) & {"links"}
    reading = dataclasses.replace(reading, failed=reading.failed | lost)
    owner = first.get("links", (devices[0] if devices else "", 0))[0]
    return reading, owner, [*flaws, *(flaw.on(first[_field(flaw)][0]) for flaw in reading.flaws)]


def _field(flaw: Flaw) -> str:
    return flaw.spot.variable.removeprefix(_PREFIX)
