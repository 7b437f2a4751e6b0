"""The verbs on a lab: up, status, down, and a lab for the length of a `with`."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from fabric.errors import FabricError, HostError
from fabric.intent import load
from fabric.lab.site import (
    LabFolder,
    LabSpec,
    Login,
    Record,
    Site,
    Tools,
    ask,
    bring_up,
    lab_path,
    open_site,
    take_down,
)
from fabric.lab.vm import Image, Machine, build_image, cache_folder, open_machine, pick_accelerator, prune_images
from fabric.nos import catalog
from fabric.observe import Event
from fabric.registry import nearest
from fabric.resources import data_path
from fabric.serial import Json
from fabric.workflow.environment import Environment
from fabric.workflow.lab.building import RATE_BPS, SEED, lab_spec
from fabric.workflow.lab.variables import read_variables

__all__ = (
    "TOPOLOGIES",
    "DeviceStatus",
    "LabStatus",
    "design_lab",
    "lab_down",
    "lab_status",
    "lab_up",
    "opened_lab",
    "running_lab",
    "topology",
)

TOPOLOGIES: Final[Mapping[str, str]] = {
    "lab": "lab",
    "incast": "lab-incast",
    "two-leaves": "lab-two-leaves",
    "direct": "lab-direct",
}
"""Short name → folder under `inventory`."""

_STATUS_S: Final = 10.0
_COMMAND: Final = (sys.executable, "-P", "-m", "fabric.workflow.lab.process")


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """One device of a lab.

    Attributes:
        kind: "host", "target" or the network OS of a switch.
        running: whether its process is alive.
        login: how to reach it, without its password; None while it is not up.
        memory_mib: what a machine's process holds now; 0 for a switch.
    """

    name: str
    kind: str
    running: bool
    login: Login | None = field(default=None)
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class LabStatus:
    """A lab as it is.

    Attributes:
        state: "running"; "changing" while somebody brings it up or takes it down; "dead" when something was killed or
            does not answer; "unreadable" when it is there, but not as this version writes it; "none".
        plane: what the lab's process tells: ports with a guest, lost frames, what it cannot emulate; empty when it
            does not answer.
        left: where the state is "unreadable", the files.
    """

    folder: str
    state: str
    name: str = ""
    seed: int = 0
    rate_bps: int = 0
    devices: tuple[DeviceStatus, ...] = ()
    plane: Mapping[str, Any] = field(default_factory=dict)
    left: tuple[str, ...] = ()


def topology(name: str) -> Path:
    """Returns the shipped inventory of a topology.

    Raises:
        FabricError: there is none of that name.
    """
    if name not in TOPOLOGIES:
        close = nearest(name, TOPOLOGIES)
        raise FabricError(
            "there is no such topology",
            found=name,
            expected=", ".join(TOPOLOGIES),
            remedy=f"Did you mean {close}?" if close else "",
        )
    return data_path("inventory", TOPOLOGIES[name])


def design_lab(
    sources: Sequence[Path],
    environment: Environment,
    *,
    extra_vars: Mapping[str, Json] | None = None,
    seed: int = SEED,
    rate_bps: int = RATE_BPS,
) -> LabSpec:
    """Returns the lab that an inventory describes. Starts nothing.

    Raises:
        IntentError: the inventory has problems.
        FabricError: it cannot be emulated.
    """
    loaded = load(sources, extra_vars=extra_vars, known_nos=catalog.names(), observer=environment.observer)
    return lab_spec(loaded.fabric, read_variables(sources, extra_vars or {}), seed=seed, rate_bps=rate_bps)


def lab_up(spec: LabSpec, environment: Environment, *, folder: Path | None = None, is_fresh: bool = False) -> Site:
    """Returns a lab that goes on after this process; its image is built if it is not there.

    Args:
        spec: as `design_lab` made it.
        environment: clock and observer.
        folder: where it lies; None for `lab_path`.
        is_fresh: boot each machine, whatever warm state there is.

    Raises:
        HostError: a lab runs there, or one of its machines does not come up.
        EnvironmentMissingError: a program is missing.
    """
    path = folder or lab_path(os.environ)
    _refuse_second(path)
    return bring_up(path, spec, _tools(environment), is_fresh=is_fresh)


def lab_down(folder: Path | None = None) -> tuple[str, ...]:
    """Ends a lab, alive or dead, removes all of it, and returns the names of its devices."""
    return take_down(folder or lab_path(os.environ))


def opened_lab(environment: Environment, folder: Path | None = None) -> Site:
    """Returns the lab that runs.

    Raises:
        HostError: none does.
    """
    path = folder or lab_path(os.environ)
    place = LabFolder(path)
    record = place.record()
    if record is None:
        raise _not_there(place)
    if place.is_changing() and not place.logins():
        raise HostError(
            "the lab is not up yet, or on its way down", where=str(path), remedy="See: fabricctl lab status"
        )
    return open_site(path, _tools_of(record, environment))


def _not_there(place: LabFolder) -> HostError:
    if left := place.remains():
        return HostError(
            "what lies here of a lab cannot be read: another version made it, or it was killed",
            where=str(place.path),
            found=", ".join(left),
            remedy="Clear it: fabricctl lab down",
        )
    return HostError("no lab runs here", where=str(place.path), remedy="Run: fabricctl lab up")


def lab_status(environment: Environment, folder: Path | None = None) -> LabStatus:
    """Returns what there is of a lab, whatever state it is in."""
    path = folder or lab_path(os.environ)
    place = LabFolder(path)
    record = place.record()
    if record is None:
        left = place.remains()
        return LabStatus(str(path), "unreadable" if left else "none", left=left)
    runs, logins = place.is_running(), place.logins()
    shown = {name: replace(login, password=None) for name, login in logins.items()}
    image = _tools_of(record, environment).image
    devices = [DeviceStatus(one.name, one.front.nos, runs, shown.get(one.name)) for one in record.spec.switches]
    for one in record.spec.machines:
        machine = _machine(place, one.name, image, environment)
        alive = machine is not None and machine.is_running()
        memory_mib = machine.memory_bytes() >> 20 if machine is not None and alive else 0
        devices.append(DeviceStatus(one.name, one.role, alive, shown.get(one.name), memory_mib))
    plane = _told(path) if runs else None
    is_up = plane is not None and bool(logins) and all(one.running for one in devices)
    return LabStatus(
        str(path),
        "running" if is_up else "changing" if place.is_changing() else "dead",
        record.spec.name,
        record.spec.seed,
        record.spec.rate_bps,
        tuple(devices),
        plane or {},
    )


def _machine(place: LabFolder, name: str, image: Image, environment: Environment) -> Machine | None:
    try:
        return open_machine(place.machines, name, image, clock=environment.clock)
    except HostError:  # not made yet, or removed
        return None


def _told(path: Path) -> Mapping[str, Any] | None:
    try:
        told: Mapping[str, Any] = ask(path / "control", "status", timeout_s=_STATUS_S)
    except HostError:
        return None
    return told


@contextmanager
def running_lab(spec: LabSpec, folder: Path, *, environment: Environment, is_fresh: bool = False) -> Iterator[Site]:
    """Yields a running lab, and takes it down afterwards, whatever became of it meanwhile.

    Args:
        spec: as `design_lab` made it.
        folder: of the lab; short, since sockets lie in it.
        environment: clock and observer.
        is_fresh: boot each machine, whatever warm state there is.
    """
    site = lab_up(spec, environment, folder=folder, is_fresh=is_fresh)  # one that does not come up clears itself away
    try:
        yield site
    finally:
        lab_down(folder)


def _refuse_second(path: Path) -> None:
    if LabFolder(path).is_running():
        raise HostError(
            "a lab runs here already",
            where=str(path),
            remedy="Stop it: fabricctl lab down. For a second one, name another folder: FABRICCTL_LAB=DIR.",
        )


def _tools(environment: Environment) -> Tools:
    cache = cache_folder(os.environ)
    image = build_image(cache, clock=environment.clock, observer=environment.observer)
    if gone := prune_images(cache, image, clock=environment.clock):
        environment.observer(Event("lab.image.prune.done", message=f"images that nobody used: {', '.join(gone)}"))
    return Tools(image, pick_accelerator(image), cache, _COMMAND, environment.clock, environment.observer)


def _tools_of(record: Record, environment: Environment) -> Tools:
    """Returns what a lab was made with: by now, another version may be installed here."""
    cache = cache_folder(os.environ)
    image = Image(record.image, cache / record.image)
    return Tools(image, record.accelerator, cache, _COMMAND, environment.clock, environment.observer)
