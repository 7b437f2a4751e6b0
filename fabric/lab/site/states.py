"""Warm states: machines as they were after their first boot, kept in the cache so that the next lab need not boot.

    CACHE/states/KEY/   what `Machine.snapshot` wrote; its time is when it was last used

The key covers all that a saved memory depends on: image, machine, emulator and its version, processor and the kernel's
words. A state that nobody used for two weeks goes, unless a machine runs on it. It holds the keys of a lab's machine,
which reach no further than this machine's loopback address.
"""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from fabric import serial
from fabric.clock import Clock
from fabric.errors import HostError
from fabric.lab.vm import Accelerator, Image, Machine, MachineSpec, processes
from fabric.lab.vm.programs import find
from fabric.lab.vm.qemu import kept_alike

__all__ = ("WarmStates", "qemu_version")

_KEPT_S: Final = 14 * 86_400.0
_PART_S: Final = 3_600.0  # nobody writes a state for longer


def qemu_version() -> str:
    """Returns what QEMU says of itself, "" when it is not here."""
    path = find("qemu-system-x86_64")
    if path is None:
        return ""
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return said.stdout.partition("\n")[0]


class WarmStates:
    """The states of one image under one accelerator.

    Args:
        cache: the lab's cache.
        image: what the machines boot.
        accelerator: what they run under.
        emulator: version of QEMU.
        clock: says what is old.
    """

    def __init__(self, cache: Path, image: Image, accelerator: Accelerator, emulator: str, clock: Clock) -> None:
        self._folder = cache / "states"
        self._basis = [image.digest, *kept_alike(accelerator), emulator]
        self._clock = clock

    def key(self, spec: MachineSpec) -> str:
        """Returns the name of a machine's state; where its sockets are does not matter."""
        nics = tuple(replace(nic, socket="") for nic in spec.nics)
        text = json.dumps([self._basis, serial.to_json(replace(spec, nics=nics))], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def find(self, spec: MachineSpec) -> Path | None:
        """Returns the state of a machine, None when there is none; one that is found counts as used."""
        folder = self._folder / self.key(spec)
        if not folder.is_dir():
            return None
        with suppress(OSError):
            now_s = self._clock.unix_s()
            os.utime(folder, (now_s, now_s))
        return folder

    def keep(self, machine: Machine) -> None:
        """Saves a machine that has booted and was not used yet; it runs on.

        Raises:
            HostError: it could not be saved.
        """
        final = self._folder / self.key(machine.spec)
        part = self._folder / f"new-{secrets.token_hex(6)}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            machine.snapshot(part)
            part.rename(final)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            if not final.is_dir():  # another lab was faster: its state is as good
                raise HostError("a warm state could not be kept", where=machine.spec.name, found=str(error)) from error

    def drop(self, spec: MachineSpec) -> None:
        """Forgets a state that does not come up."""
        shutil.rmtree(self._folder / self.key(spec), ignore_errors=True)

    def prune(self) -> None:
        """Removes states that nobody used for long, and what an interrupted save left."""
        if not self._folder.is_dir():
            return
        for folder in self._folder.iterdir():
            limit_s = _PART_S if folder.name.startswith("new-") else _KEPT_S
            with suppress(OSError):
                is_old = self._clock.unix_s() - folder.stat().st_mtime > limit_s
                if is_old and not processes.is_open_below(folder):
                    shutil.rmtree(folder, ignore_errors=True)
