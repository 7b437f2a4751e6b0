"""What a helper needs to know of this machine: versions, limits, room. No name, no address, no value of a variable."""

import importlib.metadata
import locale
import os
import platform
import resource
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fabric._version import __version__
from fabric.serial import Json

__all__ = ("platform_facts", "versions")

_DISTRIBUTIONS: Final = (
    "ansible-core",
    "ansible-runner",
    "crc32c",
    "jinja2",
    "netmiko",
    "optuna",
    "paramiko",
    "prometheus-client",
    "pydantic",
    "pyverbs",
    "rich",
    "ruamel.yaml",
    "typer",
)
_TELLING: Final = ("FABRICCTL_", "ANSIBLE_", "PYTHON", "XDG_", "LANG", "LC_")  # their names only
_LIMITS: Final = {"file_bytes": resource.RLIMIT_FSIZE, "open_files": resource.RLIMIT_NOFILE}


def versions() -> dict[str, Json]:
    """Returns the versions of fabricctl, Python and the libraries, None for what is not installed."""
    found: dict[str, Json] = {"fabricctl": __version__, "python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def platform_facts(folders: Mapping[str, Path], unix_s: float) -> dict[str, Json]:
    """Returns what kind of machine this is; `folders` are asked for their free space."""
    limits: dict[str, Json] = {name: _finite(resource.getrlimit(number)[0]) for name, number in _LIMITS.items()}
    free: dict[str, Json] = {name: _free(path) for name, path in folders.items()}
    names: list[Json] = [name for name in sorted(os.environ) if name.startswith(_TELLING)]
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "distribution": _distribution(),
        "python": sys.implementation.name,
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "root": os.geteuid() == 0,
        "encoding": locale.getpreferredencoding(do_setlocale=False),
        "unix_s": unix_s,
        "limits": limits,
        "free_bytes": free,
        "variables_set": names,
    }


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _finite(limit: int) -> int | None:
    return None if limit == resource.RLIM_INFINITY else limit


def _free(path: Path) -> int | None:
    try:
        nearest = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
        return shutil.disk_usage(nearest).free
    except OSError:
        return None
