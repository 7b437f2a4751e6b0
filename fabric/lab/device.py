"""What the SSH side may ask of an emulated device, and the device of its data plane. Knows no socket."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fabric.lab.alarms import Alarms
from fabric.lab.faults import FaultBox
from fabric.state import PortCounters, WatchdogCounters

__all__ = ("DataPlane", "Device", "Dialogue", "FileStore", "Neighbour", "PortReading", "Reply")


@dataclass(frozen=True, slots=True)
class PortReading:
    """What the data plane counted at one port. UNKNOWN where it did not answer in time.

    Attributes:
        storms: by watched queue, the packets of its last storm alone.
        early_bytes: per queue (dropped early, marked); () when not known.
        is_up: neither shut down nor its cable cut.
    """

    counters: PortCounters
    storms: tuple[WatchdogCounters, ...] = ()
    early_bytes: tuple[tuple[int, int], ...] = ()
    is_up: bool = True


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Who is at the other end of a port's cable, as LLDP would tell.

    Attributes:
        mac: `02:00:5e:00:00:41`, "" when it tells none. is_switch: bridge and router, else a station.
    """

    system: str
    port: str
    mac: str = ""
    description: str = ""
    is_switch: bool = False


class DataPlane(Protocol):
    """What forwards for one device. May be asked while the device's lock is held: it never takes that."""

    def settle(self, device: "Device") -> None:
        """Makes the data plane obey the device's running configuration; callers hold the device's lock."""
        ...

    def readings(self) -> Mapping[str, PortReading]:
        """Returns the ports that have a cable."""
        ...

    def neighbours(self) -> Mapping[str, Neighbour]:
        """Returns by port who answers there."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one command.

    Attributes:
        text: standard output, lines ended by a newline. error: standard error, exec channels only.
        exit_status: of an exec channel; in a shell, not 0 for a refusal.
        ends_dialogue: the shell logs out after it.
    """

    text: str = ""
    error: str = ""
    exit_status: int = 0
    ends_dialogue: bool = False


class Dialogue(Protocol):
    """One interactive shell."""

    def greeting(self) -> str:
        """Returns what is printed before the first prompt."""
        ...

    def prompt(self) -> str:
        """Returns the prompt of now."""
        ...

    def hides_input(self) -> bool:
        """Returns whether the next line is a secret and is not echoed."""
        ...

    def feed(self, line: str) -> Reply:
        """Returns the answer to one typed line."""
        ...


class FileStore(Protocol):
    """The files that SFTP sees; paths are absolute. Errors are `OSError`s with an errno."""

    def read(self, path: str, *, user: str = ...) -> bytes:
        """Returns the bytes of a file, as `user` may see them."""
        ...

    def write(self, path: str, content: bytes, *, user: str, mode: int | None = None) -> None:
        """Makes or replaces a file as `user`."""
        ...

    def remove(self, path: str, *, user: str) -> None:
        """Removes a file as `user`."""
        ...

    def set_mode(self, path: str, mode: int, *, user: str) -> None:
        """Changes the permission bits."""
        ...

    def make_folder(self, path: str, *, user: str) -> None:
        """Makes a folder."""
        ...

    def rename(self, old: str, new: str, *, user: str) -> None:
        """Moves a file, replacing what is there."""
        ...

    def listing(self, path: str) -> tuple[str, ...]:
        """Returns the names in a folder, sorted."""
        ...

    def stat(self, path: str) -> tuple[int, int, float]:
        """Returns (mode with the type bits, size in bytes, modification time in Unix seconds)."""
        ...


class Device(Protocol):
    """One emulated device; callers hold `lock` around every call.

    Attributes:
        plane: what forwards for it, None for nothing.
    """

    plane: DataPlane | None

    @property
    def lock(self) -> threading.RLock:
        """Returns the lock of its state."""
        ...

    @property
    def alarms(self) -> Alarms:
        """Returns its timers."""
        ...

    @property
    def faults(self) -> FaultBox:
        """Returns its faults."""
        ...

    @property
    def files(self) -> FileStore | None:
        """Returns what SFTP serves, or None for no SFTP."""
        ...

    def running(self) -> str:
        """Returns the running configuration as the device shows it."""
        ...

    def startup(self) -> str:
        """Returns the saved configuration."""
        ...

    def shut_ports(self) -> frozenset[str]:
        """Returns the ports that the running configuration shuts down."""
        ...

    def is_commit(self, command: str) -> bool:
        """Returns whether the command makes a change take effect."""
        ...

    def reboot(self) -> None:
        """Boots with the saved configuration: timers and open sessions are gone, and connections for a while."""
        ...

    def take_outage_s(self) -> float:
        """Returns for how many seconds the device now drops all connections, and forgets it; 0 for not."""
        ...

    def dialogue(self, user: str) -> Dialogue:
        """Returns a new interactive shell."""
        ...

    def execute(self, command: str, user: str) -> Reply:
        """Returns the answer to a command of an exec channel."""
        ...
