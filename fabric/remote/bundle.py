"""What an engine needs to run on a host where nothing is installed, as one archive. Knows neither host nor session.

The modules of `fabric` itself and of `fabric.engine`: standard library only. Unpacked into a folder, that folder is
what `PYTHONPATH` or the current folder has to be.
"""

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import fabric

__all__ = ("pack",)

_ROOT: Final = Path(fabric.__file__).resolve().parent
_MODE: Final = 0o644


def pack(*, cores: bool = False) -> bytes:
    """Returns a gzipped tar, the same bytes for the same modules.

    Args:
        cores: compiled modules too, where this installation has some. Only for hosts with the same C library and
            architecture; without them the engine takes the paths in plain Python.
    """
    buffer = io.BytesIO()
    # the name and the time of a gzip header would make two archives of the same modules differ
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in _carried((".py", ".so") if cores else (".py",)):
            data = path.read_bytes()
            member = tarfile.TarInfo(f"fabric/{path.relative_to(_ROOT).as_posix()}")
            member.size, member.mode = len(data), _MODE
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _carried(suffixes: tuple[str, ...]) -> Iterator[Path]:
    for path in sorted(_ROOT.rglob("*")):
        inside = path.relative_to(_ROOT).parts
        if path.suffix in suffixes and (len(inside) == 1 or inside[0] == "engine"):
            yield path
