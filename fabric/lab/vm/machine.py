"""One virtual machine: started, reached over SSH, stopped, saved, brought back.

    FOLDER/NAME/   machine.json  what it is, and its process's token: written before the process exists
                   process.json  which process it is
                   login, host   its SSH keys        known_hosts
                   seed.tar      its first files     disk.qcow2  what it has written
                   qmp, agent, console  sockets      console.log

A folder without a running process is a machine that is off: it can be started again, with the disk it had.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fabric import serial
from fabric.clock import Clock
from fabric.errors import ConnectError, HostError
from fabric.lab.vm import processes
from fabric.lab.vm.image import Image
from fabric.lab.vm.keys import make_key
from fabric.lab.vm.programs import run
from fabric.lab.vm.qemu import LOOPBACK, Accelerator, command_line
from fabric.lab.vm.qmp import Monitor, agent, monitor
from fabric.lab.vm.spec import Identity, MachineSpec, seed_tar
from fabric.remote.ssh import SshClient, SshTarget

__all__ = ("Machine", "create", "open_machine", "remove_machine", "restore", "sweep")

_READY: Final = b"fabric-lab: ready"
_POLL_S: Final = 0.05
_MIGRATION_ENDS: Final = frozenset({"completed", "failed", "cancelled"})
_PER_STATE: Final = ("machine.json", "login", "host", "seed.tar", "disk.qcow2")


@dataclass(frozen=True, slots=True)
class _Stored:
    """What `machine.json` holds."""

    spec: MachineSpec
    token: str
    host_key: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of the lab, running or not. Not for several threads at once.

    Attributes:
        folder: its files.
        image: what it boots.
    """

    spec: MachineSpec
    folder: Path
    image: Image
    clock: Clock

    def start(self, accelerator: Accelerator, *, is_incoming: bool = False) -> None:
        """Starts the process; returns before the guest is up.

        Raises:
            HostError: QEMU did not start; `found` has its words.
        """
        token = secrets.token_hex(5)
        stored = _read(self.folder)
        _write(self.folder, _Stored(self.spec, token, stored.host_key))
        for name in ("qmp", "agent", "console", "console.log", "process.json", "pid"):
            (self.folder / name).unlink(missing_ok=True)
        disk = str(self.folder.absolute() / "disk.qcow2")
        argv = command_line(
            self.spec, self.image, accelerator=accelerator, token=token, disk=disk, is_incoming=is_incoming
        )
        run(argv, doing="starting QEMU", where=self.spec.name, cwd=self.folder)
        pid = int((self.folder / "pid").read_text(encoding="ascii"))
        if record := processes.record_of(pid, token):
            processes.write_record(self.folder / "process.json", record)
        if not is_incoming:
            self.publish_port()

    def publish_port(self) -> None:
        """Writes the known_hosts file anew, after QEMU chose the port: so no two labs want the same one."""
        key = _read(self.folder).host_key
        _write_private(self.folder / "known_hosts", f"[{LOOPBACK}]:{self.ssh_port()} {key}\n".encode())

    def ssh_port(self) -> int:
        """Returns the TCP port on the loopback address that leads to the guest's SSH server."""
        with monitor(self.spec.name, self.folder / "qmp") as session:
            text: str = session.ask("human-monitor-command", {"command-line": "info usernet"})
        for line in text.splitlines():
            words = line.split()  # Protocol[State] FD SourceAddress Port DestAddress Port …
            if words[:1] == ["TCP[HOST_FORWARD]"]:
                return int(words[3])
        raise HostError("QEMU does not forward a port to the guest", where=self.spec.name, found=text)

    def target(self) -> SshTarget:
        """Returns how to log in as root."""
        return SshTarget(
            self.spec.name,
            LOOPBACK,
            self.ssh_port(),
            "root",
            private_key=self.folder / "login",
            known_hosts=self.folder / "known_hosts",
        )

    def wait(self, *, limit_s: float = 180.0, boots: int = 1) -> None:
        """Returns when the guest has booted and its SSH server listens.

        Args:
            limit_s: how long to wait at most.
            boots: how often it has booted then, since its process started.

        Raises:
            HostError: it did not in time, or the process ended; `found` has the end of the console.
        """
        log = self.folder / "console.log"
        end_ns = self.clock.now_ns() + round(limit_s * 1e9)
        while self._boots() < boots:
            has_ended = not self.is_running()
            if has_ended or self.clock.now_ns() > end_ns:
                why = "its process ended" if has_ended else f"not within {limit_s:g} s"
                raise HostError(f"the machine did not boot: {why}", where=self.spec.name, found=_tail(log))
            self.clock.sleep_s(_POLL_S)

    @contextmanager
    def login(self) -> Iterator[SshClient]:
        """Yields an SSH session as root."""
        client = SshClient(self.target(), clock=self.clock)
        client.open()
        try:
            yield client
        finally:
            client.close()

    def is_running(self) -> bool:
        """Returns whether the process is alive."""
        record = processes.read_record(self.folder / "process.json")
        return record is not None and processes.is_running(record)

    def memory_bytes(self) -> int:
        """Returns what the process holds in memory now (VmRSS of proc(5)), 0 when it has ended."""
        record = processes.read_record(self.folder / "process.json")
        status = ""
        with suppress(OSError):  # it may end now
            status = Path(f"/proc/{record.pid}/status").read_text(encoding="utf-8") if record else ""
        return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:")), 0)

    def power_off(self, *, limit_s: float = 60.0) -> None:
        """Shuts the guest down and returns when its process has ended; ends it after the limit. The disk stays."""
        with suppress(HostError, ConnectError), self.login() as session:
            session.exec(["systemctl", "poweroff"], timeout_s=10)
        end_ns = self.clock.now_ns() + round(limit_s * 1e9)
        while self.is_running() and self.clock.now_ns() < end_ns:
            self.clock.sleep_s(_POLL_S)
        self.kill()

    def kill(self) -> None:
        """Ends the process at once, as a power cut does. The disk stays."""
        _end_processes(self.folder)

    def remove(self) -> None:
        """Ends the process and removes every file of the machine, its sockets for data included."""
        _remove(self.folder)

    def pause(self) -> None:
        """Stops the guest's CPUs and its time, until `go_on`."""
        with monitor(self.spec.name, self.folder / "qmp") as session:
            session.ask("stop")

    def go_on(self) -> None:
        """Lets a paused guest run on."""
        with monitor(self.spec.name, self.folder / "qmp") as session:
            session.ask("cont")

    def reboot(self, *, limit_s: float = 180.0) -> None:
        """Reboots the guest from within, and returns when its SSH server listens again.

        Raises:
            HostError: it did not come back in time.
        """
        before = self._boots()
        with suppress(ConnectError), self.login() as session:
            session.exec(["systemctl", "reboot"], timeout_s=10)
        self.wait(limit_s=limit_s, boots=before + 1)

    def power_cycle(self, *, limit_s: float = 180.0) -> None:
        """Cuts the guest's power and gives it back; returns when its SSH server listens again.

        What the guest had not yet written to its disk is lost (QMP `system_reset`).

        Raises:
            HostError: it did not come back in time.
        """
        before = self._boots()
        with monitor(self.spec.name, self.folder / "qmp") as session:
            session.ask("system_reset")
        self.wait(limit_s=limit_s, boots=before + 1)

    def save(self, folder: Path) -> None:
        """Saves memory and disk into a new folder, and ends the machine.

        The folder holds the machine's keys: only the owner may read it.

        Raises:
            HostError: QEMU could not.
        """
        self.snapshot(folder, go_on=False)
        self.remove()

    def snapshot(self, folder: Path, *, go_on: bool = True) -> None:
        """Saves memory and disk into a new folder. The guest's time stands still meanwhile.

        The folder holds the machine's keys: only the owner may read it.

        Args:
            folder: what an earlier, interrupted call left beside it goes.
            go_on: let the guest run on afterwards.

        Raises:
            HostError: QEMU could not; the guest runs on.
        """
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        with monitor(self.spec.name, self.folder / "qmp") as session:
            session.ask("stop")
            try:
                self._write_memory(session, part / "memory")
                # A finished migration has flushed and released the disk (QEMU bdrv_inactivate_all) until `cont`.
                for name in _PER_STATE:
                    shutil.copy2(self.folder / name, part / name)
            except BaseException:
                session.ask("cont")
                shutil.rmtree(part, ignore_errors=True)
                raise
            if go_on:
                session.ask("cont")
        part.rename(folder)

    def _write_memory(self, session: Monitor, path: Path) -> None:
        session.ask("migrate-set-parameters", {"max-bandwidth": 1 << 40})
        with path.open("wb") as file:
            session.give("memory", file.fileno())
        session.ask("migrate", {"uri": "fd:memory"})
        while (answer := session.ask("query-migrate"))["status"] not in _MIGRATION_ENDS:
            self.clock.sleep_s(_POLL_S)
        if answer["status"] != "completed":
            why = f"{answer['status']}: {answer.get('error-desc', 'no reason given')}"
            raise HostError("the machine's memory could not be saved", where=self.spec.name, found=why)

    def _boots(self) -> int:
        try:
            return (self.folder / "console.log").read_bytes().count(_READY)
        except FileNotFoundError:
            return 0

    def set_clock(self) -> None:
        """Gives the guest this machine's time, which it lost while it was saved.

        Raises:
            HostError: the guest refused, or its agent does not answer.
        """
        # Not over SSH: a machine that was just restored takes seconds to log somebody in.
        with agent(self.spec.name, self.folder / "agent") as session:
            date = {"path": "/bin/date", "arg": ["-s", f"@{self.clock.unix_s():.0f}"]}
            pid = session.ask("guest-exec", date)["pid"]
            while not (done := session.ask("guest-exec-status", {"pid": pid}))["exited"]:
                self.clock.sleep_s(_POLL_S)
        if done.get("exitcode") != 0:
            raise HostError("setting the clock failed", where=self.spec.name, found=str(done))


