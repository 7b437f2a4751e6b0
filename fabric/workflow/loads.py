"""Load profiles: what is sent through a fabric to prove or tune it, in words that hold for any fabric.

A profile is YAML; those that come along lie in `templates/loads`. `workflow.expanding` makes jobs of one. Every problem
of a file is told at once, in the words of the inventory's own doors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fabric.engine.load import SECTOR_BYTES, kv_model, read_bytes
from fabric.errors import IntentError, LocalProtocolError, Problem
from fabric.registry import nearest
from fabric.resources import data_path

if TYPE_CHECKING:
    from fabric.workflow.loaddoors import PhaseDoor, ProfileDoor

__all__ = ("Background", "Burst", "LoadProfile", "Pattern", "Phase", "load_profile", "profile_names")


class Pattern(StrEnum):
    """Who reads from whom.

    PAIRWISE: each host from one target. INCAST: one host from all its targets. OUTCAST: all hosts from one target.
    ALL: each host from all its targets.
    """

    PAIRWISE = "pairwise"
    INCAST = "incast"
    OUTCAST = "outcast"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Burst:
    """Bursts that begin at the same time everywhere.

    Attributes:
        size_bytes: that the link of a receiver carries in one; longer than a shared buffer, or nothing is proven.
        idle_percent: of the time between the begins of two.
    """

    size_bytes: int
    idle_percent: int


@dataclass(frozen=True, slots=True)
class Background:
    """Plain TCP to every host that reads.

    Attributes:
        connections: of each sender. dscp: 0 is priority 0. port: where receivers listen.
    """

    connections: int
    dscp: int
    port: int


@dataclass(frozen=True, slots=True)
class Phase:
    """One load. See `PhaseDoor` for the words of the file.

    Attributes:
        size_bytes: of a request, a multiple of 4096.
        readers: requests that each stream keeps open.
        write_percent: of requests.
        is_rotating: of incast: every host is the receiver in its turn.
        is_checked: payload is verified.
        rate_mbps: of a host at most, None: as fast as it goes.
    """

    name: str
    pattern: Pattern
    size_bytes: int
    readers: int
    seconds: int
    write_percent: int = 0
    burst: Burst | None = None
    background: Background | None = None
    is_rotating: bool = False
    is_checked: bool = True
    rate_mbps: int | None = None


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """What to send.

    Attributes:
        name: of the file, without its ending.
        about: one line for people.
        transport: `rdma` or `tcp`.
        span_bytes: of each scratch namespace that is used at most; all of it is written first.
        phases: one after the other.
    """

    name: str
    about: str
    transport: str
    span_bytes: int
    phases: tuple[Phase, ...]


_FOLDER: Final = ("templates", "loads")


def profile_names() -> tuple[str, ...]:
    """Returns the names of the profiles that come along, sorted."""
    return tuple(sorted(path.stem for path in data_path(*_FOLDER).glob("*.yml")))


def load_profile(name: str) -> LoadProfile:
    """Returns the profile of that name, or in that file.

    Args:
        name: `incast`, or a path that ends in `.yml` or `.yaml`.

    Raises:
        IntentError: there is none, or everything that is wrong with it.
    """
    path = Path(name)
    if path.suffix not in (".yml", ".yaml"):
        if name not in profile_names():
            near = nearest(name, profile_names())
            remedy = f"Did you mean {near}?" if near else "Or name a file that ends in .yml."
            expected = ", ".join(profile_names())
            raise IntentError([Problem("there is no such load profile", found=name, expected=expected, remedy=remedy)])
        path = data_path(*_FOLDER, f"{name}.yml")
    elif not path.is_file():
        raise IntentError([Problem("there is no such file", place=name)])
    return _profile(path, _read(path))


def _read(path: Path) -> Mapping[str, Any]:
    from ruamel.yaml import YAML  # lazy: only who loads a profile pays for it
    from ruamel.yaml.error import YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (YAMLError, OSError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = str(path) if line is None else f"{path}:{line + 1}"
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise IntentError([Problem(f"this file cannot be read: {what}", place=place)]) from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise IntentError([Problem("this is no load profile", place=str(path), expected="a mapping of keys to values")])
    return data


def _profile(path: Path, data: Mapping[str, Any]) -> LoadProfile:
    from fabric.intent.reading import DoorReader  # lazy: pydantic, 0.1 s
    from fabric.workflow.loaddoors import ProfileDoor

    known = tuple(ProfileDoor.model_fields)
    problems = [
        Problem(
            "there is no such key",
            place=str(path),
            field=key,
            remedy=f"Did you mean {near}?" if (near := nearest(key, known)) else "",
        )
        for key in data
        if key not in known
    ]
    fields = [key for key in data if key in known]
    reader = DoorReader(ProfileDoor, [data[key] for key in fields], names={key: key for key in known})
    reading = reader.read({key: index for index, key in enumerate(fields)})
    problems += [
        Problem(one.what, str(path), field=one.spot.text, found=one.found, expected=one.expected, remedy=one.remedy)
        for one in reading.flaws
    ]
    if not reading.failed:
        problems += _unfit(path, reading.door)
    if problems:
        raise IntentError(problems)
    door = reading.door
    phases = tuple(_phase(one) for one in door.phases)
    return LoadProfile(path.stem, door.about, door.transport, door.span, phases)


def _unfit(path: Path, door: "ProfileDoor") -> Iterator[Problem]:
    if not door.phases:
        yield Problem("it has no phase", place=str(path), field="phases")
    names = [one.name for one in door.phases]
    for index, one in enumerate(door.phases):
        field = f"phases[{index}]"
        if names.index(one.name) < index:
            yield Problem("two phases have one name", str(path), field=f"{field}.name", found=one.name)
        if (one.size is None) == (one.model is None):
            yield Problem("how long is a request?", str(path), field=field, expected="either size or model")
        if one.size is not None and (one.size % SECTOR_BYTES or not one.size):
            expected = f"a multiple of {SECTOR_BYTES}"
            yield Problem("no whole sectors", str(path), field=f"{field}.size", found=f"{one.size}", expected=expected)
        if one.model is not None:
            try:
                kv_model(one.model)
            except LocalProtocolError as error:
                yield Problem(error.what, str(path), "", f"{field}.model", error.found, error.expected, error.remedy)
        if one.rotate and one.pattern != Pattern.INCAST:
            yield Problem("only incast rotates", str(path), field=f"{field}.rotate", found=one.pattern)


def _phase(door: "PhaseDoor") -> Phase:
    size = door.size
    if size is None:  # of the two, `_unfit` has seen one
        size = read_bytes(kv_model(door.model or ""), ranks=door.ranks)
    return Phase(
        name=door.name,
        pattern=Pattern(door.pattern),
        size_bytes=-(-size // SECTOR_BYTES) * SECTOR_BYTES,
        readers=door.readers,
        seconds=door.seconds,
        write_percent=door.write_percent,
        burst=Burst(door.burst.size, door.burst.idle_percent) if door.burst else None,
        background=Background(door.background.connections, door.background.dscp, door.background.port)
        if door.background
        else None,
        is_rotating=door.rotate,
        is_checked=door.check,
        rate_mbps=door.rate_mbps,
    )
