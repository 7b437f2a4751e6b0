"""Reads a whole host over any executor: NIC facts, NIC state, RDMA ports, GIDs, neighbours, NVMe. Changes nothing.

What cannot be read is UNKNOWN. sysfs is the truth for NVMe controllers; nvme-cli adds only what it alone shows.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from fabric.errors import HostError
from fabric.host import names
from fabric.host.batch import Question, ask
from fabric.host.executor import Executor, list_folder, listing
from fabric.host.families.catalog import driver
from fabric.host.nvme.connect import read_version
from fabric.host.nvme.identity import HOSTID_PATH, HOSTNQN_PATH
from fabric.host.nvme.target import read_target, target_questions
from fabric.host.parse import ip, lldp, nvme, rdma
from fabric.host.settings import NicFacts, NicReading, question, reading
from fabric.host.unconfirmed import listing_without_sample
from fabric.plan.model import HostNicPlan, HostPlan
from fabric.qos import UNKNOWN, Known
from fabric.remote.ssh import ExecResult
from fabric.state.host import GidEntry, HostState, NvmePath, NvmeSubsystem, RdmaPort

__all__ = (
    "CONTROLLERS",
    "HostReading",
    "discover",
    "discover_all",
    "discovery_questions",
    "host_questions",
    "observe_host",
    "observe_nics",
    "read_controllers",
    "read_gid_files",
)

CONTROLLERS: Final = "/sys/class/nvme"
_INFINIBAND: Final = "/sys/class/infiniband"
_DEVICES: Final = ("ibv_devinfo",)
_NEIGHBOURS: Final = ("lldpcli", "-f", "json", "show", "neighbors", "details")
_SUBSYSTEMS: Final = ("nvme", "list-subsys", "-o", "json")
_NVME_VERSION: Final = ("nvme", "version")
_ATTRIBUTES: Final = (
    "transport", "address", "subsysnqn", "state", "ctrl_loss_tmo", "reconnect_delay", "fast_io_fail_tmo",
    "kato", "queue_count", "sqsize", "hostnqn", "hostid",
)  # fmt: skip
_GID_FILE: Final = re.compile(
    r".*/infiniband/([^/]+)/ports/([0-9]{1,3})/(gids|gid_attrs/types|gid_attrs/ndevs)/([0-9]{1,5}):(.*)"
)
_KINDS: Final = {"RoCE v2": "v2", "IB/RoCE v1": "v1"}  # Linux drivers/infiniband/core/cache.c
_IPV4_MAPPED: Final = "0000:0000:0000:0000:0000:ffff:"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostReading:
    """A host's state, the facts of its NICs in the plan's order, and what gave nothing, each with the reason."""

    state: HostState
    facts: tuple[NicFacts, ...]
    unread: tuple[str, ...] = ()


def discover(netdev: str, executor: Executor) -> NicFacts:
    """Returns what the host says of a NIC: RDMA device, PCI address, and whether OFED's driver runs.

    Raises:
        HostError: the netdev's name is none, or the host cannot be reached.
    """
    return discover_all((netdev,), executor)[0]


def discover_all(netdevs: Sequence[str], executor: Executor) -> tuple[NicFacts, ...]:
    """Returns the same of several NICs, in one round trip.

    Raises:
        HostError: a netdev's name is none, or the host cannot be reached.
    """
    links, addresses, *own = ask(executor, discovery_questions(netdevs))
    ports = rdma.read_links(links.stdout) if links.ok and links.stdout.strip() else ()
    return tuple(
        _facts(NicFacts(netdev, parent=_parent(netdev, addresses), is_vlan=vlan.ok), ports, (device, ecn), executor)
        for netdev, device, ecn, vlan in zip(netdevs, own[::3], own[1::3], own[2::3], strict=True)
    )


def discovery_questions(netdevs: Sequence[str]) -> list[Question]:
    """Returns what `discover_all` asks first.

    Raises:
        HostError: a netdev's name is none.
    """
    questions: list[Question] = [("rdma", "-j", "link", "show"), ("ip", "-j", "address", "show")]
    for base in (f"/sys/class/net/{names.netdev(netdev)}" for netdev in netdevs):
        questions += [*_port_questions(base), ("grep", "-qsx", "DEVTYPE=vlan", f"{base}/uevent")]
    return questions


def _port_questions(base: str) -> list[Question]:
    return [("readlink", "-f", f"{base}/device"), ("test", "-d", f"{base}/ecn")]


def _facts(known: NicFacts, ports: Sequence[RdmaPort], answers: Sequence[ExecResult], executor: Executor) -> NicFacts:
    """What the host says of a NIC; of a VLAN what it says of the port below."""
    if known.port != known.netdev:
        answers = ask(executor, _port_questions(f"/sys/class/net/{names.netdev(known.port)}"))
    device, ecn = answers
    pci = device.stdout.strip().rpartition("/")[2]
    # a device may be on the VLAN's own netdev too
    own = [port for netdev in (known.netdev, known.port) for port in ports if port.netdev == netdev]
    return replace(
        known,
        rdma_device=own[0].device if own else "",
        rdma_port=own[0].port if own else 1,
        pci=pci if re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", pci) else "",
        flavour="ofed" if ecn.ok else "inbox",
    )


def _parent(netdev: str, addresses: ExecResult) -> str:
    if not addresses.ok or not addresses.stdout.strip():
        return ""
    try:
        below = ip.read_address(addresses.stdout, netdev).parent
    except HostError:
        return ""
    return "" if below is UNKNOWN or below is None else below


def host_questions(plan: HostPlan) -> list[Question]:
    """Returns what `observe_host` asks whatever the answers are.

    Raises:
        HostError: a netdev's name is none.
    """
    return [
        *(discovery_questions([nic.netdev for nic in plan.nics]) if plan.nics else ()),
        *((_NVME_VERSION,) if plan.role == "host" else target_questions()),
        _DEVICES,
        _NEIGHBOURS,
        _SUBSYSTEMS,
        listing(_INFINIBAND),
        listing(CONTROLLERS),
        HOSTNQN_PATH,
        HOSTID_PATH,
    ]


def observe_host(plan: HostPlan, executor: Executor) -> HostReading:
    """Returns all that can be read of a host or target.

    Raises:
        HostError: the host cannot be reached, or a NIC family is unknown.
    """
    facts = discover_all([nic.netdev for nic in plan.nics], executor) if plan.nics else ()
    readings = observe_nics(plan.nics, facts, executor)
    unread = [line for reading in readings for line in reading.unread]
    unconfirmed = [tool for reading in readings for tool in reading.unconfirmed]
    unconfirmed += [
        f"{nic.family}: {text}" for nic, fact in zip(plan.nics, facts, strict=True)
        for text in driver(nic.family, fact.flavour).unconfirmed
    ]  # fmt: skip
    unconfirmed += _nvme_without_sample(executor) if plan.role == "host" else ()
    state = HostState(
        plan.host,
        nics=tuple(reading.state for reading in readings),
        rdma_ports=_read(executor, _DEVICES, rdma.read_devinfo, unread),
        gids=_gids(executor, unread),
        neighbours=_read(executor, _NEIGHBOURS, lldp.read_lldp, unread),
        subsystems=_subsystems(executor, unread),
        target=read_target(executor) if plan.role == "target" else UNKNOWN,
        hostnqn=_file(executor, HOSTNQN_PATH),
        hostid=_file(executor, HOSTID_PATH),
        unconfirmed=tuple(dict.fromkeys(unconfirmed)),
    )
    return HostReading(state, facts, tuple(unread))


def observe_nics(nics: Sequence[HostNicPlan], facts: Sequence[NicFacts], executor: Executor) -> tuple[NicReading, ...]:
    """Returns the states of the NICs, in one round trip; what cannot be read is UNKNOWN and named in `unread`.

    Raises:
        HostError: the host cannot be reached, or a NIC family is unknown.
    """
    reads = [driver(nic.family, own.flavour).reads(nic, own) for nic, own in zip(nics, facts, strict=True)]
    distinct = tuple(dict.fromkeys(question(read) for own in reads for read in own))
    answers = dict(zip(distinct, ask(executor, distinct), strict=True))
    return tuple(
        reading(own, fact.netdev, [answers[question(read)] for read in own])
        for own, fact in zip(reads, facts, strict=True)
    )


def _read(executor: Executor, argv: Sequence[str], parse: Callable[[str], T], unread: list[str]) -> Known[T]:
    done = executor.run(argv)
    if not done.ok or not done.stdout.strip():
        unread.append(f"{' '.join(argv)}: exit {done.status}: {done.stderr.strip()[:120] or 'no output'}")
        return UNKNOWN
    try:
        return parse(done.stdout)
    except HostError as error:
        unread.append(f"{' '.join(argv)}: {error}")
        return UNKNOWN


def _file(executor: Executor, path: str) -> Known[str]:
    text = executor.read(path)
    return text.strip() if text and text.strip() else UNKNOWN


# --- GIDs -----------------------------------------------------------------------------------------------------------


def _gids(executor: Executor, unread: list[str]) -> Known[tuple[GidEntry, ...]]:
    devices = list_folder(executor, _INFINIBAND)
    if devices is None:
        unread.append(f"{_INFINIBAND}: no such folder")
        return UNKNOWN
    folders = [f"{_INFINIBAND}/{names.rdma_device(one)}/ports/" for one in devices]
    # empty slots cannot be read and make grep end with 2; what it printed counts
    return read_gid_files(executor.run(["grep", "-rs", "", *folders]).stdout) if folders else ()


def read_gid_files(text: str) -> tuple[GidEntry, ...]:
    """Returns the GIDs from `grep -r ""` over an RDMA device's ports in sysfs; slots without a type are empty."""
    found: dict[tuple[str, int, int], dict[str, str]] = {}
    for line in text.splitlines():
        row = _GID_FILE.fullmatch(line)
        if row:
            found.setdefault((row[1], int(row[2]), int(row[4])), {})[row[3]] = row[5].strip()
    return tuple(
        GidEntry(device, port, index, one["gids"], kind, one.get("gid_attrs/ndevs", ""), _ipv4(one["gids"]))
        for (device, port, index), one in sorted(found.items())
        if "gids" in one and (kind := _KINDS.get(one.get("gid_attrs/types", ""), ""))
    )


