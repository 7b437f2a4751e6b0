"""The kernel's NVMe target through configfs: what to write, in which order, what stands there, how it is removed.

The order matters: a namespace is locked once enabled, and linking a subsystem to a port binds the RDMA listener, so
everything else comes before. Source: hosts.md 7.3.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from fabric.errors import PlanError
from fabric.host import names
from fabric.host.actions import Action, Link, MakeFolder, RemoveFolder, RemoveLink, Run, Write
from fabric.host.executor import Executor
from fabric.intent.model import NvmeTarget, Subsystem
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NvmetPort, NvmetState, NvmetSubsystem

__all__ = ("planned_target", "read_target", "read_tree", "removal_actions", "target_actions")

ROOT: Final = "/sys/kernel/config/nvmet"
_MODULES: Final = ("nvmet", "nvmet-rdma")
_MAX_DEPTH: Final = "5"  # ports/1/subsystems/NQN, subsystems/NQN/namespaces/1/enable


def planned_target(target: NvmeTarget) -> NvmetState:
    """Returns what the kernel's target shall hold.

    Raises:
        PlanError: the target is not ours to set up, or a namespace has no block device.
        HostError: a name is none.
    """
    if not target.managed:
        raise PlanError("this target is not managed", where=target.name, remedy="Set fabric_managed to true.")
    subsystems = tuple(_subsystem(target.name, one) for one in target.subsystems)
    nqns = tuple(one.nqn for one in subsystems)
    ports = tuple(
        NvmetPort(number, "rdma", names.ip_address(port.traddr), str(port.trsvcid), nqns)
        for number, port in enumerate(target.ports, start=1)
    )
    return NvmetState(subsystems, ports)


def _subsystem(target: str, one: Subsystem) -> NvmetSubsystem:
    for space in one.namespaces:
        if not space.device:
            raise PlanError("a namespace has no block device", where=target, found=f"{one.nqn} nsid {space.nsid}")
    return NvmetSubsystem(
        names.configfs_nqn(one.nqn),
        any_host=not one.allowed_hosts,
        allowed_hosts=tuple(sorted(names.configfs_nqn(host) for host in one.allowed_hosts)),
        namespaces=tuple((space.nsid, names.block_device(space.device), True) for space in one.namespaces),
    )


def target_actions(wanted: NvmetState, found: NvmetState | None = None) -> tuple[Action, ...]:
    """Returns the actions from `found` to `wanted`, () when they agree.

    What `wanted` does not name is left alone: another user of the target may own it. Its own subsystems and ports
    lose what is no longer wanted in them.
    """
    found = found or NvmetState()
    if _holds(wanted, found):
        return ()
    actions: list[Action] = [Run(("modprobe", "-a", *_MODULES))]
    standing = {one.nqn: one for one in found.subsystems}
    for one in wanted.subsystems:
        actions += _subsystem_actions(one, standing.get(one.nqn, NvmetSubsystem(one.nqn)))
    taken = {port.number: port for port in found.ports}
    for port in wanted.ports:
        actions += _port_actions(port, taken.get(port.number))
    return tuple(actions)


def _holds(wanted: NvmetState, found: NvmetState) -> bool:
    return set(wanted.subsystems) <= set(found.subsystems) and set(wanted.ports) <= set(found.ports)


def _subsystem_actions(wanted: NvmetSubsystem, found: NvmetSubsystem) -> list[Action]:
    base = f"{ROOT}/subsystems/{wanted.nqn}"
    actions: list[Action] = [MakeFolder(base)]
    if wanted.any_host:  # the kernel refuses it while a host is linked
        actions += [RemoveLink(f"{base}/allowed_hosts/{host}") for host in found.allowed_hosts]
        actions.append(Write(f"{base}/attr_allow_any_host", "1"))
    else:
        actions.append(Write(f"{base}/attr_allow_any_host", "0"))
        for host in wanted.allowed_hosts:
            actions.append(MakeFolder(f"{ROOT}/hosts/{host}"))
            actions.append(Link(f"{base}/allowed_hosts/{host}", f"{ROOT}/hosts/{host}"))
        gone = [host for host in found.allowed_hosts if host not in wanted.allowed_hosts]
        actions += [RemoveLink(f"{base}/allowed_hosts/{host}") for host in gone]
    actions += _namespace_actions(base, wanted.namespaces, found.namespaces)
    return actions


def _namespace_actions(
    base: str, wanted: tuple[tuple[int, str, bool], ...], found: tuple[tuple[int, str, bool], ...]
) -> list[Action]:
    standing = {nsid: (device, on) for nsid, device, on in found}
    actions: list[Action] = []
    for nsid, device, _ in wanted:
        folder = f"{base}/namespaces/{nsid}"
        has, on = standing.get(nsid, ("", False))
        if (has, on) == (device, True):
            continue
        actions.append(MakeFolder(folder))
        if on:
            actions.append(Write(f"{folder}/enable", "0"))  # the device is locked while it is enabled
        actions += [Write(f"{folder}/device_path", device), Write(f"{folder}/enable", "1")]
    for nsid in standing.keys() - {nsid for nsid, _, _ in wanted}:
        actions += _without_namespace(base, nsid)
    return actions


def _port_actions(wanted: NvmetPort, found: NvmetPort | None) -> list[Action]:
    base = f"{ROOT}/ports/{wanted.number}"
    actions: list[Action] = []
    same = found is not None and _address(found) == _address(wanted)
    if found is not None and not same:  # an address cannot change while a subsystem is linked
        actions += [RemoveLink(f"{base}/subsystems/{nqn}") for nqn in found.subsystems]
    if not same:
        family = "ipv6" if ":" in wanted.traddr else "ipv4"
        actions.append(MakeFolder(base))
        actions += [
            Write(f"{base}/addr_trtype", wanted.transport),
            Write(f"{base}/addr_adrfam", family),
            Write(f"{base}/addr_traddr", wanted.traddr),
            Write(f"{base}/addr_trsvcid", wanted.trsvcid),
        ]
    elif found is not None:
        gone = [nqn for nqn in found.subsystems if nqn not in wanted.subsystems]
        actions += [RemoveLink(f"{base}/subsystems/{nqn}") for nqn in gone]
    actions += [Link(f"{base}/subsystems/{nqn}", f"{ROOT}/subsystems/{nqn}") for nqn in wanted.subsystems]
    return actions


def _address(port: NvmetPort) -> tuple[str, str, str]:
    return port.transport, port.traddr, port.trsvcid


def removal_actions(state: NvmetState, *, keep_hosts: Iterable[str] = ()) -> tuple[Action, ...]:
    """Returns the removal of exactly this, in the reverse order. keep_hosts: NQNs that other subsystems admit."""
    actions: list[Action] = []
    for port in state.ports:
        base = f"{ROOT}/ports/{port.number}"
        actions += [RemoveLink(f"{base}/subsystems/{nqn}") for nqn in port.subsystems]
        actions.append(RemoveFolder(base))
    for one in state.subsystems:
        base = f"{ROOT}/subsystems/{one.nqn}"
        for nsid, _, _ in one.namespaces:
            actions += _without_namespace(base, nsid)
        actions += [RemoveLink(f"{base}/allowed_hosts/{host}") for host in one.allowed_hosts]
        actions.append(RemoveFolder(base))
    hosts = {host for one in state.subsystems for host in one.allowed_hosts} - set(keep_hosts)
    actions += [RemoveFolder(f"{ROOT}/hosts/{host}") for host in sorted(hosts)]
    return tuple(actions)


def _without_namespace(base: str, nsid: int) -> list[Action]:
    folder = f"{base}/namespaces/{nsid}"
    return [Write(f"{folder}/enable", "0"), RemoveFolder(folder)]


# --- what stands there ----------------------------------------------------------------------------------------------


def read_target(executor: Executor) -> Known[NvmetState]:
    """Returns what the kernel's target holds: nothing when its module is not loaded, UNKNOWN when it cannot be told."""
    paths = executor.run(["find", ROOT, "-maxdepth", _MAX_DEPTH])
    if not paths.ok:
        gone = executor.run(["test", "-e", ROOT])
        return NvmetState() if gone.status == 1 else UNKNOWN
    # attributes that cannot be read make grep end with 2; what it printed counts
    values = executor.run(["grep", "-rs", "", ROOT])
    return read_tree(paths.stdout.splitlines(), dict(_rows(values.stdout)))


