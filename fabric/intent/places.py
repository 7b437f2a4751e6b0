"""Where a variable stands: file and line, by a second reading of the static YAML files.

Ansible gives values without lines. This module walks the files in Ansible's order of precedence and returns the
place of the one that won. It reads only when there is something to report, and it never decrypts.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from fabric.errors import Problem, one_line
from fabric.intent.ranges import RangeError, expand
from fabric.remote.ansible import RawHost

__all__ = ("Place", "Places", "all_files", "child_place", "pairs", "syntax_problems")

_SUFFIXES: Final = (".yml", ".yaml", ".json")
_VAULT_HEADER: Final = "$ANSIBLE_VAULT"
# yaml.org/type: bool, null, int and float of YAML 1.1, in so far as they could be meant as names
_NO_TEXT: Final = re.compile(r"(?i:yes|no|on|off|true|false|null)|~|[-+]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?")

# From the root node of a file to the mappings in it where a device's variables may stand.
_Finder: TypeAlias = Callable[[Any], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file.

    Attributes:
        text: the unquoted scalar as written there, None for anything else.
        is_shadowed_by_vault: a vaulted file that nobody can see into here comes later and may have won.
    """

    file: str
    line: int
    text: str | None = None
    is_shadowed_by_vault: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Places:
    """The static files of some sources, composed when asked for, once each.

    Args:
        sources: what was read, the last one the strongest.
        hosts: the hosts with their groups.
    """

    def __init__(self, sources: Sequence[Path], hosts: Mapping[str, RawHost]) -> None:
        self._sources = tuple(sources)
        self._hosts = hosts
        self._roots: dict[Path, Any] = {}

    def find(self, device: str, variable: str, path: Sequence[str | int] = ()) -> Place | None:
        """Returns where the variable of the device stands, None when no static file says it."""
        is_shadowed = False
        for file, finder in self._candidates(device):
            root = self.root(file)
            if root is _VAULTED:
                is_shadowed = True
                continue
            for start in finder(root):
                place = _locate(file, start, (variable, *path))
                if place is not None:
                    return Place(place.file, place.line, place.text, is_shadowed)
        return None

    def _candidates(self, device: str) -> Iterator[tuple[Path, _Finder]]:
        host = self._hosts.get(device, RawHost((), {}))
        groups = tuple(reversed(host.groups))
        for file in self._vars_files("host_vars", device):
            yield file, _whole
        yield from ((file, partial(_of_host, device)) for file in self._inventory_files())
        for group in groups:  # `all` is the weakest, so it comes last
            yield from ((file, _whole) for file in self._vars_files("group_vars", group))
        for group in groups:
            yield from ((file, partial(_of_group, group)) for file in self._inventory_files())

    def _vars_files(self, kind: str, name: str) -> Iterator[Path]:
        for source in reversed(self._sources):
            base = source if source.is_dir() else source.parent
            yield from reversed(list(_files_of(base / kind, name)))

    def _inventory_files(self) -> Iterator[Path]:
        for source in reversed(self._sources):
            yield from reversed(list(inventory_files(source)))

    def root(self, file: Path) -> Any:
        """Returns the root node of a file, None when it has none or is broken."""
        if file not in self._roots:
            self._roots[file] = _compose(file)
        return self._roots[file]


def inventory_files(source: Path) -> Iterator[Path]:
    """Returns the static YAML files that a source consists of, without group_vars and host_vars."""
    if source.is_dir():
        for child in sorted(source.iterdir()):
            if child.name not in {"group_vars", "host_vars"} and not child.name.startswith("."):
                yield from inventory_files(child)
    elif source.suffix in _SUFFIXES and not os.access(source, os.X_OK):
        yield source


def all_files(sources: Iterable[Path]) -> Iterator[Path]:
    """Returns every static YAML file that Ansible reads for these sources."""
    for source in sources:
        yield from inventory_files(source)
        base = source if source.is_dir() else source.parent
        for kind in ("group_vars", "host_vars"):
            if (base / kind).is_dir():
                yield from (file for file in sorted((base / kind).rglob("*")) if not file.is_dir() and _is_yaml(file))


def _is_yaml(file: Path) -> bool:
    return file.suffix in {*_SUFFIXES, ""} and not file.name.startswith(".")


def _files_of(folder: Path, name: str) -> Iterator[Path]:
    for suffix in ("", *_SUFFIXES):  # the first that exists is the only one that Ansible reads
        candidate = folder / f"{name}{suffix}"
        if candidate.is_dir():
            yield from (file for file in sorted(candidate.rglob("*")) if file.is_file() and _is_yaml(file))
            return
        if candidate.is_file():
            yield candidate
            return


# --- composed YAML ---------------------------------------------------------------------------------------------

