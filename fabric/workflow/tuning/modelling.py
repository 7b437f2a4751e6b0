"""What is known of the path before anything is tuned: light reads, the plan, the cabling.

A read at a time of one sector gives round trip and service together; `ping` from the host gives the round trip. Where
there is no `ping` the whole counts as service, and the fan-in bound is the tighter for it.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from fabric.engine.client import Description
from fabric.engine.load import SECTOR_BYTES, Job, JobResult
from fabric.errors import HostError
from fabric.intent import Fabric
from fabric.plan import FabricPlan
from fabric.plan.model import SwitchPlan
from fabric.policy import MIB, ShardPolicy
from fabric.qos import UNKNOWN
from fabric.qos.queue import Aqm
from fabric.tune import Buffer, PathModel, Space
from fabric.workflow.expanding import Expansion
from fabric.workflow.tuning.measuring import bulk_free
from fabric.workflow.tuning.outcomes import cpu_ns_of
from fabric.workflow.verifying.setting import Setting

__all__ = ("MeasuredPath", "buffer_at", "measured_path", "space_of")

_LIGHT_S: Final = 1.0
_LEAD_S: Final = 3.0
_PINGS: Final = 10
_NO_PING_NS: Final = 1_000
_BYTES_PER_S: Final = 125_000  # of 1 Mb/s
_MOST_QUEUES, _MOST_DEPTH = 64, 128
_LEAST_QUEUES, _QUEUES_A_CORE = 8, 4  # more queues than that only wait for the host's cores
_GENTLE_QUEUES, _GENTLE_DEPTH = 4, 16
_CORES: Final = 8  # where a host does not tell
_LIGHT: Final = ShardPolicy(queues=1, depth=1, transfer_bytes=SECTOR_BYTES)
_RTT: Final = re.compile(r"=\s*([0-9.]+)/")
_ADDRESS: Final = re.compile(r"@\[?([0-9a-fA-F.:]+?)\]?:\d+$")


@dataclass(frozen=True, slots=True)
class MeasuredPath:
    """The path that is tuned. notes: what could not be measured, one sentence each."""

    model: PathModel
    space: Space
    notes: tuple[str, ...] = ()


def measured_path(setting: Setting, expansion: Expansion) -> MeasuredPath:
    """Returns the model of the path and the space to search; light reads for a second.

    Raises:
        FabricError: no host could read.
    """
    asked = setting.asked
    jobs = {name: job for one in expansion.rounds for name, job in _reading(one.jobs).items()}
    light = setting.agents.run({name: _light(job) for name, job in jobs.items()}, lead_s=_LEAD_S)
    for error in light.errors.values():
        raise error
    latencies = _latencies(light.results)
    cores, told = _cores(setting, tuple(jobs))
    grants = _grants(setting, jobs, cores)
    rtt_ns, notes = _round_trip(setting, jobs)
    both_ns, slow_ns = latencies
    fabric = asked.loaded.fabric
    hosts = [one for one in fabric.hosts if one.name in jobs]
    receiver = max(hosts, key=lambda one: len(_targets(jobs[one.name])))
    base_ns = min(rtt_ns or _NO_PING_NS, max(1, both_ns - 1))
    plans = {one.host: one for one in asked.plan.hosts}
    mtus = [nic.rdma_mtu_bytes for one in hosts for nic in plans[one.name].nics]
    phase = max((one.phase for one in expansion.rounds), key=lambda one: one.size_bytes)
    model = PathModel(
        link_bytes_per_s=float(min(nic.speed_mbps for one in hosts for nic in one.nics) * _BYTES_PER_S),
        base_rtt_ns=base_ns,
        service_p50_ns=max(1, both_ns - base_ns),
        service_p99_ns=max(1, slow_ns - base_ns),
        mtu_bytes=min(mtus, default=4096),
        command_cpu_ns=cpu_ns_of(light.results.values()),
        cores=cores,
        fan_in=max(1, *(len(_targets(job)) for job in jobs.values())),
        receivers=max(len(_reading(one.jobs)) for one in expansion.rounds),
        chunk_bytes=phase.size_bytes,
        requests=max(_open_requests(job) for job in jobs.values()),
        sqsize=min(127, max(1, min(one.depth for one in grants))),
        queues_max=min(one.queues for one in grants),
        buffer=buffer_at(fabric, asked.plan, receiver.name),
    )
    space = space_of(grants, phase.size_bytes, is_gentle=asked.options.gentle)
    return MeasuredPath(model, space, (*notes, *told))


def space_of(grants: tuple[Description, ...], size_bytes: int, *, is_gentle: bool = False) -> Space:
    """Returns the knobs to search: what all targets grant, and no transfer longer than a request."""
    most = min(one.mdts_bytes or MIB for one in grants)
    longest = SECTOR_BYTES
    while 2 * longest <= min(most, MIB) and longest < size_bytes:
        longest *= 2
    queues, depth = (_GENTLE_QUEUES, _GENTLE_DEPTH) if is_gentle else (_MOST_QUEUES, _MOST_DEPTH)
    return Space.between(
        queues=min(queues, *(one.queues for one in grants)),
        depth=min(depth, *(one.depth for one in grants)),
        mdts_bytes=longest,
    )


def buffer_at(fabric: Fabric, plan: FabricPlan, host: str) -> Buffer | None:
    """Returns the shared buffer of the switch before the host, None where its size is not planned in bytes."""
    found = next((one for one in fabric.hosts if one.name == host), None)
    peer = next((nic.peer for nic in found.nics if nic.peer is not None), None) if found is not None else None
    switch = None if peer is None else plan.switch(peer.device)
    if found is None or peer is None or switch is None:
        return None
    sizes = [one.size_bytes for one in switch.qos.pools if one.direction in ("ingress", "both")]
    total = max((one for one in sizes if one is not UNKNOWN), default=0)
    if not total:
        return None
    shift = found.policy.alpha_log2
    return Buffer(
        total_bytes=total,
        headroom_sum_bytes=_headroom_bytes(switch),
        threshold_shift=3 if shift is None or shift > 0 else -shift,
        kmin_bytes=_kmin_bytes(switch, peer.port),
    )


def _headroom_bytes(switch: SwitchPlan) -> int:
    sizes = [(len(one.ports), one.headroom.size_bytes) for one in switch.headroom]
    return sum(ports * size for ports, size in sizes if size is not UNKNOWN)


def _kmin_bytes(switch: SwitchPlan, port: str) -> int | None:
    found = next((one for one in switch.qos.ports if one.name == port), None)
    curves = [queue.aqm for queue in found.queues if isinstance(queue.aqm, Aqm)] if found is not None else []
    begins = [one.kmin.size_bytes for one in curves if one.kmin is not UNKNOWN]
    return min((one for one in begins if one is not UNKNOWN), default=None)


def _reading(jobs: Mapping[str, Job]) -> dict[str, Job]:
    """The jobs without lossy traffic; senders of it alone are left out."""
    own = {name: bulk_free(job) for name, job in jobs.items()}
    return {name: job for name, job in own.items() if job.streams}


def _light(job: Job) -> Job:
    """One read at a time of one sector, over each stream."""
    streams = tuple(replace(one, policy=_LIGHT) for one in job.streams)
    return replace(
        job, name="light", streams=streams, size_bytes=SECTOR_BYTES, readers=1, write_share=0.0, on_ns=0, off_ns=0,
        seconds=_LIGHT_S, check=False,
    )  # fmt: skip


def _latencies(results: Mapping[str, JobResult]) -> tuple[int, int]:
    rows = [one for result in results.values() for one in result.streams]
    halves = [one.p50_ns for one in rows if one.p50_ns is not None]
    slow = [one.p99_ns for one in rows if one.p99_ns is not None]
    if not halves:
        said = next((one.first_error for one in rows if one.first_error), "")
        raise HostError("no light read came back", found=said, remedy="Check targets with `fabricctl nvme id`.")
    return round(fmean(halves)), max(slow)


def _grants(setting: Setting, jobs: Mapping[str, Job], cores: int) -> tuple[Description, ...]:
    """What every target grants to a host that asks for much; each queue that is granted is opened, which takes time."""
    is_gentle = setting.asked.options.gentle
    most = min(_MOST_QUEUES, max(_LEAST_QUEUES, _QUEUES_A_CORE * cores))
    queues, depth = (_GENTLE_QUEUES, _GENTLE_DEPTH) if is_gentle else (most, _MOST_DEPTH)
    asking = ShardPolicy(queues=queues, depth=depth)
    found: list[Description] = []
    for index in range(max(len(job.streams) for job in jobs.values())):
        turn = {name: job.streams[index] for name, job in jobs.items() if index < len(job.streams)}
        told = setting.agents.describe({name: replace(one, policy=asking) for name, one in turn.items()})
        for error in told.errors.values():
            raise error
        found += told.results.values()
    return tuple(found)


def _targets(job: Job) -> set[str]:
    return {one.name.partition("/")[0] for one in job.streams}


def _open_requests(job: Job) -> int:
    """The requests that a host has open at a time, as if each target had as many streams as the one with the most."""
    streams = Counter(one.name.partition("/")[0] for one in job.streams)
    return job.readers * max(streams.values()) * len(streams)


def _round_trip(setting: Setting, jobs: Mapping[str, Job]) -> tuple[int, tuple[str, ...]]:
    """The least round trip that a host's `ping` saw, 0 where none did."""
    machines = [one for one in setting.asked.machines if one.name in jobs]
    addresses = {name: found[1] for name, job in jobs.items() if (found := _ADDRESS.search(job.streams[0].name))}

    def ping(name: str) -> tuple[str, ...]:
        return ("ping", "-n", "-q", "-c", str(_PINGS), "-i", "0.2", "-W", "1", addresses[name])

    told = setting.ways.each(
        [one for one in machines if one.name in addresses],
        lambda machine, way: way.executor.run(ping(machine.name)).stdout,
        failed=lambda _machine, _why: "",
    )
    least = [round(float(match[1]) * 1e6) for text in told if (match := _RTT.search(text))]
    if least:
        return max(1, min(least)), ()
    return 0, ("no host could ping a target: round trip and service are not told apart",)


def _cores(setting: Setting, names: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    machines = [one for one in setting.asked.machines if one.name in names]
    told = setting.ways.each(
        machines, lambda _, way: way.executor.run(("nproc",)).stdout.strip(), failed=lambda _machine, _why: ""
    )
    counts = [int(one) for one in told if one.isdecimal() and int(one)]
    if counts:
        return min(counts), ()
    return _CORES, (f"no host says how many cores it has: {_CORES} are taken",)
