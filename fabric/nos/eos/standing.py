"""What stands on the device already: what a plan keeps of it, and which lines of a port say just what is wanted.

A port that does what the plan says by a profile of somebody else's, or by lines of its own, is left as it is: to bind
it to a profile of ours would change nothing but names. Judged in four parts, since EOS says them in different lines.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fabric.errors import UnsupportedFeatureError
from fabric.nos.base import RenderContext
from fabric.nos.eos.observed import observed
from fabric.nos.eos.sections import EMPTY_SECTION, Sections
from fabric.qos import (
    ALL_ASPECTS,
    UNKNOWN,
    Aspect,
    DeviceQos,
    PortQos,
    QueueQos,
)
from fabric.qos.keeping import by_port, kept_by_all, merged
from fabric.tree import Path, Tree, Value

__all__ = ("OWN_PREFIX", "PART_KEYS", "Part", "Standing", "described", "standing")

OWN_PREFIX: Final = "FABRICCTL-"


class Part(StrEnum):
    """Lines of an interface that stand or go together."""

    MTU = "mtu"
    DCBX = "dcbx"
    PAUSE = "pause"  # 802.3x
    QOS = "qos"  # the profile, and what an interface may say of its own over it


PART_KEYS: Final[Mapping[Part, str]] = {
    Part.MTU: "(?:l2 )?mtu",
    Part.DCBX: "dcbx mode",
    Part.PAUSE: "flowcontrol (?:receive|send)",
    Part.QOS: "service-profile|service-policy type qos input|qos trust|priority-flow-control.*",
}
"""Part → pattern of its keys; the queues of an interface are of `Part.QOS` too."""
_QUEUE: Final = re.compile(r"(?:uc-)?tx-queue \d")


@dataclass(frozen=True, slots=True)
class Standing:
    """What stays as it is written.

    Attributes:
        parts: part → ports and port channels whose lines of it stay.
        lines: those lines, with those of the profiles of ours among them.
        profiles: those profiles.
        has_maps, has_pfc_off: the device's maps, and its switch of all PFC, stay too.
    """

    parts: Mapping[Part, frozenset[str]]
    lines: Mapping[Path, Value]
    profiles: frozenset[str] = frozenset()
    has_maps: bool = False
    has_pfc_off: bool = False

    def stays(self, part: Part, name: str) -> bool:
        """Returns whether the lines of a port or port channel stay."""
        return name in self.parts[part]


def described(qos: DeviceQos, context: RenderContext, seen: DeviceQos) -> DeviceQos:
    """Returns what of the plan is to be rendered: without ports that stay altogether, what stays taken from `seen`."""
    aspects = by_port(context.kept)
    ports = tuple(port for port in qos.ports if aspects.get(port.name) != ALL_ASPECTS)
    left = merged(replace(qos, ports=ports), context.kept, seen)
    now = {port.name: port for port in seen.ports}
    filled = (
        _filled(port, now.get(port.name, PortQos(port.name)), aspects.get(port.name, frozenset()))
        for port in left.ports
    )
    return replace(left, ports=tuple(filled))


def standing(whole: DeviceQos, qos: DeviceQos, context: RenderContext, found: Sections, seen: DeviceQos) -> Standing:
    """Returns what stays as it is written.

    Args:
        whole: the plan.
        qos: what of it is to be rendered.
        context: the device.
        found: its lines.
        seen: what they do.
    """
    aspects = by_port(context.kept)
    now = {port.name: port for port in seen.ports}
    then = {port.name: port for port in observed(qos, context, seen).ports}
    parts: dict[Part, frozenset[str]] = {}
    for part in Part:
        stay = {
            port.name
            for port in qos.ports
            if port.name in now
            and _stays(part, then[port.name], now[port.name], aspects.get(port.name, frozenset()), found)
        }
        parts[part] = _with_channels(stay, qos, found)
    for port in qos.ports:
        _require(port, aspects.get(port.name, frozenset()), parts)
    names = {name for stay in parts.values() for name in stay}
    return Standing(
        parts=parts,
        lines=dict(_lines(context.running, parts, names, _own_profiles(parts[Part.QOS], found))),
        profiles=_own_profiles(parts[Part.QOS], found),
        has_maps=kept_by_all(whole, context.kept, Aspect.MAPS),
        has_pfc_off=kept_by_all(whole, context.kept, Aspect.PFC),
    )


def _filled(port: PortQos, seen: PortQos, kept: frozenset[Aspect]) -> PortQos:
    """Returns the port with what stays taken from the device; its maps are the device's own affair."""
    if Aspect.MTU in kept:
        port = replace(port, mtu_bytes=seen.mtu_bytes)
    if Aspect.MAPS in kept:
        port = replace(port, trust=seen.trust, dscp_to_tc=UNKNOWN, tc_to_queue=UNKNOWN, rewrite=UNKNOWN)
    if Aspect.PFC in kept:
        port = replace(port, pfc=seen.pfc, link_pause=seen.link_pause)
    if Aspect.WATCHDOG in kept:
        port = replace(port, watchdog=seen.watchdog)
    if Aspect.DCBX in kept:
        port = replace(port, dcbx=seen.dcbx)
    if kept & {Aspect.SCHEDULERS, Aspect.ECN}:
        queues = (_queue(queue, seen.queue(queue.index), kept) for queue in _all_queues(port, seen))
        port = replace(port, queues=tuple(queues))
    return port


