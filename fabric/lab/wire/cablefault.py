"""Faults of a running wiring as data, and the list of those in force.

JSON by `fabric.serial` both ways, so that a control socket can carry them. Knows no socket and no clock.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fabric.errors import FabricError
from fabric.lab.wire.actions import Action
from fabric.lab.wire.core import SwitchCore
from fabric.lab.wire.faults import FaultRule, WireFault
from fabric.lab.wire.guest import Endpoint
from fabric.lab.wire.roce import PacketKind
from fabric.qos import PRIORITY_COUNT
from fabric.serial import Json, SerialError, from_json

__all__ = ("ActiveFault", "CableFault", "CableFaultKind", "CableFaults", "cable_fault_from_json")

_MS: Final = 1_000_000


class CableFaultKind(StrEnum):
    """What is wrong with the cable."""

    DROP = "drop"
    DELAY = "delay"
    REORDER = "reorder"
    CORRUPT = "corrupt"  # every checksum stays right
    DUPLICATE = "duplicate"
    DOWN = "down"  # cut, both directions
    STORM = "storm"  # its far end pauses one priority


@dataclass(frozen=True, slots=True)
class CableFault:
    """One fault of one switch port's cable. No counter that a device shows knows of it, but of its effects.

    Attributes:
        port: where frames are struck as they arrive at the switch.
        packet: which frames count; `down` takes all, and counts these.
        nth: strikes the n-th of them, 1 the first. every: and each n-th after it.
        delay_ms: of `delay`; of `reorder` the longest wait for a frame that overtakes, 0 for 1 ms.
        priority: PFC priority of `storm`.
        duration_ms: of `storm`.
    """

    kind: CableFaultKind
    switch: str
    port: str
    packet: PacketKind = PacketKind.ANY
    nth: int = 1
    every: bool = False
    delay_ms: int = 0
    priority: int = 3
    duration_ms: int = 0

    def flaw(self) -> str:
        """Returns why this can be no fault, "" when it can."""
        if self.nth < 1:
            return "nth counts from 1"
        if self.delay_ms < 0 or (self.kind is CableFaultKind.DELAY and self.delay_ms == 0):
            return "delay_ms is above 0 for a delay and never below"
        if self.kind is CableFaultKind.STORM and (self.duration_ms < 1 or not 0 <= self.priority < PRIORITY_COUNT):
            return "a storm has a priority 0..7 and lasts 1 ms or longer"
        return ""

    def rule(self) -> FaultRule | None:
        """Returns what strikes frames; None for what is no matter of single frames."""
        if self.kind in {CableFaultKind.DOWN, CableFaultKind.STORM}:
            return None
        return FaultRule(
            WireFault(self.kind.value),
            port=self.port,
            packet=self.packet,
            nth=self.nth,
            every=self.every,
            delay_ns=self.delay_ms * _MS,
        )


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """A fault that was added and not removed.

    Attributes:
        number: by which it is removed.
        struck: frames that it struck; of `down` those that the cable did not carry, also into the other switch where
            it is between two; 0 for `storm`, which strikes no frames.
        is_over: whether it is a storm that has ended.
    """

    number: int
    fault: CableFault
    struck: int = 0
    is_over: bool = False


class CableFaults:
    """The faults in force at the cables of some switches.

    Args:
        cores: by name.
        cables: between them: a cut one is cut for both.
    """

    def __init__(self, cores: Mapping[str, SwitchCore], cables: Sequence[tuple[Endpoint, Endpoint]] = ()) -> None:
        self._cores = cores
        self._far = {one: other for ends in cables for one, other in (ends, ends[::-1])}
        self._faults: dict[int, tuple[CableFault, int]] = {}  # with the number of its rule at the core, 0 for none
        self._storms: dict[int, int] = {}  # when each ends, ns
        self._cut: dict[int, int] = {}  # frames that a cable had not carried before it was cut
        self._numbers = itertools.count(1)

    def add(self, fault: CableFault, now_ns: int) -> tuple[int, Sequence[Action]]:
        """Returns the number by which the fault can be removed, and what the switch does at once.

        Raises:
            FabricError: there is no such port, or the fault cannot be.
        """
        where = f"{fault.switch}/{fault.port}"
        core = self._cores.get(fault.switch)
        if core is None or fault.port not in core.ports:
            raise FabricError("the wiring has no such port", where=where)
        flaw = fault.flaw()
        if flaw:
            raise FabricError("the fault cannot be", found=flaw, where=where)
        rule, number = fault.rule(), next(self._numbers)
        at, actions = 0, list[Action]()
        if rule is not None:
            at = core.faults.add(rule)
        elif fault.kind is CableFaultKind.DOWN:
            self._cut[number] = self._cut_frames(fault)
            self._set_down(fault, down=True)
        else:
            self._storms[number] = now_ns + fault.duration_ms * _MS
        self._faults[number] = (fault, at)
        if number in self._storms:
            actions = self._blow(fault, now_ns)
        return number, actions

    def remove(self, number: int, now_ns: int) -> tuple[CableFault, Sequence[Action]]:
        """Returns the fault that is no more, and what the switch does at once.

        Raises:
            FabricError: there is no such fault.
        """
        if number not in self._faults:
            raise FabricError("there is no such fault", found=str(number))
        fault, at = self._faults.pop(number)
        core = self._cores[fault.switch]
        if at:
            core.faults.remove(at)
        elif fault.kind is CableFaultKind.DOWN:
            del self._cut[number]
            self._set_down(fault, down=self._is_cut(fault))
        else:
            del self._storms[number]
            return fault, self._blow(fault, now_ns)
        return fault, ()

    def _blow(self, fault: CableFault, now_ns: int) -> list[Action]:
        """Lets the storms of one place last as long as the longest of them."""
        place = _place_of(fault)
        ends = [end_ns for number, end_ns in self._storms.items() if _place_of(self._faults[number][0]) == place]
        until_ns = max(ends, default=now_ns)
        return self._cores[fault.switch].storm(fault.port, fault.priority, until_ns=until_ns, now_ns=now_ns)

    def active(self, now_ns: int) -> tuple[ActiveFault, ...]:
        """Returns the faults in the order they were added."""
        return tuple(
            ActiveFault(
                number, fault, self._struck(number, fault, at), is_over=self._storms.get(number, now_ns + 1) <= now_ns
            )
            for number, (fault, at) in self._faults.items()
        )

    def _struck(self, number: int, fault: CableFault, at: int) -> int:
        if number in self._cut:
            return self._cut_frames(fault) - self._cut[number]
        return self._cores[fault.switch].faults.struck()[at][1] if at else 0

    def _cut_frames(self, fault: CableFault) -> int:
        return sum(self._cores[switch].faults.cut_frames(port, fault.packet) for switch, port in self._ends(fault))

    def _ends(self, fault: CableFault) -> tuple[Endpoint, ...]:
        near = (fault.switch, fault.port)
        return (near, self._far[near]) if near in self._far else (near,)

    def _set_down(self, fault: CableFault, *, down: bool) -> None:
        for switch, port in self._ends(fault):
            self._cores[switch].faults.set_down(port, down=down)

    def _is_cut(self, fault: CableFault) -> bool:
        cut = {(one.switch, one.port) for one, _ in self._faults.values() if one.kind is CableFaultKind.DOWN}
        return not cut.isdisjoint(self._ends(fault))


def _place_of(fault: CableFault) -> tuple[str, str, int]:
    return fault.switch, fault.port, fault.priority


def cable_fault_from_json(data: Json) -> CableFault:
    """Returns the fault of a JSON object with the attribute names of `CableFault`.

    Raises:
        FabricError: it is no fault.
    """
    try:
        return from_json(CableFault, data)
    except SerialError as error:
        raise FabricError(f"a fault cannot be read: {error}") from error
