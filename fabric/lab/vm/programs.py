"""Programs of this machine: which the lab needs, and running them. Knows nothing of images or VMs."""

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from fabric.errors import EnvironmentMissingError, HostError

__all__ = ("BUILDING", "RUNNING", "find", "need", "run")

RUNNING: Final[Mapping[str, str]] = {"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils"}
"""Program → Debian package, for starting VMs."""

BUILDING: Final[Mapping[str, str]] = {
    "mmdebstrap": "mmdebstrap",
    "cpio": "cpio",
    "depmod": "kmod",
    "modprobe": "kmod",
    "mke2fs": "e2fsprogs",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "tar": "tar",
}
"""Program → Debian package, for building the image."""

_ADMIN_FOLDERS: Final = "/usr/local/sbin:/usr/sbin:/sbin"  # not on a plain user's PATH, and fit for plain users
_SHOWN_LINES: Final = 8


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:{_ADMIN_FOLDERS}"


def find(program: str) -> str | None:
    """Returns the program's path, or None; looks where administrators' programs are, too."""
    return shutil.which(program, path=_path())


def need(programs: Mapping[str, str], *, found: Callable[[str], str | None] = find) -> None:
    """Returns if all programs are there.

    Args:
        programs: program → Debian package.
        found: how to look for one.

    Raises:
        EnvironmentMissingError: its remedy is one line to run.
    """
    missing = [name for name in programs if found(name) is None]
    if missing:
        packages = sorted({programs[name] for name in missing})
        raise EnvironmentMissingError(
            f"the lab's virtual machines need programs that are not here: {', '.join(missing)}",
            remedy=f"Run: sudo apt-get install -y --no-install-recommends {' '.join(packages)}",
        )


def run(
    argv: Sequence[str],
    *,
    doing: str,
    where: str = "lab image",
    cwd: Path | None = None,
    stdin: bytes = b"",
    keep: Sequence[int] = (),
    on_line: Callable[[str], None] | None = None,
) -> str:
    """Returns the standard output of a command that ended with 0.

    Args:
        argv: the command.
        doing: what it is for, as in "unpacking the kernel"; for the error.
        where: what it is part of; for the error.
        cwd: the folder that it runs in.
        stdin: what it reads.
        keep: file descriptors that it inherits: it holds their locks as long as it lives.
        on_line: takes each line of the standard error as it comes.

    Raises:
        HostError: it ended with another status; `found` has its last lines.
    """
    environment = {**os.environ, "PATH": _path(), "LC_ALL": "C.UTF-8"}
    tail: deque[str] = deque(maxlen=_SHOWN_LINES)
    # Files, not pipes, for two of the three: nothing fills up while we read the third.
    with TemporaryFile() as given, TemporaryFile() as printed:
        given.write(stdin)
        given.seek(0)
        with subprocess.Popen(
            argv, cwd=cwd, env=environment, pass_fds=keep, stdin=given, stdout=printed, stderr=subprocess.PIPE
        ) as process:
            for line in process.stderr or ():
                text = line.decode(errors="replace").rstrip()
                tail.append(text)
                if on_line is not None:
                    on_line(text)
        status = process.returncode
        printed.seek(0)
        stdout = printed.read()
    if status:
        raise HostError(f"{doing} failed: {argv[0]} ended with {status}", where=where, found="\n".join(tail))
    return stdout.decode(errors="replace")
