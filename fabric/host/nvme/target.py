"""The kernel's NVMe target through configfs: what to write, in which order, what stands there, how it is removed.

The order matters: a namespace is locked once enabled, and linking a subsystem to a port binds the RDMA listener, so
everything else comes before. Source: hosts.md 7.3.

The kernel draws the serial number and the namespaces' UUIDs anew each time they are made. A host that was connected
then drops the disk ("identifiers changed", Linux nvme_validate_ns), so what we make has the same ones on every boot.
"""

import hashlib
import itertools
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from fabric.errors import PlanError
from fabric.host import names
from fabric.host.actions import Action, Link, MakeFolder, RemoveFolder, RemoveLink, Run, Write
from fabric.host.executor import Executor
from fabric.intent.model import NvmeTarget, Subsystem
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NvmetPort, NvmetState, NvmetSubsystem

__all__ = (
    "identified",
    "numbered",
    "planned_target",
    "read_target",
    "read_tree",
    "removal_actions",
    "return_actions",
    "standing_part",
    "target_actions",
    "target_questions",
)

ROOT: Final = "/sys/kernel/config/nvmet"
# a module makes its folder where configfs is mounted; on a bare host nobody did that yet
_READY: Final[tuple[Action, ...]] = (
    Run(("modprobe", "-a", "nvmet", "nvmet-rdma")),
    Run(("mount", "-t", "configfs", "none", "/sys/kernel/config"), unless_exists=ROOT),
)
_ROW: Final = re.compile(r"(.*?/(?:attr_allow_any_host|attr_serial|device_path|device_uuid|enable|addr_\w+)):(.*)")
_SERIAL_CHARACTERS: Final = 20  # NVM Express Base Specification 2.0, Identify Controller, bytes 4 to 23
_FIND: Final = ("find", ROOT, "-maxdepth", "5")  # ports/1/subsystems/NQN, subsystems/NQN/namespaces/1/enable
_GREP: Final = ("grep", "-rs", "", ROOT)


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

    Subsystems that `wanted` does not name are left alone, on whichever port they are: another user of the target may
    own them. A port is known by its address; its number is ours to choose only where none has that address.
    """
    found = found or NvmetState()
    subsystems = {one.nqn: one for one in found.subsystems}
    ports = {_address(port): port for port in found.ports}
    unwanted = _unpublishing(wanted, found)
    if not unwanted and all(_holds(wanted, found)):
        return ()
    actions: list[Action] = [*_READY, *unwanted]
    for one in identified(wanted, found).subsystems:
        actions += _subsystem_actions(one, subsystems.get(one.nqn))
    for port in numbered(wanted, found).ports:
        actions += _port_actions(port, port.number, ports.get(_address(port)))
    return tuple(actions)


def numbered(wanted: NvmetState, found: NvmetState) -> NvmetState:
    """Returns `wanted` with the numbers that its ports have, or get beside those that are there."""
    ports = {_address(port): port.number for port in found.ports}
    halves = [port for port in found.ports if not port.subsystems and not all(_address(port))]
    taken = set(ports.values()) | {half.number for half in halves}
    result = []
    for port in wanted.ports:
        half = next((one for one in halves if _is_begun(one, port)), None)
        if _address(port) in ports:
            number = ports[_address(port)]
        elif half is not None:
            halves.remove(half)
            number = half.number
        else:
            number = _free(port.number, taken)
        taken.add(number)
        result.append(replace(port, number=number))
    return replace(wanted, ports=tuple(result))


def identified(wanted: NvmetState, found: NvmetState) -> NvmetState:
    """Returns `wanted` with the serial numbers and UUIDs that stand, and those that we give where nothing stands."""
    standing = {one.nqn: one for one in found.subsystems}
    return replace(wanted, subsystems=tuple(_identified(one, standing.get(one.nqn)) for one in wanted.subsystems))


def _identified(wanted: NvmetSubsystem, found: NvmetSubsystem | None) -> NvmetSubsystem:
    serial = hashlib.sha256(wanted.nqn.encode()).hexdigest()[:_SERIAL_CHARACTERS]
    known = {**(dict(found.uuids) if found else {}), **dict(wanted.uuids)}
    uuids = (
        (nsid, known.get(nsid) or str(uuid.uuid5(uuid.NAMESPACE_URL, f"{wanted.nqn}#{nsid}")))
        for nsid, *_ in wanted.namespaces
    )
    return replace(wanted, serial=wanted.serial or (found.serial if found else "") or serial, uuids=tuple(uuids))


def _holds(wanted: NvmetState, found: NvmetState) -> Iterable[bool]:
    ports = {_address(port): port for port in found.ports}
    yield set(wanted.subsystems) <= set(found.subsystems)
    for port in wanted.ports:
        standing = ports.get(_address(port))
        yield standing is not None and set(port.subsystems) <= set(standing.subsystems)


def _is_begun(half: NvmetPort, wanted: NvmetPort) -> bool:
    """Whether a port that publishes nothing was being given this address by a run that was cut off."""
    return all(found in ("", value) for found, value in zip(_address(half), _address(wanted), strict=True))


def _free(number: int, taken: set[int]) -> int:
    return next(one for one in itertools.chain((number,), itertools.count(1)) if one not in taken)


def _unpublishing(wanted: NvmetState, found: NvmetState) -> list[Action]:
    """Takes our subsystems off the ports where they are no longer wanted, and a port away that is then empty."""
    ours = {one.nqn for one in wanted.subsystems}
    published = {_address(port): set(port.subsystems) for port in wanted.ports}
    actions: list[Action] = []
    for port in found.ports:
        base = f"{ROOT}/ports/{port.number}"
        keep = published.get(_address(port), set())
        gone = [nqn for nqn in port.subsystems if nqn in ours and nqn not in keep]
        actions += [RemoveLink(f"{base}/subsystems/{nqn}") for nqn in gone]
        if gone and not keep and set(port.subsystems) == set(gone):
            actions.append(RemoveFolder(base))
    return actions


def standing_part(wanted: NvmetState, found: NvmetState) -> NvmetState:
    """Returns what of `wanted` stands in `found`, ports by their real numbers: for boot files and removal."""
    ours = {one.nqn for one in wanted.subsystems}
    addresses = {_address(port) for port in wanted.ports}
    ports = (
        replace(port, subsystems=tuple(nqn for nqn in port.subsystems if nqn in ours))
        for port in found.ports
        if _address(port) in addresses
    )
    return NvmetState(tuple(one for one in found.subsystems if one.nqn in ours), tuple(ports))


def _subsystem_actions(wanted: NvmetSubsystem, standing: NvmetSubsystem | None) -> list[Action]:
    base = f"{ROOT}/subsystems/{wanted.nqn}"
    found = standing or NvmetSubsystem(wanted.nqn)
    actions: list[Action] = [MakeFolder(base)]
    if standing is None:  # the kernel takes no other once a host has seen it
        actions.append(Write(f"{base}/attr_serial", wanted.serial))
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
    return actions + _namespace_actions(base, wanted, found)


def _namespace_actions(base: str, wanted: NvmetSubsystem, found: NvmetSubsystem) -> list[Action]:
    standing = {nsid: (device, on) for nsid, device, on in found.namespaces}
    uuids = dict(wanted.uuids)
    actions: list[Action] = []
    for nsid, device, _ in wanted.namespaces:
        folder = f"{base}/namespaces/{nsid}"
        has, on = standing.get(nsid, ("", False))
        if (has, on) == (device, True):
            continue
        actions.append(MakeFolder(folder))
        if on:
            actions.append(Write(f"{folder}/enable", "0"))  # the device is locked while it is enabled
        if nsid not in standing:
            actions.append(Write(f"{folder}/device_uuid", uuids[nsid]))
        actions += [Write(f"{folder}/device_path", device), Write(f"{folder}/enable", "1")]
    for nsid in standing.keys() - {nsid for nsid, *_ in wanted.namespaces}:
        actions += _without_namespace(base, nsid)
    return actions


def _port_actions(wanted: NvmetPort, number: int, found: NvmetPort | None) -> list[Action]:
    base = f"{ROOT}/ports/{number}"
    actions: list[Action] = []
    if found is None:
        family = "ipv6" if ":" in wanted.traddr else "ipv4"
        actions += [
            MakeFolder(base),
            Write(f"{base}/addr_trtype", wanted.transport),
            Write(f"{base}/addr_adrfam", family),
            Write(f"{base}/addr_traddr", wanted.traddr),
            Write(f"{base}/addr_trsvcid", wanted.trsvcid),
        ]
    there = () if found is None else found.subsystems
    links = (nqn for nqn in wanted.subsystems if nqn not in there)
    return actions + [Link(f"{base}/subsystems/{nqn}", f"{ROOT}/subsystems/{nqn}") for nqn in links]


def _address(port: NvmetPort) -> tuple[str, str, str]:
    return port.transport, port.traddr, port.trsvcid


def removal_actions(state: NvmetState, found: NvmetState | None = None) -> tuple[Action, ...]:
    """Returns the removal of exactly this, in the reverse order.

    Args:
        state: what goes, ports by their real numbers.
        found: all that stands there; a port or an admitted host that others use stays. None: there are no others.
    """
    found = found or state
    ours = {one.nqn for one in state.subsystems}
    shared = {port.number for port in found.ports if set(port.subsystems) - ours}
    admitted = {host for one in found.subsystems if one.nqn not in ours for host in one.allowed_hosts}
    actions: list[Action] = []
    for port in state.ports:
        base = f"{ROOT}/ports/{port.number}"
        actions += [RemoveLink(f"{base}/subsystems/{nqn}") for nqn in port.subsystems]
        actions += [] if port.number in shared else [RemoveFolder(base)]
    for one in state.subsystems:
        base = f"{ROOT}/subsystems/{one.nqn}"
        for nsid, _, _ in one.namespaces:
            actions += _without_namespace(base, nsid)
        actions += [RemoveLink(f"{base}/allowed_hosts/{host}") for host in one.allowed_hosts]
        actions.append(RemoveFolder(base))
    hosts = {host for one in state.subsystems for host in one.allowed_hosts} - admitted
    actions += [RemoveFolder(f"{ROOT}/hosts/{host}") for host in sorted(hosts)]
    return tuple(actions)


def _without_namespace(base: str, nsid: int) -> list[Action]:
    folder = f"{base}/namespaces/{nsid}"
    return [Write(f"{folder}/enable", "0", optional=True), RemoveFolder(folder)]


def return_actions(
    before: NvmetState, wanted: NvmetState, *, hosts: Iterable[str] = (), gone: Iterable[str] = ()
) -> tuple[Action, ...]:
    """Returns the way back to `before`, from whatever was done of the way to `wanted`, and from nothing of it too.

    Args:
        before: all that stood.
        wanted: what was to stand, ports by their real numbers. What others own is not touched.
        hosts: the hosts that had a folder before, admitted or not.
        gone: NQNs of subsystems that stood and were to go.
    """
    stood = {one.nqn: one for one in before.subsystems}
    ports = {_address(port): port for port in before.ports}
    touched = {*gone, *(one.nqn for one in wanted.subsystems)}
    new = tuple(one for one in wanted.subsystems if one.nqn not in stood)
    actions: list[Action] = list(_READY) if touched & stood.keys() else []
    for port in wanted.ports:
        was = ports.get(_address(port))
        kept = () if was is None else was.subsystems
        base = f"{ROOT}/ports/{port.number}"
        actions += [RemoveLink(f"{base}/subsystems/{nqn}") for nqn in port.subsystems if nqn not in kept]
        actions += [] if was else [RemoveFolder(base)]
    # a host's folder goes when no subsystem admits it any more: after all of them
    actions += [one for one in removal_actions(NvmetState(new)) if not _is_host(one)]
    planned = {one.nqn: one for one in wanted.subsystems}
    for nqn in sorted(touched & stood.keys()):
        actions += _returned(stood[nqn], planned.get(nqn, NvmetSubsystem(nqn)))
    admitted = {host for one in wanted.subsystems for host in one.allowed_hosts} - {*hosts}
    admitted -= {host for one in before.subsystems for host in one.allowed_hosts}
    actions += [RemoveFolder(f"{ROOT}/hosts/{host}") for host in sorted(admitted)]
    for port in before.ports:
        if set(port.subsystems) & touched:
            actions += _port_actions(port, port.number, None)
    return tuple(actions)


def _is_host(action: Action) -> bool:
    return isinstance(action, RemoveFolder) and action.path.startswith(f"{ROOT}/hosts/")


def _returned(before: NvmetSubsystem, wanted: NvmetSubsystem) -> Iterable[Action]:
    """One subsystem as it was; each action is taken whether it has been undone already or not."""
    base = f"{ROOT}/subsystems/{before.nqn}"
    yield MakeFolder(base)
    if before.serial:  # one that stands has it still: then a refusal is none
        yield Write(f"{base}/attr_serial", before.serial)
    for host in wanted.allowed_hosts:
        if host not in before.allowed_hosts:
            yield RemoveLink(f"{base}/allowed_hosts/{host}")
    if before.any_host is not UNKNOWN:
        yield Write(f"{base}/attr_allow_any_host", str(int(before.any_host)))
    for host in before.allowed_hosts:
        yield MakeFolder(f"{ROOT}/hosts/{host}")
        yield Link(f"{base}/allowed_hosts/{host}", f"{ROOT}/hosts/{host}")
    yield from _returned_namespaces(base, before, {nsid: device for nsid, device, _ in wanted.namespaces})


def _returned_namespaces(base: str, before: NvmetSubsystem, planned: Mapping[int, str]) -> Iterable[Action]:
    uuids = dict(before.uuids)
    for nsid, device, on in before.namespaces:
        folder = f"{base}/namespaces/{nsid}"
        yield MakeFolder(folder)
        if planned.get(nsid, device) != device or not on:
            yield Write(f"{folder}/enable", "0")  # device and UUID are locked while it is enabled
        if nsid in uuids:
            yield Write(f"{folder}/device_uuid", uuids[nsid])
        if device:
            yield Write(f"{folder}/device_path", device)
        if on:
            yield Write(f"{folder}/enable", "1")
    for nsid in planned.keys() - {nsid for nsid, *_ in before.namespaces}:
        yield from _without_namespace(base, nsid)


# --- what stands there ----------------------------------------------------------------------------------------------


def target_questions() -> tuple[tuple[str, ...], ...]:
    """Returns what `read_target` asks."""
    return (_FIND, _GREP)


def read_target(executor: Executor) -> Known[NvmetState]:
    """Returns what the kernel's target holds: nothing when its module is not loaded, UNKNOWN when it cannot be told."""
    paths = executor.run(_FIND)
    if not paths.ok:
        gone = executor.run(["test", "-e", ROOT])
        return NvmetState() if gone.status == 1 else UNKNOWN
    # attributes that cannot be read make grep end with 2; what it printed counts
    values = executor.run(_GREP)
    below = [path for path in paths.stdout.splitlines() if path.startswith((f"{ROOT}/subsystems/", f"{ROOT}/ports/"))]
    if below and not values.stdout.strip():
        return UNKNOWN  # what stands has attributes: a way back without them would be another state
    return read_tree(paths.stdout.splitlines(), dict(_rows(values.stdout)))


def _rows(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        found = re.fullmatch(
            r"(.*?/(?:attr_allow_any_host|attr_serial|device_path|device_uuid|enable|addr_\w+)):(.*)", line
        )
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
        for number in _numbers(children, f"{ROOT}/ports")
    )
    return NvmetState(subsystems, ports)


def _numbers(children: Mapping[str, tuple[str, ...]], folder: str) -> list[str]:
    """Returns the names below a folder that are numbers; the kernel makes no others."""
    return sorted((name for name in children.get(folder, ()) if re.fullmatch("[0-9]{1,10}", name)), key=int)


def _read_subsystem(
    base: str, nqn: str, children: Mapping[str, tuple[str, ...]], values: Mapping[str, str]
) -> NvmetSubsystem:
    any_host = values.get(f"{base}/attr_allow_any_host")
    nsids = _numbers(children, f"{base}/namespaces")
    uuids = ((int(nsid), values.get(f"{base}/namespaces/{nsid}/device_uuid", "")) for nsid in nsids)
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
            for nsid in nsids
        ),
        serial=values.get(f"{base}/attr_serial", ""),
        uuids=tuple(one for one in uuids if one[1]),
    )
