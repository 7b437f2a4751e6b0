"""Progress as events: library code emits, the edge (CLI, Ansible, a file) shows. No logging, no printing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ("Event", "Observer", "Recorder", "silent")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        name: dotted, `push.commit.started`; last part is started, progress, done or failed.
        device: the device concerned, or "".
        message: one line for people.
        data: what a program may want; values are JSON scalars. Never a secret.
    """

    name: str
    device: str = ""
    message: str = ""
    data: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


class Observer(Protocol):
    """Whoever wants to hear of progress. May be called from several threads."""

    def __call__(self, event: Event) -> None:
        """Takes one event; must not raise."""
        ...


def silent(event: Event) -> None:
    """Drops the event: the default observer."""
    del event


class Recorder:
    """Keeps every event, for tests and run folders."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Appends the event."""
        self.events.append(event)
