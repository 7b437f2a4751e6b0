"""The starter inventory that `fabricctl init DIR` writes: a copy of the shipped example, which loads as it is."""

from pathlib import Path

from fabric.errors import IntentError, Problem
from fabric.resources import data_path

__all__ = ("example",)


def example(directory: Path) -> tuple[Path, ...]:
    """Returns the files that it wrote below `directory`, which is made when it is not there.

    Raises:
        IntentError: the folder has something in it; nothing is overwritten.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise IntentError(
            [
                Problem(
                    "the folder is not empty, and nothing is overwritten",
                    place=str(directory),
                    remedy="Name a new or an empty folder.",
                )
            ]
        )
    source = data_path("inventory", "example-site")
    written = []
    for file in sorted(source.rglob("*")):
        if file.is_file():
            copy = directory / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
            written.append(copy)
    return tuple(written)
