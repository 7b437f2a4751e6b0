"""What happens to frames on the cable before the switch sees them. No counter of the switch knows of it.

A rule strikes frames as they arrive: lost, held back, swapped with the next, doubled, or changed so that every
checksum is still right (an end-to-end digest alone can find it). A cable may also be cut. Only this object counts what
it did. Knows no queue.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fabric.lab.wire.frame import parse
from fabric.lab.wire.roce import PacketKind, payload_span, with_new_icrc

__all__ = ("FaultRule", "WireFault", "WireFaults", "corrupted")

_REORDER_HOLD_NS: Final = 1_000_000  # a frame that is to be overtaken waits no longer than this


class WireFault(StrEnum):
    """What a rule does to a frame."""

    DROP = "drop"
    DELAY = "delay"
    REORDER = "reorder"
    CORRUPT = "corrupt"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One fault.

    Attributes:
        port: where the frame arrives, "" for any port.
        packet: which frames count.
        nth: strikes the n-th that counts, 1 the first.
        every: and each n-th after it.
        delay_ns: for DELAY; for REORDER the longest wait for a frame that overtakes.
    """

    kind: WireFault
    port: str = ""
    packet: PacketKind = PacketKind.ANY
    nth: int = 1
    every: bool = False
    delay_ns: int = 0


class _Armed:
    __slots__ = ("rule", "seen", "struck")

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.seen = self.struck = 0

    def strikes(self, port: str, frame: bytes) -> bool:
        rule = self.rule
        if (rule.port and rule.port != port) or not rule.packet.matches(frame):
            return False
        self.seen += 1
        hit = self.seen % rule.nth == 0 if rule.every else self.seen == rule.nth
        self.struck += hit
        return hit


class WireFaults:
    """The faults of one switch's cables."""

    def __init__(self, rules: Sequence[FaultRule] = ()) -> None:
        self._armed: dict[int, _Armed] = {}
        self._numbers = itertools.count(1)
        self._swapped: dict[str, list[bytes]] = {}
        self._down: set[str] = set()
        self._cut: Counter[tuple[str, PacketKind]] = Counter()
        self.lost_frames = 0
        for rule in rules:
            self.add(rule)

    def add(self, rule: FaultRule) -> int:
        """Arms one more rule and returns the number by which it can be removed."""
        number = next(self._numbers)
        self._armed[number] = _Armed(rule)
        return number

    def remove(self, number: int) -> None:
        """Disarms a rule; frames held back still come."""
        del self._armed[number]

    def clear(self) -> None:
        """Disarms all rules and takes all ports up; frames held back still come."""
        self._armed.clear()
        self._down.clear()

    def set_down(self, port: str, *, down: bool) -> None:
        """Cuts or mends the cable of a port, both directions."""
        (self._down.add if down else self._down.discard)(port)

    def is_down(self, port: str) -> bool:
        """Returns whether the cable is cut."""
        return port in self._down

    def cut(self, port: str, frame: bytes) -> None:
        """Counts a frame that the cut cable of a port did not carry."""
        self.lost_frames += 1
        self._cut.update((port, kind) for kind in PacketKind if kind.matches(frame))

    def cut_frames(self, port: str, packet: PacketKind = PacketKind.ANY) -> int:
        """Returns how many frames of a kind the cable of a port did not carry while it was cut."""
        return self._cut[port, packet]

    def struck(self) -> dict[int, tuple[FaultRule, int]]:
        """Returns by number each rule with how often it struck."""
        return {number: (one.rule, one.struck) for number, one in self._armed.items()}

    @property
    def idle(self) -> bool:
        """Returns whether every frame passes as it is."""
        return not (self._armed or self._down or self._swapped)

    def arriving(self, port: str, frame: bytes) -> tuple[tuple[int, bytes], ...]:
        """Returns (delay in ns, frame) of what comes out of the cable for this frame, in order.

        A swapped frame is first returned by the next frame on the port, or by `overdue`.
        """
        if port in self._down:
            self.cut(port, frame)
            return ()
        delay_ns, copies = 0, 1
        for one in self._armed.values():
            if not one.strikes(port, frame):
                continue
            match one.rule.kind:
                case WireFault.DROP:
                    self.lost_frames += 1
                    return ()
                case WireFault.DELAY:
                    delay_ns += one.rule.delay_ns
                case WireFault.CORRUPT:
                    frame = corrupted(frame)
                case WireFault.DUPLICATE:
                    copies += 1
                case WireFault.REORDER:
                    self._swapped.setdefault(port, []).append(frame)
                    return ()
        return (*((delay_ns, frame),) * copies, *((delay_ns, late) for late in self._swapped.pop(port, ())))

    def hold_ns(self, port: str) -> int | None:
        """Returns how long the frames to be overtaken may wait, None when none wait on the port."""
        if port not in self._swapped:
            return None
        waits = [
            one.rule.delay_ns
            for one in self._armed.values()
            if one.rule.kind is WireFault.REORDER and one.rule.delay_ns
        ]
        return max(waits, default=_REORDER_HOLD_NS)

    def overdue(self, port: str) -> tuple[bytes, ...]:
        """Returns and forgets the frames that nothing overtook."""
        return tuple(self._swapped.pop(port, ()))


def corrupted(frame: bytes) -> bytes:
    """Returns the frame with another payload and every checksum right.

    RoCEv2: the last payload byte is inverted, the invariant CRC made anew (the UDP checksum is 0, RFC 768 "none").
    Other IP: two 16-bit words of the second half that differ change places, which the Internet checksum cannot see
    (RFC 1071 section 2: it is commutative). A frame that has neither comes back as it is.
    """
    span = payload_span(frame)
    if span is not None:
        last = span[1] - 1
        return with_new_icrc(frame[:last] + bytes([frame[last] ^ 0xFF]) + frame[last + 1 :])
    headers = parse(frame)
    if headers is None or headers.ip_version == 0:
        return frame
    end = len(frame) - (len(frame) - headers.l3_at) % 2
    start = headers.l3_at + (end - headers.l3_at) // 4 * 2
    for at in range(end - 4, start - 1, -2):
        one, other = frame[at : at + 2], frame[at + 2 : at + 4]
        if one != other:
            return frame[:at] + other + one + frame[at + 4 :]
    return frame
