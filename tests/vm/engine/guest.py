"""The engine inside a guest: the package as the guest's own Python runs it, without pip and without its dependencies.

A guest has what the distribution gives (Python 3.11, pyverbs 44, rdma-core), so what runs there is the engine as it is
installed by `pip install --no-deps`.
"""

import io
import tarfile
from pathlib import Path
from typing import Final

import fabric
from fabric.remote.ssh import SshClient
from tests.vm.traffic import run

__all__ = ("FOLDER", "install", "package", "python")

FOLDER: Final = "/root/engine"
_ROOT: Final = Path(fabric.__file__).resolve().parent
_CARRIED: Final = (".py", ".so")  # compiled modules too, where the checkout has some


def package() -> bytes:
    """Returns the modules of `fabric` that an engine may import, as a gzipped tar."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path in sorted(_ROOT.rglob("*")):
            inside = path.relative_to(_ROOT)
            wanted = len(inside.parts) == 1 or inside.parts[0] == "engine"
            if path.suffix in _CARRIED and wanted:
                tar.add(path, arcname=str(Path("fabric") / inside))
    return buffer.getvalue()


def install(session: SshClient) -> None:
    """Puts the package into a guest, compiled to byte code; an older one there is replaced."""
    session.put("/root/engine.tar.gz", package())
    script = f"rm -rf {FOLDER}; mkdir {FOLDER}; tar -xzf /root/engine.tar.gz -C {FOLDER}"
    run(session, "sh", "-euc", f"{script}; python3 -m compileall -q {FOLDER}")


def python(session: SshClient, program: str, *words: str, timeout_s: float = 300) -> str:
    """Returns what a program printed that imports the engine; it must succeed."""
    return run(session, "env", f"PYTHONPATH={FOLDER}", "python3", "-c", program, *words, timeout_s=timeout_s)
