"""From a profile to jobs: right ports, right type of service, and no two writers at one block."""

from dataclasses import replace
from itertools import pairwise

import pytest

from fabric.engine.load import Job, checked_job
from fabric.engine.load.bulk import bulk_address
from fabric.errors import PlanError
from fabric.intent import Fabric
from fabric.intent.model import Host, HostNic, Namespace, NvmePort, NvmeTarget, Subsystem
from fabric.plan import FabricPlan, make_plan
from fabric.policy import ShardPolicy
from fabric.workflow.expanding import Expansion, Scratch, Wishes, expand, volume_streams
from fabric.workflow.loads import Background, Burst, LoadProfile, Pattern, Phase, load_profile, profile_names
from fabric.workflow.subjects import capabilities_of

MIB = 1 << 20
NQNS = ("nqn.2026-01.example:kv1", "nqn.2026-01.example:kv2")


def nics(number: int, *, rails: int = 2) -> tuple[HostNic, ...]:
    return tuple(
        HostNic(f"ens{rail}", "mlx5", 100_000, 9000, (f"10.{rail}.0.{number}/24",)) for rail in range(1, rails + 1)
    )


def target(name: str, number: int, nqn: str, *, managed: bool = False) -> NvmeTarget:
    return NvmeTarget(
        name,
        nics(number),
        (Subsystem(nqn, (Namespace(1), Namespace(2))),),
        (NvmePort(f"10.1.0.{number}"), NvmePort(f"10.2.0.{number}", 4421)),
        managed=managed,
    )


def fabric_of(hosts: int = 3, *, managed_targets: bool = False) -> Fabric:
    return Fabric(
        "f",
        (),
        tuple(Host(f"gpu{number}", nics(10 + number), connect=NQNS) for number in range(1, hosts + 1)),
        tuple(target(f"kv{at}", 30 + at, nqn, managed=managed_targets) for at, nqn in enumerate(NQNS, 1)),
    )


def plan_of(fabric: Fabric) -> FabricPlan:
    return make_plan(fabric, capabilities_of)


SCRATCH = tuple(Scratch(nqn, 1, 512, 1 << 21) for nqn in NQNS)  # 1 GiB each


def profile(phase: Phase, *more: Phase, transport: str = "rdma", span: int = 1 << 30) -> LoadProfile:
    return LoadProfile("p", "", transport, span, (phase, *more))


def phase(pattern: Pattern, name: str = "x") -> Phase:
    return Phase(name, pattern, MIB, 4, 10)


def expanded(wanted: LoadProfile, fabric: Fabric | None = None) -> Expansion:
    fabric = fabric or fabric_of()
    return expand(wanted, fabric, plan_of(fabric), SCRATCH, run_id=7)


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_that_comes_along_becomes_jobs_that_can_be_run(name: str) -> None:
    found = expanded(load_profile(name))
    jobs = [job for one in found.rounds for job in one.jobs.values()]
    assert jobs
    assert all(checked_job(job) is job for job in jobs)
    assert set(found.machines) >= {host for one in found.rounds for host in one.jobs}


def test_a_stream_names_port_subsystem_and_type_of_service() -> None:
    fabric = fabric_of()
    wishes = Wishes({"gpu1": ShardPolicy(queues=9)}, {"gpu1": "nqn.2014-08.org.nvmexpress:uuid:1"})
    found = expand(profile(phase(Pattern.ALL)), fabric, plan_of(fabric), SCRATCH, run_id=7, wishes=wishes)
    first = found.rounds[0].jobs["gpu1"].streams[1]
    assert first.name == "kv1/1@10.2.0.31:4421"
    assert first.url == (
        "nvme+rdma://10.2.0.31:4421/nqn.2026-01.example:kv1?nsid=1&hostnqn=nqn.2014-08.org.nvmexpress%3Auuid%3A1"
    )
    assert first.tos == plan_of(fabric).hosts[0].nics[1].tos
    assert first.tos is not None
    assert first.tos >> 2 == 26
    assert first.policy.queues == 9
    assert found.rounds[0].jobs["gpu2"].streams[0].policy == ShardPolicy()