def _ipv4(gid: str) -> str:
    digits = gid.removeprefix(_IPV4_MAPPED).replace(":", "")
    if not gid.startswith(_IPV4_MAPPED) or not re.fullmatch("[0-9a-fA-F]{8}", digits):
        return ""
    return ".".join(str(byte) for byte in bytes.fromhex(digits))


# --- NVMe -----------------------------------------------------------------------------------------------------------


def read_controllers(executor: Executor) -> Known[dict[str, tuple[str, NvmePath]]]:
    """Returns controller → (NQN, path) of every fabrics controller in sysfs; UNKNOWN when nothing can be read."""
    found = list_folder(executor, CONTROLLERS)
    if found is None:
        return UNKNOWN
    own = [name for name in found if re.fullmatch(r"nvme\d+", name)]
    if not own:
        return {}
    paths = [f"{CONTROLLERS}/{name}/{attribute}" for name in own for attribute in _ATTRIBUTES]
    text = executor.run(["grep", "-Hs", "", *paths]).stdout
    values: dict[str, dict[str, str]] = {name: {} for name in own}
    for row in re.finditer(rf"(?m)^{CONTROLLERS}/(nvme\d+)/(\w+):(.*)$", text):
        values[row[1]][row[2]] = row[3]
    if not any(values.values()):
        return UNKNOWN
    return {
        name: (attributes["subsysnqn"].strip(), nvme.controller(name, attributes))
        for name, attributes in values.items()
        if "subsysnqn" in attributes
    }


