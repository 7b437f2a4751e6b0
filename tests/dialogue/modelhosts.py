"""Model hosts behind real SSH servers on loopback, for the real Ansible: what it executes, the model performs."""

import re
import shlex
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import paramiko

from fabric.remote.ssh import ExecResult
from tests.dialogue.test_remote_ssh import new_key
from tests.unit.host.faulty import FaultyModel

__all__ = ("ModelHost", "model_hosts", "write_inventory")

_LINE: Final = re.compile(
    r"\{ timeout -k 5 \S+ (.*?)( </dev/null)?; printf '\\n(fabricctl-exit-status:)%d\\n' \"\$\?\"; \}", re.DOTALL
)
_INVENTORY: Final = """\
all:
  vars:
    fabric_name: two
    fabric_links: [{a: "gpu1:data0", b: "kv1:data0", cable: 3m}]
    ansible_user: root
    ansible_password: right
hosts:
  hosts:
    gpu1:
      fabric_nics: [{netdev: data0, family: rxe, speed: 100G, addresses: [10.10.0.2/24]}]
      fabric_connect: ["nqn.2026-01.net.example:kv1"]
      VARIABLES_OF_gpu1
targets:
  hosts:
    kv1:
      fabric_nics: [{netdev: data0, family: rxe, speed: 100G, addresses: [10.10.0.1/24]}]
      fabric_subsystems: [{nqn: "nqn.2026-01.net.example:kv1", namespaces: [{nsid: 1, device: /dev/ram0}]}]
      fabric_nvme_ports: [{traddr: 10.10.0.1}]
      VARIABLES_OF_kv1
"""


@dataclass
class ModelHost:
    """One host that listens.

    Attributes:
        pause_at: part of the name of a step before which it waits. reached: it waits there. go: it may go on.
    """

    name: str
    model: FaultyModel
    port: int = 0
    pause_at: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    transports: list[paramiko.Transport] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    def answer(self, line: str, stdin: bytes) -> bytes:
        """Returns what the shell line of the plug-in prints."""
        found = _LINE.search(shlex.split(line)[-1])
        if found is None:
            self.strange.append(line)
            return b""
        words = shlex.split(found[1])[2:]  # env LC_ALL=C
        if self.pause_at and self.pause_at in " ".join((*words, stdin.decode(errors="replace"))):
            self.pause_at = ""
            self.reached.set()
            self.go.wait(60)
        with self.lock:
            done = self._done(words, stdin)
        return f"{done.stdout}\n{found[3]}{done.status}\n".encode()

    def _done(self, words: list[str], stdin: bytes) -> ExecResult:
        if words[0] == "dd":
            return self.model.write(words[1].removeprefix("of="), stdin.decode())
        return self.model.run(words, stdin=stdin)

    def cut(self) -> None:
        """Breaks every session."""
        for one in self.transports:
            one.close()


class _Door(paramiko.ServerInterface):
    def __init__(self, host: ModelHost, threads: list[threading.Thread]) -> None:
        self._host = host
        self._threads = threads

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
        thread = threading.Thread(target=self._execute, args=(channel, command.decode()))
        self._threads.append(thread)
        thread.start()
        return True

    def _execute(self, channel: paramiko.Channel, command: str) -> None:
        try:
            printed = self._host.answer(command, channel.makefile("rb").read())
            with suppress(OSError, EOFError, paramiko.SSHException):
                channel.sendall(printed)
                channel.send_exit_status(0)
        except (KeyError, IndexError, ValueError) as error:  # the model does not know such a command
            self._host.strange.append(f"{command[:300]}: {error!r}")
        finally:
            channel.close()


@contextmanager
def model_hosts(folder: Path, *hosts: ModelHost) -> Iterator[Path]:
    """Yields an inventory in which these hosts, `gpu1` and `kv1`, are reached."""
    key, threads = new_key(), list[threading.Thread]()
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in hosts]
    known = folder / "known_hosts"

    def accept(listening: socket.socket, host: ModelHost) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:  # the test is over
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(key)
            host.transports.append(transport)
            with suppress(paramiko.SSHException, EOFError, OSError):
                transport.start_server(event=threading.Event(), server=_Door(host, threads))

    text = ""
    acceptors = []
    for listening, host in zip(listeners, hosts, strict=True):
        host.port = listening.getsockname()[1]
        text += f"[127.0.0.1]:{host.port} {key.get_name()} {key.get_base64()}\n"
        acceptors.append(threading.Thread(target=accept, args=(listening, host)))
        acceptors[-1].start()
    known.write_text(text, encoding="utf-8")
    try:
        yield write_inventory(folder, known, hosts)
    finally:
        for listening, host in zip(listeners, hosts, strict=True):
            host.go.set()
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            host.cut()
        for thread in (*acceptors, *threads):
            thread.join(20)


def write_inventory(folder: Path, known: Path, hosts: tuple[ModelHost, ...]) -> Path:
    """Writes the inventory and returns its path; a host that does not listen is not managed."""
    text = _INVENTORY
    options = f"-o UserKnownHostsFile={known} -o GlobalKnownHostsFile=/dev/null"
    there = {one.name: one for one in hosts}
    for name in ("gpu1", "kv1"):
        lines = ["fabric_managed: false"]
        if name in there:
            lines = ["ansible_host: 127.0.0.1", f"ansible_port: {there[name].port}"]
            lines.append(f"ansible_ssh_common_args: '{options}'")
        text = text.replace(f"VARIABLES_OF_{name}", "\n      ".join(lines))
    path = folder / "site.yml"
    path.write_text(text, encoding="utf-8")
    return path