def test_ports_on_no_common_network_are_all_taken() -> None:
    fabric = fabric_of()
    far = replace(fabric.hosts[0], nics=(HostNic("e", "mlx5", 100_000, 9000, ("172.16.0.1/24",)),))
    found = expanded(profile(phase(Pattern.ALL)), replace(fabric, hosts=(far,)))
    assert len(found.rounds[0].jobs["gpu1"].streams) == 4


def names(job: Job) -> set[str]:
    return {one.name.partition("/")[0] for one in job.streams}


def test_patterns() -> None:
    (all_to_all,) = expanded(profile(phase(Pattern.ALL))).rounds
    assert {host: names(job) for host, job in all_to_all.jobs.items()} == {
        f"gpu{number}": {"kv1", "kv2"} for number in (1, 2, 3)
    }
    (incast,) = expanded(profile(phase(Pattern.INCAST))).rounds
    assert {host: names(job) for host, job in incast.jobs.items()} == {"gpu1": {"kv1", "kv2"}}
    turns = expanded(profile(replace(phase(Pattern.INCAST), is_rotating=True))).rounds
    assert [(one.name, set(one.jobs)) for one in turns] == [(f"x-gpu{at}", {f"gpu{at}"}) for at in (1, 2, 3)]
    (outcast,) = expanded(profile(phase(Pattern.OUTCAST))).rounds
    assert {host: names(job) for host, job in outcast.jobs.items()} == {f"gpu{at}": {"kv1"} for at in (1, 2, 3)}
    (pairs,) = expanded(profile(phase(Pattern.PAIRWISE))).rounds
    assert [names(job) for job in pairs.jobs.values()] == [{"kv1"}, {"kv2"}, {"kv1"}]


def test_each_namespace_is_prepared_once_with_consent_and_as_far_as_the_span() -> None:
    found = expanded(profile(phase(Pattern.ALL), span=64 * MIB)).preparations
    assert [(host, one.stream.name) for host, one in found] == [
        ("gpu1", "kv1/1@10.1.0.31:4420"),
        ("gpu2", "kv2/1@10.1.0.32:4420"),
    ]
    assert {(one.region.first_lba, one.region.blocks * 512, one.run_id, one.consent) for _host, one in found} == {
        (0, 64 * MIB, 7, True)
    }


def test_what_is_written_lies_apart_from_what_is_read_and_from_other_writers() -> None:
    writing = replace(phase(Pattern.ALL, "w"), write_percent=20)
    read, write = expanded(profile(phase(Pattern.ALL), writing)).rounds
    spans = [read.jobs["gpu1"].region, *(job.region for job in write.jobs.values())]
    assert {job.region for job in read.jobs.values()} == {spans[0]}
    spans.sort(key=lambda one: one.first_lba)
    for one, two in pairwise(spans):
        assert one.first_lba + one.blocks <= two.first_lba
    assert all(one.first_lba * 512 % 4096 == 0 for one in spans)
    assert spans[-1].first_lba + spans[-1].blocks <= 1 << 21
    assert write.jobs["gpu1"].write_share == 0.2


def test_a_burst_lasts_as_long_as_the_link_needs_for_it() -> None:
    (made,) = expanded(profile(replace(phase(Pattern.INCAST), burst=Burst(64 * MIB, 80)))).rounds
    job = made.jobs["gpu1"]
    assert job.on_ns == 64 * MIB * 8 // 100  # 100 Gb/s: 100 bits a nanosecond
    assert job.off_ns == 4 * job.on_ns


def test_a_rate_is_bytes_of_a_host() -> None:
    (made,) = expanded(profile(replace(phase(Pattern.ALL), rate_mbps=400))).rounds
    assert {job.max_bytes_per_s for job in made.jobs.values()} == {50_000_000}


