"""Plug-ins by name: built-ins as `module:attribute` strings, third parties as entry points.

Nothing heavy is imported until a name is asked for, and a source tree works uninstalled.
"""

import difflib
import importlib
import importlib.metadata
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar, cast

from fabric.errors import FabricError

__all__ = ("Registry", "UnknownNameError", "nearest")

T = TypeVar("T")


class UnknownNameError(FabricError):
    """No plug-in of that name; the message lists the known ones and the nearest."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns the known name most like `name`, or "" if none is close."""
    matches = difflib.get_close_matches(name, list(known), n=1)
    return matches[0] if matches else ""


class Registry(Generic[T]):
    """One kind of plug-in: a catalog of built-ins, widened by an entry-point group.

    Args:
        group: entry-point group, `fabric.nos`.
        builtins: name → `module:attribute`.
    """

    def __init__(self, group: str, builtins: Mapping[str, str]) -> None:
        self._group = group
        self._targets = dict(builtins)
        self._loaded: dict[str, T] = {}

    def names(self) -> tuple[str, ...]:
        """Returns every known name, sorted."""
        found = {point.name for point in importlib.metadata.entry_points(group=self._group)}
        return tuple(sorted(found | set(self._targets)))

    def get(self, name: str) -> T:
        """Returns the plug-in of that name, loaded once.

        Raises:
            UnknownNameError: nobody registered it.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> T:
        target = self._targets.get(name)
        if target is not None:
            module, _, attribute = target.partition(":")
            return cast("T", getattr(importlib.import_module(module), attribute))
        for point in importlib.metadata.entry_points(group=self._group, name=name):
            return cast("T", point.load())
        known = self.names()
        close = nearest(name, known)
        raise UnknownNameError(
            f"no {self._group} plug-in is called {name!r}",
            expected=", ".join(known),
            remedy=f"Did you mean {close!r}?" if close else "",
        )
