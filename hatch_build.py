"""Compiles the block transport's core when fabricctl is installed or built, where there is a C compiler.

It needs the compiler and the C library's headers, nothing of Python. Without them the install goes on and says so: the
engine then works on files and devices by threads of Python. `CC` names another compiler.
"""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("fabric/engine/transport/block")
SOURCES, MADE = ("core.c", "ring.c"), "_core.so"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread")


def compile_core(root: Path) -> str:
    """Compiles the core beside its source; returns why that cannot be done, or nothing."""
    sources, made = [str(root / FOLDER / name) for name in SOURCES], root / FOLDER / MADE
    partial = made.with_suffix(f".{os.getpid()}")
    command = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, "-o", str(partial), *sources]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        return f"there is no {command[0]}"
    except subprocess.CalledProcessError as error:
        return f"it does not compile: {error.stderr}"
    partial.replace(made)  # a running engine keeps the one that it has loaded
    return ""


class CoreHook(BuildHookInterface):
    """Puts the compiled core into the wheel, which then is for one kind of machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling; `version` is "editable" or "standard"."""
        why = compile_core(Path(self.root))
        if why:
            self.app.display_warning(f"files and devices will be read by threads of Python, not by core.c: {why}")
        elif version != "editable":
            build_data["force_include"][str(Path(self.root) / FOLDER / MADE)] = str(FOLDER / MADE)
            build_data["pure_python"] = False
            build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
