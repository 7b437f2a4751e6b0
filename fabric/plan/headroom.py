"""The lossless priority group of each port: its headroom, from the closed forms, and who sizes it on this OS."""

from collections.abc import Sequence
from dataclasses import dataclass

from fabric.intent.model import RocePolicy, Switch
from fabric.plan.ledger import Ledger
from fabric.plan.mapping import Classes
from fabric.plan.model import PortHeadroom
from fabric.qos import UNKNOWN, Capabilities, HeadroomOwner, PriorityGroupQos
from fabric.qos.headroom import Headroom, HeadroomQuery, lossless_headroom
from fabric.units import natural_key

__all__ = ("Cable", "headroom_of", "note_cable", "note_headroom", "plan_cable", "plan_groups")


@dataclass(frozen=True, slots=True)
class Cable:
    """What the device is told of a cable.

    Attributes:
        told_m: length to configure, None when nobody said or the network OS has none as long.
        real_m: length in the intent.
    """

    told_m: int | None
    real_m: int | None


def plan_cable(real_m: int | None, capabilities: Capabilities) -> Cable:
    """Returns the length to configure: the intent's, or the next longer one that the network OS takes."""
    allowed = capabilities.cable_lengths_m.value
    if real_m is None or not allowed:
        return Cable(real_m, real_m)
    return Cable(min((length for length in allowed if length >= real_m), default=None), real_m)


def headroom_of(switch: Switch, *, speed_mbps: int, cable: Cable, mtu_bytes: int, lanes: int | None) -> Headroom:
    """Returns the headroom of one lossless group of such a port."""
    return lossless_headroom(
        HeadroomQuery(
            asic=switch.asic,
            hwsku=switch.hwsku,
            speed_mbps=speed_mbps,
            cable_m=cable.real_m if cable.told_m is None else cable.told_m,
            mtu_bytes=mtu_bytes,
            lanes=lanes,
            small_packet_percent=switch.policy.small_packet_percent,
        )
    )


def plan_groups(
    policy: RocePolicy, capabilities: Capabilities, classes: Classes, headroom: Headroom
) -> tuple[PriorityGroupQos, ...]:
    """Returns the priority groups of one port: the lossless one, and the one of everything else."""
    alpha = UNKNOWN if policy.alpha_log2 is None else policy.alpha_log2
    if capabilities.headroom_owner.value is HeadroomOwner.CONFIG:
        lossless = PriorityGroupQos(
            index=classes.data,
            lossless=True,
            xoff_bytes=headroom.xoff_bytes,
            xon_bytes=headroom.xon_bytes,
            xon_offset_bytes=headroom.xon_offset_bytes,
            size_bytes=headroom.size_bytes,
            alpha_log2=alpha,
        )
    else:
        lossless = PriorityGroupQos(index=classes.data, lossless=True, alpha_log2=alpha, derived_by_nos=True)
    groups = (PriorityGroupQos(index=classes.lossy_group, lossless=False), lossless)
    return tuple(sorted(groups, key=lambda group: group.index))


def note_cable(cable: Cable, ports: Sequence[str], ledger: Ledger) -> None:
    """Notes that the device is told another length than the cable has."""
    if cable.told_m is None:
        text = f"a cable of {cable.real_m} m is longer than any that this network OS can be told of"
        ledger.note("cable-too-long", text, ports=ports, blocks_lossless=True)
    else:
        text = f"a cable of {cable.real_m} m is told as {cable.told_m} m, the next longer that this network OS takes"
        ledger.note("cable-rounded-up", text, ports=ports)


def note_headroom(rows: Sequence[PortHeadroom], switch: Switch, ledger: Ledger) -> None:
    """Notes, as blocking, where no number is known, and where one is not of the very case; one note each a formula."""
    alike: dict[tuple[bool, str], list[PortHeadroom]] = {}
    for row in rows:
        if row.headroom.notes:
            alike.setdefault((row.headroom.xoff_bytes is UNKNOWN, row.headroom.formula), []).append(row)
    for (unknown, formula), group in alike.items():
        ports = tuple(sorted((port for row in group for port in row.ports), key=natural_key))
        why = "; ".join(dict.fromkeys(text for row in group for text in row.headroom.notes))
        if unknown:
            text = f"nobody knows the headroom on {switch.asic or 'an unnamed ASIC'}: {why}"
            ledger.note("headroom-unknown", text, ports=ports, blocks_lossless=True)
        else:
            ledger.note("headroom-approximate", f"by {formula}: {why}", ports=ports)
