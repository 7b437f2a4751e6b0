"""The executor over real SSH: actions on real files behind a server that runs each command in a shell, as sshd does."""

import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from fabric.errors import HostError
from fabric.host import PutFile, SshExecutor, changed_files, perform_all, restoring, standing
from fabric.host.actions import Write
from fabric.lab.alarms import WallClock
from fabric.remote.ssh import SshClient, SshTarget
from tests.dialogue.test_remote_ssh import new_key
from tests.unit.host.test_executor import check, folder_actions


class _Shell(paramiko.ServerInterface):
    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def get_allowed_auths(self, username: str) -> str:
        del username
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        del username
        return paramiko.common.AUTH_SUCCESSFUL if password == "right" else paramiko.common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        del kind, chanid
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        thread = threading.Thread(target=self._execute, args=(channel, command))
        self.threads.append(thread)
        thread.start()
        return True

    def _execute(self, channel: paramiko.Channel, command: bytes) -> None:
        done = subprocess.run(
            ["sh", "-c", command], input=channel.makefile("rb").read(), capture_output=True, check=False, timeout=20
        )
        channel.sendall(done.stdout)
        channel.sendall_stderr(done.stderr)
        channel.send_exit_status(done.returncode)
        channel.close()


@pytest.fixture(name="executor")
def _executor(tmp_path: Path) -> Iterator[SshExecutor]:
    key, server = new_key(), _Shell()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        known = tmp_path / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
        target = SshTarget("gpu1", "127.0.0.1", port, "root", "right", known_hosts=known)
        transports: list[paramiko.Transport] = []

        def accept() -> None:
            connection, _ = listening.accept()
            transport = paramiko.Transport(connection)
            transport.add_server_key(key)
            transport.start_server(server=server)
            transports.append(transport)

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        client = SshClient(target, clock=WallClock())
        client.open()
        acceptor.join(10)
        try:
            yield SshExecutor(client, "gpu1")
        finally:
            client.close()
            for thread in server.threads:
                thread.join(10)
            for transport in transports:
                transport.close()


def test_actions_over_ssh_twice(executor: SshExecutor, tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "value").write_text("0\n")
    for _ in range(2):
        perform_all(executor, folder_actions(base), host="gpu1")
        check(base)


def test_files_over_ssh_with_their_way_back(executor: SshExecutor, tmp_path: Path) -> None:
    path = tmp_path / "etc" / "it's a $file.json"
    files = (PutFile(str(path), 'DHHC-1:"secret"\n', mode=0o600),)
    changes = changed_files(files, standing([one.path for one in files], executor))
    perform_all(executor, (one.after for one in changes), host="gpu1")
    assert path.read_text() == 'DHHC-1:"secret"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert changed_files(files, standing([one.path for one in files], executor)) == ()
    perform_all(executor, restoring(changes), host="gpu1")
    assert not path.exists()


def test_write_over_ssh_makes_no_file(executor: SshExecutor, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="could not write '104'"):
        perform_all(executor, (Write(f"{tmp_path}/default_roce_tos", "104"),), host="gpu1")
    assert not (tmp_path / "default_roce_tos").exists()
