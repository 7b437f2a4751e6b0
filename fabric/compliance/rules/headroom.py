"""Headroom theme: what is still on the wire when a pause leaves must find room.

Source: switches.md 4.3 rows 12-14 and 5; sonic-net/SONiC#480, sonic-net/sonic-buildimage#5837.
"""

from collections.abc import Iterator
from typing import Final

from fabric.compliance.closure import carries_lossless, data_group, way
from fabric.compliance.grouping import Judgement, failed, passed, undecided
from fabric.compliance.hints import hint
from fabric.compliance.rule import PortRule, Subject
from fabric.qos import UNKNOWN, Known, PortQos, PriorityGroupQos
from fabric.state import Severity
from fabric.units import format_speed

__all__ = ("HEADROOM_BELOW_COMPUTED", "LOSSLESS_PG_WITHOUT_HEADROOM")


def _link(port: PortQos) -> str:
    speed = "" if port.speed_mbps is UNKNOWN else f" at {format_speed(port.speed_mbps)}"
    cable = "" if port.cable_m is UNKNOWN or port.cable_m is None else f" over {port.cable_m} m"
    return f"{speed}{cable}"


def _without(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    if not carries_lossless(subject, port):
        return
    index = data_group(subject, port)
    priority = subject.expected.data_priority
    if index is UNKNOWN:
        yield undecided(
            way(port.tc_to_pg, priority, name="tc_to_pg"), "read headroom from the device", priority=priority
        )
        return
    group = port.priority_group(index)
    steps = hint(subject.qos.nos, "headroom", group=index)
    sized = f"give priority group {index} headroom for the link{_link(port)}{steps}"
    if group is None or (group.lossless is UNKNOWN and not group.derived_by_nos):
        yield undecided(
            f"the text does not show priority group {index}", "read its headroom from the device", priority=priority
        )
    elif group.lossless is False and group.size_bytes is UNKNOWN:
        yield failed(
            f"PFC pauses priority {priority}, but no headroom was made for priority group {index}{_link(port)}",
            f"priority group {index} lossless with headroom",
            f"{sized}, or correct the cable length: the device makes none for a speed and length that it has no "
            "profile for",
            priority=priority,
        )
    elif group.lossless is False:
        yield failed(
            f"PFC pauses priority {priority}, but priority group {index} has a profile without headroom",
            f"priority group {index} lossless with headroom",
            sized,
            priority=priority,
        )
    elif group.derived_by_nos:
        yield passed(f"priority group {index}: the device computes the headroom")
    elif group.xoff_bytes is UNKNOWN:
        yield undecided(
            f"priority group {index} is lossless, its headroom is not in the text",
            "read its headroom from the device",
            priority=priority,
        )
    elif group.xoff_bytes == 0:
        yield failed(
            f"priority group {index} is lossless with 0 B of headroom",
            f"priority group {index} lossless with headroom",
            sized,
            priority=priority,
        )
    else:
        yield passed(f"priority group {index} has {group.xoff_bytes} B of headroom")


def _below(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    index = data_group(subject, port)
    if index is UNKNOWN or not carries_lossless(subject, port):
        return
    group = port.priority_group(index)
    if group is None or group.lossless is False or group.xoff_bytes == 0:
        return
    planned = subject.planned(port.name)
    if group.derived_by_nos:
        yield from _by_cable(subject, port, planned)
        return
    computed = UNKNOWN if subject.planned_speed(port) is not None else _computed(subject, port, index)
    priority = subject.expected.data_priority
    if group.xoff_bytes is UNKNOWN or computed is UNKNOWN:
        missing = "the headroom in place" if group.xoff_bytes is UNKNOWN else "the headroom that the link needs"
        yield undecided(
            f"{missing} is not known",
            "give ASIC, speed and cable length in the inventory, or read the headroom from the device",
            priority=priority,
        )
    elif group.xoff_bytes < computed:
        yield failed(
            f"priority group {index} has {group.xoff_bytes} B of headroom{_link(port)}",
            f"{computed} B or more",
            f"raise the headroom of priority group {index} to {computed} B"
            + hint(subject.qos.nos, "headroom", group=index),
            priority=priority,
        )
    else:
        yield passed(f"priority group {index} has {group.xoff_bytes} B of headroom, computed {computed} B")


def _by_cable(subject: Subject, port: PortQos, planned: PortQos | None) -> Iterator[Judgement]:
    told: Known[int | None] = port.cable_m
    real: Known[int | None] = UNKNOWN if planned is None else planned.cable_m
    priority = subject.expected.data_priority
    if real is None and _is_too_long(subject, port.name):
        yield undecided(
            "the cable is longer than any that the device can be told of, and the device computes the headroom from it",
            "shorten the link, or size the headroom by other means",
            priority=priority,
        )
    elif real is UNKNOWN or real is None:
        yield undecided(
            "nobody said how long the cable is, and the device computes the headroom from its length",
            "give the cable length in the inventory",
            priority=priority,
        )
    elif told is UNKNOWN or told is None:
        yield undecided(
            "the device sizes the headroom by itself, and shows neither bytes nor a cable length",
            "only a run under load can tell: see that no packet of the class is dropped on ingress",
            priority=priority,
        )
    elif told < real:
        yield failed(
            f"the device computes the headroom for {told} m of cable",
            f"{real} m, the length in the inventory",
            f"tell the device {real} m (CABLE_LENGTH on SONiC)",
            priority=priority,
        )
    else:
        yield passed(f"the device computes the headroom for {told} m of cable, the link has {real} m")


def _is_too_long(subject: Subject, port: str) -> bool:
    notes = () if subject.plan is None else subject.plan.notes
    return any(note.code == "cable-too-long" and port in note.ports for note in notes)


def _computed(subject: Subject, port: PortQos, index: int) -> Known[int]:
    """The plan's number: of its priority group, or of the table behind it where the OS is to compute it."""
    planned = subject.planned(port.name)
    group: PriorityGroupQos | None = None if planned is None else planned.priority_group(index)
    if group is not None and group.xoff_bytes is not UNKNOWN:
        return group.xoff_bytes
    tables = () if subject.plan is None else subject.plan.headroom
    return next((one.headroom.xoff_bytes for one in tables if port.name in one.ports), UNKNOWN)


LOSSLESS_PG_WITHOUT_HEADROOM: Final = PortRule(
    "lossless-pg-without-headroom", "The priority group that PFC protects has headroom.", Severity.ERROR, _without
)
HEADROOM_BELOW_COMPUTED: Final = PortRule(
    "headroom-below-computed", "The headroom is what speed, cable and MTU need.", Severity.WARNING, _below
)
