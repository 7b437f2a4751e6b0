"""From a load profile to jobs: who reads what through which port, on this fabric. Reaches nobody.

    profile + fabric + plan + scratch ──▶ what to prepare, and rounds: host → job, all of a round at the same time

Every stream is one host, one namespace and one port of its target; a host with several rails has one for each rail.
What is only read and what is written lie apart: half of the scratch each, as soon as one phase writes. The half that is
written is cut into one part a host, so that nobody's write is another's surprise.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, urlencode

from fabric.engine.load import SECTOR_BYTES, Job, Region, Stream
from fabric.errors import PlanError
from fabric.intent import Fabric
from fabric.intent.model import Host, HostNic, NvmePort, NvmeTarget
from fabric.plan.model import FabricPlan, HostNicPlan
from fabric.policy import ShardPolicy
from fabric.units import natural_key
from fabric.workflow.agents import Preparation
from fabric.workflow.loads import Background, LoadProfile, Pattern, Phase

__all__ = ("Expansion", "Round", "Scratch", "Wishes", "expand", "volume_streams")

_BYTES_PER_S: Final = 125_000  # of 1 Mb/s
_MIN_BURST_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Scratch:
    """A namespace that somebody gave for this: every byte of it may be overwritten.

    Attributes:
        block_bytes, blocks: as the target describes it; see `Agents.describe`.
    """

    nqn: str
    nsid: int
    block_bytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Round:
    """Jobs that start together.

    Attributes:
        name: of the phase, with the receiver where it rotates.
        jobs: host or target → its job.
    """

    name: str
    phase: Phase
    jobs: Mapping[str, Job]


@dataclass(frozen=True, slots=True)
class Expansion:
    """What to do, in order.

    Attributes:
        preparations: host → what it writes first; each namespace once.
        machines: everything that needs an agent.
        left_out: hosts that read nothing, with the reason.
    """

    preparations: tuple[tuple[str, Preparation], ...]
    rounds: tuple[Round, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def machines(self) -> tuple[str, ...]:
        """Everything that needs an agent, in natural order."""
        named = {name for name, _one in self.preparations} | {name for one in self.rounds for name in one.jobs}
        return tuple(sorted(named, key=natural_key))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What else is known of hosts.

    Attributes:
        policies: host → how it cuts and deals its reads; the default where it is absent.
        hostnqns: host → its name to targets, needed where a subsystem admits some hosts only.
    """

    policies: Mapping[str, ShardPolicy] = field(default_factory=dict)
    hostnqns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Volume:
    """A scratch namespace and the target that has it."""

    target: NvmeTarget
    scratch: Scratch


def volume_streams(
    fabric: Fabric, plan: FabricPlan, volumes: Iterable[tuple[str, int]], *, transport: str, wishes: Wishes
) -> tuple[tuple[str, Stream], ...]:
    """Returns for each namespace (NQN, nsid) a host that connects to it, and the stream to ask its size through.

    Raises:
        PlanError: no target has it, or no managed host connects to it.
    """
    found = []
    for nqn, nsid in volumes:
        target = _target_of(fabric, nqn, nsid)
        host = next((one for one in fabric.hosts if one.managed and nqn in one.connect), None)
        if host is None:
            raise PlanError(
                "no managed host connects to this subsystem", found=nqn, remedy="Name it in fabric_connect."
            )
        volume = _Volume(target, Scratch(nqn, nsid, 512, 0))
        found.append((host.name, _streams(host, volume, plan, transport, wishes)[0]))
    return tuple(found)


def expand(
    profile: LoadProfile,
    fabric: Fabric,
    plan: FabricPlan,
    scratch: Sequence[Scratch],
    *,
    run_id: int,
    hosts: Iterable[str] | None = None,
    wishes: Wishes | None = None,
) -> Expansion:
    """Returns the jobs of a profile on a fabric.

    Args:
        profile: what to send.
        fabric: hosts, what they connect to, and the addresses of targets.
        plan: the type of service of each NIC.
        scratch: what may be overwritten; other namespaces are not touched.
        run_id: 64 bits, drawn for this run.
        hosts: of which hosts; None: all that are managed.
        wishes: policies and names of hosts.

    Raises:
        PlanError: nobody reads anything, or the scratch is too small for a phase.
    """
    return _Expanding(profile, fabric, plan, scratch, run_id, hosts, wishes or Wishes()).expansion()


