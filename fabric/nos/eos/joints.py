"""Which lines of EOS stand or fall together when a run is taken back, and what does not hold together. Pure.

A profile is one thing; so are an interface's QoS lines, which override the profile that it names. Members of a map
are independent of each other, as is a port's MTU.
"""

from collections.abc import Collection, Iterator
from typing import Final

from fabric.diff import Flaw, Unit
from fabric.nos.eos.parse_watchdog import WATCHDOG
from fabric.nos.eos.sections import sections
from fabric.tree import Path, Tree

__all__ = ("flaws", "units")

_PROFILE: Final = "qos profile "
_INTERFACE: Final = "interface "
_ALONE: Final = frozenset({"mtu", "l2 mtu", "speed"})


def units(paths: Collection[Path]) -> tuple[Unit, ...]:
    """Returns whole profiles, the QoS lines of an interface, the watchdog of the device, every other line alone."""
    together: dict[Path, list[Path]] = {}
    for path in paths:
        together.setdefault(_place(path), []).append(path)
    return tuple(Unit(tuple(group), rows=_rows(place)) for place, group in together.items())


def flaws(tree: Tree) -> tuple[Flaw, ...]:
    """Returns interfaces that name a profile or policy that is not there."""
    return tuple(_unnamed(tree))


def _place(path: Path) -> Path:
    head = path[0]
    if head.startswith(_PROFILE):
        return (head,)
    if head.startswith(_INTERFACE):
        return path if path[-1] in _ALONE else (head,)
    return (WATCHDOG,) if head.startswith(WATCHDOG) else path


def _rows(place: Path) -> tuple[Path, ...]:
    return (place,) if place[0].startswith(_PROFILE) else ()


def _unnamed(tree: Tree) -> Iterator[Flaw]:
    found = sections(tree)
    for name, section in found.interfaces.items():
        profile, policy = section.text("service-profile"), section.text("service-policy type qos input")
        here = (f"{_INTERFACE}{name}",)
        if profile is not None and profile not in found.profiles:
            yield Flaw(
                f"{_INTERFACE}{name} names the profile {profile}",
                ((*here, "service-profile"), (f"{_PROFILE}{profile}",)),
            )
        if policy is not None and policy not in found.policies:
            yield Flaw(f"{_INTERFACE}{name} names the policy {policy}", ((*here, "service-policy type qos input"),))
