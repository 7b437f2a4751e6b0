"""What an EOS switch shows after lines were typed: the device, simulated on its own text.

Used to prove change sets before they are pushed. What no line touches stays as it was, letter by letter. Knows
nothing of sessions or refusals.
"""

import re
from typing import Final

from fabric.nos.eos.keys import NO, Keyed, is_hidden, keyed, line_of, undo_of
from fabric.nos.eos.lines import INDENT, Node, read, write
from fabric.tree import Path, Value

__all__ = ("apply",)

_LEAVE: Final = frozenset({"exit", "end"})
_SIGN: Final = re.compile(r"^(?:no|default) ")
_FIRST_WORDS: Final = 2  # lines of a kind stand together: `qos map …`, `qos profile …`


def apply(text: str, payload: str) -> str:
    """Returns the text that a switch with `text` shows after `payload` was typed.

    Args:
        text: the running configuration.
        payload: lines to type, nested lines indented.
    """
    root = read(text)
    _enter(root, (), read(payload))
    return write(root)


def _enter(here: Node, context: Path, typed: Node) -> None:
    for child in typed.body:
        if child.line in _LEAVE:
            continue
        if not child.body:
            _type(here, context, child)
            continue
        inner = here.find(child.line)
        if inner is None:
            inner = _insert(here, Node(line=child.line, indent=here.indent + INDENT), is_context=True)
        _enter(inner, (*context, child.line), child)
        if not inner.body:
            _remove(here, inner, is_context=True)


def _type(here: Node, context: Path, typed: Node) -> None:
    for child in _kin(here, typed.line):
        for tail, value in _says(context, child):
            if undo_of((*context, *tail), value) == typed.line:
                _drop(here, context, child, tail)
                return
    says = keyed(context, typed.line)
    is_setting = any(value == NO for _, value in says)  # `no key` that stands in the configuration, in place of `key`
    if typed.line.startswith("no ") and not is_setting and (whole := here.find(typed.line[3:])) is not None:
        _remove(here, whole, is_context=bool(whole.body))
        return
    for tail, value in says:
        _set(here, context, tail, value, block=typed.block)


def _kin(here: Node, line: str) -> list[Node]:
    """Returns the lines of `here` that begin with the same word as `line`, whether said, negated or undone.

    Only they can be what `line` sets or takes away, and to understand each line of a large configuration takes long.
    """
    word = _SIGN.sub("", line, count=1).split(" ", maxsplit=1)[0]
    starts = (word, f"no {word}")
    return [child for child in here.children if child.line.startswith(starts) and not child.is_note]


def _says(context: Path, node: Node) -> Keyed:
    """Returns what a line says; a context or multi-line text says only that it is there."""
    return (((node.line,), None),) if node.body or node.block else keyed(context, node.line)


def _set(here: Node, context: Path, tail: Path, value: Value, *, block: tuple[str, ...]) -> None:
    path = (*context, *tail)
    line = line_of(path, value)
    old = next((one for one in _kin(here, tail[0]) if tail in dict(_says(context, one))), None)
    if old is not None and dict(_says(context, old))[tail] == value and not block:
        return
    if old is not None and len(_says(context, old)) == 1 and not is_hidden(path, value):
        old.line, old.block = line, block
        return
    if old is not None:
        _drop(here, context, old, tail)
    if is_hidden(path, value) or (len(tail) > 1 and _join(here, tail, value)):
        return
    _insert(here, Node(line=line, indent=here.indent + INDENT, block=block), is_context=False)


def _join(here: Node, tail: Path, value: Value) -> bool:
    """Puts a member of a map into the line of its value, as EOS shows it; returns whether there is one."""
    for node in _kin(here, tail[0]):
        says = dict(keyed((), node.line))
        if all(len(one) > 1 and one[0] == tail[0] and other == value for one, other in says.items()):
            members = sorted({one[-1] for one in says} | {tail[-1]}, key=int)
            node.line = line_of((tail[0], " ".join(members)), value)
            return True
    return False


def _drop(here: Node, context: Path, node: Node, tail: Path) -> None:
    """Takes `tail` out of a line; a line of a map keeps its other members."""
    rest = [(one, value) for one, value in _says(context, node) if one != tail]
    if not rest:
        _remove(here, node, is_context=bool(node.body))
        return
    node.line = line_of((tail[0], " ".join(one[-1] for one, _ in rest)), rest[0][1])


def _insert(here: Node, node: Node, *, is_context: bool) -> Node:
    at = _position(here, node, is_context=is_context)
    here.children.insert(at, node)
    if is_context or node.line.startswith("interface "):
        separator = Node(line="!", indent=node.indent)
        here.children.insert(at if here.indent >= 0 else at + 1, separator)
    return node


def _position(here: Node, node: Node, *, is_context: bool) -> int:
    children = here.children
    if here.indent >= 0:  # nested: own lines, then contexts
        contexts = (i for i, child in enumerate(children) if child.body)
        first = next(contexts, len(children))
        while first and children[first - 1].is_note:
            first -= 1
        return len(children) if is_context else first
    words = node.line.split()[:_FIRST_WORDS]
    same = [i for i, child in enumerate(children) if child.line.startswith(words[0])]
    kin = [i for i in same if children[i].line.split()[:_FIRST_WORDS] == words]
    if kin and not is_context:
        return kin[-1] + 1
    kinds = [i for i in same if children[i].body and children[i].line.split()[:1] == words[:1]]
    if kinds:
        at = kinds[-1] + 1
    else:
        before = ("end", "interface ") if is_context else ("end",)
        at = next((i for i, child in enumerate(children) if child.line.startswith(before)), len(children))
    return at + 1 if at < len(children) and kinds and children[at].is_separator else at


def _remove(here: Node, node: Node, *, is_context: bool) -> None:
    """Takes a line away, and the separator that set it off."""
    at = next(i for i, child in enumerate(here.children) if child is node)
    del here.children[at]
    if not is_context:
        return
    after = at if here.indent < 0 else at - 1  # top level: `!` follows a context; nested: it comes before
    if 0 <= after < len(here.children) and here.children[after].is_separator:
        del here.children[after]
