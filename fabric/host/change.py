"""What one part of a host shall be changed by, and the way back, as data. Knows no tool and reaches no host.

A change is written into the run folder before it is performed, so that another process can take it back.
"""

from dataclasses import dataclass
from enum import StrEnum

from fabric.host.actions import Action, actions_from_json, actions_to_json
from fabric.host.nvme.connect import Connection
from fabric.plan.model import HostPlan
from fabric.serial import Json, SerialError, from_json, to_json
from fabric.state.host import NvmetState

__all__ = ("HostIntent", "Part", "PartChange", "Thing", "change_from_json", "change_to_json", "intent_from_json")


class Part(StrEnum):
    """What is changed and taken back together, in the order in which a host needs it."""

    NIC = "nic"
    TARGET = "target"
    CONNECT = "connect"


@dataclass(frozen=True, slots=True)
class HostIntent:
    """What one host or managed target shall be; holds no secret. JSON by `fabric.serial`.

    Attributes:
        role: `host` or `target`.
        connections: which controllers it shall have.
        target: what its kernel shall publish, None where it publishes nothing.
        shard_profile: text of the engine's profile that shall stand there, "" for none.
    """

    host: str
    role: str
    plan: HostPlan
    connections: tuple[Connection, ...] = ()
    target: NvmetState | None = None
    shard_profile: str = ""


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that a change changes: a setting, a file by its digest, a unit, a subsystem, a connection.

    Attributes:
        before, after: as text, no secret in it.
    """

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PartChange:
    """What brings one part of a host about.

    Attributes:
        forward: what is performed, in order.
        backward: exact way back to what was read before, files of ours restored or removed. It may be performed
            whatever of `forward` was, and more than once.
        diff: lines as of a unified diff, no secret in them; "" when nothing changes.
        disruptive: why traffic that runs would feel it; not () needs a consent.
        cannot_restore: settings whose old value nobody could read.
        unconfirmed: what of the steps nobody has seen work, one sentence each.
        things: what is changed from what to what, as far as the host shows it.
    """

    host: str
    part: Part
    forward: tuple[Action, ...]
    backward: tuple[Action, ...]
    diff: str
    disruptive: tuple[str, ...] = ()
    cannot_restore: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    things: tuple[Thing, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Returns whether all is as planned; a connection that is to come up by itself is not yet."""
        return not self.forward and not self.diff


def intent_from_json(data: Json) -> HostIntent:
    """Returns the intent that `fabric.serial.to_json` wrote.

    Raises:
        SerialError: it is none.
    """
    return from_json(HostIntent, data)


def change_to_json(change: PartChange) -> Json:
    """Returns the change as JSON, each action with its kind."""
    return {
        "host": change.host,
        "part": change.part.value,
        "forward": actions_to_json(change.forward),
        "backward": actions_to_json(change.backward),
        "diff": change.diff,
        "disruptive": to_json(change.disruptive),
        "cannot_restore": to_json(change.cannot_restore),
        "unconfirmed": to_json(change.unconfirmed),
        "things": to_json(change.things),
    }


def change_from_json(data: Json) -> PartChange:
    """Returns the change that `change_to_json` wrote.

    Raises:
        SerialError: it is none; the message has the place.
    """
    if not isinstance(data, dict):
        raise SerialError(f"$: found {type(data).__name__}, expected an object")
    rest = {name: value for name, value in data.items() if name not in {"forward", "backward"}}
    plain = from_json(PartChange, {**rest, "forward": [], "backward": []})
    return PartChange(
        plain.host,
        plain.part,
        actions_from_json(data.get("forward"), at="$.forward"),
        actions_from_json(data.get("backward"), at="$.backward"),
        plain.diff,
        plain.disruptive,
        plain.cannot_restore,
        plain.unconfirmed,
        plain.things,
    )