_VAULTED: Final = object()


def _compose(file: Path) -> Any:
    """Returns the root node of a file, None when it has none or is broken, `_VAULTED` when it is encrypted."""
    import yaml  # lazy: only somebody with a problem pays for it; its C parser is ten times as fast as ruamel's

    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    if text.startswith(_VAULT_HEADER):
        return _VAULTED
    try:
        return yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return None


def _whole(root: Any) -> Iterator[Any]:
    yield root


def _of_host(device: str, root: Any) -> Iterator[Any]:
    for _, group in _groups(root):
        for key, node in pairs(_child(group, "hosts")):
            if _names_host(key.value, device):
                yield node


def _of_group(name: str, root: Any) -> Iterator[Any]:
    for one, group in _groups(root):
        if one == name:
            yield _child(group, "vars")


def _groups(root: Any) -> Iterator[tuple[str, Any]]:
    for key, node in pairs(root):
        yield key.value, node
        yield from _groups(_child(node, "children"))


def _names_host(key: str, device: str) -> bool:
    try:
        return key == device or device in expand(key)
    except RangeError:
        return False


def pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    """Returns the keys and values of a mapping node, nothing for any other."""
    if getattr(node, "id", "") == "mapping":
        yield from node.value


def _child(node: Any, name: str) -> Any:
    return next((value for key, value in pairs(node) if key.value == name), None)


def _locate(file: Path, node: Any, path: Sequence[str | int]) -> Place | None:
    """Returns the place of `path` below a node, or of the deepest part of it that is there; None without the first."""
    mark = None
    for part in path:
        step = _step(node, part)
        if step is None:
            node = None
            break
        mark, node = step
    if mark is None:
        return None
    text = node.value if getattr(node, "id", "") == "scalar" and not node.style else None
    return Place(str(file), mark.line + 1, text)


def _step(node: Any, part: str | int) -> tuple[Any, Any] | None:
    if isinstance(part, int):
        items = node.value if getattr(node, "id", "") == "sequence" else []
        return (items[part].start_mark, items[part]) if part < len(items) else None
    return next(((key.start_mark, value) for key, value in pairs(node) if str(key.value) == part), None)


def child_place(sources: Iterable[Path], group: str, child: str) -> str:
    """Returns `file:line` where `child` stands below `group`, "" when no static file says so."""
    for file in all_files(sources):
        root = _compose(file)
        for name, node in _groups(root if root is not _VAULTED else None):
            for key, _ in pairs(_child(node, "children")):
                if (name, key.value) == (group, child):
                    return f"{file}:{key.start_mark.line + 1}"
    return ""


def syntax_problems(sources: Iterable[Path]) -> Iterator[Problem]:
    """Returns every broken file and every duplicate key of the static YAML, with its line."""
    from ruamel.yaml import YAML  # lazy, as above
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    for file in all_files(sources):
        text = file.read_text(encoding="utf-8-sig", errors="replace")
        if text.startswith(_VAULT_HEADER):
            continue
        try:
            root = YAML(typ="rt", pure=True).compose(text)
        except MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
            yield Problem("the file is no valid YAML", place=f"{file}:{line}", found=str(error.problem))
        except (YAMLError, RecursionError) as error:
            yield Problem("the file is no valid YAML", place=str(file), found=str(error).partition("\n")[0])
        else:
            yield from _duplicates(file, root)
            yield from _misread_names(file, root)


def _misread_names(file: Path, root: Any) -> Iterator[Problem]:
    """Returns groups and hosts whose name is no text: Norway's `no` is a boolean, and 12 a number."""
    for name, group in _group_nodes(root):
        hosts = [key for key, _ in pairs(_child(group, "hosts"))]
        for key in (name, *hosts):
            if not key.style and _NO_TEXT.fullmatch(str(key.value)):
                yield Problem(
                    "YAML 1.1 reads this name as a boolean or a number",
                    place=f"{file}:{key.start_mark.line + 1}",
                    found=str(key.value),
                    remedy="Quote it.",
                )


def _group_nodes(root: Any) -> Iterator[tuple[Any, Any]]:
    for key, node in pairs(root):
        yield key, node
        yield from _group_nodes(_child(node, "children"))


def _duplicates(file: Path, node: Any) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for key, value in pairs(node):
        line = key.start_mark.line + 1
        name = str(key.value)
        if name in seen:
            yield Problem(
                f"the key {one_line(name)} stands twice in one mapping",
                place=f"{file}:{line}",
                remedy=f"Remove one; the first is on line {seen[name]}.",
            )
        seen.setdefault(name, line)
        yield from _duplicates(file, value)
    if getattr(node, "id", "") == "sequence":
        for item in node.value:
            yield from _duplicates(file, item)
