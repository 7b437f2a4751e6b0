"""QEMU's machine protocol and that of the agent in a guest: one command, one answer. Knows no command's meaning."""

import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from fabric.errors import HostError

__all__ = ("Monitor", "agent", "monitor")

_ANSWER_S: Final = 30.0


class Monitor:
    """An open session with one QEMU."""

    def __init__(self, name: str, peer: socket.socket, stream: BinaryIO) -> None:
        self._name = name
        self._peer = peer
        self._stream = stream

    def ask(self, command: str, arguments: Mapping[str, object] | None = None) -> Any:
        """Returns the answer to a command; events that come before it are dropped.

        Raises:
            HostError: QEMU refused it, or hung up.
        """
        request = {"execute": command, **({"arguments": dict(arguments)} if arguments else {})}
        self._stream.write(json.dumps(request).encode() + b"\n")
        self._stream.flush()
        return self._answer(command)

    def give(self, name: str, descriptor: int) -> None:
        """Hands an open file to QEMU, which knows it by `name` from then on.

        Raises:
            HostError: QEMU refused it, or hung up.
        """
        request = json.dumps({"execute": "getfd", "arguments": {"fdname": name}}).encode() + b"\n"
        socket.send_fds(self._peer, [request], [descriptor])
        self._answer("getfd")

    def synchronise(self, number: int) -> None:
        """Drops what the agent still answers to somebody before us, up to its answer with our number."""
        self._stream.write(json.dumps({"execute": "guest-sync", "arguments": {"id": number}}).encode() + b"\n")
        self._stream.flush()
        while self.read().get("return") != number:
            pass

    def _answer(self, command: str) -> Any:
        while True:
            answer = self.read()
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise HostError(f"QEMU refused {command}", where=self._name, found=str(answer["error"].get("desc")))

    def read(self) -> dict[str, Any]:
        """Returns the next message."""
        line = self._stream.readline()
        if not line:
            raise HostError("QEMU hung up", where=self._name)
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def monitor(name: str, path: Path) -> Iterator[Monitor]:
    """Yields a session with the QEMU that listens on `path`, whatever that path's length.

    Args:
        name: the machine, for messages.
        path: of the socket.

    Raises:
        HostError: nobody listens there, or the session broke.
    """
    with _session(name, path) as session:
        session.read()  # the greeting
        session.ask("qmp_capabilities")
        yield session


@contextmanager
def agent(name: str, path: Path) -> Iterator[Monitor]:
    """Yields a session with the agent in the guest: the same language, but no greeting.

    Args:
        name: the machine, for messages.
        path: of the socket.

    Raises:
        HostError: nobody listens there, or the agent does not answer.
    """
    with _session(name, path) as session:
        session.synchronise(secrets.randbits(32))
        yield session


@contextmanager
def _session(name: str, path: Path) -> Iterator[Monitor]:
    folder = -1
    try:
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(_ANSWER_S)
            peer.connect(f"/proc/self/fd/{folder}/{path.name}")
            with peer.makefile("rwb") as stream:
                yield Monitor(name, peer, cast("BinaryIO", stream))
    except OSError as error:
        raise HostError("no session with QEMU", where=name, found=str(error)) from error
    finally:
        if folder >= 0:
            os.close(folder)
