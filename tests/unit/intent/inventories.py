"""Raw inventories as the reader returns them, made by hand: for what needs no Ansible."""

import copy
from collections.abc import Mapping, Sequence

from fabric.intent.build import Built, build
from fabric.intent.flaws import to_problems
from fabric.intent.places import Places
from fabric.remote.ansible import RawHost, RawInventory, RawProblem
from fabric.serial import Json

SWITCH: Mapping[str, Json] = {
    "fabric_nos": "eos",
    "fabric_role": "leaf",
    "fabric_ports": [
        {"ports": "Ethernet1", "speed": "100G", "role": "host"},
        {"ports": "Ethernet2", "speed": "100G", "role": "target"},
        {"ports": "Ethernet[3:4]", "speed": "100G", "role": "fabric"},
    ],
}
HOST: Mapping[str, Json] = {
    "fabric_nics": [{"netdev": "ens1", "family": "mlx5", "speed": "100G", "addresses": ["192.0.2.1/24"]}],
    "fabric_connect": ["nqn.2026-01.net.example:kv"],
}
TARGET: Mapping[str, Json] = {
    "fabric_nics": [{"netdev": "ens1", "family": "mlx5", "speed": "100G", "addresses": ["192.0.2.2/24"]}],
    "fabric_subsystems": [{"nqn": "nqn.2026-01.net.example:kv", "namespaces": [{"nsid": 1, "device": "/dev/nvme0n1"}]}],
    "fabric_nvme_ports": [{"traddr": "192.0.2.2"}],
}
LINKS: Json = [{"a": "leaf1:Ethernet1", "b": "gpu1:ens1"}, {"a": "leaf1:Ethernet2", "b": "kv1:ens1"}]

Devices = dict[str, tuple[str, dict[str, Json]]]


def small() -> Devices:
    """Returns a fabric of one switch, one host and one target: device → its group and variables."""
    return copy.deepcopy(
        {
            "leaf1": ("switches", {**SWITCH, "fabric_links": LINKS}),
            "gpu1": ("hosts", {**HOST, "fabric_links": LINKS}),
            "kv1": ("targets", {**TARGET, "fabric_links": LINKS}),
        }
    )


def cabled(*links: dict[str, Json]) -> list[Json]:
    """Returns the links, and then the one of the target."""
    return [*links, {"a": "leaf1:Ethernet2", "b": "kv1:ens1"}]


def raw(
    devices: Devices, *, hidden: Sequence[tuple[str, str]] = (), problems: tuple[RawProblem, ...] = ()
) -> RawInventory:
    """Returns the raw inventory; equal values share an index, as the reader has it."""
    values: list[Json] = []
    hosts = {}
    for name, (group, variables) in devices.items():
        indices = {}
        for variable, value in variables.items():
            if value not in values:
                values.append(value)
            indices[variable] = values.index(value)
        hosts[name] = RawHost(groups=("all", *group.split()), variables=indices)
    secret = frozenset(hosts[device].variables[variable] for device, variable in hidden)
    return RawInventory(hosts=hosts, values=values, hidden=secret, selected=tuple(hosts), problems=problems)


def built(devices: Devices) -> Built:
    """Returns what becomes of the devices; fails when something is wrong with them."""
    outcome = build(raw(devices))
    assert outcome.flaws == ()
    return outcome


def complaints(inventory: RawInventory, known_nos: Sequence[str] = ()) -> list[str]:
    """Returns the text of every problem, as for a dynamic source: by host and variable."""
    flaws = build(inventory, known_nos).flaws
    return [str(problem) for problem in to_problems(flaws, inventory, Places((), inventory.hosts))]
