"""The engine inside a guest: the package as the guest's own Python runs it, without pip and without its dependencies.

A guest has what the distribution gives (Python 3.11, pyverbs 44, rdma-core), so what runs there is the engine as it is
installed by `pip install --no-deps`.
"""

from typing import Final

from fabric.remote.bundle import pack
from fabric.remote.ssh import SshClient
from tests.vm.traffic import run

__all__ = ("FOLDER", "install", "python")

FOLDER: Final = "/root/engine"


def install(session: SshClient) -> None:
    """Puts the package into a guest, compiled to byte code; an older one there is replaced."""
    session.put("/root/engine.tar.gz", pack(cores=True))  # compiled modules too, where the checkout has some
    script = f"rm -rf {FOLDER}; mkdir {FOLDER}; tar -xzf /root/engine.tar.gz -C {FOLDER}"
    run(session, "sh", "-euc", f"{script}; python3 -m compileall -q {FOLDER}")


def python(session: SshClient, program: str, *words: str, timeout_s: float = 300) -> str:
    """Returns what a program printed that imports the engine; it must succeed."""
    return run(session, "env", f"PYTHONPATH={FOLDER}", "python3", "-c", program, *words, timeout_s=timeout_s)
