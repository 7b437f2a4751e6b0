"""Host keys over real SSH, for switches, for hosts through Ansible and for the load's agents: unknown and changed."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabric.errors import AuthError
from fabric.intent import Fabric, Loaded
from fabric.observe import Recorder
from fabric.remote.ansible import run_playbook
from fabric.remote.hostkeys import host_key_refusal
from fabric.workflow import Environment
from fabric.workflow.agents import open_agents
from tests.dialogue.shell_server import ShellServer, shell_server
from tests.dialogue.test_remote_ssh import new_key

PLAY = "- {hosts: gpu1, gather_facts: false, tasks: [{ansible.builtin.raw: 'true'}]}\n"


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Iterator[ShellServer]:
    with shell_server(tmp_path, {"PATH": "/usr/bin:/bin"}) as server:
        yield server


def changed(server: ShellServer) -> None:
    key = new_key()
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {key.get_name()} {key.get_base64()}\n")


def agent_error(server: ShellServer) -> AuthError:
    loaded = Loaded(Fabric("f", ()), {"gpu1": server.access("gpu1")})
    with open_agents(loaded, ("gpu1",), Environment(observer=Recorder())) as agents:
        assert agents.alive == ()
        error = agents.errors["gpu1"]
    assert isinstance(error, AuthError)
    return error


def ansible_reason(server: ShellServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "play.yml").write_text(PLAY)
    options = f"-o UserKnownHostsFile={server.known_hosts} -o GlobalKnownHostsFile=/dev/null"
    row = f"ansible_host: 127.0.0.1, ansible_port: {server.port}, ansible_user: root, ansible_password: right"
    (folder / "hosts.yml").write_text(f"all: {{hosts: {{gpu1: {{{row}, ansible_ssh_common_args: '{options}'}}}}}}\n")
    monkeypatch.delenv("ANSIBLE_SSH_EXTRA_ARGS", raising=False)
    ended = run_playbook(folder / "play.yml", sources=(folder / "hosts.yml",))
    assert ended.unreachable == ("gpu1",)
    return ended.reasons["gpu1"]


def test_an_unknown_key_is_refused_with_the_command_that_accepts(
    server: ShellServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.known_hosts.write_text("")
    error = agent_error(server)
    assert "is unknown" in error.what
    assert "SHA256:" in error.found
    assert f"ssh-keyscan -p {server.port} 127.0.0.1 >> {server.known_hosts}" in error.remedy

    said = ansible_reason(server, tmp_path, monkeypatch)
    assert f"the SSH host key of 127.0.0.1 port {server.port} is unknown" in said
    assert f"ssh-keyscan -p {server.port} 127.0.0.1 >> {server.known_hosts}" in said
    assert server.commands == [], "nothing was run there"


def test_a_changed_key_is_refused_with_both_fingerprints(
    server: ShellServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(server)
    error = agent_error(server)
    assert "has CHANGED" in error.what
    assert error.found != error.expected
    assert error.found.startswith("ssh-ed25519 SHA256:")
    assert error.expected.startswith("ssh-ed25519 SHA256:")

    said = ansible_reason(server, tmp_path, monkeypatch)
    assert "has CHANGED" in said
    assert error.expected in said
    assert error.found.split()[1] in said
    assert f"ssh-keygen -R '[127.0.0.1]:{server.port}' -f {server.known_hosts}" in said
    assert "ssh-keyscan" not in said
    assert server.commands == []


def test_the_command_that_accepts_does_accept(server: ShellServer) -> None:
    server.known_hosts.write_text("")
    command = agent_error(server).remedy.rpartition("accept it: ")[2].rstrip(".")
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)

    loaded = Loaded(Fabric("f", ()), {"gpu1": server.access("gpu1")})
    with open_agents(loaded, ("gpu1",), Environment(observer=Recorder())) as agents:
        assert not isinstance(agents.errors.get("gpu1"), AuthError)
    assert sys.executable


def test_other_words_are_left_alone() -> None:
    assert host_key_refusal("Permission denied (publickey,password).", "gpu1") is None
    plain = host_key_refusal(
        "No ED25519 host key is known for gpu1.example.net and you have requested strict checking.", "g"
    )
    assert plain is not None
    assert "ssh-keyscan -p 22 gpu1.example.net >> ~/.ssh/known_hosts" in plain.remedy
