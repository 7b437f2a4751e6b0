"""Causes that switches show: watchdog, headroom, PFC off, early drops, misclassified packets."""

from collections.abc import Iterator
from typing import Final

from fabric.qos import UNKNOWN, Known
from fabric.verify.events import Event
from fabric.verify.facts import Facts, Reading, add, is_above
from fabric.verify.meanings import LOSS_SEEN
from fabric.verify.model import End, VerdictStatus
from fabric.verify.rules import Hit, LocateRule, status_of
from fabric.verify.scene import Scene

__all__ = ("SWITCH_RULES",)


def _watchdog(scene: Scene) -> Iterator[Hit]:
    """A storm that spreads backwards trips further watchdogs; the one nearest to its origin comes first."""
    facts = scene.facts
    events = (Event.WATCHDOG_STORM, Event.WATCHDOG_DROP)
    moved = [
        one
        for switch in facts.switches
        for one in facts.pick(switch, *events)
        if facts.matters(one) and is_above(one.value)
    ]
    ports = sorted({(one.source.device, one.source.place) for one in moved})
    for switch, port in ports:
        own = [one for one in moved if (one.source.device, one.source.place) == (switch, port)]
        lost = any(one.event is Event.WATCHDOG_DROP for one in own)
        status = VerdictStatus.FAIL if lost else status_of(scene)
        behind = _far(facts, switch, port)
        spread = behind is not None and any(behind.device == other for other, _ in ports)
        why = f"; {behind} paused it, and a watchdog of {behind.device} tripped too" if spread and behind else ""
        yield Hit(switch, (f"{switch}/{port}",), f"{_text(own)}{why}", 70 if spread else 95, status)


def _group_drops(scene: Scene, wanted: str) -> Iterator[Hit]:
    """Drops at the ingress: which of the three causes, by the pauses that went out there and what the peer did."""
    facts = scene.facts
    for one in scene.switch_drops:
        if one.event is not Event.GROUP_DROP:
            continue
        switch, port = one.source.device, one.source.place
        frames = _pauses_sent(facts, switch, port)
        cause, score, why = _ingress_cause(facts, switch, port, frames)
        if cause == wanted:
            evidence = f"{one.value} packets dropped at the priority group, {_said(frames)} sent there{why}"
            yield Hit(switch, (f"{switch}/{port}",), evidence, score)


def _ingress_cause(facts: Facts, switch: str, port: str, frames: Known[int]) -> tuple[str, int, str]:
    if frames == 0:
        return "pfc-off", 92, ""
    if frames is UNKNOWN:
        return "headroom-overflow", 60, "; pauses are not counted"
    peer = _peer(facts, switch, port)
    heard = UNKNOWN if peer is None else _pauses_heard(facts, peer)
    if peer is not None and heard == 0:
        return "pause-ignored", 90, f"; {peer} counts none of them"
    if peer is not None and heard is UNKNOWN and facts.pick(peer.device, Event.CLASS_SENT, place=peer.port):
        return "pause-ignored", 85, f"; {peer} has no counter of pauses, as when PFC is off there"
    return "headroom-overflow", 90, ""


def _pfc_off(scene: Scene) -> Iterator[Hit]:
    yield from _group_drops(scene, "pfc-off")
    facts = scene.facts
    for one in scene.switch_drops:
        if one.event is Event.QUEUE_DROP:
            switch, port = one.source.device, one.source.place
            frames = add(_pauses_sent(facts, switch, other) for other in _ports(facts, switch))
            if frames == 0:
                evidence = f"{one.value} packets dropped at the queue, and the switch sent no pause for the class"
                yield Hit(switch, (f"{switch}/{port}",), evidence, 88)


def _queue_drops(scene: Scene) -> Iterator[Hit]:
    facts = scene.facts
    for one in scene.switch_drops:
        switch, port = one.source.device, one.source.place
        if one.event is Event.QUEUE_DROP:
            frames = add(_pauses_sent(facts, switch, other) for other in _ports(facts, switch))
            if frames != 0:
                evidence = f"{one.value} packets dropped at the queue, {_said(frames)} sent by the switch"
                yield Hit(switch, (f"{switch}/{port}",), evidence, 80)


def _early_drops(scene: Scene) -> Iterator[Hit]:
    for one in scene.switch_drops:
        if one.event is Event.EARLY_DROP:
            switch, port = one.source.device, one.source.place
            yield Hit(switch, (f"{switch}/{port}",), f"{one.value} packets dropped by WRED in the class's queue", 92)


