"""What is done to a host: programs as argument lists, writes to files, folders, links. Says nothing about why or when.

A step is data. It is performed over any executor, or written as JSON for the agent on the host to perform at boot.
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import IntEnum, StrEnum
from typing import Final, TypeAlias, assert_never

from fabric.serial import Json, SerialError, from_json, to_json

__all__ = (
    "Action",
    "ControllerAttribute",
    "Disruption",
    "Link",
    "MakeFolder",
    "PutFile",
    "RemoveFolder",
    "RemoveLink",
    "Run",
    "Stage",
    "StageFile",
    "Step",
    "Write",
    "actions_from_json",
    "actions_to_json",
    "agent_text",
    "command",
    "worst_disruption",
)


class Stage(StrEnum):
    """When at boot: QoS of the netdev, then what makes RDMA ready. Connections come after both."""

    QOS = "qos"
    LINK = "link"


class Disruption(IntEnum):
    """What a step costs the traffic that runs."""

    NONE = 0
    LINK = 1  # the driver opens its channels again, or the link goes down for a moment
    FIRMWARE_RESET = 2  # it takes effect after a reset of the NIC's firmware or a reboot


@dataclass(frozen=True, slots=True)
class Run:
    """Run a program. Never a secret in it.

    Attributes:
        unless_exists: skip when this path is there; "" to run always.
        if_exists: skip when this path is not there; "" to run always.
        accepted: exit codes that are no failure.
        accepted_words: words in the output with which any exit code is no failure, "" for none.
    """

    argv: tuple[str, ...]
    unless_exists: str = ""
    accepted: tuple[int, ...] = (0,)
    accepted_words: str = ""
    if_exists: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """Write text into a file of the kernel that exists already.

    The kernel refuses some values that stand there already; that is no failure.

    Attributes:
        optional: that the file is not there is no failure.
    """

    path: str
    text: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class PutFile:
    """Make or replace a whole file, never seen half written. The text may be secret: repr does not show it."""

    path: str
    text: str = field(repr=False)
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class StageFile:
    """Lay a whole file ready on its disk under a name that nobody reads; `PutFile` takes it from there.

    So a disk that is full is found before the first file has changed.

    Attributes:
        back: it is for the way back.
    """

    path: str
    text: str = field(repr=False)
    mode: int = 0o644
    back: bool = False


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """Make one folder; that it is there already is no failure."""

    path: str


@dataclass(frozen=True, slots=True)
class RemoveFolder:
    """Remove one empty folder; that it is not there is no failure."""

    path: str


@dataclass(frozen=True, slots=True)
class Link:
    """Make a symbolic link at `path` to `to`; that it is there already is no failure."""

    path: str
    to: str


@dataclass(frozen=True, slots=True)
class RemoveLink:
    """Remove a symbolic link; that it is not there is no failure."""

    path: str


@dataclass(frozen=True, slots=True)
class ControllerAttribute:
    """Write an attribute of each NVMe controller that connects so. The kernel numbers them, so they are looked up.

    Attributes:
        optional: that no controller connects so is no failure.
    """

    nqn: str
    traddr: str
    name: str
    text: str
    host_traddr: str = ""
    optional: bool = False


Action: TypeAlias = (
    Run | Write | PutFile | StageFile | MakeFolder | RemoveFolder | Link | RemoveLink | ControllerAttribute
)


@dataclass(frozen=True, slots=True)
class Step:
    """One action with its price.

    Attributes:
        unconfirmed: what nobody here has seen work, one sentence; "" when it was seen or read in the source.
    """

    action: Action
    stage: Stage = Stage.QOS
    disruption: Disruption = Disruption.NONE
    unconfirmed: str = ""


def worst_disruption(steps: Iterable[Step]) -> Disruption:
    """Returns the highest price among the steps."""
    return max((step.disruption for step in steps), default=Disruption.NONE)


_TAGS: Final[Mapping[str, type[Action]]] = {
    "run": Run,
    "write": Write,
    "put-file": PutFile,
    "stage-file": StageFile,
    "make-folder": MakeFolder,
    "remove-folder": RemoveFolder,
    "link": Link,
    "remove-link": RemoveLink,
    "controller-attribute": ControllerAttribute,
}
_NAMES: Final = {kind: tag for tag, kind in _TAGS.items()}


def command(action: Action) -> str:
    """Returns the action as a shell command for a person; the text of a file is left out, it may be secret."""
    match action:
        case Run(argv):
            return shlex.join(argv)
        case Write(path, text):
            return f"printf %s {shlex.quote(text)} > {shlex.quote(path)}"
        case PutFile(path, text, mode) | StageFile(path, text, mode):
            return f"# put {path} back: {len(text.encode())} bytes, mode {mode:04o}"
        case MakeFolder(path):
            return shlex.join(("mkdir", path))
        case RemoveFolder(path):
            return shlex.join(("rmdir", path))
        case Link(path, to):
            return shlex.join(("ln", "-s", to, path))
        case RemoveLink(path):
            return shlex.join(("rm", "-f", path))
        case ControllerAttribute(nqn, traddr, name, text, source):
            place = f"{nqn} at {traddr}" + (f" from {source}" if source else "")
            return f"# write {text} to {name} of the controller of {place} below /sys/class/nvme"
        case _:
            assert_never(action)


def agent_text(actions: Iterable[Action]) -> str:
    """Returns the file that the agent on the host reads at boot: a line an action, without what has its default.

    Raises:
        ValueError: one puts a file, which is done once and not at each boot.
    """
    lines = []
    for action in actions:
        if isinstance(action, PutFile | StageFile):
            raise ValueError(f"{action.path}: a file is put once, not at each boot")
        lines.append(json.dumps(_brief(action)))
    rows = ",\n".join(lines)
    return f'{{"version": 1, "actions": [\n{rows}\n]}}\n'


def actions_to_json(actions: Iterable[Action]) -> list[Json]:
    """Returns the actions as JSON, each with its kind as `do`."""
    return [_one(action) for action in actions]


def _one(action: Action) -> Json:
    values = to_json(action)
    return {"do": _NAMES[type(action)], **(values if isinstance(values, dict) else {})}


def _brief(action: Action) -> Json:
    usual = {one.name: one.default for one in fields(action) if one.default is not MISSING}
    kept = (one.name for one in fields(action) if getattr(action, one.name) != usual.get(one.name, MISSING))
    return {"do": _NAMES[type(action)], **{name: to_json(getattr(action, name)) for name in kept}}


def actions_from_json(data: Json, *, at: str = "$") -> tuple[Action, ...]:
    """Returns the actions that `actions_to_json` wrote.

    Raises:
        SerialError: it is no list of actions; the message has the place.
    """
    if not isinstance(data, list):
        raise SerialError(f"{at}: found {type(data).__name__}, expected a list")
    return tuple(_read(one, f"{at}[{number}]") for number, one in enumerate(data))


def _read(data: Json, at: str) -> Action:
    if not isinstance(data, dict):
        raise SerialError(f"{at}: found {type(data).__name__}, expected an object")
    kind = _TAGS.get(str(data.get("do")))
    if kind is None:
        raise SerialError(f"{at}: {data.get('do')!r} is no kind of action")
    return from_json(kind, {name: value for name, value in data.items() if name != "do"}, at=at)
