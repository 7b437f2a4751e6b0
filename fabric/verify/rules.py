"""The rules that find place and cause, as data: what to look for, how well it fits, what to do.

Each looks at the whole scene and yields hits, one a place. A rule says which events it explains: a counter that moved
and that no hit explains becomes a finding of its own (`fabric.verify.judge`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fabric.verify.events import Event
from fabric.verify.model import VerdictStatus
from fabric.verify.scene import Scene

__all__ = ("Find", "Hit", "LocateRule", "status_of")


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a cause fits.

    Attributes:
        candidates: places, when it may be any of several.
        score: 0..100.
    """

    device: str
    candidates: tuple[str, ...]
    evidence: str
    score: int
    status: VerdictStatus = VerdictStatus.FAIL

    @property
    def place(self) -> str:
        """Returns the places in one line."""
        return " or ".join(self.candidates)


Find = Callable[[Scene], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class LocateRule:
    """One probable cause.

    Attributes:
        name: id of the rule, kebab case: what was seen. cause: id of what is probably behind it.
        explains: events whose moves a hit accounts for.
        remedy: what to do.
    """

    name: str
    cause: str
    find: Find
    explains: frozenset[Event]
    remedy: str


def status_of(scene: Scene) -> VerdictStatus:
    """Returns FAIL when loss is seen in the lossless class, INVALID when something is wrong and no loss is seen."""
    return VerdictStatus.FAIL if scene.is_loss_seen else VerdictStatus.INVALID