def create(lab: Path, spec: MachineSpec, image: Image, *, clock: Clock) -> Machine:
    """Returns a machine that was never started, with keys and a disk of its own.

    Args:
        lab: the lab's folder.
        spec: what it is.
        image: what it boots.
        clock: measures how long to wait.

    Raises:
        HostError: there is one of that name.
    """
    folder = _new_folder(lab, spec.name)
    login, host = make_key(), make_key()
    _write_private(folder / "login", login.private)
    _write_private(folder / "host", host.private)
    identity = Identity(secrets.token_hex(16), login.public, host.public, host.private)
    _write_private(folder / "seed.tar", seed_tar(spec, identity))
    _write(folder, _Stored(spec, "", host.public))
    _overlay(folder, image.root.absolute(), "raw")
    return Machine(spec, folder, image, clock)


def open_machine(lab: Path, name: str, image: Image, *, clock: Clock) -> Machine:
    """Returns a machine that somebody created in the lab's folder, running or not.

    Raises:
        HostError: there is none of that name.
    """
    try:
        stored = _read(lab / name)
    except (OSError, ValueError) as error:
        raise HostError("the lab has no such machine", where=name, found=str(error)) from error
    return Machine(stored.spec, lab / name, image, clock)


def remove_machine(lab: Path, name: str) -> None:
    """Ends a machine's process and removes its files, as far as there are any."""
    _remove(lab / name)


