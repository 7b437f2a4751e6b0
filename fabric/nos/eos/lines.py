"""The text of an EOS configuration as nested lines, and back.

Knows indentation, comments, ranges and multi-line blocks; knows no meaning of any line. Text that is not touched is
written back as it was read: separators, comments, banners and certificates included.
"""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

__all__ = ("INDENT", "Node", "read", "write")

INDENT: Final = 3  # columns a nested line moves right: every sample of `show running-config`
_SEPARATOR: Final = "!"

# Lines after which free text follows, and the line that ends it. `comment` is in
# samples/eos/configs/avd_interfaces_pfc.cfg; the others: EOS User Manual, "Banner", "Event Handler", "RCF"
# (unconfirmed).
_OPENS_TEXT: Final = re.compile(r"banner (?:motd|login|exec)|comment|action bash|code(?: unit \S+)?")
_ENDS_TEXT: Final = "EOF"
_OPENS_PEM: Final = "-----BEGIN "
_ENDS_PEM: Final = "-----END "
_RANGE: Final = re.compile(r"(interface [A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)?)([0-9][0-9/]*[,-][0-9/,-]*)")
_SPAN: Final = re.compile(r"((?:[0-9]{1,4}/){0,3})([0-9]{1,4})(?:-([0-9]{1,4}))?")
_MOST_SPANNED: Final = 1024  # more ports than any EOS device has; a guard against Ethernet1-9999,1-9999,…


@dataclass(slots=True)
class Node:
    """One line with what is nested below it.

    Attributes:
        line: the line without indentation; a separator, comment or blank line too.
        indent: columns before it; of the root, -INDENT.
        block: the raw lines of a multi-line text that this line opens, its last line included.
    """

    line: str
    indent: int
    children: list["Node"] = field(default_factory=list)
    block: tuple[str, ...] = ()

    @property
    def is_note(self) -> bool:
        """Returns whether the line configures nothing: blank, separator or comment."""
        return not self.line or self.line.startswith(_SEPARATOR)

    @property
    def is_separator(self) -> bool:
        """Returns whether the line is a bare `!`."""
        return self.line == _SEPARATOR

    @property
    def body(self) -> list["Node"]:
        """Returns the children that configure something."""
        return [child for child in self.children if not child.is_note]

    def find(self, line: str) -> "Node | None":
        """Returns the first child of that line, or None."""
        return next((child for child in self.children if child.line == line), None)


def read(text: str) -> Node:
    """Returns the root over all lines of `text`; interface ranges are spelled out."""
    root = Node(line="", indent=-INDENT)
    above = [root]
    rows = text.splitlines()
    at = 0
    while at < len(rows):
        row = rows[at]
        stripped = row.strip()
        indent = len(row) - len(row.lstrip())
        if stripped:
            while above[-1].indent >= indent:
                above.pop()
        length = _block_length(rows, at)
        node = Node(line=stripped, indent=indent, block=tuple(rows[at + 1 : at + 1 + length]))
        above[-1].children.append(node)
        if not node.is_note:
            above.append(node)
        at += 1 + length
    root.children = [one for child in root.children for one in _spelled_out(child)]
    return root


def write(root: Node) -> str:
    """Returns the text of all lines below `root`, ending in one newline, or "" if there is none."""
    return "".join(f"{row}\n" for row in _rows(root))


def _rows(node: Node) -> Iterator[str]:
    for child in node.children:
        yield " " * child.indent + child.line if child.line else ""
        yield from child.block
        yield from _rows(child)


def _block_length(rows: list[str], at: int) -> int:
    line = rows[at].strip()
    if line.startswith(_OPENS_PEM):
        return _until(rows, at, lambda row: row.startswith(_ENDS_PEM))
    if _OPENS_TEXT.fullmatch(line):
        return _until(rows, at, lambda row: row == _ENDS_TEXT)
    return 0


def _until(rows: list[str], at: int, last: Callable[[str], bool]) -> int:
    """Returns how many rows follow row `at` up to the last one; 0 when there is none, so that nothing is swallowed."""
    following = (offset for offset, row in enumerate(rows[at + 1 :], start=1) if last(row.strip()))
    return next(following, 0)


def _spelled_out(node: Node) -> list[Node]:
    match = _RANGE.fullmatch(node.line)
    names = _span(match[2]) if match is not None else ()
    if match is None or not names:
        return [node]
    return [Node(line=match[1] + name, indent=node.indent, children=deepcopy(node.children)) for name in names]


def _span(text: str) -> tuple[str, ...]:
    names: list[str] = []
    for part in text.split(","):
        match = _SPAN.fullmatch(part)
        if match is None:
            return ()  # a form that nobody here knows, such as a range over two slots: kept as one line
        first, last = int(match[2]), int(match[3] or match[2])
        names += [f"{match[1]}{number}" for number in range(first, last + 1)]
        if len(names) > _MOST_SPANNED:
            return ()
    return tuple(names)
