"""Serving: many fronts in one process, the files for clients, and a stop that leaves nothing behind."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import paramiko
import pytest
import yaml

from fabric.lab import DeviceSpec, Fault, FaultKind, Fronts, serve
from fabric.observe import Recorder

pytestmark = pytest.mark.traces_processes

SEED = "hostname leaf\n"
ROOT = Path(__file__).resolve().parents[2]


def client(fronts: Fronts, name: str) -> paramiko.SSHClient:
    front = fronts[name]
    ssh = paramiko.SSHClient()
    ssh.load_host_keys(str(fronts.known_hosts))
    ssh.connect(
        front.host,
        port=front.port,
        username=front.username,
        password=front.password,
        look_for_keys=False,
        allow_agent=False,
    )
    return ssh


def test_many_fronts_live_in_one_process_and_leave_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    specs = [DeviceSpec(f"leaf{number}", "eos", SEED) for number in range(8)]
    specs += [DeviceSpec(f"spine{number}", "sonic", "{}") for number in range(8)]
    with serve(specs, directory=tmp_path) as fronts:
        assert len({front.port for front in fronts.values()}) == len(fronts) == 16
        clients = [client(fronts, name) for name in fronts]
        assert all(front.connections() == 1 for front in fronts.values())
        clients[0].invoke_shell()
        ports = [front.port for front in fronts.values()]
        own = [one.get_transport() for one in clients]
    for transport in own:
        assert transport is not None
        transport.join(5)
    for one in clients:
        one.close()
    assert set(threading.enumerate()) - before == set()
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_passwords_are_drawn_and_files_are_private(tmp_path: Path) -> None:
    specs = [DeviceSpec("a", "eos", SEED), DeviceSpec("b", "eos", SEED), DeviceSpec("c", "eos", SEED, password="given")]
    with serve(specs, directory=tmp_path) as fronts:
        passwords = {front.password for front in fronts.values()}
        assert len(passwords) == 3
        assert "given" in passwords
        assert fronts["a"].password not in repr(fronts["a"])
        for path in (fronts.known_hosts, tmp_path / "inventory.yml"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_inventory_overlay_tells_how_to_reach_every_device(tmp_path: Path) -> None:
    with serve([DeviceSpec("leaf-1", "eos", SEED)], directory=tmp_path) as fronts:
        hosts = yaml.safe_load(fronts.inventory())["all"]["hosts"]
        assert hosts == {
            "leaf-1": {
                "ansible_host": "127.0.0.1",
                "ansible_port": fronts["leaf-1"].port,
                "ansible_user": "admin",
                "ansible_password": fronts["leaf-1"].password,
                "fabric_known_hosts": str(fronts.known_hosts),
            }
        }
        assert (tmp_path / "inventory.yml").read_text() == fronts.inventory()


def test_known_hosts_has_every_key_of_every_front(tmp_path: Path) -> None:
    with serve([DeviceSpec("a", "eos", SEED), DeviceSpec("b", "eos", SEED)], directory=tmp_path) as fronts:
        lines = fronts.known_hosts.read_text().splitlines()
        assert lines == [*fronts["a"].host_key_lines(), *fronts["b"].host_key_lines()]
        assert lines[0] == fronts["a"].host_key_line
        assert lines[0].startswith(f"[127.0.0.1]:{fronts['a'].port} ssh-ed25519 ")
        assert {line.split()[1] for line in lines} == {"ssh-ed25519", "ssh-rsa"}


def test_restart_keeps_port_and_configuration(tmp_path: Path) -> None:
    with serve([DeviceSpec("a", "eos", SEED)], directory=tmp_path) as fronts:
        port, running = fronts["a"].port, fronts["a"].running()
        ssh = client(fronts, "a")
        fronts["a"].restart()
        transport = ssh.get_transport()
        assert transport is not None
        transport.join(5)
        assert not transport.is_active()
        ssh.close()
        client(fronts, "a").close()
        assert (fronts["a"].port, fronts["a"].running()) == (port, running)


def test_host_key_fault_changes_the_keys_at_the_next_restart(tmp_path: Path) -> None:
    spec = DeviceSpec("a", "eos", SEED, faults=(Fault(FaultKind.NEW_HOST_KEY, times=1),))
    with serve([spec], directory=tmp_path) as fronts:
        client(fronts, "a").close()
        fronts["a"].restart()
        with pytest.raises(paramiko.BadHostKeyException):
            client(fronts, "a")


def test_other_channels_and_subsystems_are_refused(tmp_path: Path) -> None:
    with serve([DeviceSpec("a", "eos", SEED)], directory=tmp_path) as fronts:
        ssh = client(fronts, "a")
        transport = ssh.get_transport()
        assert transport is not None
        with pytest.raises(paramiko.ChannelException):
            transport.open_channel("direct-tcpip", ("127.0.0.1", 1), ("127.0.0.1", 2))
        with pytest.raises(paramiko.SSHException):
            ssh.open_sftp()
        ssh.close()


def test_peer_that_speaks_no_ssh_harms_nobody(tmp_path: Path) -> None:
    with serve([DeviceSpec("a", "eos", SEED)], directory=tmp_path) as fronts:
        with socket.create_connection(("127.0.0.1", fronts["a"].port)) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        client(fronts, "a").close()


def test_observer_hears_of_fronts_and_commands_but_not_of_their_content(tmp_path: Path) -> None:
    recorder = Recorder()
    with serve([DeviceSpec("a", "eos", SEED)], directory=tmp_path, observer=recorder) as fronts:
        ssh = client(fronts, "a")
        ssh.exec_command("show canary")[1].read()
        ssh.close()
    assert [event.name for event in recorder.events] == ["lab.front.started", "lab.command.started"]
    assert "canary" not in repr(recorder.events)


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_program_serves_until_it_is_told_to_stop(how: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps([{"name": "a", "nos": "eos", "config": SEED, "password": "given"}]))
    command = [sys.executable, "-m", "fabric.lab", str(spec), "--directory", str(tmp_path / "run")]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        overlay = Path(process.stdout.readline().strip())
        host = yaml.safe_load(overlay.read_text())["all"]["hosts"]["a"]
        with socket.create_connection((host["ansible_host"], host["ansible_port"])) as raw:
            assert raw.recv(8).startswith(b"SSH-2.0")
        if how == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        assert process.wait(20) == 0


TOLD_AT_ONCE = """
import os, signal, sys
from fabric.lab.__main__ import main

class Out:
    def write(self, text):
        os.kill(os.getpid(), signal.SIGTERM)

    def flush(self):
        pass

sys.stdout = Out()
sys.exit(main(sys.argv[1:]))
"""


def test_program_told_to_stop_as_it_says_that_it_serves_stops_in_order(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps([{"name": "a", "nos": "eos", "config": SEED, "password": "given"}]))
    command = [sys.executable, "-c", TOLD_AT_ONCE, str(spec), "--directory", str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        assert process.wait(60) == 0