def _misclassified(scene: Scene) -> Iterator[Hit]:
    facts = scene.facts
    for switch in sorted({one for one, _, _ in scene.misplaced}):
        ports = [(port, extra) for one, port, extra in scene.misplaced if one == switch]
        total = sum(extra for _, extra in ports)
        dropped = add(
            one.value
            for one in facts.pick(switch, Event.QUEUE_DROP, Event.EARLY_DROP, Event.GROUP_DROP)
            if not facts.matters(one)
        )
        more = f"; {dropped} packets dropped in other classes" if is_above(dropped) else ""
        names = ", ".join(port for port, _ in ports)
        evidence = f"{total} packets of the class left through another queue at {names}{more}"
        yield Hit(switch, (switch, *(f"{switch}/{port}" for port, _ in ports)), evidence, 97, status_of(scene))


# --- helpers --------------------------------------------------------------------------------------------------------


def _ports(facts: Facts, switch: str) -> list[str]:
    return sorted({one.source.place for one in facts.readings if one.source.device == switch})


def _pauses_sent(facts: Facts, switch: str, port: str) -> Known[int]:
    own = facts.pick(switch, Event.PAUSE_SENT, place=port)
    by_priority = [one.value for one in own if one.meaning.index is not None and facts.matters(one)]
    return add(by_priority) if by_priority else add(one.value for one in own)


def _pauses_heard(facts: Facts, peer: End) -> Known[int]:
    own = facts.pick(peer.device, Event.PAUSE_RECEIVED, place=peer.port)
    return add(one.value for one in own if one.meaning.index is not None and facts.matters(one))


def _peer(facts: Facts, switch: str, port: str) -> End | None:
    """The host or target at the other end of the cable."""
    far = _far(facts, switch, port)
    return far if far in facts.ends else None


def _far(facts: Facts, switch: str, port: str) -> End | None:
    for hop in facts.hops:
        for near, far in ((hop.near, hop.far), (hop.far, hop.near)):
            if (near.device, near.port) == (switch, port):
                return far
    return None


def _said(frames: Known[int]) -> str:
    return "an unknown number of pauses" if frames is UNKNOWN else f"{frames} pauses"


def _text(readings: list[Reading]) -> str:
    return ", ".join(f"{one.name} +{one.value}" for one in readings)


_HOSTS: Final = LOSS_SEEN

SWITCH_RULES: Final = (
    LocateRule(
        "class-in-another-queue",
        "dscp-misclassified",
        _misclassified,
        _HOSTS,
        "map the DSCP of the class to its traffic class on every port of this switch, and let ports trust DSCP",
    ),
    LocateRule(
        "watchdog-acted",
        "watchdog-tripped",
        _watchdog,
        _HOSTS | {Event.WATCHDOG_STORM, Event.WATCHDOG_DROP, Event.STORM, Event.GROUP_DROP, Event.QUEUE_DROP},
        "find who sends pauses without end at this port: a receiver that does not drain, or its NIC",
    ),
    LocateRule(
        "dropped-without-pause",
        "pfc-off",
        _pfc_off,
        _HOSTS | {Event.GROUP_DROP, Event.QUEUE_DROP},
        "switch PFC on for the priority of the class on this port, and give its group headroom",
    ),
    LocateRule(
        "dropped-in-spite-of-pauses",
        "headroom-overflow",
        lambda scene: _group_drops(scene, "headroom-overflow"),
        _HOSTS | {Event.GROUP_DROP},
        "raise the headroom: cable length, speed and MTU of this port against its profile",
    ),
    LocateRule(
        "paused-peer-went-on",
        "pause-ignored",
        lambda scene: _group_drops(scene, "pause-ignored"),
        _HOSTS | {Event.GROUP_DROP},
        "switch PFC on for the priority of the class at the other end of this cable",
    ),
    LocateRule(
        "dropped-early",
        "wred-drops",
        _early_drops,
        _HOSTS | {Event.EARLY_DROP},
        "let the curve of this queue mark, and see that hosts send ECN-capable packets",
    ),
    LocateRule(
        "dropped-at-the-queue",
        "queue-overflow",
        _queue_drops,
        _HOSTS | {Event.QUEUE_DROP},
        "give the queue of the class a lossless profile: no threshold at the egress may drop it",
    ),
)
