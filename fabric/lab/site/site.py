"""A lab from nothing to logged in and back: its process, its machines, whole states of it.

`bring_up` leaves a lab that outlives its caller; whoever finds its folder opens it, or clears it away. Machines start
side by side; a machine that was up before starts from its warm state.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from fabric import serial
from fabric.clock import Clock
from fabric.errors import FabricError, HostError
from fabric.lab.site.control import ask
from fabric.lab.site.folder import LabFolder, Login, Record
from fabric.lab.site.spec import End, LabPort, LabSpec
from fabric.lab.site.states import WarmStates, qemu_version
from fabric.lab.vm import (
    Accelerator,
    Image,
    Machine,
    MachineSpec,
    Nic,
    create,
    open_machine,
    remove_machine,
    restore,
)
from fabric.observe import Event, Observer, silent

__all__ = ("Site", "Tools", "bring_up", "open_site", "take_down")

_PROCESS_UP_S: Final = 60.0
_BOOT_S: Final = 300.0
_POLL_S: Final = 0.05
_SPEC: Final = "lab.json"


@dataclass(frozen=True, slots=True)
class Tools:
    """What a lab is made with.

    Attributes:
        image: what machines boot. accelerator: what they run under.
        cache: where warm states are.
        command: runs `run_process`; the lab's folder and a token follow as two more words.
        clock: for waiting.
        observer: hears `lab.process.*`, `lab.machine.*`, `lab.up.done`.
    """

    image: Image
    accelerator: Accelerator
    cache: Path
    command: tuple[str, ...]
    clock: Clock
    observer: Observer = silent


@dataclass(frozen=True, slots=True)
class Site:
    """A running lab."""

    folder: LabFolder
    spec: LabSpec
    tools: Tools
    machines: Mapping[str, Machine] = field(default_factory=dict)

    def ask(self, verb: str, /, *, timeout_s: float | None = 30.0, **arguments: Any) -> Any:
        """Returns what the lab's process answers to a verb of `fabric.lab.site.process`."""
        return ask(self.folder.path / "control", verb, timeout_s=timeout_s, **arguments)

    def reboot(self, name: str) -> None:
        """Reboots a machine from within and returns when one can log in again.

        Raises:
            HostError: there is no such machine, or it did not come back.
        """
        self.machine(name).reboot()

    def machine(self, name: str) -> Machine:
        """Returns the machine of that name.

        Raises:
            HostError: there is none.
        """
        if name not in self.machines:
            raise HostError("the lab has no such machine", found=name, expected=", ".join(self.machines))
        return self.machines[name]

    def save_all(self, folder: Path) -> None:
        """Saves every machine and every switch's configuration into a new folder; the lab runs on.

        All machines stand still together, so that no connection sees its peer gone. What was on a cable is lost.

        Raises:
            HostError: a machine could not be saved.
        """
        configs = self.ask("configs")
        folder.mkdir(mode=0o700, parents=True)
        machines = tuple(self.machines.values())
        _together(Machine.pause, machines)
        try:
            _together(lambda one: one.snapshot(folder / one.spec.name, go_on=False), machines)
        finally:
            _together(Machine.go_on, machines)
        switches = tuple(replace(one, front=replace(one.front, config=configs[one.name])) for one in self.spec.switches)
        text = json.dumps(serial.to_json(replace(self.spec, switches=switches)))
        (folder / _SPEC).write_text(text, encoding="utf-8")

    def restore_all(self, folder: Path) -> "Site":
        """Returns the lab as it was saved: this one is ended first. Ports of SSH servers are new ones.

        Raises:
            HostError: nothing whole was saved there, or a machine does not come up.
        """
        try:
            spec = serial.from_json(LabSpec, json.loads((folder / _SPEC).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise HostError("no lab was saved there", where=str(folder), found=str(error)) from error
        with self.folder.locked():
            _together(Machine.remove, self.machines.values())
            self.folder.clear()
            record = self.folder.begin(spec, self.tools.image, self.tools.accelerator)
            try:
                _start_process(self.folder, record, self.tools)
                specs = _machine_specs(self.folder, spec)
                machines = [_held(self.folder, folder / one.name, one, self.tools) for one in specs]
                _go_on(machines)
                return _finished(self.folder, spec, self.tools, machines)
            except BaseException:
                self.folder.clear()
                raise


def bring_up(path: Path, spec: LabSpec, tools: Tools, *, is_fresh: bool = False) -> Site:
    """Returns a lab that runs until somebody takes it down; what a dead one left in the folder is cleared first.

    Args:
        path: the lab's folder.
        spec: what to build.
        tools: with what.
        is_fresh: boot each machine, whatever warm state there is.

    Raises:
        HostError: a lab runs there, or a machine does not come up; then nothing of this one is left.
    """
    folder = LabFolder(path)
    with folder.locked():
        if folder.is_running():
            raise HostError("a lab runs here already", where=str(path), remedy="Run: fabricctl lab down")
        if left := folder.clear():
            tools.observer(Event("lab.clear.done", message=f"cleared what a dead lab left: {', '.join(left)}"))
        record = folder.begin(spec, tools.image, tools.accelerator)
        try:
            _start_process(folder, record, tools)
            specs = _machine_specs(folder, spec)
            machines = _start_machines(folder, specs, tools, is_fresh=is_fresh)
            return _finished(folder, spec, tools, machines)
        except BaseException:
            folder.clear()
            folder.remove()
            raise


def open_site(path: Path, tools: Tools) -> Site:
    """Returns the lab that runs in a folder.

    Raises:
        HostError: none does.
    """
    folder = LabFolder(path)
    record = folder.record()
    if record is None or not folder.is_running():
        raise HostError("no lab runs here", where=str(path), remedy="Run: fabricctl lab up")
    names = sorted(one.name for one in record.spec.machines)
    machines = [open_machine(folder.machines, name, tools.image, clock=tools.clock) for name in names]
    return Site(folder, record.spec, tools, {one.spec.name: one for one in machines})


def take_down(path: Path) -> tuple[str, ...]:
    """Ends and removes whatever a lab has in the folder, alive or dead, and returns the names of its devices."""
    folder = LabFolder(path)
    if not folder.is_ours():
        return ()
    with folder.locked():
        names = folder.clear()
        folder.remove()  # within the lock: who waits for it sees that it is gone
    return names


def _finished(folder: LabFolder, spec: LabSpec, tools: Tools, machines: Sequence[Machine]) -> Site:
    rows = ask(folder.path / "control", "logins")
    logins = {name: serial.from_json(Login, row) for name, row in rows.items()}
    for machine in machines:
        target = machine.target()
        logins[machine.spec.name] = Login(
            target.host,
            target.port,
            target.username,
            str(target.known_hosts),
            private_key=str(target.private_key),
        )
    folder.write_logins(logins)
    tools.observer(Event("lab.up.done", data={"machines": len(machines), "switches": len(spec.switches)}))
    return Site(folder, spec, tools, {machine.spec.name: machine for machine in machines})


# The process that carries switches and cables.


def _start_process(folder: LabFolder, record: Record, tools: Tools) -> None:
    tools.observer(Event("lab.process.started", message=f"{len(record.spec.switches)} switches"))
    argv = [*tools.command, str(folder.path), f"fabric-{record.token}"]
    pid = _spawn(argv, folder.log)
    folder.note_process(pid, record.token)
    end_ns = tools.clock.now_ns() + round(_PROCESS_UP_S * 1e9)
    while True:
        try:
            ask(folder.path / "control", "status")
        except HostError as error:
            ended = not folder.is_running()
            if ended or tools.clock.now_ns() > end_ns:
                why = "it ended" if ended else f"not within {_PROCESS_UP_S:g} s"
                found = folder.log.read_text(encoding="utf-8", errors="replace")[-1500:].strip()
                raise HostError(f"the lab's process did not come up: {why}", where="lab", found=found) from error
            tools.clock.sleep_s(_POLL_S)
        else:
            tools.observer(Event("lab.process.done"))
            return


def _spawn(argv: Sequence[str], log: Path) -> int:
    """Returns the id of a process that outlives this one. Not `Popen`, which wants to be waited for."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        argv[0],
        list(argv),
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


# Machines. They are started one after the other in order of names, since of two that are joined directly the first
# must listen before the second connects; what takes long, booting, they do side by side.


def _machine_specs(folder: LabFolder, spec: LabSpec) -> tuple[MachineSpec, ...]:
    """Returns the machines with their sockets, in order of names."""
    sockets: Mapping[str, str] = ask(folder.path / "control", "sockets")
    return tuple(
        MachineSpec(
            one.name,
            memory_mib=one.memory_mib,
            cpus=one.cpus,
            nics=tuple(_nic(folder, spec, End(one.name, port.name), port, sockets) for port in one.ports),
            disks=one.disks,
        )
        for one in sorted(spec.machines, key=lambda one: one.name)
    )


def _nic(folder: LabFolder, spec: LabSpec, end: End, port: LabPort, sockets: Mapping[str, str]) -> Nic:
    """Returns a data port: a client of the switch's socket, or one of two machines joined directly."""
    cable = spec.cable_at(end)
    far = cable.other(end.device) if cable else None
    socket = sockets.get(str(far))
    if socket is not None:
        return Nic(port.name, port.mac, socket, mtu_bytes=port.mtu_bytes, is_bare=True)
    near = min(cable.a, cable.b) if cable else end
    path = folder.wire / f"{near.device}-{near.port}.sock"
    return Nic(port.name, port.mac, str(path), is_server=near == end, mtu_bytes=port.mtu_bytes, is_bare=True)


def _start_machines(
    folder: LabFolder, specs: Sequence[MachineSpec], tools: Tools, *, is_fresh: bool
) -> tuple[Machine, ...]:
    warm = WarmStates(tools.cache, tools.image, tools.accelerator, qemu_version(), tools.clock)
    warm.prune()
    restored: list[Machine] = []
    booting: list[Machine] = []
    for spec in specs:
        saved = None if is_fresh else warm.find(spec)
        machine = _restored(folder, saved, spec, tools) if saved else None
        if machine is not None:
            restored.append(machine)
            continue
        if saved is not None:
            warm.drop(spec)
        tools.observer(Event("lab.machine.started", spec.name, "boots"))
        machine = create(folder.machines, spec, tools.image, clock=tools.clock)
        machine.start(tools.accelerator)
        booting.append(machine)
    try:
        _go_on(restored)
    except HostError:  # the next lab boots, rather than to fail alike
        for machine in restored:
            warm.drop(machine.spec)
        raise
    _together(lambda one: _wait(one, tools), booting)
    for machine in () if is_fresh else booting:
        try:
            warm.keep(machine)
        except HostError as error:  # the next lab boots again, which is no reason to have none now
            tools.observer(Event("lab.machine.progress", machine.spec.name, f"no warm state is kept: {error}"))
    return tuple(sorted((*restored, *booting), key=lambda one: one.spec.name))


def _wait(machine: Machine, tools: Tools) -> None:
    start_ns = tools.clock.now_ns()
    machine.wait(limit_s=_BOOT_S)
    seconds = (tools.clock.now_ns() - start_ns) / 1e9
    tools.observer(Event("lab.machine.done", machine.spec.name, f"up after {seconds:.0f} s", {"seconds": seconds}))


def _restored(folder: LabFolder, saved: Path, spec: MachineSpec, tools: Tools) -> Machine | None:
    """Returns the machine, paused; None when its state does not come up: it may be of another CPU, or damaged."""
    try:
        return _held(folder, saved, spec, tools)
    except (FabricError, OSError, ValueError) as error:
        tools.observer(Event("lab.machine.progress", spec.name, f"its warm state does not come up: {error}"))
        remove_machine(folder.machines, spec.name)
        return None


def _held(folder: LabFolder, saved: Path, spec: MachineSpec, tools: Tools) -> Machine:
    tools.observer(Event("lab.machine.started", spec.name, "comes back from a saved state"))
    return restore(
        folder.machines,
        saved,
        tools.image,
        accelerator=tools.accelerator,
        clock=tools.clock,
        sockets={nic.name: nic.socket for nic in spec.nics},
        is_held=True,
    )


def _go_on(machines: Sequence[Machine]) -> None:
    """Lets paused machines run, all at the same time, and gives them the time."""
    _together(Machine.go_on, machines)
    _together(Machine.set_clock, machines)


def _together(act: Callable[[Machine], object], machines: Iterable[Machine]) -> None:
    """Does one thing to several machines side by side; the first error counts, after all have ended."""
    todo = tuple(machines)
    if todo:
        with ThreadPoolExecutor(max_workers=len(todo)) as pool:
            for future in [pool.submit(act, one) for one in todo]:
                future.result()
