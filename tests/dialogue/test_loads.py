"""A load profile end to end, without VMs: two hosts over SSH, two targets over NVMe/TCP, all on loopback."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fabric.engine.client import TargetSpec, soft_target
from fabric.intent import Fabric, Loaded
from fabric.intent.model import Host, HostNic, Namespace, NvmePort, NvmeTarget, Subsystem
from fabric.lab.alarms import WallClock
from fabric.observe import Recorder
from fabric.plan import make_plan
from fabric.workflow import Environment
from fabric.workflow.agents import Agents, open_agents
from fabric.workflow.expanding import Expansion, Scratch, Wishes, expand, volume_streams
from fabric.workflow.loads import Background, LoadProfile, Pattern, Phase
from fabric.workflow.subjects import capabilities_of
from tests.dialogue.shell_server import shell_server
from tests.unit.engine.load.test_bulk import free_port

MIB = 1 << 20
NQNS = ("nqn.2026-01.example:kv1", "nqn.2026-01.example:kv2")
SCRATCH_BYTES = 8 * MIB


@contextmanager
def target(path: Path, nqn: str, name: str) -> Iterator[NvmeTarget]:
    done = threading.Event()
    with soft_target(TargetSpec(SCRATCH_BYTES, path, nqn)) as served:
        thread = threading.Thread(target=served.serve, args=(WallClock(), done.is_set))
        thread.start()
        try:
            port = NvmePort("127.0.0.1", served.server.port)
            yield NvmeTarget(name, (), (Subsystem(nqn, (Namespace(1),)),), (port,))
        finally:
            done.set()
            thread.join(20)


@pytest.fixture(name="fabric")
def _fabric(tmp_path: Path) -> Iterator[Fabric]:
    with ExitStack() as stack:
        targets = [stack.enter_context(target(tmp_path / nqn[-3:], nqn, nqn[-3:])) for nqn in NQNS]
        hosts = (
            Host(f"gpu{at}", (HostNic("lo", "generic", 10_000, 9000, (f"127.0.0.{at}/8",)),), connect=NQNS)
            for at in (1, 2)
        )
        yield Fabric("loopback", (), tuple(hosts), tuple(targets))


@pytest.fixture(name="agents")
def _agents(tmp_path: Path, fabric: Fabric, recorder: Recorder) -> Iterator[Agents]:
    with shell_server(tmp_path) as server:
        loaded = Loaded(fabric, {one.name: server.access(one.name) for one in fabric.hosts})
        with open_agents(loaded, tuple(loaded.access), Environment(observer=recorder)) as agents:
            assert agents.errors == {}
            yield agents


@pytest.fixture(name="recorder")
def _recorder() -> Recorder:
    return Recorder()


def expanded(fabric: Fabric, agents: Agents, profile: LoadProfile) -> Expansion:
    """Returns the jobs, over namespaces whose size the targets have told."""
    plan = make_plan(fabric, capabilities_of)
    asked = volume_streams(fabric, plan, [(nqn, 1) for nqn in NQNS], transport="tcp", wishes=Wishes())
    scratch = []
    for nqn, (host, stream) in zip(NQNS, asked, strict=True):
        told = agents.describe({host: stream}).results[host]
        assert told.target == nqn
        scratch.append(Scratch(nqn, told.nsid, told.block_bytes, told.blocks))
    return expand(profile, fabric, plan, scratch, run_id=99)


def test_prepared_loaded_mixed_and_isolated_without_a_flaw_until_there_is_one(
    fabric: Fabric, agents: Agents, recorder: Recorder, tmp_path: Path
) -> None:
    beside = Background(1, 0, free_port())
    phases = (
        Phase("mixed", Pattern.ALL, 16384, 2, 1, write_percent=20),
        Phase("isolation", Pattern.ALL, 16384, 2, 1, background=beside),
        Phase("incast", Pattern.INCAST, 65536, 2, 1),
    )
    found = expanded(fabric, agents, LoadProfile("p", "", "tcp", SCRATCH_BYTES, phases))
    prepared = agents.prepare(found.preparations)
    assert prepared.errors == {}
    assert sum(prepared.results.values()) == 2 * SCRATCH_BYTES
    for one in found.rounds[:2]:
        answers = agents.run(one.jobs, lead_s=1.0)
        assert answers.errors == {}
        starts = [result.started_unix_s for result in answers.results.values()]
        assert max(starts) - min(starts) < 0.5
        for stream in (row for result in answers.results.values() for row in result.streams):
            assert (stream.errors, stream.flaw_count, stream.first_error) == ((), 0, ""), (one.name, stream.name)
            assert stream.bytes_read + stream.bytes_written > 0, (one.name, stream.name)
    said = {event.message for event in recorder.events if event.name == "load.said.progress"}
    assert f"listens on 127.0.0.1 port {beside.port}, for 127.0.0.2 only, until the job ends" in said
    with (tmp_path / "kv2").open("r+b") as file:
        file.write(bytes(SCRATCH_BYTES // 2))  # every sector that is only read, lost
    streams = agents.run(found.rounds[2].jobs, lead_s=1.0).results["gpu1"].streams
    assert {one.name.partition("/")[0]: one.flaw_count > 0 for one in streams} == {"kv1": False, "kv2": True}
