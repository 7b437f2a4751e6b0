"""One operator at a device at a time, on this machine and on others that share the state directory.

The lock is a file that its holder keeps `flock`ed: the kernel lets go when the process dies, however it dies. The
file's content says who holds it, for people, and for other machines, where `flock` does not reach: there the expiry
decides. A lock left by a dead process is taken over, and the new holder learns until when the device's own timer may
still be running.
"""

import fcntl
import json
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from fabric.clock import Clock
from fabric.errors import DeviceError, FabricError
from fabric.push.journal import file_name, private_folder
from fabric.serial import SerialError, from_json, parse_json, to_json

__all__ = ("DeviceLock", "LockRecord", "holder", "in_flux", "in_our_time")


_FOLDER: Final = "locks"
_LATEST_S: Final = 253402300799.0  # the end of the year 9999: a record may say anything
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class LockRecord:
    """What a lock file says.

    Attributes:
        expires_unix_s: on other machines the lock counts until then.
        settles_unix_s: the device's own timer has surely run by then; 0 if none was armed.
        run: the run that holds it.
        boot: of the kernel that `settles_ns` counts for, "" where that is not known.
        settles_ns: as `settles_unix_s`, by a clock that nobody sets; all processes since that boot share it.
    """

    device: str
    owner: str
    pid: int
    host: str
    run: str
    started_unix_s: float
    expires_unix_s: float
    settles_unix_s: float = 0.0
    boot: str = ""
    settles_ns: int = 0


def in_our_time(record: LockRecord, clock: Clock) -> LockRecord:
    """Returns the record as the clock has it now: it may have been set, forth or back, since the record was made."""
    now_s = clock.unix_s()
    ahead_s = max(0.0, record.started_unix_s - now_s)  # it began in our future: count from now
    settles_unix_s = record.settles_unix_s - ahead_s if record.settles_unix_s else 0.0
    if record.settles_unix_s and record.boot and record.boot == _boot():
        settles_unix_s = now_s + (record.settles_ns - clock.now_ns()) / 1e9
    return replace(
        record,
        started_unix_s=record.started_unix_s - ahead_s,
        expires_unix_s=record.expires_unix_s - ahead_s,
        settles_unix_s=settles_unix_s,
    )


def holder(record: LockRecord) -> str:
    """Returns who holds, or held, a device, and since when."""
    since = datetime.fromtimestamp(min(max(record.started_unix_s, 0.0), _LATEST_S), tz=UTC)
    who = f"run {record.run} of {record.owner or 'somebody'}, process {record.pid} on {record.host}"
    return f"{who}, since {since:%Y-%m-%d %H:%M:%S} UTC"


def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:  # no /proc here
        return ""


def in_flux(state_dir: Path, device: str) -> bool:
    """Returns whether a run is at the device, or died there or lost it: what it runs now may not last, or not be saved.

    Asks without locking: a reader must not keep a writer out.
    """
    try:
        return _path(state_dir, device).stat().st_size > 0
    except OSError:  # nobody was ever there; whoever pushes will say what is wrong with the directory
        return False


def _path(state_dir: Path, device: str) -> Path:
    return state_dir / _FOLDER / f"{file_name(device)}.lock"


class DeviceLock:
    """The lock of one device. A context manager; not to be entered twice.

    Args:
        state_dir: mode 0700.
        owner: user name, for the message that others get. run: id of the run.
        expires_s: seconds that the lock counts on other machines.
    """

    def __init__(self, state_dir: Path, device: str, *, owner: str, run: str, clock: Clock, expires_s: float) -> None:
        private_folder(private_folder(state_dir) / _FOLDER)
        self._path = _path(state_dir, device)
        self._clock = clock
        self._expires_s = expires_s
        now_s = clock.unix_s()
        self._record = LockRecord(
            device=device,
            owner=owner,
            pid=os.getpid(),
            host=os.uname().nodename,
            run=run,
            started_unix_s=now_s,
            expires_unix_s=now_s + expires_s,
        )
        self._descriptor: int | None = None
        self._kept = False
        self.inherited: LockRecord | None = None
        """The record of a holder that died, or left the device unknown, or None."""

    def __enter__(self) -> Self:
        """Takes the lock.

        Raises:
            DeviceError: somebody else holds it.
            FabricError: the state directory cannot be written.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise self._broken(error) from error
        try:
            self._take(descriptor)
        except FabricError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Lets go. The file stays: removing it would race with the next holder.

        After an exception its record stays too: a timer may still be running on the device.
        """
        del rest
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            if kind is None and not self._kept:
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def keep(self) -> None:
        """Leaves the record behind: the next holder must know that the device may not have saved what it runs."""
        self._kept = True

    def arm(self, settles_unix_s: float) -> None:
        """Notes until when the device's own timer may run, for whoever takes over from a dead holder.

        Raises:
            FabricError: it cannot be written.
        """
        if self._descriptor is None:
            raise FabricError("the lock is not held", where=self._record.device)
        expires_unix_s = max(self._record.expires_unix_s, settles_unix_s + self._expires_s)
        record = replace(self._record, expires_unix_s=expires_unix_s)
        self._write(self._descriptor, self._settling(record, settles_unix_s))

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise self._held(self._read(descriptor)) from error
        except OSError as error:
            raise self._broken(error) from error
        left = self._read(descriptor)
        found = in_our_time(left, self._clock) if left is not None else None
        if found is not None and found.host != self._record.host and found.expires_unix_s > self._clock.unix_s():
            raise self._held(found)
        self.inherited = found
        # until we arm our own timer, the one of the dead holder is what the next must wait for
        settles_unix_s = found.settles_unix_s if found is not None else 0.0
        self._write(descriptor, self._settling(self._record, settles_unix_s))

    def _settling(self, record: LockRecord, settles_unix_s: float) -> LockRecord:
        settles_ns = self._clock.now_ns() + round((settles_unix_s - self._clock.unix_s()) * 1e9)
        return replace(record, settles_unix_s=settles_unix_s, boot=_boot(), settles_ns=settles_ns)

    def _read(self, descriptor: int) -> LockRecord | None:
        try:
            return from_json(LockRecord, parse_json(os.pread(descriptor, 65536, 0)))
        except SerialError:  # empty, or torn by a full disk: it says nothing
            return None

    def _write(self, descriptor: int, record: LockRecord) -> None:
        try:
            data = json.dumps(to_json(record)).encode()
            os.ftruncate(descriptor, 0)
            if os.pwrite(descriptor, data, 0) != len(data):
                raise OSError("the record was cut off")
            os.fsync(descriptor)
        except OSError as error:
            raise self._broken(error) from error

    def _held(self, record: LockRecord | None) -> DeviceError:
        if record is None:
            return DeviceError("another run holds this device", where=self._record.device, found=str(self._path))
        left_s = max(0, round(record.expires_unix_s - self._clock.unix_s()))
        if record.host == self._record.host:
            broken = f"if that process hangs, end it: kill {record.pid}. Its lock goes with it"
        else:
            broken = f"if that machine is gone, the lock expires in {left_s} s, or remove {self._path}"
        return DeviceError(
            "another run holds this device",
            where=self._record.device,
            found=holder(record),
            remedy=f"Wait until it ends; on other machines its lock expires in {left_s} s. To break it: {broken}.",
        )

    def _broken(self, error: OSError) -> FabricError:
        return FabricError(
            "the lock cannot be taken",
            where=str(self._path),
            found=error.strerror or str(error),
            remedy="The state directory must be writable and on a file system with flock.",
        )
