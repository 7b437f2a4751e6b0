"""Serving many emulated devices in one process, on ephemeral ports of the loopback interface.

One ticker thread fires due timers of all devices; each front has its listener. Leaving the context stops every
thread and closes every socket.
"""

import os
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.clock import Clock
from fabric.errors import FabricError
from fabric.lab.alarms import WallClock
from fabric.lab.device import DataPlane, Device
from fabric.lab.spec import LOOPBACK, DeviceSpec, Fault, FaultKind, NosName
from fabric.observe import Event, Observer, silent

if TYPE_CHECKING:
    from fabric.lab.ssh import SshFront

__all__ = ("Front", "Fronts", "serve")

_TICK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Front:
    """One served device: how to reach it, and what a test may look at or break.

    Attributes:
        host: always the loopback address. port: TCP port of SSH.
    """

    name: str
    nos: NosName
    username: str
    password: str = field(repr=False)
    _device: Device = field(repr=False)
    _ssh: "SshFront" = field(repr=False)
    _publish: "_Publisher" = field(repr=False)
    host: str = LOOPBACK

    @property
    def port(self) -> int:
        """Returns the TCP port of SSH."""
        return self._ssh.port

    @property
    def host_key_line(self) -> str:
        """Returns the known_hosts line of the first host key."""
        return self._ssh.host_key_lines()[0]

    def host_key_lines(self) -> tuple[str, ...]:
        """Returns the known_hosts lines of all host keys."""
        return self._ssh.host_key_lines()

    def running(self) -> str:
        """Returns the running configuration, as the device shows it."""
        with self._device.lock:
            return self._device.running()

    def startup(self) -> str:
        """Returns the saved configuration."""
        with self._device.lock:
            return self._device.startup()

    def connections(self) -> int:
        """Returns how many SSH connections are open."""
        return self._ssh.connections()

    def attach(self, plane: DataPlane) -> None:
        """Lets a data plane forward for the device: it obeys the running configuration from now on."""
        with self._device.lock:
            self._device.plane = plane
            plane.settle(self._device)

    def add_fault(self, fault: Fault) -> None:
        """Arms one more fault."""
        self._device.faults.add(fault)

    def clear_faults(self) -> None:
        """Disarms all faults."""
        self._device.faults.clear()

    def strikes(self) -> int:
        """Returns how often a fault has struck."""
        return self._device.faults.strikes

    def reboot(self) -> None:
        """Boots the device with its saved configuration, dropping every connection."""
        self._ssh.reboot()

    def restart(self, *, change_host_keys: bool = False, publish: bool = False) -> None:
        """Goes down and up on the same port, dropping every connection; the configuration stays.

        Args:
            change_host_keys: come up with other keys; a `new-host-key` fault does the same.
            publish: write the new keys into the known_hosts file.
        """
        change = self._device.faults.strike(FaultKind.NEW_HOST_KEY) is not None or change_host_keys
        self._ssh.restart(change_host_keys=change)
        if publish:
            self._publish()


class _Publisher:
    """Writes the known_hosts file of all fronts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fronts: list[SshFront] = []

    def __call__(self) -> None:
        lines = [line for one in self.fronts for line in one.host_key_lines()]
        _write_private(self.path, "\n".join([*lines, ""]))


class Fronts(Mapping[str, Front]):
    """The served devices by name."""

    def __init__(self, fronts: Mapping[str, Front], known_hosts: Path) -> None:
        self._fronts = dict(fronts)
        self.known_hosts = known_hosts

    def __getitem__(self, name: str) -> Front:
        return self._fronts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fronts)

    def __len__(self) -> int:
        return len(self._fronts)

    def inventory(self) -> str:
        """Returns an Ansible inventory overlay (YAML) with address, account and known_hosts file of each device.

        It holds the passwords: write it where only the owner reads.
        """
        import json  # JSON strings are YAML strings, whatever a name or path holds

        lines = ["all:", "  hosts:"]
        for front in self._fronts.values():
            pairs = {
                "ansible_host": front.host,
                "ansible_port": front.port,
                "ansible_user": front.username,
                "ansible_password": front.password,
                "fabric_known_hosts": str(self.known_hosts),
            }
            lines.append(f"    {json.dumps(front.name)}:")
            lines += [f"      {key}: {json.dumps(value)}" for key, value in pairs.items()]
        return "\n".join([*lines, ""])


@contextmanager
def serve(
    specs: Sequence[DeviceSpec], *, directory: Path, clock: Clock | None = None, observer: Observer = silent
) -> Iterator[Fronts]:
    """Yields the fronts of the specs, served until the context is left.

    Args:
        specs: the devices, each name once.
        directory: gets `known_hosts` and `inventory.yml`, both readable by the owner only.
        clock: of the timers on the devices; None for the machine's.
        observer: hears of every front and every command, not of their content.

    Raises:
        FabricError: two specs have one name, or a seed cannot be read.
    """
    from fabric.lab.ssh import SshFront  # lazy: paramiko takes 0.5 s and 40 MB that only a running lab needs

    names = [spec.name for spec in specs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FabricError("two devices of the lab have one name", found=", ".join(twice))
    publish = _Publisher(directory / "known_hosts")
    used_clock = clock or WallClock()
    fronts: dict[str, Front] = {}
    stopping = threading.Event()
    ticker = threading.Thread(target=_tick, args=(publish.fronts, stopping), name="lab-ticker")
    try:
        for spec in specs:
            device = _device(spec, used_clock)
            password = spec.password or secrets.token_urlsafe(12)
            ssh = SshFront(
                device,
                name=spec.name,
                username=spec.username,
                password=password,
                observer=observer,
                clock=used_clock,
            )
            publish.fronts.append(ssh)
            ssh.start()
            fronts[spec.name] = Front(spec.name, spec.nos, spec.username, password, device, ssh, publish)
            observer(Event("lab.front.started", device=spec.name, data={"port": ssh.port, "nos": spec.nos}))
        ticker.start()
        publish()
        served = Fronts(fronts, publish.path)
        _write_private(directory / "inventory.yml", served.inventory())
        yield served
    finally:
        stopping.set()
        if ticker.ident is not None:
            ticker.join()
        for one in publish.fronts:
            one.stop()


def _tick(fronts: "Sequence[SshFront]", stopping: threading.Event) -> None:
    fired: dict[str, int] = {}
    while not stopping.wait(_TICK_S):
        for front in fronts:
            device = front.device
            with device.lock:
                device.alarms.run_due()
                if device.plane is not None and fired.get(front.name, 0) != device.alarms.fired:
                    fired[front.name] = device.alarms.fired
                    device.plane.settle(device)
                outage_s = device.take_outage_s()
            front.go_down(outage_s)


def _device(spec: DeviceSpec, clock: Clock) -> Device:
    match spec.nos:
        case "eos":
            from fabric.lab.eos import EosDevice  # lazy: a lab of one network OS reads one grammar

            return EosDevice(spec, clock)
        case "sonic":
            from fabric.lab.sonic import SonicDevice  # lazy: likewise

            return SonicDevice(spec, clock)


def _write_private(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
