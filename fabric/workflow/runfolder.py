"""A run folder: one JSON file a stage, each with the schema version that wrote it. Knows no stage.

Any stage can be read back and rerun from there, attached to a ticket, or compared. Holds owned sections and digests:
no full configuration, no secret.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from fabric._version import __version__
from fabric.errors import EnvironmentMissingError, FabricError
from fabric.serial import Json, SerialError, from_json, parse_json, to_json
from fabric.workflow.migrating import is_newer, schema_of, upgraded

__all__ = ("RunFolder", "check_room", "read_data", "read_document", "write_data", "write_document")

_ROOM: Final = ".room"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder."""

    path: Path

    @classmethod
    def create(cls, root: Path, verb: str, unix_s: float) -> "RunFolder":
        """Returns a new folder `ROOT/20261129-171122-provision`, a number added when it is taken.

        Raises:
            EnvironmentMissingError: the folder cannot be made.
        """
        stem = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(unix_s))}-{verb}"
        try:
            root.mkdir(parents=True, exist_ok=True)
            for number in range(1000):
                path = root / (f"{stem}-{number}" if number else stem)
                try:
                    path.mkdir(mode=0o700)
                except FileExistsError:
                    continue
                return cls(path)
        except OSError as error:
            raise _unwritable(root, error) from error
        raise EnvironmentMissingError(f"{root} holds 1000 runs of this second", remedy="Wait a second and try again.")

    def write(self, stage: str, value: object) -> Path:
        """Writes `STAGE.json` and returns its path."""
        target = self.path / f"{stage}.json"
        write_document(target, value)
        return target

    def read(self, stage: str, kind: type[T]) -> T:
        """Returns what `write` was given for that stage."""
        return read_document(self.path / f"{stage}.json", kind)

    def write_late(self, stage: str, value: object) -> tuple[str, ...]:
        """Writes `STAGE.json` when devices may have changed already; returns what went wrong, () if nothing did.

        Whoever calls goes on, since what was done must be told.
        """
        try:
            self.write(stage, value)
        except EnvironmentMissingError as error:
            return (str(error),)
        return ()

    @contextmanager
    def room(self, size: int) -> Iterator[None]:
        """Keeps `size` bytes free for what is written here after the block.

        Raises:
            EnvironmentMissingError: there are not as many.
        """
        held = self.path / _ROOM
        _hold(held, size)
        try:
            yield
        finally:
            held.unlink(missing_ok=True)

    def write_text(self, name: str, text: str) -> Path:
        """Writes a file that is made from the JSON (report, JUnit) and returns its path."""
        target = self.path / name
        _replace(target, text)
        return target


def check_room(folder: Path, size: int) -> None:
    """Returns if `size` bytes can be written in `folder`.

    Raises:
        EnvironmentMissingError: they cannot.
    """
    held = folder / f"{_ROOM}.{os.getpid()}"
    _hold(held, size)
    held.unlink(missing_ok=True)


def write_document(target: Path, value: object) -> None:
    """Writes `value` to `target` as a versioned document, whole or not at all, readable by the owner only.

    Raises:
        EnvironmentMissingError: the place cannot be written.
    """
    write_data(target, type(value).__name__, to_json(value))


def write_data(target: Path, kind: str, data: Json) -> None:
    """Writes what is JSON already, as `write_document` does.

    Raises:
        EnvironmentMissingError: the place cannot be written.
    """
    document = {"schema": schema_of(kind), "kind": kind, "tool": __version__, "data": data}
    _replace(target, json.dumps(document) + "\n")  # no indent: that encoder is ten times slower


def read_document(source: Path, kind: type[T]) -> T:
    """Returns the `kind` that `write_document` wrote.

    Raises:
        FabricError: no such file, not a document of this kind, or of a schema that this release cannot read.
    """
    document = _document(source, kind.__name__)
    try:
        return from_json(kind, _data(document, source, kind.__name__))
    except SerialError as error:
        tool = document.get("tool")
        raise FabricError(
            f"{source} does not hold a whole {kind.__name__}",
            found=str(error),
            remedy=f"Read it with fabricctl {tool} or later, which wrote it." if is_newer(tool) else "",
        ) from error


def read_data(source: Path, kind: str) -> Json:
    """Returns the JSON that `write_data` wrote for `kind`.

    Raises:
        FabricError: as `read_document`.
    """
    try:
        return _data(_document(source, kind), source, kind)
    except SerialError as error:
        raise FabricError(f"{source} does not hold a whole {kind}", found=str(error)) from error


def _document(source: Path, kind: str) -> dict[str, Json]:
    try:
        document = parse_json(source.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FabricError(
            f"there is no {source}", remedy="Name a run folder, or a file that `plan -o` wrote."
        ) from error
    except (OSError, ValueError) as error:
        raise FabricError(f"{source} cannot be read as JSON", found=str(error)) from error
    if not isinstance(document, dict) or document.get("kind") != kind:
        found = document.get("kind") if isinstance(document, dict) else type(document).__name__
        raise FabricError(f"{source} is not what was asked for", found=str(found), expected=kind)
    return document


def _data(document: dict[str, Json], source: Path, kind: str) -> Json:
    return upgraded(document.get("data"), kind, document.get("schema"), tool=document.get("tool"), where=str(source))


def _replace(target: Path, text: str) -> None:
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(target)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise _unwritable(target, error) from error


def _hold(held: Path, size: int) -> None:
    try:
        descriptor = os.open(held, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, max(1, size))
        finally:
            os.close(descriptor)
    except OSError as error:
        held.unlink(missing_ok=True)
        raise _unwritable(held.parent, error) from error


def _unwritable(path: Path, error: OSError) -> EnvironmentMissingError:
    return EnvironmentMissingError(
        f"{path} cannot be written",
        found=str(error.strerror),
        remedy="Free space or choose another folder with --runs.",
    )
