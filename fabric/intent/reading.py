"""From raw variables to doors: one door for each distinct set of values, and a flaw for each refusal.

It translates pydantic's errors into the house's words; it must not know what a variable means.
"""

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from fabric.intent.flaws import Flaw, Spot, shown
from fabric.registry import nearest
from fabric.serial import Json

__all__ = ("DoorReader", "Reading", "known_keys")

D = TypeVar("D", bound=BaseModel)

_BELONGS: Final = {
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
}


@dataclass(frozen=True, slots=True)
class Reading(Generic[D]):
    """What became of the variables of one door.

    Attributes:
        door: the fields that could be read; the others have their defaults.
        flaws: without a device. failed: fields that could not be read.
    """

    door: D
    flaws: tuple[Flaw, ...] = ()
    failed: frozenset[str] = frozenset()


class DoorReader(Generic[D]):
    """Reads variables through one door, each distinct set of values once.

    Args:
        door: the model.
        values: the inventory's distinct values.
        names: field → variable, where it is not `fabric_<field>`.
        secret: fields whose value no message may show.
    """

    def __init__(
        self,
        door: type[D],
        values: Sequence[Json],
        *,
        names: Mapping[str, str] | None = None,
        secret: frozenset[str] = frozenset(),
    ) -> None:
        self._door = door
        self._values = values
        self._names = names or {}
        self._secret = secret
        self._done: dict[tuple[tuple[str, int], ...], Reading[D]] = {}

    def read(self, indices: Mapping[str, int]) -> Reading[D]:
        """Returns the door for field → index of its value."""
        key = tuple(sorted(indices.items()))
        if key not in self._done:
            self._done[key] = self._read({field: self._values[index] for field, index in key})
        return self._done[key]

    def _read(self, values: dict[str, Json]) -> Reading[D]:
        try:
            return Reading(self._door.model_validate(values))
        except ValidationError as error:
            errors = error.errors(include_url=False)
        failed = frozenset(str(one["loc"][0]) for one in errors)
        rest = {field: value for field, value in values.items() if field not in failed}
        return Reading(self._door.model_validate(rest), tuple(self._flaw(one) for one in errors), failed)

    def _flaw(self, error: Any) -> Flaw:
        field, *rest = error["loc"]
        path = tuple(part for part in rest if part != "[key]")
        variable = self._names.get(field, f"fabric_{field}")
        spot = Spot(variable=variable, path=path)
        found = "a value that is not shown" if field in self._secret else shown(error["input"])
        kind = error["type"]
        if kind == "fabric":
            context = error["ctx"]
            return Flaw(context["what"], spot, found, context["expected"], context["remedy"])
        if kind == "missing":
            return Flaw("the key is missing", spot)
        if kind == "extra_forbidden":
            close = nearest(str(path[-1]), known_keys(self._door, (field, *path[:-1])))
            return Flaw("there is no such key", spot, remedy=f"Did you mean {close}?" if close else "")
        return Flaw("the value has the wrong shape", spot, found, _BELONGS.get(kind, ""))


def known_keys(door: type[BaseModel], path: Sequence[str | int]) -> tuple[str, ...]:
    """Returns the keys that a door knows at a path inside it; () where it takes no keys."""
    model: type[BaseModel] | None = door
    for part in path:
        if isinstance(part, str) and model is not None:
            info = model.model_fields.get(part)
            model = next(_models(info.annotation), None) if info is not None else None
    return tuple(model.model_fields) if model is not None else ()


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models(part)