def _all_queues(port: PortQos, seen: PortQos) -> Iterable[QueueQos]:
    named = {queue.index: QueueQos(queue.index) for queue in seen.queues}
    named |= {queue.index: queue for queue in port.queues}
    return (named[index] for index in sorted(named))


def _queue(queue: QueueQos, seen: QueueQos | None, kept: frozenset[Aspect]) -> QueueQos:
    now = QueueQos(queue.index) if seen is None else seen
    if Aspect.SCHEDULERS in kept:
        queue = replace(queue, scheduler=now.scheduler)
    return replace(queue, aqm=now.aqm) if Aspect.ECN in kept else queue


def _stays(part: Part, wanted: PortQos, seen: PortQos, kept: frozenset[Aspect], found: Sections) -> bool:
    if wanted.name not in found.interfaces:
        return False
    match part:
        case Part.MTU:
            return Aspect.MTU in kept or wanted.mtu_bytes == seen.mtu_bytes
        case Part.DCBX:
            # a port channel may have a line of its own, which the member advertises by
            told = (wanted.dcbx, wanted.pfc.send_tlv) == (seen.dcbx, seen.pfc.send_tlv)
            return Aspect.DCBX in kept or told
        case Part.PAUSE:
            return Aspect.PFC in kept or wanted.link_pause == seen.link_pause
        case Part.QOS:
            return _does_the_same(wanted, seen, kept)


def _own_profiles(names: Iterable[str], found: Sections) -> frozenset[str]:
    """Returns the profiles of ours that these ports and port channels are bound to."""
    bound = {found.interfaces.get(name, EMPTY_SECTION).text("service-profile") or "" for name in names}
    return frozenset(one for one in bound if one.startswith(OWN_PREFIX))


def _does_the_same(wanted: PortQos, seen: PortQos, kept: frozenset[Aspect]) -> bool:
    """Returns whether the lines of a port, its profile's among them, do what is wanted; DCBX has lines of its own."""
    is_policed = UNKNOWN in {seen.dscp_to_tc, seen.pcp_to_tc}  # a policy map classifies, and nobody reads it
    same_pfc = replace(wanted.pfc, send_tlv=UNKNOWN) == replace(seen.pfc, send_tlv=UNKNOWN)
    return (
        (Aspect.MAPS in kept or (wanted.trust == seen.trust and not is_policed))
        and (Aspect.PFC in kept or same_pfc)
        and (Aspect.WATCHDOG in kept or wanted.watchdog == seen.watchdog)
        and (Aspect.ECN in kept or [q.aqm for q in wanted.queues] == [q.aqm for q in seen.queues])
        and (Aspect.SCHEDULERS in kept or [q.scheduler for q in wanted.queues] == [q.scheduler for q in seen.queues])
    )


def _with_channels(stay: set[str], qos: DeviceQos, found: Sections) -> frozenset[str]:
    """Returns the ports that stay, with the port channels all of whose ports do; others' members fall out."""
    members: dict[str, set[str]] = {}
    for port in qos.ports:
        channel = found.channel_of(port.name)
        if channel is not None:
            members.setdefault(channel, set()).add(port.name)
    broken = {name for names in members.values() if not names <= stay for name in names}
    whole = {channel for channel, names in members.items() if names <= stay}
    return frozenset((stay - broken) | whole)


def _require(port: PortQos, kept: frozenset[Aspect], parts: Mapping[Part, frozenset[str]]) -> None:
    """Refuses to write what stays anew where nobody could read it."""
    if port.name in parts[Part.QOS]:
        return
    unread = [
        aspect
        for aspect, is_unread in (
            (Aspect.MAPS, port.trust is UNKNOWN),
            (Aspect.PFC, port.pfc.mode is UNKNOWN or port.pfc.priorities is UNKNOWN),
            (Aspect.WATCHDOG, port.watchdog is UNKNOWN),
            (Aspect.SCHEDULERS, any(queue.scheduler is UNKNOWN for queue in port.queues)),
            (Aspect.ECN, any(queue.aqm is UNKNOWN for queue in port.queues)),
        )
        if aspect in kept and is_unread
    ]
    if unread:
        raise UnsupportedFeatureError(
            "a part that stays cannot be read from the running configuration, so that the port cannot move to a "
            "profile of ours",
            where=port.name,
            found=", ".join(unread),
            remedy="Let these parts go from fabric_keep, or keep all of them.",
        )


def _lines(
    running: Tree, parts: Mapping[Part, frozenset[str]], names: Iterable[str], profiles: Iterable[str]
) -> Iterable[tuple[Path, Value]]:
    heads, whole = {f"interface {name}": name for name in names}, {f"qos profile {name}" for name in profiles}
    keys = {part: re.compile(pattern) for part, pattern in PART_KEYS.items()}
    for path, value in running.items():
        if path[0] in whole:
            yield path, value
        name = heads.get(path[0])
        if name is None or len(path) < 2:
            continue
        is_queue = _QUEUE.fullmatch(path[1]) is not None
        part = (
            Part.QOS if is_queue else next((one for one, pattern in keys.items() if pattern.fullmatch(path[1])), None)
        )
        if part is not None and name in parts[part]:
            yield path, value
