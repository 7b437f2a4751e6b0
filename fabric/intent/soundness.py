"""Whether the static files of an inventory can be read at all, asked before Ansible: it would hang, or fill the memory.

Cheap where nothing is suspicious: a file is decoded and searched. Only one that nests deeply or has aliases is walked,
event by event, and nothing is built of it. It must not know what a file says.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fabric.errors import Problem

__all__ = ("unreadable",)

_MOST_NESTED: Final = 60  # an inventory of groups in groups in regions has 10
_TOO_DEEP: Final = f"this is nested more than {_MOST_NESTED} deep"
_MOST_NODES: Final = 1_000_000  # of a file with its aliases written out: 100,000 lines of a list of cables have 800,000
_LONGEST: Final = 64 << 20  # bytes

_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # YAML 1.1, section 4.1.1
_ALIAS: Final = re.compile(r"(?m)(?:^|[\s\[,{:?-])\*[^\s,\]}*]")
_INDENTED: Final = re.compile(rf"(?m)^ {{{_MOST_NESTED},}}\S|(?:[-?] ){{10}}")
_BRACKETS: Final = re.compile(r"[\[{\]}]")
_VAULT_HEADER: Final = b"$ANSIBLE_VAULT"
_KINDS: Final = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISBLK, "a block device"))


def unreadable(sources: Sequence[Path], files: Callable[[Sequence[Path]], Iterable[Path]]) -> Iterator[Problem]:
    """Returns what keeps anybody from reading the inventory, with its place.

    Args:
        sources: what was named.
        files: returns the static YAML files that belong to sources; asked only when none contains itself.
    """
    loops = [problem for source in sources for problem in _loops(source)]
    yield from loops
    named = [source for source in sources if source.exists() and not source.is_dir() and not os.access(source, os.X_OK)]
    found = (_of_file(file) for file in dict.fromkeys((*named, *(() if loops else files(sources)))))
    yield from (problem for problem in found if problem is not None)


def _loops(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Problem]:
    """Returns each link in a folder that leads back to where it lies, or above."""
    if not folder.is_dir():
        return
    here = (*above, folder.resolve())
    for child in sorted(folder.iterdir()):
        if child.is_symlink() and child.is_dir() and child.resolve() in here:
            yield Problem("the folder contains itself by a symbolic link", place=str(child), remedy="Remove the link.")
        elif child.is_dir():
            yield from _loops(child, here)


def _of_file(file: Path) -> Problem | None:
    try:
        mode = file.stat().st_mode
    except OSError as error:
        return Problem(f"this file cannot be read: {error.strerror}", place=str(file))
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "")
    if kind:
        return Problem("this is no file", place=str(file), found=kind)
    try:
        with file.open("rb") as opened:
            data = opened.read(_LONGEST + 1)
    except OSError as error:
        return Problem(f"this file cannot be read: {error.strerror}", place=str(file))
    if data.startswith(_VAULT_HEADER):
        return None
    if len(data) > _LONGEST:
        return Problem("the file is too long for an inventory", place=str(file), expected=f"{_LONGEST >> 20} MiB")
    return _of_bytes(file, data)


def _of_bytes(file: Path, data: bytes) -> Problem | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte {data[error.start]:#04x}"
        return Problem("the file is no UTF-8", f"{file}:{line}", found=found, remedy=f"Convert it: {_convert(data)}")
    bad = _FORBIDDEN.search(text)
    if bad is not None:
        line = text.count("\n", 0, bad.start()) + 1
        return Problem("YAML forbids this character", place=f"{file}:{line}", found=f"U+{ord(bad[0]):04X}")
    is_suspicious = _ALIAS.search(text) or _INDENTED.search(text) or _brackets_nest(text)
    return _walked(file, text) if is_suspicious else None


def _brackets_nest(text: str) -> bool:
    depth = 0
    for one in _BRACKETS.finditer(text):
        depth = depth + 1 if one[0] in "[{" else max(0, depth - 1)
        if depth > _MOST_NESTED:
            return True
    return False


def _convert(data: bytes) -> str:
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return f"iconv -f {'UTF-16' if wide else 'ISO-8859-1'} -t UTF-8 FILE > NEW"


@dataclass(slots=True)
class _Walk:
    """What has been passed: how many values each anchor stands for, aliases written out, and which are still open.

    Attributes:
        open: anchor ("" for none) and number of values of each collection that has begun and not ended.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    open: list[tuple[str, int]] = field(default_factory=list)
    total: int = 0

    def take(self, anchor: str | None, size: int) -> None:
        """Counts a value that is complete."""
        if anchor:
            self.sizes[anchor] = size
        if self.open:
            name, so_far = self.open[-1]
            self.open[-1] = (name, min(so_far + size, _MOST_NODES + 1))
        else:
            self.total = max(self.total, size)


def _walked(file: Path, text: str) -> Problem | None:
    """Returns why the file must not be built; None also for broken YAML, which is told elsewhere."""
    import yaml  # lazy: it comes with ansible-core, and most files need no walk

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    walk = _Walk()
    try:
        for event in yaml.parse(text, Loader=loader):
            what = _step(walk, event)
            if what:
                return Problem(what, place=f"{file}:{_line(event)}")
    except (yaml.YAMLError, RecursionError) as error:
        if isinstance(error, RecursionError) or "depth" in str(error):  # libyaml looks ahead, and gives up at 1,000
            mark = getattr(error, "problem_mark", None)
            line = f":{mark.line + 1}" if mark is not None else ""
            return Problem(_TOO_DEEP, place=f"{file}{line}")
        return None
    return None


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _step(walk: _Walk, event: Any) -> str:
    kind = type(event).__name__
    if kind in {"SequenceStartEvent", "MappingStartEvent"}:
        walk.open.append((event.anchor or "", 1))
        return _TOO_DEEP if len(walk.open) > _MOST_NESTED else ""
    if kind in {"SequenceEndEvent", "MappingEndEvent"}:
        anchor, size = walk.open.pop()
        walk.take(anchor, size)
    elif kind == "ScalarEvent":
        walk.take(event.anchor, 1)
    elif kind == "AliasEvent":
        if any(event.anchor == anchor for anchor, _ in walk.open):
            return "this alias stands inside of what it names"
        size = walk.sizes.get(event.anchor, 1)
        walk.take(None, size)
        below = walk.open[-1][1] if walk.open else size
        return f"with its aliases written out, this has more than {_MOST_NODES:,} values" if below > _MOST_NODES else ""
    return ""
