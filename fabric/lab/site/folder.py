"""Where one lab lies, and who may change it. One lab a folder.

| in the folder | what it is |
|---|---|
| `lock` | held by whoever brings the lab up, takes it down or restores it, and says which process that is |
| `lab.json` | what runs here, and the token of its process: written before the process exists |
| `process.json`, `process.log` | which process carries switches and cables, and what it printed |
| `control`, `wire/` | its socket, and those of the machines' data ports |
| `fronts/`, `machines/` | host keys of the switches; the virtual machines, as `fabric.lab.vm` lays them |
| `running.json` | how to log in to each device, once all are up |
| `NAME.password`, `NAME.askpass` | what `lab ssh` gives to ssh |

A folder that holds none of `lock` and `lab.json` was not made by a lab, and is neither cleared nor changed.
"""

import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fabric import serial
from fabric.errors import HostError
from fabric.lab.site.spec import LabSpec
from fabric.lab.vm import Accelerator, Image, processes, sweep

__all__ = ("LabFolder", "Login", "Record", "lab_path")

_MARKS: Final = ("lock", "lab.json")
_FOLDERS: Final = ("wire", "fronts", "machines")
_FILES: Final = ("process.json*", "process.log", "control", "running.json", "*.password", "*.askpass", ".*.part")
_TOKEN: Final = re.compile(r"[0-9a-f]{16,64}")  # anything shorter would be found in strangers' command lines


@dataclass(frozen=True, slots=True)
class Record:
    """What `lab.json` holds.

    Attributes:
        token: in the command line of the lab's process.
        image, accelerator: digest of what the machines booted, and what they run under.
    """

    spec: LabSpec
    token: str
    image: str
    accelerator: Accelerator


@dataclass(frozen=True, slots=True)
class Login:
    """How to log in to a device of the lab, as `running.json` has it."""

    host: str
    port: int
    user: str
    known_hosts: str
    password: str | None = field(default=None, repr=False)
    private_key: str | None = None