class _Expanding:
    def __init__(
        self,
        profile: LoadProfile,
        fabric: Fabric,
        plan: FabricPlan,
        scratch: Sequence[Scratch],
        run_id: int,
        hosts: Iterable[str] | None,
        wishes: Wishes,
    ) -> None:
        self._profile, self._fabric, self._plan, self._run_id, self._wishes = profile, fabric, plan, run_id, wishes
        volumes = [_Volume(_target_of(fabric, one.nqn, one.nsid), one) for one in scratch]
        chosen = None if hosts is None else set(hosts)
        asked = [one for one in fabric.hosts if one.managed and (chosen is None or one.name in chosen)]
        reach = {one.name: [volume for volume in volumes if volume.scratch.nqn in one.connect] for one in asked}
        self._hosts = [one for one in asked if reach[one.name]]
        self._left_out = tuple((one.name, "it connects to no scratch") for one in asked if not reach[one.name])
        self._reach = reach
        if not self._hosts:
            remedy = "Give a namespace of a subsystem that a managed host names in fabric_connect."
            raise PlanError("no host reads from any scratch", where=fabric.name, remedy=remedy)
        self._used = [one for one in volumes if any(one in reach[host.name] for host in self._hosts)]
        self._window = self._common_window()

    def expansion(self) -> Expansion:
        rounds = [made for phase in self._profile.phases for made in self._rounds(phase)]
        return Expansion(tuple(self._preparations()), tuple(rounds), self._left_out)

    # --- where -------------------------------------------------------------------------------------------------

    def _common_window(self) -> int:
        """Returns how many bytes from block 0 on every scratch has, whole sectors."""
        sizes = {one.scratch.block_bytes for one in self._used}
        if len(sizes) > 1:
            found = ", ".join(f"{size} bytes" for size in sorted(sizes))
            raise PlanError("scratch namespaces have blocks of several sizes", found=found, expected="one size")
        room = min(one.scratch.blocks * one.scratch.block_bytes for one in self._used)
        window = min(room, self._profile.span_bytes) // SECTOR_BYTES * SECTOR_BYTES
        if not window or SECTOR_BYTES % max(sizes):
            raise PlanError("a scratch holds no sector", found=f"{room} bytes", expected=f"at least {SECTOR_BYTES}")
        return window

    @property
    def _block_bytes(self) -> int:
        return self._used[0].scratch.block_bytes

    def _region(self, phase: Phase, host: Host) -> Region:
        begin, length = 0, self._window
        if any(one.write_percent for one in self._profile.phases):
            half = self._window // 2 // SECTOR_BYTES * SECTOR_BYTES
            begin, length = 0, half
            if phase.write_percent:
                part = half // len(self._hosts) // SECTOR_BYTES * SECTOR_BYTES
                begin, length = half + self._hosts.index(host) * part, part
        least = 2 * phase.readers * self._most_paths(host) if phase.write_percent else 1
        if length < least * phase.size_bytes:
            raise PlanError(
                "the scratch is too small for this phase",
                where=phase.name,
                found=f"{length} bytes for {host.name}",
                expected=f"at least {least * phase.size_bytes}",
                remedy="Give larger namespaces, a larger span, or fewer readers.",
            )
        return Region(begin // self._block_bytes, length // self._block_bytes)

    def _most_paths(self, host: Host) -> int:
        return sum(len(_paths(host, volume.target)) for volume in self._reach[host.name])

    def _preparations(self) -> Iterator[tuple[str, Preparation]]:
        region = Region(0, self._window // self._block_bytes)
        for number, volume in enumerate(self._used):
            able = [host for host in self._hosts if volume in self._reach[host.name]]
            host = able[number % len(able)]
            stream = _streams(host, volume, self._plan, self._profile.transport, self._wishes)[0]
            yield host.name, Preparation(stream, region, self._run_id, consent=True)

    # --- who ---------------------------------------------------------------------------------------------------

    def _rounds(self, phase: Phase) -> Iterator[Round]:
        match phase.pattern:
            case Pattern.INCAST:
                receivers = self._hosts if phase.is_rotating else [max(self._hosts, key=self._most_paths)]
                for host in receivers:
                    name = f"{phase.name}-{host.name}" if phase.is_rotating else phase.name
                    yield self._round(name, phase, {host.name: self._reach[host.name]})
            case Pattern.OUTCAST:
                volume = max(self._used, key=lambda one: sum(one in self._reach[host.name] for host in self._hosts))
                readers = [host for host in self._hosts if volume in self._reach[host.name]]
                yield self._round(phase.name, phase, {host.name: [volume] for host in readers})
            case Pattern.PAIRWISE:
                yield self._round(phase.name, phase, self._pairs())
            case Pattern.ALL:
                yield self._round(phase.name, phase, self._reach)

    def _pairs(self) -> dict[str, list[_Volume]]:
        """Each host with the volume that the fewest others have taken; of those, the first from its own place on."""
        taken: dict[tuple[str, int], int] = {}
        pairs: dict[str, list[_Volume]] = {}
        for number, host in enumerate(self._hosts):
            reach = self._reach[host.name]
            turned = reach[number % len(reach) :] + reach[: number % len(reach)]
            best = min(turned, key=lambda one: taken.get((one.scratch.nqn, one.scratch.nsid), 0))
            key = (best.scratch.nqn, best.scratch.nsid)
            taken[key] = taken.get(key, 0) + 1
            pairs[host.name] = [best]
        return pairs

    def _round(self, name: str, phase: Phase, wanted: Mapping[str, Sequence[_Volume]]) -> Round:
        reading = [host for host in self._hosts if wanted.get(host.name)]
        on_ns, off_ns = self._burst(phase, reading)
        jobs = {
            host.name: self._job(
                name,
                phase,
                [
                    stream
                    for volume in wanted[host.name]
                    for stream in _streams(host, volume, self._plan, self._profile.transport, self._wishes)
                ],
                self._region(phase, host),
                (on_ns, off_ns),
            )
            for host in reading
        }
        if phase.background is not None:
            for machine, streams in self._bulk(phase.background, reading).items():
                job = jobs.get(machine) or self._job(
                    name, phase, [], Region(0, self._window // self._block_bytes), (on_ns, off_ns)
                )
                jobs[machine] = replace(job, streams=(*job.streams, *streams))
        return Round(name, phase, jobs)

    def _job(
        self, name: str, phase: Phase, streams: Sequence[Stream], region: Region, burst_ns: tuple[int, int]
    ) -> Job:
        return Job(
            name=name,
            run_id=self._run_id,
            seed=self._run_id,
            streams=tuple(streams),
            size_bytes=phase.size_bytes,
            readers=phase.readers,
            write_share=phase.write_percent / 100,
            on_ns=burst_ns[0],
            off_ns=burst_ns[1],
            start_unix_s=None,
            seconds=float(phase.seconds),
            region=region,
            check=phase.is_checked,
            max_bytes_per_s=None if phase.rate_mbps is None else phase.rate_mbps * _BYTES_PER_S,
        )

    def _burst(self, phase: Phase, reading: Sequence[Host]) -> tuple[int, int]:
        if phase.burst is None:
            return 0, 0
        slowest = min(nic.speed_mbps for host in reading for nic in host.nics)
        on_ns = max(_MIN_BURST_NS, phase.burst.size_bytes * 1_000_000_000 // (slowest * _BYTES_PER_S))
        return on_ns, on_ns * phase.burst.idle_percent // (100 - phase.burst.idle_percent)

    # --- lossy traffic beside it --------------------------------------------------------------------------------

    def _bulk(self, background: Background, reading: Sequence[Host]) -> dict[str, list[Stream]]:
        """Each host that reads gets traffic from the next host, or from a target that we may log in to."""
        machines = [(one.name, one.nics) for one in self._fabric.hosts if one.managed]
        machines += [(one.name, one.nics) for one in self._fabric.targets if one.managed]
        found: dict[str, list[Stream]] = {}
        for number, host in enumerate(reading):
            others = [one for one in machines if one[0] != host.name and _meet(one[1], host.nics) is not None]
            if not others:
                what = "no other managed machine shares a network with it, to send lossy traffic"
                raise PlanError(what, where=host.name, remedy="Manage one more host or target, or leave isolation out.")
            name, nics = others[number % len(others)]
            source, sink = _meet(nics, host.nics) or ("", "")
            tos, url = background.dscp << 2, f"{_bracketed(sink)}:{background.port + number}"
            listen = Stream(f"from-{name}", f"tcp-listen://{url}?{urlencode({'from': source})}", tos=tos)
            send = Stream(f"to-{host.name}", f"tcp-send://{url}?{urlencode({'bind': source})}", tos=tos)
            found.setdefault(host.name, []).append(listen)
            found.setdefault(name, []).append(send)
        return found


def _target_of(fabric: Fabric, nqn: str, nsid: int) -> NvmeTarget:
    for target in fabric.targets:
        for subsystem in target.subsystems:
            if subsystem.nqn == nqn and nsid in {one.nsid for one in subsystem.namespaces}:
                return target
    known = sorted(
        f"{one.nqn} {space.nsid}" for two in fabric.targets for one in two.subsystems for space in one.namespaces
    )
    raise PlanError("no target has this namespace", found=f"{nqn} {nsid}", expected=", ".join(known))


def _streams(host: Host, volume: _Volume, plan: FabricPlan, transport: str, wishes: Wishes) -> list[Stream]:
    scratch, target = volume.scratch, volume.target
    arguments: dict[str, str | int] = {"nsid": scratch.nsid}
    if host.name in wishes.hostnqns:
        arguments["hostnqn"] = wishes.hostnqns[host.name]
    streams = []
    for port in _paths(host, target):
        url = f"nvme+{transport}://{_bracketed(port.traddr)}:{port.trsvcid}/{quote(scratch.nqn, safe=':')}"
        streams.append(
            Stream(
                name=f"{target.name}/{scratch.nsid}@{port.traddr}:{port.trsvcid}",
                url=f"{url}?{urlencode(arguments)}",
                policy=wishes.policies.get(host.name, ShardPolicy()),
                tos=_tos(host, port, plan),
            )
        )
    if not streams:
        raise PlanError("this target has no port", where=target.name, remedy="Give it fabric_nvme_ports.")
    return streams


def _paths(host: Host, target: NvmeTarget) -> tuple[NvmePort, ...]:
    """Returns the target's ports on networks of the host; all of them where there is none, over routers then."""
    near = tuple(port for port in target.ports if _nic_towards(host.nics, port.traddr) is not None)
    return near or target.ports


def _nic_towards(nics: Sequence[HostNic], address: str) -> HostNic | None:
    wanted = ipaddress.ip_address(address)
    return next((nic for nic in nics for own in nic.addresses if wanted in ipaddress.ip_interface(own).network), None)


def _tos(host: Host, port: NvmePort, plan: FabricPlan) -> int | None:
    nics: tuple[HostNicPlan, ...] = next((one.nics for one in plan.hosts if one.host == host.name), ())
    nic = _nic_towards(host.nics, port.traddr)
    found = next((one for one in nics if nic is not None and one.netdev == nic.netdev), nics[0] if nics else None)
    return found.tos if found is not None else host.policy.data_dscps[0] << 2


def _meet(senders: Sequence[HostNic], receivers: Sequence[HostNic]) -> tuple[str, str] | None:
    """Returns an address of each on one network, None when they share none."""
    for receiver in (own for nic in receivers for own in nic.addresses):
        sink = ipaddress.ip_interface(receiver)
        for sender in (own for nic in senders for own in nic.addresses):
            source = ipaddress.ip_interface(sender)
            if source.ip in sink.network:
                return str(source.ip), str(sink.ip)
    return None


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
