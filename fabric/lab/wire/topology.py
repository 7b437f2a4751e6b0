"""Whether switches, guests and cables fit together. Knows no socket."""

from collections.abc import Mapping, Sequence

from fabric.errors import FabricError
from fabric.lab.wire.core import SwitchCore
from fabric.lab.wire.guest import Endpoint, GuestSide

__all__ = ("check_topology",)


def check_topology(
    cores: Mapping[str, SwitchCore], guests: Mapping[Endpoint, GuestSide], cables: Sequence[tuple[Endpoint, Endpoint]]
) -> None:
    """Returns if every port exists and is used once and the cables are a forest.

    Raises:
        FabricError: one of these is not so.
    """
    used: set[Endpoint] = set()
    for end in (*guests, *(end for cable in cables for end in cable)):
        if end[0] not in cores or end[1] not in cores[end[0]].ports:
            raise FabricError("the wiring has no such port", where="/".join(end))
        if end in used:
            raise FabricError("two cables end at one port", where="/".join(end))
        used.add(end)
    tree = {name: name for name in cores}
    for (one, _), (other, _) in cables:
        roots = _root(tree, one), _root(tree, other)
        if roots[0] == roots[1]:
            raise FabricError("the cables form a loop, and there is no spanning tree", where=f"{one} and {other}")
        tree[roots[0]] = roots[1]


def _root(tree: Mapping[str, str], name: str) -> str:
    while tree[name] != name:
        name = tree[name]
    return name
