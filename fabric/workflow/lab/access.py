"""Getting into a device of the running lab: the system's ssh, and the serial console of a machine."""

import os
import selectors
import shlex
import socket
import subprocess
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric.errors import EnvironmentMissingError, HostError
from fabric.lab.site import LabFolder, Login, lab_path
from fabric.lab.vm.programs import find

__all__ = ("Done", "console_log", "run_console", "run_ssh", "ssh_words")

_LEAVE: Final = b"\x1d"  # Ctrl-], as telnet has it
_READ_BYTES: Final = 65536


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended; the texts are empty where they went to the terminal."""

    status: int
    stdout: str = ""
    stderr: str = ""


def run_ssh(name: str, command: Sequence[str], *, captured: bool, folder: Path | None = None) -> Done:
    """Returns how a login, or a command on a device, ended.

    Args:
        name: of the device.
        command: its words; () for a shell on this terminal.
        captured: keep what it prints instead of showing it.
        folder: of the lab; None for `lab_path`.

    Raises:
        HostError: the lab has no such device, or is not up.
        EnvironmentMissingError: there is no ssh here.
    """
    place = LabFolder(folder or lab_path(os.environ))
    login = _login(place, name)
    if find("ssh") is None:
        raise EnvironmentMissingError(
            "the program ssh is missing", remedy="Run: sudo apt-get install -y --no-install-recommends openssh-client"
        )
    environment = dict(os.environ)
    if login.password is not None:
        # ssh takes a password from a program alone; this one reads it where only the owner can.
        secret = place.write_private(f"{name}.password", login.password + "\n")
        asker = place.write_private(f"{name}.askpass", f"#!/bin/sh\nexec cat {shlex.quote(str(secret))}\n", mode=0o700)
        environment |= {"SSH_ASKPASS": str(asker), "SSH_ASKPASS_REQUIRE": "force"}
    done = subprocess.run(ssh_words(login, command), env=environment, capture_output=captured, text=True, check=False)
    return Done(done.returncode, done.stdout or "", done.stderr or "")


def ssh_words(login: Login, command: Sequence[str]) -> tuple[str, ...]:
    """Returns the command line of ssh: the lab's key or password and no other, its host key and no other."""
    words = ["ssh", "-F", "none", "-p", str(login.port), "-o", f"UserKnownHostsFile={_quoted(login.known_hosts)}"]
    words += ["-o", "GlobalKnownHostsFile=none", "-o", "StrictHostKeyChecking=yes", "-o", "LogLevel=ERROR"]
    if login.private_key is None:
        words += ["-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1"]
    else:
        words += ["-o", f"IdentityFile={_quoted(login.private_key)}", "-o", "IdentitiesOnly=yes"]
    return (*words, f"{login.user}@{login.host}", *(["--", *command] if command else []))


def _quoted(path: str) -> str:
    return '"' + path.replace("%", "%%") + '"'  # ssh_config(5): a file list is split at spaces, and % is a token


def console_log(name: str, folder: Path | None = None) -> str:
    """Returns what a machine has printed on its serial console since its process started.

    Raises:
        HostError: the lab has no such machine.
    """
    try:
        return (_machine(name, folder) / "console.log").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:  # it has not started yet
        return ""


def run_console(name: str, folder: Path | None = None) -> None:
    """Joins this terminal to a machine's serial console until Ctrl-] or the machine's end.

    Raises:
        HostError: the lab has no such machine, it is off, or there is no terminal here.
    """
    place = _machine(name, folder)
    if not sys.stdin.isatty():
        raise HostError("a console needs a terminal", where=name, remedy="See: fabricctl lab console --log")
    descriptor = os.open(place, os.O_PATH | os.O_DIRECTORY)  # the path may be too long for a socket's name
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(f"/proc/self/fd/{descriptor}/console")
            sys.stderr.write(f"console of {name}; Ctrl-] leaves it\r\n")
            with _raw():
                _relay(peer)
    except OSError as error:
        raise HostError("there is no console", where=name, found=str(error)) from error
    finally:
        os.close(descriptor)


@contextmanager
def _raw() -> Iterator[None]:
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setraw(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _relay(peer: socket.socket) -> None:
    with selectors.DefaultSelector() as ready:
        ready.register(peer, selectors.EVENT_READ)
        ready.register(sys.stdin.fileno(), selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is peer:
                    data = peer.recv(_READ_BYTES)
                    if not data:
                        return
                    os.write(sys.stdout.fileno(), data)
                    continue
                typed = os.read(sys.stdin.fileno(), _READ_BYTES)
                if not typed or _LEAVE in typed:
                    return
                peer.sendall(typed)


def _login(place: LabFolder, name: str) -> Login:
    logins = place.logins()
    if name not in logins:
        raise HostError(
            "the lab has no such device" if logins else "no lab is up here",
            where=str(place.path),
            found=name,
            expected=", ".join(logins),
            remedy="" if logins else "Run: fabricctl lab up",
        )
    return logins[name]


def _machine(name: str, folder: Path | None) -> Path:
    place = LabFolder(folder or lab_path(os.environ))
    there = sorted(one.parent.name for one in place.machines.glob("*/machine.json"))
    if name not in there:
        raise HostError(
            "the lab has no such machine",
            where=str(place.path),
            found=name,
            expected=", ".join(there),
            remedy="" if there else "Run: fabricctl lab up",
        )
    return place.machines / name
