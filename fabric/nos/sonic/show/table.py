"""The tables that SONiC prints (Python tabulate, format "simple"), and its numbers. Knows no command.

Columns stand where the line of dashes says. N/A, `-` and an empty cell are UNKNOWN, never zero.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.qos import UNKNOWN, Known

__all__ = ("Table", "count", "padded", "pairs", "tables")

_DASHES: Final = re.compile(r"\s*-{2,}(\s{2,}-+)*\s*|\s*-+(\s{2,}-+)+\s*")
_GROUP: Final = re.compile(r"-+")
_UNREAD: Final = frozenset({"", "N/A", "n/a", "-", "NA"})
_NUMBER: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3}){1,12}|[0-9]{1,30}")  # a counter has 64 bits: 20 digits
_TITLE: Final = re.compile(r"(\w[\w ]*):\s*(\S*)")
_PAIR: Final = re.compile(r"(\S+)\s{2,}(\S.*?)\s*")


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        title: the last line before the header that is none, "" if there is none: `Ingress PG dropped packets:`.
        columns: headers. rows: as many cells each; a cell that a row lacks is "".
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def count(cell: str) -> Known[int]:
    """Returns a counter with its thousands separators taken out; UNKNOWN where the device printed no number."""
    text = cell.strip()
    if text in _UNREAD or _NUMBER.fullmatch(text) is None:
        return UNKNOWN
    return int(text.replace(",", ""))


def padded(row: Sequence[str], cells: int) -> tuple[str, ...]:
    """Returns the first cells of a row, as many as asked for: "" where a cut-off table has none."""
    return (*row[:cells], *("",) * (cells - len(row)))


def tables(text: str) -> tuple[Table, ...]:
    """Returns every table of an output that has a header line, in order."""
    return tuple(_tables(text.splitlines()))


def pairs(text: str, kind: str) -> dict[str, dict[str, str]]:
    """Returns name → field → value of blocks such as `Profile: NAME`, fields between two lines of dashes."""
    out: dict[str, dict[str, str]] = {}
    block: dict[str, str] | None = None
    for line in text.splitlines():
        title = _TITLE.fullmatch(line.strip())
        if title is not None:
            block = out.setdefault(title[2], {}) if title[1] == kind else None
        elif block is not None and (match := _PAIR.fullmatch(line)) is not None and not _DASHES.fullmatch(line):
            block[match[1]] = match[2]
    return out


def _tables(lines: Sequence[str]) -> Iterator[Table]:
    title, at = "", 0
    while at < len(lines):
        line = lines[at]
        dashes = lines[at + 1] if at + 1 < len(lines) else ""
        if (
            not line.strip()
            or not _DASHES.fullmatch(dashes)
            or _DASHES.fullmatch(line)
            or _TITLE.fullmatch(line.strip())
        ):
            title = line.strip() if line.strip() and not _DASHES.fullmatch(line) else title
            at += 1
            continue
        spans = [match.span() for match in _GROUP.finditer(dashes)]
        end = at + 2
        while (
            end < len(lines) and lines[end].strip() and not _DASHES.fullmatch(lines[end]) and _fits(lines[end], spans)
        ):
            end += 1
        yield Table(title, _cells(line, spans), _rows(lines[at + 2 : end], spans))
        title, at = "", end


def _fits(line: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Returns whether the gaps between columns are blank, as in a row of this table."""
    return all(not line[left:right].strip() for (_, left), (right, _) in itertools.pairwise(spans))


def _rows(lines: Sequence[str], spans: Sequence[tuple[int, int]]) -> tuple[tuple[str, ...], ...]:
    out: list[tuple[str, ...]] = []
    for line in lines:
        cells = _cells(line, spans)
        if out and not cells[0]:  # a long name goes on in the next line
            out[-1] = tuple(f"{above}{below}" for above, below in zip(out[-1], cells, strict=True))
        else:
            out.append(cells)
    return tuple(out)


def _cells(line: str, spans: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    last = len(spans) - 1
    return tuple(line[start : None if index == last else end].strip() for index, (start, end) in enumerate(spans))
