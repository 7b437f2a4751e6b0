"""JSON Patch, strictly as in RFC 6902, and the plain difference of two databases. Knows no table and no rule."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from fabric.lab.sonic.configdb import Database
from fabric.serial import SerialError, parse_json

__all__ = ("Operation", "PatchError", "apply_patch", "difference", "pointer", "read_patch", "split_pointer")

Operation: TypeAlias = Mapping[str, object]

_VALUED = ("add", "replace", "test")
_SOURCED = ("move", "copy")


class PatchError(Exception):
    """The patch is malformed or does not apply; the text is what the device prints."""


def read_patch(text: str) -> tuple[Operation, ...]:
    """Returns the operations of a JSON Patch document.

    Raises:
        PatchError: it is none. Source: RFC 6902 section 4.
    """
    try:
        data = parse_json(text)
    except SerialError as error:
        raise PatchError(str(error)) from error
    if not isinstance(data, list):
        raise PatchError("a JSON patch is a list of operations")
    for one in data:
        if not isinstance(one, dict) or not isinstance(one.get("path"), str):
            raise PatchError("Operation must contain a valid 'path' member")
        if one.get("op") not in (*_VALUED, *_SOURCED, "remove"):
            raise PatchError(f"Unknown operation {one.get('op')!r}")
        if one["op"] in _VALUED and "value" not in one:
            raise PatchError("The operation does not contain a 'value' member")
        if one["op"] in _SOURCED and not isinstance(one.get("from"), str):
            raise PatchError("The operation does not contain a 'from' member")
    return cast("tuple[Operation, ...]", tuple(data))


def split_pointer(path: str) -> tuple[str, ...]:
    """Returns the parts of a JSON pointer, unescaped. Source: RFC 6901.

    Raises:
        PatchError: it does not start with `/`, or has a lone `~`.
    """
    if path == "":
        return ()
    if not path.startswith("/"):
        raise PatchError("Location must start with /")
    parts = path[1:].split("/")
    for part in parts:
        if "~" in part.replace("~0", "").replace("~1", ""):
            raise PatchError(f"Found invalid escape in {path}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def pointer(parts: Sequence[str]) -> str:
    """Returns the JSON pointer of the parts."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def apply_patch(document: object, operations: Sequence[Operation]) -> object:
    """Returns what the operations make of a copy of `document`.

    Raises:
        PatchError: one of them does not apply; nothing is half done.
    """
    result = json.loads(json.dumps(document))
    for one in operations:
        result = _apply(result, one)
    return result


def _apply(document: object, one: Operation) -> object:
    parts = split_pointer(cast("str", one["path"]))
    match one["op"]:
        case "add":
            return _add(document, parts, one["value"])
        case "remove":
            _remove(document, parts)
        case "replace":
            _get(document, parts, f"can't replace a non-existent object '{_last(parts)}'")
            if not parts:
                return one["value"]
            _put(document, parts, one["value"])
        case "test":
            if _get(document, parts) != one["value"]:
                raise PatchError(f"{one['path']} is not equal to the tested value")
        case "move":
            source = split_pointer(cast("str", one["from"]))
            value = _get(document, source)
            if parts[: len(source)] == source and parts != source:
                raise PatchError("Cannot move values into their own children")
            _remove(document, source)
            return _add(document, parts, value)
        case "copy":
            value = json.loads(json.dumps(_get(document, split_pointer(cast("str", one["from"])))))
            return _add(document, parts, value)
    return document


def _last(parts: Sequence[str]) -> str:
    return parts[-1] if parts else ""


def _get(document: object, parts: Sequence[str], missing: str = "") -> object:
    node = document
    for part in parts:
        if isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        else:
            raise PatchError(missing or f"member '{part}' not found in {json.dumps(node)[:200]}")
    return node


def _add(document: object, parts: Sequence[str], value: object) -> object:
    if not parts:
        return value
    parent = _get(document, parts[:-1])
    if isinstance(parent, list):
        index = len(parent) if parts[-1] == "-" else _index(parts[-1], len(parent))
        parent.insert(index, value)
    elif isinstance(parent, dict):
        parent[parts[-1]] = value
    else:
        raise PatchError(f"unable to add '{parts[-1]}' below a value")
    return document


def _put(document: object, parts: Sequence[str], value: object) -> None:
    parent = _get(document, parts[:-1])
    if isinstance(parent, list):
        parent[int(parts[-1])] = value
    elif isinstance(parent, dict):
        parent[parts[-1]] = value


def _remove(document: object, parts: Sequence[str]) -> None:
    missing = f"can't remove a non-existent object '{_last(parts)}'"
    if not parts:
        raise PatchError("the whole document cannot be removed")
    _get(document, parts, missing)
    parent = _get(document, parts[:-1])
    if isinstance(parent, list):
        del parent[int(parts[-1])]
    elif isinstance(parent, dict):
        del parent[parts[-1]]


def _index(text: str, most: int) -> int:
    if not text.isdigit() or int(text) > most:
        raise PatchError(f"index {text} is out of range")
    return int(text)


def difference(old: Database, new: Database) -> tuple[Operation, ...]:
    """Returns the operations from one database to another: whole tables, rows or fields, whichever is the least.

    The library on the device may turn a removal and an equal addition into a move; that is not modelled.
    """
    return tuple(_differ((), old, new))


def _differ(at: tuple[str, ...], old: object, new: object) -> Iterator[Operation]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key not in new:
                yield {"op": "remove", "path": pointer((*at, key))}
        for key, value in new.items():
            if key not in old:
                yield {"op": "add", "path": pointer((*at, key)), "value": value}
            else:
                yield from _differ((*at, key), old[key], value)
    elif old != new:
        yield {"op": "replace", "path": pointer(at), "value": new}
