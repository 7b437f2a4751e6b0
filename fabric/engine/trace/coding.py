"""Values of the engine as JSON and back: events, errors, posts, reads and writes, settings. Bytes are hexadecimal."""

import dataclasses
import enum
import types
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast, get_args

from fabric import errors
from fabric.engine.client.work import BlockRange, Work
from fabric.engine.nvmeof import errors as nvme_errors
from fabric.engine.nvmeof.host import ConnectionId, QueueMemory
from fabric.engine.queues import Urgency, View
from fabric.engine.transport.base import (
    Broken,
    Connected,
    DeviceRemoved,
    Disconnected,
    Done,
    Event,
    Received,
    Rejected,
    Released,
    Sent,
)
from fabric.errors import EngineError
from fabric.serial import Json

__all__ = ("Line", "error_from", "event_from", "flat", "flat_from", "plain", "plain_error", "work_from")

Line: TypeAlias = dict[str, Json]


def plain(value: object) -> Json:
    """Returns a value as JSON: a named tuple or dataclass as a list that begins with its name."""
    if value is None or isinstance(value, bool | int):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return value.hex()
    if isinstance(value, EngineError):
        return cast("Json", plain_error(value))
    if isinstance(value, tuple):
        name: list[Json] = [type(value).__name__] if hasattr(value, "_fields") else []
        return name + [plain(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(plain(getattr(value, one.name)) for one in dataclasses.fields(value))]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def plain_error(error: BaseException) -> Line:
    """Returns an error: its class, or the nearest above it that can be made again, and what it says."""
    if not isinstance(error, EngineError):
        return {"error": type(error).__name__, "what": str(error)}
    name = next(one.__name__ for one in type(error).__mro__ if one.__name__ in _ERRORS)
    line: Line = {"error": name}
    if isinstance(error, nvme_errors.NvmeStatusError):
        line["status"] = error.status
    texts = {one: getattr(error, one) for one in ("what", "where", "expected", "found", "remedy")}
    return line | {one: text for one, text in texts.items() if text}


def error_from(data: Json) -> EngineError:
    """Returns the error again.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    texts = dict(cast("dict[str, Any]", data))
    kind = _ERRORS[texts.pop("error")]
    if (status := texts.pop("status", None)) is not None:
        return nvme_errors.status_error(status, where=texts.get("where", ""))
    return kind(texts.pop("what"), **texts)


def event_from(data: Json) -> Event:
    """Returns an event of a transport again.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    name, *values = cast("list[Any]", data)
    kind, decoders = _EVENTS[name]
    return kind(*(decode(value) for decode, value in zip(decoders, values, strict=True)))


def work_from(data: Json) -> Work:
    """Returns a read, write or other work again.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    name, *values = cast("list[Any]", data)
    kind: Any = _WORKS[name]
    names = [one.name for one in dataclasses.fields(kind)]
    fields = {one: _decoded(one, value) for one, value in zip(names, values, strict=True)}
    return cast("Work", kind(**fields))


def flat(value: Any, *, without: frozenset[str] = frozenset()) -> Line:
    """Returns the fields of settings by name; paths as text, bytes as hexadecimal."""
    fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.name not in without}
    return {name: str(one) if isinstance(one, FilePath) else plain(one) for name, one in fields.items()}


def flat_from(kind: type[Any], data: Json, **decoders: Callable[[Any], object]) -> Any:
    """Returns settings again, each field by its decoder if it has one.

    Raises:
        TypeError, ValueError: a field is not known, or does not fit.
    """
    fields = cast("dict[str, Any]", data)
    return kind(**{name: decoders[name](one) if name in decoders else one for name, one in fields.items()})


def _decoded(name: str, value: Any) -> object:
    return _WORK_FIELDS[name](value) if name in _WORK_FIELDS else _tuples(value)


def _tuples(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if value and isinstance(value[0], str) and value[0] in _PIECES:
        return _PIECES[value[0]](*value[1:])
    return tuple(_tuples(one) for one in value)


def _memory(value: Any) -> QueueMemory:
    return QueueMemory(*value[1:])


def _maybe_error(value: Any) -> EngineError | None:
    return None if value is None else error_from(value)


def _named(module: types.ModuleType) -> dict[str, type[EngineError]]:
    found: list[object] = [getattr(module, name) for name in module.__all__]
    return {one.__name__: one for one in found if isinstance(one, type) and issubclass(one, EngineError)}


_ERRORS: Final[Mapping[str, Callable[..., EngineError]]] = MappingProxyType({**_named(errors), **_named(nvme_errors)})
_WORKS: Final[Mapping[str, type[object]]] = MappingProxyType({one.__name__: one for one in get_args(Work)})
_PIECES: Final[Mapping[str, Callable[..., object]]] = MappingProxyType({"View": View, "BlockRange": BlockRange})
_WORK_FIELDS: Final[Mapping[str, Callable[[Any], object]]] = MappingProxyType(
    {"urgency": Urgency, "key": bytes.fromhex}
)
_Decoders: TypeAlias = tuple[Callable[[Any], object], ...]
_EVENTS: Final[Mapping[str, tuple[Callable[..., Event], _Decoders]]] = MappingProxyType(
    {
        "Connected": (Connected, (ConnectionId, bytes.fromhex, _memory)),
        "Rejected": (Rejected, (ConnectionId, bytes.fromhex, bool)),
        "Sent": (Sent, (ConnectionId, int)),
        "Received": (Received, (ConnectionId, bytes.fromhex, bytes.fromhex)),
        "Done": (Done, (ConnectionId, int, _maybe_error, bool)),
        "Released": (Released, (ConnectionId, int)),
        "Broken": (Broken, (ConnectionId, error_from)),
        "Disconnected": (Disconnected, (ConnectionId, str)),
        "DeviceRemoved": (DeviceRemoved, (str,)),
    }
)
