"""A tuned profile into the inventory, as a diff that somebody reviews; applied only when told.

Only the lines of `fabric_shard_profile` change: everything else of a file stays byte for byte. Where all hosts were
tuned it goes into `group_vars/hosts`, else into `host_vars` of each. What was written is read back through Ansible.
"""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

from fabric.errors import EnvironmentMissingError, FabricError, IntentError, Problem
from fabric.policy import ShardProfile
from fabric.serial import to_json

__all__ = ("VARIABLE", "FileEdit", "diff_text", "edits_of", "undo_edits", "with_profile", "write_edits")

VARIABLE: Final = "fabric_shard_profile"
_SUFFIXES: Final = (".yml", ".yaml", ".json", "")
_NOTE: Final = "# Tuned by `fabricctl tune`; `fabricctl tune --check` says whether it still holds.\n"
_VAULT: Final = "$ANSIBLE_VAULT"


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file. before: its text, None where it is not there yet."""

    path: Path
    before: str | None
    after: str


def edits_of(
    sources: Sequence[Path], profile: ShardProfile, hosts: Sequence[str], *, is_all: bool
) -> tuple[FileEdit, ...]:
    """Returns what brings the profile into the inventory; writes nothing.

    Args:
        sources: of the inventory; the first one that is a static file or folder is written to.
        profile: what shall stand there.
        hosts: it is for.
        is_all: they are all hosts of the inventory.

    Raises:
        IntentError: there is no place for it, or a file cannot be read or edited.
    """
    base = _base(sources)
    if is_all:
        paths = [_place(base / "group_vars", "hosts")]
        own = (_place(base / "host_vars", host) for host in hosts)
        paths += [one for one in own if one.exists() and _has(_text(one))]  # it would hide the group's
    else:
        paths = [_place(base / "host_vars", host) for host in hosts]
    return tuple(edit for path in paths if (edit := _edit(path, profile)).before != edit.after)


def with_profile(text: str, profile: ShardProfile, *, place: str = "") -> str:
    """Returns the YAML text with the variable set; every other line as it was.

    Raises:
        IntentError: the text is no mapping of variables.
    """
    if text.startswith(_VAULT):
        raise IntentError(
            [Problem("the file is encrypted as a whole", place, remedy="Give the variable another file.")]
        )
    lines = text.splitlines(keepends=True)
    block = _block(profile)
    start, end = _span(lines)
    if start is None:
        head = text if not text or text.endswith("\n") else f"{text}\n"
        gap = "\n" if head.strip() and not head.endswith("\n\n") else ""
        after = f"{head}{gap}{_NOTE}{block}"
    else:
        after = "".join((*lines[:start], block, *lines[end:]))
    _prove(after, profile, place)
    return after


def diff_text(edits: Iterable[FileEdit]) -> str:
    """Returns the edits as one unified diff, "" for none."""
    return "".join(line for one in edits for line in _diff(one))


def write_edits(edits: Iterable[FileEdit]) -> None:
    """Writes the files, each whole or not at all.

    Raises:
        FabricError: a file was changed since the diff was made; nothing of it was overwritten.
        EnvironmentMissingError: a file cannot be written.
    """
    for one in edits:
        if (_text(one.path) if one.path.exists() else None) != one.before:
            raise FabricError("the file was changed meanwhile", where=str(one.path), remedy="Make the diff again.")
        _put(one.path, one.after)


def undo_edits(edits: Iterable[FileEdit]) -> None:
    """Brings the files back as they were."""
    for one in edits:
        if one.before is None:
            one.path.unlink(missing_ok=True)
        else:
            _put(one.path, one.before)


def _put(path: Path, text: str) -> None:
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(text, encoding="utf-8")
        if path.exists():
            half.chmod(path.stat().st_mode & 0o7777)
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise EnvironmentMissingError(
            "the file cannot be written", where=str(path), found=str(error.strerror)
        ) from error


def _base(sources: Sequence[Path]) -> Path:
    for source in sources:
        if source.is_dir():
            return source
        if source.is_file() and source.suffix in (".yml", ".yaml", ".ini", "") and not os.access(source, os.X_OK):
            return source.parent
    remedy = f"Set {VARIABLE} by hand: shard-profile.json of the run has the value."
    raise IntentError([Problem("no source of this inventory is a static file or folder", remedy=remedy)])


def _place(folder: Path, name: str) -> Path:
    """The file that Ansible reads: a folder of that name, else the first suffix that is there, else a new `.yml`."""
    if (folder / name).is_dir():
        files = sorted(one for one in (folder / name).rglob("*") if one.is_file() and one.suffix in _SUFFIXES)
        return next((one for one in files if _has(_text(one))), folder / name / "shard_profile.yml")
    return next(
        (one for suffix in ("", ".yml", ".yaml") if (one := folder / f"{name}{suffix}").is_file()),
        folder / f"{name}.yml",
    )


def _edit(path: Path, profile: ShardProfile) -> FileEdit:
    before = _text(path) if path.exists() else None
    return FileEdit(path, before, with_profile(before or "", profile, place=str(path)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise IntentError([Problem(f"this file cannot be read: {error}", place=str(path))]) from error


def _has(text: str) -> bool:
    return _span(text.splitlines(keepends=True))[0] is not None


def _span(lines: Sequence[str]) -> tuple[int | None, int]:
    """Where the variable stands: first line, and the line after its last."""
    start = next((at for at, line in enumerate(lines) if line.startswith(f"{VARIABLE}:")), None)
    if start is None:
        return None, 0
    end = start + 1
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if line[:1] in " \t}]-" and line.strip() and not line.startswith("---"):
            end = at + 1  # blank lines between two of its own are its own
        elif line.strip():
            break
    return start, end


def _block(profile: ShardProfile) -> str:
    out = StringIO()
    _yaml().dump({VARIABLE: to_json(profile)}, out)
    return out.getvalue()


def _yaml() -> Any:
    from ruamel.yaml import YAML  # lazy: only who writes an inventory pays for it

    yaml = YAML()
    yaml.width = 120
    yaml.default_flow_style = False
    return yaml


def _prove(text: str, profile: ShardProfile, place: str) -> None:
    from ruamel.yaml import YAML  # lazy, as above
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError):
        found = None
    if not isinstance(found, Mapping) or found.get(VARIABLE) != to_json(profile):
        remedy = f"Set {VARIABLE} there by hand."
        raise IntentError([Problem("the file is no plain mapping of variables", place=place, remedy=remedy)])


def _diff(one: FileEdit) -> Iterator[str]:
    old = "/dev/null" if one.before is None else str(one.path)
    for line in difflib.unified_diff(
        (one.before or "").splitlines(keepends=True), one.after.splitlines(keepends=True), old, str(one.path)
    ):
        yield line if line.endswith("\n") else f"{line}\n"
