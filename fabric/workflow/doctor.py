"""What this machine has and lacks, with the exact fix for each. Looks; installs nothing."""

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import fabric
from fabric.errors import FabricError
from fabric.resources import data_path
from fabric.workflow.environment import default_state_dir

__all__ = ("Symptom", "doctor")

_LIBRARIES: Final = (
    ("ansible", "ansible-core", "reads inventories"),
    ("ansible_runner", "ansible-runner", "runs playbooks"),
    ("jinja2", "jinja2", "renders EOS"),
    ("netmiko", "netmiko", "speaks to EOS"),
    ("paramiko", "paramiko", "speaks to SONiC"),
    ("pydantic", "pydantic", "validates the intent"),
    ("rich", "rich", "prints"),
    ("ruamel.yaml", "ruamel.yaml", "finds lines in YAML"),
    ("typer", "typer", "reads the command line"),
)
_PYTHON: Final = (3, 11)  # pyproject requires-python


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that was looked at.

    Attributes:
        needed: without it the main job does not run.
        told: what was found.
        remedy: the exact fix, "" when nothing is wrong.
    """

    name: str
    ok: bool
    needed: bool
    told: str
    remedy: str = ""


def doctor() -> tuple[Symptom, ...]:
    """Returns what was found, needed things first."""
    found = [_python(), _name(), *_libraries(), _data(), _state(), *_programs(), _pyverbs()]
    return tuple(sorted(found, key=lambda one: not one.needed))


def _python() -> Symptom:
    told = ".".join(str(part) for part in sys.version_info[:3])
    fix = "Install Python 3.11 or later: apt-get install -y python3 python3-venv"
    ok = sys.version_info >= _PYTHON
    return Symptom("python", ok, needed=True, told=told, remedy="" if ok else fix)


def _name() -> Symptom:
    """The SSH library `fabric` has our import name; both in one environment overwrite each other."""
    try:
        rival = importlib.metadata.version("fabric")
    except importlib.metadata.PackageNotFoundError:
        rival = ""
    ours = hasattr(fabric, "__version__") and Path(fabric.__file__ or "").with_name("tree.py").exists()
    if ours and not rival:
        return Symptom("import name", ok=True, needed=True, told=str(Path(fabric.__file__ or "").parent))
    pip = f"{sys.executable} -m pip"
    return Symptom(
        "import name",
        ok=False,
        needed=True,
        told=f"the SSH library fabric {rival} shares the import name and overwrites files of fabricctl",
        remedy=f"{pip} uninstall -y fabric && {pip} install --force-reinstall fabricctl",
    )


def _libraries() -> Iterator[Symptom]:
    for module, distribution, use in _LIBRARIES:
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        ok = bool(version) and importlib.util.find_spec(module.split(".", maxsplit=1)[0]) is not None
        yield Symptom(
            distribution,
            ok,
            needed=True,
            told=version or f"not installed; {use}",
            remedy="" if ok else f"{sys.executable} -m pip install {distribution}",
        )


def _data() -> Symptom:
    try:
        told = ", ".join(str(data_path(name)) for name in ("templates", "playbooks", "inventory"))
    except FabricError as error:
        return Symptom("data files", ok=False, needed=True, told=error.what, remedy=error.remedy)
    return Symptom("data files", ok=True, needed=True, told=told)


def _state() -> Symptom:
    path = default_state_dir()
    nearest = next(one for one in (path, *path.parents) if one.exists())
    if os.access(nearest, os.W_OK):
        return Symptom("state directory", ok=True, needed=True, told=str(path))
    return Symptom(
        "state directory",
        ok=False,
        needed=True,
        told=f"{nearest} cannot be written",
        remedy="Name another: export FABRICCTL_STATE=/some/where",
    )


def _programs() -> Iterator[Symptom]:
    for program, package, use in (
        ("ssh-keyscan", "openssh-client", "shows host keys to accept"),
        ("yanglint", "libyang2-tools", "judges SONiC configurations in the tests"),
    ):
        path = shutil.which(program)
        told = path or f"not on PATH; {use}"
        yield Symptom(program, path is not None, False, told, "" if path else f"apt-get install -y {package}")


def _pyverbs() -> Symptom:
    if importlib.util.find_spec("pyverbs") is not None:
        return Symptom("pyverbs", ok=True, needed=False, told="importable")
    return Symptom(
        "pyverbs",
        ok=False,
        needed=False,
        told="not importable; the RDMA transport of a later release needs it",
        remedy="apt-get install -y python3-pyverbs, and make the environment with --system-site-packages",
    )
