"""A configuration as a path → value tree: the one shape in which all network OSes are compared.

A SONiC row field is `("PORT", "Ethernet0", "mtu") → "9100"`; an EOS line is
`("interface Ethernet1", "mtu") → "9214"`, keyed by the OS's own rules. A value of None means
"present, without a value": a bare line, or a container (row, context) with nothing below it. A container
that has something below it has no path of its own: it is implied. Trees are immutable, ordered as read, and
equal when they hold the same paths and values in whatever order.
"""

import json
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

__all__ = ("EMPTY", "Path", "Tree", "Value")

Path: TypeAlias = tuple[str, ...]
Value: TypeAlias = str | tuple[str, ...] | None


class Tree(Mapping[Path, Value]):
    """An immutable mapping of paths to values.

    Args:
        items: paths and values; a mapping's keys are paths (`Any`, since mappings are invariant in their keys).
    """

    __slots__ = ("_containers", "_items")

    def __init__(self, items: Mapping[Any, Value] | Iterable[tuple[Path, Value]] = ()) -> None:
        self._items: dict[Path, Value] = dict(items)
        self._containers: frozenset[Path] | None = None  # made when it is asked for, once

    def __getitem__(self, path: Path) -> Value:
        return self._items[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, path: object) -> bool:  # Mapping's own raises and catches for each path that is not there
        return path in self._items

    def items(self) -> ItemsView[Path, Value]:
        """Returns the paths with their values; Mapping's own would look each one up again."""
        return self._items.items()

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, Tree) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"Tree({self._items!r})"

    def under(self, *prefix: str) -> "Tree":
        """Returns the paths that start with `prefix`, whole paths kept."""
        depth = len(prefix)
        return Tree({p: v for p, v in self._items.items() if p[:depth] == prefix})

    def children(self, *prefix: str) -> tuple[str, ...]:
        """Returns the distinct next elements below `prefix`, in order."""
        depth = len(prefix)
        return tuple(dict.fromkeys(p[depth] for p in self._items if len(p) > depth and p[:depth] == prefix))

    def containers(self) -> frozenset[Path]:
        """Returns every path that has something below it."""
        if self._containers is None:
            self._containers = frozenset(path[:depth] for path in self._items for depth in range(1, len(path)))
        return self._containers

    def with_changes(self, put: Mapping[Path, Value], drop: Iterable[Path] = ()) -> "Tree":
        """Returns a tree without `drop`, then with `put`."""
        items = dict(self._items)
        for path in drop:
            items.pop(path, None)
        items.update(put)
        return Tree(items)

    def to_nested(self) -> dict[str, object]:
        """Returns the nested mapping that `from_nested` reads; lists come back as lists."""
        root: dict[str, object] = {}
        for path, value in self._items.items():
            _put(root, path, value)
        return root

    @classmethod
    def from_nested(cls, data: Mapping[str, object]) -> "Tree":
        """Returns the tree of a nested mapping, such as a config_db.json.

        An empty mapping becomes its path with None; a list becomes a tuple of strings; a number or
        boolean becomes its JSON text.
        """
        return cls(_walk((), data))


EMPTY = Tree()


def _put(root: dict[str, object], path: Path, value: Value) -> None:
    node = root
    for part in path[:-1]:
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise ValueError(f"{'/'.join(path)}: {part} is both a value and a container")
        node = child
    if value is None:
        node.setdefault(path[-1], {})
    else:
        node[path[-1]] = list(value) if isinstance(value, tuple) else value


def _walk(prefix: Path, data: Mapping[str, object]) -> Iterator[tuple[Path, Value]]:
    for key, value in data.items():
        path = (*prefix, str(key))
        if isinstance(value, Mapping):
            if value:
                yield from _walk(path, value)
            else:
                yield path, None
        elif isinstance(value, list | tuple):
            yield path, tuple(_text(one) for one in value)
        else:
            yield path, _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
