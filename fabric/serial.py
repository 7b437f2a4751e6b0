"""Frozen dataclasses to JSON and back, by their annotations. Standard library only, so that `engine` may use it.

Handled: dataclasses, enums, str, int, float, bool, None, tuple, frozenset, Mapping with string keys,
unions, `Literal`, `NewType`, and `Tree`. A frozenset is written sorted. Everything that leaves a stage goes
through here, with a schema version beside it.
"""

import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast

from fabric.tree import Tree

__all__ = ("Json", "SerialError", "from_json", "parse_json", "to_json")

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
T = TypeVar("T")

_MOST_NESTED: Final = 100  # nothing of ours, and no device's, comes near; whoever walks deeper runs out of stack


class SerialError(ValueError):
    """The JSON does not fit the type; the message has the path."""


def to_json(value: object) -> Json:
    """Returns `value` as plain JSON data.

    Raises:
        SerialError: a part is of a kind that has no JSON form.
    """
    if value is None or isinstance(value, bool | int | float):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return cast("Json", value.value)
    if isinstance(value, str):
        return value
    if isinstance(value, Tree):
        return [[list(path), to_json(leaf)] for path, leaf in value.items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((to_json(one) for one in value), key=repr)
    if isinstance(value, tuple | list):
        return [to_json(one) for one in value]
    raise SerialError(f"no JSON form for {type(value).__name__}")


def parse_json(text: str | bytes) -> Json:
    """Returns the data of JSON text that others wrote.

    Raises:
        SerialError: it is no JSON, or nested so deeply that nobody could walk it.
    """
    try:
        data: Json = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a number of more digits than Python takes, too
        raise SerialError(f"no JSON: {_told(error)}") from error
    level = [data]
    for _ in range(_MOST_NESTED):
        level = [below for one in level for below in _parts(one) if isinstance(below, dict | list)]
        if not level:
            return data
    raise SerialError(f"no JSON that can be read: nested more than {_MOST_NESTED} deep")


def _told(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (line {error.lineno}, column {error.colno})"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _parts(data: Json) -> Iterable[Json]:
    return data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()


def from_json(kind: type[T], data: Json, *, at: str = "$") -> T:
    """Returns a `kind` built from `data`.

    Args:
        kind: the type to build.
        data: what `to_json` returned, perhaps through a file.
        at: where `data` stands, for messages.

    Raises:
        SerialError: a part does not fit; the message has its path.
    """
    return cast("T", _build(kind, data, at))


def _build(kind: Any, data: Json, at: str) -> Any:
    while isinstance(kind, typing.NewType):
        kind = kind.__supertype__
    if kind is Any or kind is object:
        return data
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _build_union(typing.get_args(kind), data, at)
    if origin is typing.Literal:
        return _build_literal(typing.get_args(kind), data, at)
    if origin is not None:
        return _build_container(origin, typing.get_args(kind), data, at)
    if kind is Tree:
        return _build_tree(data, at)
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, data, at)
    return _build_scalar(kind, data, at)


def _build_scalar(kind: Any, data: Json, at: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(data)
        except ValueError as error:
            raise SerialError(f"{at}: {data!r} is no {kind.__name__}") from error
    if kind is None or kind is type(None):
        kind = type(None)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if isinstance(data, bool) and kind is not bool:
        raise SerialError(f"{at}: found a boolean, expected {kind.__name__}")
    if isinstance(data, kind):
        return data
    raise SerialError(f"{at}: found {type(data).__name__}, expected {kind.__name__}")


def _build_union(options: tuple[Any, ...], data: Json, at: str) -> Any:
    errors = []
    literals_first = sorted(options, key=lambda option: str(typing.get_origin(option)) != str(typing.Literal))
    for option in literals_first:
        try:
            return _build(option, data, at)
        except SerialError as error:
            errors.append(str(error))
    raise SerialError(f"{at}: fits none of the union: {'; '.join(errors)}")


def _build_literal(options: tuple[Any, ...], data: Json, at: str) -> Any:
    for option in options:
        if data == (option.value if isinstance(option, enum.Enum) else option):
            return option
    raise SerialError(f"{at}: {data!r} is none of {options!r}")


def _build_container(origin: Any, args: tuple[Any, ...], data: Json, at: str) -> Any:
    if issubclass(origin, Mapping):
        if not isinstance(data, dict):
            raise SerialError(f"{at}: found {type(data).__name__}, expected an object")
        return {key: _build(args[1], one, f"{at}.{key}") for key, one in data.items()}
    if not isinstance(data, list):
        raise SerialError(f"{at}: found {type(data).__name__}, expected a list")
    if origin is tuple and len(args) > 0 and args[-1] is not Ellipsis:
        if len(args) != len(data):
            raise SerialError(f"{at}: found {len(data)} items, expected {len(args)}")
        return tuple(_build(a, one, f"{at}[{i}]") for i, (a, one) in enumerate(zip(args, data, strict=True)))
    return origin(_build(args[0], one, f"{at}[{i}]") for i, one in enumerate(data))


def _build_tree(data: Json, at: str) -> Tree:
    pairs = _build(list[tuple[tuple[str, ...], str | tuple[str, ...] | None]], data, at)
    return Tree(pairs)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _build_dataclass(kind: Any, data: Json, at: str) -> Any:
    if not isinstance(data, dict):
        raise SerialError(f"{at}: found {type(data).__name__}, expected {kind.__name__}")
    hints = _hints(kind)
    names = {f.name for f in dataclasses.fields(kind)}
    unknown = sorted(set(data) - names)
    if unknown:
        raise SerialError(f"{at}: unknown field {unknown[0]!r} of {kind.__name__}")
    values = {name: _build(hints[name], one, f"{at}.{name}") for name, one in data.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise SerialError(f"{at}: {error}") from error
