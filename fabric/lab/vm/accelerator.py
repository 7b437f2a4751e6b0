"""Whether this machine's KVM can run the lab. `/dev/kvm` may exist and be useless: only a boot tells."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from fabric.lab.vm.image import Image
from fabric.lab.vm.programs import find
from fabric.lab.vm.qemu import Accelerator, probe_command_line

__all__ = ("boots", "pick_accelerator")

_PROBE_S: Final = 10.0
_SIGN: Final = b"fabric-lab: probe"
_KVM: Final = Path("/dev/kvm")


def boots(image: Image, accelerator: Accelerator, *, limit_s: float = _PROBE_S) -> bool:
    """Returns whether the kernel boots to the initial RAM file system in time."""
    # Not this process ends it: one that is killed meanwhile would leave a hanging kernel behind.
    limited = ("timeout", "--foreground", "--signal=KILL", f"{limit_s:g}", *probe_command_line(image, accelerator))
    printed = subprocess.run(
        limited, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    ).stdout
    return _SIGN in printed


def pick_accelerator(image: Image) -> Accelerator:
    """Returns KVM if a probe boot works with it, else TCG. Asked once per boot of this machine and image."""
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return Accelerator.TCG
    note = image.folder.parent / f"{image.digest}.accelerator"
    question = f"{_boot_id()} {_version_of('qemu-system-x86_64')}"
    with suppress(OSError, ValueError):
        answered, _, answer = note.read_text(encoding="utf-8").rpartition(" ")
        if answered == question:
            return Accelerator(answer)
    found = Accelerator.KVM if boots(image, Accelerator.KVM) else Accelerator.TCG
    with suppress(OSError):  # a cache that cannot be written costs the next lab a probe
        note.write_text(f"{question} {found}", encoding="utf-8")
    return found


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _version_of(program: str) -> str:
    path = find(program)
    return f"{Path(path).stat().st_mtime_ns}" if path else ""
