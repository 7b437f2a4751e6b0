"""An EOS configuration as a tree, keyed by the rules of `keys`. Knows no meaning of any path."""

from collections.abc import Iterator

from fabric.errors import FabricError
from fabric.nos.eos.keys import is_hidden, is_implicit, keyed
from fabric.nos.eos.lines import Node, read
from fabric.tree import Path, Tree, Value

__all__ = ("tree",)


def tree(text: str) -> Tree:
    """Returns the tree of `show running-config`; foreign lines are paths without a value, none is lost.

    A context has a path of its own only while nothing stands below it, and a queue never has. What EOS hides
    because it equals the default is left out even where the text shows it.

    Raises:
        FabricError: the text is not of EOS.
    """
    if text.lstrip()[:1] in {"{", "[", "<"}:
        raise FabricError(
            "this is no EOS configuration",
            found=f"text that starts with {text.lstrip()[:1]!r}",
            expected="the output of `show running-config`",
        )
    items = {path: value for path, value in dict(_walk((), read(text))).items() if not is_hidden(path, value)}
    full = {path[:depth] for path in items for depth in range(1, len(path))}
    return Tree({path: value for path, value in items.items() if path not in full})


def _walk(context: Path, node: Node) -> Iterator[tuple[Path, Value]]:
    for child in node.body:
        if child.block:
            yield (*context, child.line), tuple(row.strip() for row in child.block)
        elif child.body:
            if not is_implicit(context, child.line):
                yield (*context, child.line), None
            yield from _walk((*context, child.line), child)
        else:
            yield from (((*context, *tail), value) for tail, value in keyed(context, child.line))
