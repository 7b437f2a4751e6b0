"""An SSH server on loopback that runs commands in a shell as sshd does: input and output flow while they run."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from fabric.intent import DeviceAccess
from fabric.remote.ssh import SshTarget
from tests.dialogue.test_remote_ssh import new_key

__all__ = ("ShellServer", "shell_server")


@dataclass
class ShellServer:
    """A server that listens.

    Attributes:
        commands: what was asked for. statuses: how it ended.
    """

    port: int
    known_hosts: Path
    environment: Mapping[str, str] | None
    password: str = "right"
    commands: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    transports: list[paramiko.Transport] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def target(self, name: str) -> SshTarget:
        return SshTarget(name, "127.0.0.1", self.port, "root", "right", known_hosts=self.known_hosts)

    def access(self, name: str, *, become: bool = False) -> DeviceAccess:
        return DeviceAccess(name, "127.0.0.1", self.port, "root", "right", known_hosts=self.known_hosts, become=become)

    def cut(self) -> None:
        """Breaks every session, as a cable that is pulled and a sshd that notices."""
        for one in self.transports:
            one.close()

    def start(self, *threads: threading.Thread) -> None:
        self.threads += threads
        for one in threads:
            one.start()

    def serve(self, channel: paramiko.Channel, command: str) -> None:
        self.commands.append(command)
        pipe = subprocess.PIPE
        with subprocess.Popen(
            ["sh", "-c", command],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=self.environment,
            cwd="/",
            bufsize=0,  # what nobody read would be written again when its input is closed
        ) as process:
            self.running.append(process)
            assert process.stdin
            assert process.stdout
            assert process.stderr
            into = threading.Thread(target=_feed, args=(channel, process))
            errors = threading.Thread(target=_pump, args=(process.stderr.fileno(), channel.sendall_stderr))
            self.start(into, errors)
            _pump(process.stdout.fileno(), channel.sendall)
            errors.join()
            status = process.wait(20)
        self.statuses.append(status)
        with suppress(OSError, EOFError, paramiko.SSHException):
            channel.send_exit_status(status)
            channel.close()


def _feed(channel: paramiko.Channel, process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin
    with suppress(OSError, ValueError):  # it may end without reading all
        while data := channel.recv(65536):
            while data:
                data = data[process.stdin.write(data) :]
    process.stdin.close()


def _pump(descriptor: int, send: Callable[[bytes], object]) -> None:
    while data := os.read(descriptor, 65536):
        with suppress(OSError, EOFError, paramiko.SSHException):  # nobody listens any more: go on until it ends
            send(data)


class _Door(paramiko.ServerInterface):
    def __init__(self, server: ShellServer) -> None:
        self._server = server

    def get_allowed_auths(self, username: str) -> str:
        del username
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        del username
        return paramiko.common.AUTH_SUCCESSFUL if password == self._server.password else paramiko.common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        del kind, chanid
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._server.start(threading.Thread(target=self._server.serve, args=(channel, command.decode())))
        return True


@contextmanager
def shell_server(
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    password: str = "right",  # noqa: S107  of a test
) -> Iterator[ShellServer]:
    """Yields a server; ends its sessions and what they run."""
    key = new_key()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        known = folder / f"known_hosts_{port}"
        known.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
        server = ShellServer(port, known, environment, password)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                transport = paramiko.Transport(connection)
                transport.add_server_key(key)
                server.transports.append(transport)
                transport.start_server(event=threading.Event(), server=_Door(server))

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield server
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            server.cut()
            for process in server.running:
                if process.poll() is None:
                    process.wait(20)
            for thread in (acceptor, *server.threads, *server.transports):
                thread.join(20)
