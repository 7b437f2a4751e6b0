"""How much of the fabric was observed: what could not be seen, and the grade that leaves. Silence is no evidence.

A packet lost from x to y shows at y (a gap), at x (a NAK or a timer) and in the books of packets. With all three for
every pair, every switch and the payload checked the grade is A; with one alone for some pair it is C.
"""

from collections.abc import Iterator
from typing import Final

from fabric.qos import UNKNOWN
from fabric.verify.events import Event
from fabric.verify.facts import Facts
from fabric.verify.meanings import IN_SEEN, OUT_SEEN
from fabric.verify.model import Grade
from fabric.verify.scene import Scene

__all__ = ("blind_pairs", "grade", "unobservable")

_ENDS: Final = (
    (Event.GAP_SEEN, "gaps seen"),
    (Event.GAP_NAKED, "sequence NAKs received"),
    (Event.ACK_TIMEOUT, "acknowledgement timeouts"),
    (Event.DUPLICATE, "duplicate requests"),
)
_SWITCH: Final = (
    (Event.QUEUE_SENT, "packets by queue"),
    (Event.QUEUE_DROP, "drops at the queue"),
    (Event.GROUP_DROP, "drops at the priority group"),
    (Event.PAUSE_SENT, "pauses sent by priority"),
    (Event.MARKED, "marks"),
)


def unobservable(scene: Scene) -> tuple[str, ...]:
    """Returns what could not be seen, by device; () when everything was."""
    return tuple(dict.fromkeys(_gaps(scene)))


def grade(scene: Scene) -> Grade:
    """Returns how much was observed."""
    seen = [_observers(scene, *pair) for pair in _pairs(scene.facts)]
    if not seen or min(seen) <= 1:
        return Grade.C
    return Grade.B if unobservable(scene) else Grade.A


def blind_pairs(scene: Scene) -> tuple[tuple[str, str], ...]:
    """Returns (sender, receiver) between which nobody would have seen a loss."""
    return tuple(pair for pair in _pairs(scene.facts) if _observers(scene, *pair) == 0)


def _pairs(facts: Facts) -> list[tuple[str, str]]:
    one_way = {(path.host, path.target) for path in facts.evidence.links}
    return sorted(one_way | {(target, host) for host, target in one_way})


def _observers(scene: Scene, sender: str, receiver: str) -> int:
    facts = scene.facts
    at_sender = any(facts.count(sender, one) is not UNKNOWN for one in OUT_SEEN)
    at_receiver = any(facts.count(receiver, one) is not UNKNOWN for one in IN_SEEN)
    return at_sender + at_receiver + scene.is_whole_known


def _gaps(scene: Scene) -> Iterator[str]:
    facts = scene.facts
    for source, why in facts.differences.unobservable:
        yield f"{source}: {why}"
    for device in dict.fromkeys(end.device for end in facts.ends):
        missing = [text for event, text in _ENDS if facts.count(device, event) is UNKNOWN]
        if device in facts.evidence.unmanaged:
            yield f"{device} is not managed: what its NIC alone would count (retries of its own last packets) is unseen"
        elif missing:
            yield f"{device} does not count {', '.join(missing)}"
    for switch in facts.switches:
        missing = [text for event, text in _SWITCH if facts.count(switch, event) is UNKNOWN]
        if missing:
            yield f"{switch} does not count {', '.join(missing)}"
    for book in scene.whole:
        if not book.is_exact:
            yield f"the books of class {book.traffic_class}: {book.why}"
    streams = [one for job in facts.evidence.jobs for one in job.streams]
    if not streams or not all(one.checked for one in streams):
        yield "payload was not compared on every stream"