def test_lossy_traffic_comes_from_another_machine_to_each_that_reads() -> None:
    wanted = profile(replace(phase(Pattern.ALL), background=Background(4, 0, 47100)))
    (made,) = expanded(wanted).rounds
    ends = {
        (host, one.name): address
        for host, job in made.jobs.items()
        for one in job.streams
        if (address := bulk_address(one.url)) is not None
    }
    listening = {address.port: (host, address) for (host, _name), address in ends.items() if address.is_listener}
    sending = {address.port: (host, address) for (host, _name), address in ends.items() if not address.is_listener}
    assert {host for host, _one in listening.values()} == {"gpu1", "gpu2", "gpu3"}
    for port, (receiver, sink) in listening.items():
        sender, source = sending[port]
        assert sender != receiver
        assert (source.host, source.peer) == (sink.host, sink.peer)
    assert all(one.tos == 0 for job in made.jobs.values() for one in job.streams if one.url.startswith("tcp-"))


def test_one_host_gets_it_from_a_target_that_may_be_logged_in_to() -> None:
    wanted = profile(replace(phase(Pattern.ALL), background=Background(4, 0, 47100)))
    found = expanded(wanted, fabric_of(1, managed_targets=True))
    assert set(found.rounds[0].jobs) == {"gpu1", "kv1"}
    assert found.machines == ("gpu1", "kv1")
    with pytest.raises(PlanError, match="no other managed machine"):
        expanded(wanted, fabric_of(1))


def test_hosts_that_are_not_managed_or_reach_nothing_are_left_out() -> None:
    fabric = fabric_of()
    one, two, three = fabric.hosts
    fabric = replace(fabric, hosts=(one, replace(two, managed=False), replace(three, connect=())))
    found = expanded(profile(phase(Pattern.ALL)), fabric)
    assert set(found.rounds[0].jobs) == {"gpu1"}
    assert found.left_out == (("gpu3", "it connects to no scratch"),)
    only = expand(profile(phase(Pattern.ALL)), fabric_of(), plan_of(fabric), SCRATCH, run_id=7, hosts=["gpu2"])
    assert set(only.rounds[0].jobs) == {"gpu2"}


def test_what_cannot_be_is_told() -> None:
    fabric = fabric_of()
    plan = plan_of(fabric)
    with pytest.raises(PlanError, match="no target has this namespace"):
        expand(profile(phase(Pattern.ALL)), fabric, plan, [Scratch(NQNS[0], 9, 512, 1)], run_id=1)
    mixed = [SCRATCH[0], replace(SCRATCH[1], block_bytes=4096)]
    with pytest.raises(PlanError, match="blocks of several sizes"):
        expand(profile(phase(Pattern.ALL)), fabric, plan, mixed, run_id=1)
    with pytest.raises(PlanError, match="holds no sector"):
        expand(profile(phase(Pattern.ALL)), fabric, plan, [replace(SCRATCH[0], blocks=7)], run_id=1)
    small = replace(phase(Pattern.ALL), write_percent=1)
    with pytest.raises(PlanError, match="too small for this phase"):
        expand(profile(small, span=16 * MIB), fabric, plan, SCRATCH, run_id=1)
    with pytest.raises(PlanError, match="no host reads from any scratch"):
        expand(profile(phase(Pattern.ALL)), fabric, plan, [], run_id=1)


def test_each_volume_is_asked_for_its_size_through_a_host_that_connects() -> None:
    fabric = fabric_of()
    (found,) = volume_streams(fabric, plan_of(fabric), [(NQNS[1], 2)], transport="tcp", wishes=Wishes())
    assert (found[0], found[1].url) == ("gpu1", f"nvme+tcp://10.1.0.32:4420/{NQNS[1]}?nsid=2")
    nobody = replace(fabric, hosts=())
    with pytest.raises(PlanError, match="no managed host connects"):
        volume_streams(nobody, plan_of(fabric), [(NQNS[1], 2)], transport="tcp", wishes=Wishes())
