"""Files in: configurations and LLDP outputs by name. Files out: an inventory, whole or not at all."""

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from fabric.errors import FabricError, IntentError, Problem
from fabric.nos import catalog
from fabric.workflow.importing.model import Config

__all__ = ("read_configs", "read_named", "write_files")

_MOST_BYTES: Final = 256 * 1024 * 1024  # a guard against /dev/zero; no configuration is as large


def read_configs(files: Iterable[str], nos: str = "") -> dict[str, Config]:
    """Returns device → configuration of `NAME=FILE`, or of FILE, which goes by its own host name or that of the file.

    Args:
        files: what the user named.
        nos: network OS of all of them; "" tells it by the text: JSON is SONiC's, all else EOS's.

    Raises:
        IntentError: with every file that cannot be read, and every name given twice.
    """
    out: dict[str, Config] = {}
    problems: list[Problem] = []
    for one in files:
        name, path = _named(one)
        text = _read(path, problems)
        if text is None:
            continue
        config = Config(nos or ("sonic" if text.lstrip()[:1] == "{" else "eos"), text)
        name = name or _own_name(config) or path.stem
        if name in out:
            remedy = "Name the devices: NAME=FILE."
            problems.append(Problem("two configurations are of one device", place=str(path), found=name, remedy=remedy))
        out[name] = config
    if problems:
        raise IntentError(problems)
    return out


def read_named(files: Iterable[str]) -> dict[str, str]:
    """Returns device → text of `NAME=FILE`, or of FILE, which goes by the file's name.

    Raises:
        IntentError: with every file that cannot be read.
    """
    problems: list[Problem] = []
    out = {}
    for one in files:
        name, path = _named(one)
        text = _read(path, problems)
        if text is not None:
            out[name or path.stem] = text
    if problems:
        raise IntentError(problems)
    return out


def _named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    return (name, Path(path)) if equals and "/" not in name else ("", Path(text))


def _read(path: Path, problems: list[Problem]) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            problems.append(Problem("the file is too large", place=str(path), expected=f"at most {_MOST_BYTES} bytes"))
            return None
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {error.object[error.start]:#04x} at offset {error.start}"
        problems.append(Problem("the file is no UTF-8", place=str(path), found=found))
    except OSError as error:
        problems.append(Problem("the file cannot be read", place=str(path), found=error.strerror or str(error)))
    return None


def _own_name(config: Config) -> str:
    """Returns the host name in the text, "" where there is none or the text cannot be read: that is told later."""
    nos = catalog.get(config.nos)
    try:
        return nos.identity(nos.tree(config.text), config.text).hostname
    except FabricError:
        return ""


def write_files(files: Mapping[str, str], folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Returns the files that it wrote below `folder`.

    All are written beside their places first: what cannot be written leaves everything as it was.

    Args:
        files: relative path → text.
        folder: where to; made when it is not there.
        force: files that are there may be replaced; others stay.

    Raises:
        IntentError: there is something in the folder, or it cannot be written.
    """
    if not force and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        remedy = "Name another folder, or replace the files of the same names there with --force."
        what = "the folder is not empty, and nothing is overwritten"
        raise IntentError([Problem(what, place=str(folder), remedy=remedy)])
    staged: list[tuple[Path, Path]] = []
    try:
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
            staged.append((beside, target))
            with beside.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        for beside, target in staged:
            beside.replace(target)
    except OSError as error:
        _remove(beside for beside, _ in staged)
        raise IntentError([Problem("the inventory cannot be written", place=str(folder), found=str(error))]) from error
    return tuple(target for _, target in staged)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
