"""Compiles the engine's hot modules with mypyc, from the sources as they are, into a folder beside them.

    python compile_engine.py [FOLDER]         build/compiled without one

The folder then holds all of `fabric` and the compiled modules; `PYTHONPATH=FOLDER` in front uses it. The checkout stays
pure Python, which is what the tests run. It needs mypy and setuptools, a C compiler and the headers of this Python, and
makes modules for this version of it (3.11.x) and this machine. docs/decisions/0008-compile-the-hot-path.md says what it
is worth.
"""

import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
# What runs once a command. Not `transport.base`: mypyc 2.4 cannot make its dataclass of a memoryview. Not what a caller
# builds (`client.work`) and not what runs once a connection: there is nothing to gain.
MODULES = {
    "queues": "backlog commands deadlines dealer fair fleet lane ledger load request split",
    "queues/dealing": "least_bytes rail_aware rendezvous round_robin",
    "nvmeof/host": "controller ioqueues keepalive outputs posting queue requests slots telemetry",
    "nvmeof/wire": "completion io",
    "client": "checking controllerlink engine link measuredlink quarantine",
    "transport": "driver",
    "metrics": "histogram meter",
}


def sources() -> list[str]:
    """Returns the modules to compile, relative to the folder that holds `fabric`."""
    return [f"fabric/engine/{folder}/{name}.py" for folder, names in MODULES.items() for name in names.split()]


def main() -> int:
    """Returns the exit code."""
    # lazy: whoever only asks for the list needs neither
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "compiled").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    skipped = shutil.ignore_patterns("__pycache__", "*.cpython-*.so")
    shutil.copytree(ROOT / "fabric", folder / "fabric", ignore=skipped)
    os.chdir(folder)  # mypyc names modules by their path from here
    # imports that are not compiled are `make lint`'s to check
    options = ["--follow-imports=silent", "--config-file=", *sources()]
    modules = mypycify(options, opt_level="2", debug_level="0", group_name="fabric_engine")
    command = build_ext(Distribution({"name": "fabric-engine", "ext_modules": modules}))
    command.inplace, command.parallel = True, os.cpu_count()
    command.ensure_finalized()
    command.run()
    shutil.rmtree("build")
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