def _subsystems(executor: Executor, unread: list[str]) -> Known[tuple[NvmeSubsystem, ...]]:
    """Subsystems with their paths from sysfs; ANA and names from nvme-cli, where it can be read."""
    controllers = read_controllers(executor)
    listed = _read(executor, _SUBSYSTEMS, nvme.read_subsystems, unread)
    if controllers is UNKNOWN:
        return listed
    known = {} if listed is UNKNOWN else {one.nqn: one for one in listed}
    nqns = sorted({nqn for nqn, _ in controllers.values()})
    return tuple(_joined(nqn, known.get(nqn), controllers) for nqn in nqns)


def _nvme_without_sample(executor: Executor) -> tuple[str, ...]:
    """The version of nvme-cli when no sample shows its listings; without the tool there is nothing to doubt."""
    done = executor.run(_NVME_VERSION)
    if not done.ok:
        return ()
    try:
        name = listing_without_sample(read_version(done.stdout))
    except HostError:
        name = "nvme-cli of a version that it does not show"
    return (name,) if name else ()


def _joined(nqn: str, listed: NvmeSubsystem | None, controllers: dict[str, tuple[str, NvmePath]]) -> NvmeSubsystem:
    paths = tuple(path for own, path in controllers.values() if own == nqn)
    if listed is None:
        return NvmeSubsystem(nqn, paths=paths)
    whole = NvmeSubsystem(nqn, listed.name, listed.iopolicy, paths, listed.namespaces, listed.hostnqn, listed.hostid)
    ana = {} if listed.paths is UNKNOWN else {path.controller: path for path in listed.paths}
    return nvme.with_ana(whole, ana)
