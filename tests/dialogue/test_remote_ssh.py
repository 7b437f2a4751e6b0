"""The SSH client against a server that misbehaves: what the lab's devices never do."""

import io
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from fabric.errors import AuthError, ConnectError
from fabric.lab.alarms import WallClock
from fabric.remote.ssh import SshClient, SshTarget, mapped

Answer = Callable[[paramiko.Channel], None]


def new_key() -> paramiko.PKey:
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return paramiko.Ed25519Key.from_private_key(io.StringIO(pem.decode()))


class _Server(paramiko.ServerInterface):
    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.threads: list[threading.Thread] = []

    def get_allowed_auths(self, username: str) -> str:
        del username
        return "password,publickey"

    def check_auth_password(self, username: str, password: str) -> int:
        del username
        return paramiko.common.AUTH_SUCCESSFUL if password == "right" else paramiko.common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        del kind, chanid
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        thread = threading.Thread(target=self.answers[command.decode()], args=(channel,))
        self.threads.append(thread)
        thread.start()
        return True


@pytest.fixture
def served(tmp_path: Path) -> Iterator[SshTarget]:
    key, done = new_key(), threading.Event()

    def echo(channel: paramiko.Channel) -> None:
        data = channel.makefile("rb").read()
        channel.sendall(data)
        channel.sendall_stderr(b"\xff and words\n")
        channel.send_exit_status(3)
        channel.close()

    def no_status(channel: paramiko.Channel) -> None:
        channel.sendall(b"half of it")
        channel.close()

    def silent(channel: paramiko.Channel) -> None:
        channel.shutdown_write()
        done.wait(10)
        channel.close()

    def flood(channel: paramiko.Channel) -> None:
        block = b"x" * (1 << 20)
        try:
            for _ in range(70):
                channel.sendall(block)
        except (OSError, EOFError, paramiko.SSHException):  # the client hung up
            return

    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = _Server({"echo": echo, "no-status": no_status, "silent": silent, "flood": flood})
    transports: list[paramiko.Transport] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(key)
            transports.append(transport)
            transport.start_server(event=threading.Event(), server=server)

    listener = threading.Thread(target=accept)
    listener.start()
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
    yield SshTarget("host1", "127.0.0.1", port, "anna", "right", known_hosts=known_hosts)
    done.set()
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    for transport in transports:
        transport.close()
    for thread in (listener, *server.threads, *transports):
        thread.join(10)


@pytest.fixture
def ssh(served: SshTarget) -> Iterator[SshClient]:
    client = SshClient(served, clock=WallClock())
    client.open()
    yield client
    client.close()


def test_standard_input_and_both_outputs_and_the_status_go_through(ssh: SshClient) -> None:
    result = ssh.exec(["echo"], stdin=b"a secret that is in no argv")

    assert (result.stdout, result.status) == ("a secret that is in no argv", 3)
    assert result.stderr == "\ufffd and words\n"


def test_a_command_that_ends_without_a_status_was_lost(ssh: SshClient) -> None:
    with pytest.raises(ConnectError, match="the session was lost before the command ended"):
        ssh.exec(["no-status"])


def test_a_command_that_says_nothing_and_does_not_end_is_given_up(ssh: SshClient) -> None:
    with pytest.raises(ConnectError, match="running silent failed"):
        ssh.exec(["silent"], timeout_s=0.3)


def test_a_flood_is_cut_off(ssh: SshClient) -> None:
    with pytest.raises(ConnectError, match="more than 64 MiB"):
        ssh.exec(["flood"])


def test_a_server_without_sftp_is_a_connect_error(ssh: SshClient) -> None:
    with pytest.raises(ConnectError, match="asking for the home folder failed"):
        ssh.home()


def test_opening_again_replaces_the_session(ssh: SshClient) -> None:
    ssh.open()

    assert ssh.exec(["echo"], stdin=b"x").stdout == "x"


def test_a_login_with_nothing_to_log_in_with_says_so(served: SshTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    bare = SshTarget("host1", served.host, served.port, "anna", known_hosts=served.known_hosts)

    with pytest.raises(AuthError, match="nothing to log in to"):
        SshClient(bare, clock=WallClock()).open()


def test_a_key_file_that_is_missing_is_told(served: SshTarget, tmp_path: Path) -> None:
    missing = SshTarget(
        "host1", served.host, served.port, "anna", private_key=tmp_path / "no-key", known_hosts=served.known_hosts
    )

    with pytest.raises((AuthError, ConnectError)) as caught:
        SshClient(missing, clock=WallClock()).open()

    assert caught.value.where == "host1"


def test_an_error_without_words_is_named_by_its_kind(served: SshTarget) -> None:
    with pytest.raises(ConnectError, match="found EOFError"), mapped(served, "reading"):
        raise EOFError