def lab_path(environment: Mapping[str, str]) -> Path:
    """Returns the lab's folder: FABRICCTL_LAB, else `fabricctl/lab` in the user's state folder."""
    if named := environment.get("FABRICCTL_LAB"):
        return Path(named).absolute()
    base = environment.get("XDG_STATE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".local" / "state") / "fabricctl" / "lab"


@dataclass(frozen=True, slots=True)
class LabFolder:
    """The files of one lab."""

    path: Path

    @property
    def machines(self) -> Path:
        """Returns where the virtual machines lie."""
        return self.path / "machines"

    @property
    def wire(self) -> Path:
        """Returns where the sockets of data ports are."""
        return self.path / "wire"

    @property
    def fronts(self) -> Path:
        """Returns where the switches' host keys lie."""
        return self.path / "fronts"

    @property
    def log(self) -> Path:
        """Returns what the lab's process printed."""
        return self.path / "process.log"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lab for changing it; the lock goes with the process that holds it.

        Raises:
            HostError: somebody else holds it, the folder cannot be made, or it is somebody else's.
        """
        descriptor = self._own_lock()
        try:
            if holder := processes.record_of(os.getpid(), ""):
                os.write(descriptor, json.dumps(serial.to_json(holder)).encode())
            yield
        finally:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def _own_lock(self) -> int:
        while True:
            descriptor = self._opened_lock()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(descriptor)
                raise HostError(
                    "another fabricctl is changing this lab now",
                    where=str(self.path),
                    remedy="Wait for it, or name another folder: FABRICCTL_LAB=DIR.",
                ) from error
            if _is_at(descriptor, self.path / "lock"):
                os.ftruncate(descriptor, 0)  # a holder that was killed left its name
                return descriptor
            os.close(descriptor)  # who held it has removed the lab: nobody else would see this lock

    def _opened_lock(self) -> int:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(self.path.iterdir()) and not self.is_ours():
                raise HostError(
                    "the folder is not the lab's: other files lie in it",
                    where=str(self.path),
                    remedy="Name a new one: FABRICCTL_LAB=DIR.",
                )
            self.path.chmod(0o700)
            return os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HostError("the lab's folder cannot be made", where=str(self.path), found=str(error)) from error

    def is_ours(self) -> bool:
        """Returns whether a lab made the folder's files."""
        return any((self.path / name).exists() for name in _MARKS)

    def is_changing(self) -> bool:
        """Returns whether somebody is bringing the lab up, taking it down or restoring it."""
        holder = processes.read_record(self.path / "lock")
        return holder is not None and processes.is_running(holder)

    def remains(self) -> tuple[str, ...]:
        """Returns the names of what lies here of a lab, alive or dead; () when there is none."""
        return tuple(sorted(path.name for path in self._files())) if self.is_ours() else ()

    def _files(self) -> list[Path]:
        """Returns what there is to remove; what says that there is a lab comes last."""
        found = [path for name in (*_FOLDERS, *_FILES) for path in self.path.glob(name)]
        return [*found, *self.path.glob("lab.json")]

    def record(self) -> Record | None:
        """Returns what was started here, None when nothing was or it cannot be read."""
        try:
            return serial.from_json(Record, json.loads((self.path / "lab.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def begin(self, spec: LabSpec, image: Image, accelerator: Accelerator) -> Record:
        """Notes what is about to be started."""
        record = Record(spec, secrets.token_hex(8), image.digest, accelerator)
        self.write_private("lab.json", json.dumps(serial.to_json(record)))
        for folder in (self.wire, self.fronts, self.machines):
            folder.mkdir(mode=0o700, exist_ok=True)
        return record

    def note_process(self, pid: int, token: str) -> None:
        """Notes which process carries switches and cables."""
        if found := processes.record_of(pid, token):
            processes.write_record(self.path / "process.json", found)

    def is_running(self) -> bool:
        """Returns whether that process is alive."""
        found = processes.read_record(self.path / "process.json")
        return found is not None and processes.is_running(found)

    def logins(self) -> dict[str, Login]:
        """Returns how to log in, by device; empty while the lab is not up."""
        try:
            rows = json.loads((self.path / "running.json").read_text(encoding="utf-8"))
            return {name: serial.from_json(Login, row) for name, row in rows.items()}
        except (OSError, ValueError, AttributeError):  # of another version: nobody can log in by it
            return {}

    def write_logins(self, logins: Mapping[str, Login]) -> None:
        """Says that the lab is up, and how to log in."""
        self.write_private("running.json", json.dumps(serial.to_json(logins), indent=1) + "\n")

    def write_private(self, name: str, text: str, *, mode: int = 0o600) -> Path:
        """Writes a file that only the owner may read; a reader sees the old content or this, whole."""
        part, path = self.path / f".{name}.{secrets.token_hex(6)}.part", self.path / name
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        part.rename(path)
        return path

    def end_process(self) -> bool:
        """Ends the process that carries switches and cables, and returns whether there was one."""
        (self.path / "running.json").unlink(missing_ok=True)
        ended = False
        if found := processes.read_record(self.path / "process.json"):
            ended = processes.end(found)
        if token := self._token():  # it may have been started and not noted
            ended = processes.end_all(f"fabric-{token}") or ended
        (self.path / "process.json").unlink(missing_ok=True)
        (self.path / "control").unlink(missing_ok=True)
        return ended

    def _token(self) -> str:
        """Returns the token of the lab's process, also where another version wrote the record; "" for none."""
        try:
            token = json.loads((self.path / "lab.json").read_text(encoding="utf-8"))["token"]
        except (OSError, ValueError, TypeError, LookupError):
            return ""
        return token if isinstance(token, str) and _TOKEN.fullmatch(token) else ""

    def clear(self) -> tuple[str, ...]:
        """Ends every process and removes every file of the lab, whoever left them; returns what ran or lay here.

        These are the devices; where none can be told, the files.
        """
        record = self.record()
        self.end_process()
        names = set(sweep(self.machines))
        names |= {switch.name for switch in record.spec.switches} if record else set()
        files = self._files()
        for path in files:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        folders = {*_FOLDERS}  # empty ones tell nothing
        return tuple(sorted(names or {path.name for path in files} - folders))

    def remove(self) -> None:
        """Removes the empty folder, by who holds its lock; what somebody else put there stays."""
        (self.path / "lock").unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()


def _is_at(descriptor: int, path: Path) -> bool:
    """Returns whether the open file is what stands at the path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