def restore(
    lab: Path,
    saved: Path,
    image: Image,
    *,
    accelerator: Accelerator,
    clock: Clock,
    sockets: Mapping[str, str] | None = None,
    is_held: bool = False,
) -> Machine:
    """Returns a running machine as it was when it was saved. The saved state stays, and may be restored many times.

    Args:
        lab: the lab's folder.
        saved: what `Machine.save` wrote.
        image: the one that it booted.
        accelerator: the one it was saved under.
        clock: measures how long to wait.
        sockets: name of a port → path of its socket now; a port that is not named has the one it had then.
        is_held: leave it paused, so that several go on at the same time: `go_on`, then `set_clock`.
    """
    stored = _read(saved)
    nics = tuple(replace(nic, socket=(sockets or {}).get(nic.name, nic.socket)) for nic in stored.spec.nics)
    spec = replace(stored.spec, nics=nics)
    folder = _new_folder(lab, stored.spec.name)
    for name in ("machine.json", "login", "host", "seed.tar"):
        shutil.copy2(saved / name, folder / name)
    _overlay(folder, saved.absolute() / "disk.qcow2", "qcow2")
    machine = Machine(spec, folder, image, clock)
    machine.start(accelerator, is_incoming=True)
    with monitor(stored.spec.name, folder / "qmp") as session:
        with (saved / "memory").open("rb") as file:
            session.give("memory", file.fileno())
        session.ask("migrate-incoming", {"uri": "fd:memory"})
        while (found := session.ask("query-status")["status"]) == "inmigrate":
            clock.sleep_s(_POLL_S)
        if found != "running" and not is_held:  # it was stopped when it was saved
            session.ask("cont")
    machine.publish_port()
    if not is_held:
        machine.set_clock()
    return machine


def sweep(lab: Path) -> tuple[str, ...]:
    """Ends every process and removes every file of a lab, whoever left them, and returns the names of its machines."""
    if not lab.is_dir():
        return ()
    names = tuple(sorted(path.name for path in lab.iterdir() if (path / "machine.json").exists()))
    for name in names:
        _remove(lab / name)
    with suppress(OSError):  # somebody else's files are in it: not ours to remove
        lab.rmdir()
    return names


def _new_folder(lab: Path, name: str) -> Path:
    lab.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = lab / name
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as error:
        raise HostError(
            "the lab has a machine of this name", where=name, found=str(folder), remedy="Run: fabricctl lab down"
        ) from error
    return folder


def _overlay(folder: Path, backing: Path, kind: str) -> None:
    argv = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", str(backing), str(folder / "disk.qcow2")]
    run(argv, doing="making the disk", where=folder.name)


def _end_processes(folder: Path) -> None:
    record = processes.read_record(folder / "process.json")
    if record is not None:
        processes.end(record)
    with suppress(OSError, ValueError):  # no machine.json: it never had a process
        if token := _read(folder).token:
            processes.end_all(f"fabric-{token}")
    (folder / "process.json").unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    _end_processes(folder)
    with suppress(OSError, ValueError):
        for nic in _read(folder).spec.nics:
            if nic.is_server:
                Path(nic.socket).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path) -> _Stored:
    return serial.from_json(_Stored, json.loads((folder / "machine.json").read_text(encoding="utf-8")))


def _write(folder: Path, stored: _Stored) -> None:
    _write_private(folder / "machine.json", json.dumps(serial.to_json(stored)).encode())


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no path
        file.write(content)


def _tail(path: Path) -> str:
    try:
        return path.read_bytes()[-600:].decode("utf-8", errors="replace")
    except OSError:
        return ""
