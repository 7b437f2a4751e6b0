"""Agents over real SSH: they run with the host's own Python, answer, and leave nothing behind, whatever happens."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.engine.load import Job, Region, Stream
from fabric.errors import ConnectError, HostError
from fabric.intent import DeviceAccess, Fabric, Loaded
from fabric.observe import Event, Recorder
from fabric.policy import ShardPolicy
from fabric.workflow import Environment
from fabric.workflow.agents import Agents, Preparation, open_agents
from tests.dialogue.shell_server import ShellServer, shell_server

MIB = 1 << 20


class Host:
    """A server with temporary and program folders of its own, and a disk."""

    def __init__(self, folder: Path) -> None:
        self.temporary, self.programs = folder / "tmp", folder / "bin"
        self.temporary.mkdir()
        self.programs.mkdir()
        self.disk = folder / "disk"
        self.disk.write_bytes(bytes(4 * MIB))
        self.environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "TMPDIR": str(self.temporary),
            "HOME": str(folder),
        }

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    @property
    def stream(self) -> Stream:
        return Stream("s1", f"file://{self.disk}", ShardPolicy(queues=1, depth=4))

    def job(self, seconds: float = 0.2) -> Job:
        return Job("a job", 5, 1, (self.stream,), 16384, 4, 0.0, 0, 0, None, seconds, Region(0, 1024), check=True)


@pytest.fixture(name="host")
def _host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture(name="server")
def _server(tmp_path: Path, host: Host) -> Iterator[ShellServer]:
    with shell_server(tmp_path, host.environment) as server:
        yield server


@pytest.fixture(name="recorder")
def _recorder() -> Recorder:
    return Recorder()


@contextmanager
def agents_on(access: Mapping[str, DeviceAccess], recorder: Recorder) -> Iterator[Agents]:
    loaded = Loaded(Fabric("f", ()), access)
    with open_agents(loaded, tuple(access), Environment(observer=recorder)) as agents:
        yield agents


def test_two_hosts_prepare_and_run_and_nothing_is_left(server: ShellServer, host: Host, recorder: Recorder) -> None:
    access = {name: server.access(name) for name in ("gpu1", "gpu2")}
    with agents_on(access, recorder) as agents:
        assert (agents.alive, agents.errors) == (("gpu1", "gpu2"), {})
        (one, two) = host.temporary.iterdir()
        assert {one.stat().st_mode & 0o777, two.stat().st_mode & 0o777} == {0o700}
        assert all(abs(offset) < 1 for offset in agents.offsets_s.values())  # one clock
        wanted = Preparation(host.stream, Region(0, 1024), 5, consent=True)
        prepared = agents.prepare([("gpu1", wanted), ("gpu1", replace(wanted, region=Region(0, 8)))])
        assert prepared.errors == {}
        description = agents.describe({"gpu1": host.stream}).results["gpu1"]
        assert prepared.results["gpu1"] == 1032 * description.block_bytes
        assert description.blocks * description.block_bytes == 4 * MIB
        start = time.time() + 0.5
        found = agents.run({name: host.job(1.5) for name in access}, lead_s=0.5)
        assert found.errors == {}
        for result in found.results.values():
            assert result.started_unix_s == pytest.approx(start, abs=0.3)
            assert result.is_complete
            assert result.streams[0].reads > 0
            assert (result.streams[0].errors, result.streams[0].flaw_count) == ((), 0)
    assert list(host.temporary.iterdir()) == []
    assert {event.device for event in recorder.events if event.name == "load.progress"} == {"gpu1", "gpu2"}
    assert all(process.poll() == 0 for process in server.running)


def test_one_that_cannot_be_reached_stops_no_other(server: ShellServer, host: Host, recorder: Recorder) -> None:
    good = server.access("gpu1")
    access = {"gpu1": good, "gpu2": replace(good, device="gpu2", port=1), "gpu3": replace(good, password="wrong")}
    with agents_on(access, recorder) as agents:
        assert agents.alive == ("gpu1",)
        assert set(agents.errors) == {"gpu2", "gpu3"}
        found = agents.run({name: replace(host.job(), check=False) for name in access})
        assert set(found.results) == {"gpu1"}
        assert found.errors == agents.errors


def test_what_one_host_refuses_is_its_error_and_it_goes_on(server: ShellServer, host: Host, recorder: Recorder) -> None:
    with agents_on({"gpu1": server.access("gpu1")}, recorder) as agents:
        wanted = Preparation(host.stream, Region(0, 1024), 5, consent=False)
        refused = agents.prepare([("gpu1", wanted)])
        assert isinstance(refused.errors["gpu1"], HostError)
        assert "nobody said that this region may be overwritten" in refused.errors["gpu1"].what
        assert agents.alive == ("gpu1",)
        assert agents.prepare([("gpu1", replace(wanted, consent=True))]).errors == {}


def test_a_session_that_is_lost_leaves_neither_process_nor_folder(
    server: ShellServer, host: Host, recorder: Recorder
) -> None:
    def heard(event: Event) -> None:
        recorder(event)
        if event.name == "load.progress":
            threading.Thread(target=server.cut).start()

    loaded = Loaded(Fabric("f", ()), {"gpu1": server.access("gpu1")})
    with open_agents(loaded, ("gpu1",), Environment(observer=heard)) as agents:
        found = agents.run({"gpu1": replace(host.job(60.0), check=False)})
        assert isinstance(found.errors["gpu1"], ConnectError)
        assert "the session with the agent was lost" in found.errors["gpu1"].what
        assert agents.alive == ()
        assert set(agents.run({"gpu1": host.job()}).errors) == {"gpu1"}
    for process in server.running:
        process.wait(20)
    assert list(host.temporary.iterdir()) == []


def test_an_agent_that_is_killed_is_told_with_its_last_words(
    server: ShellServer, host: Host, recorder: Recorder
) -> None:
    host.program("python3", 'case "$*" in *version_info*) exit 0;; esac; echo "no memory" >&2; exit 9')
    with agents_on({"gpu1": server.access("gpu1")}, recorder) as agents:
        error = agents.errors["gpu1"]
        assert (error.what, error.found) == ("the agent ended with status 9", "no memory")
    assert list(host.temporary.iterdir()) == []


def test_an_old_python_is_told(server: ShellServer, host: Host, recorder: Recorder) -> None:
    host.program("python3", "exit 1")
    with agents_on({"gpu1": server.access("gpu1")}, recorder) as agents:
        assert agents.errors["gpu1"].found == "Python 3.11 or newer is missing"
    assert list(host.temporary.iterdir()) == []


def test_become_goes_through_sudo_which_may_not_ask(server: ShellServer, host: Host, recorder: Recorder) -> None:
    host.program("sudo", f'printf "%s\\n" "$1" > {host.programs}/asked; shift; exec "$@"')
    with agents_on({"gpu1": server.access("gpu1", become=True)}, recorder) as agents:
        assert agents.alive == ("gpu1",)
    assert (host.programs / "asked").read_text() == "-n\n"


def test_a_sudo_that_refuses_leaves_no_folder(server: ShellServer, host: Host, recorder: Recorder) -> None:
    host.program("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    with agents_on({"gpu1": server.access("gpu1", become=True)}, recorder) as agents:
        error = agents.errors["gpu1"]
        assert error.found == "sudo: a password is required"
        assert "sudo without a password" in error.remedy
    assert list(host.temporary.iterdir()) == []


def test_a_full_disk_is_told(server: ShellServer, host: Host, recorder: Recorder) -> None:
    host.program("tar", "echo 'tar: No space left on device' >&2; exit 2")
    with agents_on({"gpu1": server.access("gpu1")}, recorder) as agents:
        assert agents.errors["gpu1"].found == "tar: No space left on device"
    assert list(host.temporary.iterdir()) == []


def test_an_engine_is_run_from_its_own_folder_only(server: ShellServer, host: Host, recorder: Recorder) -> None:
    planted = Path(host.environment["HOME"]) / "fabric"
    planted.mkdir()
    (planted / "__init__.py").write_text("raise SystemExit('this is not the engine')")
    server.environment = {**host.environment, "PYTHONPATH": os.fspath(planted.parent)}
    with agents_on({"gpu1": server.access("gpu1")}, recorder) as agents:
        assert agents.alive == ("gpu1",)


def test_an_agent_that_says_nothing_is_given_up(server: ShellServer, host: Host, recorder: Recorder) -> None:
    ready = '{"event": "ready", "protocol": 1}'
    host.program(
        "python3", f"case \"$*\" in *version_info*) exit 0;; esac; echo '{ready}'; cat > {host.temporary}/said"
    )
    loaded = Loaded(Fabric("f", ()), {"gpu1": server.access("gpu1")})
    with open_agents(loaded, ("gpu1",), Environment(observer=recorder), patience_s=0.5) as agents:
        assert agents.alive == ()
        assert agents.errors["gpu1"].what == "the agent says nothing"
    assert '"ping"' in (host.temporary / "said").read_text()


def test_who_presses_ctrl_c_leaves_nothing_behind(server: ShellServer, host: Host) -> None:
    def heard(event: Event) -> None:
        if event.name == "load.progress":
            raise KeyboardInterrupt

    loaded = Loaded(Fabric("f", ()), {"gpu1": server.access("gpu1")})
    agents = open_agents(loaded, ("gpu1",), Environment(observer=heard))
    with pytest.raises(KeyboardInterrupt), agents as opened:
        opened.run({"gpu1": replace(host.job(60.0), check=False)})
    assert list(host.temporary.iterdir()) == []
    assert all(process.poll() == 0 for process in server.running)
