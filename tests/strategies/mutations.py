"""Damaged inputs for parsers: real samples with their structure kept, or broken, in ways that people and devices do."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

__all__ = ("HOSTILE_WORDS", "damaged_bytes", "damaged_json", "damaged_text", "inputs")

# numbers at the edges of what readers assume, other scripts' digits, and what a terminal or a shell would obey
HOSTILE_WORDS: Final = (
    "", "0", "-1", "00", "007", "0x10", "1e9", "1,000", "1_000", "NaN", "Infinity", "N/A", "-", "--", ".", ",", ":", "/",
    "4294967296", "18446744073709551616", "9" * 30, "9" * 5000, "٣", "²", "\uff11\uff12", "½", "none", "null", "true", "[]", "{}",
    "\x00", "\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\u202e", "\u2028", "\u0085", "\ufeff", "\ufffd", "\ud800", "é" * 300,
    "a" * 20_000, "{{ 7*7 }}", "$(id)", "`id`", "; reload", "!", "%", "\\", '"', "'", "\r", "\n", "\t", "\x0b", "\x0c",
)  # fmt: skip

_LINES: Final = 60  # of a sample at most: a window of it has all that a parser tells apart, and costs a hundredth


def inputs(seeds: Sequence[str], source: random.Random, count: int) -> Iterator[str]:
    """Yields `count` texts: the whole samples first, then damaged ones, JSON by its structure half of the time."""
    yield from seeds[:count]
    documents = [found for one in seeds if (found := _document(one)) is not None]
    for _ in range(count - len(seeds)):
        if documents and source.random() < 0.6:
            yield damaged_json(source.choice(documents), source)
        else:
            yield damaged_text(source.choice(seeds), source)


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


# --- text -----------------------------------------------------------------------------------------------------------


def damaged_text(text: str, source: random.Random) -> str:
    """Returns a window of the text with a few lines, words or characters changed."""
    lines = text.split("\n")
    if len(lines) > _LINES:
        start = source.choice((0, source.randrange(len(lines) - _LINES)))
        lines = lines[start : start + _LINES]
    for _ in range(source.choice((1, 1, 2, 4))):
        source.choice(_LINE_CHANGES)(lines, source)
    damaged = "\n".join(lines)
    return damaged[: source.randrange(len(damaged) + 1)] if source.random() < 0.1 else damaged


def _lose(lines: list[str], source: random.Random) -> None:
    if lines:
        del lines[source.randrange(len(lines))]


def _double(lines: list[str], source: random.Random) -> None:
    if lines:
        lines.insert(source.randrange(len(lines)), source.choice(lines))


def _swap(lines: list[str], source: random.Random) -> None:
    if lines:
        one, two = source.randrange(len(lines)), source.randrange(len(lines))
        lines[one], lines[two] = lines[two], lines[one]


def _shift(lines: list[str], source: random.Random) -> None:
    if lines:
        at = source.randrange(len(lines))
        lines[at] = source.choice(("", " ", "   ", "\t", "      ")) + lines[at].lstrip()


def _reword(lines: list[str], source: random.Random) -> None:
    if not lines:
        return
    at = source.randrange(len(lines))
    words = lines[at].split(" ")
    place = source.randrange(len(words))
    words[place] = source.choice((source.choice(HOSTILE_WORDS), words[place] * 2, words[place][::-1]))
    lines[at] = " ".join(words)


def _insert(lines: list[str], source: random.Random) -> None:
    if lines:
        at = source.randrange(len(lines))
        place = source.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:place] + source.choice(HOSTILE_WORDS) + lines[at][place:]


def _cut(lines: list[str], source: random.Random) -> None:
    if lines:
        at = source.randrange(len(lines))
        lines[at] = lines[at][: source.randrange(len(lines[at]) + 1)]


def _renumber(lines: list[str], source: random.Random) -> None:
    """Changes one digit of a line: still well formed, and another thing."""
    at = source.randrange(len(lines)) if lines else 0
    digits = [place for place, one in enumerate(lines[at]) if one.isdigit()] if lines else []
    if digits:
        place = source.choice(digits)
        lines[at] = lines[at][:place] + source.choice(("9", "0", "-", "x", "99999", "²")) + lines[at][place + 1 :]


_LINE_CHANGES: Final[tuple[Callable[[list[str], random.Random], None], ...]] = (
    _lose, _double, _swap, _shift, _reword, _reword, _insert, _insert, _cut, _renumber, _renumber,
)  # fmt: skip


# --- JSON -----------------------------------------------------------------------------------------------------------


def damaged_json(document: Any, source: random.Random) -> str:
    """Returns JSON text of the document, pruned, with a few values, keys or shapes changed."""
    data = _pruned(document, source, room=80)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        data = _changed(data, source)
    text = json.dumps(data)
    if source.random() < 0.05:
        text = text.replace('":', f'": {source.choice(("NaN, ", "-Infinity,", "1e999,", ""))}', 1)
    return text[: source.randrange(len(text) + 1)] if source.random() < 0.05 else text


def _pruned(node: Any, source: random.Random, *, room: int) -> Any:
    """Returns a copy with at most `room` entries below each level, by chance which."""
    if isinstance(node, dict):
        keys = list(node)
        kept = keys if len(keys) <= room else sorted(source.sample(keys, room))
        return {key: _pruned(node[key], source, room=max(2, room // 4)) for key in kept}
    if isinstance(node, list):
        return [_pruned(one, source, room=max(2, room // 4)) for one in node[:room]]
    return node


def _changed(node: Any, source: random.Random) -> Any:
    """Returns the node with one place in it changed: the way down is by chance, and may end at once."""
    if isinstance(node, dict) and node and source.random() < 0.85:
        key = source.choice(list(node))
        below = node.pop(key)
        if source.random() < 0.1:
            return node  # the key is missing
        if source.random() < 0.1:
            key = source.choice(HOSTILE_WORDS)
        return {**node, key: _changed(below, source)}
    if isinstance(node, list) and node and source.random() < 0.85:
        at = source.randrange(len(node))
        return [*node[:at], _changed(node[at], source), *node[at + 1 :]]
    return _another(node, source)


def _another(node: Any, source: random.Random) -> Any:
    kind = source.randrange(8)
    if kind < len(_OTHERS):
        return source.choice(_OTHERS[kind])
    if kind == len(_OTHERS):
        return _deep(source.choice((20, 200, 400)), source)
    if isinstance(node, int) and not isinstance(node, bool):
        return source.choice((-node, node + 1, node * 10**9, str(node), float(node)))
    if isinstance(node, str):
        return source.choice((node * 2, node[: len(node) // 2], node.upper(), f" {node}", f"{node}\n", [node, node]))
    return source.choice(([node], [node, node], {source.choice(("", "value", "name", "0")): node}))


_OTHERS: Final[tuple[tuple[Any, ...], ...]] = (
    (None, True, False, 0, -1, 2**31, 2**64, 10**40, 0.5, 1e300),
    HOSTILE_WORDS,
    HOSTILE_WORDS,
    ([], {}, [[]], [{}], {"": {}}, [None], [[[1]]], [{"a": 1}]),
)


def _deep(levels: int, source: random.Random) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found] if source.random() < 0.5 else {"a": found}
    return found


# --- bytes ----------------------------------------------------------------------------------------------------------


def damaged_bytes(data: bytes, source: random.Random) -> bytes:
    """Returns the bytes with some changed, lost, added or doubled, mostly at the beginning."""
    found = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 5))):
        at = min(int(source.expovariate(1 / 30)), max(0, len(found) - 1))
        match source.randrange(5):
            case 0 | 1 if found:
                found[at] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
            case 2 if found:
                del found[at : at + source.choice((1, 2, 8))]
            case 3:
                found[at:at] = source.randbytes(source.choice((1, 4, 64)))
            case _:
                found = found[: source.randrange(len(found) + 1)]
    return bytes(found)
