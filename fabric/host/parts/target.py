"""The kernel's target: what is published now, and the unit that publishes it at boot. Changes nothing itself.

What others publish beside ours stays. Modules that were loaded stay loaded on the way back.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from fabric.errors import HostError
from fabric.host.actions import Action, RemoveFolder, RemoveLink, Run, Write
from fabric.host.batch import Question, ask, foreseeing
from fabric.host.boot import BootChange, boot_change, setting_lines
from fabric.host.change import HostIntent, Part, PartChange, Thing
from fabric.host.executor import Executor, list_folder, listing
from fabric.host.nvme.target import (
    ROOT,
    identified,
    numbered,
    read_target,
    removal_actions,
    return_actions,
    standing_part,
    target_actions,
    target_questions,
)
from fabric.host.units import TARGET_ACTIONS, target_files
from fabric.qos import UNKNOWN
from fabric.state.host import NvmetState

__all__ = ("design_target",)

_ABSENT: Final = "absent"
_HOSTS: Final = f"{ROOT}/hosts"
_ANY_HOST: Final = "attr_allow_any_host"
_PUBLISHED: Final = re.compile(rf'"path": "{re.escape(ROOT)}/subsystems/([^"/]+)"')


def design_target(intent: HostIntent, executor: Executor) -> PartChange:
    """Returns what publishes the intent's subsystems; an empty change where it has none.

    Raises:
        HostError: a namespace's device is not there, the target cannot be read, or the host cannot be reached.
    """
    if intent.target is None:
        return PartChange(intent.host, Part.TARGET, (), (), "")
    own = (TARGET_ACTIONS, listing(_HOSTS))
    executor = foreseeing(executor, (*_device_questions(intent.target).values(), *target_questions(), *own))
    _check_devices(intent.target, executor)
    found = read_target(executor)
    if found is UNKNOWN:
        raise HostError("the kernel's target cannot be read", where=intent.host, remedy="Read it as root: set become.")
    gone = _gone(intent.target, found, executor)
    rest = _without(gone, found)
    # the number of a port that goes is not given again: the way back needs it
    wanted = identified(numbered(intent.target, found), found)
    boot = boot_change(target_files(target_actions(wanted), removal_actions(wanted)), executor)
    now = (*removal_actions(gone, found), *target_actions(wanted, rest))
    start = (Run(("systemctl", "start", *boot.stopped)),) if boot.stopped else ()
    forward = (*now, *boot.forward, *start)
    things = tuple(_things(wanted, _joined(standing_part(wanted, found), gone)))
    return PartChange(
        intent.host,
        Part.TARGET,
        forward,
        _backward(found, wanted, gone, boot, executor) if forward else (),
        "\n".join((*_lines(things), *boot.diff)),
        disruptive=tuple(_disruptive(now, found)),
        things=(*things, *boot.things),
    )


def _device_questions(target: NvmetState) -> dict[str, Question]:
    devices = sorted({device for one in target.subsystems for _, device, _ in one.namespaces})
    return {device: ("test", "-e", device) for device in devices}


def _check_devices(target: NvmetState, executor: Executor) -> None:
    asked = _device_questions(target)
    missing = [one for one, done in zip(asked, ask(executor, tuple(asked.values())), strict=True) if not done.ok]
    if missing:
        remedy = "Make the device, or name another in the inventory; nothing was changed."
        raise HostError("a namespace has no device on this target", found=", ".join(missing), remedy=remedy)


def _gone(wanted: NvmetState, found: NvmetState, executor: Executor) -> NvmetState:
    """Returns what stands of the subsystems that our boot file publishes and the intent has no more."""
    text = executor.read(TARGET_ACTIONS)
    planned = {one.nqn for one in wanted.subsystems}
    stale = set(_PUBLISHED.findall(text or "")) - planned
    ports = (
        replace(port, subsystems=tuple(nqn for nqn in port.subsystems if nqn in stale))
        for port in found.ports
        if stale & set(port.subsystems)
    )
    return NvmetState(tuple(one for one in found.subsystems if one.nqn in stale), tuple(ports))


def _without(gone: NvmetState, found: NvmetState) -> NvmetState:
    """Returns what stands when these subsystems are gone, and their ports where no other is on them."""
    names = {one.nqn for one in gone.subsystems}
    taken = {port.number for port in gone.ports}
    rest = (replace(port, subsystems=tuple(one for one in port.subsystems if one not in names)) for port in found.ports)
    ports = tuple(port for port in rest if port.subsystems or port.number not in taken)
    return NvmetState(tuple(one for one in found.subsystems if one.nqn not in names), ports)


def _joined(one: NvmetState, other: NvmetState) -> NvmetState:
    ports = {port.number: port for port in one.ports}
    for port in other.ports:
        own = ports.get(port.number, replace(port, subsystems=()))
        ports[port.number] = replace(own, subsystems=(*own.subsystems, *port.subsystems))
    return NvmetState((*one.subsystems, *other.subsystems), tuple(ports.values()))


def _backward(
    before: NvmetState, wanted: NvmetState, gone: NvmetState, boot: BootChange, executor: Executor
) -> tuple[Action, ...]:
    hosts = list_folder(executor, _HOSTS) or ()
    nqns = [one.nqn for one in gone.subsystems]
    # the unit that stops takes all of ours away, what stood before too, so that the return comes after it
    return (*boot.before_back, *return_actions(before, wanted, hosts=hosts, gone=nqns), *boot.after_back)


def _disruptive(now: Sequence[Action], found: NvmetState) -> Iterable[str]:
    """What a host that is connected would feel: only what stands can be taken away."""
    standing = {f"{ROOT}/subsystems/{one.nqn}/" for one in found.subsystems}
    open_to_all = {f"{ROOT}/subsystems/{one.nqn}/" for one in found.subsystems if one.any_host is True}
    for action in now:
        match action:
            case RemoveLink(path) if path.startswith(f"{ROOT}/ports/"):
                yield f"{path.rpartition('/')[2]}: no longer published on port {path.split('/')[-3]}"
            case RemoveLink(path) if "/allowed_hosts/" in path:
                nqn, host = path.removeprefix(f"{ROOT}/subsystems/").split("/allowed_hosts/")
                yield f"{nqn}: {host} is no longer admitted"
            case Write(path, "0") if path.endswith(_ANY_HOST) and path.removesuffix(_ANY_HOST) in open_to_all:
                nqn = path.removeprefix(f"{ROOT}/subsystems/").removesuffix(f"/{_ANY_HOST}")
                yield f"{nqn}: hosts that are not listed are no longer admitted"
            case RemoveFolder(path) if "/namespaces/" in path:
                yield f"{path.removeprefix(f'{ROOT}/subsystems/')}: the namespace goes"
            case Write(path, "0") if path.endswith("/enable") and any(path.startswith(one) for one in standing):
                yield f"{path.removeprefix(f'{ROOT}/subsystems/').removesuffix('/enable')}: the namespace stops"


def _things(wanted: NvmetState, found: NvmetState) -> Iterable[Thing]:
    """Subsystems and ports before and after."""
    before, after = dict(_rows(found)), dict(_rows(wanted))
    for what in dict.fromkeys((*before, *after)):
        if before.get(what) != after.get(what):
            yield Thing(what, before.get(what, _ABSENT), after.get(what, _ABSENT))


def _lines(things: Iterable[Thing]) -> Iterable[str]:
    for one in things:
        yield from setting_lines(one.what, one.before, one.after)


def _rows(state: NvmetState) -> Iterable[tuple[str, str]]:
    for one in state.subsystems:
        hosts = "any host" if one.any_host is True else ", ".join(one.allowed_hosts) or "no host"
        spaces = ", ".join(f"{nsid}={device}{'' if on else ' (off)'}" for nsid, device, on in one.namespaces)
        yield f"subsystem {one.nqn}", f"{hosts}; {spaces or 'no namespace'}"
    for port in state.ports:
        sorted_port = replace(port, subsystems=tuple(sorted(port.subsystems)))
        place = f"port {port.transport} {port.traddr} {port.trsvcid}"
        yield place, ", ".join(sorted_port.subsystems) or "nothing"