def _rows(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        found = re.fullmatch(r"(.*?/(?:attr_allow_any_host|device_path|enable|addr_\w+)):(.*)", line)
        if found:
            yield found[1], found[2]


def read_tree(paths: Iterable[str], values: Mapping[str, str]) -> NvmetState:
    """Returns the state from every path below configfs and the text of its attributes."""
    below: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        below.setdefault(folder, []).append(name)
    children = {folder: tuple(sorted(found)) for folder, found in below.items()}
    subsystems = tuple(
        _read_subsystem(f"{ROOT}/subsystems/{nqn}", nqn, children, values)
        for nqn in children.get(f"{ROOT}/subsystems", ())
    )
    ports = tuple(
        NvmetPort(
            int(number),
            values.get(f"{ROOT}/ports/{number}/addr_trtype", ""),
            values.get(f"{ROOT}/ports/{number}/addr_traddr", ""),
            values.get(f"{ROOT}/ports/{number}/addr_trsvcid", ""),
            children.get(f"{ROOT}/ports/{number}/subsystems", ()),
        )
        for number in sorted(children.get(f"{ROOT}/ports", ()), key=int)
    )
    return NvmetState(subsystems, ports)


def _read_subsystem(
    base: str, nqn: str, children: Mapping[str, tuple[str, ...]], values: Mapping[str, str]
) -> NvmetSubsystem:
    any_host = values.get(f"{base}/attr_allow_any_host")
    return NvmetSubsystem(
        nqn,
        any_host=UNKNOWN if any_host is None else any_host == "1",
        allowed_hosts=children.get(f"{base}/allowed_hosts", ()),
        namespaces=tuple(
            (
                int(nsid),
                values.get(f"{base}/namespaces/{nsid}/device_path", ""),
                values.get(f"{base}/namespaces/{nsid}/enable") == "1",
            )
            for nsid in sorted(children.get(f"{base}/namespaces", ()), key=int)
        ),
    )
