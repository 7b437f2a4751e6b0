"""An EOS configuration as the device holds it: settings in contexts, shown in canonical form.

Lines of a seed that the grammar does not know are kept word for word at their place; lines that equal a default
are not kept. Knows the grammar, no command and no session.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fabric.lab.eos.grammar import Entry, Grammar, Kind, grammar
from fabric.lab.eos.template import Miss
from fabric.units import natural_key

__all__ = ("Config", "Node")

_AFTER: Final = 1  # a foreign line comes right after the known line above it, whenever that was typed
_STEP: Final = "   "  # EOS indents by three spaces
_BLOCK: Final = re.compile(
    r"comment|banner \S+"
)  # runs until a line EOF; source: samples/eos/configs/avd_interfaces_pfc.cfg
_PHYSICAL: Final = ("interface Ethernet", "interface Management")  # they stay, whatever is typed (unconfirmed)
_NUMBER: Final = re.compile(r"\d")


class Node:
    """One setting or foreign line, with what stands below it.

    Attributes:
        block: the further lines of a multi-line text, as written.
        kind: None for a foreign line.
    """

    __slots__ = ("block", "children", "key", "kind", "line", "order", "values")

    def __init__(self, line: str, key: str, kind: Kind | None, order: tuple[object, ...]) -> None:
        self.line = line
        self.key = key
        self.kind = kind
        self.order = order
        self.values: Mapping[str, str] = {}
        self.block: list[str] = []
        self.children: dict[str, Node] = {}

    @property
    def context(self) -> str:
        """Returns the context below this node, "" if none that the grammar knows."""
        return self.kind.opens if self.kind else ""


class Config:
    """A whole configuration. `copy()` before changing what somebody else holds."""

    def __init__(self, text: str = "") -> None:
        self._grammar: Grammar = grammar()
        self.root = Node("", "", None, ())
        self._load(text.splitlines())

    def copy(self) -> "Config":
        """Returns an independent copy."""
        other = Config()
        other.root = _copy(self.root)
        return other

    def put(self, parent: Node, entry: Entry) -> Node | None:
        """Makes the entry hold below `parent`; returns its node, None when it went back to the default."""
        if entry.line is None:
            self._reset(parent, entry)
            return None
        found = parent.children.get(entry.key)
        if found is not None:
            found.line, found.kind, found.values = entry.line, entry.kind, entry.values
            return found
        node = Node(entry.line, entry.key, entry.kind, self._order(entry))
        node.values = entry.values
        parent.children[entry.key] = node
        return node

    def _reset(self, parent: Node, entry: Entry) -> None:
        node = parent.children.get(entry.key)
        if node is not None and entry.key.startswith(_PHYSICAL):
            node.children.clear()
        else:
            parent.children.pop(entry.key, None)

    def interfaces(self) -> tuple[str, ...]:
        """Returns the names of the interfaces, in order of the running configuration."""
        return tuple(node.line.split()[1] for node in _sorted(self.root) if node.context == "interface")

    def hostname(self) -> str:
        """Returns the host name, "localhost" when none is set."""
        node = self.root.children.get("hostname")
        return node.line.split()[1] if node else "localhost"

    def acting_on(self, interface: str) -> list[Node]:
        """Returns what acts on the interface: the lines of its service profile, then its own."""
        node = self.root.children.get(f"interface {interface}")
        if node is None:
            return []
        named = node.children.get("service-profile")
        profile = self.root.children.get(f"qos profile {named.line.split()[1]}") if named else None
        return [*(profile.children.values() if profile else ()), *node.children.values()]

    def text(self) -> str:
        """Returns the configuration as `show running-config` prints it, from the first `!` to `end`."""
        lines: list[str] = []
        previous = ""
        for block, is_section in _blocks(self.root):
            word = "" if is_section else block[0].split()[0]
            if not word or word != previous:
                lines.append("!")
            previous = word
            lines += block
        return "\n".join([*lines, "!", "end", ""])

    def section(self, pattern: str) -> str:
        """Returns the top-level sections in which some line matches."""
        blocks = ["\n".join(block) for block, _ in _blocks(self.root)]
        return "".join(f"{block}\n" for block in blocks if re.search(pattern, block))

    def _order(self, entry: Entry) -> tuple[object, ...]:
        if entry.kind.opens == "interface":
            name = entry.values["interface"]
            stem = _NUMBER.split(name, maxsplit=1)[0]
            place = self._grammar.interface_order.index(stem)
            return entry.kind.rank, place, natural_key(name)
        return entry.kind.rank, 0, natural_key(entry.key)

    def _load(self, lines: Sequence[str]) -> None:
        stack: list[tuple[int, list[Node]]] = [(-1, [self.root])]
        last: dict[int, tuple[object, ...]] = {}
        pending = iter(lines)
        for raw in pending:
            line = raw.strip()
            if not line or (line.startswith("!") and not line.startswith("!!")) or raw.rstrip() == "end":
                continue
            indent = len(raw) - len(raw.lstrip())
            while stack[-1][0] >= indent:
                stack.pop()
            nodes = [node for parent in stack[-1][1] for node in self._take(parent, line, last)]
            if _BLOCK.fullmatch(line):
                block = _until_eof(pending)
                for node in nodes:
                    node.block = block
            elif nodes:
                stack.append((indent, nodes))

    def _take(self, parent: Node, line: str, last: dict[int, tuple[object, ...]]) -> list[Node]:
        context = "global" if parent is self.root else parent.context
        found = self._grammar.read(line, context) if context else Miss(0)
        if isinstance(found, Miss):
            return [_foreign(parent, line, (*last.get(id(parent), (-1,)), _AFTER))]
        nodes = [self.put(parent, entry) for entry in found]
        last[id(parent)] = self._order(found[-1])
        return [node for node in nodes if node is not None]


def _foreign(parent: Node, line: str, order: tuple[object, ...]) -> Node:
    key = f"foreign {line}"
    while key in parent.children:
        key += " again"
    node = Node(line, key, None, order)
    parent.children[key] = node
    return node


def _until_eof(lines: Iterator[str]) -> list[str]:
    block: list[str] = []
    for raw in lines:
        block.append(raw)
        if raw.strip() == "EOF":
            break
    return block


def _copy(node: Node) -> Node:
    twin = Node(node.line, node.key, node.kind, node.order)
    twin.values = node.values
    twin.block = list(node.block)
    twin.children = {key: _copy(child) for key, child in node.children.items()}
    return twin


def _sorted(node: Node) -> list[Node]:
    return sorted(node.children.values(), key=lambda child: child.order)


def _shown(node: Node) -> list[Node]:
    return [child for child in _sorted(node) if child.children or not (child.kind and child.kind.hides_empty)]


def _blocks(root: Node) -> Iterator[tuple[list[str], bool]]:
    """Yields what is printed together, and whether it is a section that `!` sets apart."""
    nodes = _shown(root)
    while nodes:
        first, kind = nodes[0], nodes[0].kind
        if kind is None or not kind.each:
            yield _show(first, ""), bool(first.children or first.context)
            nodes = nodes[1:]
            continue
        same = [node for node in nodes if node.kind is kind]
        nodes = [node for node in nodes if node.kind is not kind]
        for line in _joined(kind, same):
            yield [line], False


def _joined(kind: Kind, nodes: Sequence[Node]) -> list[str]:
    """Returns one line per target, its settings listed in it."""
    numbers: dict[str, list[int]] = {}
    values: dict[str, Mapping[str, str]] = {}
    for node in nodes:
        target = kind.line.write({**node.values, kind.each: "*"})
        numbers.setdefault(target, []).append(int(node.values[kind.each]))
        values[target] = node.values
    order = sorted(numbers, key=lambda target: min(numbers[target]))
    return [
        kind.line.write({**values[target], kind.each: " ".join(str(one) for one in sorted(numbers[target]))})
        for target in order
    ]


def _show(node: Node, indent: str) -> list[str]:
    lines = [f"{indent}{node.line}", *node.block]
    for child in _shown(node):
        if child.context or child.children:
            lines.append(f"{indent}{_STEP}!")
        lines += _show(child, indent + _STEP)
    return lines
