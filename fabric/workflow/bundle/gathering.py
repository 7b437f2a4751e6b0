"""Reads a folder without leaving it: no link is followed, nothing but plain files of the wanted kinds is read."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fabric.errors import FabricError

__all__ = ("Found", "Kinds", "LeftOut", "walk")

_MOST_BYTES: Final = 16 << 20  # of one file
_MOST_FILES: Final = 20_000
_DEEPEST: Final = 8
_OPEN_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hold us up
_OPEN_FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Found:
    """A file: its path below the folder, and its bytes."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not in the bundle, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Kinds:
    """What is taken.

    Attributes:
        wanted: endings of file names.
        unwanted: other endings, with the reason.
    """

    wanted: tuple[str, ...]
    unwanted: Mapping[str, str] = field(default_factory=dict)

    def objection(self, entry: str) -> str:
        """Returns why a file of that name is left out, "" if it is not."""
        reason = next((why for ending, why in self.unwanted.items() if entry.endswith(ending)), "")
        return reason or ("" if entry.endswith(self.wanted) else "of no kind that is known to be harmless")


def walk(folder: Path, kinds: Kinds) -> Iterator[Found | LeftOut]:
    """Yields each file below `folder`, sorted, or why it is left out; `folder` may itself be a link: the user named it.

    Raises:
        FabricError: it is no folder, or cannot be read.
    """
    try:
        descriptor = os.open(folder.resolve(strict=True), _OPEN_FOLDER)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links; ValueError: a null byte
        found = (error.strerror or "") if isinstance(error, OSError) else str(error)
        raise FabricError("the folder cannot be read", where=str(folder), found=found) from error
    try:
        for number, one in enumerate(_below(descriptor, "", 0, kinds)):
            if number >= _MOST_FILES:
                yield LeftOut("…", f"there are more than {_MOST_FILES} files")
                return
            yield one
    finally:
        os.close(descriptor)


def _below(descriptor: int, prefix: str, depth: int, kinds: Kinds) -> Iterator[Found | LeftOut]:
    for entry in sorted(os.listdir(descriptor)):
        name = f"{prefix}{entry}"
        try:
            mode = os.lstat(entry, dir_fd=descriptor).st_mode
            if stat.S_ISDIR(mode):
                yield from _inside(descriptor, entry, name, depth, kinds)
            elif stat.S_ISREG(mode):
                yield _file(descriptor, entry, name, kinds)
            else:
                yield LeftOut(name, "a link" if stat.S_ISLNK(mode) else "no plain file")
        except OSError as error:
            yield LeftOut(name, f"cannot be read: {error.strerror}")


def _inside(descriptor: int, entry: str, name: str, depth: int, kinds: Kinds) -> Iterator[Found | LeftOut]:
    if depth >= _DEEPEST:
        yield LeftOut(name, "lies too deep")
        return
    below = os.open(entry, _OPEN_FOLDER, dir_fd=descriptor)
    try:
        yield from _below(below, f"{name}/", depth + 1, kinds)
    finally:
        os.close(below)


def _file(descriptor: int, entry: str, name: str, kinds: Kinds) -> Found | LeftOut:
    if objection := kinds.objection(entry):
        return LeftOut(name, objection)
    opened = os.open(entry, _OPEN_FILE, dir_fd=descriptor)
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            return LeftOut(name, "no plain file")
        if status.st_nlink > 1:
            return LeftOut(name, "has another name elsewhere (hard link)")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        return LeftOut(name, f"larger than {_MOST_BYTES >> 20} MiB")
    return Found(name, content)
